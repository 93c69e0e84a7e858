// Which registers may be undefined where: a forward data-flow fixpoint over the blocks, once for "on all paths" and once for "on
// some path".
#include "isa_checks/analysis/dataflow/uninitialised.h"
#include "isa_checks/analysis/dataflow/register_set.h"
#include "isa_checks/analysis/dataflow/value_sources.h"
#include "isa_checks/decode/disassembler.h"
#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <utility>

namespace kiln::isa {
namespace {

RegisterSet undefined_at_entry(const KernelDescriptor& d) {
  RegisterSet undefined;
  undefined.set_all();
  undefined.reset(reg::vgpr);
  const int scalars = d.user_sgprs + d.workgroup_id_x + d.workgroup_id_y + d.workgroup_id_z + d.workgroup_info + d.private_segment;
  for (int i = 0; i < scalars && i < 102; ++i) undefined.reset(static_cast<std::size_t>(reg::sgpr + i));
  for (const std::uint16_t r : {reg::exec, reg::flat_scratch}) undefined.reset(r).reset(r + 1U);
  for (std::uint16_t r = reg::sgpr + 102; r < reg::vcc; ++r) undefined.reset(r); // XNACK mask, trap registers
  undefined.reset(reg::m0).reset(reg::scc);
  return undefined;
}

// A place of the search back from an effect: the register is undefined before instruction `end`, which reads it.
struct Place {
  std::size_t block, end;
  std::uint16_t reg;
  std::size_t reader, next; // the instruction that reads it; the place after it on the way, or `nothing`
};

class UninitialisedFinder {
public:
  UninitialisedFinder(const Program& program, const std::vector<Operands>& operands, const KernelDescriptor& d)
      : p_(program), sources_(program, operands), entry_(undefined_at_entry(d)) {}

  // Each register that is found counts as written from then on, and with it what was made of it.
  std::vector<UninitialisedRead> run() {
    gather();
    if (!any_effect()) return {};
    for (const bool all_paths : {true, false}) {
      all_paths_ = all_paths;
      do solve();
      while (budget_ > 0 && find());
      if (all_paths) never_ = in_;
    }
    std::ranges::sort(list_, {}, &UninitialisedRead::instruction);
    return std::move(list_);
  }

private:
  // What a block reads before it writes it, and all that it writes.
  struct Summary {
    RegisterSet reads, writes;
  };

  void gather() {
    for (const Block& block : p_.blocks) {
      Summary& summary = summaries_.emplace_back();
      for (std::size_t i = block.begin; i < block.end; ++i) {
        for (const RegisterRange r : sources_.of(i)) summary.reads.set(r, summary.writes);
        for (const RegisterRange w : sources_.writes(i)) summary.writes.set(w);
      }
    }
  }

  void step(std::size_t i, RegisterSet& undefined) const {
    const auto is_undefined = [&](RegisterRange r) { return undefined.any(r); };
    if (!sources_.computes(i) || std::ranges::none_of(sources_.of(i), is_undefined)) {
      for (const RegisterRange w : sources_.writes(i)) undefined.clear(w);
      return;
    }
    const RegisterSet before = undefined;
    for (const RegisterRange w : sources_.writes(i)) {
      undefined.clear(w);
      for (std::uint16_t r = w.first; r < w.first + w.count; ++r)
        sources_.each_source_of(i, w, r, [&](RegisterRange source) {
          if (before.any(source)) undefined.set(r);
        });
    }
  }

  // Most blocks read nothing that is undefined: what they write is defined behind them, and nothing else happens.
  bool passes(std::size_t b, RegisterSet& state) {
    --budget_;
    if (state.meets(summaries_[b].reads)) return false;
    state.clear(summaries_[b].writes);
    return true;
  }

  // A branch that is taken when no lane is on.
  bool skips_lanes(std::size_t from, std::size_t to) const {
    const Block& block = p_.blocks[from];
    return p_.instructions[block.end - 1].mnemonic == "s_cbranch_execz" && block.end < p_.instructions.size() &&
           p_.blocks[to].begin != block.end;
  }

  // Edges that "some path" takes. Not those back to a lower address: what a first repetition leaves out, a later one rarely misses.
  bool counts(std::size_t from, std::size_t to) const {
    return to > from && !(skips_lanes(from, to) && p_.blocks[to].predecessors.size() > 1);
  }

