// Expr: an immutable graph of what to compute. Operators build it; all maths is f32; every rounding is a cast.
#pragma once
#include "gen/spec/dim.h"
#include "gen/spec/dtype.h"
#include "gen/spec/op.h"
#include <initializer_list>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace kiln {

struct Node;

// Walks over a spec recurse, with at most 0.6 KB a level (print, clang 21 -O2), and an engine's thread may have 256 KiB of stack.
inline constexpr int max_depth = 400;

class Expr {
public:
  Expr(double value);       // a constant, rounded to f32 (see whole_number); implicit on purpose: x * 2.0
  explicit Expr(Node node); // throws UserError for more than max_depth operations one upon another
  const Node& node() const { return *node_; }
  const Node* operator->() const { return node_.get(); }
  Op op() const;
  DType dtype() const;
  const Shape& shape() const;
  std::span<const Expr> operands() const;
  bool same_node(const Expr& other) const { return node_ == other.node_; }

private:
  std::shared_ptr<const Node> node_;
};

// How an input lies in memory. Dims after the first are contiguous; the first may have a leading stride, in elements,
// that is a run-time kernel argument `<name>_stride` (at least the row's size, a multiple of the plan's vector width).
// Preshuffled: the order in which preshuffle() of gen/spec/preshuffle.h puts the rows of a matrix; for operand b of products only.
enum class Layout : std::uint8_t { contiguous, strided, preshuffled };

// One node. Pointwise results are f32 (or bool for comparisons and logic); casts have their target type.
struct Node {
  Op op;
  DType dtype;
  Shape shape = {}; // [] is a scalar
  std::vector<Expr> operands = {};
  std::string name = {};              // Op::input, Op::scalar
  Layout layout = Layout::contiguous; // Op::input
  float value = 0;                    // Op::constant
  std::int64_t whole = 0;             // Op::constant of i32: the number as it is written
  std::int64_t group = 0;             // group reductions, Op::ungroup, Op::matmul_nt_w4
  bool saturate = true;               // Op::cast to fp8
  std::int64_t first = 0;             // Op::columns, Op::unstack
  std::int64_t step = 0;     // Op::partner, Op::pair_sign, Op::shift_columns: distance; Op::tile, Op::repeat: times; Op::row_top: how many;
                             // Op::expert_order, Op::expert_offsets: experts
  bool checked = false;      // Op::gather, Op::scatter: see IndexOptions
  bool duplicates = false;   // Op::scatter
  bool in_registers = false; // Op::partner, once lower_partners of gen/plan/view.h chose so
  int depth = 0;             // operations one upon another, this one included; Expr counts them
  int line = 0;              // of the spec's text that says it, once with_lines gave it; no part of what the node is
};

// A tensor in global memory. Shapes broadcast right-aligned as in NumPy: with x of [rows, cols], [cols] is one value a
// column, [rows, 1] one value a row, [] (or [1]) one value for all. Throws UserError on a bad name or shape.
Expr input(std::string name, DType type, Shape shape, Layout layout = Layout::contiguous);
// A number that the launch passes by value (f32 or i32).
Expr scalar(std::string name, DType type = DType::f32);
Expr constant(float value);
// The same of a whole number that f32 does not hold. It is f32 beside f32, and what it is, modulo 2^32, beside i32.
Expr whole_number(std::int64_t number);

// The explicit rounding. fp8 saturates unless asked not to; see from_f32 for the exact rules.
Expr cast(DType type, Expr x);
Expr cast_nonsaturating(DType type, Expr x); // fp8 only

