// Proof: the lines of a sheet, each from the code object or from executing it.
#include "runtime/proof/proof.h"
#include "gen/families/make_plan.h"
#include "gen/reference/evaluate_bounds.h"
#include "isa_checks/plural.h"
#include "isa_checks/verdict/errata.h"
#include "runtime/build/inspect.h"
#include "runtime/cache/request.h"
#include "runtime/digest.h"
#include "runtime/launch/benchmark.h"
#include "runtime/launch/kernel.h"
#include "runtime/launch/record.h"
#include "runtime/proof/batches.h"
#include "runtime/proof/checked_run.h"
#include "runtime/proof/trials.h"
#include "runtime/tune/explain.h"
#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <map>
#include <mutex>

namespace kiln {
namespace {

using isa::plural;

constexpr std::size_t max_evidence = 8; // lines of it

void add_evidence(ProofLine& line, std::string text) {
  if (line.evidence.size() < max_evidence) line.evidence.push_back(std::move(text));
  else if (line.evidence.size() == max_evidence) line.evidence.emplace_back("and more");
}

ProofLine contract_line(const isa::IsaReport& report) {
  ProofLine line{.name = "contract", .verdict = report.met() ? ProofVerdict::holds : ProofVerdict::fails};
  const isa::ExpectationResult* closest = nullptr;
  std::size_t broken = 0;
  for (const isa::ExpectationResult& result : report.results) {
    if (!result.met) {
      ++broken;
      add_evidence(line, fmt::format("{}: expected {}, found {}", result.name, result.expected, result.found));
      for (const std::string& place : result.evidence) add_evidence(line, "  " + place);
    } else if (result.margin && (closest == nullptr || *result.margin < *closest->margin)) {
      closest = &result;
    }
  }
  line.found = fmt::format("{} of {} promises kept", report.results.size() - broken, report.results.size());
  if (broken == 0 && closest != nullptr)
    line.found += fmt::format("; the closest: {} expected {}, found {}", closest->name, closest->expected, closest->found);
  line.numbers = {{"promises", report.results.size()}, {"broken", broken}};
  return line;
}

// Published faults of the hardware and of compilers have rules of their own; all other rules that are on are the lint.
void add_lint(ProofSheet& sheet, const CodeObject& object) {
  ProofLine errata{.name = "known faults"}, lint{.name = "lint"};
  std::map<isa::Severity, std::size_t> of_errata, of_lint;
  for (const isa::Finding& finding : findings_of(object)) {
    const bool fault = isa::is_published_fault(finding.rule);
    ++(fault ? of_errata : of_lint)[finding.severity];
    if (finding.severity == isa::Severity::info) continue;
    add_evidence(fault ? errata : lint, fmt::format("{} {} at {:#x}: {}", finding.rule, isa::to_string(finding.severity),
                                                    finding.address.value_or(0), finding.message));
  }
  const auto finish = [](ProofLine& line, std::map<isa::Severity, std::size_t>& count, const std::string& of) {
    line.verdict = count[isa::Severity::error] == 0 ? ProofVerdict::holds : ProofVerdict::fails;
    line.found =
        fmt::format("{}, {} {}", plural(count[isa::Severity::error], "error"), plural(count[isa::Severity::warning], "warning"), of);
    line.numbers = {
        {"errors", count[isa::Severity::error]}, {"warnings", count[isa::Severity::warning]}, {"infos", count[isa::Severity::info]}};
  };
  finish(errata, of_errata, "from the rules of published faults of chips and compilers");
  finish(lint, of_lint, "from all other rules that are on");
  sheet.lines.push_back(std::move(errata));
  sheet.lines.push_back(std::move(lint));
}

// What all runs found beside the numbers.
struct Runs {
  std::size_t count = 0;
  std::uint64_t instructions = 0;
  std::map<std::string, std::uint64_t> defects; // by kind
  ProofLine line{.name = "sanitisers"};
  void add(const EmulatedRun& run, const std::string& where) {
    ++count;
    instructions += run.result.waves.executed();
    for (const exec::Defect& defect : run.result.defects) {
      defects[std::string(exec::to_string(defect.kind))] += defect.count;
      add_evidence(line, fmt::format("{}: {}", where, exec::to_text(defect)));
    }
    if (!run.result.completed && run.result.defects.empty()) {
      ++defects["did not complete"];
      add_evidence(line, where + ": did not complete");
    }
  }
  ProofLine finished() {
    line.verdict = defects.empty() ? ProofVerdict::holds : ProofVerdict::fails;
    std::uint64_t all = 0;
    for (const auto& [kind, number] : defects) {
      line.numbers.emplace_back(kind, number);
      all += number;
    }
    line.numbers.insert(line.numbers.begin(), {{"runs", count}, {"instructions", instructions}, {"defects", all}});
    line.found = fmt::format("{} in {}, {} executed: accesses out of bounds or misaligned, registers and LDS read before their load is "
                             "waited for, unwritten values, races in LDS, missing wait states, deadlocks",
                             plural(all, "defect"), plural(count, "run"), plural(instructions, "instruction"));
    return std::move(line);
  }
};

class Prover {
public:
  Prover(const KernelSpec& spec, const Target& target, const BuiltKernel& built, const ProofOptions& options)
      : spec_(spec), target_(target), built_(built), options_(options) {}

