// The instructions from which compilers make addresses and masks.
#include "isa_checks/analysis/lanes/lane_step.h"
#include "isa_checks/decode/disassembler.h"
#include <algorithm>
#include <string>
#include <string_view>

namespace kiln::isa {

using Text = std::string_view;
using u32 = std::uint32_t;
using Operation = Maybe (*)(const LaneValue&, const LaneValue&);

// An operation of one result and up to three sources, in 32 bits, and the instructions that do it.
struct LaneOp {
  std::array<Text, 5> names; // without suffix
  Maybe (*result)(const Maybe& a, const Maybe& b, const Maybe& c);
  bool narrows = false; // the result has no bit that `a` has not
};

namespace {

Maybe both(const Maybe& a, const Maybe& b, Operation f) { return a && b ? f(*a, *b) : std::nullopt; }
template <Operation f> Maybe two(const Maybe& a, const Maybe& b, const Maybe&) { return both(a, b, f); }
template <Operation f> Maybe reversed(const Maybe& a, const Maybe& b, const Maybe&) { return both(b, a, f); }
template <Operation f, Operation g> Maybe three(const Maybe& a, const Maybe& b, const Maybe& c) { return both(both(a, b, f), c, g); }
Maybe first(const Maybe& a, const Maybe&, const Maybe&) { return a; }
Maybe inverted(const Maybe& a, const Maybe&, const Maybe&) { return both(a, constant_value(~u32{0}), bit_xor); }
Maybe and_inverted(const Maybe& a, const Maybe& b, const Maybe&) { return both(a, inverted(b, {}, {}), bit_and); }
Maybe shift_logical(const LaneValue& a, const LaneValue& n) { return shift_right(a, n, false); }
Maybe shift_arithmetic(const LaneValue& a, const LaneValue& n) { return shift_right(a, n, true); }
// The low half of 64 bits: no bit of the high one comes into it.
Maybe shift_left_wide(const Maybe& n, const Maybe& a, const Maybe&) {
  return n && n->constant() && *n->constant() < 32 ? both(a, n, shift_left) : std::nullopt;
}
Maybe bit_field(const Maybe& a, const Maybe& b, const Maybe& c) {
  const auto width = c ? c->constant() : std::nullopt;
  return width ? both(both(a, b, shift_logical), constant_value((u32{1} << (*width & 31U)) - 1), bit_and) : std::nullopt;
}
template <bool least> Maybe extreme(const LaneValue& a, const LaneValue& b) {
  if (!a.known() || !b.known()) return a.uniform() && b.uniform() ? Maybe(uniform_value()) : std::nullopt;
  LaneValue v;
  for (std::size_t i = 0; i < v.lane.size(); ++i) v.lane[i] = least ? std::min(a.lane[i], b.lane[i]) : std::max(a.lane[i], b.lane[i]);
  return v;
}
template <bool high> Maybe count_below(const Maybe& a, const Maybe& b, const Maybe&) {
  if (!a || a->constant() != ~u32{0}) return std::nullopt;
  LaneValue below; // lanes below this one, in its half of the wave
  for (u32 i = 0; i < below.lane.size(); ++i) below.lane[i] = high ? std::max(i, 32U) - 32 : std::min(i, 32U);
  return both(below, b, add);
}

// 24-bit forms are what compilers use where they know that 24 bits suffice.
constexpr LaneOp operations[] = {
    {{}, two<isa::join>}, // of values on two paths: no instruction's
    {{"v_mov_b32", "s_mov_b32", "s_movk_i32", "s_mov_b64"}, first},
    {{"v_add_u32", "v_add_co_u32", "v_add_i32", "s_add_u32", "s_add_i32"}, two<add>},
    {{"v_sub_u32", "v_sub_co_u32", "v_sub_i32", "s_sub_u32", "s_sub_i32"}, two<subtract>},
    {{"v_subrev_u32", "v_subrev_co_u32"}, reversed<subtract>},
    {{"v_mul_lo_u32", "v_mul_u32_u24", "v_mul_i32_i24", "s_mul_i32"}, two<multiply>},
    {{"s_lshl_b32"}, two<shift_left>},
    {{"v_lshlrev_b32"}, reversed<shift_left>},
    {{"s_lshr_b32"}, two<shift_logical>},
    {{"v_lshrrev_b32"}, reversed<shift_logical>},
    {{"s_ashr_i32"}, two<shift_arithmetic>},
    {{"v_ashrrev_i32"}, reversed<shift_arithmetic>},
    {{"v_and_b32", "s_and_b32", "s_and_b64"}, two<bit_and>, true},
    {{"v_or_b32", "s_or_b32", "s_or_b64"}, two<bit_or>},
    {{"v_xor_b32", "s_xor_b32", "s_xor_b64"}, two<bit_xor>},
    {{"v_not_b32", "s_not_b32", "s_not_b64"}, inverted},
    {{"s_andn2_b32", "s_andn2_b64"}, and_inverted, true},
    {{"v_lshl_add_u32", "v_lshl_add_u64"}, three<shift_left, add>},
    {{"v_lshl_or_b32"}, three<shift_left, bit_or>},
    {{"v_and_or_b32"}, three<bit_and, bit_or>},
    {{"v_add_lshl_u32"}, three<add, shift_left>},
    {{"v_add3_u32"}, three<add, add>},
    {{"v_or3_b32"}, three<bit_or, bit_or>},
    {{"v_xad_u32"}, three<bit_xor, add>},
    {{"v_mad_u32_u24", "v_mad_i32_i24", "v_mad_u64_u32", "v_mad_i64_i32"}, three<multiply, add>},
    {{"v_bfe_u32"}, bit_field},
    {{"v_lshlrev_b64"}, shift_left_wide},
    {{"v_mbcnt_lo_u32_b32"}, count_below<false>},
    {{"v_mbcnt_hi_u32_b32"}, count_below<true>},
    {{"v_min_u32"}, two<extreme<true>>},
    {{"v_max_u32"}, two<extreme<false>>},
};

const LaneOp* find(Text name) {
  for (const LaneOp& op : operations)
    if (std::ranges::find(op.names, name) != op.names.end()) return &op;
  return nullptr;
}

class Interpreter {
public:
  Interpreter(const Operands& operands, LaneState& state, LaneValues& values) : o_(operands), state_(state), values_(values) {}

