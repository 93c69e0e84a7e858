// Random specs: drawn space by space, so that every draw is valid.
#include "tests/fuzz/spec_generator.h"
#include "gen/reference/random.h"
#include "gen/spec/graph.h"
#include "gen/spec/math.h"
#include "tests/fuzz/state_draws.h"
#include "tests/fuzz/wide_ranks_generator.h"
#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <map>

namespace kiln {
namespace {

class SpecGenerator {
public:
  SpecGenerator(std::uint64_t seed, const RandomSpecOptions& options)
      : random_(seed), indexed_(seed ^ 0x1d872b41), mx_(seed ^ 0x32e2b1e8), ranked_(seed ^ 0x5bd1e995), paired_(seed ^ 0x2545f491),
        whole_(seed ^ 0x369dea0f), states_(seed ^ 0x9e3779b9, options.state_percent), options_(options),
        spec_(fmt::format("random_{}", seed)) {}

  KernelSpec generate() {
    const bool reduces = random_.chance(60);
    choose_space(reduces);
    declare_inputs();
    if (indexed_.chance(options_.indexed_percent)) add_indexed();
    states_.add_values(space_, tensors_[0], values_);
    if (states_.shifts()) distance_ = 0; // memory has no partners of shifted rows
    if (paired_.chance(options_.paired_percent)) choose_distances();
    auto reductions = reduces ? random_.between(1, 3) : 0;
    for (auto operations = random_.between(1, 12); operations > 0; --operations) {
      values_.push_back(operation());
      if (distance_ && indexed_.chance(25)) values_.push_back(partner_of(values_.back()));
      if (!distances_.empty() && paired_.chance(40)) values_.push_back(partners_of(values_.back()));
      if (reductions > 0 && random_.chance(40)) {
        reduce();
        --reductions;
      }
    }
    for (; reductions > 0 && random_.chance(70); --reductions) reduce();
    if (mx_.chance(options_.mx_percent) && space_.size() >= 2 && space_.back().size() % mx_block == 0 && !states_.shifts()) add_mx();
    if (whole_.chance(options_.integer_percent)) add_integers();
    if (ranked_.chance(options_.ranked_percent)) add_ranks();
    add_outputs();
    return spec_;
  }

private:
  DType memory_type() {
    return random_.pick({f16, f16, f16, bf16, bf16, f32, f32, options_.fp8_e4m3, options_.fp8_e4m3, options_.fp8_e5m2, i8, u8, i32});
  }

  std::int64_t columns() {
    // Round and awkward, and the hidden sizes of well-known models.
    static constexpr std::int64_t interesting[] = {1,    2,    3,    7,    8,    16,   17,    31,    63,    64,    65,    96,    100,  127,
                                                   128,  129,  192,  255,  256,  257,  320,   512,   768,   1000,  1024,  1025,  1536, 2048,
                                                   2560, 4096, 4099, 5120, 7168, 8192, 11008, 16384, 20000, 32768, 65536, 131072};
    std::vector<std::int64_t> fitting;
    for (const std::int64_t cols : interesting)
      if (cols <= options_.max_cols) fitting.push_back(cols);
    return random_.pick(fitting);
  }

  Dim rows() {
    if (random_.chance(80)) return dynamic("rows");
    return random_.chance(50) ? dynamic("rows", 1, 64) : Dim(random_.between(1, 9));
  }

  void choose_space(bool reduces) {
    if (reduces || random_.chance(50)) {
      space_ = {rows(), columns()};
      return;
    }
    for (auto rank = random_.between(1, 4); rank > 0; --rank) space_.push_back(random_.between(1, 6));
    space_.back() = columns();
    if (space_.size() > 1 && random_.chance(50)) space_[0] = rows();
  }

  // The whole space, or one of the shapes that broadcast to it.
  Shape operand_shape() {
    Shape shape = space_;
    switch (random_.between(0, 5)) {
    case 0: return {};
    case 1: return {space_.back()};
    case 2: shape.back() = 1; return shape;
    case 3:
      for (Dim& dim : shape)
        if (random_.chance(30)) dim = 1;
      return shape;
    default: return shape;
    }
  }