  void results(ProofSheet& sheet, InputValues values, const std::string& kind) {
    ProofLine line{.name = "results, " + kind + " inputs", .verdict = ProofVerdict::holds};
    const int count = options_.inputs > 0 ? options_.inputs : affordable(3, 1);
    std::int64_t elements = 0, outside = 0, anything = 0;
    for (int i = 0; i < count; ++i) {
      const std::uint64_t seed = options_.seed + static_cast<std::uint64_t>(i);
      const int turn = values == InputValues::moderate ? i : i + 1; // so that kinds differ where each has one
      const Inputs inputs = random_inputs(spec_, seed, {.dynamic_size = size(turn), .values = values});
      exec::ExecOptions run;
      run.seed = seed;
      run.measure = false;
      const auto bounds = evaluate_bounds(spec_, inputs, bounds_options(built_.schedule));
      const Trial trial = try_kernel(spec_, built_, inputs, bounds, run);
      for (const auto& [name, bound] : bounds) anything += std::ranges::count(bound.ranges, Range::anything());
      const std::string where = fmt::format("{} inputs, seed {}{}", kind, seed, sizes_text(inputs));
      runs_.add(trial.run, where);
      for (const auto& [name, tensor] : trial.run.outputs) elements += tensor.size();
      if (!trial.mismatch) continue;
      outside += trial.mismatch->count;
      add_evidence(line, fmt::format("{}: {}", where, to_text(*trial.mismatch)));
    }
    if (outside > 0) line.verdict = ProofVerdict::fails;
    line.found = fmt::format("{}, {}, {} outside of what a correct device may answer", plural(static_cast<std::size_t>(count), "input"),
                             plural(static_cast<std::size_t>(elements), "element"), outside);
    if (anything > 0) line.found += fmt::format("; {} may be anything, by overflow or NaN", anything);
    line.numbers = {{"inputs", count}, {"elements", elements}, {"outside", outside}, {"anything", anything}};
    sheet.lines.push_back(std::move(line));
  }

