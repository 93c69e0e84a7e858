// Alterations: what is put into device headers, and the verdict on the code that comes of it.
#include "tests/contract/altered.h"
#include "gen/families/schedule.h"
#include "runtime/build/inspect.h"
#include <stdexcept>

namespace kiln::testing {

Alterations alterations_of_all(const std::string& place, int few_registers) {
  const auto inserted = [&](const std::string& title, const std::string& code) {
    const std::size_t brace = place.find("{ ");
    return Alteration{title, place, place.substr(0, brace + 2) + code + " " + place.substr(brace + 2)};
  };
  const auto executed = [&](const std::string& title, const std::string& instruction, const std::string& clobbered = "\"v0\"") {
    return inserted(title, "asm volatile(\"" + instruction + "\" ::: " + clobbered + ");");
  };
  return {
      {"no_scratch", inserted("a spilled array", "volatile unsigned spilled[4]; spilled[__builtin_amdgcn_workitem_id_x() & 3u] = 0;")},
      {"no_spills",
       {"few registers", "amdgpu_flat_work_group_size(threads, threads)",
        "amdgpu_flat_work_group_size(64, 64), amdgpu_num_vgpr(" + std::to_string(few_registers) + ")"}},
      {"max_vgprs", executed("a distant register", "; touched", "\"v250\", \"a200\"")},
      {"max_lds_bytes", inserted("a table in LDS", "static __shared__ volatile unsigned table[1024]; table[0] = 0;")},
      {"max_barriers", executed("a barrier", "s_barrier", "\"memory\"")},
      {"forbidden flat_", executed("a generic address", "flat_load_dword v0, v[0:1]")},
      {"forbidden ds_bpermute", executed("lanes through LDS", "ds_bpermute_b32 v0, v0, v0")},
      {"forbidden ds_permute", executed("lanes through LDS", "ds_permute_b32 v0, v0, v0")},
      {"forbidden v_div_", {"IEEE division", "return __builtin_amdgcn_rcpf(x);", "return 1.0f / x;"}},
      {"no_errata", executed("a faulty instruction", "v_pk_fma_f32 v[0:1], v[2:3], v[4:5], v[6:7] op_sel:[0,1,0]", "\"v0\", \"v1\"")},
      {"no_findings HAZ002:info", executed("a result read too soon", "v_mfma_f32_16x16x4_f32 v[0:3], v4, v5, v[0:3]\\n\\tv_mov_b32 v6, v0",
                                           "\"v0\", \"v1\", \"v2\", \"v3\", \"v6\"")},
      {"required v_cvt_pk_fp8_f32",
       {"no conversion", "__builtin_amdgcn_cvt_pk_fp8_f32(a, b, static_cast<int>(old), high)", "(old + (a > b))"}},
  };
}

BuiltKernel altered(const Alteration& alteration, const BuiltKernel& kernel, const Target& to) {
  BuiltKernel result = kernel;
  KernelSource& source = result.source;
  source.text = self_contained(source);
  std::size_t at = source.text.find(alteration.from);
  if (at == std::string::npos) throw std::runtime_error("the headers lack: " + alteration.from);
  for (; at != std::string::npos; at = source.text.find(alteration.from, at + alteration.to.size()))
    source.text.replace(at, alteration.from.size(), alteration.to);
  result.object = compile(source, to, own_process_options(process_environment()));
  return result;
}

std::set<std::string> broken_by(const Alteration& alteration, const BuiltKernel& kernel, const Target& to) {
  const Inspection seen = inspect(altered(alteration, kernel, to).object, promises(kernel.plan, kernel.schedule, to));
  std::set<std::string> names;
  for (const isa::ExpectationResult& result : seen.report.results)
    if (!result.met) names.insert(result.name);
  return names;
}

} // namespace kiln::testing