  void declare_inputs() {
    for (std::int64_t i = 0, count = random_.between(1, 4); i < count; ++i) {
      const Shape shape = i == 0 ? space_ : operand_shape();
      const bool mask = i > 0 && random_.chance(5);
      const Layout layout = shape.size() >= 2 && shape == space_ && random_.chance(15) ? Layout::strided : Layout::contiguous;
      const Expr tensor = input(fmt::format("in{}", i), mask ? boolean : memory_type(), shape, layout);
      tensors_.push_back(tensor);
      values_.push_back(mask ? cast(f32, tensor) : tensor);
    }
    if (random_.chance(30)) values_.push_back(scalar("alpha"));
    if (random_.chance(10)) values_.push_back(scalar("count", i32));
  }

  // ---- indices and views, of a space of two dimensions or more

  // Names rows of the last `dims` dimensions of the space.
  Expr index_of(const std::string& name, std::size_t dims) {
    Shape shape = space_;
    std::fill(shape.end() - static_cast<std::ptrdiff_t>(dims), shape.end(), Dim(1));
    return input(name, indexed_.chance(50) ? i32 : i64, shape);
  }
  Shape rows_of(const char* count, std::size_t dims) {
    Shape shape = {indexed_.chance(50) ? dynamic(count, 1) : Dim(indexed_.between(1, 20))};
    shape.insert(shape.end(), space_.end() - static_cast<std::ptrdiff_t>(dims), space_.end());
    return shape;
  }
  DType indexed_type() { return indexed_.pick({f16, bf16, f32, options_.fp8_e4m3, u8}); }
  Layout indexed_layout() { return indexed_.chance(25) ? Layout::strided : Layout::contiguous; }

  void add_indexed() {
    const std::int64_t cols = space_.back().size();
    if (cols > 1 && indexed_.chance(40)) values_.push_back(tensors_[0] + iota({cols})); // a kernel has an input, of all its sizes
    if (const std::int64_t times = indexed_.pick({2, 4, 16}); cols % times == 0 && indexed_.chance(40)) {
      const Expr narrow = input("narrow", indexed_type(), {cols / times});
      values_.push_back(indexed_.chance(50) ? tile(narrow, times) : repeat(narrow, times));
    }
    if (const std::int64_t pairs = indexed_.pick({1, 2, 3, 4}); cols % 2 == 0 && indexed_.chance(50)) {
      distance_ = pairs < 3 ? pairs : cols / 2;
      if (cols % (2 * distance_) != 0) distance_ = 1;
      if (indexed_.chance(50)) values_.push_back(tensors_[0] * pair_sign(cols, distance_));
    }
    if (space_.size() < 2) return;
    if (space_[0].is_dynamic() && indexed_.chance(40)) {
      Shape shape(space_.size(), 1);
      shape[0] = space_[0];
      values_.push_back(tensors_[0] - iota(shape));
    }
    const auto most = static_cast<std::int64_t>(space_.size()) - 1;
    if (indexed_.chance(60)) {
      const auto dims = static_cast<std::size_t>(indexed_.between(1, most));
      Shape shape = rows_of("table_rows", dims);
      if (indexed_.chance(25)) shape.back() = 1;
      values_.push_back(
          gather(input("table", indexed_type(), shape, indexed_layout()), index_of("ids", dims), {.checked = indexed_.chance(50)}));
    }
    scatters_ = indexed_.chance(50) ? static_cast<std::size_t>(indexed_.between(1, most)) : 0;
  }

  // To an MX format and back, or from one; what is quantised is stored too.
  void add_mx() {
    const DType type = mx_.pick({e2m1, e2m1, e4m3fn, e5m2});
    if (mx_.chance(40)) {
      Shape blocks = space_;
      blocks.back() = space_.back().size() / mx_block;
      values_.push_back(values_.back() + mx_dequantise(input("mx_in", type, space_), input("mx_in_scale", e8m0, blocks)));
    }
    if (mx_.chance(70)) {
      const Expr x = everywhere(values_.back()), scale = mx_scale(type, x), q = mx_quantise(type, x, scale);
      spec_.output("mx_q", type, q).output("mx_scale", e8m0, scale);
      if (mx_.chance(50)) values_.push_back(mx_dequantise(q, scale));
    }
  }

