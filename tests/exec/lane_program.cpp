// Assembling, running and reading back a lane program.
#include "tests/exec/lane_program.h"
#include "isa_checks/decode/assembler.h"
#include <cmath>
#include <cstring>
#include <fmt/format.h>
#include <random>

namespace kiln::exec::testing {

isa::CodeObject assemble_kernel(const KernelText& k) {
  const std::string text = fmt::format(R"(
.amdgcn_target "amdgcn-amd-amdhsa--{arch}"
.text
.globl k
.p2align 8
.type k,@function
k:
{body}
  s_endpgm
.Lend:
.size k, .Lend-k
.rodata
.p2align 6
.amdhsa_kernel k
  .amdhsa_group_segment_fixed_size {lds}
  .amdhsa_private_segment_fixed_size {scratch}
  .amdhsa_kernarg_size {kernarg}
  .amdhsa_user_sgpr_kernarg_segment_ptr 1
  .amdhsa_next_free_vgpr {vgprs}
  .amdhsa_accum_offset 256
  .amdhsa_next_free_sgpr 96
  .amdhsa_float_denorm_mode_32 3
{descriptor}
.end_amdhsa_kernel
)",
                                       fmt::arg("arch", k.arch), fmt::arg("body", k.body), fmt::arg("lds", k.lds_bytes),
                                       fmt::arg("scratch", k.scratch_bytes), fmt::arg("kernarg", k.kernarg_bytes),
                                       fmt::arg("vgprs", k.accumulation ? 512 : 256), fmt::arg("descriptor", k.descriptor));
  return isa::load_code_object(isa::assemble(text, isa::target_facts(k.arch)), "test kernel");
}

LaneResult run(const LaneProgram& p, const ExecOptions& options) {
  std::string body = "  s_load_dwordx4 s[4:7], s[0:1], 0x0\n  s_load_dwordx2 s[8:9], s[0:1], 0x10\n"
                     "  v_lshlrev_b32 v255, 2, v0\n  s_waitcnt lgkmcnt(0)\n";
  if (!p.scalars.empty()) body += "  s_load_dwordx16 s[16:31], s[8:9], 0x0\n";
  // Immediate offsets reach 16 registers far.
  const auto base = [](std::size_t i, int from) {
    return i % 16 != 0 ? "" : fmt::format("  s_add_u32 s10, s{}, {}\n  s_addc_u32 s11, s{}, 0\n", from, 256 * i, from + 1);
  };
  for (std::size_t i = 0; i < p.inputs.size(); ++i)
    body += base(i, 4) + fmt::format("  global_load_dword v{}, v255, s[10:11] offset:{}\n", i + 1, 256 * (i % 16));
  body += "  s_waitcnt vmcnt(0) lgkmcnt(0)\n" + p.body + "\n  s_mov_b64 exec, -1\n  s_nop 4\n";
  for (std::size_t i = 0; i < static_cast<std::size_t>(p.results); ++i)
    body += base(i, 6) + fmt::format("  global_store_dword v255, v{}, s[10:11] offset:{}\n", 64 + i, 256 * (i % 16));
  const isa::CodeObject object =
      assemble_kernel({.body = body, .arch = p.arch, .lds_bytes = p.lds_bytes, .accumulation = p.accumulation, .descriptor = p.descriptor});
  Memory memory;
  const std::uint64_t in = memory.allocate("in", sizeof(Lanes64) * p.inputs.size());
  const std::uint64_t out = memory.allocate("out", sizeof(Lanes64) * static_cast<std::size_t>(p.results));
  const std::uint64_t scalars = memory.allocate("scalars", 64);
  if (!p.inputs.empty()) std::memcpy(memory.bytes(in).data(), p.inputs.data(), memory.bytes(in).size());
  if (!p.scalars.empty()) std::memcpy(memory.bytes(scalars).data(), p.scalars.data(), p.scalars.size() * 4);
  const std::uint64_t arguments[3] = {in, out, scalars};
  LaneResult result;
  ExecOptions run_options = options;
  run_options.check_hazards = p.check_hazards;
  result.run = execute(object, "k", {}, std::as_bytes(std::span(arguments)), memory, run_options);
  result.v.resize(static_cast<std::size_t>(p.results));
  if (p.results > 0) std::memcpy(result.v.data(), memory.bytes(out).data(), memory.bytes(out).size());
  return result;
}

Lanes64 each_lane(const std::function<std::uint32_t(int)>& f) {
  Lanes64 r;
  for (int i = 0; i < 64; ++i) r[static_cast<std::size_t>(i)] = f(i);
  return r;
}
Lanes64 floats(const std::function<float(int)>& f) {
  return each_lane([&](int i) { return as_bits(f(i)); });
}

std::vector<Pairs> pairs_of(const std::vector<std::uint32_t>& values, int random_sets, std::uint64_t seed) {
  std::vector<std::uint32_t> a, b;
  for (const std::uint32_t x : values)
    for (const std::uint32_t y : values) {
      a.push_back(x);
      b.push_back(y);
    }
  std::mt19937_64 random(seed);
  while (a.size() % 64 != 0 || random_sets-- > 0) {
    const std::size_t until = (a.size() / 64 + 1) * 64;
    while (a.size() < until) {
      a.push_back(static_cast<std::uint32_t>(random()));
      b.push_back(static_cast<std::uint32_t>(random()));
    }
  }
  std::vector<Pairs> sets(a.size() / 64);
  for (std::size_t i = 0; i < a.size(); ++i) {
    sets[i / 64].a[i % 64] = a[i];
    sets[i / 64].b[i % 64] = b[i];
  }
  return sets;
}

const std::vector<std::uint32_t>& interesting_floats() {
  static const std::vector<std::uint32_t> values = {0x00000000, 0x80000000, 0x3f800000, 0xbf800000, 0x3f000000, 0x40490fdb, 0x7f7fffff,
                                                    0xff7fffff, 0x7f800000, 0xff800000, 0x7fc00000, 0x00000001, 0x80000001, 0x007fffff,
                                                    0x00800000, 0x3f7fffff, 0x3f800001, 0x4b000001, 0xc2f60000, 0x33800000};
  return values;
}
const std::vector<std::uint32_t>& interesting_halves() {
  static const std::vector<std::uint32_t> values = [] {
    std::vector<std::uint32_t> v;
    for (const std::uint32_t h : {0x0000U, 0x8000U, 0x3c00U, 0xbc00U, 0x3800U, 0x7bffU, 0xfbffU, 0x7c00U, 0xfc00U, 0x7e00U, 0x0001U,
                                  0x8001U, 0x03ffU, 0x0400U, 0x3bffU, 0x3c01U, 0x6400U, 0x1400U})
      v.push_back(h | (h ^ 0x8000U) << 16);
    return v;
  }();
  return values;
}
const std::vector<std::uint32_t>& interesting_integers() {
  static const std::vector<std::uint32_t> values = {0,        1,        2,         31,         32,         33,         0x7f,
                                                    0x80,     0xff,     0x7fff,    0x8000,     0xffff,     0x10000,    0x7fffff,
                                                    0x800000, 0xffffff, 0x1000000, 0x7fffffff, 0x80000000, 0xfffffffe, 0xffffffff};
  return values;
}

bool same_float(std::uint32_t a, std::uint32_t b) { return a == b || (std::isnan(as_float(a)) && std::isnan(as_float(b))); }
bool same_half(std::uint32_t a, std::uint32_t b) {
  const auto nan = [](std::uint32_t h) { return (h & 0x7fffU) > 0x7c00U; };
  return a == b || (nan(a) && nan(b));
}

} // namespace kiln::exec::testing
