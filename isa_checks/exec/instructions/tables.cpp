// Look-up by mnemonic over all instruction tables, and the properties of operand types.
#include "isa_checks/exec/instructions/tables.h"
#include <string>
#include <unordered_map>

namespace kiln::exec {
namespace {

using Index = std::unordered_map<std::string_view, const Semantics*>;

Index make_index(bool fnuz) {
  Index index;
  const auto add = [&](SemanticsTable table) {
    for (const Semantics& s : table) index.emplace(s.name, &s);
  };
  for (GetTable* const table :
       {f32_table, f64_table, f16_table, integer_table, compare_table, convert_table, scaled_convert_table, packed_table, rare_table,
        cross_lane_table, scalar_arithmetic_table, scalar_bits_table, scalar_compare_table, control_table, scalar_memory_table,
        vector_memory_table, lds_table, lds_transpose_table, gpr_index_table})
    add(table());
  for (GetTargetTable* const table : {fp8_table, matrix_table}) add(table(fnuz));
  return index;
}

} // namespace

const Semantics* find_semantics(std::string_view mnemonic, bool clamp, bool fp8_is_fnuz) {
  static const Index ocp = make_index(false), fnuz = make_index(true);
  const Index& index = fp8_is_fnuz ? fnuz : ocp;
  if (clamp)
    if (const auto at = index.find(std::string(mnemonic) + " clamp"); at != index.end()) return at->second;
  const auto at = index.find(mnemonic);
  return at == index.end() ? nullptr : at->second;
}

int registers(Type type) {
  switch (type) {
  case Type::none: return 0;
  case Type::u64:
  case Type::i64:
  case Type::f64:
  case Type::u32x2:
  case Type::f32x2:
  case Type::mask: return 2;
  case Type::u32x3: return 3;
  case Type::f32x4:
  case Type::u32x4: return 4;
  case Type::u32x6: return 6;
  case Type::u32x8: return 8;
  case Type::f32x16: return 16;
  case Type::f32x32: return 32;
  default: return 1;
  }
}

bool is_float(Type type) {
  return type == Type::f32 || type == Type::f16 || type == Type::bf16 || type == Type::f64 || type == Type::f16x2 || type == Type::f32x2 ||
         type == Type::mixed;
}

std::string_view to_string(InstClass cls) {
  constexpr std::string_view names[inst_class_count] = {"valu", "trans", "matrix", "salu",    "smem",   "vmem",
                                                        "lds",  "wait",  "nop",    "barrier", "branch", "other"};
  return names[static_cast<int>(cls)];
}

} // namespace kiln::exec