  void vector(const LaneStep& step, const Instruction& instruction) {
    if (step.kind == LaneStep::Kind::compares) return compare(instruction);
    if (step.kind == LaneStep::Kind::reads_first_lane) return read_first_lane();
    if (step.kind == LaneStep::Kind::nothing || o_.count == 0) return;
    const bool plain = o_.modifiers.find("clamp") == Text::npos;
    const bool sdwa = instruction.mnemonic.ends_with("_sdwa");
    const bool part = o_.modifiers.find("op_sel:") != Text::npos ||
                      (o_.modifiers.find("dst_sel:") != Text::npos && o_.modifiers.find("dst_sel:DWORD") == Text::npos);
    const bool permuted = part || o_.modifiers.find("row_") != Text::npos || o_.modifiers.find("quad_perm") != Text::npos ||
                          o_.modifiers.find("wave_") != Text::npos;
    std::uint32_t result = unknown_value;
    if (plain && !permuted) {
      const Text m = instruction.mnemonic;
      const std::size_t from =
          m.find("_co_") != Text::npos || m.starts_with("v_mad_u64_") || m.starts_with("v_mad_i64_") ? 2 : 1; // a carry
      if (step.kind == LaneStep::Kind::chooses) result = sdwa ? unknown_value : values_.number(choose());
      else if (sdwa)
        result = values_.number(step.op->result(selected(from, "src0_sel:"), selected(from + 1, "src1_sel:"), source(from + 2)));
      else result = values_.apply(step.op, number(from), number(from + 1), number(from + 2));
    }
    write(o_[0], result);
    forget_scalar_result();
  }

  void scalar(const LaneOp* op, bool pair, Text mnemonic) {
    if (o_.count == 0 || !o_[0].is(Operand::Kind::registers)) return;
    const RegisterRange to = o_[0].registers;
    const bool narrows =
        to.first == reg::exec && op->narrows && o_.count > 1 && o_[1].is(Operand::Kind::registers) && o_[1].registers.first == reg::exec;
    std::uint32_t low = values_.apply(op, number(1, 0), number(2, 0), unknown_value);
    if (mnemonic == "s_movk_i32" && low != unknown_value) // 16 bits, signed
      low = values_.constant(static_cast<u32>(static_cast<std::int16_t>(values_.value(low)->lane[0])));
    const std::uint32_t high = pair ? values_.apply(op, number(1, 1), number(2, 1), unknown_value) : unknown_value;
    set_scalar(to, low, high, narrows);
  }

