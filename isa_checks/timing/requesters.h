// Requesters: how many ask for one line, of all that a launch executes.
#pragma once
#include "isa_checks/timing/record.h"
#include <cstdint>
#include <unordered_map>
#include <vector>

namespace kiln::timing {

struct Requesters {
  Requesters(const Record& record, std::uint32_t xcds); // workgroups go to `xcds` XCDs in turn
  std::vector<double> xcds;                             // that request a line, the mean over those of each of Record::buffers
  std::unordered_map<std::uint64_t, int> pollers;       // waves that read what others publish, by the first line that they read of it
};

} // namespace kiln::timing
