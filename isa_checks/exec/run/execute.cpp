// Workgroups spread over host threads. A workgroup that waits for another one is left, and taken up again later.
#include "isa_checks/exec/run/execute.h"
#include "isa_checks/analysis/occupancy.h"
#include "isa_checks/exec/run/workgroup_run.h"
#include "isa_checks/parallel.h"
#include <algorithm>
#include <deque>
#include <fmt/format.h>
#include <memory>
#include <numeric>
#include <thread>

namespace kiln::exec {
namespace {

constexpr u64 quantum = 512;         // instructions of a workgroup between looks at whether it waits: few, as some wait so long only
constexpr u64 waiting_quantum = 256; // of one that waited when it was left
constexpr u64 turn = 256;            // of a workgroup whose neighbours advance side by side with it
// Turns of every wave, with nothing done by any, before they count as deadlocked: 25,600 instructions, twice as many as a wave of a
// cluster waits for before its workgroup goes on without the others.
constexpr u64 hopeless_turns = 100;

// What the host threads tell each other.
struct Progress {
  explicit Progress(std::size_t threads) : hopeless_at(threads) {}
  std::atomic<u64> next{0};    // workgroup to start
  std::atomic<u64> effects{0}; // that some wave had on what others see
  std::atomic<int> slots{0};   // taken
  u64 groups = 0;
  int resident = 1; // workgroups that the device holds at once
  // By thread: 1 + the count of effects since which all its workgroups have only waited, for many turns; 0: they have not.
  std::vector<std::atomic<u64>> hopeless_at;
};
constexpr u64 thread_is_done = ~0ULL;

// One host thread's share: its own workgroups, defects and counters.
class Worker {
public:
  Worker(const RunContext& context, Progress& progress, std::size_t thread) : context_(context), progress_(progress), thread_(thread) {
    counters_.resize(context.program.instructions.size());
  }
  void run();

  Defects defects;
  WaveTotals totals;
  const std::vector<InstCounters>& counters() const { return counters_; }

private:
  std::unique_ptr<WorkgroupRun> start_next();
  bool run_until_it_waits(WorkgroupRun& group, u64 instructions);
  bool is_hopeless();

