// The table of hazards.
//
// Numbers: LLVM's GCNHazardRecognizer.cpp, in the functions that the table names. A pass of a matrix instruction takes 4 clocks;
// XDL are the matrix instructions of types other than f32 and f64. tests/exec/hazard_test.cpp holds each entry against the states
// that LLVM 21's recogniser inserts (llc -run-pass post-RA-hazard-rec) on gfx942 and gfx950; the one of stores with a scalar offset is
// younger (llvm/llvm-project#197267, measured there on gfx950).
#include "isa_checks/target/hazards.h"
#include <algorithm>
#include <array>
#include <bit>
#include <iterator>

namespace kiln::isa {
namespace {

constexpr RegisterRange exec{reg::exec, 2}, vcc{reg::vcc, 2};

// A pair of instructions, and what is asked of it.
struct Pair {
  const HazardTraits &a, &b;

  RegisterRange result() const { return a.use.write_list[0]; } // of a matrix instruction
  bool writes(RegisterRange r) const { return r.count != 0 && a.use.writes_any(r); }
  template <class Wanted> bool any_written(Wanted wanted) const {
    return std::any_of(a.use.writes().begin(), a.use.writes().end(), wanted);
  }

  // The first.
  bool anything() const { return true; }
  bool scalar_offset() const { return a.scalar_offset; }
  bool other_offset() const { return !a.scalar_offset; }
  bool xdl_2_passes() const { return a.xdl && a.passes == 2; }
  bool xdl_longer() const { return a.xdl && a.passes > 2; }
  bool xdl() const { return a.xdl; }
  bool f32() const { return !a.xdl && !a.f64; }
  bool f64() const { return a.f64; }
  bool f64_4x4() const { return a.f64 && a.passes == 4; }
  bool f64_16x16() const { return a.f64 && a.passes != 4; }
  bool no_f64() const { return !a.f64; }
  bool two_passes() const { return a.passes == 2; }

  // The second, after a matrix instruction. What it reads besides its C is A, B, a scale or an index.
  bool matrix() const { return b.unit == HazardUnit::matrix; }
  bool memory() const { return b.unit == HazardUnit::vmem || b.unit == HazardUnit::lds; }
  bool reads_as_operand() const {
    bool c_seen = false; // once: A may be in the same registers
    return std::any_of(b.use.reads().begin(), b.use.reads().end(), [&](RegisterRange r) {
      if (!c_seen && r == b.accumulator) return !(c_seen = true);
      return r.overlaps(result());
    });
  }
  bool reads_matrix() const { return matrix() ? reads_as_operand() : b.use.reads_any(result()); }
  bool memory_reads_matrix() const { return memory() && reads_matrix(); }
  bool others_read_matrix() const { return !memory() && reads_matrix(); }
  bool overwrites_matrix() const { return !matrix() && b.use.writes_any(result()); }
  bool overwrites_c() const { return !matrix() && b.use.writes_any(a.accumulator); }
  bool same_c() const { return b.accumulator == result(); }
  bool same_c_f64_4x4() const { return same_c() && b.f64 && b.passes == 4; }
  bool other_c() const { return b.accumulator.count != 0 && b.accumulator.overlaps(result()) && !same_c(); }
  bool xdl_other_c() const { return b.xdl && other_c(); }
  bool no_xdl_other_c() const { return !b.xdl && other_c(); }
  bool f64_other_c() const { return b.f64 && other_c(); }
  bool f32_other_c() const { return !b.f64 && !b.xdl && other_c(); }
  bool fma_f64() const { return b.fma_f64; }
  // Whether the second has a register in common with the matrix instruction, or is sensitive to it without one.
  bool meets_matrix() const {
    return b.use.reads_any(result()) || b.use.writes_any(result()) || b.use.writes_any(a.accumulator) || (a.f64 && b.fma_f64);
  }

  // The second, after the vector ALU wrote a scalar register.
  bool reads_scalar() const {
    return any_written([&](RegisterRange r) { return !r.vector() && b.use.reads_any(r); });
  }
  bool vmem_reads_scalar() const { return b.unit == HazardUnit::vmem && reads_scalar(); }
  bool valu_reads_scalar() const { return b.unit == HazardUnit::valu && reads_scalar(); }
  bool matrix_under_exec() const { return matrix() && writes(exec); }
  bool dpp_under_exec() const { return b.lanes == LaneUse::dpp && writes(exec); }
  bool swaps_under_exec() const { return b.lanes == LaneUse::swap && writes(exec); }
  bool picks_under_exec() const {
    return (b.lanes == LaneUse::read || b.lanes == LaneUse::read_first || b.lanes == LaneUse::write) && writes(exec);
  }
  bool div_fmas() const { return b.div_fmas && writes(vcc); }
  bool selects_lane() const { return writes(b.lane_select); }

