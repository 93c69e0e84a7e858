// From simulations to a prediction.
#include "isa_checks/timing/predict.h"
#include "isa_checks/error.h"
#include "isa_checks/parallel.h"
#include <algorithm>
#include <fmt/format.h>

namespace kiln::timing {
namespace {

constexpr std::size_t streaming = 1; // of the phases
constexpr double bounding = 0.6;     // a resource that is busy for less than this share of a phase does not bound it

// Busy shares: of CUs' own resources per CU, of shared ones as they are.
std::pair<Resource, double> busiest(const Simulation& s, double from, double to) {
  std::pair<Resource, double> best{Resource::valu, 0};
  if (to <= from) return best;
  for (std::size_t r = 0; r < resource_count; ++r) {
    const auto resource = static_cast<Resource>(r);
    const double units = resource == Resource::valu || resource == Resource::matrix ? 4.0 * s.cus
                         : resource <= Resource::fill                               ? s.cus
                                                                                    : 1.0;
    const double share = std::min(1.0, s.busy.between(resource, from, to) / units / (to - from));
    if (share > best.second) best = {resource, share};
  }
  return best;
}

Phase phase(std::string name, const Simulation& s, const Chip& chip, double from, double to, double fixed_ns) {
  const auto [resource, share] = busiest(s, from, to);
  Phase p;
  p.name = std::move(name);
  p.microseconds = ((to - from) / chip.clock_ghz + fixed_ns) / 1e3;
  p.busy = share;
  p.bound_by = fixed_ns > (to - from) / chip.clock_ghz ? "the launch itself"
               : share >= bounding                     ? std::string(to_string(resource))
                                                       : "latency";
  return p;
}

double nanoseconds_of(const Simulation& s, const Chip& chip, LaunchKind launch) {
  return s.nanoseconds + (launch == LaunchKind::eager ? chip.eager_ns : 0);
}

// What the XCD that is the slowest as it is would take.
std::vector<Change> changes(const Record& record, const Chip& chip, const PredictOptions& options, std::uint32_t xcd) {
  struct Named {
    const char* what;
    WhatIf change;
  };
  const Named all[] = {{"twice the bytes in flight (half the latency of MALL and HBM)", {.far_latency = 0.5}},
                       {"instructions in half the time", {.issue = 0.5}},
                       {"LDS passes in half the time", {.lds = 0.5}},
                       {"atomics, releases and acquires for nothing", {.exit = 0}},
                       {"twice the rate of MALL and HBM", {.bandwidth = 2}}};
  std::vector<Change> result(std::size(all));
  in_parallel(result.size(), processors(), [&](std::size_t i) {
    const Simulation s = simulate(record, chip, {.cache = options.cache, .what_if = all[i].change, .xcd = xcd});
    result[i] = {all[i].what, nanoseconds_of(s, chip, options.launch) / 1e3};
  });
  std::ranges::stable_sort(result, {}, &Change::microseconds);
  return result;
}

// From microseconds and bytes.
void set_what_follows(Prediction& p) {
  const Band band = band_of(*p.chip, p.launch, p.microseconds);
  p.low = p.microseconds * band.low;
  p.high = p.microseconds * band.high;
  p.rate_tbs = p.bytes / p.microseconds / 1e6;
  p.share_of_peak = p.rate_tbs / p.chip->peak_tbs;
}

} // namespace

std::string_view to_string(LaunchKind launch) { return launch == LaunchKind::graph ? "graph" : "eager"; }

// docs/timing.md has the launches behind each.
Band band_of(const Chip& chip, LaunchKind launch, double microseconds) {
  if (launch == LaunchKind::graph) return microseconds < 40 ? Band{.low = 0.8, .high = 1.2} : Band{.low = 0.7, .high = 1.3};
  return chip.arch == "gfx950" ? Band{.low = 0.8, .high = 1.25} : Band{.low = 0.85, .high = 1.1};
}

void check_fits(const isa::CodeObject& object, const Chip& chip) {
  if (object.target().name == chip.arch) return;
  std::string fitting;
  for (const Chip& c : machine::chips)
    if (c.arch == object.target().name) fitting += fmt::format("{}{}", fitting.empty() ? "" : ", ", c.name);
  throw isa::Error("chip " + std::string(chip.name), fmt::format("it is {}, the object is for {}", chip.arch, object.target().name),
                   fitting.empty() ? "compile the kernel for " + std::string(chip.arch) : "use one of " + fitting);
}

Prediction predict(const Record& record, const Chip& chip, const PredictOptions& options) {
  Prediction p;
  p.kernel = record.kernel;
  p.chip = &chip;
  p.cache = options.cache;
  p.launch = options.launch;
  p.simulation = simulate(record, chip, {.cache = options.cache, .spans = options.spans});
  const Simulation& s = p.simulation;
  const double nanoseconds = nanoseconds_of(s, chip, options.launch);
  p.microseconds = nanoseconds / 1e3;
  p.bytes = record.moved;
  p.flops = record.flops;
  set_what_follows(p);
  p.workgroups = record.workgroups;
  p.phases = {phase("start", s, chip, 0, s.first_data, chip.floor_ns + nanoseconds - s.nanoseconds),
              phase("stream", s, chip, s.first_data, s.last_data, 0), phase("exit", s, chip, s.last_data, s.cycles, 0)};
  if (options.changes) p.changes = changes(record, chip, options, s.xcd);
  return p;
}

void set_time(Prediction& p, double microseconds) {
  for (Phase& part : p.phases) part.microseconds *= microseconds / p.microseconds;
  p.microseconds = microseconds;
  set_what_follows(p);
}

Prediction extrapolate(const Prediction& small, Prediction large, double more, std::string from) {
  const auto grow = [more](double& to, double before) { to += more * std::max(0.0, to - before); };
  using Traffic = MemoryLevels::Traffic;
  for (const auto level : {&Traffic::l1, &Traffic::l2, &Traffic::mall, &Traffic::hbm, &Traffic::written})
    grow(large.simulation.traffic.*level, small.simulation.traffic.*level);
  // Start and exit stay: they vary by where the last rows happen to end.
  double& stream = large.phases[streaming].microseconds;
  large.microseconds -= stream;
  grow(stream, small.phases[streaming].microseconds);
  large.microseconds += stream;
  large.changes.clear();
  grow(large.bytes, small.bytes);
  grow(large.flops, small.flops);
  set_what_follows(large);
  large.extrapolated = std::move(from);
  return large;
}

} // namespace kiln::timing
