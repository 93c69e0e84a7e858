// The instructions from which compilers make addresses and masks.
#include "isa_checks/analysis/lanes/lane_step.h"
#include "isa_checks/decode/instruction_class.h"
#include <algorithm>
#include <string_view>

namespace kiln::isa {

enum class LaneOp : std::uint8_t {
  unknown, // makes its results unknown
  none,    // has no result in a register
  mov,
  add,
  sub,
  subrev,
  mul,
  shl,
  shlrev,
  shr,
  shrrev,
  ashr,
  ashrrev,
  band,
  bor,
  bxor,
  bnot,
  lshl_add,
  lshl_or,
  and_or,
  add_lshl,
  add3,
  or3,
  xad,
  mad,
  bfe,
  andn2,
  mad64,
  lshl_add64,
  shl64rev,
  mbcnt_lo,
  mbcnt_hi,
  cndmask,
  compare,
  readfirstlane,
  umin,
  umax,
  saveexec, // of any kind
  join,     // of values on two paths: no instruction's
};

namespace {

using Text = std::string_view;
using u32 = std::uint32_t;

struct Named {
  Text name;
  LaneOp op;
};

// Vector instructions, without suffix. 24-bit forms are what compilers use where they know that 24 bits suffice.
constexpr Named vector_ops[] = {{"v_mov_b32", LaneOp::mov},
                                {"v_add_u32", LaneOp::add},
                                {"v_add_co_u32", LaneOp::add},
                                {"v_add_i32", LaneOp::add},
                                {"v_sub_u32", LaneOp::sub},
                                {"v_sub_co_u32", LaneOp::sub},
                                {"v_sub_i32", LaneOp::sub},
                                {"v_subrev_u32", LaneOp::subrev},
                                {"v_subrev_co_u32", LaneOp::subrev},
                                {"v_mul_lo_u32", LaneOp::mul},
                                {"v_mul_u32_u24", LaneOp::mul},
                                {"v_mul_i32_i24", LaneOp::mul},
                                {"v_lshlrev_b32", LaneOp::shlrev},
                                {"v_lshrrev_b32", LaneOp::shrrev},
                                {"v_ashrrev_i32", LaneOp::ashrrev},
                                {"v_and_b32", LaneOp::band},
                                {"v_or_b32", LaneOp::bor},
                                {"v_xor_b32", LaneOp::bxor},
                                {"v_not_b32", LaneOp::bnot},
                                {"v_lshl_add_u32", LaneOp::lshl_add},
                                {"v_lshl_or_b32", LaneOp::lshl_or},
                                {"v_and_or_b32", LaneOp::and_or},
                                {"v_add_lshl_u32", LaneOp::add_lshl},
                                {"v_add3_u32", LaneOp::add3},
                                {"v_or3_b32", LaneOp::or3},
                                {"v_xad_u32", LaneOp::xad},
                                {"v_mad_u32_u24", LaneOp::mad},
                                {"v_mad_i32_i24", LaneOp::mad},
                                {"v_bfe_u32", LaneOp::bfe},
                                {"v_mad_u64_u32", LaneOp::mad64},
                                {"v_mad_i64_i32", LaneOp::mad64},
                                {"v_lshl_add_u64", LaneOp::lshl_add64},
                                {"v_lshlrev_b64", LaneOp::shl64rev},
                                {"v_mbcnt_lo_u32_b32", LaneOp::mbcnt_lo},
                                {"v_mbcnt_hi_u32_b32", LaneOp::mbcnt_hi},
                                {"v_cndmask_b32", LaneOp::cndmask},
                                {"v_readfirstlane_b32", LaneOp::readfirstlane},
                                {"v_min_u32", LaneOp::umin},
                                {"v_max_u32", LaneOp::umax},
                                {"v_nop", LaneOp::none}};

constexpr Named scalar_ops[] = {{"s_mov_b32", LaneOp::mov},   {"s_movk_i32", LaneOp::mov}, {"s_add_u32", LaneOp::add},
                                {"s_add_i32", LaneOp::add},   {"s_sub_u32", LaneOp::sub},  {"s_sub_i32", LaneOp::sub},
                                {"s_mul_i32", LaneOp::mul},   {"s_lshl_b32", LaneOp::shl}, {"s_lshr_b32", LaneOp::shr},
                                {"s_ashr_i32", LaneOp::ashr}, {"s_and_b32", LaneOp::band}, {"s_or_b32", LaneOp::bor},
                                {"s_xor_b32", LaneOp::bxor},  {"s_not_b32", LaneOp::bnot}, {"s_andn2_b32", LaneOp::andn2}};
constexpr Named scalar64_ops[] = {{"s_mov_b64", LaneOp::mov},  {"s_and_b64", LaneOp::band}, {"s_or_b64", LaneOp::bor},
                                  {"s_xor_b64", LaneOp::bxor}, {"s_not_b64", LaneOp::bnot}, {"s_andn2_b64", LaneOp::andn2}};

template <std::size_t N> LaneOp find(const Named (&table)[N], Text name) {
  for (const Named& n : table)
    if (n.name == name) return n.op;
  return LaneOp::unknown;
}

Maybe both(const Maybe& a, const Maybe& b, Maybe (*f)(const LaneValue&, const LaneValue&)) { return a && b ? f(*a, *b) : std::nullopt; }

// One result of up to three sources, in 32 bits. More than 60 lines: one line an operation.
Maybe calculate(LaneOp op, const Maybe& a, const Maybe& b, const Maybe& c) {
  const auto shr = [](const Maybe& x, const Maybe& n, bool arithmetic) { return x && n ? shift_right(*x, *n, arithmetic) : std::nullopt; };
  switch (op) {
  case LaneOp::mov: return a;
  case LaneOp::add: return both(a, b, add);
  case LaneOp::sub: return both(a, b, subtract);
  case LaneOp::subrev: return both(b, a, subtract);
  case LaneOp::mul: return both(a, b, multiply);
  case LaneOp::shl: return both(a, b, shift_left);
  case LaneOp::shlrev: return both(b, a, shift_left);
  case LaneOp::shr: return shr(a, b, false);
  case LaneOp::shrrev: return shr(b, a, false);
  case LaneOp::ashr: return shr(a, b, true);
  case LaneOp::ashrrev: return shr(b, a, true);
  case LaneOp::band: return both(a, b, bit_and);
  case LaneOp::bor: return both(a, b, bit_or);
  case LaneOp::bxor: return both(a, b, bit_xor);
  case LaneOp::bnot: return both(a, constant_value(~u32{0}), bit_xor);
  case LaneOp::andn2: return both(a, both(b, constant_value(~u32{0}), bit_xor), bit_and);
  case LaneOp::lshl_add:
  case LaneOp::lshl_add64: return both(both(a, b, shift_left), c, add);
  case LaneOp::lshl_or: return both(both(a, b, shift_left), c, bit_or);
  case LaneOp::and_or: return both(both(a, b, bit_and), c, bit_or);
  case LaneOp::add_lshl: return both(both(a, b, add), c, shift_left);
  case LaneOp::add3: return both(both(a, b, add), c, add);
  case LaneOp::or3: return both(both(a, b, bit_or), c, bit_or);
  case LaneOp::xad: return both(both(a, b, bit_xor), c, add);
  case LaneOp::mad:
  case LaneOp::mad64: return both(both(a, b, multiply), c, add);
  case LaneOp::shl64rev: return a && a->constant() && *a->constant() < 32 ? both(b, a, shift_left) : std::nullopt;
  case LaneOp::bfe: {
    const auto width = c ? c->constant() : std::nullopt;
    return width ? both(shr(a, b, false), constant_value((u32{1} << (*width & 31U)) - 1), bit_and) : std::nullopt;
  }
  case LaneOp::umin:
  case LaneOp::umax: {
    if (!a || !b || !a->known() || !b->known()) return a && b && a->uniform() && b->uniform() ? Maybe(uniform_value()) : std::nullopt;
    LaneValue v;
    for (std::size_t i = 0; i < v.lane.size(); ++i)
      v.lane[i] = op == LaneOp::umin ? std::min(a->lane[i], b->lane[i]) : std::max(a->lane[i], b->lane[i]);
    return v;
  }
  case LaneOp::mbcnt_lo:
  case LaneOp::mbcnt_hi: {
    if (!a || a->constant() != ~u32{0}) return std::nullopt;
    LaneValue below; // lanes below this one, in its half of the wave
    for (u32 i = 0; i < below.lane.size(); ++i) below.lane[i] = op == LaneOp::mbcnt_lo ? std::min(i, 32U) : std::max(i, 32U) - 32;
    return both(below, b, add);
  }
  case LaneOp::join: return both(a, b, isa::join);
  default: return std::nullopt;
  }
}

class Interpreter {
public:
  Interpreter(const Operands& operands, LaneState& state, LaneValues& values) : o_(operands), state_(state), values_(values) {}