// Reductions of the last dimension, which stays with size 1: [rows, cols] -> [rows, 1].
Expr row_sum(Expr x);
Expr row_mean(Expr x);
Expr row_max(Expr x);
Expr row_min(Expr x);
Expr row_absmax(Expr x);
// As absmax, but NaN if any element is.
Expr row_absmax_nan(Expr x);
// The column of the largest (smallest) element, the lowest of those that are alike. NaN is passed over; 0 if all are -inf (inf) or NaN.
Expr row_argmax(Expr x);
Expr row_argmin(Expr x);
// log(sum(exp(x))) without overflow: row_max and row_sum of it. Minus infinity for a row of nothing else.
Expr row_logsumexp(const Expr& x);
// The columns of the k largest elements of each row, the largest first and of those alike the lowest column first: [rows, cols] ->
// [rows, k]. NaN counts as minus infinity. k is from 1 to all columns, which are 2^24 at most; more than 16, or of more than 1024 columns,
// are of an input. Values of this shape are one a rank: operations on them are as any other, a row reduction of them is one a row, and a
// running sum goes from rank to rank; of more than 256 ranks, or of more than 262144 columns, there are pointwise operations alone.
Expr row_top(Expr x, std::int64_t k);
// The elements of x at the columns that `top`, a row_top, names: [rows, cols] -> [rows, k].
Expr pick(Expr x, Expr top);
// The sum of the columns up to and with each one.
Expr row_cumsum(Expr x);
// A row_top of more ranks, or of more columns than these, sorts the row. A column is a number in f32, exact up to 2^24.
inline constexpr std::int64_t max_selected_ranks = 256, max_selected_columns = 1 << 18, max_ranked_columns = 1 << 24;
inline constexpr std::int64_t max_wave_ranks = 16, max_wave_columns = 1024; // of any value: a wave holds the row
// Reductions of every `group` consecutive elements of the last dimension: [rows, cols] -> [rows, ceil(cols/group)].
// `group` is a power of two from 2 to 512. The last group of a row may be partial.
Expr group_sum(Expr x, std::int64_t group);
Expr group_mean(Expr x, std::int64_t group);
Expr group_max(Expr x, std::int64_t group);
Expr group_min(Expr x, std::int64_t group);
Expr group_absmax(Expr x, std::int64_t group);
Expr group_absmax_nan(Expr x, std::int64_t group);
// Back from one value a group to one value an element: [rows, ceil(cols/group)] -> [rows, cols].
Expr ungroup(Expr x, std::int64_t group, const Dim& cols);

// What is one a group, with the groups in front: [rows, groups] -> [groups, rows], the order in which some products read scales. It
// stands directly below an output. An input [groups, rows] so transposed is an a_scale: of matmul_nt_scaled and matmul_nt_mx_mx.
Expr transpose(Expr x);
// The matrix product a x b^T, [m, k] x [n, k] -> [m, n], in f32: every product of two elements exact, the sum in any order.
// `a` and `b` are inputs, contiguous, with k in number. m is a run-time size of at most 128, or a number. `a` may be computed from another
// product, with plain `b`: f32, or the type of a cast.
// Types: f16 or bf16 with itself, an fp8 or i8; fp8 with fp8, i8 with i8.
// Or they are expressions of inputs that say how numbers are decoded, or rows prepared: those that the products below stand for. Scales
// that elements of a group or a row have in common are taken out of the sums. docs/guide.md lists them. A product that is written out so
// is the one below: the same text, the same kernel.
Expr matmul_nt(Expr a, Expr b);
// Numbers of 4 bits, 0 to 15, the low half of a byte first: u8 [..., n] -> [..., 2 n], i32 [..., n] -> [..., 8 n]. And back from one value
// a group of rows to one a row: [..., ceil(rows/group), cols] -> [..., rows, cols]. Both stand in an operand of a product alone.
Expr unpack4(Expr x);
Expr ungroup_rows(Expr x, std::int64_t group, const Dim& rows);
// The product of fp8 (or i8) operands with one f32 scale for every 128 elements of a row of a, and for every block of 128 rows
// by 128 elements of b: a_scale is [m, ceil(k/128)], b_scale [ceil(n/128), ceil(k/128)]. The sum over the groups g of k of
// a_scale[m, g] * b_scale[n / 128, g] * (the sum over k in g of a * b). The product of the two scales is rounded to f32.
Expr matmul_nt_scaled(Expr a, Expr b, Expr a_scale, Expr b_scale);
// The product with weights of 4 bits: a is f16 or bf16 [m, k]; b is u8 [n, k/2] with two numbers q a byte, the one of the even k
// in the low half; scale is of a's type [n, ceil(k/group)], zero u8 [n, ceil(k/group)]; group is a multiple of 32. A weight is
// cast(type of a, (q - zero) * scale), rounding included. Zero points of 4 bits are i32 [ceil(k/group), n/8], the shape of AWQ and GPTQ:
// that of row r of b is (word r / 8 >> 4 * (r % 8)) & 15.
Expr matmul_nt_w4(Expr a, Expr b, Expr scale, Expr zero, std::int64_t group);
// The product with MXFP4 weights: a is f16 or bf16 [m, k], b e2m1 [n, k], scale e8m0 [n, k/32]. A weight is cast(type of a, b * scale),
// rounding included: exact in bf16, and in f16 unless the scale leaves its range. With NVFP4 weights scale is e4m3fn [n, k/16], and always
// exact; the f32 scale of the whole matrix is a factor of the result.
Expr matmul_nt_mx(Expr a, Expr b, Expr scale);
// The product of MX operands: a is e2m1, e4m3fn or e5m2 [m, k] with a_scale e8m0 [m, k/32]; b is of a's type, or e2m1, [n, k] with b_scale
// e8m0 [n, k/32]. The sum of (a * its scale) * (b * its scale). A number times its scale that is no normal number of f32 may count as 0, or
// as an infinity.
Expr matmul_nt_mx_mx(Expr a, Expr b, Expr a_scale, Expr b_scale);
// The product of rows that are quantised to b's type first: a is f16 or bf16 [m, k], b an fp8 [n, k]. With r the absmax of a row, or 2^-100
// where that is larger, and `most` the largest number of b's type: the row counts as cast(type of b, a * (most / r)), and its sums are
// multiplied by r / most. Both quotients are IEEE ones. An infinity makes its row NaN.
Expr matmul_nt_quantised(Expr a, Expr b);
// The product of rows that are normed and quantised to b's type first: a is f16 or bf16 [m, k], b an fp8 [n, k], weight of a's type [k],
// squares f32 [m, parts], the numbers whose sum is that of the squares of a's row, as a kernel before leaves them with group_sum; scale f32
// [], and epsilon a positive number. With f = rsqrt(row_sum(squares) / k + epsilon) / scale, a row counts as cast(type of b, a * f *
// weight) and its sums are multiplied by scale.
Expr matmul_nt_normed(Expr a, Expr b, Expr weight, Expr squares, Expr scale, float epsilon);
float number_of(const Expr& operand); // of a constant; throws UserError for anything else
inline constexpr std::int64_t max_norm_parts = 4096;
inline constexpr std::int64_t scale_block = 128; // rows and elements that share a scale in matmul_nt_scaled

