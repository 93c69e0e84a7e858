// Which registers may be undefined where: a forward data-flow fixpoint over the blocks, once for "on all paths" and once for "on
// some path".
#include "isa_checks/analysis/dataflow/uninitialised.h"
#include "isa_checks/analysis/dataflow/register_set.h"
#include "isa_checks/decode/instruction_class.h"
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

// Computes registers from registers, and does nothing else.
bool computes(const Instruction& instruction) {
  switch (classify(instruction)) {
  case InstructionClass::valu:
  case InstructionClass::trans:
  case InstructionClass::packed:
  case InstructionClass::dot:
  case InstructionClass::mfma: return true;
  case InstructionClass::salu: return !instruction.mnemonic.starts_with("s_setreg") && !instruction.mnemonic.starts_with("s_setprio");
  case InstructionClass::lds: return !memory_op(instruction); // lane exchanges
  default: return false;
  }
}

// Register n of the result depends on register n of the source, and on no other of it.
bool elementwise(std::string_view m, const Operands& o, RegisterRange result, RegisterRange source) {
  if (source.count != result.count || result.count < 2) return false;
  if (m.starts_with("v_smfmac_")) return source == result;
  if (m.starts_with("v_mfma_")) return o.count > 3 && o[3].registers == source && o[1].registers != source && o[2].registers != source;
  const bool packed = m.starts_with("v_pk_") && o.modifiers.find("op_sel") == std::string_view::npos;
  const bool bits = m.starts_with("v_mov_b64") || m.starts_with("s_mov_b64") || m.starts_with("s_and_b64") || m.starts_with("s_or_b64");
  return packed || bits;
}

// The lower half of a 64-bit result depends on the lower halves of 64-bit sources: compilers use these for 32-bit numbers, and leave the
// upper half of a source as it is.
bool goes_upward(std::string_view m) {
  constexpr std::string_view all[] = {"v_mad_u64_u32", "v_mad_i64_i32", "v_lshl_add_u64", "v_lshlrev_b64", "s_lshl_b64"};
  return std::ranges::any_of(all, [&](std::string_view one) { return m.starts_with(one); });
}

// The bit of source `k` in a modifier such as "op_sel_hi:[0,1]", given up to its bracket; `otherwise` if it is not there.
bool selects_high(std::string_view modifiers, std::string_view name, std::size_t k, bool otherwise) {
  const std::size_t at = modifiers.find(name), bit = at + name.size() + 2 * k;
  return at == std::string_view::npos || bit >= modifiers.size() ? otherwise : modifiers[bit] == '1';
}

// What a packed f32 instruction reads of a pair of registers: op_sel and op_sel_hi may take the same one twice.
RegisterRange part_read(std::string_view m, const Operands& o, RegisterRange range) {
  if (range.count != 2 || !m.starts_with("v_pk_") || !m.ends_with("_f32")) return range;
  bool low = false, high = false;
  for (std::size_t k = 1; k < o.count; ++k)
    if (o[k].is(Operand::Kind::registers) && o[k].registers == range)
      for (const bool taken : {selects_high(o.modifiers, "op_sel:[", k - 1, false), selects_high(o.modifiers, "op_sel_hi:[", k - 1, true)})
        (taken ? high : low) = true;
  if (low == high) return range;
  return {static_cast<std::uint16_t>(range.first + (high ? 1 : 0)), 1};
}

