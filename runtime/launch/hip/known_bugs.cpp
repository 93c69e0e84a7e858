// The table of known bugs. Each line was read in the report that it names; none was met on hardware by Kiln's authors.
#include "runtime/launch/hip/known_bugs.h"
#include <cstdio>

namespace kiln {
namespace {

constexpr int any = 99999;

constexpr KnownBug table[] = {
    {"gfx942", {7, 2, 0}, {7, 2, 3}, "captured graphs may fail or hang", "ROCm/clr#279", "take ROCm 7.2.4, or launch without graphs"},
    {"gfx950",
     {7, 0, 0},
     {7, any, any},
     "a kernel may read what memory held before the last write (MI355X)",
     "ROCm/hip#3902",
     "read the report before you look for the fault in a kernel whose results change from run to run"},
    {"",
     {7, 0, 0},
     {7, 0, any},
     "a memset in a captured graph may be lost",
     "pytorch/pytorch#197017",
     "take ROCm 7.1 or newer, or write zeros by a kernel"},
    {"gfx950",
     {6, 4, 0},
     {7, any, any},
     "after many memory faults preloaded kernel arguments may be wrong (disputed)",
     "ROCm/rocm-systems#10145, #10146",
     "KILN_PRELOAD_ARGUMENTS=0 compiles kernels without them"},
};

} // namespace

std::span<const KnownBug> known_bugs() { return table; }

RocmVersion RocmVersion::parse(const std::string& text) {
  RocmVersion v;
  int patch = 0;
  const int found = std::sscanf(text.c_str(), "%d.%d.%d", &v.major, &v.minor, &patch);
  if (found == 3) v.patch = patch;
  return found >= 2 ? v : RocmVersion();
}

bool may_have(const KnownBug& bug, std::string_view arch, const RocmVersion& version) {
  if (version.major == 0 || (!bug.arch.empty() && bug.arch != arch)) return false;
  const std::array<int, 3> low{version.major, version.minor, version.patch.value_or(0)},
      high{version.major, version.minor, version.patch.value_or(any)};
  return high >= bug.first && low <= bug.last;
}

} // namespace kiln
