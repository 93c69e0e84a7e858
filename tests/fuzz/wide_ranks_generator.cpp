// Random specs of wide ranks, and random operations on i32.
#include "tests/fuzz/wide_ranks_generator.h"
#include "gen/spec/math.h"
#include <algorithm>
#include <fmt/format.h>

namespace kiln {

Expr random_integers(const Expr& x, const Expr& y, Random& random) {
  std::vector<Expr> values{x, y};
  for (std::int64_t count = random.between(3, 8); count > 0; --count) {
    const Expr a = random.pick(values),
               b = random.chance(25) ? Expr(static_cast<double>(random.between(-70000, 4294967295))) : random.pick(values);
    const Op op = integer_ops()[static_cast<std::size_t>(random.between(0, std::ssize(integer_ops()) - 1))];
    const std::int64_t which = random.between(0, 9);
    const Expr operands[] = {a, b};
    if (which == 0) values.push_back(select(lt(a, b), a, y));
    else if (which == 1) values.push_back(max(a, min(b, x)));
    else if (which == 2) values.push_back(random_bits(a, 3, y));
    else values.push_back(pointwise(op, std::span(operands, static_cast<std::size_t>(info(op).arity))));
  }
  return values.back();
}

namespace {

// More ranks than are searched for: what is computed of them goes rank by rank.
KernelSpec random_sort(const Expr& x, Random& random) {
  const std::int64_t cols = x.shape().back().size();
  const Expr top = row_top(x, random.between(std::min(max_selected_ranks + 1, cols), cols)), value = pick(x, top);
  KernelSpec spec("random_sort");
  spec.output("found", i32, top);
  if (random.chance(60)) spec.output("values", random.pick({f16, f32}), random.chance(50) ? value : value * scalar("alpha") + top);
  if (random.chance(40)) spec.output("bits", i32, random_integers(cast(i32, top), input("seed", i32, {x.shape()[0], 1}), random));
  return spec;
}

} // namespace

KernelSpec random_wide_ranks(std::uint64_t seed, DType fp8) {
  Random random(seed);
  const std::int64_t cols = random.pick({40, 257, 1000, 1025, 2048, 5003, 9000, 12288});
  const std::int64_t k =
      cols > max_wave_columns && random.chance(50) ? random.between(1, 16) : random.between(17, std::min<std::int64_t>(cols, 256));
  const Dim rows = random.chance(50) ? dynamic("rows", 1, random.between(1, 8)) : dynamic("rows");
  const auto type = [&] { return random.pick({f16, bf16, f32, f32, i8, fp8}); };
  const Layout layout = random.chance(20) ? Layout::strided : Layout::contiguous;
  const Expr x = input("x", type(), {rows, cols}, layout), top = row_top(x, k);
  if ((rows.max() || cols < 3000) && random.chance(15)) return random_sort(x, random); // wider rows need a bound
  Expr value = pick(x, top);
  if (random.chance(50)) value = value * pick(random.chance(50) ? input("y", type(), {rows, cols}) : input("y", type(), {cols}), top);
  if (random.chance(50)) value = value + input("bias", f32, {rows, 1}) * scalar("alpha");
  if (random.chance(30)) value = select(lt(top, static_cast<double>(cols / 2)), value, 0);
  if (random.chance(30)) value = row_cumsum(abs(value));
  if (k > 1 && k < cols && random.chance(30)) value = value + iota({k});
  const Op op = random.pick({Op::row_sum, Op::row_mean, Op::row_max, Op::row_min, Op::row_absmax, Op::row_argmax, Op::row_argmin});
  const Expr of_row = reduction(op, value);
  KernelSpec spec(fmt::format("random_{}", seed));
  spec.output("found", i32, top).output("of_row", f32, of_row);
  if (random.chance(60)) spec.output("values", random.pick({f16, f32}), value / (abs(of_row) + 1));
  if (random.chance(40)) spec.output("bits", i32, random_integers(cast(i32, top), input("seed", i32, {rows, 1}), random));
  return spec;
}

} // namespace kiln