  void orders(ProofSheet& sheet) {
    const int count = options_.orders > 0 ? options_.orders : affordable(6, 2);
    const Inputs inputs = random_inputs(spec_, options_.seed, {.dynamic_size = size(2)});
    const int launches = options_.launches > 0 ? options_.launches : affordable(3, 2);
    OrderOptions orders{.count = static_cast<std::uint64_t>(count), .launches = launches, .side_by_side = true};
    std::uint64_t seed = 0;
    orders.also = [&](const EmulatedRun& run) {
      runs_.add(run, fmt::format("interleaving {}", ++seed));
      return std::string();
    };
    ProofLine line{.name = "interleavings", .verdict = ProofVerdict::holds};
    line.found = fmt::format("{} of waves, {} each on one workspace", plural(static_cast<std::size_t>(count), "interleaving"),
                             plural(static_cast<std::size_t>(launches), "launch"));
    if (const auto fault = try_orders(spec_, built_, inputs, orders)) {
      line.verdict = ProofVerdict::fails;
      line.found += fmt::format(": interleaving {} is wrong", fault->seed);
      add_evidence(line, fmt::format("interleaving {}{}: {}", fault->seed, sizes_text(inputs), fault->wrong));
    } else {
      line.found += ": the same bits";
    }
    line.numbers = {{"interleavings", count}, {"launches", launches}};
    sheet.lines.push_back(std::move(line));
  }

  // By the schedule, and executed where rows can be launched apart. If it was asked for, no other schedule is taken.
  void batch(ProofSheet& sheet) {
    ProofLine line{.name = "batch invariance", .found = batch_invariance(built_.plan, built_.schedule, target_)};
    const bool promised = target_.batch_invariant() || line.found.starts_with("holds");
    if (target_.batch_invariant()) line.verdict = ProofVerdict::holds;
    if (const RowDim rows = row_dim(spec_); rows.name.empty()) {
      line.found += "; not executed: " + rows.why_not;
    } else {
      const auto [wrong, launches, compared] = executed_batches(rows.name);
      line.numbers = {{"launches", launches}, {"rows_compared", compared}};
      if (wrong.empty()) {
        line.found += fmt::format("; executed: {} rows had the bits of another of {} launches", compared, launches);
      } else {
        line.found += promised ? "; executed: it does not hold" : "; executed: bits differ";
        if (promised) line.verdict = ProofVerdict::fails;
        add_evidence(line, wrong);
      }
    }
    sheet.lines.push_back(std::move(line));
  }

  void sanitisers(ProofSheet& sheet) { sheet.lines.push_back(runs_.finished()); }

  void predicted_time(ProofSheet& sheet, const timing::Chip& chip) const {
    std::vector<RunTimeSizes> sizes = nominal_sizes(built_.plan); // rising
    while (sizes.size() > 1 && work(sizes.back()) > large) sizes.pop_back();
    const timing::Prediction p = predicted(built_, spec_, sizes.back(), chip);
    sheet.lines.push_back({.name = "predicted time",
                           .verdict = ProofVerdict::stated,
                           .found = fmt::format("{:.2f} us{} on {}, caches cold; {:.2f} to {:.2f} by the errors on what was measured",
                                                p.microseconds, sizes_text(sizes.back()), chip.name, p.low, p.high),
                           .numbers = {{"us", p.microseconds}, {"low_us", p.low}, {"high_us", p.high}}});
  }

  void on_device(ProofSheet& sheet, const Device& device, const CompileOptions& compile) const {
    const Kernel kernel = kernel_of(spec_, target_, options_.overrides, compile, built_);
    const auto add = [&](const std::string& name, const auto& fill) {
      ProofLine line{.name = name};
      try {
        fill(line);
      } catch (const EnvironmentError& error) { // the device's fault, or the kernel's: what was proved without it stands
        line = {.name = name, .verdict = ProofVerdict::fails, .found = error.what()};
      }
      sheet.lines.push_back(std::move(line));
    };
    add("on " + device.description(), [&](ProofLine& line) { compare_on(device, kernel, line); });
    add("measured time", [&](ProofLine& line) { measure_on(device, kernel, line); });
  }

private:
  void compare_on(const Device& device, const Kernel& kernel, ProofLine& bits) const {
    bits.verdict = ProofVerdict::holds;
    std::int64_t elements = 0, outside = 0, differing = 0;
    int count = 0;
    for (const InputValues values : {InputValues::moderate, InputValues::special, InputValues::largest}) {
      const Inputs inputs = random_inputs(spec_, options_.seed, {.dynamic_size = size(0), .values = values});
      const CheckedRun run = checked_run(device, built_, kernel, spec_, inputs);
      ++count;
      for (const CheckedOutput& output : run.outputs) {
        elements += output.elements;
        outside += output.outside;
        differing += output.differing;
        if (output.outside > 0) add_evidence(bits, output.first_outside);
      }
    }
    if (outside > 0) bits.verdict = ProofVerdict::fails;
    bits.found = fmt::format("{}, {}, {} outside of what a correct device may answer", plural(static_cast<std::size_t>(count), "input"),
                             plural(static_cast<std::size_t>(elements), "element"), outside);
    bits.numbers = {{"inputs", count}, {"elements", elements}, {"outside", outside}};
    if (!device.is_emulated()) {
      bits.found += fmt::format(", {} with other bits than the CPU model's", differing);
      bits.numbers.emplace_back("other_bits", differing);
    }
  }

