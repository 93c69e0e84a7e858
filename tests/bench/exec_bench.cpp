// The speed of the executor: lane-instructions a second of a plain mix, and the time of two kernels. Exit code 1: a bound is
// missed. The bounds are for a core of about 2020; findings fail the benchmark too.
#include "gen/catalog/catalog.h"
#include "gen/reference/random_inputs.h"
#include "isa_checks/decode/assembler.h"
#include "isa_checks/error.h"
#include "isa_checks/exec/numbers/numeric.h"
#include "isa_checks/exec/run/execute.h"
#include "runtime/build/build_kernel.h"
#include "runtime/launch/emulated/emulate.h"
#include "tests/bench/arguments.h"
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <ctime>
#include <fmt/format.h>

using namespace kiln;

namespace {

using u32 = std::uint32_t;
using u64 = std::uint64_t;

double seconds_of(const auto& work) {
  const auto begin = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}
// For this process, on all its threads: what a busy machine leaves alone.
double cpu_seconds_of(const auto& work) {
  const std::clock_t begin = std::clock();
  work();
  return static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
}

double best_of(int runs, const auto& measure) {
  double best = 1e9;
  for (int i = 0; i < runs; ++i) best = std::min(best, measure());
  return best;
}

// Denormals are kept, as compilers ask.
isa::CodeObject assembled(const std::string& arch, const std::string& body) {
  return isa::load_code_object(
      isa::assemble(fmt::format(".amdgcn_target \"amdgcn-amd-amdhsa--{}\"\n.text\n.globl k\n.p2align 8\n.type k,@function\nk:\n{}  "
                                "s_endpgm\n.Lend:\n"
                                ".size k, .Lend-k\n.rodata\n.p2align 6\n.amdhsa_kernel k\n  .amdhsa_kernarg_size 24\n"
                                "  .amdhsa_user_sgpr_kernarg_segment_ptr 1\n  .amdhsa_next_free_vgpr 64\n  .amdhsa_accum_offset 64\n"
                                "  .amdhsa_next_free_sgpr 32\n  .amdhsa_float_denorm_mode_32 3\n.end_amdhsa_kernel\n",
                                arch, body),
                    isa::target_facts(arch)),
      "benchmark");
}

void require_clean(const exec::ExecResult& r) {
  if (!r.defects.empty()) throw isa::Error("benchmark", exec::to_text(r.defects.front()), "mend the kernel or the sanitiser");
}

// f32 arithmetic as of a norm: fma, products, conversions, comparisons, integer addresses, one load and one store in 25.
constexpr const char* mix = R"(
  s_load_dwordx4 s[4:7], s[0:1], 0x0
  v_lshlrev_b32 v1, 4, v0
  s_movk_i32 s8, 1000
  v_mov_b32 v20, 1.0
  v_mov_b32 v21, 0.5
  v_mov_b32 v22, 0
  v_mov_b32 v13, 0
  s_waitcnt lgkmcnt(0)
next:
  global_load_dwordx4 v[2:5], v1, s[4:5]
  v_mul_f32 v6, v20, v21
  v_fma_f32 v7, v6, v21, v20
  v_fma_f32 v8, v7, v21, v20
  v_add_f32 v9, v7, v8
  v_max_f32 v10, v9, v6
  v_cvt_f16_f32 v11, v10
  v_cvt_f32_f16 v12, v11
  v_fmac_f32 v22, v12, v21
  v_add_u32 v13, v13, v0
  v_lshlrev_b32 v14, 3, v0
  v_and_or_b32 v15, v14, v0, v14
  s_waitcnt vmcnt(0)
  v_pk_mul_f32 v[2:3], v[2:3], v[20:21]
  v_pk_fma_f32 v[4:5], v[4:5], v[20:21], v[20:21]
  v_fma_f32 v2, v3, v2, v4
  v_add_f32 v3, v2, v5
  v_pk_fma_f16 v16, v11, v11, v11
  v_cmp_lt_f32 vcc, v3, v2
  s_sub_u32 s8, s8, 1
  s_cmp_lg_u32 s8, 0
  v_cndmask_b32 v17, v3, v2, vcc
  global_store_dword v1, v17, s[6:7]
  s_cbranch_scc1 next
)";

exec::ExecOptions options_without_checks() {
  exec::ExecOptions options;
  options.check_waits = options.check_undefined = options.check_races = options.check_hazards = options.measure = false;
  return options;
}

