// ValueSources: of which registers each instruction makes each of its results. Internal to the search for uninitialised registers.
#pragma once
#include "isa_checks/analysis/dataflow/register_set.h"
#include "isa_checks/decode/operands.h"
#include "isa_checks/decode/program.h"
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace kiln::isa {

// Registers as in target/registers.h, and behind them lanes of vector registers that v_writelane writes: compilers keep spilled scalar
// registers there. Whatever else writes such a register writes all of its lanes, with values that count as defined.
class ValueSources {
public:
  ValueSources(const Program& program, const std::vector<Operands>& operands);

  // Computes registers from registers, and does nothing else.
  bool computes(std::size_t i) const { return facts_[i].computes; }
  // What it reads matters: it decides a branch or which lanes are on, or reaches memory.
  bool has_effect(std::size_t i) const { return facts_[i].has_effect; }
  // An accumulator or other register that the instruction adds to.
  bool accumulates(std::size_t i, std::uint16_t reg) const;
  std::span<const RegisterRange> of(std::size_t i) const {
    return {list_.data() + facts_[i].begin, facts_[i].writes_begin - facts_[i].begin};
  }
  std::span<const RegisterRange> writes(std::size_t i) const {
    return {list_.data() + facts_[i].writes_begin, facts_[i].end - facts_[i].writes_begin};
  }
  bool writes_any(std::size_t i, std::uint16_t reg) const {
    return std::ranges::any_of(writes(i), [reg](RegisterRange w) { return w.overlaps({reg, 1}); });
  }

  // The registers of which register `to` of the result is made.
  template <class Read> void each_source_of(std::size_t i, RegisterRange result, std::uint16_t to, Read read) const {
    const Facts& f = facts_[i];
    if (f.writes_lane ? to < reg::count : result.first >= reg::count) return; // beside a lane its register, or beside a register its lanes
    if (f.halves) return each_half(i, to != result.first, read);
    for (const RegisterRange source : of(i))
      if (source == f.element_by_element) read(RegisterRange{static_cast<std::uint16_t>(source.first + (to - result.first)), 1});
      else if (source.count == 2 && result.count == 2 && result == f.upward && to == result.first) read(RegisterRange{source.first, 1});
      else read(source);
  }

  // The vector register and the lane of a number behind the registers; nothing for a register.
  std::optional<std::pair<std::uint16_t, int>> lane_of(std::uint16_t reg) const;

private:
  struct Facts {
    bool computes = false, has_effect = false;
    bool writes_lane = false;                         // v_writelane into a lane that has a number
    bool halves = false;                              // op_sel says which half of a pair each half of the result is made of
    std::size_t begin = 0, writes_begin = 0, end = 0; // in list_: its sources, its writes
    RegisterRange element_by_element;                 // the source that is; count 0: none
    RegisterRange upward;                             // a 64-bit result whose lower half depends on lower halves; count 0: none
  };
  void find_lanes();
  std::optional<std::uint16_t> lane_slot(std::size_t i, std::size_t reg_operand, std::size_t lane_operand) const;
  void look_at(std::size_t i);

  template <class Read> void each_half(std::size_t i, bool upper, Read read) const {
    const Operands& o = operands_[i];
    const bool moves = p_.instructions[i].mnemonic.starts_with("v_pk_mov_b32"); // a source for each half of the result
    for (std::size_t k = 1; k < o.count; ++k) {
      if (!o[k].is(Operand::Kind::registers) || (moves && (k == 2) != upper)) continue;
      const RegisterRange r = o[k].registers;
      if (r.count != 2) read(r);
      else read(RegisterRange{static_cast<std::uint16_t>(r.first + (takes_upper(o, k - 1, upper && !moves) ? 1 : 0)), 1});
    }
  }
  static bool takes_upper(const Operands& operands, std::size_t source, bool upper);

  const Program& p_;
  const std::vector<Operands>& operands_;
  std::vector<Facts> facts_;
  std::vector<RegisterRange> list_;
  std::map<std::pair<std::uint16_t, int>, std::uint16_t> lanes_; // register and lane -> number
  std::map<std::uint16_t, RegisterRange> lanes_of_;              // register -> the numbers of its lanes
  RegisterSet shared_;                                           // registers with lanes that instructions use as a whole, too
};

} // namespace kiln::isa