  struct BatchRuns {
    std::string wrong;
    std::size_t launches = 0, compared = 0;
  };
  // Rows out of one set: the largest launch first, so that later ones have rows that it had.
  BatchRuns executed_batches(const std::string& rows) {
    const std::vector<Dim> dims = spec_.dynamic_dims();
    const Dim& dim = *std::ranges::find(dims, rows, &Dim::name);
    const std::int64_t set = size_within(dim, work(29) <= large ? 29 : 3);
    Batches batches(spec_, options_.seed, set);
    BatchRuns runs;
    batches.also = [&](const EmulatedRun& run) { runs_.add(run, fmt::format("batch {}", ++runs.launches)); };
    for (const std::int64_t size : {set, size_within(dim, 1), size_within(dim, 2), size_within(dim, 7)}) {
      if (size > set) continue;
      runs.wrong = batches.launch(spec_, built_, size);
      if (!runs.wrong.empty()) break;
    }
    runs.compared = batches.compared();
    return runs;
  }

  void measure_on(const Device& device, const Kernel& kernel, ProofLine& line) const {
    if (device.is_emulated()) {
      line.found = "not measured: the CPU model executes, it does not time";
      return;
    }
    const BenchmarkResult r = benchmark(device, kernel, options_.rows, {});
    line.found = fmt::format("median {:.2f} us, deviation {:.2f}, {} samples of {} launches", r.median, r.deviation, r.samples.size(),
                             r.launches_per_sample);
    line.numbers = {{"median_us", r.median}, {"deviation_us", r.deviation}};
    for (const std::string& warning : r.warnings) add_evidence(line, warning);
  }

  // Bytes and operations, in millions, that a launch asks for; with `size` for each run-time dimension.
  double work(const RunTimeSizes& sizes) const {
    const Work work = work_of(spec_, sizes);
    return static_cast<double>(work.bytes + work.flops) / 1e6;
  }
  double work(std::int64_t size) const {
    std::map<std::string, std::int64_t> sizes;
    for (const Dim& dim : spec_.dynamic_dims()) sizes[dim.name()] = size_within(dim, size);
    return work(sizes);
  }
  // By measurement on the catalogue: a run with its bounds takes about five seconds at `large`, one at `small`.
  static constexpr double large = 700, small = 100;
  int affordable(int most, int least) const { return work(options_.rows) <= small ? most : least; }

  // The size that run-time dimensions have in this turn; none asks for too much.
  std::int64_t size(int turn) const {
    const std::int64_t wanted = std::array<std::int64_t, 3>{options_.rows, 1, 3}[static_cast<std::size_t>(turn) % 3];
    return work(wanted) <= large ? wanted : 1;
  }

  static std::string sizes_text(const std::map<std::string, std::int64_t>& sizes) {
    std::string text;
    for (const auto& [name, size] : sizes) text += fmt::format(", {} {}", name, size);
    return text;
  }
  std::string sizes_text(const Inputs& inputs) const { return sizes_text(dim_sizes(spec_, inputs)); }

