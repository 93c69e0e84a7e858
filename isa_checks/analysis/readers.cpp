// Following a value forward through the flow graph.
#include "isa_checks/analysis/readers.h"
#include <algorithm>
#include <cstdint>
#include <deque>
#include <map>

namespace kiln::isa {
namespace {

// The registers of `range` that `other` overlaps, a bit each.
std::uint64_t overlap(RegisterRange range, RegisterRange other) {
  if (!range.overlaps(other)) return 0;
  const int from = std::max<int>(range.first, other.first) - range.first;
  const int to = std::min<int>(range.first + range.count, other.first + other.count) - range.first;
  const int count = std::min(to, 64) - from;
  if (count <= 0) return 0;
  return (count == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << count) - 1) << from;
}

struct Place {
  std::size_t block, instruction;
  std::uint64_t live;
  std::size_t distance;
};

} // namespace

Readers readers_of(const Program& program, std::size_t writer, RegisterRange range, std::size_t most) {
  Readers result;
  std::map<std::size_t, std::uint64_t> entered; // by block: registers with which it was entered
  std::deque<Place> work{{program.block_of(writer), writer + 1, overlap(range, range), 0}};
  while (!work.empty()) {
    auto [block, i, live, distance] = work.front();
    work.pop_front();
    for (; i < program.blocks[block].end && live != 0; ++i, ++distance) {
      if (most-- == 0) {
        result.complete = false;
        return result;
      }
      const RegisterUse& use = program.instructions[i].use;
      const bool reads =
          std::any_of(use.reads().begin(), use.reads().end(), [&](RegisterRange r) { return (overlap(range, r) & live) != 0; });
      if (reads && std::none_of(result.list.begin(), result.list.end(), [reader = i](const Reader& r) { return r.instruction == reader; }))
        result.list.push_back({i, distance});
      for (const RegisterRange w : use.writes()) live &= ~overlap(range, w);
      const Flow flow = program.instructions[i].flow;
      result.complete = result.complete && flow != Flow::call && flow != Flow::indirect;
    }
    if (live == 0) continue;
    for (const std::size_t to : program.blocks[block].successors) {
      std::uint64_t& seen = entered[to];
      const std::uint64_t fresh = live & ~seen;
      seen |= live;
      if (fresh != 0) work.push_back({to, program.blocks[to].begin, fresh, distance});
    }
  }
  std::stable_sort(result.list.begin(), result.list.end(), [](const Reader& a, const Reader& b) {
    return a.distance != b.distance ? a.distance < b.distance : a.instruction < b.instruction;
  });
  return result;
}

} // namespace kiln::isa
