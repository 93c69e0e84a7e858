// Alterations of device headers that several kinds of kernels share.
#include "tests/contract/alterations.h"

namespace kiln::testing {
namespace {

const std::string flat_workgroup = "amdgpu_flat_work_group_size(threads, threads)";

std::string registers(char kind, int first, int end) {
  std::string all;
  for (int i = first; i < end; ++i) all += (i > first ? ", \"" : "\"") + (kind + std::to_string(i)) + "\"";
  return all;
}
std::string clobbering(const std::string& registers) { return "asm volatile(\"\" ::: " + registers + ");"; }
std::string clobbered_scalars() { return clobbering(registers('s', 0, 100)); }

Alteration without(const std::string& instruction, const std::string& product) {
  return {"no matrix instruction", instruction, "(sums + static_cast<float>(" + product + "))"};
}
Alteration unconverted(const std::string& conversion) { return {"no conversion", conversion, "(old + (a > b))"}; }

} // namespace

Alterations joined(Alterations a, const Alterations& b) {
  a.insert(b.begin(), b.end());
  return a;
}

Alterations alterations_of_all(const std::string& place, int few_registers) {
  const auto inserted = [&](const std::string& title, const std::string& code) {
    const std::size_t brace = place.find("{ ");
    return Alteration{title, place, place.substr(0, brace + 2) + code + " " + place.substr(brace + 2)};
  };
  const auto executed = [&](const std::string& title, const std::string& instruction, const std::string& clobbered = "\"v0\"") {
    return inserted(title, "asm volatile(\"" + instruction + "\" ::: " + clobbered + ");");
  };
  const Alteration few{"few registers", flat_workgroup,
                       "amdgpu_flat_work_group_size(64, 64), amdgpu_num_vgpr(" + std::to_string(few_registers) + ")"};
  return {
      {"no_scratch", inserted("a spilled array", "volatile unsigned spilled[4]; spilled[__builtin_amdgcn_workitem_id_x() & 3u] = 0;")},
      {"no_spills", few},
      {"max_sgpr_spills", no_scalars()},
      {"max_vgprs", executed("a distant register", "; touched", "\"v250\", \"a200\"")},
      {"max_lds_bytes", inserted("a table in LDS", "static __shared__ volatile unsigned table[1024]; table[0] = 0;")},
      {"max_barriers", executed("a barrier", "s_barrier", "\"memory\"")},
      {"global_loads", narrow_chunks()},
      {"forbidden flat_", executed("a generic address", "flat_load_dword v0, v[0:1]")},
      {"forbidden ds_bpermute", executed("lanes through LDS", "ds_bpermute_b32 v0, v0, v0")},
      {"forbidden ds_permute", executed("lanes through LDS", "ds_permute_b32 v0, v0, v0")},
      {"forbidden v_div_", executed("a part of a division", "v_div_fixup_f32 v0, v0, v0, v0")},
      {"no_errata",
       executed("a write-back with no wait", "buffer_wbl2 sc1\\n\\tglobal_store_dword v[0:1], v0, off", "\"memory\"")}, // CMP003
      {"no_findings HAZ002:info", executed("a result read too soon", "v_mfma_f32_16x16x4_f32 v[0:3], v4, v5, v[0:3]\\n\\tv_mov_b32 v6, v0",
                                           "\"v0\", \"v1\", \"v2\", \"v3\", \"v6\"")},
      {"required v_cvt_pk_fp8_f32", unconverted("__builtin_amdgcn_cvt_pk_fp8_f32(a, b, static_cast<int>(old), high)")},
      {"required v_cvt_pk_bf8_f32", unconverted("__builtin_amdgcn_cvt_pk_bf8_f32(a, b, static_cast<int>(old), high)")},
      {"required v_cvt_scalef32_pk_fp4_f32", unconverted("__builtin_amdgcn_cvt_scalef32_pk_fp4_f32(old, a, b, scale, part)")},
      {"required v_cvt_scalef32_pk_fp8_f32",
       unconverted("__builtin_bit_cast(u32, __builtin_amdgcn_cvt_scalef32_pk_fp8_f32(halves, a, b, scale, part))")},
      {"required v_cvt_scalef32_pk_bf8_f32",
       unconverted("__builtin_bit_cast(u32, __builtin_amdgcn_cvt_scalef32_pk_bf8_f32(halves, a, b, scale, part))")},
  };
}

std::string halves_of(const std::string& address) {
  return "Vec<u32, 2> part[2]; part[0] = *reinterpret_cast<const Vec<u32, 2>*>(" + address +
         "); asm volatile(\"\" ::: \"memory\"); part[1] = *reinterpret_cast<const Vec<u32, 2>*>(" + address +
         " + 8); return {part[0][0], part[0][1], part[1][0], part[1][1]};";
}

Alteration narrow_stream() {
  return {"narrower loads", "  return __builtin_nontemporal_load(reinterpret_cast<const u32x4*>(base + offset));",
          halves_of("base + offset")};
}

Alteration narrow_chunks() {
  return {"narrower loads", "pieces.at[i] = reinterpret_cast<const Place*>(address + i * piece)->value;",
          "{ struct Parts { u8 at[piece]; } parts; for (int j = 0; j < piece; ++j) { parts.at[j] = "
          "*reinterpret_cast<const u8*>(address + i * piece + j); "
          "asm volatile(\"\" ::: \"memory\"); } pieces.at[i] = __builtin_bit_cast(W, parts); }"};
}

Alteration no_vectors_behind(const std::string& code) {
  return {"no vector register behind the loads", code, code + " " + clobbering(registers('v', 16, 256) + ", " + registers('a', 0, 256))};
}

Alterations of_loop(const std::string& loads) {
  const auto behind = [&](const std::string& title, const std::string& code) { return Alteration{title, loads, loads + " " + code}; };
  return {{"max_loop_drains", behind("a drain", "asm volatile(\"s_waitcnt vmcnt(0)\" ::: \"memory\");")},
          {"min_loop_wait", behind("a wait for all but one", "asm volatile(\"s_waitcnt vmcnt(1)\" ::: \"memory\");")},
          {"min_bytes_in_flight", behind("a wait for all but one", "asm volatile(\"s_waitcnt vmcnt(1)\" ::: \"memory\");")},
          {"max_loop_barriers", behind("a barrier in the loop", "asm volatile(\"s_barrier\" ::: \"memory\");")},
          {"max_vgpr_spills", no_vectors_behind(loads)},
          {"spills_in_loops", behind("no scalar register in the loop", clobbered_scalars())}};
}

Alterations of_ring(const Target& to) {
  return joined(of_loop("ring_[i].load(operands_, config.stages + i);"),
                {{"loop_loads", narrow_stream()},
                 {"loads_outside_loops", narrow_stream()},
                 {"required v_mfma_", no_f16_matrix(to)},
                 {"min_loops", {"the loop left out", "for (; left >= 2 * config.stages; left -= config.stages) {", "for (; false;) {"}}});
}

Alteration no_f16_matrix(const Target& to) {
  return without(to.has_scaled_mfma() ? "__builtin_amdgcn_mfma_f32_16x16x32_f16(x, y, sums, 0, 0, 0)"
                                      : "__builtin_amdgcn_mfma_f32_16x16x16f16(x, y, sums, 0, 0, 0)",
                 "x[0] * y[0]");
}
Alteration no_bf16_matrix(const Target& to) {
  return to.has_scaled_mfma()
             ? without("__builtin_amdgcn_mfma_f32_16x16x32_bf16(x, y, sums, 0, 0, 0)", "x[0] * y[0]")
             : without("__builtin_amdgcn_mfma_f32_16x16x16bf16_1k(bits_x, bits_y, sums, 0, 0, 0)", "bits_x[0] * bits_y[0]");
}
Alteration no_fp8_matrix(bool wide) {
  return wide ? without("__builtin_amdgcn_mfma_scale_f32_16x16x128_f8f6f4(x, y, sums, x_format, y_format, 0, 0, 0, 0)", "x[0] * y[0]")
              : without("__builtin_amdgcn_mfma_f32_16x16x32_fp8_fp8(x, y, sums, 0, 0, 0)", "x * y");
}
Alteration no_mx_matrix() {
  return without("__builtin_amdgcn_mfma_scale_f32_16x16x128_f8f6f4(x, y, sums, x_format, y_format, 0, static_cast<int>(x_scale), 0, "
                 "static_cast<int>(y_scale))",
                 "x[0] * y[0]");
}
Alteration no_exponential() { return {"no exponential", "return __builtin_amdgcn_exp2f(x);", "return x * x;"}; }

Alteration few_registers(const std::string& attribute) { return {"few registers", flat_workgroup, flat_workgroup + ", " + attribute}; }
Alteration no_scalars() {
  const std::string begin = "KILN_DEVICE u32 thread_id() {";
  return {"no scalar register", begin, begin + " " + clobbered_scalars()};
}

} // namespace kiln::testing
