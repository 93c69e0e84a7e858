// Target: the two architectures. The only file of gen/ that spells their names. Numbers: docs of ROCm, "GPU hardware
// specifications", and LLVM's AMDGPUBaseInfo (LDS).
#include "gen/plan/target.h"
#include "gen/error.h"
#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>

namespace kiln {
namespace {
constexpr std::string_view archs[] = {"gfx942", "gfx950"};
}

std::span<const std::string_view> known_archs() { return archs; }

bool Target::has_native(DType type) const { return !is_fp8(type) || is_fnuz(type) == facts_.fnuz_fp8; }

Target target(std::string_view arch) {
  static constexpr Target::Facts facts[] = {// MI300X: 8 dies of 38 compute units
                                            {.compute_units = 304,
                                             .lds_bytes = 64 * 1024,
                                             .fnuz_fp8 = true,
                                             .scaled_mfma = false,
                                             .scaled_convert = false,
                                             .wide_lds_dma = false,
                                             .dot2_bf16 = false,
                                             .permlane_swap = false},
                                            // MI350X: 8 dies of 32 compute units
                                            {.compute_units = 256,
                                             .lds_bytes = 160 * 1024,
                                             .fnuz_fp8 = false,
                                             .scaled_mfma = true,
                                             .scaled_convert = true,
                                             .wide_lds_dma = true,
                                             .dot2_bf16 = true,
                                             .permlane_swap = true}};
  const auto known = std::ranges::find(archs, arch);
  if (known == std::end(archs))
    throw UserError(fmt::format("target '{}'", arch),
                    arch.find(':') != arch.npos ? "target features do not belong to the architecture's name"
                                                : "is not an architecture that Kiln generates code for",
                    fmt::format("use one of {}", fmt::join(archs, ", ")));
  Target t;
  t.arch_ = arch;
  t.facts_ = facts[known - std::begin(archs)];
  return t;
}

std::optional<DType> parse_dtype(std::string_view text, const Target& target) { return text == "fp8" ? target.fp8() : parse_dtype(text); }

} // namespace kiln