  // s_KIND_saveexec_b64 D, S: D = EXEC, EXEC = S KIND EXEC.
  void save_exec(Text mnemonic) {
    if (o_.count < 2 || !o_[0].is(Operand::Kind::registers)) return;
    const LaneOp* const kind = find(std::string(mnemonic.substr(0, mnemonic.find("_saveexec"))) + "_b64");
    std::uint32_t old[2], now[2];
    for (std::uint16_t half = 0; half < 2; ++half) {
      old[half] = state_.get(static_cast<std::uint16_t>(reg::exec + half));
      now[half] = values_.apply(kind, number(1, half), old[half], unknown_value);
    }
    set_scalar(o_[0].registers, old[0], old[1], false);
    set_scalar({reg::exec, 2}, now[0], now[1], mnemonic.starts_with("s_and_"));
  }

  void forget(const RegisterUse& use) {
    for (const RegisterRange range : use.writes()) {
      if (range.overlaps({reg::exec, 2})) set_scalar({reg::exec, 2}, unknown_value, unknown_value, false);
      for (std::uint16_t r = range.first; r < range.first + range.count; ++r) state_.set(r, unknown_value);
    }
  }

private:
  // A source in 32 bits: of a register range the low register, or the one `half` above it.
  std::uint32_t number(std::size_t index, std::uint16_t half = 0) const {
    if (index >= o_.count) return unknown_value;
    const Operand& operand = o_[index];
    if (operand.modified) return unknown_value;
    if (operand.is(Operand::Kind::number)) return values_.constant(static_cast<u32>(half == 0 ? operand.number : operand.number >> 32));
    if (!operand.is(Operand::Kind::registers) || half >= operand.registers.count) return unknown_value;
    return state_.get(static_cast<std::uint16_t>(operand.registers.first + half));
  }
  Maybe source(std::size_t index, std::uint16_t half = 0) const { return values_.value(number(index, half)); }

  // A source of which SDWA takes a byte or a half.
  Maybe selected(std::size_t index, Text modifier) const {
    const std::size_t at = o_.modifiers.find(modifier);
    if (at == Text::npos) return source(index);
    const Text part = o_.modifiers.substr(at + modifier.size()).substr(0, 6);
    const Maybe whole = source(index);
    if (part.starts_with("DWORD") || !whole) return whole;
    const bool byte = part.starts_with("BYTE_");
    const u32 width = byte ? 8 : 16, place = static_cast<u32>(part.back() - '0');
    const Maybe shifted = shift_right(*whole, constant_value(place * width), false);
    return shifted ? bit_and(*shifted, constant_value((u32{1} << width) - 1)) : std::nullopt;
  }

  void write(const Operand& to, std::uint32_t low) {
    if (!to.is(Operand::Kind::registers)) return;
    if (to.registers.first >= reg::sgpr) return set_scalar(to.registers, unknown_value, unknown_value, false);
    const bool all_on = state_.all_on();
    for (std::uint16_t i = 0; i < to.registers.count; ++i) {
      const auto r = static_cast<std::uint16_t>(to.registers.first + i);
      const std::uint32_t number = i == 0 ? low : unknown_value; // of pairs only the low half is followed
      all_on ? state_.set(r, number) : state_.set_partly(r, number);
    }
  }

  void forget_scalar_result() { // the carry of v_add_co_u32 and its like
    if (o_.count > 1 && o_[1].is(Operand::Kind::registers) && o_[1].registers.first >= reg::sgpr && o_[1].registers.count == 2 &&
        o_[0].is(Operand::Kind::registers) && o_[0].registers.vector() && o_.count > 3)
      set_scalar(o_[1].registers, unknown_value, unknown_value, false);
  }

  void set_scalar(RegisterRange to, std::uint32_t low, std::uint32_t high, bool narrows) {
    if (to.overlaps({reg::exec, 2}) && !narrows) state_.lanes_come_on();
    for (std::uint16_t i = 0; i < to.count; ++i)
      state_.set(static_cast<std::uint16_t>(to.first + i), i == 0 ? low : i == 1 ? high : unknown_value);
  }

  Maybe choose() const { // v_cndmask_b32 D, S0, S1, MASK: S1 where the mask has a 1
    const Maybe zero = source(1), one = source(2), low = source(3, 0), high = source(3, 1);
    if (!zero || !one) return std::nullopt;
    if (*zero == *one) return zero;
    const auto a = low ? low->constant() : std::nullopt, b = high ? high->constant() : std::nullopt;
    if (!a || !b || !zero->known() || !one->known()) return std::nullopt;
    const std::uint64_t mask = std::uint64_t{*b} << 32 | *a;
    LaneValue v;
    for (std::size_t i = 0; i < v.lane.size(); ++i) v.lane[i] = (mask >> i & 1U) != 0 ? one->lane[i] : zero->lane[i];
    return v;
  }

