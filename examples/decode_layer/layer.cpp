// Layer: the two chains, and where the sequences of all layers lie.
#include "examples/decode_layer/layer.h"
#include <cmath>
#include <fmt/format.h>
#include <kiln/gen/reference/evaluate_bounds.h>
#include <kiln/gen/reference/random_inputs.h>
#include <kiln/runtime/build/build_kernel.h>
#include <kiln/runtime/launch/emulated/emulate.h>

using namespace kiln;

namespace {

Inputs inputs_of(const KernelSpec& spec, const Values& values) {
  Inputs inputs;
  for (const Expr& e : spec.inputs()) inputs.tensors.emplace(e->name, values.at(e->name));
  return inputs;
}

} // namespace

void Layer::set(const std::string& name, const Tensor& tensor) {
  for (Values* chain : {&executed_, &expected_}) chain->insert_or_assign(name, tensor);
}

void Layer::fill(const KernelSpec& spec) {
  for (auto& [name, tensor] : random_inputs(spec, ++seed_, {.sizes = sizes_}).tensors) {
    if (executed_.contains(name)) continue;
    for (std::int64_t i = 0; i < tensor.size(); ++i) {
      if (name.starts_with("w_")) tensor.set(i, tensor.at(i) * 0.03F);
      if (tensor.dtype() == e8m0) tensor.set_bits(i, 119 + static_cast<std::uint64_t>(i % 3)); // 2^-8 to 2^-6
    }
    set(name, tensor);
  }
}

void Layer::run(const KernelSpec& spec) {
  ++launches_;
  const BuiltKernel kernel = build_kernel(spec, to_);
  const Inputs inputs = inputs_of(spec, executed_);
  const EmulatedRun run = emulate(spec, kernel.source, kernel.object, inputs);
  for (const exec::Defect& finding : run.result.defects) fmt::print("{}\n", exec::to_text(finding));
  const auto wrong = find_mismatch(run.outputs, evaluate_bounds(spec, inputs, bounds_options(kernel.schedule)));
  fmt::print("  {:<20} {:>7} wave instructions; {}\n", spec.name(), run.result.waves.executed(),
             wrong ? to_text(*wrong) : "all values within their bounds");
  good_ = good_ && run.result.completed && run.result.defects.empty() && !wrong;
  for (const auto& [name, tensor] : evaluate(spec, inputs_of(spec, expected_))) expected_.insert_or_assign(name, tensor);
  for (const auto& [name, tensor] : run.outputs) executed_.insert_or_assign(name, tensor);
}

bool Layer::close(const std::string& name, double most) {
  double difference = 0, size = 0;
  for (std::int64_t i = 0; i < executed_.at(name).size(); ++i) {
    const double expected = expected_.at(name).at(i);
    difference += std::pow(executed_.at(name).at(i) - expected, 2);
    size += expected * expected;
  }
  const double relative = std::sqrt(difference / size);
  fmt::print("  {} launches; the chains differ by {:.2e} of the size of {}\n", launches_, relative, name);
  return good_ && relative <= most;
}

Tensor reshaped(const Tensor& from, std::vector<std::int64_t> shape) {
  Tensor to(from.dtype(), std::move(shape));
  to.data() = from.data();
  return to;
}

Tensor columns_in(const Tensor& from, std::int64_t first, std::vector<std::int64_t> shape) {
  const std::int64_t rows = from.shape()[0], all = from.size() / rows;
  Tensor to(from.dtype(), std::move(shape), all);
  const std::int64_t width = to.size() / rows;
  for (std::int64_t t = 0; t < rows; ++t)
    for (std::int64_t i = 0; i < width; ++i) to.set_bits(t * width + i, from.bits(t * all + first + i));
  return to;
}

void set_places(Layer& layer, std::int64_t pairs) {
  Tensor position(i64, {tokens, 1, 1}), slot(i64, {tokens, 1, 1}), lengths(i32, {tokens, 1, 1}), pages(i32, {tokens, pages_of_one});
  for (std::int64_t t = 0; t < tokens; ++t) {
    const std::int64_t at = (t * 19 + 5) % positions;
    for (std::int64_t p = 0; p < pages_of_one; ++p)
      pages.set_bits(t * pages_of_one + p, static_cast<std::uint64_t>((t * pages_of_one + p) * 7 % pages_of_all));
    position.set_bits(t, static_cast<std::uint64_t>(at));
    lengths.set_bits(t, static_cast<std::uint64_t>(at + 1));
    slot.set_bits(t, static_cast<std::uint64_t>(pages.integer(t * pages_of_one + at / page) * page + at % page));
  }
  layer.set("position", position), layer.set("slot", slot), layer.set("lengths", lengths), layer.set("pages", pages);
  Tensor cosines(bf16, {positions, pairs}), sines(bf16, {positions, pairs});
  for (std::int64_t i = 0; i < cosines.size(); ++i) {
    const double angle = static_cast<double>(i / pairs) * std::pow(10000.0, -static_cast<double>(i % pairs) / static_cast<double>(pairs));
    cosines.set(i, static_cast<float>(std::cos(angle))), sines.set(i, static_cast<float>(std::sin(angle)));
  }
  layer.set("cos_table", cosines), layer.set("sin_table", sines);
}
