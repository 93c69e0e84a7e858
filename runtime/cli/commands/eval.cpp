// kiln eval: evaluates a spec on the CPU, on random inputs or given ones, and shows statistics of the outputs.
#include "gen/error.h"
#include "gen/reference/evaluate.h"
#include "gen/reference/random.h"
#include "gen/reference/random_inputs.h"
#include "gen/spec/characters.h"
#include "runtime/cli/command.h"
#include "runtime/cli/kernel_choice.h"
#include "runtime/cli/output.h"
#include "runtime/cli/target_choice.h"
#include "runtime/table.h"
#include <algorithm>
#include <cmath>
#include <cstring>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <numbers>
#include <set>

namespace kiln::cli {
namespace {

// What random numbers look like.
enum class Distribution : std::uint8_t {
  normal,   // mean 0, variance 1, as activations and weights after a norm; integers: times 32
  positive, // uniform from 0.5 to 2, as scales; integers: 1 or 2
};

// Every name has a sequence of its own, whatever other inputs a spec has.
Random random_of(std::uint64_t seed, std::string_view name) {
  std::vector<std::uint32_t> words{static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32)};
  words.insert(words.end(), name.begin(), name.end());
  std::uint32_t mixed[2];
  std::seed_seq(words.begin(), words.end()).generate(std::begin(mixed), std::end(mixed));
  return Random(mixed[0] | static_cast<std::uint64_t>(mixed[1]) << 32);
}

// Box and Muller: two uniform numbers make a normal one.
double normal(Random& random) {
  const double radius = std::sqrt(-2 * std::log(1 - random.uniform(0, 1)));
  return radius * std::cos(2 * std::numbers::pi * random.uniform(0, 1));
}

float draw(Random& random, DType dtype, Distribution distribution) {
  if (dtype == DType::boolean) return random.chance(50) ? 1.0f : 0.0f;
  if (distribution == Distribution::positive) return static_cast<float>(random.uniform(0.5, 2));
  return static_cast<float>(is_float(dtype) ? normal(random) : 32 * normal(random));
}

// Contiguous, each element rounded to `dtype` (saturating): the same numbers for the same seed and name on every machine and standard
// library. bool: a fair coin.
Tensor random_tensor(DType dtype, const std::vector<std::int64_t>& shape, Distribution distribution, std::uint64_t seed,
                     std::string_view name) {
  Random random = random_of(seed, name);
  Tensor tensor(dtype, shape);
  for (std::int64_t i = 0; i < tensor.size(); ++i) tensor.set(i, draw(random, dtype, distribution));
  return tensor;
}

struct EvalRequest {
  KernelChoice kernel;
  std::string arch;
  std::int64_t rows = 4;
  std::uint64_t seed = 1;
  std::vector<std::string> sizes, scalars, inputs; // NAME=VALUE, NAME=VALUE, NAME=FILE
  std::string folder;
  bool json = false;
};

using Assignments = std::map<std::string, std::string>;

Assignments parse_assignments(const std::string& option, const std::vector<std::string>& texts) {
  Assignments result;
  for (const std::string& text : texts) {
    const std::size_t equals = text.find('=');
    if (equals == 0 || equals == std::string::npos || equals + 1 == text.size())
      throw UserError(option, fmt::format("\"{}\" is not of the form NAME=VALUE", text), "name what gets the value");
    result[text.substr(0, equals)] = text.substr(equals + 1);
  }
  return result;
}

template <typename Number> Number parse_number(const std::string& option, const std::string& text) {
  Number number{};
  if (!read_whole(text, number)) throw UserError(option, fmt::format("\"{}\" is not a number that fits", text), "write a number");
  return number;
}

// Takes the entry of `name` out of `given`, so that what is left over at the end belongs to nothing.
std::optional<std::string> take(Assignments& given, const std::string& name) {
  const auto found = given.find(name);
  if (found == given.end()) return std::nullopt;
  std::string value = found->second;
  given.erase(found);
  return value;
}

void require_all_taken(const std::string& option, const Assignments& left, const KernelSpec& spec) {
  if (left.empty()) return;
  throw UserError(option, fmt::format("{} has none of the name '{}'", spec.name(), left.begin()->first),
                  "kiln compile --emit plan shows the names of a kernel");
}

std::map<std::string, std::int64_t> sizes_of(const KernelSpec& spec, const EvalRequest& request) {
  Assignments given = parse_assignments("--size", request.sizes);
  std::map<std::string, std::int64_t> sizes;
  for (const Dim& dim : spec.dynamic_dims()) {
    if (const auto text = take(given, dim.name())) {
      sizes[dim.name()] = parse_number<std::int64_t>("--size " + dim.name(), *text);
    } else if (dim.name() == "rows") {
      sizes[dim.name()] = request.rows;
    } else {
      throw UserError(fmt::format("dimension '{}'", dim.name()), "its size is not known", fmt::format("add --size {}=N", dim.name()));
    }
  }
  require_all_taken("--size", given, spec);
  return sizes;
}

std::vector<std::int64_t> shape_of(const Expr& input, const std::map<std::string, std::int64_t>& sizes) {
  std::vector<std::int64_t> shape;
  for (const Dim& dim : input.shape()) shape.push_back(dim.is_dynamic() ? sizes.at(dim.name()) : dim.size());
  return shape;
}

Tensor tensor_of_file(const Expr& input, const std::vector<std::int64_t>& shape, const std::string& file) {
  Tensor tensor(input.dtype(), shape);
  const std::string bytes = read_file(file);
  if (bytes.size() != tensor.data().size()) {
    throw UserError(file,
                    fmt::format("it has {} bytes, but '{}' of {} [{}] takes {}", bytes.size(), input->name, to_string(input.dtype()),
                                fmt::join(shape, ", "), tensor.data().size()),
                    "give raw elements in row-major order, no header");
  }
  std::memcpy(tensor.data().data(), bytes.data(), bytes.size());
  return tensor;
}

// One number a row or for the whole tensor is a scale, more often than not: keep it away from zero.
Distribution distribution_of(const Expr& input) {
  const Shape& shape = input.shape();
  return shape.empty() || shape.back() == Dim(1) ? Distribution::positive : Distribution::normal;
}

Inputs inputs_of(const KernelSpec& spec, const EvalRequest& request) {
  const std::map<std::string, std::int64_t> sizes = sizes_of(spec, request);
  Assignments files = parse_assignments("--input", request.inputs);
  Assignments numbers = parse_assignments("--scalar", request.scalars);
  Inputs inputs;
  std::set<std::string> given;
  for (const Expr& input : spec.inputs()) {
    const std::vector<std::int64_t> shape = shape_of(input, sizes);
    const auto file = take(files, input->name);
    if (file) given.insert(input->name);
    inputs.tensors.emplace(input->name, file ? tensor_of_file(input, shape, *file)
                                             : random_tensor(input.dtype(), shape, distribution_of(input), request.seed, input->name));
  }
  fill_indices(spec, inputs, request.seed, given);
  for (const Expr& scalar : spec.scalars()) {
    const auto text = take(numbers, scalar->name);
    inputs.scalars[scalar->name] = text ? parse_number<double>("--scalar " + scalar->name, *text) : 1.0;
  }
  require_all_taken("--input", files, spec);
  require_all_taken("--scalar", numbers, spec);
  return inputs;
}

// NaNs are counted and otherwise left out; minimum, maximum and mean are over the finite values.
struct Statistics {
  double min = 0, max = 0, mean = 0, rms = 0;
  std::int64_t finite = 0, nan = 0, infinite = 0, zero = 0;
};

Statistics statistics_of(const Tensor& tensor) {
  Statistics s;
  double sum = 0, squares = 0;
  for (std::int64_t i = 0; i < tensor.size(); ++i) {
    const double value = tensor.at(i);
    s.nan += std::isnan(value);
    s.infinite += std::isinf(value);
    s.zero += value == 0;
    if (!std::isfinite(value)) continue;
    s.min = s.finite == 0 ? value : std::min(s.min, value);
    s.max = s.finite == 0 ? value : std::max(s.max, value);
    sum += value;
    squares += value * value;
    ++s.finite;
  }
  if (s.finite != 0) {
    s.mean = sum / static_cast<double>(s.finite);
    s.rms = std::sqrt(squares / static_cast<double>(s.finite));
  }
  return s;
}

void write_raw(const std::filesystem::path& folder, const std::string& kernel, const std::map<std::string, Tensor>& tensors) {
  for (const auto& [name, tensor] : tensors) {
    const std::vector<std::byte>& data = tensor.data();
    write_file(folder / fmt::format("{}.{}.raw", kernel, name), {reinterpret_cast<const char*>(data.data()), data.size()});
  }
}

void print_json(const Outputs& outputs) {
  nlohmann::ordered_json json;
  for (const auto& [output, tensor] : outputs) {
    const Statistics s = statistics_of(tensor);
    json[output] = {{"dtype", to_string(tensor.dtype())},
                    {"shape", tensor.shape()},
                    {"min", s.min},
                    {"max", s.max},
                    {"mean", s.mean},
                    {"rms", s.rms},
                    {"nan", s.nan},
                    {"infinite", s.infinite},
                    {"zero", s.zero}};
  }
  fmt::print("{}\n", json.dump(2));
}

void print_text(const Outputs& outputs) {
  Table table{.header = {"OUTPUT", "TYPE", "SHAPE", "MIN", "MAX", "MEAN", "RMS", "NAN", "INF", "ZERO"},
              .rows = {},
              .right = {false, false, false, true, true, true, true, true, true, true}};
  const auto number = [](double value) { return fmt::format("{:.6g}", value); };
  for (const auto& [output, tensor] : outputs) {
    const Statistics s = statistics_of(tensor);
    table.rows.push_back({output, std::string(to_string(tensor.dtype())), fmt::format("[{}]", fmt::join(tensor.shape(), ", ")),
                          number(s.min), number(s.max), number(s.mean), number(s.rms), std::to_string(s.nan), std::to_string(s.infinite),
                          std::to_string(s.zero)});
  }
  fmt::print("{}", to_text(table));
}

int run(const EvalRequest& request) {
  const KernelSpec spec = chosen_spec(request.kernel, chosen_target({.arch = request.arch}).target);
  const Inputs inputs = inputs_of(spec, request);
  const Outputs outputs = evaluate(spec, inputs);
  if (!request.folder.empty()) {
    make_folder(request.folder);
    write_raw(request.folder, spec.name(), inputs.tensors);
    write_raw(request.folder, spec.name(), outputs);
  }
  request.json ? print_json(outputs) : print_text(outputs);
  return ok;
}

} // namespace

Command make_eval(CLI::App& root) {
  CLI::App* app = root.add_subcommand("eval", "Evaluate a kernel's spec on the CPU and show statistics of its outputs");
  const auto request = std::make_shared<EvalRequest>();
  add_kernel_options(*app, request->kernel);
  add_arch_option(*app, request->arch); // whose fp8 type entries of the catalogue have
  app->add_option("--rows", request->rows, "Size of the dimension `rows`")->capture_default_str();
  app->add_option("--size", request->sizes, "Size of another run-time dimension, NAME=N")->delimiter(',');
  app->add_option("--seed", request->seed, "Seed of the random inputs")->capture_default_str();
  app->add_option("--input", request->inputs, "Raw elements of an input in place of random ones, NAME=FILE")->delimiter(',');
  app->add_option("--scalar", request->scalars, "Value of a run-time scalar, NAME=VALUE (1)")->delimiter(',');
  app->add_option("-o,--output", request->folder, "Folder for inputs and outputs, KERNEL.NAME.raw");
  app->add_flag("--json", request->json, "Print one JSON document");
  return {app, [request] { return run(*request); }};
}

} // namespace kiln::cli
