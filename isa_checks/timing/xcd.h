// Xcd: the waves on the SIMDs of one XCD, and what they wait for.
#pragma once
#include "isa_checks/timing/memory_levels.h"
#include "isa_checks/timing/simulate.h"
#include <array>
#include <deque>
#include <optional>
#include <queue>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

namespace kiln::timing {

inline constexpr double issue_cycles = issue_clocks; // between two instructions of a wave

struct Simd {
  Queue valu, matrix, scalar;
};

struct Request { // of a wave's vector memory instruction
  std::uint32_t wave = 0, step = 0;
  double issued = 0;
  double tagged = 0; // of a load: when L1 has looked up its lines; 0: it has not
};

struct Cu {
  std::array<Simd, simds_per_cu> simd;
  Queue lds;
  std::deque<Request> requests; // that L1 has to serve, in this order
  int workgroups = 0, next_simd = 0, waves = 0;
};

struct Running { // a workgroup on its way
  const Workgroup* like = nullptr;
  std::uint32_t number = 0;
  int cu = 0, left = 0, at_barrier = 0;
  double barrier_since = 0, ended = 0;
  std::vector<std::uint32_t> waves;   // indices
  std::vector<std::uint32_t> blocked; // waves that wait for a step of another one
};

struct WaveState {
  std::uint32_t group = 0;
  int index = 0, cu = 0, simd = 0;
  std::uint32_t next = 0; // step
  double time = 0;        // when it may issue that
  double waits_since = 0; // when it came to that, or to the step before
  double last_store = 0, waiting_since = 0;
  bool at_barrier = false, blocked = false;
  bool in_circle = false;                                  // waits for no other XCD's workgroup
  std::deque<double> vector, lds;                          // completions of what is outstanding, in order
  std::size_t unserved = 0;                                // the last so many of `vector` wait for L1: not known yet
  bool awaits_l1 = false;                                  // goes on when L1 serves one of those
  double scalar = 0;                                       // completion of the last scalar load
  std::vector<std::pair<std::uint32_t, double>> published; // steps that wrote for the device, and when others see that
};

// When a wave may go on, since when it waits for that, and its index. The least goes first: at one time who has waited longest, as pipes
// serve them too; of those the older workgroup's waves, and of these the first by what it does (`launch`), not by its number. What an L1
// does next goes before all waves.
using Ready = std::tuple<double, double, std::uint32_t>;

class Xcd {
public:
  Xcd(const Record& record, const Requesters& requesters, const Chip& chip, const SimulateOptions& options)
      : record_(record), chip_(chip), options_(options), xcds_(std::min<int>(chip.xcds, static_cast<int>(record.workgroups))),
        cus_(static_cast<std::size_t>(chip.cus / chip.xcds)),
        memory_(chip, record, requesters, options.cache, options.what_if, xcds_, chip.cus / chip.xcds, result_.busy) {}

  // L2 is as launch `before`, which has run, has left it.
  void follow(Xcd& before) { memory_.put_l2(before.memory_.take_l2()); }
  Simulation run(std::uint32_t xcd); // workgroups go to the XCDs in turn

private:
  void launch_next(double now);
  void launch(std::uint32_t number, int cu, double now);
  Ready ready(std::uint32_t w) const { return {waves_[w].time, waves_[w].waits_since, w}; }
  bool step(std::uint32_t w); // false: the wave has ended or is blocked
  double issue(WaveState& wave, Queue& pipe, double cycles, Resource resource, bool counted);
  bool await_flag(std::uint32_t w, const Step& step);
  std::optional<double> visible_at(const Awaited& awaited, std::uint32_t w) const;
  bool await_others(std::uint32_t w, const Access& access);
  bool break_circle(); // whether a wave goes on
  void wait(WaveState& wave, const Code& code);
  void wake_blocked(std::uint32_t w);
  void arrive(std::uint32_t w);
  bool release_barrier(std::uint32_t group);
  void end(std::uint32_t w);
  void note(const WaveState& wave, WaveActivity doing, double from, double to);
  void vector_memory(std::uint32_t w);
  bool await_l1(WaveState& wave, const Code& code, bool last);
  void push_l1(int cu);
  void serve_l1(int cu, double now);
  double access_memory(WaveState& wave, const Request& request, double now);
  double lds(double now, int cu, const Access* access);

  const Record& record_;
  const Chip& chip_;
  SimulateOptions options_;
  int xcds_;
  Simulation result_;
  std::vector<Cu> cus_;
  MemoryLevels memory_;
  std::deque<std::uint32_t> queue_;
  std::deque<Running> groups_; // references stay valid
  std::vector<WaveState> waves_;
  std::priority_queue<Ready, std::vector<Ready>, std::greater<>> ready_;
  std::unordered_map<std::uint32_t, std::uint32_t> launched_; // indices of groups_ by number
  std::vector<std::uint32_t> blocked_on_others_;              // waves
  static constexpr std::uint32_t l1_of = 1U << 31;            // in place of a wave's index: of a CU
  double dispatcher_ = 0, ended_ = 0;
  bool any_data_ = false;
};

} // namespace kiln::timing
