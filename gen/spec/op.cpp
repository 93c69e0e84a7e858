// Op: the registry, generated from gen/spec/ops.def.
#include "gen/spec/op.h"
#include <algorithm>
#include <bit>
#include <cmath>

namespace kiln {
namespace {

constexpr Accuracy ulps(double bound) { return {.ulp = bound}; }
constexpr Accuracy exactly() { return {}; }
constexpr Accuracy absolute_error(double bound) { return {.abs_error = bound}; }

// One struct an operation, so that the registry can hold plain function pointers for both precisions.
#define KILN_OP(id, arity, kind, device, reference, ...)                                                                                   \
  struct id##_function {                                                                                                                   \
    template <typename T> static T apply([[maybe_unused]] T a, [[maybe_unused]] T b, [[maybe_unused]] T c) {                               \
      return static_cast<T>(reference);                                                                                                    \
    }                                                                                                                                      \
  };
#define KILN_INTEGER_OP(id, arity, device, reference, ...)                                                                                 \
  std::uint32_t id##_function([[maybe_unused]] std::uint32_t a, [[maybe_unused]] std::uint32_t b, [[maybe_unused]] std::uint32_t c) {      \
    return reference;                                                                                                                      \
  }
#include "gen/spec/ops.def"

constexpr std::string_view sum_note = "n terms in any order: (n - 1) roundings of at most e = 2^-24 of the sum of magnitudes";
constexpr std::string_view mean_note = "as the sum, times the rounded 1 / n";
constexpr std::string_view product_note =
    "k products, exact, summed in any order: (k - 1) roundings of at most e = 2^-24 of the sum of magnitudes";
constexpr std::string_view scaled_product_note = "k products, exact, times the f32 product of their scales, in any order: (k + 1) "
                                                 "roundings of at most e = 2^-24 of the sum of magnitudes";
constexpr std::string_view mx_product_note = "k products, exact, summed in any order: (k - 1) roundings of at most e = 2^-24 of the sum of "
                                             "magnitudes; a number times its scale that is "
                                             "no normal number of f32 may count as 0 or an infinity";
constexpr std::string_view arg_note =
    "exact: the lowest column of the largest (smallest) element; NaN is passed over, and 0 results if no element beats an infinity";
constexpr std::string_view top_note = "exact: columns of the largest elements, the largest first, of those alike the lowest column first; "
                                      "NaN counts as minus infinity";
constexpr std::string_view scan_note = "the sum of the columns up to this one, as row_sum of them";
constexpr std::string_view extreme_note = "exact; NaN elements are ignored; only NaN gives -inf, inf, or 0 for absmax";

constexpr std::string_view marked_note = "exact; a NaN element gives NaN; 0 of no elements";

constexpr OpInfo registry[] = {
#define KILN_STRUCTURAL_OP(id, arity, kind, cost, note) OpInfo{#id, arity, OpKind::kind, "", nullptr, nullptr, exactly(), cost, note},
#define KILN_OP(id, arity, kind, device, reference, accuracy, cost, note)                                                                  \
  OpInfo{#id, arity, OpKind::kind, device, id##_function::apply<float>, id##_function::apply<double>, accuracy, cost, note},
#define KILN_INTEGER_OP(id, arity, device, reference, cost, note)                                                                          \
  OpInfo{#id, arity, OpKind::integer, device, nullptr, nullptr, exactly(), cost, note, id##_function},
#include "gen/spec/ops.def"
};

constexpr Op all[] = {
#define KILN_STRUCTURAL_OP(id, ...) Op::id,
#define KILN_OP(id, ...) Op::id,
#define KILN_INTEGER_OP(id, ...) Op::id,
#include "gen/spec/ops.def"
};

constexpr Op pointwise_list[] = {
#define KILN_OP(id, ...) Op::id,
#include "gen/spec/ops.def"
};

constexpr Op integer_list[] = {
#define KILN_INTEGER_OP(id, ...) Op::id,
#include "gen/spec/ops.def"
};

} // namespace

const OpInfo& info(Op op) { return registry[static_cast<std::size_t>(op)]; }

std::optional<Op> parse_op(std::string_view name) {
  const auto found = std::ranges::find(registry, name, &OpInfo::name);
  return found == std::end(registry) ? std::optional<Op>() : static_cast<Op>(found - registry);
}

std::span<const Op> all_ops() { return all; }
std::span<const Op> pointwise_ops() { return pointwise_list; }
std::span<const Op> integer_ops() { return integer_list; }

bool is_reduction(Op op) { return info(op).kind == OpKind::row_reduce || info(op).kind == OpKind::group_reduce; }

Op row_form(Op reduction) {
  constexpr int distance = static_cast<int>(Op::group_sum) - static_cast<int>(Op::row_sum); // ops.def has both in one order
  return info(reduction).kind == OpKind::group_reduce ? static_cast<Op>(static_cast<int>(reduction) - distance) : reduction;
}

} // namespace kiln
