// Liveness of vector registers.
#include "isa_checks/analysis/live_registers.h"
#include <algorithm>
#include <bitset>
#include <fmt/format.h>
#include <map>

namespace kiln::isa {
namespace {

constexpr std::size_t vector_registers = reg::sgpr; // v0 to v255, a0 to a255
using VectorRegisters = std::bitset<vector_registers>;

class LivenessAnalyser {
public:
  LivenessAnalyser(const Program& program) : p_(program), out_(program.blocks.size()) {}

  LiveRegisters run() {
    LiveRegisters result;
    result.before.resize(p_.instructions.size());
    if (p_.blocks.empty()) return result;
    solve();
    if (budget_ <= 0) {
      result.complete = false;
      return result;
    }
    VectorRegisters at_peak;
    for (std::size_t b = 0; b < p_.blocks.size(); ++b) {
      if (!p_.blocks[b].reachable) continue;
      VectorRegisters live = out_[b];
      for (std::size_t i = p_.blocks[b].end; i-- > p_.blocks[b].begin;) {
        step(i, live);
        result.before[i] = count(live);
        const int most = result.peak == nothing ? -1 : result.before[result.peak].all();
        if (result.before[i].all() > most || (result.before[i].all() == most && i < result.peak)) {
          result.peak = i;
          at_peak = live;
        }
      }
    }
    result.values = values_of(at_peak, result.peak);
    return result;
  }

private:
  static LiveCount count(const VectorRegisters& live) {
    LiveCount result;
    const std::size_t accumulation = (live >> reg::agpr).count();
    result.accumulation = static_cast<std::uint16_t>(accumulation);
    result.arch = static_cast<std::uint16_t>(live.count() - accumulation);
    return result;
  }

  void step(std::size_t i, VectorRegisters& live) const {
    for (const RegisterRange w : p_.instructions[i].use.writes())
      if (w.vector())
        for (std::size_t r = w.first; r < w.first + std::size_t{w.count}; ++r) live.reset(r);
    for (const RegisterRange r : p_.instructions[i].use.reads())
      if (r.vector())
        for (std::size_t n = r.first; n < r.first + std::size_t{r.count}; ++n) live.set(n);
  }

  void solve() {
    std::vector<bool> waits(p_.blocks.size(), true);
    for (bool changed = true; changed && budget_ > 0;) {
      changed = false;
      for (std::size_t n = p_.order.size(); n-- > 0;) {
        const std::size_t b = p_.order[n];
        if (!waits[b]) continue;
        waits[b] = false;
        VectorRegisters live = out_[b];
        for (std::size_t i = p_.blocks[b].end; i-- > p_.blocks[b].begin;) step(i, live);
        budget_ -= static_cast<std::int64_t>(p_.blocks[b].end - p_.blocks[b].begin);
        for (const std::size_t before : p_.blocks[b].predecessors) {
          const VectorRegisters more = out_[before] | live;
          if (more == out_[before]) continue;
          out_[before] = more;
          waits[before] = changed = true;
        }
      }
    }
  }

  std::vector<LiveValues> values_of(const VectorRegisters& live, std::size_t peak) const {
    std::vector<std::string> writers(vector_registers);
    for (std::size_t i = 0; i < peak && peak != nothing; ++i)
      for (const RegisterRange w : p_.instructions[i].use.writes())
        if (w.vector())
          for (std::size_t r = w.first; r < w.first + std::size_t{w.count}; ++r)
            if (live.test(r)) writers[r] = p_.instructions[i].mnemonic;
    std::map<std::string, LiveValues> by_writer;
    for (std::size_t r = 0; r < vector_registers; ++r) {
      if (!live.test(r)) continue;
      std::size_t last = r; // of a run of one file and writer
      while (last + 1 < vector_registers && last + 1 != reg::agpr && live.test(last + 1) && writers[last + 1] == writers[r]) ++last;
      LiveValues& values = by_writer[writers[r]];
      values.writer = writers[r];
      values.registers += static_cast<int>(last - r + 1);
      values.names += values.names.empty() ? "" : ", ";
      values.names += name_of({static_cast<std::uint16_t>(r), static_cast<std::uint16_t>(last - r + 1)});
      r = last;
    }
    std::vector<LiveValues> result;
    for (auto& [writer, values] : by_writer) result.push_back(std::move(values));
    std::ranges::stable_sort(result, std::ranges::greater{}, &LiveValues::registers);
    return result;
  }

  const Program& p_;
  std::vector<VectorRegisters> out_;  // by block: live behind it
  std::int64_t budget_ = 100'000'000; // instructions looked at; hostile code ends there
};

} // namespace

LiveRegisters live_registers(const Program& program) { return LivenessAnalyser(program).run(); }

std::string to_text(const LiveRegisters& live, const Program& program) {
  if (!live.complete) return "not counted: the code is too large";
  if (live.peak == nothing) return "none";
  const LiveCount& peak = live.before[live.peak];
  std::string text = fmt::format("peak {} ({} architectural + {} accumulation) at {:#x}", peak.all(), peak.arch, peak.accumulation,
                                 program.instructions[live.peak].address);
  constexpr std::size_t shown = 3, longest = 48; // writers; characters of their registers' names
  for (std::size_t n = 0; n < std::min(shown, live.values.size()); ++n) {
    const LiveValues& v = live.values[n];
    const std::string names = v.names.size() <= longest ? v.names : v.names.substr(0, v.names.rfind(", ", longest)) + ", ...";
    text += fmt::format("{} {} of {} ({})", n == 0 ? ":" : ",", v.registers, v.writer.empty() ? "the start" : v.writer, names);
  }
  if (live.values.size() > shown) text += fmt::format(" and {} more", live.values.size() - shown);
  return text;
}

} // namespace kiln::isa
