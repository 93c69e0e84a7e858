// The instruction tables, one a family, and the look-up by mnemonic over all of them.
#pragma once
#include "isa_checks/exec/machine/inst.h"
#include <initializer_list>
#include <span>
#include <string_view>
#include <vector>

namespace kiln::exec {

using SemanticsTable = std::span<const Semantics>;

// An instruction with a handler of its own.
constexpr Semantics entry(std::string_view name, Handler handler, Type result = Type::none, std::initializer_list<Type> sources = {},
                          bool scalar_result = true) {
  Signature s;
  s.result = result;
  for (const Type t : sources) s.source[s.source_count++] = t;
  s.scalar_result = scalar_result;
  return {name, handler, s};
}

using GetTable = SemanticsTable();
GetTable f32_table, f64_table, f16_table, integer_table, compare_table, convert_table, scaled_convert_table, packed_table, rare_table,
    cross_lane_table, scalar_arithmetic_table, scalar_bits_table, scalar_compare_table, control_table, gpr_index_table, scalar_memory_table,
    vector_memory_table, lds_table, lds_transpose_table;
using GetTargetTable = SemanticsTable(bool fnuz); // what fp8 and bf8 mean depends on the architecture
GetTargetTable fp8_table, matrix_table;

// Makes the program's VALU instructions look at the index mode when they run; a program that never turns the mode on stays as it is.
// What such an instruction and s_movrel* read and write is known only then.
void prepare_index_mode(std::vector<Inst>& program);

// Null when the instruction is not modelled. `clamp` asks for the saturating form of an integer operation first.
const Semantics* find_semantics(std::string_view mnemonic, bool clamp, bool fp8_is_fnuz);

// The entry for an instruction that is not modelled. Its handler ends the run.
const Semantics& not_modelled_semantics();

} // namespace kiln::exec
