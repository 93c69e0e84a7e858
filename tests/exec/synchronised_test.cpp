// Kernels compiled by clang that are right: no sanitiser says anything, whatever the interleaving, and the results are those
// of plain C++. The same kernels with a line of their assembly changed are caught by the sanitiser that the line is for.
#include "isa_checks/exec/run/execute.h"
#include "tests/exec/agreement.h"
#include "tests/exec/clang_kernels.h"
#include <bit>
#include <cstring>
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <functional>
#include <numeric>

namespace synchronised_test {
using namespace kiln::exec;
using namespace kiln::exec::testing;

namespace {

using u32 = std::uint32_t;
using Words = std::vector<u32>;

constexpr u32 groups = 4, threads = 256;
constexpr std::size_t in_words = 1536, out_words = 4096;

Words inputs() {
  Words in(in_words);
  for (u32 i = 0; i < in_words; ++i) in[i] = i * 2654435761U >> 4;
  return in;
}

struct Run {
  ExecResult result;
  Words out;
};
Run run_kernel(const kiln::isa::CodeObject& object, const std::string& kernel, std::uint64_t seed, int host_threads = 1,
               std::uint64_t limit = 2'000'000) {
  Memory memory;
  const Words in = inputs();
  struct {
    std::uint64_t in, out;
    u32 n;
  } arguments{memory.allocate("in", in_words * 4, false), memory.allocate("out", out_words * 4), groups};
  std::memcpy(memory.bytes(arguments.in).data(), in.data(), in_words * 4);
  Grid grid;
  grid.workgroups = {groups, 1, 1};
  grid.workgroup_size = {threads, 1, 1};
  Run run;
  // The structure's padding is no argument: 8 + 8 + 4 bytes.
  run.result = execute(object, kernel, grid, std::as_bytes(std::span(&arguments, 1)).first(20), memory,
                       {.seed = seed, .threads = host_threads, .max_instructions = limit});
  run.out.resize(out_words);
  std::memcpy(run.out.data(), memory.bytes("out").data(), out_words * 4);
  return run;
}

// What each kernel writes, by index; kernels whose arithmetic is not repeated here have none.
using Expected = std::function<void(const Words& in, Words& out)>;
struct Case {
  const char* kernel;
  int seeds;
  Expected expected;
};

void each_item(Words& out, const std::function<u32(u32 group, u32 thread)>& f) {
  for (u32 g = 0; g < groups; ++g)
    for (u32 t = 0; t < threads; ++t) out[g * threads + t] = f(g, t);
}
u32 group_sum(const Words& in, u32 group) { return std::accumulate(in.begin() + group * 256, in.begin() + (group + 1) * 256, 0U); }

void tiles(const Words& in, Words& out) {
  for (u32 g = 0; g < groups; ++g) std::copy_n(in.begin(), 1024, out.begin() + g * 1024);
}

const std::vector<Case>& cases() {
  static const std::vector<Case> list = {
      {"reverse", 5, [](const Words& in, Words& out) { each_item(out, [&](u32 g, u32 t) { return in[g * 256 + 255 - t]; }); }},
      {"tree_sum", 5,
       [](const Words& in, Words& out) {
         for (u32 g = 0; g < groups; ++g) out[g] = group_sum(in, g);
       }},
      {"scan", 5,
       [](const Words& in, Words& out) {
         for (u32 g = 0; g < groups; ++g) std::partial_sum(in.begin() + g * 256, in.begin() + (g + 1) * 256, out.begin() + g * 256);
       }},
      {"bytes_transposed", 5,
       [](const Words& in, Words& out) {
         each_item(out, [&](u32 g, u32 t) {
           u32 v = 0;
           for (u32 b = 0; b < 4; ++b) v |= (in[g * 256 + (4 * t + b) % 256] >> (8 * (t / 64)) & 0xffU) << (8 * b);
           return v;
         });
       }},
      {"histogram16", 5,
       [](const Words& in, Words& out) {
         for (u32 i = 0; i < 1024; ++i) ++out[i / 256 * 16 + in[i] % 16];
       }},
      {"last_arrival", 10, [](const Words& in, Words& out) { std::copy_n(in.begin(), 1024, out.begin()); }},
      {"flag_queue", 50, tiles},
      {"counting_queue", 50,
       [](const Words& in, Words& out) {
         for (u32 i = 0; i < groups * 192; ++i)
           for (u32 k = 0; k < 8; ++k) out[i] += in[k * 64 + i % 64];
       }},
      {"one_flag_per_lane", 20,
       [](const Words& in, Words& out) {
         for (u32 i = 0; i < groups * 192; ++i) out[i] = in[i / 192 * 256 + i % 192];
       }},
      {"locked_sum", 20,
       [](const Words& in, Words& out) {
         for (u32 g = 0; g < groups; ++g) out[g] = in[g * 256] + in[g * 256 + 64] + in[g * 256 + 128] + in[g * 256 + 192];
       }},
      {"tickets", 20, [](const Words&, Words& out) { std::fill_n(out.begin(), groups, 40U); }},
      {"direct_ring", 50, tiles},
      {"direct_then_barrier", 5, [](const Words& in, Words& out) { each_item(out, [&](u32 g, u32 t) { return in[g * 256 + 255 - t]; }); }},
      {"direct_own", 5, [](const Words& in, Words& out) { each_item(out, [&](u32 g, u32 t) { return in[g * 256 + (t ^ 1)]; }); }},
      {"inline_assembly", 5, {}},
      {"lanes_exchanged", 5, {}},
      {"matrix_pipeline", 5, {}},
      {"matrix_chain", 5, {}},
      {"divided", 5, {}},
      {"chosen_pointer", 5,
       [](const Words& in, Words& out) { each_item(out, [&](u32 g, u32 t) { return in[g * 256 + t] + (t % 2 == 0); }); }},
      {"private_array", 5,
       [](const Words& in, Words& out) { each_item(out, [&](u32, u32 t) { return in[t % 16] + in[in[t] % 16] + 2 * t; }); }},
      {"turn_by_turn", 10,
       [](const Words&, Words& out) {
         for (u32 g = 0; g < groups; ++g) out[g] = groups - g;
       }},
      {"grid_barrier", 10, [](const Words&, Words& out) { std::fill_n(out.begin(), groups + 1, groups); }},
      {"split_sum", 10,
       [](const Words& in, Words& out) {
         out[0] = groups;
         for (u32 g = 0; g < groups; ++g) out[1] += out[8 + g] = group_sum(in, g);
       }},
  };
  return list;
}

struct Edit {
  const char *kernel, *part;
  int nth;
  const char* replacement;
  DefectKind finds;
};

bool finds(const ExecResult& r, DefectKind kind) {
  for (const Defect& f : r.defects)
    if (f.kind == kind) return true;
  return false;
}

} // namespace

TEST_CASE("clang's kernels: silent and right whatever the interleaving") {
  for (const char* arch : {"gfx942", "gfx950"}) {
    const auto assembly = assembly_of("synchronised", arch);
    if (!assembly) return;
    const auto object = object_of(*assembly, arch);
    CHECK(cases().size() == object.kernels().size());
    for (const Case& c : cases()) {
      CAPTURE(std::string(arch));
      CAPTURE(std::string(c.kernel));
      Words expected(out_words);
      if (c.expected) c.expected(inputs(), expected);
      kiln::testing::WaitAgreement agreement;
      for (int seed = 1; seed <= c.seeds; ++seed) {
        CAPTURE(seed);
        const Run r = run_kernel(object, c.kernel, static_cast<std::uint64_t>(seed), 1 + seed % 2);
        CHECK(r.result.completed);
        for (const Defect& f : r.result.defects) FAIL_CHECK(to_text(f));
        if (c.expected) CHECK(r.out == expected);
        if (seed <= 2) agreement.add(kiln::testing::compare_waits(object, c.kernel, r.result));
      }
      CHECK(agreement.compared > 0);
      for (const std::string& wrong : agreement.wrong) FAIL_CHECK(wrong);
    }
  }
}

TEST_CASE("clang's kernels with one line of assembly changed are caught") {
  constexpr Edit edits[] = {
      {"reverse", "s_barrier", 0, "", DefectKind::lds_race},
      {"reverse", "s_waitcnt vmcnt(0)", 0, "", DefectKind::unwaited_register},
      {"reverse", "s_waitcnt lgkmcnt(0)", 0, "", DefectKind::unwaited_register}, // of scalar loads
      {"reverse", "s_waitcnt lgkmcnt(0)", 1, "", DefectKind::lds_race},          // of LDS, before the barrier
      {"reverse", "s_waitcnt lgkmcnt(0)", 2, "", DefectKind::unwaited_register}, // of LDS, before its use
      {"reverse", "ds_read_b32", 0, "& offset:8188", DefectKind::out_of_bounds},
      {"reverse", "ds_read_b32", 0, "& offset:1024", DefectKind::uninitialised},
      {"reverse", "ds_write_b32", 0, "", DefectKind::uninitialised},
      {"reverse", "v_lshl_or_b32 v2, s2, 8, v0", 0, "v_lshl_or_b32 v2, s2, 11, v0", DefectKind::out_of_bounds},
      {"tree_sum", "s_barrier", 1, "", DefectKind::lds_race},
      {"scan", "s_barrier", 1, "", DefectKind::lds_race},
      {"histogram16", "s_barrier", 0, "", DefectKind::lds_race},
      {"histogram16", "s_barrier", 1, "", DefectKind::lds_race},
      {"direct_then_barrier", "s_waitcnt vmcnt(0)", 0, "", DefectKind::lds_race},
      {"direct_own", "s_waitcnt vmcnt(0)", 0, "", DefectKind::unwaited_lds},
      {"matrix_pipeline", "s_barrier", 3, "", DefectKind::lds_race},
      {"split_sum", "s_barrier", 0, "", DefectKind::lds_race},
  };
  for (const char* arch : {"gfx942", "gfx950"}) {
    const auto assembly = assembly_of("synchronised", arch);
    if (!assembly) return;
    for (const Edit& e : edits) {
      CAPTURE(std::string(arch));
      CAPTURE(std::string(e.kernel));
      CAPTURE(std::string(e.part));
      CAPTURE(e.nth);
      const auto object = object_of(without_line(*assembly, e.kernel, e.part, e.nth, e.replacement), arch);
      int caught = 0;
      for (std::uint64_t seed = 1; seed <= 3; ++seed) caught += finds(run_kernel(object, e.kernel, seed).result, e.finds) ? 1 : 0;
      CHECK(caught == 3);
    }
  }
}

// clang is more careful than it has to be: around inline assembly, and after packed f32 arithmetic.
TEST_CASE("without an s_nop that clang put into a kernel") {
  for (const char* arch : {"gfx942", "gfx950"}) {
    const auto assembly = assembly_of("synchronised", arch);
    if (!assembly) return;
    int taken_out = 0;
    for (const std::string kernel : {"divided", "matrix_chain", "inline_assembly"}) {
      for (int nth = 0; nth < lines_with(*assembly, kernel, "s_nop"); ++nth) {
        const std::string changed = without_line(*assembly, kernel, "s_nop", nth);
        if (kernel != "divided" && lines_with(changed, kernel, "s_nop 0") != lines_with(*assembly, kernel, "s_nop 0")) continue;
        CAPTURE(kernel);
        CAPTURE(nth);
        CAPTURE(std::string(arch));
        CHECK(finds(run_kernel(object_of(changed, arch), kernel, 1).result, DefectKind::hazard));
        ++taken_out;
      }
    }
    CHECK(taken_out >= 9); // 10 of LLVM 21, 9 of LLVM 22
  }
}

TEST_CASE("a ring that direct-to-LDS loads fill, without the waits before its flags") {
  for (const char* arch : {"gfx942", "gfx950"}) {
    auto assembly = assembly_of("synchronised", arch);
    if (!assembly) return;
    // LLVM puts a wait of its own before the write of the flag.
    while (lines_with(*assembly, "direct_ring", "vmcnt") != 0) assembly = without_line(*assembly, "direct_ring", "vmcnt");
    const auto object = object_of(*assembly, arch);
    for (std::uint64_t seed = 1; seed <= 10; ++seed) CHECK(finds(run_kernel(object, "direct_ring", seed).result, DefectKind::lds_race));
  }
}

TEST_CASE("a queue without the consumer's test of its flag, or without the producer's, is caught") {
  for (const char* arch : {"gfx942", "gfx950"})
    for (const char* missing : {"-DNO_CONSUMER_TEST", "-DNO_PRODUCER_TEST"}) {
      const auto assembly = assembly_of("synchronised", arch, missing);
      if (!assembly) return;
      const auto object = object_of(*assembly, arch);
      for (const char* kernel : {"flag_queue", "direct_ring"})
        for (std::uint64_t seed = 1; seed <= 4; ++seed) {
          CAPTURE(std::string(arch));
          CAPTURE(std::string(missing));
          CAPTURE(std::string(kernel));
          CAPTURE(seed);
          // A producer that does not wait may be done before the consumer begins, which then waits for ever.
          const Run r = run_kernel(object, kernel, seed);
          const bool late = missing == std::string("-DNO_PRODUCER_TEST") && finds(r.result, DefectKind::deadlock);
          CHECK((late || finds(r.result, DefectKind::lds_race)));
        }
    }
}

TEST_CASE("waves and workgroups that wait for what does not happen are a deadlock, with where each wave stands") {
  const auto assembly = assembly_of("synchronised", "gfx942", "-DNO_SIGNAL");
  if (!assembly) return;
  const auto object = object_of(*assembly, "gfx942");
  for (const char* kernel : {"flag_queue", "turn_by_turn", "grid_barrier"})
    for (const int host_threads : {1, 2}) {
      CAPTURE(std::string(kernel));
      const Run r = run_kernel(object, kernel, 1, host_threads, 200'000'000);
      CHECK_FALSE(r.result.completed);
      REQUIRE(finds(r.result, DefectKind::deadlock));
      CHECK(r.result.defects.back().message.find("4 of 4 workgroups were started") != std::string::npos);
      CHECK(r.result.defects.back().message.find("wave 0 ") != std::string::npos);
    }
}

TEST_CASE("findings name the source line when there is one") {
  const auto assembly = assembly_of("synchronised", "gfx942", "-gline-tables-only");
  if (!assembly) return;
  const auto object = object_of(without_line(*assembly, "reverse", "s_barrier"), "gfx942");
  const Run r = run_kernel(object, "reverse", 1);
  REQUIRE(finds(r.result, DefectKind::lds_race));
  CHECK(r.result.defects[0].source.starts_with("synchronised.hip:"));
  CHECK(to_text(r.result.defects[0]).find(" synchronised.hip:") != std::string::npos);
}

} // namespace synchronised_test