  void read_first_lane() {
    Maybe v = source(1);
    if (v && !v->uniform()) v = state_.active(values_) == ~std::uint64_t{0} ? v : std::nullopt;
    if (v) v->lane.fill(v->lane[0]);
    write_scalar(v);
  }
  void write_scalar(const Maybe& v) {
    if (o_[0].is(Operand::Kind::registers)) set_scalar(o_[0].registers, values_.number(v), unknown_value, false);
  }

  // v_cmp_RELATION_{u32,i32}: a mask of the lanes where it holds, 0 in lanes that are off.
  void compare(const Instruction& instruction) {
    const std::string_view m = instruction.mnemonic;
    const bool to_exec = m.starts_with("v_cmpx_");
    const std::size_t from = to_exec ? 7 : 6;
    const Text relation = m.substr(from, m.find('_', from) - from);
    const Maybe a = selected(1, "src0_sel:"), b = selected(2, "src1_sel:");
    const auto on = state_.active(values_);
    const bool is_signed = m.find("_i32") != Text::npos;
    std::uint32_t low = unknown_value, high = unknown_value;
    if (a && b && on && a->known() && b->known() && (is_signed || m.find("_u32") != Text::npos)) {
      std::uint64_t mask = 0;
      bool fine = true;
      for (std::size_t i = 0; i < a->lane.size(); ++i) {
        const auto holds = compare_lane(relation, is_signed, a->lane[i], b->lane[i]);
        fine = fine && holds.has_value();
        mask |= std::uint64_t{holds.value_or(false)} << i;
      }
      if (fine) {
        low = values_.constant(static_cast<u32>(mask & *on));
        high = values_.constant(static_cast<u32>((mask & *on) >> 32));
      }
    }
    if (o_.count > 0 && o_[0].is(Operand::Kind::registers)) set_scalar(o_[0].registers, low, high, false);
    if (to_exec) set_scalar({reg::exec, 2}, low, high, true);
  }

  static std::optional<bool> compare_lane(Text relation, bool is_signed, u32 x, u32 y) {
    const bool less = is_signed ? static_cast<std::int32_t>(x) < static_cast<std::int32_t>(y) : x < y;
    if (relation == "eq") return x == y;
    if (relation == "ne" || relation == "lg") return x != y;
    if (relation == "lt") return less;
    if (relation == "ge") return !less;
    if (relation == "le") return less || x == y;
    if (relation == "gt") return !less && x != y;
    return std::nullopt;
  }

  const Operands& o_;
  LaneState& state_;
  LaneValues& values_;
};

} // namespace

std::uint32_t LaneValues::apply(const LaneOp* op, std::uint32_t a, std::uint32_t b, std::uint32_t c) {
  constexpr unsigned bits = 19; // of a number: max_values of lane_addresses.cpp, and a block's worth behind it
  if (op == nullptr) return unknown_value;
  const std::uint64_t key = ((static_cast<std::uint64_t>(op - operations) << bits | a) << bits | b) << bits | c;
  const auto [at, fresh] = applied_.try_emplace(key, unknown_value);
  if (fresh) at->second = number(op->result(value(a), value(b), value(c)));
  return at->second;
}

std::uint32_t LaneValues::join(std::uint32_t a, std::uint32_t b) { return apply(&operations[0], a, b, unknown_value); }

LaneStep lane_step_of(const Instruction& instruction) {
  using Kind = LaneStep::Kind;
  const Text m = instruction.mnemonic, name = base_mnemonic(m);
  LaneStep step;
  if (!instruction.valid) return step;
  step.vector = m.starts_with("v_");
  step.op = find(name);
  if (m.starts_with("v_cmp")) step.kind = Kind::compares;
  else if (name == "v_cndmask_b32") step.kind = Kind::chooses;
  else if (name == "v_readfirstlane_b32") step.kind = Kind::reads_first_lane;
  else if (name == "v_nop") step.kind = Kind::nothing;
  else if (m.find("_saveexec_") != Text::npos) step.kind = Kind::saves_exec;
  else if (step.op != nullptr) step.kind = Kind::calculates;
  return step;
}

void apply_lane_step(const LaneStep& step, const Instruction& instruction, const Operands& operands, LaneState& state, LaneValues& values) {
  Interpreter run(operands, state, values);
  if (instruction.memory || step.kind == LaneStep::Kind::unknown) run.forget(instruction.use);
  else if (step.kind == LaneStep::Kind::saves_exec) run.save_exec(instruction.mnemonic);
  else if (step.vector) run.vector(step, instruction);
  else run.scalar(step.op, instruction.mnemonic.ends_with("_b64"), instruction.mnemonic);
}

} // namespace kiln::isa