  Expr partner_of(const Expr& x) { return partner(everywhere(x), distance_); }

  // Two or three that a wave has in registers. A distance that it does not have goes: memory has no partners of theirs.
  void choose_distances() {
    std::vector<std::int64_t> possible;
    for (std::int64_t distance = 1; 2 * distance <= max_paired_columns && space_.back().size() % (2 * distance) == 0; distance *= 2)
      possible.push_back(distance);
    if (possible.size() < 2) return;
    for (std::int64_t count = paired_.between(2, 3); count > 0; --count) distances_.push_back(paired_.pick(possible));
    if (distance_ > 0 && (distance_ & (distance_ - 1)) != 0) distance_ = 0;
  }

  // The last value at its partners, one after the other, or a transform of all of them.
  Expr partners_of(const Expr& x) {
    Expr y = everywhere(x);
    if (paired_.chance(30)) return hadamard(y, 2 * std::ranges::max(distances_));
    for (const std::int64_t distance : distances_)
      if (paired_.chance(70)) y = paired_.chance(50) ? partner(y, distance) : y + rotate(y, distance);
    return y;
  }

  // Rows that lie elsewhere take the value of the whole space.
  void add_scatter(const Expr& value) {
    if (scatters_ == 0) return;
    const IndexOptions options{.checked = indexed_.chance(50), .duplicates = indexed_.chance(30)};
    const Layout layout = indexed_layout();
    const Expr target = input("target", indexed_type(), rows_of("target_rows", scatters_), layout);
    const Expr whole = scatter(target, index_of("slots", scatters_), everywhere(value), options);
    spec_.output("written", target.dtype(), whole, {.in_place_of = "target", .layout = layout});
  }

  Expr value() {
    if (random_.chance(10)) return constant(static_cast<float>(random_.between(-8, 8)) * 0.25f);
    return random_.pick(values_);
  }
  static Expr positive(const Expr& x) { return abs(x) + 0.5; }
  static Expr moderate(const Expr& x) { return clamp(x, -8, 8); } // so that exponentials stay finite
  static Expr condition(const Expr& a, const Expr& b, std::int64_t which) {
    constexpr Op comparisons[] = {Op::lt, Op::le, Op::gt, Op::ge, Op::eq, Op::ne};
    const Expr operands[] = {a, b};
    if (which < std::ssize(comparisons)) return pointwise(comparisons[which], operands);
    return which == 6 ? logical_and(a < b, logical_not(a > 1)) : logical_or(a < b, b > 1);
  }

  // All draws come first, one statement each: compilers disagree about the order of operands.
  Expr operation() {
    const Expr a = value(), b = value(), c = value();
    const std::int64_t variant = random_.between(0, 7);
    const bool first = variant < 4;
    const DType type = random_.pick({f16, f16, bf16, options_.fp8_e4m3});
    switch (random_.between(0, 33)) {
    case 0:
    case 1:
    case 2: return a + b;
    case 3:
    case 4: return a - b;
    case 5:
    case 6:
    case 7: return a * b;
    case 8: return a / positive(b);
    case 9: return div_exact(a, positive(b));
    case 10: return -a;
    case 11: return max(a, b);
    case 12: return min(a, b);
    case 13: return moderate(a);
    case 14: return fma(a, b, c);
    case 15: return select(condition(a, b, variant), b, c);
    case 16: return exp(moderate(a));
    case 17: return exp2(moderate(a));
    case 18: return log(positive(a));
    case 19: return log2(positive(a));
    case 20: return sqrt(positive(a));
    case 21: return rsqrt(positive(a));
    case 22: return rcp(positive(a));
    case 23: return tanh(a);
    case 24: return first ? erf(a) : softplus(a);
    case 25: return sigmoid(a);
    case 26: return silu(a);
    case 27: return gelu(a);
    case 28: return gelu_tanh(a);
    case 29: return relu(a);
    case 30: return first ? sin(moderate(a)) : cos(moderate(a));
    case 31: return pow(positive(a), clamp(b, -3, 3));
    case 32: return first ? round(a) : floor(a);
    default: return cast(type, a);
    }
  }

