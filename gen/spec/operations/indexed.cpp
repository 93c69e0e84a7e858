// Indices and views: construction of their nodes, and what their operands must be.
#include "gen/error.h"
#include "gen/spec/math.h"
#include <algorithm>
#include <bit>
#include <cstdlib>
#include <fmt/format.h>
#include <utility>

namespace kiln {
namespace {

constexpr std::int64_t max_repeats = 512;

std::string operation_of(Op op) { return fmt::format("operation '{}'", info(op).name); }
std::string operation_of(Op op, std::string_view operand) { return fmt::format("{}, operand {}", operation_of(op), operand); }

// An input of two or more dimensions whose rows an index may name.
void require_rows(Op op, std::string_view which, const Expr& e) {
  if (e.op() != Op::input)
    throw UserError(operation_of(op, which), fmt::format("it is a '{}', not an input", info(e.op()).name),
                    "compute it in a kernel of its own: an index names a row in memory");
  if (e.shape().size() < 2)
    throw UserError(operation_of(op, which), fmt::format("its shape {} has no rows", to_text(e.shape())), "give it two dimensions or more");
  if (e->layout == Layout::preshuffled)
    throw UserError(operation_of(op, which), "it is preshuffled", "use Layout::contiguous or Layout::strided");
}

void require_index(Op op, const Expr& index, const Expr& rows) {
  const auto subject = operation_of(op, "index");
  const Expr& given = index.op() == Op::unstack ? index.operands()[0] : index;
  if (given.op() != Op::input)
    throw UserError(subject, fmt::format("it is a '{}', not an input", info(given.op()).name),
                    "give the kernel the indices: addresses are not computed in f32");
  if (index.dtype() != i32 && index.dtype() != i64)
    throw UserError(subject, fmt::format("it is {}", to_string(index.dtype())), "use i32 or i64");
  if (given->layout != Layout::contiguous) throw UserError(subject, "it is strided", "use Layout::contiguous");
  if (index.shape().empty() || !same_size(index.shape().back(), 1))
    throw UserError(subject, fmt::format("its shape {} does not end with 1", to_text(index.shape())),
                    "give it one index a row: [tokens, 1], or [tokens, 1, 1] for rows of two dimensions");
  if (index.shape().size() < rows.shape().size())
    throw UserError(subject,
                    fmt::format("its shape {} has fewer dimensions than {} {}", to_text(index.shape()), rows->name, to_text(rows.shape())),
                    "put a 1 for each dimension of a row: [tokens, 1, 1] for [slots, heads, cols]");
}

// The shape of the rows of `rows` that `index` names.
Shape named_shape(Op op, const Expr& rows, const Expr& index) {
  return broadcast(info(op).name, index.shape(), Shape(rows.shape().begin() + 1, rows.shape().end()));
}

std::int64_t known_columns(Op op, const Expr& x) {
  if (x.shape().empty()) throw UserError(operation_of(op), "its operand has shape [], one value for all", "give it a row of columns");
  if (x.shape().back().is_dynamic())
    throw UserError(operation_of(op), fmt::format("the last dimension of {} is known only at launch", to_text(x.shape())),
                    "give it a number: kernels are specialised for their columns");
  return x.shape().back().size();
}

void require_no_bool(Op op, const Expr& x) {
  if (x.dtype() == boolean) throw UserError(operation_of(op), "its operand is bool", "use cast(f32, ...), and compare behind it");
}

void require_pairs(Op op, std::int64_t cols, std::int64_t distance) {
  if (distance < 1 || distance > cols || cols % (2 * distance) != 0)
    throw UserError(operation_of(op), fmt::format("{} columns are not made of pairs {} apart", cols, distance),
                    fmt::format("use a distance whose double divides the columns{}", cols % 2 ? "; their number is odd" : ""));
}

// An input, or rows of one.
void require_in_memory(Op op, const Expr& x) {
  const bool is_slice = x.op() == Op::unstack && op == Op::shift_columns;
  if (x.op() != Op::input && x.op() != Op::gather && !is_slice)
    throw UserError(operation_of(op), fmt::format("its operand is a '{}'", info(x.op()).name),
                    "apply it to an input or to a gather of one, and compute with the result");
  require_no_bool(op, x);
}

Expr with_columns(Op op, Expr x, std::int64_t times) {
  require_in_memory(op, x);
  const std::int64_t cols = known_columns(op, x);
  if (times < 2 || times > max_dim_size / cols)
    throw UserError(operation_of(op), fmt::format("it makes {} times {} columns", times, cols),
                    fmt::format("use 2 or more, up to {} columns", max_dim_size));
  Shape shape = x.shape();
  shape.back() = cols * times;
  const DType type = x.dtype();
  return Expr(Node{.op = op, .dtype = type, .shape = std::move(shape), .operands = {std::move(x)}, .step = times});
}

} // namespace

Expr gather(Expr table, Expr index, IndexOptions options) {
  require_rows(Op::gather, "table", table);
  require_no_bool(Op::gather, table);
  require_index(Op::gather, index, table);
  Shape shape = named_shape(Op::gather, table, index);
  const DType type = table.dtype();
  return Expr(Node{.op = Op::gather,
                   .dtype = type,
                   .shape = std::move(shape),
                   .operands = {std::move(table), std::move(index)},
                   .checked = options.checked});
}

Expr scatter(Expr target, Expr index, Expr value, IndexOptions options) {
  require_rows(Op::scatter, "target", target);
  require_index(Op::scatter, index, target);
  const Shape rows = named_shape(Op::scatter, target, index);
  if (value.shape().size() != rows.size() || !std::ranges::equal(value.shape(), rows, same_size))
    throw UserError(operation_of(Op::scatter, "value"),
                    fmt::format("its shape is {}, and rows of {} {} at an index of {} make {}", to_text(value.shape()), target->name,
                                to_text(target.shape()), to_text(index.shape()), to_text(rows)),
                    "give it that shape: one row of the target for each index");
  const DType type = target.dtype();
  Shape shape = target.shape();
  Expr rounded = cast(type, std::move(value));
  return Expr(Node{.op = Op::scatter,
                   .dtype = type,
                   .shape = std::move(shape),
                   .operands = {std::move(target), std::move(index), std::move(rounded)},
                   .checked = options.checked,
                   .duplicates = options.duplicates});
}

Expr iota(Shape shape) {
  const auto counted = std::ranges::count_if(shape, [](const Dim& dim) { return !same_size(dim, 1); });
  if (counted != 1 || shape.size() > static_cast<std::size_t>(max_rank))
    throw UserError(operation_of(Op::iota), fmt::format("{} dimensions of {} are not 1", counted, to_text(shape)),
                    "give it the one to count along: iota([cols]), iota([rows, 1])");
  for (const Dim& dim : shape)
    if (!dim.is_dynamic() && (dim.size() < 1 || dim.size() > max_dim_size))
      throw UserError(operation_of(Op::iota), fmt::format("its dimension is {}", dim.size()), fmt::format("use 2 to {}", max_dim_size));
  return Expr(Node{.op = Op::iota, .dtype = f32, .shape = std::move(shape)});
}

Expr partner(Expr x, std::int64_t distance) {
  require_no_bool(Op::partner, x);
  require_pairs(Op::partner, known_columns(Op::partner, x), distance);
  const DType type = x.dtype();
  Shape shape = x.shape();
  return Expr(Node{.op = Op::partner, .dtype = type, .shape = std::move(shape), .operands = {std::move(x)}, .step = distance});
}

Expr shift_columns(Expr x, std::int64_t distance) {
  require_in_memory(Op::shift_columns, x);
  if (const std::int64_t cols = known_columns(Op::shift_columns, x); distance == 0 || std::abs(distance) >= cols)
    throw UserError(operation_of(Op::shift_columns), fmt::format("it moves {} columns by {}", cols, distance),
                    "use a distance below the number of columns, to either side");
  const DType type = x.dtype();
  Shape shape = x.shape();
  return Expr(Node{.op = Op::shift_columns, .dtype = type, .shape = std::move(shape), .operands = {std::move(x)}, .step = distance});
}

Expr pair_sign(Dim cols, std::int64_t distance) {
  if (cols.is_dynamic())
    throw UserError(operation_of(Op::pair_sign), fmt::format("the number of columns {} is known only at launch", cols.text()),
                    "give it a number");
  require_pairs(Op::pair_sign, cols.size(), distance);
  return Expr(Node{.op = Op::pair_sign, .dtype = f32, .shape = {cols}, .step = distance});
}

Expr tile(Expr x, std::int64_t times) { return with_columns(Op::tile, std::move(x), times); }

Expr repeat(Expr x, std::int64_t times) {
  if (times > max_repeats || !std::has_single_bit(static_cast<std::uint64_t>(std::max<std::int64_t>(times, 0))))
    throw UserError(operation_of(Op::repeat), fmt::format("it repeats each column {} times", times),
                    fmt::format("use a power of two from 2 to {}", max_repeats));
  return with_columns(Op::repeat, std::move(x), times);
}

} // namespace kiln