  void solve() {
    in_.assign(p_.blocks.size(), std::nullopt);
    out_.assign(p_.blocks.size(), RegisterSet());
    in_[p_.entry] = entry_;
    std::vector<bool> waits(p_.blocks.size(), false); // the state at its beginning changed
    waits[p_.entry] = true;
    for (bool changed = true; changed && budget_ > 0;) {
      changed = false;
      for (const std::size_t b : p_.order) {
        if (!waits[b]) continue;
        waits[b] = false;
        RegisterSet state = *in_[b];
        if (!passes(b, state)) {
          for (std::size_t i = p_.blocks[b].begin; i < p_.blocks[b].end; ++i) step(i, state);
          budget_ -= static_cast<std::int64_t>(p_.blocks[b].end - p_.blocks[b].begin);
        }
        out_[b] = state;
        for (const std::size_t to : p_.blocks[b].successors) {
          if (!all_paths_ && !counts(b, to)) continue;
          if (in_[to]) {
            if (!in_[to]->join(state, all_paths_)) continue;
          } else {
            in_[to] = state;
          }
          waits[to] = changed = true;
        }
      }
    }
  }

  // One pass over the blocks, which finds nothing in most kernels. Every edge that it takes leads to a later block, so it has what
  // is undefined on some path; what is undefined on all paths is a part of that.
  bool any_effect() {
    all_paths_ = false;
    in_.assign(p_.blocks.size(), std::nullopt);
    in_[p_.entry] = entry_;
    for (std::size_t b = 0; b < p_.blocks.size(); ++b) {
      if (!in_[b]) {
        if (p_.blocks[b].reachable) return true; // by a branch backward only: not known yet
        continue;
      }
      RegisterSet state = *in_[b];
      in_[b].reset();
      if (!passes(b, state)) {
        for (std::size_t i = p_.blocks[b].begin; i < p_.blocks[b].end; ++i) {
          if (sources_.has_effect(i))
            for (const RegisterRange r : sources_.of(i))
              if (state.any(r) && matters(i, r, state)) return true;
          step(i, state);
        }
        budget_ -= static_cast<std::int64_t>(p_.blocks[b].end - p_.blocks[b].begin);
      }
      for (const std::size_t to : p_.blocks[b].successors)
        if (counts(b, to)) {
          if (in_[to]) in_[to]->join(state, false);
          else in_[to] = state;
        }
    }
    return false;
  }

  // Reports the first effect of an undefined register, if there is one.
  bool find() {
    for (std::size_t b = 0; b < p_.blocks.size(); ++b) {
      if (!in_[b]) continue;
      RegisterSet state = *in_[b];
      if (passes(b, state)) continue;
      for (std::size_t i = p_.blocks[b].begin; i < p_.blocks[b].end; ++i) {
        if (sources_.has_effect(i))
          for (const RegisterRange r : sources_.of(i))
            if (state.any(r) && look(i, r, state)) return true;
        step(i, state);
      }
    }
    return false;
  }

  // Not when a wide store to LDS is undefined in parts: padding.
  bool matters(std::size_t i, RegisterRange r, const RegisterSet& undefined) const {
    const auto op = p_.instructions[i].memory;
    return !op || op->space != MemorySpace::lds || op->direction != MemoryDirection::store || undefined.count(r) == r.count;
  }

  // Instruction i has an effect by the operand r, of which some registers are undefined.
  bool look(std::size_t i, RegisterRange r, const RegisterSet& undefined) {
    if (!matters(i, r, undefined)) return false;
    for (std::uint16_t n = r.first; n < r.first + r.count; ++n)
      if (undefined.test(n)) return trace(i, n);
    return false;
  }

  // Kept for every 64th instruction of a block while one effect is traced back.
  RegisterSet state_before(std::size_t block, std::size_t end) {
    constexpr std::size_t apart = 64;
    const std::size_t begin = p_.blocks[block].begin;
    std::vector<RegisterSet>& kept = kept_[block];
    if (kept.empty()) kept.push_back(in_[block].value_or(RegisterSet()));
    for (std::size_t n = begin + (kept.size() - 1) * apart; n + apart <= end; n += apart) {
      RegisterSet state = kept.back();
      for (std::size_t i = n; i < n + apart; ++i) step(i, state);
      budget_ -= apart;
      kept.push_back(state);
    }
    const std::size_t last = (end - begin) / apart;
    RegisterSet state = kept[last];
    for (std::size_t i = begin + last * apart; i < end; ++i) step(i, state);
    budget_ -= apart;
    return state;
  }