// Lane-instructions of the mix, executed.
double run_mix(const isa::CodeObject& object, const exec::ExecOptions& options) {
  exec::Memory memory;
  const u64 arguments[3] = {memory.allocate("in", 4096), memory.allocate("out", 4096), 0};
  exec::Grid grid;
  grid.workgroups = {static_cast<u32>(8 * options.threads), 1, 1};
  grid.workgroup_size = {256, 1, 1};
  const exec::ExecResult r = exec::execute(object, "k", grid, std::as_bytes(std::span(arguments)), memory, options);
  require_clean(r);
  return 64.0 * static_cast<double>(r.waves.executed());
}

// On one core, by CPU time.
double mix_speed(const exec::ExecOptions& options) {
  const isa::CodeObject object = assembled("gfx942", std::string(mix));
  double lanes = 0;
  const double time = best_of(3, [&] { return cpu_seconds_of([&] { lanes = run_mix(object, options); }); });
  return lanes / time;
}

// How many times as much two threads do as one in the same time, by the clock: locks and memory count. Needs two idle cores.
double mix_scaling() {
  const isa::CodeObject object = assembled("gfx942", std::string(mix));
  const double one = best_of(3, [&] { return seconds_of([&] { run_mix(object, {.threads = 1}); }); });
  const double two = best_of(3, [&] { return seconds_of([&] { run_mix(object, {.threads = 2}); }); }); // of twice the work
  return 2 * one / two;
}

double norm_time(const Target& to) {
  CompileOptions compile = own_process_options(process_environment());
  const KernelSpec spec = catalog_spec("add_rmsnorm_quant", {.cols = 16384, .dtype = f16, .fp8 = to.fp8()});
  const BuiltKernel built = build_kernel(spec, to, compile);
  const Inputs inputs = random_inputs(spec, 1, {.dynamic_size = 16});
  return best_of(
      3, [&] { return seconds_of([&] { require_clean(emulate(spec, built.source, built.object, inputs, {.threads = 1}).result); }); });
}

// C[8, 2304] = A[8, 16384] B[2304, 16384]^T in fp8: a wave takes 16 columns of C and goes through all of k.
constexpr u32 gemm_m = 8, gemm_n = 2304, gemm_k = 16384;
constexpr const char* gemm = R"(
  s_load_dwordx4 s[4:7], s[0:1], 0x0
  s_load_dwordx2 s[8:9], s[0:1], 0x10
  v_and_b32 v1, 15, v0
  v_lshrrev_b32 v2, 4, v0
  v_and_b32 v3, 7, v1
  v_lshlrev_b32 v3, 14, v3
  v_lshl_add_u32 v3, v2, 3, v3
  v_lshl_add_u32 v4, s2, 4, v1
  v_mov_b32 v5, v4
  v_lshlrev_b32 v4, 14, v4
  v_lshl_add_u32 v4, v2, 3, v4
  v_mov_b32 v8, 0
  v_mov_b32 v9, 0
  v_mov_b32 v10, 0
  v_mov_b32 v11, 0
  s_movk_i32 s10, 128
  s_waitcnt lgkmcnt(0)
next:
  global_load_dwordx2 v[20:21], v3, s[4:5]
  global_load_dwordx2 v[30:31], v4, s[6:7]
  global_load_dwordx2 v[22:23], v3, s[4:5] offset:32
  global_load_dwordx2 v[32:33], v4, s[6:7] offset:32
  global_load_dwordx2 v[24:25], v3, s[4:5] offset:64
  global_load_dwordx2 v[34:35], v4, s[6:7] offset:64
  global_load_dwordx2 v[26:27], v3, s[4:5] offset:96
  global_load_dwordx2 v[36:37], v4, s[6:7] offset:96
  v_add_u32 v3, 0x80, v3
  v_add_u32 v4, 0x80, v4
  s_sub_u32 s10, s10, 1
  s_cmp_lg_u32 s10, 0
  s_waitcnt vmcnt(6)
  v_mfma_f32_16x16x32_fp8_fp8 v[8:11], v[20:21], v[30:31], v[8:11]
  s_waitcnt vmcnt(4)
  v_mfma_f32_16x16x32_fp8_fp8 v[8:11], v[22:23], v[32:33], v[8:11]
  s_waitcnt vmcnt(2)
  v_mfma_f32_16x16x32_fp8_fp8 v[8:11], v[24:25], v[34:35], v[8:11]
  s_waitcnt vmcnt(0)
  v_mfma_f32_16x16x32_fp8_fp8 v[8:11], v[26:27], v[36:37], v[8:11]
  s_cbranch_scc1 next
  v_cmp_gt_u32 vcc, 2, v2
  s_and_saveexec_b64 s[12:13], vcc
  v_mul_u32_u24 v6, 0x2400, v2
  v_add_u32 v6, v6, v5
  v_lshlrev_b32 v6, 2, v6
  s_movk_i32 s14, 0x2400
  s_nop 4
  global_store_dword v6, v8, s[8:9]
  v_add_u32 v6, s14, v6
  global_store_dword v6, v9, s[8:9]
  v_add_u32 v6, s14, v6
  global_store_dword v6, v10, s[8:9]
  v_add_u32 v6, s14, v6
  global_store_dword v6, v11, s[8:9]
)";

