// CheckedRun: compared element by element, printed as a table and as JSON.
#include "runtime/proof/checked_run.h"
#include "gen/error.h"
#include "gen/reference/evaluate_bounds.h"
#include "runtime/launch/emulated/emulate.h"
#include "runtime/launch/kernel_buffers.h"
#include "runtime/launch/predict_kernel.h"
#include <algorithm>
#include <cmath>
#include <fmt/format.h>

namespace kiln {
namespace {

void compare_bits(CheckedOutput& c, const Tensor& actual, const Tensor& model) {
  c.has_model = true;
  for (std::int64_t i = 0; i < actual.size(); ++i) {
    if (actual.bits(i) == model.bits(i)) continue;
    const bool both_nan = std::isnan(static_cast<double>(actual.at(i))) && std::isnan(static_cast<double>(model.at(i)));
    ++(both_nan ? c.nan_payloads : c.differing);
  }
}

CheckedOutput compare(const std::string& name, const Tensor& actual, const Tensor& reference, const Bounds& bounds) {
  CheckedOutput c{.name = name, .elements = actual.size(), .first_outside = {}};
  for (std::int64_t i = 0; i < actual.size(); ++i) {
    const double a = static_cast<double>(actual.at(i)), r = static_cast<double>(reference.at(i));
    if (!std::isfinite(a) || !std::isfinite(r)) continue;
    c.absolute = std::max(c.absolute, std::abs(a - r));
    if (r != 0) c.relative = std::max(c.relative, std::abs(a - r) / std::abs(r));
  }
  if (const auto mismatch = find_mismatch({{name, actual}}, {{name, bounds}})) {
    c.outside = mismatch->count;
    c.first_outside = to_text(*mismatch);
  }
  return c;
}

} // namespace

bool CheckedRun::right() const {
  return std::ranges::all_of(outputs, [](const CheckedOutput& c) { return c.outside == 0; });
}

std::string CheckedRun::verdict() const {
  for (const CheckedOutput& c : outputs)
    if (c.outside != 0) return c.first_outside;
  std::int64_t differing = 0, elements = 0;
  for (const CheckedOutput& c : outputs) differing += c.differing, elements += c.elements;
  if (!std::ranges::any_of(outputs, &CheckedOutput::has_model)) return "as the reference";
  if (differing == 0) return "as the reference, bits as the CPU model's";
  return fmt::format("as the reference, {} of {} elements with other bits than the CPU model's", differing, elements);
}

CheckedRun compare(const Outputs& actual, const Outputs* model, const KernelSpec& spec, const Inputs& inputs, const Schedule& schedule) {
  const Outputs reference = evaluate(spec, inputs);
  const auto bounds = evaluate_bounds(spec, inputs, bounds_options(schedule));
  CheckedRun run;
  for (const auto& [name, tensor] : actual) {
    run.outputs.push_back(compare(name, tensor, reference.at(name), bounds.at(name)));
    if (model != nullptr) compare_bits(run.outputs.back(), tensor, model->at(name));
  }
  return run;
}

CheckedRun checked_run(const Device& device, const BuiltKernel& built, const Kernel& kernel, const KernelSpec& spec, const Inputs& inputs) {
  const Outputs actual = run_on(device, kernel, spec, inputs);
  if (device.is_emulated()) return compare(actual, nullptr, spec, inputs, built.schedule);
  const Outputs model = run_on(Device::emulated(device.target().arch()), kernel, spec, inputs);
  return compare(actual, &model, spec, inputs, built.schedule);
}

timing::Prediction predicted(const BuiltKernel& built, const KernelSpec& spec, const std::map<std::string, std::int64_t>& sizes,
                             const timing::Chip& chip) {
  return predict_kernel(spec, built.source, built.object, sizes, chip, {.changes = false});
}

Device open_device(const std::string& command, const std::string& name) {
  try {
    return Device::open(name);
  } catch (const EnvironmentError& error) {
    throw UserError(command, fmt::format("there is no device {} ({})", name, error.fact), error.remedy);
  }
}

std::string to_text(const CheckedRun& run) {
  Table table{.header = {"OUTPUT", "ELEMENTS", "MAX ABS ERROR", "MAX REL ERROR", "OUTSIDE BOUNDS"},
              .rows = {},
              .right = {false, true, true, true, true}};
  const bool has_model = std::ranges::any_of(run.outputs, &CheckedOutput::has_model);
  if (has_model) {
    table.header.insert(table.header.end(), {"OTHER BITS THAN THE CPU MODEL", "OTHER NAN"});
    table.right.insert(table.right.end(), {true, true});
  }
  for (const CheckedOutput& c : run.outputs) {
    table.rows.push_back({c.name, std::to_string(c.elements), fmt::format("{:.3g}", c.absolute), fmt::format("{:.3g}", c.relative),
                          std::to_string(c.outside)});
    if (has_model) table.rows.back().insert(table.rows.back().end(), {std::to_string(c.differing), std::to_string(c.nan_payloads)});
  }
  std::string text = kiln::to_text(table);
  for (const CheckedOutput& c : run.outputs)
    if (c.outside != 0) text += fmt::format("mismatch: {}\n", c.first_outside);
  return run.right() ? text + run.verdict() + "\n" : text;
}

nlohmann::ordered_json to_json(const CheckedRun& run) {
  nlohmann::ordered_json json = nlohmann::ordered_json::object();
  for (const CheckedOutput& c : run.outputs) {
    json[c.name] = {
        {"elements", c.elements}, {"max_absolute_error", c.absolute}, {"max_relative_error", c.relative}, {"outside_bounds", c.outside}};
    if (c.outside != 0) json[c.name]["first_outside"] = c.first_outside;
    if (c.has_model) json[c.name].update({{"other_bits_than_model", c.differing}, {"other_nan", c.nan_payloads}});
  }
  return json;
}

} // namespace kiln
