// Counts XCDs and waves by the lines that they ask for.
#include "isa_checks/timing/requesters.h"
#include <algorithm>
#include <bit>
#include <set>

namespace kiln::timing {

using std::uint32_t, std::uint64_t;

namespace {

// Counts each line of each buffer: all workgroups were recorded.
std::vector<double> counted(const Record& record, uint32_t xcds) {
  std::vector<std::vector<std::uint8_t>> xcds_of_line; // a bit for each XCD: no chip has more than 8
  for (const Buffer& b : record.buffers) xcds_of_line.emplace_back(b.end_line - b.first_line);
  for (const Workgroup& w : record.recorded)
    for (const uint64_t line : w.lines) {
      const auto after = std::ranges::upper_bound(record.buffers, line, {}, &Buffer::first_line);
      if (after == record.buffers.begin() || line >= std::prev(after)->end_line) continue;
      xcds_of_line[static_cast<std::size_t>(std::prev(after) - record.buffers.begin())][line - std::prev(after)->first_line] |=
          static_cast<std::uint8_t>(1U << w.number % xcds);
    }
  std::vector<double> result;
  for (const std::vector<std::uint8_t>& lines : xcds_of_line) {
    double requested = 0, touched = 0;
    for (const std::uint8_t of : lines) requested += std::popcount(of), touched += of != 0 ? 1 : 0;
    result.push_back(touched == 0 ? 1 : requested / touched);
  }
  return result;
}

// XCDs that have a workgroup of a group, the mean over the groups.
double with_groups(const Sharers& sharers, uint32_t workgroups, uint32_t xcds) {
  const uint32_t groups = workgroups / sharers.together;
  std::vector<bool> has(std::size_t{groups} * xcds);
  for (uint32_t n = 0; n < workgroups; ++n) has[std::size_t{sharers.group_of(n)} * xcds + n % xcds] = true;
  return static_cast<double>(std::ranges::count(has, true)) / groups;
}

} // namespace

Requesters::Requesters(const Record& record, uint32_t of_xcds) {
  if (record.recorded.size() == record.workgroups) xcds = counted(record, of_xcds);
  else
    for (const Buffer& b : record.buffers)
      xcds.push_back(b.sharers.together != 0 ? with_groups(b.sharers, record.workgroups, of_xcds) : std::min<double>(of_xcds, b.sharing()));
  for (const Workgroup& w : record.recorded)
    for (const auto& steps : w.waves) {
      std::set<uint64_t> polled; // by this wave
      for (const Step& s : steps)
        if (s.access != none && w.accesses[s.access].awaited != 0) polled.insert(w.lines[w.accesses[s.access].first]);
      for (const uint64_t line : polled) ++pollers[line];
    }
}

} // namespace kiln::timing
