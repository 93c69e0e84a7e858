// Op: the registry, generated from gen/spec/ops.def.
#include "gen/spec/op.h"
#include <array>
#include <cmath>

namespace kiln {
namespace {

constexpr Accuracy ulps(double bound) { return {.ulp = bound}; }
constexpr Accuracy exactly() { return {}; }
constexpr Accuracy absolute_error(double bound) { return {.abs_error = bound}; }

// One struct an operation, so that the registry can hold plain function pointers for both precisions.
#define KILN_OP(id, arity, kind, device, reference, ...)                                                               \
  struct id##_function {                                                                                               \
    template <typename T>                                                                                              \
    static T apply([[maybe_unused]] T a, [[maybe_unused]] T b, [[maybe_unused]] T c) {                                 \
      return static_cast<T>(reference);                                                                                \
    }                                                                                                                  \
  };
#include "gen/spec/ops.def"
#undef KILN_OP

constexpr OpInfo structural(std::string_view name, int arity, OpKind kind, Accuracy accuracy, int cost,
                            std::string_view note) {
  return {name, arity, kind, "", nullptr, nullptr, accuracy, cost, note};
}

constexpr std::string_view sum_note = "n terms in any order: (n - 1) roundings of at most e = 2^-24 of the sum of magnitudes";
constexpr std::string_view mean_note = "as the sum, times the rounded 1 / n";
constexpr std::string_view product_note =
    "k products, exact, summed in any order: (k - 1) roundings of at most e = 2^-24 of the sum of magnitudes";
constexpr std::string_view scaled_product_note =
    "k products, exact, times the f32 product of their scales, in any order: (k + 1) roundings of at most e = 2^-24 of the sum of magnitudes";
constexpr std::string_view extreme_note = "exact; NaN elements are ignored; only NaN gives -inf, inf, or 0 for absmax";

constexpr OpInfo registry[] = {
    structural("input", 0, OpKind::leaf, exactly(), 0, "exact: every type but i32 converts to f32 without rounding"),
    structural("scalar", 0, OpKind::leaf, exactly(), 0, "exact"),
    structural("constant", 0, OpKind::leaf, exactly(), 0, "exact"),
    structural("cast", 1, OpKind::cast, exactly(), 1, "one rounding to nearest even; see from_f32"),
    structural("ungroup", 1, OpKind::ungroup, exactly(), 0, "exact"),
    structural("row_sum", 1, OpKind::row_reduce, exactly(), 1, sum_note),
    structural("row_mean", 1, OpKind::row_reduce, exactly(), 1, mean_note),
    structural("row_max", 1, OpKind::row_reduce, exactly(), 1, extreme_note),
    structural("row_min", 1, OpKind::row_reduce, exactly(), 1, extreme_note),
    structural("row_absmax", 1, OpKind::row_reduce, exactly(), 1, extreme_note),
    structural("group_sum", 1, OpKind::group_reduce, exactly(), 1, sum_note),
    structural("group_mean", 1, OpKind::group_reduce, exactly(), 1, mean_note),
    structural("group_max", 1, OpKind::group_reduce, exactly(), 1, extreme_note),
    structural("group_min", 1, OpKind::group_reduce, exactly(), 1, extreme_note),
    structural("group_absmax", 1, OpKind::group_reduce, exactly(), 1, extreme_note),
    structural("matmul_nt", 2, OpKind::product, exactly(), 0, product_note),
    structural("matmul_nt_scaled", 4, OpKind::product, exactly(), 0, scaled_product_note),
    structural("matmul_nt_w4", 4, OpKind::product, exactly(), 0, product_note),
    structural("columns", 1, OpKind::columns, exactly(), 0, "exact"),
#define KILN_OP(id, arity, kind, device, reference, accuracy, cost, note)                                              \
  OpInfo{#id, arity, OpKind::kind, device, id##_function::apply<float>, id##_function::apply<double>, accuracy, cost, note},
#include "gen/spec/ops.def"
#undef KILN_OP
};

constexpr Op pointwise[] = {
#define KILN_OP(id, ...) Op::id,
#include "gen/spec/ops.def"
#undef KILN_OP
};

} // namespace

const OpInfo& info(Op op) { return registry[static_cast<std::size_t>(op)]; }

std::optional<Op> parse_op(std::string_view name) {
  for (std::size_t i = 0; i < std::size(registry); ++i)
    if (registry[i].name == name) return static_cast<Op>(i);
  return {};
}

std::span<const Op> pointwise_ops() { return pointwise; }

bool is_reduction(Op op) { return info(op).kind == OpKind::row_reduce || info(op).kind == OpKind::group_reduce; }

} // namespace kiln
