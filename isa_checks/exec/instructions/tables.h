// The instruction tables, one a family, and the look-up by mnemonic over all of them.
#pragma once
#include "isa_checks/exec/machine/inst.h"
#include <span>
#include <string_view>

namespace kiln::exec {

using SemanticsTable = std::span<const Semantics>;

SemanticsTable f32_table();
SemanticsTable f64_table();
SemanticsTable f16_table();
SemanticsTable integer_table();
SemanticsTable compare_table();
SemanticsTable convert_table();
SemanticsTable fp8_table(bool fnuz); // what fp8 and bf8 mean depends on the architecture
SemanticsTable scaled_convert_table();
SemanticsTable packed_table();
SemanticsTable rare_table();
SemanticsTable cross_lane_table();
SemanticsTable matrix_table(bool fnuz);
SemanticsTable scaled_matrix_table();
SemanticsTable scalar_arithmetic_table();
SemanticsTable scalar_bits_table();
SemanticsTable scalar_compare_table();
SemanticsTable control_table();
SemanticsTable gpr_index_table();
SemanticsTable scalar_memory_table();
SemanticsTable global_table(); // flat_, global_ and scratch_
SemanticsTable buffer_table();
SemanticsTable lds_table();
SemanticsTable lds_transpose_table();

// Null when the instruction is not modelled. `clamp` asks for the saturating form of an integer operation first.
const Semantics* find_semantics(std::string_view mnemonic, bool clamp, bool fp8_is_fnuz);

// The entry for an instruction that is not modelled. Its handler ends the run.
const Semantics& not_modelled_semantics();

} // namespace kiln::exec
