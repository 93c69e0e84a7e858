// predict: microseconds of a launch on a chip, with a band, where the time goes, and what a change would give.
#pragma once
#include "isa_checks/timing/simulate.h"
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace kiln::timing {

// How a launch is measured: by the period of a graph's launches, or launched on its own, by a profiler's clock.
enum class LaunchKind : std::uint8_t { graph, eager };
std::string_view to_string(LaunchKind launch);

// A part of the time: until data arrive, while they do, and after.
struct Phase {
  std::string name; // "start", "stream", "exit"
  double microseconds = 0;
  std::string bound_by{}; // a resource that is busy most of the time, or "latency"
  double busy = 0;        // share of the time that that resource is busy
};

struct Change {
  std::string what;        // "twice the bytes in flight"
  double microseconds = 0; // that the launch would take
};

struct Prediction {
  std::string kernel;
  const Chip* chip = nullptr;
  CacheState cache{};
  LaunchKind launch{};
  double microseconds = 0, low = 0, high = 0; // low, high: the band, from the errors on what was measured (docs/timing.md)
  double bytes = 0;                           // distinct ones that the launch reads, and those that it writes
  double rate_tbs = 0;                        // bytes / time
  double share_of_peak = 0;                   // of the data sheet's memory rate
  double flops = 0;                           // of matrix instructions
  std::uint32_t workgroups = 0;
  std::vector<Phase> phases;
  std::vector<Change> changes; // the most useful one first
  Simulation simulation;       // of one XCD; of an extrapolated launch: of the larger one that it is extrapolated from
  std::string extrapolated;    // from what; empty: it is not
};

struct PredictOptions {
  CacheState cache = CacheState::cold;
  LaunchKind launch = LaunchKind::graph;
  bool changes = true;                          // run again for what-ifs
  bool spans = false;                           // keep a timeline of one CU
  std::uint64_t max_steps = max_recorded_steps; // of one execution, where the launch is recorded for the prediction
  // RecordOptions::xcds. The workgroups of other XCDs are taken to be like those of the first: to compare schedules, not to state a time.
  bool one_xcd = false;
  bool alone = false; // not compared with other numbers of rows, where the launch is recorded for the prediction: to compare schedules
};

// What the measured time may be, as shares of the predicted one: nine of ten launches of this kind that were measured lie between.
struct Band {
  double low = 1, high = 1;
};
Band band_of(const Chip& chip, LaunchKind launch, double microseconds);

// The record is of an object that check_fits lets pass for the chip.
Prediction predict(const Record& record, const Chip& chip, const PredictOptions& options);

// The launch is predicted to take `microseconds`, and its phases as much more or less.
void set_time(Prediction& prediction, double microseconds);

// What a launch takes that is `more` times as much beyond `large` as that is beyond `small`: its stream grows. `from` says what the two
// are.
Prediction extrapolate(const Prediction& small, Prediction large, double more, std::string from);

// Throws isa::Error when the object is not for the chip.
void check_fits(const isa::CodeObject& object, const Chip& chip);

std::string to_text(const Prediction& prediction);
std::string to_json(const Prediction& prediction);
std::string to_html(const Prediction& prediction); // with the timeline when the prediction has spans

} // namespace kiln::timing