// ---- experts: a pair is a token and one of the `top` experts that it goes to; pair token * top + rank
// The pairs in the order of their experts, and those of one expert in their own order: [tokens, top], read as one list. `experts` is an
// i32 input [tokens, top], or a row_top of a product. Numbers that name none of the `count` experts come last.
Expr expert_order(Expr experts, std::int64_t count);
// The place in that order at which the pairs of each expert begin, and behind the last one the place where they end: [count + 1].
Expr expert_offsets(Expr experts, std::int64_t count);
// Products may have a matrix for each expert: b [experts, n, k], its scales with the experts in front, and a [tokens, k], or [tokens,
// top, k] with a row per pair. by_expert takes each pair's product with its expert's matrix: [tokens, top, n]. `order` is i32 [tokens,
// top], `offsets` i32 [experts + 1], as expert_order and expert_offsets make them.
Expr by_expert(Expr product, Expr order, Expr offsets);
// The sum over a token's pairs of those, each times its weight: [tokens, n]. `weights` is f32 [tokens, top].
Expr sum_of_experts(Expr product, Expr order, Expr offsets, Expr weights);
inline constexpr std::int64_t max_experts = 1024;
// Columns first, first + 1, ... first + count - 1 of a matrix product.
Expr columns(Expr product, std::int64_t first, std::int64_t count);

// ---- indices and other places. An index is an input of i32 or i64 whose last dimension is 1: it names a row, that is one index of the
// first dimension of another tensor. A negative index names no row.

struct IndexOptions {
  // What an index beyond the last row does. Not checked. It is undefined on a GPU, a finding on an emulated device and
  // a UserError of evaluate. Checked: gather takes the last row, scatter writes nothing.
  bool checked = false;
  // scatter: two indices may name one row, of which every element then is one of theirs. Else that is refused as above.
  bool duplicates = false;
};
// The rows of `table` that `index` names, zeros where it names none. With table [n, ...rest] the result has the shape that
// `index` and `rest` broadcast to: [tokens, 1] of [n, cols] is [tokens, cols], [tokens, 1, 1] of [n, heads, cols] is
// [tokens, heads, cols]. `table` is an input of
// one row or more; the kernel does not use it for anything else.
Expr gather(Expr table, Expr index, IndexOptions options = {});
// `target` with the rows that `index` names replaced by those of `value`, rounded to its type (fp8 saturates). `value` has the shape of
// gather(target, index). `target` is an input; the result is an output in place of it, and nothing else.
Expr scatter(Expr target, Expr index, Expr value, IndexOptions options = {});
// The index of each element along the one dimension of `shape` that is not 1: iota({cols}) counts columns, iota({rows, 1}) rows.
Expr iota(Shape shape);
// The other element of a pair of columns that lie `distance` apart: of every 2 * distance columns, column i and i + distance.
// distance = cols / 2 pairs the halves of a row, distance = 1 neighbours. Columns are a multiple of 2 * distance.
Expr partner(Expr x, std::int64_t distance);
// -1 in the first column of each pair, 1 in the second, of `cols` columns. And the pair after a quarter turn, (a, b) to (-b, a): a pair is
// turned by an angle as x * cos + rotate(x, distance) * sin.
Expr pair_sign(Dim cols, std::int64_t distance);
Expr rotate(const Expr& x, std::int64_t distance); // partner(x, distance) * pair_sign(cols, distance)
// The Walsh-Hadamard transform of every n consecutive columns, without a factor: element i is the sum of the elements j of its n
// columns, negated if i and j have an odd number of bits in common. n is a power of two from 2 to 512. log2(n) steps of partners.
Expr hadamard(const Expr& x, std::int64_t n);
// Every n * n consecutive columns are a matrix of positive numbers, row after row. `times` times its rows are divided by their sums, then
// its columns by theirs (Sinkhorn and Knopp). n is 2, 4, 8 or 16.
Expr sinkhorn(const Expr& x, std::int64_t n, std::int64_t times);
inline constexpr std::int64_t max_paired_columns = 512; // in one transform, or matrix
// Word 0, 1, 2 or 3 of what Philox 4x32-10 makes of a counter of four i32 and a key of two. Calls that differ in the word alone share all
// but their end.
Expr philox(const Expr& c0, const Expr& c1, const Expr& c2, const Expr& c3, const Expr& k0, const Expr& k1, std::int64_t word);
// 32 random bits for each position: word position % 4 of the counter (position / 4, offset, 0, 0) and the key (seed, 0). All are i32.
Expr random_bits(const Expr& position, const Expr& offset, const Expr& seed);
// A number between 0 and 1, neither included, from the upper 23 of 32 random bits: (b + 1/2) / 2^23. And -log(-log(u)) of it.
Expr uniform(const Expr& bits);
Expr gumbel(const Expr& bits);
// Columns `times` as many, as NumPy names them: tile takes them in turn (a b a b), repeat each several times (a a b b; `times` is a
// power of two up to 512). For inputs and what gather takes from one.
Expr tile(Expr x, std::int64_t times);
Expr repeat(Expr x, std::int64_t times);