// Operands in which an instruction reads registers by name, results left out: what it keeps of them is no read.
template <class Read> void each_source(const Program& p, std::size_t i, const Operands& o, const RegisterUse& use, Read read) {
  const auto m = std::string_view(p.instructions[i].mnemonic);
  const bool accumulates = m.starts_with("v_fmac") || m.starts_with("v_mac") || m.starts_with("v_pk_fmac") || m.starts_with("v_dot2c") ||
                           m.starts_with("v_dot4c") || m.starts_with("v_dot8c") || m.starts_with("v_smfmac");
  const bool names_zero =
      std::ranges::any_of(o.all(), [](const Operand& operand) { return operand.is(Operand::Kind::number) && operand.number == 0; });
  const bool zero = names_zero && (m.starts_with("s_mul_i32") || m.starts_with("v_mul_lo_u32") || m.find("_and_b") != m.npos);
  for (const RegisterRange range : use.reads()) {
    const auto is_it = [&](const Operand& operand) { return operand.is(Operand::Kind::registers) && operand.registers == range; };
    const auto results = std::ranges::count_if(use.writes(), [&](RegisterRange w) { return w == range; });
    const auto named = std::ranges::count_if(o.all(), is_it);
    const bool source = results == 0 || named > results || accumulates;
    // x - x, x ^ x and 0 * x are 0, whatever x is.
    const bool cancels = zero || (named > 1 + results && (m.find("_xor_") != m.npos || m.find("_sub_") != m.npos));
    if (source && !cancels) read(part_read(m, o, range));
  }
}

// A place of the search back from an effect: the register is undefined before instruction `end`, which reads it.
struct Place {
  std::size_t block, end;
  std::uint16_t reg;
  std::size_t reader, next; // the instruction that reads it; the place after it on the way, or `nothing`
};

class UninitialisedFinder {
public:
  UninitialisedFinder(const Program& program, const std::vector<Operands>& operands, const std::vector<RegisterUse>& uses,
                      const KernelDescriptor& d)
      : p_(program), operands_(operands), uses_(uses), entry_(undefined_at_entry(d)) {}

  // Each register that is found counts as written from then on, and with it what was made of it.
  std::vector<UninitialisedRead> run() {
    gather();
    if (!any_effect()) return {};
    for (const bool all_paths : {true, false}) {
      all_paths_ = all_paths;
      do solve();
      while (budget_ > 0 && find());
    }
    std::ranges::sort(list_, {}, &UninitialisedRead::instruction);
    return std::move(list_);
  }

private:
  struct Facts {
    bool computes = false;            // see above
    bool has_effect = false;          // what it reads matters
    std::size_t begin = 0, end = 0;   // its sources
    RegisterRange element_by_element; // the source that is; count 0: none
    RegisterRange upward;             // the result of goes_upward; count 0: none
  };
  // What a block reads before it writes it, and all that it writes.
  struct Summary {
    RegisterSet reads, writes;
  };

  void gather() {
    for (std::size_t i = 0; i < p_.instructions.size(); ++i) {
      Facts f{.computes = computes(p_.instructions[i]),
              .has_effect = false,
              .begin = sources_.size(),
              .end = 0,
              .element_by_element = {},
              .upward = {}};
      f.has_effect = !f.computes || uses_[i].writes_any({reg::exec, 2});
      each_source(p_, i, operands_[i], uses_[i], [&](RegisterRange r) { sources_.push_back(r); });
      f.end = sources_.size();
      if (f.computes && uses_[i].write_count == 1)
        for (const RegisterRange r : sources_of(f))
          if (elementwise(p_.instructions[i].mnemonic, operands_[i], uses_[i].write_list[0], r)) f.element_by_element = r;
      if (f.computes && uses_[i].write_count > 0 && goes_upward(p_.instructions[i].mnemonic)) f.upward = operands_[i][0].registers;
      facts_.push_back(f);
    }
    for (const Block& block : p_.blocks) {
      Summary& summary = summaries_.emplace_back();
      for (std::size_t i = block.begin; i < block.end; ++i) {
        for (const RegisterRange r : sources_of(facts_[i])) summary.reads.set(r, summary.writes);
        for (const RegisterRange w : uses_[i].writes()) summary.writes.set(w);
      }
    }
  }
  std::span<const RegisterRange> sources_of(const Facts& f) const { return {sources_.data() + f.begin, f.end - f.begin}; }