  // Back from the effect to a register that nothing has written, and the instruction that reads it first. False: the budget ended.
  bool trace(std::size_t effect, std::uint16_t reg) {
    std::vector<Place> places{{p_.block_of(effect), effect, reg, effect, nothing}};
    kept_.clear();
    read_.clear();
    std::set<std::pair<std::size_t, std::uint16_t>> entered; // by block behind which the register is undefined
    for (std::size_t at = 0; at < places.size() && budget_ > 0; ++at) {
      const Place place = places[at];
      const Block& block = p_.blocks[place.block];
      std::size_t writer = place.end;
      while (writer > block.begin && !sources_.writes_any(writer - 1, place.reg)) --writer;
      budget_ -= static_cast<std::int64_t>(place.end - writer) + 1;
      if (writer > block.begin) {
        follow_sources(places, at, writer - 1);
      } else if (place.block == p_.entry && entry_.test(place.reg)) {
        report(places, at);
        return true;
      } else {
        for (const std::size_t before : block.predecessors)
          if (in_[before] && (all_paths_ || counts(before, place.block)) && out_[before].test(place.reg) &&
              entered.insert({before, place.reg}).second)
            places.push_back({before, p_.blocks[before].end, place.reg, place.reader, at});
      }
    }
    return false;
  }

  void follow_sources(std::vector<Place>& places, std::size_t at, std::size_t writer) {
    if (!sources_.computes(writer)) return;
    const Place place = places[at];
    const RegisterSet before = state_before(place.block, writer);
    for (const RegisterRange w : sources_.writes(writer))
      if (w.overlaps({place.reg, 1}))
        sources_.each_source_of(writer, w, place.reg, [&](RegisterRange source) {
          for (std::uint16_t n = source.first; n < source.first + source.count; ++n)
            if (before.test(n) && read_.insert({writer, n}).second) places.push_back({place.block, writer, n, writer, at});
        });
  }

  void report(const std::vector<Place>& places, std::size_t at) {
    const Place root = places[at];
    RegisterRange operand{root.reg, 1};
    for (const RegisterRange r : p_.instructions[root.reader].use.reads())
      if (r.overlaps(operand) && r.count > operand.count) operand = r;
    entry_.clear(operand);
    FlowPath path;
    std::optional<std::pair<std::uint16_t, int>> spilled;
    for (; at != nothing; at = places[at].next) {
      if (!spilled) spilled = sources_.lane_of(places[at].reg);
      if (path.empty() || path.back() != places[at].block) path.push_back(places[at].block);
    }
    const bool nowhere = all_paths_ || never_written(root);
    list_.push_back({root.reader, places[0].reader, operand, sources_.lane_of(root.reg), spilled, nowhere, std::move(path)});
  }

  // What an instruction adds to was never written, though the sum is used where another path, around the instruction, brings a value.
  bool never_written(const Place& root) {
    if (!sources_.accumulates(root.reader, root.reg) || !never_[root.block]) return false;
    RegisterSet state = *never_[root.block];
    for (std::size_t i = p_.blocks[root.block].begin; i < root.reader; ++i) step(i, state);
    return state.test(root.reg);
  }

  const Program& p_;
  const ValueSources sources_;
  std::vector<Summary> summaries_;                // by block
  RegisterSet entry_;                             // undefined there
  bool all_paths_ = true;                         // what is being solved
  std::int64_t budget_ = 20'000'000;              // instructions looked at; hostile code ends there
  std::vector<std::optional<RegisterSet>> in_;    // by block
  std::vector<RegisterSet> out_;                  // by block
  std::vector<std::optional<RegisterSet>> never_; // by block: undefined on all paths
  // The effect that is being traced back, see state_before: the undefined registers that were followed, by their reader.
  std::map<std::size_t, std::vector<RegisterSet>> kept_;
  std::set<std::pair<std::size_t, std::uint16_t>> read_;
  std::vector<UninitialisedRead> list_;
};

} // namespace

std::vector<UninitialisedRead> uninitialised_reads(const Program& program, const std::vector<Operands>& operands,
                                                   const KernelDescriptor& descriptor) {
  if (program.blocks.empty() || program.calls + program.indirect_branches > 0 || program.function) return {};
  return UninitialisedFinder(program, operands, descriptor).run();
}

} // namespace kiln::isa