// Columns `distance` places further on, or before if it is negative: column i has that of i - distance, or 0 where there is none. For
// inputs and what gather takes from one.
Expr shift_columns(Expr x, std::int64_t distance);
// One index of the second dimension of an input, or of what a gather takes from one: [rows, n, ...rest] -> [rows, ...rest]. An index of
// gather may be unstacked too.
Expr unstack(Expr x, std::int64_t index);
// Values [rows, ...rest] along a second dimension: [rows, n, ...rest]. It stands directly below an output, or is the value of a scatter;
// then the second dimension is that of the index [rows, n, 1], each of whose rows gets one value, or that of the target's rows.
Expr stack(std::vector<Expr> values);
inline constexpr std::int64_t max_stacked = 16;

// ---- scales that are powers of two: `scale` is of type e8m0. x * scale and x / scale.
Expr scale_up(Expr x, Expr scale);
Expr scale_down(Expr x, Expr scale);
// The scale of each block of 32 columns by the rule of OCP Microscaling (MX) Formats 1.0, section 6.3, for elements of `type` (e2m1,
// e4m3fn, e5m2): the largest power of two at or below the largest magnitude, divided by that of the type. NaN where the block has NaN or an
// infinity.
Expr mx_scale(DType type, Expr x);
// x / scale, rounded to `type`, with the scale of its block: [rows, cols] and [rows, cols/32]. Beyond the largest number: that one.
Expr mx_quantise(DType type, Expr x, Expr scale);
// The numbers of elements and scales as above, in f32.
Expr mx_dequantise(Expr q, Expr scale);
inline constexpr std::int64_t mx_block = 32;
inline constexpr std::int64_t nvfp4_block = 16;
// What MX elements may be: e2m1, e4m3fn, e5m2.
bool is_mx_element(DType type);
// What the rule that mx_scale writes is made of: the magnitude whose power of two is taken, and the exponent of 2 that it is divided by.
struct ScaleRule {
  Expr magnitude;
  int exponent; // 1 to 126
};
std::optional<ScaleRule> scale_rule(const Expr& scale); // nothing of an expression that is not written so
// Whether `scale` is that of x's own blocks by the rule: NaN where a block has NaN or an infinity, and at most 2^125.
bool is_scale_of_blocks(const Expr& scale, const Expr& x);

// Pointwise operations are declared in gen/spec/math.h.

// "f16[m, 4096]", and how it lies in memory: " strided", " preshuffled" or nothing.
std::string type_text(const Expr& value);
std::string_view suffix(Layout layout);

// Any of the reductions above, by operation; `group` is read by group reductions only.
Expr reduction(Op op, Expr x, std::int64_t group = 0);
// Throws UserError unless the last dimension of a tensor of a packed type is a known number of whole blocks, without gaps between rows.
void require_blocks(const std::string& subject, DType type, const Shape& shape, Layout layout);
std::int64_t group_count(std::int64_t cols, std::int64_t group); // ceil(cols / group)
// The shape that `a` and `b` broadcast to. Throws UserError about the operation `what`.
Shape broadcast(std::string_view what, const Shape& a, const Shape& b);

} // namespace kiln
