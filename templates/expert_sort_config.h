// ExpertSortConfig: sorting pairs of a token and an expert by expert. Shared by the host and the device.
#pragma once
#include "common/config.h"

namespace kiln {

struct ExpertSortConfig {
  int experts = 0;
  constexpr int threads() const { return wave_size; }
  constexpr int lds_bytes() const { return (experts + 1) * 4; }
  bool operator==(const ExpertSortConfig&) const = default;
};

constexpr const char* why_invalid(const ExpertSortConfig& c) {
  return c.experts < 1 || c.experts > 1024 ? "experts must be from 1 to 1024" : nullptr;
}

} // namespace kiln
