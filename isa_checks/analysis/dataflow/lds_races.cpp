// Candidates from the flow graph first, because most kernels have none; addresses only for those.
#include "isa_checks/analysis/dataflow/lds_races.h"
#include "isa_checks/analysis/waits/wait_state.h"
#include <algorithm>
#include <optional>
#include <utility>

namespace kiln::isa {
namespace {

constexpr unsigned completed = 63; // as a state of the search; smaller ones count younger operations of the write's counter

struct Candidate {
  std::size_t write, read;
  bool waited;
  FlowPath path;
};

bool reads_lds(const Instruction& instruction) {
  const auto op = memory_op(instruction);
  return op && op->space == MemorySpace::lds && op->direction == MemoryDirection::load;
}

// Every wave that ends has executed the block.
bool all_waves_execute(const Program& p, std::size_t block) {
  for (std::size_t b = 0; b < p.blocks.size(); ++b)
    if (p.blocks[b].reachable && p.blocks[b].successors.empty() && !p.dominates(block, b)) return false;
  return p.blocks[block].reachable;
}

// Reads of LDS that `write` reaches before a wait and a barrier.
void follow(const Program& p, FlowSearch& search, std::size_t write, std::vector<Candidate>& list) {
  std::vector<std::size_t> known; // reads of this write
  for (bool more = true; more && !search.exhausted();) {
    Candidate candidate{.write = write, .read = 0, .waited = false, .path = {}};
    candidate.path = search.run(write, 0, [&](std::size_t i, unsigned& state) {
      const Instruction& instruction = p.instructions[i];
      if (const auto wait = wait_counts(instruction)) {
        if (wait->lgkmcnt && static_cast<unsigned>(*wait->lgkmcnt) <= state) state = completed;
        return FlowStep::go_on;
      }
      if (instruction.mnemonic == "s_barrier") return state == completed ? FlowStep::stop : FlowStep::go_on;
      if (reads_lds(instruction) && std::ranges::find(known, i) == known.end() && all_waves_execute(p, p.block_of(i))) {
        candidate.read = i;
        candidate.waited = state == completed;
        return FlowStep::found;
      }
      const CounterUse use = counter_use(instruction);
      if (state < completed - 1 && use.lgkm && !use.unordered) ++state;
      return FlowStep::go_on;
    });
    more = !candidate.path.empty() && known.size() < 16;
    if (!more) return;
    known.push_back(candidate.read);
    list.push_back(std::move(candidate));
  }
}

// The bytes that an instruction of one wave touches, as sorted [begin, end); nothing when they are not known for certain.
std::optional<std::vector<std::pair<std::uint32_t, std::uint32_t>>> bytes_of(const Program& p, const std::vector<Operands>& operands,
                                                                             const LaneAddresses& addresses, std::size_t i) {
  const LaneAddress* const known = addresses.find(i);
  const std::string_view m = p.instructions[i].mnemonic;
  if (!known || !known->value.known() || !known->active) return std::nullopt;
  const bool pair = m.starts_with("ds_read2") || m.starts_with("ds_write2"), far = m.find("st64") != m.npos;
  const auto op = memory_op(p.instructions[i]);
  const auto size = static_cast<std::uint32_t>(pair ? op->bytes / 2 : op->bytes);
  std::vector<std::uint32_t> offsets{static_cast<std::uint32_t>(operands[i].value("offset").value_or(0))};
  if (pair) {
    const std::uint32_t unit = size * (far ? 64U : 1U);
    offsets = {static_cast<std::uint32_t>(operands[i].value("offset0").value_or(0)) * unit,
               static_cast<std::uint32_t>(operands[i].value("offset1").value_or(0)) * unit};
  }
  std::vector<std::pair<std::uint32_t, std::uint32_t>> result;
  for (std::size_t lane = 0; lane < known->value.lane.size(); ++lane)
    if ((*known->active >> lane & 1U) != 0)
      for (const std::uint32_t offset : offsets)
        result.emplace_back(known->value.lane[lane] + offset, known->value.lane[lane] + offset + size);
  std::ranges::sort(result);
  return result;
}

// A byte that lies in both.
std::optional<std::uint32_t> common(const auto& a, const auto& b) {
  for (auto i = a.begin(), j = b.begin(); i != a.end() && j != b.end();) {
    if (std::max(i->first, j->first) < std::min(i->second, j->second)) return std::max(i->first, j->first);
    (i->second < j->second ? i : j)++;
  }
  return std::nullopt;
}

} // namespace

std::vector<LdsRace> lds_races(const Program& program, const std::vector<Operands>& operands, const Kernel& kernel,
                               const Resources& resources) {
  constexpr int two_waves = 2 * static_cast<int>(std::tuple_size_v<decltype(LaneValue::lane)>);
  if (resources.workgroup_size < two_waves || !resources.workgroup_size_known) return {};
  FlowSearch search(program);
  std::vector<Candidate> candidates;
  for (std::size_t b = 0; b < program.blocks.size(); ++b) {
    const Block& block = program.blocks[b];
    const auto writes = [&](std::size_t i) {
      const auto op = memory_op(program.instructions[i]);
      return op && op->space == MemorySpace::lds && op->direction == MemoryDirection::store;
    };
    for (std::size_t i = block.begin; block.reachable && i < block.end; ++i)
      if (writes(i) && all_waves_execute(program, b)) follow(program, search, i, candidates);
  }
  if (candidates.empty() || search.exhausted()) return {};
  const LaneAddresses waves[2] = {lane_addresses(program, operands, kernel, resources, 0),
                                  lane_addresses(program, operands, kernel, resources, 1)};
  std::vector<LdsRace> result;
  for (Candidate& c : candidates)
    for (const int writer : {0, 1}) {
      const auto written = bytes_of(program, operands, waves[writer], c.write),
                 read = bytes_of(program, operands, waves[1 - writer], c.read);
      if (!written || !read) continue;
      const auto shared = common(*written, *read);
      if (!shared) continue;
      result.push_back({c.write, c.read, *shared, c.waited, std::move(c.path)});
      break;
    }
  return result;
}

} // namespace kiln::isa
