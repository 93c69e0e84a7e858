// kiln run: executes a kernel on the CPU, instruction by instruction, and compares its outputs with the reference.
#include "gen/error.h"
#include "gen/reference/evaluate_bounds.h"
#include "gen/reference/random_inputs.h"
#include "runtime/build/build_kernel.h"
#include "runtime/cli/command.h"
#include "runtime/cli/kernel_choice.h"
#include "runtime/cli/run_object.h"
#include "runtime/cli/run_report.h"
#include "runtime/launch/emulated/emulate.h"
#include "runtime/table.h"
#include <algorithm>
#include <charconv>
#include <cmath>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <memory>

namespace kiln::cli {
namespace {

struct RunRequest {
  KernelChoice kernel;
  std::string arch;
  std::int64_t rows = 4;
  std::uint64_t seed = 1;
  std::vector<std::string> overrides, sizes;
  ObjectRun object;
  int threads = 0, beside = 0, cus = 0;
  bool special = false, json = false;
};

// How far an output is from evaluate's. Errors are over the elements that are finite on both sides.
struct Comparison {
  std::string output;
  std::int64_t elements = 0, outside = 0; // outside: not what a correct device may answer
  double absolute = 0, relative = 0;      // the largest; relative to evaluate's element, where that is not 0
  std::string first_outside;
};

Comparison compare(const std::string& name, const Tensor& actual, const Tensor& reference, const Bounds& bounds) {
  Comparison c{.output = name, .elements = actual.size(), .first_outside = {}};
  for (std::int64_t i = 0; i < actual.size(); ++i) {
    const double a = static_cast<double>(actual.at(i)), r = static_cast<double>(reference.at(i));
    if (!std::isfinite(a) || !std::isfinite(r)) continue;
    c.absolute = std::max(c.absolute, std::abs(a - r));
    if (r != 0) c.relative = std::max(c.relative, std::abs(a - r) / std::abs(r));
  }
  const Outputs one{{name, actual}};
  if (const auto mismatch = find_mismatch(one, {{name, bounds}})) {
    c.outside = mismatch->count;
    c.first_outside = to_text(*mismatch);
  }
  return c;
}

void print_text(const std::vector<Comparison>& comparisons) {
  Table table{.header = {"OUTPUT", "ELEMENTS", "MAX ABS ERROR", "MAX REL ERROR", "OUTSIDE BOUNDS"},
              .rows = {},
              .right = {false, true, true, true, true}};
  for (const Comparison& c : comparisons)
    table.rows.push_back({c.output, std::to_string(c.elements), fmt::format("{:.3g}", c.absolute), fmt::format("{:.3g}", c.relative),
                          std::to_string(c.outside)});
  fmt::print("{}", to_text(table));
  for (const Comparison& c : comparisons)
    if (c.outside != 0) fmt::print("mismatch: {}\n", c.first_outside);
}

nlohmann::ordered_json json_of(const std::vector<Comparison>& comparisons) {
  nlohmann::ordered_json json = nlohmann::ordered_json::object();
  for (const Comparison& c : comparisons) {
    json[c.output] = {
        {"elements", c.elements}, {"max_absolute_error", c.absolute}, {"max_relative_error", c.relative}, {"outside_bounds", c.outside}};
    if (c.outside != 0) json[c.output]["first_outside"] = c.first_outside;
  }
  return json;
}

int exit_code(const exec::ExecResult& result, const std::vector<Comparison>& comparisons) {
  const bool equal = std::ranges::all_of(comparisons, [](const Comparison& c) { return c.outside == 0; });
  return result.completed && result.defects.empty() && equal ? ok : kernel_failed;
}

exec::ExecOptions exec_options(const RunRequest& request) {
  exec::ExecOptions options;
  options.seed = request.seed;
  options.threads = request.threads;
  return options;
}

void add_comparisons(std::vector<Comparison>& comparisons, const std::string& prefix, const KernelSpec& spec, const Inputs& inputs,
                     const BuiltKernel& built, const Outputs& outputs) {
  const Outputs reference = evaluate(spec, inputs);
  const auto bounds = evaluate_bounds(spec, inputs, bounds_options(built.schedule));
  for (const auto& [name, actual] : outputs) {
    comparisons.push_back(compare(name, actual, reference.at(name), bounds.at(name)));
    comparisons.back().output = prefix + name;
  }
}

// Several launches with inputs of their own, which share a few CUs.
exec::ExecResult run_beside(const RunRequest& request, const KernelSpec& spec, const BuiltKernel& built, const RandomInputsOptions& kind,
                            std::vector<Comparison>& comparisons) {
  std::vector<Inputs> inputs;
  for (int i = 0; i < request.beside; ++i) inputs.push_back(random_inputs(spec, request.seed + static_cast<std::uint64_t>(i), kind));
  EmulatedBeside done = emulate_beside(spec, built.source, built.object, inputs, request.cus, exec_options(request));
  for (std::size_t i = 0; i < inputs.size() && done.result.completed; ++i)
    add_comparisons(comparisons, fmt::format("{}.", i + 1), spec, inputs[i], built, done.outputs[i]);
  return std::move(done.result);
}

int run_spec(const RunRequest& request) {
  if (request.arch.empty()) throw UserError("--arch", "none was given", fmt::format("use one of {}", fmt::join(known_archs(), ", ")));
  if (request.rows < 0) throw UserError("--rows", fmt::format("{} is no size", request.rows), "give 0 or more");
  const Target chosen = target(request.arch);
  const KernelSpec spec = chosen_spec(request.kernel, chosen);
  CompileOptions compile = own_process_options(process_environment());
  const BuiltKernel built = build_kernel(spec, chosen, compile, request.overrides);
  const RandomInputsOptions kind{
      .dynamic_size = request.rows, .sizes = named_sizes(request.sizes, spec), .special_values = request.special};
  const Inputs inputs = random_inputs(spec, request.seed, kind);
  std::vector<Comparison> comparisons;
  exec::ExecResult result;
  if (request.beside > 0) {
    result = run_beside(request, spec, built, kind, comparisons);
  } else {
    EmulatedRun done = emulate(spec, built.source, built.object, inputs, exec_options(request));
    result = std::move(done.result);
    if (result.completed) add_comparisons(comparisons, "", spec, inputs, built, done.outputs); // else the outputs are not all there
  }
  if (request.json) {
    nlohmann::ordered_json json{
        {"kernel", spec.name()}, {"arch", request.arch}, {"sizes", dim_sizes(spec, inputs)}, {"seed", request.seed}};
    json["outputs"] = json_of(comparisons);
    json.update(to_json(result));
    fmt::print("{}\n", json.dump(2));
  } else {
    fmt::print("{} for {}", spec.name(), request.arch);
    for (const auto& [dim, size] : dim_sizes(spec, inputs)) fmt::print(", {} {}", size, dim);
    fmt::print("\n");
    print_text(comparisons);
    fmt::print("{}", to_text(result));
  }
  return exit_code(result, comparisons);
}

int run(const RunRequest& request) {
  const ObjectRun& object = request.object;
  if (object.object.empty()) {
    if (request.kernel.kernel.empty())
      throw UserError("kiln run", "neither a kernel nor --object was given",
                      "name a kernel of the catalogue (kiln list), or --object FILE");
    if (!object.kernel.empty() || !object.grid.empty() || !object.block.empty() || !object.arguments.empty())
      throw UserError("kiln run", "--kernel, --grid, --block and --arg belong to --object", "add --object FILE, or leave them out");
    return run_spec(request);
  }
  if (!request.kernel.kernel.empty())
    throw UserError("kiln run", fmt::format("both '{}' and --object were given", request.kernel.kernel), "give one of them");
  if (object.kernel.empty()) throw UserError("--object", "no kernel of it was named", "add --kernel NAME");
  const exec::ExecResult result = run_object(object, exec_options(request));
  if (request.json) fmt::print("{}\n", to_json(result).dump(2));
  else fmt::print("{}", to_text(result));
  return exit_code(result, {});
}

} // namespace

Command make_run(CLI::App& root) {
  CLI::App* app = root.add_subcommand("run", "Execute a kernel on the CPU and compare it with its spec; needs no GPU");
  const auto request = std::make_shared<RunRequest>();
  add_kernel_options(*app, request->kernel);
  app->remove_option(app->get_option("kernel")); // --object does without it, and has a --kernel of its own
  app->add_option("spec", request->kernel.kernel, "A name of the catalogue (kiln list), or a file with the text of a spec");
  app->add_option("--arch", request->arch, "Architecture to build for");
  app->add_option("--rows", request->rows, "Size of every run-time dimension, clamped to its bounds")->capture_default_str();
  app->add_option("--size", request->sizes, "Size of one run-time dimension, NAME=SIZE; may be repeated")->delimiter(',');
  app->add_option("--seed", request->seed, "Seed of inputs, wave order and unwritten registers")->capture_default_str();
  app->add_flag("--special", request->special, "Infinities, NaN, denormals, zeros and extremes among the inputs");
  app->add_option("--set", request->overrides, "Schedule field to replace, NAME=VALUE; may be repeated")->delimiter(',');
  app->add_option("--threads", request->threads, "Host threads that workgroups run on; 0: all cores")
      ->check(CLI::Range(0, 1024))
      ->capture_default_str();
  CLI::Option* const beside =
      app->add_option("--beside", request->beside,
                      "So many launches beside each other, each with inputs of its own, in an order that --seed chooses")
          ->check(CLI::Range(1, 64));
  app->add_option("--cus", request->cus, "With --beside: the CUs that they share")->check(CLI::Range(1, 1024))->needs(beside);
  beside->needs(app->get_option("--cus"));
  app->add_option("--object", request->object.object, "Run a kernel of this code object in place of a spec");
  app->add_option("--kernel", request->object.kernel, "With --object: the kernel");
  app->add_option("--grid", request->object.grid, "With --object: workgroups, X[,Y,Z]")->delimiter(',');
  app->add_option("--block", request->object.block, "With --object: work items of a workgroup, X[,Y,Z]")->delimiter(',');
  app->add_option("--lds", request->object.dynamic_lds, "With --object: bytes of LDS beyond the static ones");
  app->add_option("--arg", request->object.arguments,
                  "With --object, in order: NAME=FILE (read and written back), i32:N, i64:N, f32:X, words:N,N,..., out:BYTES:FILE");
  app->add_flag("--json", request->json, "Print one JSON document");
  return {app, [request] { return run(*request); }};
}

} // namespace kiln::cli
