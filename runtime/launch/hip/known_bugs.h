// KnownBug: faults of HIP's own releases that their users would take for a kernel's, with the place where each is reported.
#pragma once
#include <array>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace kiln {

struct KnownBug {
  std::string_view arch;          // empty: any
  std::array<int, 3> first, last; // versions of ROCm that have it, both included
  std::string_view what, where, remedy;
};

std::span<const KnownBug> known_bugs();

// MAJOR.MINOR[.PATCH] of ROCm, as /opt/rocm/.info/version has it ("7.2.1-53").
struct RocmVersion {
  int major = 0, minor = 0;
  std::optional<int> patch;                          // HIP's own version has a build number in its place
  static RocmVersion parse(const std::string& text); // zeros for what is no version
};

bool may_have(const KnownBug& bug, std::string_view arch, const RocmVersion& version);

} // namespace kiln