  const KernelSpec& spec_;
  const Target& target_;
  const BuiltKernel& built_;
  const ProofOptions& options_;
  Runs runs_;
};

// What the sheet's lines do not say of this kernel.
std::vector<std::string> unknown_of(const BuiltKernel& built, const ProofOptions& options) {
  std::vector<std::string> unknown;
  const bool on_gpu = options.device && !options.device->is_emulated();
  if (!on_gpu) unknown.emplace_back("It has not run on a GPU: times are predictions, and results are the CPU model's.");
  if (built.facts.count(isa::InstructionClass::mfma) > 0)
    unknown.emplace_back(
        "AMD does not document in which order a matrix instruction adds its products: results on a GPU may differ from the "
        "CPU model's within the bounds.");
  unknown.emplace_back("Inputs are samples. No line says that all inputs are right.");
  unknown.emplace_back("Interleavings are samples too, with workgroups in any order that the CPU model can run.");
  return unknown;
}

ProofSheet titled(const KernelSpec& spec, const Target& target, const CompileOptions& compile, const ProofOptions& options) {
  ProofSheet sheet;
  sheet.title = options.title.empty() ? spec.name() : options.title;
  sheet.kernel = spec.name();
  sheet.arch = target.arch();
  sheet.spec = to_text(spec);
  sheet.key = cache_key(kernel_request(spec, target, options.overrides, compile), compiler_identity(compile.environment)).hex;
  return sheet;
}

} // namespace

std::string_view to_string(ProofVerdict verdict) {
  switch (verdict) {
  case ProofVerdict::holds: return "holds";
  case ProofVerdict::fails: return "fails";
  case ProofVerdict::stated: break;
  }
  return "stated";
}

bool ProofSheet::holds() const { return failing() == nullptr; }
const ProofLine* ProofSheet::failing() const {
  const auto line = std::ranges::find(lines, ProofVerdict::fails, &ProofLine::verdict);
  return line == lines.end() ? nullptr : &*line;
}

ProofSheet prove(const KernelSpec& spec, const Target& target, const BuiltKernel& built, const CompileOptions& compile,
                 const ProofOptions& options) {
  const timing::Chip& chip = options.chip == nullptr ? target.chip() : *options.chip;
  ProofSheet sheet = titled(spec, target, compile, options);
  sheet.chip = chip.name;
  sheet.settings = settings_of(built.schedule);
  sheet.why = built.schedule.why;
  sheet.compiler = built.object.compiler;
  sheet.llvm = built.object.llvm;
  sheet.source_sha256 = sha256(built.source.text);
  sheet.object_sha256 = sha256(std::string_view(reinterpret_cast<const char*>(built.object.bytes.data()), built.object.bytes.size()));
  sheet.contract = inspect(built.object, promises(built.plan, built.schedule, target)).report;
  sheet.lines.push_back(contract_line(sheet.contract));
  add_lint(sheet, built.object);
  Prover prover(spec, target, built, options);
  prover.results(sheet, InputValues::moderate, "random");
  prover.results(sheet, InputValues::special, "special");
  prover.results(sheet, InputValues::largest, "largest");
  prover.orders(sheet);
  prover.batch(sheet);
  prover.sanitisers(sheet);
  prover.predicted_time(sheet, chip);
  if (options.device) prover.on_device(sheet, *options.device, compile);
  sheet.unknown = unknown_of(built, options);
  return sheet;
}

ProofSheet prove(const KernelSpec& spec, const Target& target, const CompileOptions& compile, const ProofOptions& options) {
  static std::mutex compiler; // its library compiles one kernel at a time in a process
  try {
    const BuiltKernel built = [&] {
      const std::lock_guard lock(compiler);
      return build_kernel(spec, target, compile, options.overrides);
    }();
    return prove(spec, target, built, compile, options);
  } catch (const RejectedError& error) {
    ProofSheet sheet = titled(spec, target, compile, options);
    sheet.lines.push_back({.name = "contract", .verdict = ProofVerdict::fails, .found = error.what()});
    return sheet;
  }
}

} // namespace kiln
