// Candidates from the flow graph first, because most kernels have none; addresses only for those.
#include "isa_checks/analysis/dataflow/lds_races.h"
#include "isa_checks/analysis/dataflow/wave_uniform.h"
#include "isa_checks/analysis/lanes/lds_bytes.h"
#include "isa_checks/analysis/waits/wait_state.h"
#include <algorithm>
#include <map>
#include <numeric>
#include <optional>
#include <utility>

namespace kiln::isa {
namespace {

constexpr unsigned completed = 63; // as a state of the search; smaller ones count younger operations of the write's counter
constexpr std::size_t max_each = 16, max_candidates = 2048; // seconds of one first access, and pairs of a kernel
constexpr std::int64_t max_steps = 10'000'000;

struct Candidate {
  std::size_t first, second;
  bool reads_first, waited;
  FlowPath path;
};

bool accesses_lds(const Instruction& instruction, MemoryDirection direction) {
  const auto& op = instruction.memory;
  return op && op->space == MemorySpace::lds && op->direction == direction;
}

class CandidateFinder {
public:
  CandidateFinder(const Program& p, const std::vector<Operands>& operands)
      : p_(p), shared_(blocks_of_all_waves(p)), search_(p, operands, max_steps) {}

  std::vector<Candidate> run() {
    for (std::size_t b = 0; b < p_.blocks.size(); ++b)
      for (std::size_t i = p_.blocks[b].begin; shared_[b] && i < p_.blocks[b].end && list_.size() < max_candidates; ++i)
        if (accesses_lds(p_.instructions[i], MemoryDirection::store)) follow(i, false);
        else if (accesses_lds(p_.instructions[i], MemoryDirection::load)) follow(i, true);
    if (search_.exhausted()) list_.clear();
    return std::move(list_);
  }

private:
  // What `first` reaches before a barrier, and for a write before a wait and then a barrier.
  void follow(std::size_t first, bool reads_first) {
    std::vector<std::size_t> known; // seconds
    const MemoryDirection other = reads_first ? MemoryDirection::store : MemoryDirection::load;
    while (known.size() < max_each && !search_.exhausted()) {
      Candidate candidate{.first = first, .second = 0, .reads_first = reads_first, .waited = false, .path = {}};
      candidate.path = search_.run(first, reads_first ? completed : 0, [&](std::size_t i, unsigned& state) {
        const Instruction& instruction = p_.instructions[i];
        if (const auto wait = wait_counts(instruction)) {
          if (wait->lgkmcnt && static_cast<unsigned>(*wait->lgkmcnt) <= state) state = completed;
          return FlowStep::go_on;
        }
        if (instruction.kind == InstructionClass::barrier) return state == completed ? FlowStep::stop : FlowStep::go_on;
        if (accesses_lds(instruction, other) && std::ranges::find(known, i) == known.end() && shared_[p_.block_of(i)]) {
          candidate.second = i;
          candidate.waited = state == completed;
          return FlowStep::found;
        }
        const CounterUse use = counter_use(instruction);
        if (state < completed - 1 && use.lgkm && !use.unordered) ++state;
        return FlowStep::go_on;
      });
      if (candidate.path.empty()) return;
      known.push_back(candidate.second);
      list_.push_back(std::move(candidate));
    }
  }

  const Program& p_;
  const std::vector<bool> shared_; // by block
  FlowSearch search_;
  std::vector<Candidate> list_;
};

// What each access touches in all waves, by address.
class WaveBytes {
public:
  WaveBytes(const Program& p, const std::vector<Operands>& operands, const Kernel& kernel, const Resources& resources)
      : p_(p), operands_(operands) {
    std::vector<int> waves(static_cast<std::size_t>(resources.workgroup_size / wave_size));
    std::iota(waves.begin(), waves.end(), 0);
    waves_ = lane_addresses_of(waves, p, operands, kernel, resources);
  }
  const std::vector<LdsBytes>& of(std::size_t i) {
    const auto [at, fresh] = known_.try_emplace(i);
    if (fresh) {
      for (std::size_t w = 0; w < waves_.size(); ++w) add_lds_bytes(p_, operands_, waves_[w], static_cast<int>(w), i, at->second);
      std::ranges::sort(at->second, {}, &LdsBytes::begin);
    }
    return at->second;
  }

private:
  const Program& p_;
  const std::vector<Operands>& operands_;
  std::vector<LaneAddresses> waves_;
  std::map<std::size_t, std::vector<LdsBytes>> known_;
};

struct Meeting {
  std::uint32_t address;
  int first, second; // waves
};

// A byte of both that two different waves touch.
std::optional<Meeting> meeting(const std::vector<LdsBytes>& a, const std::vector<LdsBytes>& b) {
  std::size_t from = 0;
  for (const LdsBytes& x : a) {
    while (from < b.size() && b[from].begin + longest_lds_access < x.begin) ++from;
    for (std::size_t n = from; n < b.size() && b[n].begin < x.end; ++n)
      if (b[n].wave != x.wave && b[n].end > x.begin) return Meeting{std::max(x.begin, b[n].begin), x.wave, b[n].wave};
  }
  return std::nullopt;
}

} // namespace

std::vector<LdsRace> lds_races(const Program& program, const std::vector<Operands>& operands, const Kernel& kernel,
                               const Resources& resources) {
  if (resources.workgroup_size < 2 * wave_size || !resources.workgroup_size_known) return {};
  const auto some = [&](MemoryDirection d) {
    return std::ranges::any_of(program.instructions, [&](const Instruction& i) { return accesses_lds(i, d); });
  };
  if (!some(MemoryDirection::store) || !some(MemoryDirection::load)) return {};
  std::vector<Candidate> candidates = CandidateFinder(program, operands).run();
  if (candidates.empty()) return {};
  WaveBytes bytes(program, operands, kernel, resources);
  std::vector<LdsRace> result;
  for (Candidate& c : candidates)
    if (const auto met = meeting(bytes.of(c.first), bytes.of(c.second)))
      result.push_back({c.first, c.second, c.reads_first, met->first, met->second, met->address, c.waited, std::move(c.path)});
  return result;
}

} // namespace kiln::isa
