// kiln run: executes a kernel on the CPU model, instruction by instruction, or on a device, and compares its outputs with the reference.
#include "gen/error.h"
#include "isa_checks/exec/run/execute.h"
#include "runtime/cli/command.h"
#include "runtime/cli/kernel_choice.h"
#include "runtime/cli/run_object.h"
#include "runtime/cli/target_choice.h"
#include "runtime/launch/emulated/emulate.h"
#include "runtime/proof/checked_run.h"
#include "runtime/table.h"
#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

namespace kiln::cli {
namespace {

// ---- what an execution on the CPU found and counted

using exec::InstClass;
using exec::InstCounters;

// Memory instructions alike: of one class, moving as many bytes for each active lane.
struct Width {
  InstClass cls;
  std::uint64_t bytes_per_lane;
  auto operator<=>(const Width&) const = default;
};

struct Summary {
  std::map<Width, InstCounters> by_width;
  std::uint64_t lane_slots = 0, lanes = 0; // of vector instructions: 64 for each execution, and those EXEC left on
  std::uint64_t lds_cycles = 0, lds_ideal = 0;
  std::uint64_t waits = 0, in_flight = 0, in_flight_peak = 0; // s_waitcnt executed; bytes of loads in flight there
  double mean_in_flight() const { return waits == 0 ? 0 : static_cast<double>(in_flight) / static_cast<double>(waits); }
  double lanes_active() const { return lane_slots == 0 ? 0 : static_cast<double>(lanes) / static_cast<double>(lane_slots); }
};

bool is_vector(InstClass cls) {
  return cls == InstClass::valu || cls == InstClass::trans || cls == InstClass::vmem || cls == InstClass::lds;
}

Summary summary_of(const exec::ExecResult& result) {
  Summary s;
  for (const exec::InstructionProfile& i : result.instructions) {
    const InstCounters& c = i.counters;
    if (is_vector(i.cls)) {
      s.lane_slots += wave_size * c.executed;
      s.lanes += c.lanes;
    }
    s.lds_cycles += c.lds_cycles;
    s.lds_ideal += c.lds_ideal;
    if (i.cls == InstClass::wait) {
      s.waits += c.executed;
      s.in_flight += c.in_flight;
      s.in_flight_peak = std::max(s.in_flight_peak, c.in_flight_peak);
    }
    // A scalar load moves its bytes once a wave.
    const std::uint64_t movers = i.cls == InstClass::smem ? c.executed : c.lanes;
    if (c.bytes != 0 && movers != 0) s.by_width[{i.cls, c.bytes / movers}].add(c);
  }
  return s;
}

std::string text_of_classes(const exec::WaveTotals& waves) {
  Table table{.header = {"CLASS", "EXECUTED", "LEAST WAVE", "MOST WAVE"}, .rows = {}, .right = {false, true, true, true}};
  for (std::size_t c = 0; c < exec::inst_class_count; ++c)
    if (waves.total[c] != 0)
      table.rows.push_back({std::string(to_string(static_cast<InstClass>(c))), std::to_string(waves.total[c]),
                            std::to_string(waves.least[c]), std::to_string(waves.most[c])});
  return to_text(table);
}

std::string text_of_memory(const Summary& s) {
  if (s.by_width.empty()) return {};
  Table table{.header = {"MEMORY", "BYTES A LANE", "EXECUTED", "BYTES", "64-BYTE LINES", "128-BYTE LINES"},
              .rows = {},
              .right = {false, true, true, true, true, true}};
  for (const auto& [width, c] : s.by_width)
    table.rows.push_back({std::string(to_string(width.cls)), std::to_string(width.bytes_per_lane), std::to_string(c.executed),
                          std::to_string(c.bytes), std::to_string(c.lines64), std::to_string(c.lines128)});
  return to_text(table);
}

// Findings, then the measurements: executed instructions by class, memory by width, LDS conflicts.
std::string to_text(const exec::ExecResult& result) {
  std::string text;
  for (const exec::Defect& finding : result.defects) text += fmt::format("finding: {}\n", exec::to_text(finding));
  if (result.defects.empty()) text += "findings: none\n";
  if (!result.completed) text += "the run did not complete\n";
  const Summary s = summary_of(result);
  const exec::WaveTotals& waves = result.waves;
  text += fmt::format("{} waves, {} instructions; a wave {} to {}, {:.1f} on average\n{}{}", waves.waves, waves.executed(),
                      exec::sum(waves.least), exec::sum(waves.most), waves.mean(), text_of_classes(waves), text_of_memory(s));
  if (s.in_flight != 0)
    text += fmt::format("bytes of loads in flight at s_waitcnt: {:.0f} on average, {} at most (of a wave)\n", s.mean_in_flight(),
                        s.in_flight_peak);
  text += fmt::format("lanes active {:.1f}%", 100 * s.lanes_active());
  if (s.lds_cycles != 0) text += fmt::format("; LDS bank passes {}, {} of them for conflicts", s.lds_cycles, s.lds_cycles - s.lds_ideal);
  return text + "\n";
}

nlohmann::ordered_json to_json(const exec::ExecResult& result) {
  nlohmann::ordered_json json{{"completed", result.completed}, {"findings", nlohmann::ordered_json::array()}};
  for (const exec::Defect& f : result.defects)
    json["findings"].push_back({{"kind", to_string(f.kind)},
                                {"address", f.instruction},
                                {"instruction", f.text},
                                {"workgroup", f.workgroup},
                                {"wave", f.wave},
                                {"lane", f.lane},
                                {"message", f.message},
                                {"source", f.source},
                                {"count", f.count}});
  const exec::WaveTotals& waves = result.waves;
  json["waves"] = waves.waves;
  json["instructions_per_wave"] = {{"least", exec::sum(waves.least)}, {"mean", waves.mean()}, {"most", exec::sum(waves.most)}};
  for (std::size_t c = 0; c < exec::inst_class_count; ++c)
    if (waves.total[c] != 0)
      json["executed"][std::string(to_string(static_cast<InstClass>(c)))] = {
          {"total", waves.total[c]}, {"least", waves.least[c]}, {"most", waves.most[c]}};
  const Summary s = summary_of(result);
  json["memory"] = nlohmann::ordered_json::array();
  for (const auto& [width, c] : s.by_width)
    json["memory"].push_back({{"class", to_string(width.cls)},
                              {"bytes_per_lane", width.bytes_per_lane},
                              {"executed", c.executed},
                              {"bytes", c.bytes},
                              {"lines64", c.lines64},
                              {"lines128", c.lines128}});
  json["lds"] = {{"bank_passes", s.lds_cycles}, {"bank_passes_without_conflicts", s.lds_ideal}};
  json["lanes_active"] = s.lanes_active();
  json["in_flight"] = {{"mean_bytes", s.mean_in_flight()}, {"peak_bytes", s.in_flight_peak}, {"waits", nlohmann::ordered_json::array()}};
  for (const exec::InstructionProfile& i : result.instructions)
    if (i.cls == InstClass::wait && i.counters.executed != 0)
      json["in_flight"]["waits"].push_back(
          {{"address", i.address},
           {"executed", i.counters.executed},
           {"mean_bytes", static_cast<double>(i.counters.in_flight) / static_cast<double>(i.counters.executed)},
           {"peak_bytes", i.counters.in_flight_peak},
           {"outstanding_vm", {i.counters.min_vm, i.counters.max_vm}},
           {"outstanding_lgkm", {i.counters.min_lgkm, i.counters.max_lgkm}}});
  return json;
}

// ---- the command

struct RunRequest {
  KernelChoice kernel;
  std::string arch, device;
  std::int64_t rows = 4;
  std::uint64_t seed = 1;
  std::vector<std::string> overrides, sizes;
  ObjectRun object;
  int threads = 0, beside = 0, cus = 0;
  bool special = false, json = false, batch_invariant = false;
};

int exit_code(const exec::ExecResult& result, const CheckedRun& checked) {
  return result.completed && result.defects.empty() && checked.right() ? ok : kernel_failed;
}

exec::ExecOptions exec_options(const RunRequest& request) {
  exec::ExecOptions options;
  options.seed = request.seed;
  options.threads = request.threads;
  return options;
}

struct BuiltSpec {
  Target target;
  KernelSpec spec;
  CompileOptions compile;
  BuiltKernel built;
  RandomInputsOptions kind;
  Inputs inputs;
};

BuiltSpec build_spec(const RunRequest& request, const std::string& arch) {
  if (request.rows < 0) throw UserError("--rows", fmt::format("{} is no size", request.rows), "give 0 or more");
  const Target chosen = chosen_target({.arch = arch, .batch_invariant = request.batch_invariant}).target;
  KernelSpec spec = chosen_spec(request.kernel, chosen);
  CompileOptions compile = own_process_options(process_environment());
  BuiltKernel built = build_kernel(spec, chosen, compile, request.overrides);
  RandomInputsOptions kind{.dynamic_size = request.rows,
                           .sizes = named_sizes(request.sizes, spec),
                           .values = request.special ? InputValues::special : InputValues::moderate};
  Inputs inputs = random_inputs(spec, request.seed, kind);
  return {chosen, std::move(spec), std::move(compile), std::move(built), std::move(kind), std::move(inputs)};
}

std::string title(const BuiltSpec& b, const std::string& where) {
  std::string text = fmt::format("{} for {}{}", b.spec.name(), b.target.arch(), where);
  for (const auto& [dim, size] : dim_sizes(b.spec, b.inputs)) text += fmt::format(", {} {}", size, dim);
  return text + "\n";
}

nlohmann::ordered_json head(const RunRequest& request, const BuiltSpec& b) {
  return {{"kernel", b.spec.name()}, {"arch", b.target.arch()}, {"sizes", dim_sizes(b.spec, b.inputs)}, {"seed", request.seed}};
}

// Several launches with inputs of their own, which share a few CUs.
exec::ExecResult run_beside(const RunRequest& request, const BuiltSpec& b, CheckedRun& checked) {
  std::vector<Inputs> inputs;
  for (int i = 0; i < request.beside; ++i) inputs.push_back(random_inputs(b.spec, request.seed + static_cast<std::uint64_t>(i), b.kind));
  EmulatedBeside done = emulate_beside(b.spec, b.built.source, b.built.object, inputs, request.cus, exec_options(request));
  for (std::size_t i = 0; i < inputs.size() && done.result.completed; ++i)
    for (CheckedOutput& output : compare(done.outputs[i], nullptr, b.spec, inputs[i], b.built.schedule).outputs) {
      output.name = fmt::format("{}.{}", i + 1, output.name);
      checked.outputs.push_back(std::move(output));
    }
  return std::move(done.result);
}

// On the CPU model, with all that it counts.
int run_spec(const RunRequest& request) {
  const BuiltSpec b = build_spec(request, request.arch);
  CheckedRun checked;
  exec::ExecResult result;
  if (request.beside > 0) {
    result = run_beside(request, b, checked);
  } else {
    EmulatedRun done = emulate(b.spec, b.built.source, b.built.object, b.inputs, exec_options(request));
    result = std::move(done.result);
    if (result.completed) // else the outputs are not all there
      checked = compare(done.outputs, nullptr, b.spec, b.inputs, b.built.schedule);
  }
  if (request.json) {
    nlohmann::ordered_json json = head(request, b);
    json["outputs"] = to_json(checked);
    json.update(to_json(result));
    fmt::print("{}\n", json.dump(2));
  } else {
    fmt::print("{}{}{}", title(b, ""), to_text(checked), to_text(result));
  }
  return exit_code(result, checked);
}

// On a device, as a program would launch it; beside the CPU model where that is another one.
int run_on_device(const RunRequest& request) {
  const Device device = open_device("kiln run", request.device);
  const std::string& arch = device.target().arch();
  if (!request.arch.empty() && request.arch != arch)
    throw UserError("--device " + request.device, fmt::format("it is {}, --arch is {}", arch, request.arch), "leave --arch out");
  const BuiltSpec b = build_spec(request, arch);
  const Kernel kernel = kernel_of(b.spec, b.target, request.overrides, b.compile, b.built);
  const CheckedRun checked = checked_run(device, b.built, kernel, b.spec, b.inputs);
  if (request.json) {
    nlohmann::ordered_json json = head(request, b);
    json["device"] = device.description();
    json["outputs"] = to_json(checked);
    fmt::print("{}\n", json.dump(2));
  } else {
    fmt::print("{}{}", title(b, " on " + device.description()), to_text(checked));
  }
  return checked.right() ? ok : kernel_failed;
}

int run(const RunRequest& request) {
  if (!is_object("kiln run", request.kernel, request.object)) return request.device.empty() ? run_spec(request) : run_on_device(request);
  if (!request.device.empty())
    throw UserError("--device", "a code object of another compiler runs on the CPU model only", "leave --device out, or name a kernel");
  const exec::ExecResult result = run_object(request.object, exec_options(request));
  if (request.json) fmt::print("{}\n", to_json(result).dump(2));
  else fmt::print("{}", to_text(result));
  return exit_code(result, {});
}

} // namespace

Command make_run(CLI::App& root) {
  CLI::App* app = root.add_subcommand("run", "Execute a kernel on the CPU model or a GPU and compare it with its spec");
  const auto request = std::make_shared<RunRequest>();
  add_launched_options(*app, request->kernel, request->object);
  add_arch_option(*app, request->arch);
  add_batch_invariant_option(*app, request->batch_invariant);
  app->add_option("--device", request->device,
                  "Launch on hip:ORDINAL and compare with the CPU model too, or on emulated:ARCH as a program would");
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
  app->add_flag("--json", request->json, "Print one JSON document");
  return {app, [request] { return run(*request); }};
}

} // namespace kiln::cli