  // The registers of which register `to` of the result is made.
  template <class Read> void each_source_of(const Facts& f, RegisterRange result, std::uint16_t to, Read read) const {
    for (const RegisterRange source : sources_of(f))
      if (source == f.element_by_element) read(RegisterRange{static_cast<std::uint16_t>(source.first + (to - result.first)), 1});
      else if (source.count == 2 && result.count == 2 && result == f.upward && to == result.first) read(RegisterRange{source.first, 1});
      else read(source);
  }

  void step(std::size_t i, RegisterSet& undefined) const {
    const Facts& f = facts_[i];
    const auto is_undefined = [&](RegisterRange r) { return undefined.any(r); };
    if (!f.computes || std::ranges::none_of(sources_of(f), is_undefined)) {
      for (const RegisterRange w : uses_[i].writes()) undefined.clear(w);
      return;
    }
    const RegisterSet before = undefined;
    for (const RegisterRange w : uses_[i].writes()) {
      undefined.clear(w);
      for (std::uint16_t r = w.first; r < w.first + w.count; ++r)
        each_source_of(f, w, r, [&](RegisterRange source) {
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
          if (facts_[i].has_effect)
            for (const RegisterRange r : sources_of(facts_[i]))
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
        if (facts_[i].has_effect)
          for (const RegisterRange r : sources_of(facts_[i]))
            if (state.any(r) && look(i, r, state)) return true;
        step(i, state);
      }
    }
    return false;
  }

  // Not when a wide store to LDS is undefined in parts: padding.
  bool matters(std::size_t i, RegisterRange r, const RegisterSet& undefined) const {
    const auto op = memory_op(p_.instructions[i]);
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
      while (writer > block.begin && !uses_[writer - 1].writes_any({place.reg, 1})) --writer;
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
    if (!facts_[writer].computes) return;
    const Place place = places[at];
    const RegisterSet before = state_before(place.block, writer);
    for (const RegisterRange w : uses_[writer].writes())
      if (w.overlaps({place.reg, 1}))
        each_source_of(facts_[writer], w, place.reg, [&](RegisterRange source) {
          for (std::uint16_t n = source.first; n < source.first + source.count; ++n)
            if (before.test(n) && read_.insert({writer, n}).second) places.push_back({place.block, writer, n, writer, at});
        });
  }

  void report(const std::vector<Place>& places, std::size_t at) {
    const Place root = places[at];
    RegisterRange operand{root.reg, 1};
    for (const RegisterRange r : uses_[root.reader].reads())
      if (r.overlaps(operand) && r.count > operand.count) operand = r;
    entry_.clear(operand);
    FlowPath path;
    for (; at != nothing; at = places[at].next)
      if (path.empty() || path.back() != places[at].block) path.push_back(places[at].block);
    list_.push_back({root.reader, places[0].reader, operand, all_paths_, std::move(path)});
  }

  const Program& p_;
  const std::vector<Operands>& operands_;
  const std::vector<RegisterUse>& uses_;
  std::vector<Facts> facts_;                   // by instruction
  std::vector<Summary> summaries_;             // by block
  std::vector<RegisterRange> sources_;         // of all instructions, one after the other
  RegisterSet entry_;                          // undefined there
  bool all_paths_ = true;                      // what is being solved
  std::int64_t budget_ = 20'000'000;           // instructions looked at; hostile code ends there
  std::vector<std::optional<RegisterSet>> in_; // by block
  std::vector<RegisterSet> out_;               // by block
  // The effect that is being traced back, see state_before: the undefined registers that were followed, by their reader.
  std::map<std::size_t, std::vector<RegisterSet>> kept_;
  std::set<std::pair<std::size_t, std::uint16_t>> read_;
  std::vector<UninitialisedRead> list_;
};

} // namespace

std::vector<UninitialisedRead> uninitialised_reads(const Program& program, const std::vector<Operands>& operands,
                                                   const std::vector<RegisterUse>& uses, const KernelDescriptor& descriptor) {
  if (program.blocks.empty() || program.calls + program.indirect_branches > 0) return {};
  return UninitialisedFinder(program, operands, uses, descriptor).run();
}

} // namespace kiln::isa
