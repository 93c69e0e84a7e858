// How many wait states a pair of instructions needs.
//
// "passes" of a matrix instruction are 4 cycles each. XDL are the matrix instructions of types other than f32 and f64.
#include "isa_checks/exec/sanitisers/hazards.h"
#include "isa_checks/exec/machine/matrix.h"
#include "isa_checks/exec/machine/memory_ops.h"
#include <algorithm>
#include <initializer_list>

namespace kiln::exec {
namespace {

bool overlap(Range a, Range b) {
  return a.count != 0 && b.count != 0 && a.first < b.first + b.count && b.first < a.first + a.count;
}
bool same(Range a, Range b) { return a.first == b.first && a.count == b.count; }

template <std::size_t n> bool any_overlap(const std::array<Range, n>& ranges, Range r) {
  return std::any_of(ranges.begin(), ranges.end(), [&](const Range& x) { return overlap(x, r); });
}

// A pair of instructions, and what is asked of it.
struct Pair {
  const Inst &a, &b;
  const HazardTraits &first, &second;
  bool later; // results of matrix instructions are later (gfx950)

  bool reads_result() const {
    return any_overlap(b.vector_reads, a.vector_writes[0]) || any_overlap(b.vector_reads, a.vector_writes[1]);
  }
  bool writes_result() const { return any_overlap(b.vector_writes, a.vector_writes[0]); }
  bool writes_scalar(Range r) const { return overlap(a.scalar_write, r) || (a.writes_exec && overlap({code::exec, 2}, r)); }
  bool reads_scalar() const {
    return std::any_of(b.scalar_reads.begin(), b.scalar_reads.end(), [&](const Range& r) { return writes_scalar(r); });
  }
  bool is_valu() const { return b.op->cls == InstClass::valu || b.op->cls == InstClass::trans; }
  bool is_memory() const { return b.op->cls == InstClass::vmem || b.op->cls == InstClass::lds; }
};

bool is_f64(const Inst& inst) { return inst.op->matrix->a == Element::f64; }
bool is_xdl(const Inst& inst) {
  const Element a = inst.op->matrix->a;
  return a != Element::f64 && (a != Element::f32 || inst.op->name.find("xf32") != std::string_view::npos);
}
Range accumulator_of(const Inst& inst) { return inst.op->matrix->sparse ? inst.vector_writes[0] : inst.vector_reads[2]; }

// The result of a matrix instruction is read, or overwritten, by something other than a matrix instruction's C.
int result_states(const Pair& p) {
  const int passes = p.first.passes;
  return is_xdl(p.a) ? passes + 3 + (passes != 2 && p.later ? 1 : 0) : passes + 2;
}

int f64_result_states(const Pair& p, bool memory) {
  if (p.first.passes == 4) return memory ? 9 : 6;
  return memory ? 18 : p.later ? 19 : 11;
}

// ... by a matrix instruction as C. Accumulating into exactly the same registers is forwarded.
int accumulator_states(const Pair& p) {
  const int passes = p.first.passes;
  const bool xdl = is_xdl(p.b);
  if (same(p.a.vector_writes[0], accumulator_of(p.b))) {
    if (is_f64(p.a) && is_f64(p.b) && passes == 4 && p.second.passes == 4) return 4;
    return passes == 2 ? 2 : 0;
  }
  if (is_f64(p.a)) return xdl ? 0 : passes == 4 ? 4 : p.later ? 17 : 9;
  if (!is_xdl(p.a)) return xdl ? 0 : passes;
  return passes + 1 + (p.later && (xdl || passes != 2) ? 1 : 0);
}

HazardNeed matrix_after_matrix(const Pair& p) {
  const Range result = p.a.vector_writes[0], c = accumulator_of(p.b);
  HazardNeed need;
  for (std::size_t k = 0; k < p.b.vector_reads.size(); ++k) {
    const Range r = p.b.vector_reads[k];
    if (!overlap(r, result)) continue;
    const bool is_c = k >= 2 && same(r, c);
    const int states = is_c          ? accumulator_states(p)
                       : is_f64(p.a) ? (p.first.passes == 4 ? 6
                                        : p.later           ? 19
                                                            : 11)
                                     : result_states(p);
    if (states > need.states)
      need = {states, is_c ? "reads as C what a matrix instruction writes" : "reads what a matrix instruction writes"};
  }
  return need;
}

HazardNeed after_matrix(const Pair& p) {
  if (p.b.op->matrix != nullptr) return matrix_after_matrix(p);
  HazardNeed need;
  const auto at_least = [&](int states, std::string_view why) {
    if (states > need.states) need = {states, why};
  };
  if (p.reads_result())
    at_least(is_f64(p.a) ? f64_result_states(p, p.is_memory()) : result_states(p), "reads what a matrix instruction writes");
  if (p.writes_result())
    at_least(is_f64(p.a) ? (p.first.passes == 4 ? 6 : 11) : result_states(p), "overwrites what a matrix instruction writes");
  if (is_xdl(p.a) && any_overlap(p.b.vector_writes, accumulator_of(p.a))) {
    const int passes = p.first.passes;
    at_least(passes == 2 ? 1 : passes - 1, "overwrites what a matrix instruction reads as C");
  }
  if (is_f64(p.a) && (p.b.op->name == "v_fma_f64" || p.b.op->name == "v_fmac_f64"))
    at_least(2, "multiplies doubles after an f64 matrix instruction,");
  return need;
}

HazardNeed after_dot(const Pair& p) {
  if (p.b.op->matrix != nullptr) return {};
  const bool alike = p.a.op == p.b.op;
  std::size_t last = 0;
  for (std::size_t k = 0; k < p.b.vector_reads.size(); ++k)
    if (p.b.vector_reads[k].count != 0) last = k;
  for (std::size_t k = 0; k <= last; ++k) {
    const bool accumulates = alike && k == last && p.b.src[2].kind == Operand::vector;
    if (!accumulates && overlap(p.b.vector_reads[k], p.a.vector_writes[0])) return {3, "reads the result of a dot product"};
  }
  if (!alike && p.writes_result()) return {3, "overwrites the result of a dot product"};
  return {};
}

// VALU writes a scalar register, VCC or EXEC.
HazardNeed after_scalar_write(const Pair& p) {
  const std::string_view name = p.b.op->name;
  constexpr Range exec{code::exec, 2}, vcc{code::vcc, 2}, m0{code::m0, 1};
  HazardNeed need;
  const auto at_least = [&](int states, std::string_view why) {
    if (states > need.states) need = {states, why};
  };
  if (p.b.op->cls == InstClass::vmem) {
    const bool direct = p.b.op->memory != nullptr && (p.b.op->memory->to_lds || p.b.fields.lds);
    if (p.reads_scalar() || (direct && p.writes_scalar(m0)))
      at_least(5, "accesses memory through a scalar register that a vector instruction writes,");
    return need;
  }
  if (p.b.op->matrix != nullptr) {
    if (p.writes_scalar(exec)) at_least(4, "is a matrix instruction after EXEC is written,");
    return need;
  }
  if (!p.is_valu()) return need;
  if (p.reads_scalar()) at_least(2, "reads a scalar register that a vector instruction writes,");
  if (p.b.fields.dpp.present && p.writes_scalar(exec)) at_least(5, "permutes lanes after EXEC is written,");
  if (name.starts_with("v_div_fmas") && p.writes_scalar(vcc)) at_least(4, "reads VCC");
  const bool chooses = name == "v_readlane_b32" || name == "v_writelane_b32", reads_first = name == "v_readfirstlane_b32";
  if ((chooses || reads_first) && p.writes_scalar(exec)) at_least(4, "picks a lane after EXEC is written,");
  if (chooses && p.b.src[1].kind == Operand::scalar && p.writes_scalar({p.b.src[1].reg, 1}))
    at_least(4, "chooses a lane by a scalar register that a vector instruction writes,");
  if (name.starts_with("v_permlane") && p.a.writes_exec) at_least(4, "swaps lanes after EXEC is written,");
  return need;
}

// VALU writes a vector register.
HazardNeed after_vector_write(const Pair& p) {
  const std::string_view name = p.b.op->name;
  const bool dot = (p.first.produces & hazard_dot) != 0;
  if (p.b.op->matrix != nullptr)
    return !dot && p.reads_result() ? HazardNeed{2, "is a matrix instruction that reads it"} : HazardNeed{};
  if (p.b.fields.dpp.present && overlap(p.b.vector_reads[0], p.a.vector_writes[0])) return {2, "permutes it"};
  if (name.starts_with("v_permlane") && p.reads_result()) return {2, "swaps lanes of it"};
  const bool picks = name == "v_readlane_b32" || name == "v_readfirstlane_b32";
  if (picks && p.reads_result()) return {1, "picks a lane of it"};
  return {};
}

HazardNeed after_store(const Pair& p) {
  for (const Range& r : p.a.vector_reads)
    if (r.first == p.a.src[1].reg && r.count > 2 && any_overlap(p.b.vector_writes, r))
      return {2, "overwrites the data of a wide store"};
  return {};
}

} // namespace

HazardNeed hazard_need(const Inst& first, const HazardTraits& first_traits, const Inst& second, const HazardTraits& second_traits,
                       const isa::TargetFacts& target) {
  const Pair p{first, second, first_traits, second_traits, target.generation == isa::Generation::cdna4};
  const std::uint16_t both = first_traits.produces & second_traits.consumes;
  HazardNeed need;
  const auto consider = [&](std::uint16_t bit, auto rule) {
    if ((both & bit) == 0) return;
    if (const HazardNeed n = rule(p); n.states > need.states) need = n;
  };
  consider(hazard_matrix, after_matrix);
  consider(hazard_scalar, after_scalar_write);
  consider(hazard_vector, after_vector_write);
  consider(hazard_dot, after_dot);
  consider(hazard_store, after_store);
  consider(hazard_trans, [](const Pair& q) {
    return q.reads_result() ? HazardNeed{1, "reads the result of a transcendental instruction"} : HazardNeed{};
  });
  consider(hazard_partial, [](const Pair& q) {
    return q.reads_result() || q.writes_result() ? HazardNeed{1, "uses a register that was written in part,"} : HazardNeed{};
  });
  consider(hazard_setreg, [](const Pair& q) {
    return (q.a.fields.simm16 & 0x3fU) == (q.b.fields.simm16 & 0x3fU) ? HazardNeed{2, "uses the hardware register"}
                                                                      : HazardNeed{};
  });
  consider(hazard_m0, [](const Pair& q) {
    const bool uses = q.b.op->memory == nullptr || q.b.op->memory->to_lds || q.b.fields.lds;
    return uses ? HazardNeed{1, "uses M0"} : HazardNeed{};
  });
  return need;
}

} // namespace kiln::exec
