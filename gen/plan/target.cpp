// Target: the two architectures. The only file of gen/ that spells their names. Numbers: docs of ROCm, "GPU hardware
// specifications", and LLVM's AMDGPUBaseInfo (LDS).
#include "gen/plan/target.h"
#include "gen/error.h"
#include <fmt/format.h>
#include <fmt/ranges.h>

namespace kiln {
namespace {
constexpr std::string_view archs[] = {"gfx942", "gfx950"};
}

std::span<const std::string_view> known_archs() { return archs; }

bool Target::has_native(DType type) const { return !is_fp8(type) || is_fnuz(type) == fnuz_; }

Target target(std::string_view arch) {
  Target t;
  t.arch_ = arch;
  if (arch == "gfx942") { // MI300X: 8 dies of 38 compute units, 64 KiB LDS
    t.compute_units_ = 304;
    t.lds_bytes_ = 64 * 1024;
    t.fnuz_ = true;
  } else if (arch == "gfx950") { // MI350X: 8 dies of 32 compute units, 160 KiB LDS
    t.compute_units_ = 256;
    t.lds_bytes_ = 160 * 1024;
    t.fnuz_ = false;
  } else {
    throw UserError(fmt::format("target '{}'", arch),
                    arch.find(':') != arch.npos ? "target features do not belong to the architecture's name"
                                                : "is not an architecture that Kiln generates code for",
                    fmt::format("use one of {}", fmt::join(archs, ", ")));
  }
  return t;
}

} // namespace kiln