// Seconds on two threads; checks a few elements of the result.
double gemm_time(const std::string& arch) {
  const isa::CodeObject object = assembled(arch, gemm);
  const Target to = target(arch);
  exec::Memory memory;
  const u64 arguments[3] = {memory.allocate("a", gemm_m * gemm_k, false), memory.allocate("b", gemm_n * gemm_k, false),
                            memory.allocate("c", gemm_m * gemm_n * 4)};
  const auto fill = [&](u64 address, u32 seed) {
    for (std::byte& b : memory.bytes(address)) {
      seed = seed * 1664525U + 1013904223U;
      b = static_cast<std::byte>((seed >> 24 & 0x87U) | 0x38U); // +-1 to +-1.875, or half of it: exact in both flavours
    }
  };
  fill(arguments[0], 1);
  fill(arguments[1], 2);
  exec::Grid grid;
  grid.workgroups = {gemm_n / 16, 1, 1};
  grid.workgroup_size = {64, 1, 1};
  const double time =
      seconds_of([&] { require_clean(exec::execute(object, "k", grid, std::as_bytes(std::span(arguments)), memory, {.threads = 2})); });
  const auto value = [&](u64 address, std::size_t i) {
    const auto bits = static_cast<std::uint8_t>(memory.bytes(address)[i]);
    const double magnitude = 1.0 + (bits & 7U) / 8.0;
    return (bits & 0x80U ? -magnitude : magnitude) * (to.fp8() == e4m3fnuz ? 0.5 : 1.0);
  };
  for (std::size_t m = 0; m < gemm_m; m += 3)
    for (std::size_t n = 0; n < gemm_n; n += 767) {
      double want = 0;
      for (std::size_t k = 0; k < gemm_k; ++k) want += value(arguments[0], m * gemm_k + k) * value(arguments[1], n * gemm_k + k);
      float got = 0;
      std::memcpy(&got, memory.bytes(arguments[2]).data() + (m * gemm_n + n) * 4, 4);
      if (std::abs(static_cast<double>(got) - want) > 0.02)
        throw isa::Error(fmt::format("GEMM element {}, {}", m, n), fmt::format("{} instead of {}", got, want), "mend the executor");
    }
  return time;
}

bool all_met = true;
void line(const std::string& what, double value, const char* unit, bool met, const std::string& bound) {
  all_met &= met;
  fmt::print("{:<58} {:>8.4g} {:<22} {} ({})\n", what, value, unit, met ? "met" : "MISSED", bound);
}

} // namespace

int main(int argc, char** argv) try {
  const bool short_form = take_short_form(argc, argv);
  const double speed = mix_speed({}), scaling = mix_scaling();
  line("plain VALU and memory mix, one core, all checks", speed / 1e6, "M lane-instructions/s", speed >= 400e6, ">= 400");
  const auto part = [&](const char* name, bool exec::ExecOptions::* check) {
    exec::ExecOptions options = options_without_checks();
    if (check != nullptr) options.*check = true;
    fmt::print("{:<58} {:>8.4g} M lane-instructions/s\n", name, mix_speed(options) / 1e6);
  };
  part("  nothing checked, nothing counted", nullptr);
  part("  check_waits alone", &exec::ExecOptions::check_waits);
  part("  check_undefined alone", &exec::ExecOptions::check_undefined);
  part("  check_hazards alone", &exec::ExecOptions::check_hazards);
  part("  measure alone", &exec::ExecOptions::measure);
  line("  two threads / one", scaling, "times", scaling >= 1.5, ">= 1.5 on two idle cores");
  for (const std::string arch : {"gfx942", "gfx950"}) {
    const double norm = norm_time(target(arch));
    line(fmt::format("add_rmsnorm_quant [16, 16384], {}, one thread", arch), norm, "s", norm < 0.1, "< 0.1");
    if (short_form) break;
    const double product = gemm_time(arch);
    line(fmt::format("fp8 GEMM 8 x 2304 x 16384, {}, two threads", arch), product, "s", product < 3, "< 3");
  }
  return all_met || short_form ? 0 : 1;
} catch (const std::exception& error) {
  fmt::print(stderr, "error: {}\n", error.what());
  return 1;
}