  // The second, after a vector register was written.
  bool reads_vector() const {
    return any_written([&](RegisterRange r) { return r.vector() && b.use.reads_any(r); });
  }
  bool overwrites_vector() const {
    return any_written([&](RegisterRange r) { return r.vector() && b.use.writes_any(r); });
  }
  bool uses_vector() const { return reads_vector() || overwrites_vector(); }
  bool matrix_reads_vector() const { return matrix() && (a.produces & hazard_dot) == 0 && reads_vector(); }
  bool permutes() const { return b.lanes == LaneUse::dpp && writes(b.permuted); }
  bool swaps() const { return b.lanes == LaneUse::swap && reads_vector(); }
  bool picks() const { return (b.lanes == LaneUse::read || b.lanes == LaneUse::read_first) && writes(b.permuted); }
  bool reads_dot() const { return !matrix() && (a.opcode == b.opcode ? reads_as_operand() : reads_vector()); }
  bool overwrites_dot() const { return !matrix() && a.opcode != b.opcode && overwrites_vector(); }

  // The second, after anything else.
  bool overwrites_store_data() const { return b.use.writes_any(a.store_data); }
  bool same_hardware_register() const { return a.hardware_register == b.hardware_register; }
};

constexpr std::int8_t none = -64; // no such hazard on this generation, whatever the passes
constexpr bool passes = true;     // the first's passes come on top

struct Entry {
  HazardBit bit;
  bool (Pair::*first)() const;
  bool (Pair::*second)() const;
  std::array<std::int8_t, 3> states; // by Generation: CDNA2, CDNA3, CDNA4
  bool add_passes;
  HazardEvidence evidence;
  std::string_view what;
};

using enum HazardEvidence;
constexpr std::string_view reads = "reads what a matrix instruction writes", overwrites = "overwrites what a matrix instruction writes",
                           reads_c = "reads as C what a matrix instruction writes";

// clang-format off
constexpr Entry entries[] = {
    // checkMAIVALUHazards and, for A and B, checkMAIHazards90A
    {hazard_matrix, &Pair::xdl_2_passes, &Pair::reads_matrix, {3, 3, 3}, passes, table, reads},
    {hazard_matrix, &Pair::xdl_longer, &Pair::reads_matrix, {3, 3, 4}, passes, table, reads},
    {hazard_matrix, &Pair::f32, &Pair::reads_matrix, {3, 2, 2}, passes, table, reads},
    {hazard_matrix, &Pair::f64_4x4, &Pair::others_read_matrix, {6, 6, 6}, false, table, reads},
    {hazard_matrix, &Pair::f64_4x4, &Pair::memory_reads_matrix, {9, 9, 9}, false, table, reads},
    {hazard_matrix, &Pair::f64_16x16, &Pair::others_read_matrix, {11, 11, 19}, false, table, reads},
    {hazard_matrix, &Pair::f64_16x16, &Pair::memory_reads_matrix, {18, 18, 18}, false, table, reads},
    {hazard_matrix, &Pair::xdl_2_passes, &Pair::overwrites_matrix, {3, 3, 3}, passes, table, overwrites},
    {hazard_matrix, &Pair::xdl_longer, &Pair::overwrites_matrix, {3, 3, 4}, passes, table, overwrites},
    {hazard_matrix, &Pair::f32, &Pair::overwrites_matrix, {3, 2, 2}, passes, table, overwrites},
    {hazard_matrix, &Pair::f64_4x4, &Pair::overwrites_matrix, {6, 6, 6}, false, table, overwrites},
    {hazard_matrix, &Pair::f64_16x16, &Pair::overwrites_matrix, {11, 11, 11}, false, table, overwrites},
    {hazard_matrix, &Pair::xdl, &Pair::overwrites_c, {-1, -1, -1}, passes, table, "overwrites what a matrix instruction reads as C"},
    {hazard_matrix, &Pair::f32, &Pair::overwrites_c, {-1, none, none}, passes, table, "overwrites what a matrix instruction reads as C"},
    {hazard_matrix, &Pair::f64, &Pair::fma_f64, {2, 2, 2}, false, table, "multiplies doubles after an f64 matrix instruction,"},
    // checkMAIHazards90A: C. Accumulation onto exactly the same registers is forwarded after 4 passes and more.
    {hazard_matrix, &Pair::two_passes, &Pair::same_c, {none, 2, 2}, false, table, reads_c},
    {hazard_matrix, &Pair::f64_4x4, &Pair::same_c_f64_4x4, {4, 4, 4}, false, table, reads_c},
    {hazard_matrix, &Pair::xdl_2_passes, &Pair::xdl_other_c, {0, 1, 2}, passes, table, reads_c},
    {hazard_matrix, &Pair::xdl_2_passes, &Pair::no_xdl_other_c, {0, 1, 1}, passes, table, reads_c},
    {hazard_matrix, &Pair::xdl_longer, &Pair::other_c, {0, 1, 2}, passes, table, reads_c},
    {hazard_matrix, &Pair::f32, &Pair::no_xdl_other_c, {0, 0, 0}, passes, table, reads_c},
    {hazard_matrix, &Pair::f32, &Pair::xdl_other_c, {0, none, none}, passes, table, reads_c},
    {hazard_matrix, &Pair::no_f64, &Pair::f64_other_c, {1, none, none}, passes, table, reads_c},
    {hazard_matrix, &Pair::f64_4x4, &Pair::f64_other_c, {4, 4, 4}, false, table, reads_c},
    {hazard_matrix, &Pair::f64_4x4, &Pair::f32_other_c, {none, 4, 4}, false, table, reads_c},
    {hazard_matrix, &Pair::f64_16x16, &Pair::f64_other_c, {9, 9, 17}, false, table, reads_c},
    {hazard_matrix, &Pair::f64_16x16, &Pair::f32_other_c, {none, 9, 17}, false, table, reads_c},
    // checkVMEMHazards, checkDPPHazards, checkDivFMasHazards, checkRWLaneHazards; the others: checkMAIHazards90A, checkVALUHazards,
    // checkPermlaneHazards. Hand-written kernels that ship leave out the states before the vector ALU reads: 15,756 times in 144 objects.
    {hazard_scalar, &Pair::anything, &Pair::vmem_reads_scalar, {5, 5, 5}, false, agreed, "accesses memory through a scalar register that a vector instruction writes,"},
    {hazard_scalar, &Pair::anything, &Pair::dpp_under_exec, {5, 5, 5}, false, agreed, "permutes lanes after EXEC is written,"},
    {hazard_scalar, &Pair::anything, &Pair::div_fmas, {4, 4, 4}, false, agreed, "reads VCC"},
    {hazard_scalar, &Pair::anything, &Pair::selects_lane, {4, 4, 4}, false, agreed, "chooses a lane by a scalar register that a vector instruction writes,"},
    {hazard_scalar, &Pair::anything, &Pair::matrix_under_exec, {4, 4, 4}, false, table, "is a matrix instruction after EXEC is written,"},
    {hazard_scalar, &Pair::anything, &Pair::valu_reads_scalar, {none, 2, 2}, false, disputed, "reads a scalar register that a vector instruction writes,"},
    {hazard_scalar, &Pair::anything, &Pair::picks_under_exec, {none, 4, 4}, false, table, "picks a lane after EXEC is written,"},
    {hazard_scalar, &Pair::anything, &Pair::swaps_under_exec, {none, none, 4}, false, table, "swaps lanes after EXEC is written,"},
    // checkDPPHazards; the others: checkMAIHazards90A, checkPermlaneHazards, checkVALUHazards
    {hazard_vector, &Pair::anything, &Pair::permutes, {2, 2, 2}, false, agreed, "permutes it"},
    {hazard_vector, &Pair::anything, &Pair::matrix_reads_vector, {2, 2, 2}, false, table, "is a matrix instruction that reads it"},
    {hazard_vector, &Pair::anything, &Pair::swaps, {none, none, 2}, false, table, "swaps lanes of it"},
    {hazard_vector, &Pair::anything, &Pair::picks, {none, 1, 1}, false, table, "picks a lane of it"},
    // checkVALUHazards (hasTransForwardingHazard, hasDstSelForwardingHazard), checkMAIVALUHazards (dot products)
    {hazard_trans, &Pair::anything, &Pair::reads_vector, {none, 1, 1}, false, agreed, "reads the result of a transcendental instruction"},
    {hazard_partial, &Pair::anything, &Pair::uses_vector, {none, 1, 1}, false, table, "uses a register that was written in part,"},
    {hazard_dot, &Pair::anything, &Pair::reads_dot, {3, 3, 3}, false, table, "reads the result of a dot product"},
    {hazard_dot, &Pair::anything, &Pair::overwrites_dot, {3, 3, 3}, false, table, "overwrites the result of a dot product"},
    // checkVALUHazardsHelper; checkSetRegHazards and checkGetRegHazards; checkReadM0Hazards
    {hazard_store, &Pair::other_offset, &Pair::overwrites_store_data, {1, 2, 2}, false, agreed, "overwrites the data of a wide store"},
    {hazard_store, &Pair::scalar_offset, &Pair::overwrites_store_data, {none, 1, 1}, false, agreed, "overwrites the data of a wide store"},
    {hazard_setreg, &Pair::anything, &Pair::same_hardware_register, {2, 2, 2}, false, agreed, "uses the hardware register"},
    // Hand-written kernels that ship leave this one out 43,872 times in 2,357 of 2,871 objects.
    {hazard_m0, &Pair::anything, &Pair::anything, {1, 1, 1}, false, disputed, "uses M0"},
};
// clang-format on

// By bit, the index of its first entry: entries of one bit stand together.
constexpr auto first_entries = [] {
  std::array<std::size_t, std::countr_zero(std::uint16_t{hazard_m0}) + 1> first{};
  for (std::size_t i = std::size(entries); i-- > 0;) first[static_cast<std::size_t>(std::countr_zero(std::uint16_t{entries[i].bit}))] = i;
  return first;
}();

} // namespace

Hazard hazard_between(const HazardTraits& first, const HazardTraits& second, const TargetFacts& target, HazardEvidence least) {
  Hazard worst;
  unsigned both = static_cast<unsigned>(first.produces & second.consumes);
  const Pair pair{first, second};
  if ((both & hazard_matrix) != 0 && !pair.meets_matrix()) both &= ~unsigned{hazard_matrix};
  if (both == 0) return worst;
  for (; both != 0; both &= both - 1) {
    const auto place = static_cast<std::size_t>(std::countr_zero(both));
    for (std::size_t i = first_entries[place]; i < std::size(entries) && entries[i].bit == 1U << place; ++i) {
      const Entry& e = entries[i];
      if (e.evidence > least) continue;
      const int states = e.states[static_cast<std::size_t>(target.generation)] + (e.add_passes ? first.passes : 0);
      if (states > worst.states && (pair.*e.first)() && (pair.*e.second)()) worst = {states, e.what, e.evidence};
    }
  }
  return worst;
}

bool result_overwritten(const HazardTraits& first, const HazardTraits& second, std::span<const HazardTraits* const> since) {
  const RegisterRange result = first.use.write_list[0];
  const auto common = [](RegisterRange a, RegisterRange b) {
    const int begin = std::max(a.first, b.first), end = std::min(a.first + a.count, b.first + b.count);
    return RegisterRange{static_cast<std::uint16_t>(begin), static_cast<std::uint16_t>(std::max(end - begin, 0))};
  };
  const auto hidden = [&](RegisterRange r) {
    const RegisterRange part = common(r, result);
    return part.count == 0 || std::any_of(since.begin(), since.end(), [&](const HazardTraits* newer) {
             return common(part, newer->use.write_list[0]).count == part.count;
           });
  };
  const auto all_reads = second.use.reads(), all_writes = second.use.writes();
  return !since.empty() && std::all_of(all_reads.begin(), all_reads.end(), hidden) &&
         std::all_of(all_writes.begin(), all_writes.end(), hidden);
}

Hazard unforwarded_accumulation(const HazardTraits& first, const HazardTraits& second, const TargetFacts& target) {
  const RegisterRange result = first.use.write_list[0], c = second.accumulator;
  if (first.passes == 0 || second.passes == 0 || c.count < 2 || c != result) return {};
  HazardTraits shifted = second; // by one register: C overlaps the result, and is not it
  ++shifted.accumulator.first;
  const auto reads = shifted.use.read_list.begin() + shifted.use.read_count;
  *std::find(shifted.use.read_list.begin(), reads, c) = shifted.accumulator;
  return hazard_between(first, shifted, target);
}

int wide_store_states(const TargetFacts& target, bool scalar_offset) {
  HazardTraits store, overwriter;
  store.scalar_offset = scalar_offset;
  store.produces = overwriter.consumes = hazard_store;
  store.store_data = overwriter.use.write_list[overwriter.use.write_count++] = {reg::vgpr, 4};
  return hazard_between(store, overwriter, target).states;
}

int matrix_result_states(const MatrixShape& shape, const TargetFacts& target) {
  HazardTraits first, reader;
  first.produces = reader.consumes = hazard_matrix;
  reader.unit = HazardUnit::valu;
  first.passes = static_cast<std::uint8_t>(shape.passes);
  first.xdl = shape.xdl;
  first.f64 = shape.input == "f64";
  first.use.write_list[first.use.write_count++] = reader.use.read_list[reader.use.read_count++] = {reg::vgpr, 1};
  return hazard_between(first, reader, target).states;
}

} // namespace kiln::isa
