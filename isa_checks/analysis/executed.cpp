// The longest or shortest path through a kernel. Loops are solved from the inside out: within its parent, a loop is one
// step, which costs trips - 1 times its best way round and then its best way out through each exit.
#include "isa_checks/analysis/executed.h"
#include "isa_checks/error.h"
#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <limits>
#include <optional>

namespace kiln::isa {
namespace {

using Count = std::uint64_t;
constexpr Count most = std::numeric_limits<Count>::max();
Count add(Count a, Count b) { return a > most - b ? most : a + b; }
Count times(Count a, Count b) { return a != 0 && b > most / a ? most : a * b; }

// The best known way to the end of a block, within one region (a loop, or the whole kernel).
struct Way {
  Count cost = 0;
  std::size_t before = nothing; // the block before it; for a block of an inner loop, the block before that loop
};

class PathFinder {
public:
  PathFinder(const Program& program, std::span<const Count> trips, PathChoice choice)
      : p_(program), trips_(trips), choice_(choice), regions_(program.loops.size() + 1) {}

  std::vector<Count> run() {
    const std::size_t whole = p_.loops.size();
    std::vector<std::size_t> by_depth(p_.loops.size());
    for (std::size_t l = 0; l < by_depth.size(); ++l)
      by_depth[l] = l;
    std::stable_sort(by_depth.begin(), by_depth.end(),
                     [&](std::size_t a, std::size_t b) { return p_.loops[a].depth > p_.loops[b].depth; });
    for (const std::size_t l : by_depth)
      solve(l, p_.loops[l].header, members(p_.loops[l].blocks));
    solve(whole, p_.entry, p_.order);
    std::vector<Count> counts(p_.blocks.size(), 0);
    if (const std::size_t last = best_end(whole); last != nothing)
      follow(whole, last, 1, counts);
    return counts;
  }

private:
  using Region = std::map<std::size_t, Way>; // by block

  std::size_t parent_of(std::size_t loop) const {
    return p_.loops[loop].parent == nothing ? p_.loops.size() : p_.loops[loop].parent;
  }

  // The loop that holds `block` and lies directly inside `region`, or nothing when the block does itself.
  std::size_t child_of(std::size_t region, std::size_t block) const {
    std::size_t loop = p_.blocks[block].loop == nothing ? p_.loops.size() : p_.blocks[block].loop;
    std::size_t child = nothing;
    for (; loop != region && loop != p_.loops.size(); loop = parent_of(loop))
      child = loop;
    return child;
  }

  std::vector<std::size_t> members(const std::vector<std::size_t>& blocks) {
    if (position_.empty()) {
      position_.resize(p_.blocks.size(), 0);
      for (std::size_t i = 0; i < p_.order.size(); ++i)
        position_[p_.order[i]] = i;
    }
    std::vector<std::size_t> sorted = blocks;
    std::sort(sorted.begin(), sorted.end(), [&](std::size_t a, std::size_t b) { return position_[a] < position_[b]; });
    return sorted;
  }

  bool better(Count a, Count b) const { return choice_ == PathChoice::longest ? a > b : a < b; }

  // `blocks` in reverse post-order, so that every way into a block is known before the block is reached, and no way
  // round a loop is when its header is.
  void solve(std::size_t region, std::size_t start, const std::vector<std::size_t>& blocks) {
    Region& ways = regions_[region];
    for (const std::size_t b : blocks) {
      const std::size_t child = child_of(region, b);
      if (child != nothing && p_.loops[child].header != b)
        continue; // its loop is one step, taken at the header
      std::optional<Way> in;
      if (b == start)
        in = Way{};
      for (const std::size_t before : p_.blocks[b].predecessors) {
        if (const auto found = ways.find(before); found != ways.end() && (!in || better(found->second.cost, in->cost)))
          in = Way{found->second.cost, before};
      }
      if (!in)
        continue;
      if (child == nothing)
        ways[b] = {add(in->cost, p_.blocks[b].end - p_.blocks[b].begin), in->before};
      else
        step_over(child, *in, ways);
    }
  }