  // The value at every element of the space: a narrower one is added to the first input, which covers it.
  Expr everywhere(const Expr& x) { return x.shape() == space_ ? x : x + tensors_[0]; }

  void reduce() {
    const Expr operand = everywhere(values_.back());
    if (random_.chance(70)) {
      const Op op = random_.pick({Op::row_sum, Op::row_mean, Op::row_mean, Op::row_max, Op::row_max, Op::row_min, Op::row_absmax});
      row_values_.push_back(reduction(op, operand));
      values_.push_back(row_values_.back());
      return;
    }
    const Op op = random_.pick({Op::group_sum, Op::group_mean, Op::group_max, Op::group_min, Op::group_absmax, Op::group_absmax});
    const std::int64_t group = random_.pick({2, 8, 16, 32, 64, 128, 128, 128, 256, 512});
    Expr of_group = reduction(op, operand, group);
    if (random_.chance(60)) of_group = max(abs(of_group), 0.01) / max_finite(options_.fp8_e4m3);
    row_values_.push_back(of_group);
    values_.push_back(ungroup(of_group, group, space_.back()));
  }

  // Integers of elements, and of rows or launches.
  void add_integers() {
    const Expr x = whole_.chance(50) ? input("whole", i32, space_) : cast(i32, moderate(everywhere(values_.back())) * 1e7);
    const Expr y = space_.size() < 2 || whole_.chance(30) ? scalar("seed", i32) : input("seeds", i32, {space_[space_.size() - 2], 1});
    const Expr z = random_integers(x, y, whole_);
    if (whole_.chance(50))
      pending_.push_back({.name = "bits", .dtype = i32, .value = z.shape() == space_ ? z : add_i32(z, x), .in_place_of = {}});
    values_.push_back(values_.back() + uniform(z));
  }

  // The column of the largest element; a running sum, or the largest elements: as outputs, and as a value of the first output.
  void add_ranks() {
    if (space_.size() < 2 || space_.back().is_dynamic()) return;
    const std::int64_t cols = space_.back().size();
    const bool sums = cols > max_wave_columns || ranked_.chance(30);
    const Expr x = everywhere(values_.back()), other = everywhere(ranked_.pick(values_));
    if (ranked_.chance(30)) {
      const Op op = ranked_.pick({Op::row_argmax, Op::row_argmin});
      pending_.push_back({.name = "column", .dtype = i32, .value = reduction(op, other), .in_place_of = {}});
    }
    if (sums) return values_.push_back(row_cumsum(x));
    const Expr top = row_top(x, ranked_.between(1, std::min(max_wave_ranks, cols))), chosen = pick(other, top);
    const Op op = ranked_.pick({Op::row_sum, Op::row_mean, Op::row_max, Op::row_min, Op::row_absmax, Op::row_argmax, Op::row_argmin});
    values_.push_back(other * reduction(op, chosen));
    pending_.push_back({.name = "top_columns", .dtype = i32, .value = top, .in_place_of = {}});
    pending_.push_back({.name = "top_values", .dtype = f32, .value = chosen / (row_sum(abs(chosen)) + 1), .in_place_of = {}});
  }

