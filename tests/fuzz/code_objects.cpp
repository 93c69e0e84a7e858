// Damaged code objects through loader, decoder, analysis and a short execution: an error or findings, never a crash or a hang.
// KILN_FUZZ_FIRST and KILN_FUZZ_COUNT choose the seeds; the normal run takes a small slice. Meant for the asan preset:
//   ASAN_OPTIONS=detect_stack_use_after_return=0:malloc_context_size=1 KILN_FUZZ_COUNT=1000000 ./dev --preset asan exec
//   build-asan/bin/kiln_fuzz_tests -tc='damaged code objects'
#include "isa_checks/decode/assembler.h"
#include "isa_checks/error.h"
#include "isa_checks/exec/run/execute.h"
#include "isa_checks/object/code_object.h"
#include "tests/fuzz/seeds.h"
#include <array>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <doctest/doctest.h>
#include <fmt/format.h>

namespace code_objects_tests {
using namespace kiln;

namespace {

using u32 = std::uint32_t;
using u64 = std::uint64_t;

// A little of everything that the executor does, ending soon.
constexpr const char* body = R"(
  s_load_dwordx4 s[4:7], s[0:1], 0x0
  s_load_dword s12, s[0:1], 0x10
  v_and_b32 v1, 0x3ff, v0
  v_lshlrev_b32 v2, 2, v1
  s_mov_b32 m0, 0
  s_waitcnt lgkmcnt(0)
  global_load_dword v3, v2, s[4:5]
  global_load_dwordx4 v[4:7], v2, s[4:5] offset:16
  global_load_lds_dword v2, s[4:5]
  s_mov_b32 s8, s4
  s_mov_b32 s9, s5
  s_mov_b32 s10, 1024
  s_mov_b32 s11, 0x20000
  buffer_load_dwordx2 v[8:9], v2, s[8:11], 0 offen
  s_waitcnt vmcnt(0)
  ds_write_b32 v2, v3
  ds_read2_b32 v[10:11], v2 offset0:0 offset1:1
  ds_add_rtn_u32 v12, v2, v1
  s_waitcnt lgkmcnt(0)
  s_barrier
  v_mov_b32_dpp v13, v3 row_shr:1 row_mask:0xf bank_mask:0xf
  v_add_u16_sdwa v14, v3, v4 dst_sel:WORD_1 dst_unused:UNUSED_PRESERVE src0_sel:BYTE_1 src1_sel:DWORD
  v_pk_fma_f16 v15, v4, v5, v6 op_sel_hi:[1,0,1]
  v_fma_f32 v16, -v4, |v5|, v6 clamp mul:2
  v_exp_f32 v17, v16
  v_cmp_lt_f32 vcc, v16, v17
  s_nop 4
  v_cndmask_b32 v18, v16, v17, vcc
  v_readfirstlane_b32 s13, v3
  v_mfma_f32_16x16x16_f16 v[20:23], v[4:5], v[6:7], v[20:23]
  s_and_saveexec_b64 s[14:15], vcc
  s_cbranch_execz over
  v_cvt_pk_fp8_f32 v19, v16, v17
  global_atomic_add v2, v1, s[6:7]
over:
  s_mov_b64 exec, s[14:15]
loop:
  s_sub_u32 s12, s12, 1
  s_cmp_lg_u32 s12, 0
  s_cbranch_scc1 loop
  s_nop 7
  v_permlane32_swap_b32 v18, v19
  scratch_store_dword off, v18, off
  global_store_dwordx4 v2, v[20:23], s[6:7]
  flat_store_dword v[8:9], v18
  s_endpgm
)";

std::string kernel_text(std::string_view arch) {
  std::string code = body;
  if (arch == "gfx942") code.erase(code.find("  v_permlane32_swap"), std::strlen("  v_permlane32_swap_b32 v18, v19\n"));
  return fmt::format(
      ".amdgcn_target \"amdgcn-amd-amdhsa--{}\"\n.text\n.globl k\n.p2align 8\n.type k,@function\nk:\n{}.Lend:\n.size k, .Lend-k\n"
      ".rodata\n.p2align 6\n.amdhsa_kernel k\n  .amdhsa_group_segment_fixed_size 1024\n  .amdhsa_private_segment_fixed_size 16\n"
      "  .amdhsa_kernarg_size 24\n  .amdhsa_user_sgpr_kernarg_segment_ptr 1\n  .amdhsa_next_free_vgpr 32\n  .amdhsa_accum_offset "
      "24\n"
      "  .amdhsa_next_free_sgpr 24\n.end_amdhsa_kernel\n"
      ".amdgpu_metadata\n---\namdhsa.version: [1, 2]\namdhsa.target: amdgcn-amd-amdhsa--{}\namdhsa.kernels:\n  - .name: k\n    "
      ".symbol: k.kd\n"
      "    .kernarg_segment_size: 24\n    .kernarg_segment_align: 8\n    .group_segment_fixed_size: 1024\n    "
      ".private_segment_fixed_size: 16\n"
      "    .wavefront_size: 64\n    .sgpr_count: 24\n    .vgpr_count: 32\n    .max_flat_workgroup_size: 256\n    .args:\n"
      "      - {{.offset: 0, .size: 8, .value_kind: global_buffer, .address_space: global}}\n"
      "      - {{.offset: 8, .size: 8, .value_kind: global_buffer, .address_space: global}}\n"
      "      - {{.offset: 16, .size: 4, .value_kind: by_value}}\n...\n.end_amdgpu_metadata\n",
      arch, code, arch);
}

struct Random { // splitmix64
  u64 state;
  u64 next() {
    u64 z = (state += 0x9e3779b97f4a7c15ULL);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
    return z ^ (z >> 31);
  }
  std::size_t below(std::size_t n) { return n == 0 ? 0 : next() % n; }
};

struct Region {
  std::size_t first = 0, size = 0;
};

// A whole code object, and where in its bytes what lies.
struct Original {
  std::vector<std::uint8_t> bytes;
  Region code, descriptor, notes, section_headers, symbols;
};

Original make_original(std::string_view arch) {
  const isa::CodeObject object = isa::load_code_object(isa::assemble(kernel_text(arch), isa::target_facts(arch)), "original");
  Original o;
  o.bytes.assign(object.bytes().begin(), object.bytes().end());
  const auto region = [&](std::span<const std::uint8_t> part) {
    return Region{static_cast<std::size_t>(part.data() - object.bytes().data()), part.size()};
  };
  o.code = region(object.kernels()[0].code);
  for (const isa::ElfSection& s : object.sections()) {
    if (s.name == ".rodata") o.descriptor = region(s.bytes);
    if (s.name == ".note") o.notes = region(s.bytes);
    if (s.name == ".symtab") o.symbols = region(s.bytes);
  }
  u64 headers = 0;
  std::memcpy(&headers, &o.bytes[40], 8); // e_shoff
  o.section_headers = {headers, o.bytes.size() - headers};
  return o;
}

// A number that is likely to be on some edge.
u64 edge(Random& random, std::size_t file) {
  const u64 edges[] = {0, 1, 3, 4, 0x7f, 0xff, 0xffff, 0x7fffffff, 0xffffffff, ~0ULL, 1ULL << 63, file - 1, file, file + 1, random.next()};
  return edges[random.below(std::size(edges))];
}

void put(std::vector<std::uint8_t>& bytes, std::size_t at, u64 value, std::size_t width) {
  for (std::size_t i = 0; i < width && at + i < bytes.size(); ++i) bytes[at + i] = static_cast<std::uint8_t>(value >> (8 * i));
}

void mutate_code(std::vector<std::uint8_t>& bytes, Region code, Random& random) {
  const auto word = [&] { return code.first + random.below(code.size / 4) * 4; };
  const std::size_t at = word();
  switch (random.below(5)) {
  case 0: put(bytes, at, random.next(), 4); break;                                                // any word
  case 1: bytes[at + random.below(4)] ^= static_cast<std::uint8_t>(1U << random.below(8)); break; // one bit
  case 2: put(bytes, at, random.next(), 2); break;                                                // other operands
  case 3: std::memcpy(&bytes[at], &bytes[word()], 4); break;                                      // another instruction of the kernel
  default: put(bytes, at + 2, random.next(), 2); break;                                           // another opcode
  }
}

std::vector<std::uint8_t> mutated(const Original& original, Random& random) {
  std::vector<std::uint8_t> bytes = original.bytes;
  for (std::size_t n = 1 + random.below(3); n > 0; --n) {
    const auto in = [&](Region r) { return r.first + random.below(r.size); };
    switch (random.below(10)) {
    case 0: bytes[random.below(bytes.size())] ^= static_cast<std::uint8_t>(1U << random.below(8)); break;
    case 1: put(bytes, random.below(64), edge(random, bytes.size()), std::size_t{1} << random.below(4)); break; // the ELF header
    case 2: put(bytes, in(original.section_headers) & ~std::size_t{3}, edge(random, bytes.size()), 4 + 4 * random.below(2)); break;
    case 3: put(bytes, in(original.symbols), edge(random, bytes.size()), std::size_t{1} << random.below(4)); break;
    case 4: put(bytes, in(original.notes), random.next(), 1 + random.below(4)); break;
    case 5: put(bytes, in(original.descriptor), edge(random, bytes.size()), 1 + random.below(4)); break;
    case 6:
      if (random.below(20) == 0) bytes.resize(random.below(2 * bytes.size()));
      bytes.resize(std::max<std::size_t>(bytes.size(), original.bytes.size())); // the regions stay inside
      break;
    default: mutate_code(bytes, original.code, random);
    }
  }
  if (random.below(50) == 0) bytes.resize(random.below(bytes.size()));
  return bytes;
}

// What happened, by the message; throws what is no error of ours.
void run_one(std::vector<std::uint8_t> bytes, u64 seed) {
  try {
    const isa::CodeObject object = isa::load_code_object(std::move(bytes), "damaged");
    for (const isa::Kernel& kernel : object.kernels()) {
      exec::Memory memory;
      const struct {
        u64 in, out;
        u32 n, pad;
      } arguments{memory.allocate("in", 1024), memory.allocate("out", 1024), 3, 0};
      exec::Grid grid;
      grid.workgroup_size = {seed % 4 == 0 ? 128U : 64U, 1, 1};
      exec::ExecOptions options;
      options.seed = seed;
      options.max_instructions = 300;
      exec::execute(object, kernel.name, grid, std::as_bytes(std::span(&arguments, 1)).first(20), memory, options);
    }
  } catch (const isa::Error&) {}
}

} // namespace

TEST_CASE("damaged code objects") {
  const u64 first = testing::number_from("KILN_FUZZ_FIRST", 1), count = testing::number_from("KILN_FUZZ_COUNT", 400);
  const std::array originals{make_original("gfx942"), make_original("gfx950")};
  for (const Original& o : originals) REQUIRE_NOTHROW(run_one(o.bytes, 1));
  const std::clock_t begin = std::clock();
  for (u64 seed = first; seed < first + count; ++seed) {
    Random random{seed};
    try {
      run_one(mutated(originals[seed % 2], random), seed);
    } catch (const std::exception& error) {
      FAIL_CHECK(fmt::format("seed {}: {}", seed, error.what()));
    }
  }
  const double time = static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
  MESSAGE(fmt::format("seeds {} to {}, {:.0f} a second of one core", first, first + count - 1, static_cast<double>(count) / time));
}

} // namespace code_objects_tests
