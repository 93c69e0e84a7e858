// TunedSchedules: the nearest entry, and what is said when there is none.
#include "runtime/tune/tuned_schedules.h"
#include "gen/error.h"
#include "isa_checks/timing/chips.h"
#include "runtime/append_line.h"
#include "runtime/tune/try_schedule.h"
#include <cmath>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <limits>
#include <nlohmann/json.hpp>

namespace kiln {
namespace {

constexpr double nowhere = std::numeric_limits<double>::infinity();

// Between two buckets: by how many doublings their bounds differ.
double distance(const std::vector<std::int64_t>& a, const std::vector<std::int64_t>& b) {
  if (a.size() != b.size()) return nowhere;
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if ((a[i] == 0) != (b[i] == 0)) return nowhere; // without a bound: another kind of kernel
    if (a[i] != 0) sum += std::fabs(std::log2(static_cast<double>(a[i]) / static_cast<double>(b[i])));
  }
  return sum;
}

} // namespace

TuningOptions tuning_options(const Environment& environment) {
  return {.tables = environment.tuning, .chip = environment.chip, .misses = environment.tuning_misses};
}

TunedSchedules::TunedSchedules(TuningOptions options, std::shared_ptr<EventLog> events, std::function<std::string()> compiler)
    : options_(std::move(options)), events_(std::move(events)), compiler_source_(std::move(compiler)) {
  if (options_.tables.empty()) return;
  const auto& chips = machine::chips;
  if (!options_.chip.empty() && std::ranges::find(chips, options_.chip, &timing::Chip::name) == chips.end())
    throw UserError("KILN_CHIP", fmt::format("\"{}\" is no chip", options_.chip), "use one of " + timing::chip_names());
  for (const std::filesystem::path& file : options_.tables)
    tables_.push_back({file, read_tuning_table(file, [&](const std::string& line) { events_->note("tuning_cut_off", line); })});
}

bool TunedSchedules::is_current(const TuningEntry& entry) {
  const std::lock_guard lock(mutex_);
  if (compiler_.empty()) compiler_ = compiler_source_();
  return entry.kiln == kiln_version() && entry.compiler == compiler_;
}

std::vector<std::string> TunedSchedules::settings_for(const KernelSpec& spec, const Target& target) {
  if (tables_.empty()) return {};
  const std::string chip = options_.chip.empty() ? std::string(target.chip().name) : options_.chip, key = shape_key(spec);
  const std::vector<std::int64_t> bounds = bounds_of(spec);
  for (const Table& table : tables_) {
    const TuningEntry* nearest = nullptr;
    const TuningEntry* stale = nullptr;
    double least = nowhere;
    for (const TuningEntry& e : table.entries) {
      if (e.arch != target.arch() || e.chip != chip || e.spec != key) continue;
      const double away = distance(e.bounds, bounds);
      if (away == nowhere) continue;
      if (!is_current(e)) stale = &e;
      else if (away <= least) nearest = &e, least = away; // of equal ones the latest
    }
    if (stale != nullptr)
      events_->note("tuning_stale",
                    fmt::format("{} has {} ({}) for {} as Kiln {} and compiler {} found it; this is Kiln {} with {}: tune again",
                                table.file.string(), stale->kernel, stale->shape, chip, stale->kiln, stale->compiler, kiln_version(),
                                compiler_));
    if (nearest != nullptr) return nearest->schedule;
  }
  miss(spec, target, chip);
  return {};
}

void TunedSchedules::miss(const KernelSpec& spec, const Target& target, std::string_view chip) {
  const TuningEntry e = entry_of(spec, target, chip);
  events_->note("tuning_miss", fmt::format("no table of KILN_TUNING has {} ({}; {}; bounds {}) for {}: its schedule is the cost model's",
                                           e.kernel, e.shape, e.types, fmt::join(e.bounds, ", "), chip));
  if (options_.misses.empty()) return;
  const std::string line = nlohmann::ordered_json{{"spec", to_text(spec)}, {"arch", {target.arch()}}}.dump();
  const std::lock_guard lock(mutex_);
  if (!missed_.insert(line).second) return;
  try {
    append_line(options_.misses, line, "manifest of shapes that are in no table", "set KILN_TUNING_MISSES to a file that you may write");
  } catch (const EnvironmentError& error) {
    events_->note("not_recorded", error.what());
  }
}

void TunedSchedules::reject(const KernelSpec& spec, const std::vector<std::string>& settings, const std::string& reason) {
  events_->note("tuning_rejected", fmt::format("{} with {}, as a table has it: {}; another schedule is chosen", spec.name(),
                                               fmt::join(settings, " "), reason.substr(0, reason.find('\n'))));
}

} // namespace kiln