  void add_outputs() {
    std::vector<std::string> overwritten;
    for (std::int64_t i = 0, count = random_.between(1, 3); i < count; ++i) {
      // The first output ends the chain of operations; later ones come from anywhere.
      const bool one_a_row = i > 0 && !row_values_.empty() && random_.chance(50);
      const Expr result = one_a_row ? random_.pick(row_values_) : everywhere(i == 0 ? values_.back() : random_.pick(values_));
      DType type = one_a_row ? f32 : random_.chance(3) ? boolean : memory_type();
      OutputOptions options;
      const Expr& target = random_.pick(tensors_);
      const bool free = std::ranges::find(overwritten, target->name) == overwritten.end();
      if (!one_a_row && free && target.shape() == space_ && random_.chance(30)) {
        options = {.in_place_of = target->name, .layout = target->layout};
        type = target.dtype();
        overwritten.push_back(target->name);
      } else if (!one_a_row && space_.size() >= 2 && random_.chance(15)) {
        options.layout = Layout::strided;
      }
      const bool one_a_group = one_a_row && result.shape().size() == 2 && !same_size(result.shape().back(), 1);
      const bool moves = one_a_group && !same_size(result.shape().back(), space_.back()) && ranked_.chance(30);
      pending_.push_back({fmt::format("out{}", i), type, moves ? transpose(result) : result, options.in_place_of, options.layout});
    }
    drop_unused_aliases();
    add_scatter(values_.back());
    states_.add_outputs(spec_, everywhere(values_.back()), everywhere(values_[values_.size() / 2]));
    for (const Output& output : pending_)
      spec_.output(output.name, output.dtype, output.value, {.in_place_of = output.in_place_of, .layout = output.layout});
  }

  // An output can only be in place of an input that the spec reads.
  void drop_unused_aliases() {
    KernelSpec trial("trial");
    for (const Output& output : pending_) trial.output(output.name, output.dtype, output.value);
    const auto used = trial.inputs();
    for (Output& output : pending_)
      if (std::ranges::none_of(used, [&](const Expr& tensor) { return tensor->name == output.in_place_of; })) output.in_place_of.clear();
  }

  // The others for indices and views, MX formats, ranks, pairs, so that specs without them stay as they were.
  Random random_, indexed_, mx_, ranked_, paired_, whole_;
  StateDraws states_;
  RandomSpecOptions options_;
  KernelSpec spec_;
  Shape space_;
  std::vector<Expr> tensors_;
  std::vector<Expr> values_;     // that broadcast to the space
  std::vector<Expr> row_values_; // one a row or a group, from reductions
  std::vector<Output> pending_;
  std::int64_t distance_ = 0;           // of partners; 0: none
  std::vector<std::int64_t> distances_; // of several partners in a row; empty: none
  std::size_t scatters_ = 0;            // dimensions of the rows that are scattered; 0: none
};

Expr renamed(const Expr& expr, std::map<const Node*, Expr>& known) {
  Node node = expr.node();
  if (!node.name.empty()) node.name += "_2";
  for (Dim& dim : node.shape)
    if (dim.is_dynamic()) dim = dynamic(dim.name() + "_2", dim.min(), dim.max());
  for (Expr& operand : node.operands) operand = known.at(&operand.node());
  return known.emplace(&expr.node(), Expr(std::move(node))).first->second;
}

// With the outputs of another spec, under other names.
KernelSpec with_problem(KernelSpec spec, const KernelSpec& other) {
  std::map<const Node*, Expr> known;
  for (const Expr& node : nodes_in_order(other)) renamed(node, known);
  for (const Output& output : other.outputs())
    spec.output(output.name + "_2", output.dtype, known.at(&output.value.node()),
                {.in_place_of = output.in_place_of.empty() ? "" : output.in_place_of + "_2", .layout = output.layout});
  return spec;
}

} // namespace

KernelSpec random_spec(std::uint64_t seed, const RandomSpecOptions& options) {
  if (Random(seed ^ 0x68e31da4).chance(options.wide_percent)) return random_wide_ranks(seed, options.fp8_e4m3);
  KernelSpec spec = SpecGenerator(seed, options).generate();
  if (Random(seed ^ 0x7f4a7c15).chance(options.several_percent))
    spec = with_problem(std::move(spec), SpecGenerator(seed ^ 0x2545f491, options).generate());
  return spec;
}

} // namespace kiln