  const RunContext& context_;
  Progress& progress_;
  std::size_t thread_;
  std::vector<InstCounters> counters_;
  std::vector<std::unique_ptr<WorkgroupRun>> free_;
  std::deque<std::unique_ptr<WorkgroupRun>> waiting_;
  u64 turns_ = 0, effects_seen_ = 0; // turns in which all workgroups waited, since there were so many effects
};

// The next workgroup, if there is one left and the device would have room for it.
std::unique_ptr<WorkgroupRun> Worker::start_next() {
  std::unique_ptr<WorkgroupRun> group;
  if (free_.empty()) {
    if (progress_.next >= progress_.groups) return nullptr;
    const int slot = progress_.slots++;
    if (slot >= progress_.resident) {
      --progress_.slots;
      return nullptr;
    }
    group = std::make_unique<WorkgroupRun>(context_, defects, context_.options.measure ? counters_.data() : nullptr, slot);
  } else {
    group = std::move(free_.back());
    free_.pop_back();
  }
  const u64 n = progress_.next++;
  if (n >= progress_.groups) {
    free_.push_back(std::move(group));
    return nullptr;
  }
  const Grid& grid = context_.dispatch.grid;
  const auto& size = grid.workgroups;
  const auto& first = grid.first;
  const u64 number = grid.only.empty() ? n : grid.only[n];
  group->start({first[0] + static_cast<std::uint32_t>(number % size[0]), first[1] + static_cast<std::uint32_t>(number / size[0] % size[1]),
                first[2] + static_cast<std::uint32_t>(number / size[0] / size[1])},
               number);
  return group;
}

// True when the workgroup is done. In turns it is left earlier.
bool Worker::run_until_it_waits(WorkgroupRun& group, u64 instructions) {
  const u64 before = group.effects();
  bool done = group.advance(instructions), worked = done || !group.waits();
  while (!done && !group.waits() && !context_.options.in_turns) done = group.advance(quantum);
  if (const u64 more = group.effects() - before; more != 0) {
    progress_.effects += more;
    worked = true;
  }
  if (worked) {
    turns_ = 0;
    progress_.hopeless_at[thread_] = 0;
  }
  return done;
}

// Every workgroup of every host thread has waited for many turns, and nothing has happened since all of them began to.
bool Worker::is_hopeless() {
  if (const u64 effects = progress_.effects; effects != effects_seen_) {
    effects_seen_ = effects;
    turns_ = 0;
  }
  if (++turns_ <= hopeless_turns * static_cast<u64>(context_.dispatch.waves) * waiting_.size()) return false;
  progress_.hopeless_at[thread_] = effects_seen_ + 1;
  return std::ranges::all_of(progress_.hopeless_at,
                             [&](const std::atomic<u64>& at) { return at == thread_is_done || at == effects_seen_ + 1; });
}

void Worker::run() {
  while (!context_.stop) {
    std::unique_ptr<WorkgroupRun> group = start_next();
    const bool fresh = group != nullptr;
    if (!fresh) {
      if (waiting_.empty()) break;
      group = std::move(waiting_.front());
      waiting_.pop_front();
    }
    if (run_until_it_waits(*group, context_.options.in_turns ? turn : fresh ? quantum : waiting_quantum)) {
      group->add_totals(totals);
      free_.push_back(std::move(group));
      continue;
    }
    waiting_.push_back(std::move(group));
    if (is_hopeless())
      waiting_.front()->stop_with(DefectKind::deadlock,
                                  fmt::format("waits for what does not happen, as do all waves that are left; {} of {} workgroups were "
                                              "started, the device has room for {} at once: ",
                                              std::min(progress_.next.load(), progress_.groups), progress_.groups, progress_.resident));
  }
  for (const auto& group : waiting_) group->add_totals(totals);
  progress_.hopeless_at[thread_] = thread_is_done;
}

// How many workgroups the device holds at once, within what memory for their private memory is reasonable.
int resident_workgroups(const isa::CodeObject& object, const isa::Kernel& kernel, const Grid& grid, int threads) {
  const std::uint32_t items = grid.workgroup_size[0] * grid.workgroup_size[1] * grid.workgroup_size[2];
  const isa::Occupancy o =
      isa::occupancy(object.target(), {.vgprs = static_cast<int>(kernel.descriptor.vgprs),
                                       .sgprs = 0,
                                       .lds_bytes = static_cast<int>(kernel.descriptor.group_segment_bytes + grid.dynamic_lds),
                                       .workgroup_size = static_cast<int>(items)});
  const u64 fits = static_cast<u64>(std::max(o.workgroups_per_cu, 1)) * static_cast<u64>(object.target().compute_units);
  constexpr u64 max_private_memory = 256U << 20;
  const u64 each = u64{kernel.descriptor.private_segment_bytes} * ((items + lane_count - 1) / lane_count) * lane_count;
  const u64 affordable = each == 0 ? fits : max_private_memory / each;
  const u64 groups = u64{grid.workgroups[0]} * grid.workgroups[1] * grid.workgroups[2];
  return static_cast<int>(std::max<u64>(std::min({fits, affordable, groups}), static_cast<u64>(threads)));
}

void run_workers(std::vector<std::unique_ptr<Worker>>& workers) {
  std::vector<std::thread> pool;
  for (std::size_t t = 1; t < workers.size(); ++t) pool.emplace_back([&worker = *workers[t]] { worker.run(); });
  workers[0]->run();
  for (std::thread& t : pool) t.join();
}

} // namespace

ExecResult execute(const isa::CodeObject& object, std::string_view name, const Grid& grid, std::span<const std::byte> arguments,
                   Memory& memory, const ExecOptions& options) {
  const isa::Kernel& kernel = object.kernel(name);
  const ExecProgram program = predecode(object, kernel);
  const std::size_t before = memory.allocations().size();
  const u64 groups = grid.only.empty() ? u64{grid.workgroups[0]} * grid.workgroups[1] * grid.workgroups[2] : grid.only.size();
  const u64 wanted = options.threads > 0 ? static_cast<u64>(options.threads) : processors();
  const int threads = static_cast<int>(std::clamp<u64>(groups, 1, wanted));
  Progress progress(static_cast<std::size_t>(threads));
  progress.groups = groups;
  progress.resident = resident_workgroups(object, kernel, grid, threads);
  const Dispatch dispatch = prepare_dispatch(object, kernel, program, grid, arguments, memory, progress.resident, options.preload);

  std::atomic<bool> stop = false;
  RunContext context{program, dispatch, options, memory, {}, {}, has_direct_loads(program), stop};
  if (options.check_hazards) context.hazards = program.hazards;
  context.flag_uses = find_flag_reads(program.instructions);
  std::vector<std::unique_ptr<Worker>> workers;
  for (int t = 0; t < threads; ++t) workers.push_back(std::make_unique<Worker>(context, progress, workers.size()));
  run_workers(workers);
  memory.release_after(before);

  ExecResult result;
  Defects defects;
  std::vector<InstCounters> counters(program.instructions.size());
  for (const auto& worker : workers) {
    defects.merge(worker->defects);
    result.waves.add(worker->totals);
    for (std::size_t i = 0; i < counters.size(); ++i) counters[i].add(worker->counters()[i]);
  }
  result.defects = defects.list();
  add_source_lines(object, kernel, result.defects);
  result.completed = !stop;
  if (options.measure)
    for (std::size_t i = 0; i < counters.size(); ++i) {
      const Inst& inst = program.instructions[i];
      result.instructions.push_back({inst.address, inst.text, inst.cls, counters[i]});
    }
  return result;
}

std::uint64_t sum(const ClassCounts& counts) { return std::accumulate(counts.begin(), counts.end(), std::uint64_t{0}); }

std::uint64_t WaveTotals::executed() const { return sum(total); }

void WaveTotals::add_wave(const ClassCounts& counts) { add({.waves = 1, .total = counts, .least = counts, .most = counts}); }

void WaveTotals::add(const WaveTotals& other) {
  if (other.waves == 0) return;
  if (waves == 0 || sum(other.least) < sum(least)) least = other.least;
  if (waves == 0 || sum(other.most) > sum(most)) most = other.most;
  for (std::size_t i = 0; i < total.size(); ++i) total[i] += other.total[i];
  waves += other.waves;
}

} // namespace kiln::exec
