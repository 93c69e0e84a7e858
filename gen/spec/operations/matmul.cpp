// Matrix products: construction of their nodes, and what their operands must be.
#include "gen/error.h"
#include "gen/spec/attention.h"
#include "gen/spec/graph.h"
#include "gen/spec/product.h"
#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <utility>

namespace kiln {
namespace {

std::string subject_of(Op op) { return fmt::format("operation '{}'", info(op).name); }

// Operands in memory. `by_group`: scales with the groups in front, so that the last dimension is that of the rows.
struct MatrixRules {
  bool may_be_preshuffled = false, by_group = false, may_be_computed = false;
};
void require_matrix(Op op, std::string_view which, const Expr& e, const MatrixRules& rules = {}) {
  const auto [may_be_preshuffled, by_group, may_be_computed] = rules;
  const auto subject = fmt::format("{}, operand {}", subject_of(op), which);
  if (e.op() != Op::input && !may_be_computed)
    throw UserError(
        subject, fmt::format("it is a '{}', not an input", info(e.op()).name),
        "compute it in a kernel of its own: a product reads its operands from memory, or rows that are computed from a product");
  if (e.shape().size() != 2 && e.shape().size() != 3)
    throw UserError(subject, fmt::format("its shape {} has {} dimensions", to_text(e.shape()), e.shape().size()),
                    "give it two: [m, k] or [n, k]; with experts [tokens, top, k] or [experts, n, k]");
  if (e->layout == Layout::strided || (e->layout == Layout::preshuffled && !may_be_preshuffled))
    throw UserError(subject, fmt::format("it is {}", e->layout == Layout::strided ? "strided" : "preshuffled"), "use Layout::contiguous");
  if (e.shape().back().is_dynamic() && !by_group)
    throw UserError(subject, fmt::format("its last dimension '{}' is known only at launch", e.shape().back().name()),
                    "give k a number: kernels are specialised for it");
}

// Rows that are computed from another product: a phase of the launch leaves them in memory.
bool is_of_product(const Expr& e) {
  return std::ranges::any_of(nodes_in_order(std::span(&e, 1)), [](const Expr& node) { return info(node.op()).kind == OpKind::product; });
}

void require_matrices(Op op, const Expr& a, const Expr& b) {
  require_matrix(op, "a", a, {.may_be_computed = op == Op::matmul_nt && is_of_product(a)});
  require_matrix(op, "b", b, {.may_be_preshuffled = true});
  for (const Dim& dim : b.shape())
    if (dim.is_dynamic())
      throw UserError(subject_of(op), fmt::format("the rows '{}' of b are known only at launch", dim.name()),
                      "give n a number: kernels are specialised for it");
  if (a.shape().size() == 3 && b.shape().size() == 2)
    throw UserError(subject_of(op), fmt::format("a is {}, and b {} has no experts", to_text(a.shape()), to_text(b.shape())),
                    "give a the shape [m, k], or b the shape [experts, n, k]");
}

void require_same_k(Op op, const Expr& a, const Expr& b) {
  const Dim &k = a.shape().back(), &of_b = b.shape().back();
  if (!same_size(k, of_b))
    throw UserError(subject_of(op),
                    fmt::format("k is {} in a {} and {} in b {}", k.text(), to_text(a.shape()), of_b.text(), to_text(b.shape())),
                    "give both the same last dimension: b is [n, k], not [k, n]");
}

// A scale or zero point of type `type`: one for every group of `what`, in `rows` rows.
void require_scale(Op op, std::string_view which, const Expr& e, DType type, const Shape& shape, const std::string& what) {
  const bool by_group = which == "a_scale" && e.op() == Op::transpose; // of an input with the groups in front
  require_matrix(op, which, by_group ? e.operands()[0] : e, {.by_group = by_group});
  if (e.dtype() != type || !std::ranges::equal(e.shape(), shape, same_size))
    throw UserError(fmt::format("{}, operand {}", subject_of(op), which), fmt::format("it is {}, but {}", type_text(e), what),
                    fmt::format("give it {}{}", to_string(type), to_text(shape)));
}

// Zero points of 4 bits: eight in a word, those of a group after another.
void require_packed_zeros(const Expr& zero, const Expr& b, std::int64_t groups) {
  constexpr Op op = Op::matmul_nt_w4;
  require_matrix(op, "zero", zero);
  const std::int64_t n = (b.shape().end() - 2)->size();
  const auto subject = fmt::format("{}, operand zero", subject_of(op));
  if (n % 8)
    throw UserError(subject, fmt::format("it has 8 zero points a word, and b {} has {} rows", to_text(b.shape()), n),
                    "pad b to a multiple of 8 rows, or give zero points of 8 bits: u8[n, groups]");
  Shape shape = b.shape();
  shape.back() = n / 8;
  *(shape.end() - 2) = groups;
  if (!std::ranges::equal(zero.shape(), shape, same_size))
    throw UserError(subject, fmt::format("it is {}, but b {} has {} groups of {} rows", type_text(zero), to_text(b.shape()), groups, n),
                    fmt::format("give it i32{}: 8 zero points of 4 bits per word", to_text(shape)));
}

// An operand in memory that is no matrix.
void require_beside(Op op, std::string_view which, const Expr& e, DType type, const Shape& shape, const std::string& what) {
  const auto subject = fmt::format("{}, operand {}", subject_of(op), which);
  if (e.op() != Op::input)
    throw UserError(subject, fmt::format("it is a '{}', not an input", info(e.op()).name),
                    "compute it in a kernel of its own: a product reads its operands from memory");
  if (e.dtype() != type || e.shape().size() != shape.size() || !std::ranges::equal(e.shape(), shape, same_size))
    throw UserError(subject, fmt::format("it is {}, but {}", type_text(e), what),
                    fmt::format("give it {}{}", to_string(type), to_text(shape)));
  if (e->layout != Layout::contiguous) throw UserError(subject, "it is strided", "use Layout::contiguous");
}

bool is_16_bit(DType type) { return type == f16 || type == bf16; }
bool multiply_as_8_bit(DType a, DType b) { return (is_fp8(a) && is_fp8(b) && is_fnuz(a) == is_fnuz(b)) || (a == i8 && b == i8); }
bool can_multiply(DType a, DType b) {
  if (a == f32) return b == f32 || is_16_bit(b);
  if (is_16_bit(a)) return b == a || is_fp8(b) || b == i8;
  return multiply_as_8_bit(a, b);
}

// With the last dimension of `tensor` in blocks of `block`; its rows as well with `of_rows`.
Shape in_blocks(const Expr& tensor, std::int64_t k, std::int64_t block, bool of_rows = false) {
  Shape shape = tensor.shape();
  shape.back() = group_count(k, block);
  if (of_rows) shape[shape.size() - 2] = group_count(shape[shape.size() - 2].size(), block);
  return shape;
}

// Rows of 16-bit a that become b's fp8 inside the product.
void require_quantised(Op op, const Expr& a, const Expr& b, std::string_view what) {
  require_matrices(op, a, b);
  require_same_k(op, a, b);
  if (!is_16_bit(a.dtype()) || !is_fp8(b.dtype()))
    throw UserError(subject_of(op), fmt::format("there is no product of {}, {}, and {}", to_string(a.dtype()), what, to_string(b.dtype())),
                    "use f16 or bf16 for a, and an fp8 for b");
  if (b.shape().size() == 3)
    throw UserError(subject_of(op), fmt::format("b is {}, a matrix for each expert", to_text(b.shape())),
                    "quantise a in a kernel of its own: each of its rows is multiplied by several experts");
}

// With experts: one for each row of a, from which by_expert and sum_of_experts take what their experts' matrices give.
Expr make_product(Op op, std::vector<Expr> operands, std::int64_t group) {
  Shape shape = operands[0].shape();
  const Shape& b = operands[1].shape();
  shape.back() = b[b.size() - 2];
  return Expr(Node{.op = op, .dtype = f32, .shape = std::move(shape), .operands = std::move(operands), .group = group});
}

} // namespace

// Numbers as they are, multiplied or widened to those of the other operand.
static Expr plain_product(Expr a, Expr b) {
  constexpr Op op = Op::matmul_nt;
  require_matrices(op, a, b);
  require_same_k(op, a, b);
  if (!can_multiply(a.dtype(), b.dtype()))
    throw UserError(subject_of(op), fmt::format("there is no product of {} and {}", to_string(a.dtype()), to_string(b.dtype())),
                    "use f32 with itself, f16 or bf16; f16 or bf16 with itself, an fp8 or i8; fp8 with fp8 of the same kind; i8 with i8");
  return make_product(op, {std::move(a), std::move(b)}, 0);
}

static std::string text_of(const Operand& operand) {
  if (operand.prologue != Prologue::none)
    return fmt::format("rows that are {}", operand.prologue == Prologue::norm ? "normed" : "quantised");
  static constexpr std::string_view names[] = {
#define KILN_ENCODING(name) #name,
      KILN_ENCODINGS(KILN_ENCODING)
#undef KILN_ENCODING
  };
  const std::string rounded = operand.rounded == f32 ? "" : fmt::format(" rounded to {}", to_string(operand.rounded));
  return fmt::format("{} {}{}", names[static_cast<std::size_t>(operand.encoding)], to_string(operand.memory.dtype()), rounded);
}

Expr matmul_nt(Expr a, Expr b) {
  const std::optional<Operand> of_a = find_operand(a), of_b = find_operand(b);
  if (!of_a || !of_b || (a.op() == Op::input && b.op() == Op::input)) return plain_product(std::move(a), std::move(b));
  const auto scale = [](const Operand& operand) { return operand.scales_by_group ? transpose(operand.scales[0]) : operand.scales[0]; };
  const bool plain_a = a.op() == Op::input, plain_b = b.op() == Op::input, same_encoding = of_a->encoding == of_b->encoding;
  const bool decodes = plain_a && of_b->rounded == a.dtype();
  if (decodes && of_b->encoding == Encoding::int4) return matmul_nt_w4(a, of_b->memory, of_b->scales[0], of_b->scales[1], of_b->group);
  if (decodes && of_b->encoding != Encoding::plain) return matmul_nt_mx(a, of_b->memory, of_b->scales[0]);
  if (plain_b && of_a->rounded == b.dtype() && of_a->prologue == Prologue::quantise) return matmul_nt_quantised(of_a->memory, b);
  if (plain_b && of_a->rounded == b.dtype() && of_a->prologue == Prologue::norm)
    return matmul_nt_normed(of_a->memory, b, of_a->norm[0], of_a->norm[1], of_a->norm[2], of_a->epsilon);
  if (same_encoding && of_a->encoding == Encoding::block_scaled)
    return matmul_nt_scaled(of_a->memory, of_b->memory, scale(*of_a), of_b->scales[0]);
  if (same_encoding && of_a->encoding == Encoding::mx && of_a->rounded == f32 && of_b->rounded == f32)
    return matmul_nt_mx_mx(of_a->memory, of_b->memory, scale(*of_a), of_b->scales[0]);
  throw UserError(subject_of(Op::matmul_nt), fmt::format("there is no product of {} and {}", text_of(*of_a), text_of(*of_b)),
                  "decode weights to the type of a, prepare rows for the type of b, or scale both alike: docs/guide.md lists the operands");
}

Expr unpack4(Expr x) {
  const auto subject = subject_of(Op::unpack4);
  if (x.dtype() != u8 && x.dtype() != i32)
    throw UserError(subject, fmt::format("its operand is {}", type_text(x)), "give it u8, two numbers a byte, or i32, eight a word");
  if (x.shape().empty() || x.shape().back().is_dynamic())
    throw UserError(subject, fmt::format("its operand has shape {}", to_text(x.shape())), "give it columns, in number");
  Shape shape = x.shape();
  shape.back() = x.shape().back().size() * size_bits(x.dtype()) / 4;
  return Expr(Node{.op = Op::unpack4, .dtype = f32, .shape = std::move(shape), .operands = {std::move(x)}});
}

Expr ungroup_rows(Expr x, std::int64_t group, const Dim& rows) {
  const auto subject = subject_of(Op::ungroup_rows);
  if (group < 2 || rows.is_dynamic())
    throw UserError(subject, fmt::format("it makes {} rows of groups of {}", rows.text(), group), "give both in number, the group as 128");
  const std::int64_t groups = group_count(rows.size(), group);
  if (x.shape().size() < 2 || !same_size(*(x.shape().end() - 2), groups))
    throw UserError(
        subject, fmt::format("its operand has shape {}, but {} rows make {} groups of {}", to_text(x.shape()), rows.size(), groups, group),
        fmt::format("give it a value of {} rows", groups));
  Shape shape = x.shape();
  *(shape.end() - 2) = rows;
  const DType type = x.dtype();
  return Expr(Node{.op = Op::ungroup_rows, .dtype = type, .shape = std::move(shape), .operands = {std::move(x)}, .group = group});
}

Expr matmul_nt_scaled(Expr a, Expr b, Expr a_scale, Expr b_scale) {
  constexpr Op op = Op::matmul_nt_scaled;
  require_matrices(op, a, b);
  require_same_k(op, a, b);
  if (!multiply_as_8_bit(a.dtype(), b.dtype()))
    throw UserError(subject_of(op),
                    fmt::format("there is no block-scaled product of {} and {}", to_string(a.dtype()), to_string(b.dtype())),
                    "use fp8 with fp8 of the same kind, or i8 with i8");
  const std::int64_t k = a.shape().back().size(), groups = group_count(k, scale_block);
  require_scale(op, "a_scale", a_scale, f32, in_blocks(a, k, scale_block),
                fmt::format("a {} has {} groups of {} in each of its rows", to_text(a.shape()), groups, scale_block));
  const Shape blocks = in_blocks(b, k, scale_block, true);
  require_scale(op, "b_scale", b_scale, f32, blocks,
                fmt::format("b {} has {} by {} blocks of {} by {}", to_text(b.shape()), blocks[blocks.size() - 2].size(), groups,
                            scale_block, scale_block));
  return make_product(op, {std::move(a), std::move(b), std::move(a_scale), std::move(b_scale)}, 0);
}

Expr matmul_nt_w4(Expr a, Expr b, Expr scale, Expr zero, std::int64_t group) {
  constexpr Op op = Op::matmul_nt_w4;
  require_matrices(op, a, b);
  if (!is_16_bit(a.dtype()) || b.dtype() != u8)
    throw UserError(subject_of(op),
                    fmt::format("there is no product of {} and 4-bit numbers in {}", to_string(a.dtype()), to_string(b.dtype())),
                    "use f16 or bf16 for a, and u8 for b, with two numbers a byte");
  const std::int64_t k = a.shape().back().size(), of_b = b.shape().back().size() * 2;
  if (of_b != k)
    throw UserError(subject_of(op),
                    fmt::format("k is {} in a {}, but rows of b {} hold {} numbers", k, to_text(a.shape()), to_text(b.shape()), of_b),
                    "give b the shape [n, k/2]: two numbers a byte");
  if (group < 32 || group % 32 || group > max_dim_size)
    throw UserError(subject_of(op), fmt::format("the group size is {}", group), "use a multiple of 32: a lane reads 32 weights at a time");
  const std::int64_t groups = group_count(k, group);
  const auto what = fmt::format("b {} has {} groups of {} in each of its rows", to_text(b.shape()), groups, group);
  require_scale(op, "scale", scale, a.dtype(), in_blocks(b, k, group), what);
  if (zero.dtype() == i32) require_packed_zeros(zero, b, groups);
  else require_scale(op, "zero", zero, u8, in_blocks(b, k, group), what);
  return make_product(op, {std::move(a), std::move(b), std::move(scale), std::move(zero)}, group);
}

Expr matmul_nt_mx(Expr a, Expr b, Expr scale) {
  constexpr Op op = Op::matmul_nt_mx;
  require_matrices(op, a, b);
  require_same_k(op, a, b);
  if (!is_16_bit(a.dtype()) || b.dtype() != e2m1)
    throw UserError(subject_of(op),
                    fmt::format("there is no product of {} and MX numbers in {}", to_string(a.dtype()), to_string(b.dtype())),
                    "use f16 or bf16 for a, and e2m1 for b");
  const bool nvfp4 = scale.dtype() == e4m3fn;
  const DType type = nvfp4 ? e4m3fn : e8m0;
  const std::int64_t block = nvfp4 ? nvfp4_block : mx_block;
  const Shape blocks = in_blocks(b, b.shape().back().size(), block);
  require_scale(op, "scale", scale, type, blocks,
                fmt::format("b {} has {} blocks of {} in each of its rows", to_text(b.shape()), blocks.back().size(), block));
  return make_product(op, {std::move(a), std::move(b), std::move(scale)}, 0);
}

Expr matmul_nt_mx_mx(Expr a, Expr b, Expr a_scale, Expr b_scale) {
  constexpr Op op = Op::matmul_nt_mx_mx;
  require_matrices(op, a, b);
  require_same_k(op, a, b);
  if (!is_mx_element(a.dtype()) || (b.dtype() != a.dtype() && b.dtype() != e2m1))
    throw UserError(subject_of(op),
                    fmt::format("there is no product of {} and {} with scales of blocks", to_string(a.dtype()), to_string(b.dtype())),
                    "use e2m1, e4m3fn or e5m2 for both, or e2m1 for b alone");
  if (a.shape().back().size() % mx_block)
    throw UserError(subject_of(op), fmt::format("k is {}, no whole blocks of {}", a.shape().back().size(), mx_block),
                    fmt::format("pad k to {}", group_count(a.shape().back().size(), mx_block) * mx_block));
  const auto require = [&](const char* which, const Expr& scale, const Expr& of) {
    const Shape blocks = in_blocks(of, of.shape().back().size(), mx_block);
    require_scale(
        op, which, scale, e8m0, blocks,
        fmt::format("{} {} has {} blocks of {} in each of its rows", which[0], to_text(of.shape()), blocks.back().size(), mx_block));
  };
  require("a_scale", a_scale, a);
  require("b_scale", b_scale, b);
  return make_product(op, {std::move(a), std::move(b), std::move(a_scale), std::move(b_scale)}, 0);
}

Expr matmul_nt_quantised(Expr a, Expr b) {
  constexpr Op op = Op::matmul_nt_quantised;
  require_quantised(op, a, b, "quantised");
  return make_product(op, {std::move(a), std::move(b)}, 0);
}

Expr matmul_nt_normed(Expr a, Expr b, Expr weight, Expr squares, Expr scale, float epsilon) {
  constexpr Op op = Op::matmul_nt_normed;
  require_quantised(op, a, b, "normed and quantised");
  const std::int64_t k = a.shape().back().size();
  require_beside(op, "weight", weight, a.dtype(), {k}, fmt::format("a {} has {} columns", to_text(a.shape()), k));
  const auto of_squares = fmt::format("{}, operand squares", subject_of(op));
  if (squares.op() == Op::input && squares.shape().size() == 2 && squares.shape()[1].is_dynamic())
    throw UserError(of_squares, fmt::format("how many parts '{}' a row has is known only at launch", squares.shape()[1].name()),
                    "give the last dimension a number");
  const std::int64_t parts = squares.shape().empty() || squares.shape().back().is_dynamic() ? 1 : squares.shape().back().size();
  if (parts > max_norm_parts)
    throw UserError(of_squares, fmt::format("a row has {} parts", parts), fmt::format("sum larger groups: at most {}", max_norm_parts));
  require_beside(op, "squares", squares, f32, {a.shape()[0], parts}, fmt::format("each row of a {} has parts", to_text(a.shape())));
  require_beside(op, "scale", scale, f32, {}, "all numbers of a have one");
  if (!(epsilon > 0) || !std::isfinite(epsilon))
    throw UserError(subject_of(op), fmt::format("epsilon is {}", epsilon), "use a positive number: rows of zeros have no norm");
  return make_product(op, {std::move(a), std::move(b), std::move(weight), std::move(squares), std::move(scale), constant(epsilon)}, 0);
}

float number_of(const Expr& operand) {
  if (operand.op() == Op::constant) return operand->value;
  throw UserError(
      fmt::format("operand '{}'", operand.op() == Op::input || operand.op() == Op::scalar ? operand->name : info(operand.op()).name),
      "it stands where a number has to", "write a number, as 1e-5: the kernel is specialised for it");
}

Expr columns(Expr product, std::int64_t first, std::int64_t count) {
  const std::string subject = "operation 'columns'";
  const OpKind kind = info(product.op()).kind;
  if (kind != OpKind::product && kind != OpKind::experts && !find_cache_operand(product))
    throw UserError(subject, fmt::format("its operand is a '{}'", info(product.op()).name),
                    "take columns of a matmul_nt, or of the cache that attention reads: other values are computed where they are used");
  if (product.shape().back().is_dynamic())
    throw UserError(subject, fmt::format("the columns of its operand, '{}', are known only at launch", product.shape().back().name()),
                    "give the operand's last dimension a number");
  const std::int64_t n = product.shape().back().size();
  if (first < 0 || count < 1 || first > n || count > n - first)
    throw UserError(subject, fmt::format("{} columns from {} on do not lie in the operand's {}", count, first, n),
                    fmt::format("use first from 0 and first + count up to {}", n));
  Shape shape = product.shape();
  shape.back() = count;
  return Expr(Node{.op = Op::columns, .dtype = product.dtype(), .shape = std::move(shape), .operands = {product}, .first = first});
}

} // namespace kiln
