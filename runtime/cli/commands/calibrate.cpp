// kiln calibrate: measures the constants of the timing model on a device, beside the table's.
#include "runtime/tune/calibrate.h"
#include "gen/error.h"
#include "runtime/cli/command.h"
#include "runtime/cli/output.h"
#include "runtime/launch/device_chip.h"
#include "runtime/proof/checked_run.h"
#include <fmt/format.h>
#include <memory>

namespace kiln::cli {
namespace {

struct CalibrateRequest {
  std::string device = "hip:0", output;
};

std::string text_of(const std::optional<double>& number, const char* format) {
  return number ? fmt::format(fmt::runtime(format), *number) : "-";
}

int run(const CalibrateRequest& request) {
  const Device device = open_device("kiln calibrate", request.device);
  const DeviceChip part = chip_of(device.target(), device.product(), process_environment().chip);
  const Calibration done = calibrate(device, *part.chip, own_process_options(process_environment()));
  Table table{.header = {"CONSTANT", "TABLE", "MEASURED", "RATIO"}, .rows = {}, .right = {false, true, true, true}};
  for (const CalibratedConstant& c : done.constants)
    table.rows.push_back({c.name, fmt::format("{:.4g}", c.table), text_of(c.measured, "{:.4g}"),
                          c.measured ? fmt::format("{:.2f}", *c.measured / c.table) : "-"});
  fmt::print("{}, as {} ({})\n\n{}\n", done.device, part.chip->name, part.how, kiln::to_text(table));
  Table rates{.header = {"BYTES IN FLIGHT A CU", "TB/S FROM HBM"}, .rows = {}, .right = {true, true}};
  for (const RatePoint& p : done.rates) rates.rows.push_back({fmt::format("{:.0f}", p.bytes_in_flight), text_of(p.tbs, "{:.2f}")});
  fmt::print("{}", kiln::to_text(rates));
  if (device.is_emulated())
    fmt::print("Every kernel ran and computed what it should; the CPU model counts no clocks, so nothing is measured.\n");
  if (!request.output.empty()) write_file(request.output, kiln::to_json(done));
  return ok;
}

} // namespace

Command make_calibrate(CLI::App& root) {
  CLI::App* app = root.add_subcommand("calibrate", "Measure the constants of the timing model on a GPU, beside the table's");
  const auto request = std::make_shared<CalibrateRequest>();
  app->add_option("--device", request->device, "hip:ORDINAL; emulated:ARCH runs every kernel once and measures nothing")
      ->capture_default_str();
  app->add_option("-o,--output", request->output, "File for kiln predict --chip-file");
  return {app, [request] { return run(*request); }};
}

} // namespace kiln::cli