  void vector(LaneOp op, const Instruction& instruction) {
    if (op == LaneOp::compare) return compare(instruction);
    if (op == LaneOp::readfirstlane) return read_first_lane();
    if (op == LaneOp::none || o_.count == 0) return;
    const bool plain = o_.modifiers.find("clamp") == Text::npos;
    const bool sdwa = instruction.mnemonic.ends_with("_sdwa");
    const bool part = o_.modifiers.find("op_sel:") != Text::npos ||
                      (o_.modifiers.find("dst_sel:") != Text::npos && o_.modifiers.find("dst_sel:DWORD") == Text::npos);
    const bool permuted = part || o_.modifiers.find("row_") != Text::npos || o_.modifiers.find("quad_perm") != Text::npos ||
                          o_.modifiers.find("wave_") != Text::npos;
    std::uint32_t result = unknown_value;
    if (op != LaneOp::unknown && plain && !permuted) {
      const std::size_t first = instruction.mnemonic.find("_co_") != std::string::npos || op == LaneOp::mad64 ? 2 : 1;
      if (op == LaneOp::cndmask) result = sdwa ? unknown_value : values_.number(choose());
      else if (sdwa)
        result = values_.number(calculate(op, selected(first, "src0_sel:"), selected(first + 1, "src1_sel:"), source(first + 2)));
      else result = values_.apply(op, number(first), number(first + 1), number(first + 2));
    }
    write(o_[0], result);
    forget_scalar_result();
  }

