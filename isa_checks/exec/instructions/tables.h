// The instruction tables, one a family, and the look-up by mnemonic over all of them.
#pragma once
#include "isa_checks/exec/machine/inst.h"
#include <span>
#include <string_view>

namespace kiln::exec {

using Table = std::span<const Semantics>;

Table f32_table();
Table f64_table();
Table f16_table();
Table integer_table();
Table compare_table();
Table convert_table();
Table fp8_table(bool fnuz); // what fp8 and bf8 mean depends on the architecture
Table scaled_convert_table();
Table packed_table();
Table rare_table();
Table cross_lane_table();
Table matrix_table(bool fnuz);
Table scaled_matrix_table();
Table scalar_arithmetic_table();
Table scalar_bits_table();
Table scalar_compare_table();
Table control_table();
Table gpr_index_table();
Table scalar_memory_table();
Table global_table();  // flat_, global_ and scratch_
Table buffer_table();
Table lds_table();
Table lds_transpose_table();

// Null when the instruction is not modelled. `clamp` asks for the saturating form of an integer operation first.
const Semantics* find_semantics(std::string_view mnemonic, bool clamp, bool fp8_is_fnuz);

// Of an instruction that is not modelled: ends the run.
const Semantics& not_modelled_semantics();

} // namespace kiln::exec
