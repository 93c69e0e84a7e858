// Vector comparisons: v_cmp_* and v_cmpx_* of every type, and v_cmp_class.
#include "isa_checks/exec/instructions/tables.h"
#include "isa_checks/exec/machine/lanes.h"
#include "isa_checks/exec/machine/mode.h"
#include "isa_checks/exec/numbers/float_ops.h"

namespace kiln::exec {
namespace {

template <class T> auto value(T x) {
  if constexpr (std::is_same_v<T, Half>) return to_float(x);
  else return x;
}

// One comparison under both its names.
#define KILN_COMPARE(name, T, condition)                                                                                                   \
  exact<[](T s0, T s1) {                                                                                                                   \
    [[maybe_unused]] const auto a = value(s0);                                                                                             \
    [[maybe_unused]] const auto b = value(s1);                                                                                             \
    return (condition);                                                                                                                    \
  }>("v_cmp_" name),                                                                                                                       \
      exact<[](T s0, T s1) {                                                                                                               \
        [[maybe_unused]] const auto a = value(s0);                                                                                         \
        [[maybe_unused]] const auto b = value(s1);                                                                                         \
        return (condition);                                                                                                                \
      }>("v_cmpx_" name)

#define KILN_COMPARE_INTEGER(suffix, T)                                                                                                    \
  KILN_COMPARE("f_" suffix, T, false), KILN_COMPARE("lt_" suffix, T, a < b), KILN_COMPARE("eq_" suffix, T, a == b),                        \
      KILN_COMPARE("le_" suffix, T, a <= b), KILN_COMPARE("gt_" suffix, T, a > b), KILN_COMPARE("ne_" suffix, T, a != b),                  \
      KILN_COMPARE("ge_" suffix, T, a >= b), KILN_COMPARE("t_" suffix, T, true)

#define KILN_COMPARE_FLOAT(suffix, T)                                                                                                      \
  KILN_COMPARE("f_" suffix, T, false), KILN_COMPARE("lt_" suffix, T, a < b), KILN_COMPARE("eq_" suffix, T, a == b),                        \
      KILN_COMPARE("le_" suffix, T, a <= b), KILN_COMPARE("gt_" suffix, T, a > b), KILN_COMPARE("lg_" suffix, T, a<b || a> b),             \
      KILN_COMPARE("ge_" suffix, T, a >= b), KILN_COMPARE("o_" suffix, T, a == a && b == b),                                               \
      KILN_COMPARE("u_" suffix, T, a != a || b != b), KILN_COMPARE("nge_" suffix, T, !(a >= b)),                                           \
      KILN_COMPARE("nlg_" suffix, T, !(a < b || a > b)), KILN_COMPARE("ngt_" suffix, T, !(a > b)),                                         \
      KILN_COMPARE("nle_" suffix, T, !(a <= b)), KILN_COMPARE("neq_" suffix, T, a != b), KILN_COMPARE("nlt_" suffix, T, !(a < b)),         \
      KILN_COMPARE("tru_" suffix, T, true)

constexpr auto class16 = [](Half x, std::uint32_t wanted) { return float_class(x.bits, 5, 10, wanted); };
constexpr auto class32 = [](float x, std::uint32_t wanted) { return float_class(as_bits(x), 8, 23, wanted); };
constexpr auto class64 = [](double x, std::uint32_t wanted) { return float_class(as_bits(x), 11, 52, wanted); };

constexpr Semantics table[] = {
    KILN_COMPARE_INTEGER("i16", std::int16_t), KILN_COMPARE_INTEGER("u16", std::uint16_t),
    KILN_COMPARE_INTEGER("i32", std::int32_t), KILN_COMPARE_INTEGER("u32", std::uint32_t),
    KILN_COMPARE_INTEGER("i64", std::int64_t), KILN_COMPARE_INTEGER("u64", std::uint64_t),
    KILN_COMPARE_FLOAT("f16", Half),           KILN_COMPARE_FLOAT("f32", float),
    KILN_COMPARE_FLOAT("f64", double),         lanes<class16>("v_cmp_class_f16"),
    lanes<class16>("v_cmpx_class_f16"),        lanes<class32>("v_cmp_class_f32"),
    lanes<class32>("v_cmpx_class_f32"),        lanes<class64>("v_cmp_class_f64"),
    lanes<class64>("v_cmpx_class_f64"),
};

} // namespace

SemanticsTable compare_table() { return table; }

} // namespace kiln::exec