  void scalar(LaneOp op, bool pair, Text mnemonic) {
    if (o_.count == 0 || !o_[0].is(Operand::Kind::registers)) return;
    const RegisterRange to = o_[0].registers;
    if (op == LaneOp::unknown) return set_scalar(to, unknown_value, unknown_value, false);
    if (op == LaneOp::saveexec) return;
    const bool narrows = to.first == reg::exec && (op == LaneOp::band || op == LaneOp::andn2) && o_.count > 1 &&
                         o_[1].is(Operand::Kind::registers) && o_[1].registers.first == reg::exec;
    std::uint32_t low = values_.apply(op, number(1, 0), number(2, 0), unknown_value);
    if (mnemonic == "s_movk_i32" && low != unknown_value) // 16 bits, signed
      low = values_.constant(static_cast<u32>(static_cast<std::int16_t>(values_.value(low)->lane[0])));
    const std::uint32_t high = pair ? values_.apply(op, number(1, 1), number(2, 1), unknown_value) : unknown_value;
    set_scalar(to, low, high, narrows);
  }

  // s_KIND_saveexec_b64 D, S: D = EXEC, EXEC = S KIND EXEC.
  void save_exec(Text mnemonic) {
    if (o_.count < 2 || !o_[0].is(Operand::Kind::registers)) return;
    const LaneOp kind = mnemonic.starts_with("s_and_")     ? LaneOp::band
                        : mnemonic.starts_with("s_or_")    ? LaneOp::bor
                        : mnemonic.starts_with("s_xor_")   ? LaneOp::bxor
                        : mnemonic.starts_with("s_andn2_") ? LaneOp::andn2
                                                           : LaneOp::unknown;
    std::uint32_t old[2], now[2];
    for (std::uint16_t half = 0; half < 2; ++half) {
      old[half] = state_.get(static_cast<std::uint16_t>(reg::exec + half));
      now[half] = values_.apply(kind, number(1, half), old[half], unknown_value);
    }
    set_scalar(o_[0].registers, old[0], old[1], false);
    set_scalar({reg::exec, 2}, now[0], now[1], kind == LaneOp::band);
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

std::uint32_t LaneValues::apply(LaneOp op, std::uint32_t a, std::uint32_t b, std::uint32_t c) {
  constexpr unsigned bits = 19; // of a number: max_values of lane_addresses.cpp, and a block's worth behind it
  const std::uint64_t key = ((static_cast<std::uint64_t>(op) << bits | a) << bits | b) << bits | c;
  const auto [at, fresh] = applied_.try_emplace(key, unknown_value);
  if (fresh) at->second = number(calculate(op, value(a), value(b), value(c)));
  return at->second;
}

std::uint32_t LaneValues::join(std::uint32_t a, std::uint32_t b) { return apply(LaneOp::join, a, b, unknown_value); }

LaneStep lane_step_of(const Instruction& instruction) {
  const Text m = instruction.mnemonic;
  LaneStep step;
  if (!instruction.valid) return step;
  step.vector = m.starts_with("v_");
  if (step.vector) {
    step.op = m.starts_with("v_cmp") ? LaneOp::compare : find(vector_ops, base_mnemonic(m));
  } else if (m.starts_with("s_")) {
    step.scalar64 = m.ends_with("_b64") && find(scalar64_ops, m) != LaneOp::unknown;
    step.op = m.find("_saveexec_") != Text::npos ? LaneOp::saveexec : step.scalar64 ? find(scalar64_ops, m) : find(scalar_ops, m);
  }
  return step;
}

void apply_lane_step(const LaneStep& step, const Instruction& instruction, const Operands& operands, LaneState& state, LaneValues& values) {
  Interpreter run(operands, state, values);
  const bool memory = memory_op(instruction).has_value();
  if (memory || step.op == LaneOp::unknown) run.forget(instruction.use);
  else if (step.op == LaneOp::saveexec) run.save_exec(instruction.mnemonic);
  else if (step.vector) run.vector(step.op, instruction);
  else run.scalar(step.op, step.scalar64, instruction.mnemonic);
}

} // namespace kiln::isa