  void step_over(std::size_t loop, const Way& in, Region& ways) const {
    const Count trips = trips_[loop];
    const std::size_t latch = best_latch(loop);
    const Count round = latch == nothing ? 0 : regions_[loop].at(latch).cost;
    for (const std::size_t exit : p_.loops[loop].exits)
      if (const auto out = regions_[loop].find(exit); out != regions_[loop].end())
        ways[exit] = {trips == 0 ? in.cost : add(in.cost, add(times(trips - 1, round), out->second.cost)), in.before};
    if (p_.loops[loop].exits.empty() && latch != nothing) // endless: the estimate ends with it
      ways[latch] = {add(in.cost, times(trips, round)), in.before};
  }

  std::size_t best_of(const Region& ways, const std::vector<std::size_t>& blocks) const {
    std::size_t best = nothing;
    for (const std::size_t b : blocks)
      if (const auto way = ways.find(b);
          way != ways.end() && (best == nothing || better(way->second.cost, ways.at(best).cost)))
        best = b;
    return best;
  }

  std::size_t best_latch(std::size_t loop) const { return best_of(regions_[loop], p_.loops[loop].latches); }

  std::size_t best_end(std::size_t whole) const {
    std::vector<std::size_t> ends, all;
    for (const auto& [b, way] : regions_[whole]) {
      all.push_back(b);
      if (p_.blocks[b].successors.empty())
        ends.push_back(b);
    }
    const std::size_t end = best_of(regions_[whole], ends);
    return end != nothing ? end : best_of(regions_[whole], all);
  }

  // Counts the blocks on the best way to the end of `block`, `times_run` times. Recursion is as deep as loops nest.
  void follow(std::size_t region, std::size_t block, Count times_run, std::vector<Count>& counts) const {
    while (block != nothing) {
      if (const std::size_t child = child_of(region, block); child == nothing) {
        counts[block] = add(counts[block], times_run);
      } else if (const Count trips = trips_[child]; trips > 0) {
        if (const std::size_t latch = best_latch(child); latch != nothing && trips > 1)
          follow(child, latch, times(times_run, trips - 1), counts);
        follow(child, block, times_run, counts);
      }
      block = regions_[region].at(block).before;
    }
  }

  const Program& p_;
  std::span<const Count> trips_;
  PathChoice choice_;
  std::vector<Region> regions_; // by loop, and the whole kernel last
  std::vector<std::size_t> position_;
};

} // namespace

Executed executed_estimate(const Program& program, std::span<const std::uint64_t> trips, PathChoice choice) {
  if (trips.size() != program.loops.size()) {
    std::vector<std::string> names;
    for (std::size_t l = 0; l < program.loops.size(); ++l)
      names.push_back(program.loop_name(l));
    throw Error("kernel '" + program.kernel + "'",
                fmt::format("{} trip counts were given for {} loops", trips.size(), program.loops.size()),
                names.empty() ? "give none" : fmt::format("give one for each of {}", fmt::join(names, ", ")));
  }
  Executed result;
  result.approximate =
      !program.irreducible_edges.empty() || program.indirect_branches + program.calls + program.wild_branches > 0;
  if (program.blocks.empty())
    return result;
  result.block_counts = PathFinder(program, trips, choice).run();
  for (std::size_t b = 0; b < program.blocks.size(); ++b) {
    const Count count = result.block_counts[b];
    if (count == 0)
      continue;
    for (std::size_t i = program.blocks[b].begin; i < program.blocks[b].end; ++i) {
      const Instruction& instruction = program.instructions[i];
      result.instructions = add(result.instructions, count);
      Count& of_class = result.classes[static_cast<std::size_t>(classify(instruction))];
      of_class = add(of_class, count);
      if (const auto op = memory_op(instruction))
        result.memory[*op] = add(result.memory[*op], count);
    }
  }
  return result;
}

} // namespace kiln::isa
