// Reading operands, vector ones with their modifiers, and writing results back under the execution mask.
#include "isa_checks/exec/machine/clones.h"
#include "isa_checks/exec/machine/lanes.h"
#include "isa_checks/exec/machine/stop.h"
#include <algorithm>
#include <cstring>
#include <fmt/format.h>

namespace kiln::exec {
namespace {

void broadcast(std::uint32_t* row, std::uint32_t value) { std::fill(row, row + lane_count, value); }

// The value of an operand before lane permutation and modifiers.
const std::uint32_t* raw(Wave& wave, const InstOperand& operand, Buffer& buffer) {
  if (operand.kind == InstOperand::vector) return wave.lanes(operand.reg);
  const std::uint64_t value = read_scalar(wave, operand);
  if (operand.type == Type::mask) {
    for (int i = 0; i < lane_count; ++i) buffer.word[0][i] = static_cast<std::uint32_t>((value >> i) & 1U);
    return buffer.word[0];
  }
  broadcast(buffer.word[0], static_cast<std::uint32_t>(value));
  if (registers(operand.type) == 2) broadcast(buffer.word[1], static_cast<std::uint32_t>(value >> 32));
  return buffer.word[0];
}

void permute(const Wave& wave, const Inst& inst, const std::uint32_t* from, std::uint32_t* to) {
  const std::uint64_t exec = wave.exec();
  for (int i = 0; i < lane_count; ++i) {
    const int source = inst.dpp_source[static_cast<std::size_t>(i)];
    to[i] = source >= 0 && active(exec, source) ? from[source] : 0;
  }
}

std::uint32_t select_part(std::uint32_t value, std::uint8_t select, bool sext) {
  if (select < 4) {
    value = (value >> (8 * select)) & 0xffU;
    return sext ? static_cast<std::uint32_t>(static_cast<std::int8_t>(value)) : value;
  }
  if (select < 6) {
    value = (value >> (16 * (select - 4))) & 0xffffU;
    return sext ? static_cast<std::uint32_t>(static_cast<std::int16_t>(value)) : value;
  }
  return value;
}

std::uint32_t change_sign(std::uint32_t value, std::uint32_t sign, bool abs, bool neg) {
  if (abs) value &= ~sign;
  return neg ? value ^ sign : value;
}

// Each half of a packed 16-bit operand comes from the half that op_sel or op_sel_hi names.
std::uint32_t packed16(std::uint32_t value, const InstOperand& o) {
  std::uint32_t lo = o.take_high ? value >> 16 : value & 0xffffU;
  std::uint32_t hi = o.high_takes_high ? value >> 16 : value & 0xffffU;
  if (o.type == Type::f16x2) {
    lo = change_sign(lo, 0x8000U, false, o.neg);
    hi = change_sign(hi, 0x8000U, false, o.neg_hi);
  }
  return lo | hi << 16;
}

void packed32(const std::uint32_t* in, std::uint32_t* lo_out, std::uint32_t* hi_out, const InstOperand& o) {
  const std::uint32_t sign = o.type == Type::f32x2 ? 0x80000000U : 0;
  for (int i = 0; i < lane_count; ++i) {
    const std::uint32_t lo = in[i + (o.take_high ? lane_count : 0)], hi = in[i + (o.high_takes_high ? lane_count : 0)];
    lo_out[i] = change_sign(lo, sign, false, o.neg);
    hi_out[i] = change_sign(hi, sign, false, o.neg_hi);
  }
}

// v_fma_mix: op_sel_hi says that the source is a half, op_sel which one; neg_hi means absolute value.
std::uint32_t mixed(std::uint32_t value, const InstOperand& o) {
  if (o.high_takes_high) value = as_bits(to_float(Half{static_cast<std::uint16_t>(o.take_high ? value >> 16 : value)}));
  return change_sign(value, 0x80000000U, o.neg_hi, o.neg);
}

std::uint32_t sign_of(Type type) {
  switch (type) {
  case Type::f32: return 0x80000000U;
  case Type::f16:
  case Type::bf16: return 0x8000U;
  default: return 0;
  }
}

KILN_CLONES void modify(const std::uint32_t* in, Buffer& out, const InstOperand& o) {
  std::uint32_t* const to = out.word[0];
  if (o.type == Type::f64 || o.type == Type::u64 || o.type == Type::i64) {
    for (int i = 0; i < lane_count; ++i) {
      const std::uint32_t low = in[i], high = in[i + lane_count];
      to[i] = low;
      out.word[1][i] = change_sign(high, o.type == Type::f64 ? 0x80000000U : 0, o.abs, o.neg);
    }
  } else if (o.type == Type::f32x2 || o.type == Type::u32x2) {
    packed32(in, to, out.word[1], o);
  } else if (o.type == Type::f16x2 || o.type == Type::u16x2 || o.type == Type::i16x2) {
    for (int i = 0; i < lane_count; ++i) to[i] = packed16(in[i], o);
  } else if (o.type == Type::mixed) {
    for (int i = 0; i < lane_count; ++i) to[i] = mixed(in[i], o);
  } else {
    const std::uint32_t sign = sign_of(o.type);
    for (int i = 0; i < lane_count; ++i) {
      std::uint32_t value = o.sdwa ? select_part(in[i], o.select, o.sext) : in[i];
      if (o.take_high) value >>= 16;
      to[i] = change_sign(value, sign, o.abs, o.neg);
    }
  }
}

float clamp_unit(float x, bool nan_to_zero) {
  if (x != x) return nan_to_zero ? 0.0F : x;
  return x <= 0 ? 0.0F : x > 1 ? 1.0F : x;
}

template <class T, class F> void rewrite(Buffer& r, F f) {
  for (int i = 0; i < lane_count; ++i) store_lane<T>(r, i, f(load_lane<T>(r.word[0], i)));
}

// Output modifiers of a floating-point result: multiply, then clamp to [0, 1].
void modify_result(const Wave& wave, const Inst& inst, Buffer& r) {
  const bool zero = (wave.mode >> 8 & 1U) != 0;
  const float factor = inst.omod == 1 ? 2.0F : inst.omod == 2 ? 4.0F : inst.omod == 3 ? 0.5F : 1.0F;
  const auto one = [&](float x) {
    x *= factor;
    return inst.clamp ? clamp_unit(x, zero) : x;
  };
  switch (inst.dst.type) {
  case Type::f32: rewrite<float>(r, one); break;
  case Type::f16: rewrite<Half>(r, [&](Half h) { return to_half(one(to_float(h))); }); break;
  case Type::f16x2:
    rewrite<HalfPair>(r, [&](HalfPair p) { return HalfPair{to_half(one(to_float(p.lo))), to_half(one(to_float(p.hi)))}; });
    break;
  case Type::f32x2: rewrite<FloatPair>(r, [&](FloatPair p) { return FloatPair{one(p.lo), one(p.hi)}; }); break;
  case Type::f64:
    rewrite<double>(r, [&](double x) {
      x *= static_cast<double>(factor);
      if (!inst.clamp) return x;
      return x != x ? (zero ? 0.0 : x) : std::min(std::max(x, 0.0), 1.0);
    });
    break;
  default: break; // integer saturation is an instruction of its own in the tables
  }
}

// Places a sub-dword result into the old register value.
void place_result(const Inst& inst, const std::uint32_t* old, std::uint32_t* r) {
  const Sdwa& sdwa = inst.fields.sdwa;
  if (!sdwa.present) {
    for (int i = 0; i < lane_count; ++i) r[i] = inst.dst_high ? (old[i] & 0xffffU) | r[i] << 16 : (old[i] & 0xffff0000U) | (r[i] & 0xffffU);
    return;
  }
  if (sdwa.dst_sel == 6) return;
  const int width = sdwa.dst_sel < 4 ? 8 : 16, shift = sdwa.dst_sel < 4 ? 8 * sdwa.dst_sel : 16 * (sdwa.dst_sel - 4);
  const std::uint32_t mask = ((1U << width) - 1) << shift;
  for (int i = 0; i < lane_count; ++i) {
    const std::uint32_t placed = r[i] << shift & mask;
    std::uint32_t rest = 0;
    if (sdwa.dst_unused == 2) rest = old[i] & ~mask;
    if (sdwa.dst_unused == 1 && (placed >> (shift + width - 1) & 1U) != 0) rest = ~0U << (shift + width - 1) << 1;
    r[i] = placed | rest;
  }
}

const std::uint32_t* expand(Wave& wave, std::uint64_t mask) {
  if (wave.expanded_for != mask) {
    for (int i = 0; i < lane_count; ++i) wave.expanded.lane[i] = active(mask, i) ? ~0U : 0;
    wave.expanded_for = mask;
  }
  return wave.expanded.lane;
}

KILN_CLONES void blend(Wave& wave, std::uint64_t mask, const std::uint32_t* from, std::uint32_t* to) {
  if (mask == all_lanes) {
    std::memcpy(to, from, sizeof(Lanes));
    return;
  }
  const std::uint32_t* const on = expand(wave, mask);
  for (int i = 0; i < lane_count; ++i) to[i] = (from[i] & on[i]) | (to[i] & ~on[i]);
}

} // namespace

const std::uint32_t* fetch(Wave& wave, const Inst& inst, int k, Buffer& buffer) {
  const InstOperand& operand = inst.src[static_cast<std::size_t>(k)];
  if (operand.plain) return raw(wave, operand, buffer);
  Buffer other;
  const std::uint32_t* in = raw(wave, operand, other);
  if (operand.dpp) {
    permute(wave, inst, in, buffer.word[0]);
    if (registers(operand.type) == 2) permute(wave, inst, in + lane_count, buffer.word[1]);
    in = buffer.word[0];
  }
  modify(in, buffer, operand);
  return buffer.word[0];
}

std::uint64_t writing_lanes(const Wave& wave, const Inst& inst) {
  const std::uint64_t exec = wave.exec();
  if (!inst.fields.dpp.present) return exec;
  std::uint64_t mask = exec & inst.dpp_lanes;
  if (inst.fields.dpp.bound_ctrl) return mask;
  for (int i = 0; i < lane_count; ++i) {
    const int source = inst.dpp_source[static_cast<std::size_t>(i)];
    if (source < 0 || !active(exec, source)) mask &= ~(1ULL << i);
  }
  return mask;
}

void commit(Wave& wave, const Inst& inst, Buffer& result) {
  std::uint32_t* const to = wave.lanes(inst.dst.reg);
  if (!inst.simple_result) {
    if (inst.clamp || inst.omod != 0) modify_result(wave, inst, result);
    if (registers(inst.dst.type) == 1 && (inst.fields.sdwa.present || inst.op->signature.keeps_half || inst.dst_high))
      place_result(inst, to, result.word[0]);
  }
  const std::uint64_t mask = writing_lanes(wave, inst);
  blend(wave, mask, result.word[0], to);
  if (registers(inst.dst.type) == 2) blend(wave, mask, result.word[1], to + lane_count);
}

KILN_CLONES void commit_mask(Wave& wave, const Inst& inst, const std::uint32_t* flags) {
  std::uint64_t mask = 0;
  for (int i = 0; i < lane_count; ++i) mask |= static_cast<std::uint64_t>(flags[i] & 1U) << i;
  mask &= wave.exec();
  wave.set_pair(inst.sdst, mask);
  if (inst.writes_exec) wave.set_pair(code::exec, mask);
}

std::uint32_t read_scalar_code(const Wave& wave, std::uint16_t number) {
  if (number < code::scalar_registers) return wave.s[number];
  if (number <= 192) return number - code::zero;
  if (number <= 208) return 192U - number;
  switch (number) {
  case code::vccz: return wave.pair(code::vcc) == 0 ? 1 : 0;
  case code::execz: return wave.exec() == 0 ? 1 : 0;
  case code::scc: return wave.scc ? 1 : 0;
  default: throw Stop(fmt::format("reads scalar operand {}, which the executor does not model", number));
  }
}

std::uint64_t read_scalar(const Wave& wave, const InstOperand& operand) {
  if (operand.kind == InstOperand::constant) return operand.value;
  const std::uint16_t number = operand.reg;
  const bool wide = registers(operand.type) == 2;
  if (number < 127 && wide) return wave.pair(number);
  if (number == 235 || number == 237) { // where the shared and private apertures begin; the upper half is all that is set
    const std::uint64_t base = number == 235 ? shared_aperture : private_aperture;
    return wide ? base : base >> 32;
  }
  return read_scalar_code(wave, number);
}

} // namespace kiln::exec
