// Launches beside each other: a device that holds some workgroups of each, and a dice.
#include "isa_checks/analysis/occupancy.h"
#include "isa_checks/exec/run/execute.h"
#include "isa_checks/exec/run/workgroup_run.h"
#include <algorithm>
#include <fmt/format.h>
#include <memory>

namespace kiln::exec {
namespace {

constexpr u64 longest_turn = 512; // instructions of a workgroup before another may go on
// Instructions of each workgroup that is there, with nothing done that others see, before all count as deadlocked: one that computes
// in place of 63 others does nothing that they see for about so long, and each wave of one that waits asks for half as long.
constexpr u64 hopeless_instructions = 100'000, hopeless_instructions_a_wave = 25'000;

// One launch: what its workgroups share, and how far it is.
struct Beside {
  const isa::CodeObject& object;
  const isa::Kernel& kernel;
  ExecProgram program;
  int a_cu = 1; // workgroups that a CU holds
  Dispatch dispatch;
  RunContext context;
  Defects defects;
  WaveTotals totals;
  u64 groups = 0, begun = 0;
  std::vector<std::unique_ptr<WorkgroupRun>> free;

  Beside(const LaunchBeside& launch, int cus, Memory& memory, const ExecOptions& options, std::atomic<bool>& stop)
      : object(launch.object), kernel(object.kernel(launch.kernel)), program(predecode(object, kernel)), a_cu(workgroups_a_cu(launch.grid)),
        dispatch(prepare_dispatch(object, kernel, program, launch.grid, launch.arguments, memory, cus * a_cu, options.preload)),
        context{program, dispatch, options, memory, {}, find_flag_reads(program.instructions), has_direct_loads(program), stop},
        groups(u64{launch.grid.workgroups[0]} * launch.grid.workgroups[1] * launch.grid.workgroups[2]) {
    if (options.check_hazards) context.hazards = program.hazards;
    for (int slot = 0; slot < cus * a_cu; ++slot) free.push_back(std::make_unique<WorkgroupRun>(context, defects, nullptr, slot));
  }
  Beside(const Beside&) = delete;
  Beside& operator=(const Beside&) = delete;

  std::unique_ptr<WorkgroupRun> begin() {
    std::unique_ptr<WorkgroupRun> group = std::move(free.back());
    free.pop_back();
    const u64 n = begun++;
    const auto& size = dispatch.grid.workgroups;
    group->start({static_cast<std::uint32_t>(n % size[0]), static_cast<std::uint32_t>(n / size[0] % size[1]),
                  static_cast<std::uint32_t>(n / size[0] / size[1])},
                 n);
    return group;
  }

private:
  int workgroups_a_cu(const Grid& grid) const {
    const isa::Occupancy o = isa::occupancy(
        object.target(), {.vgprs = static_cast<int>(kernel.descriptor.vgprs),
                          .sgprs = 0,
                          .lds_bytes = static_cast<int>(kernel.descriptor.group_segment_bytes + grid.dynamic_lds),
                          .workgroup_size = static_cast<int>(grid.workgroup_size[0] * grid.workgroup_size[1] * grid.workgroup_size[2])});
    return std::max(o.workgroups_per_cu, 1);
  }
};

class BesideRun {
public:
  BesideRun(std::span<const LaunchBeside> launches, int cus, Memory& memory, const ExecOptions& options)
      : room_(static_cast<std::size_t>(cus), 1.0), dice_{(options.seed * 0x9e3779b97f4a7c15ULL) | 1U} {
    for (const LaunchBeside& launch : launches) launches_.push_back(std::make_unique<Beside>(launch, cus, memory, options, stop_));
    keenness_ = 1 + dice_.next() % 100;
  }

  ExecResult run() {
    while (!stop_) {
      const bool began = (running_.empty() || dice_.next() % 100 < keenness_) && begin_one();
      if (began) continue;
      if (running_.empty()) break;
      advance_one();
    }
    ExecResult result{.completed = !stop_, .defects = {}, .waves = {}, .instructions = {}};
    for (const Running& r : running_) r.group->add_totals(r.of->totals);
    for (const auto& launch : launches_) {
      std::vector<Defect> found = launch->defects.list();
      add_source_lines(launch->object, launch->kernel, found);
      result.defects.insert(result.defects.end(), found.begin(), found.end());
      result.waves.add(launch->totals);
    }
    return result;
  }

private:
  struct Running {
    std::unique_ptr<WorkgroupRun> group;
    Beside* of;
    std::size_t cu;
  };

  // The next workgroup of some launch, on some CU that has room for it.
  bool begin_one() {
    std::vector<Beside*> left;
    for (const auto& launch : launches_)
      if (launch->begun < launch->groups && !launch->free.empty()) left.push_back(launch.get());
    while (!left.empty()) {
      const auto chosen = left.begin() + static_cast<std::ptrdiff_t>(dice_.next() % left.size());
      const std::size_t first = dice_.next() % room_.size();
      for (std::size_t i = 0; i < room_.size(); ++i) {
        const std::size_t cu = (first + i) % room_.size();
        if (room_[cu] < share(**chosen) - 1e-9) continue;
        room_[cu] -= share(**chosen);
        running_.push_back({(*chosen)->begin(), *chosen, cu});
        idle_ = 0;
        return true;
      }
      left.erase(chosen);
    }
    return false;
  }

  void advance_one() {
    Running& r = running_[dice_.next() % running_.size()];
    const u64 before = r.group->effects(), length = 1 + dice_.next() % longest_turn;
    const bool done = r.group->advance(length);
    idle_ = done || r.group->effects() != before ? 0 : idle_ + length;
    if (done && !stop_) {
      r.group->add_totals(r.of->totals);
      room_[r.cu] += share(*r.of);
      r.of->free.push_back(std::move(r.group));
      std::swap(r, running_.back());
      running_.pop_back();
    } else if (idle_ > hopeless()) {
      r.group->stop_with(DefectKind::deadlock, fmt::format("all {} workgroups that have begun wait for what does not happen, on {} CUs: ",
                                                           running_.size(), room_.size()));
    }
  }

  u64 hopeless() const {
    u64 sum = 0;
    for (const Running& r : running_) sum += hopeless_instructions + hopeless_instructions_a_wave * static_cast<u64>(r.of->dispatch.waves);
    return sum;
  }
  static double share(const Beside& launch) { return 1.0 / launch.a_cu; }

  std::atomic<bool> stop_ = false;
  std::vector<std::unique_ptr<Beside>> launches_;
  std::vector<Running> running_;
  std::vector<double> room_; // of each CU
  Xorshift dice_;
  u64 keenness_ = 50; // percent: how soon workgroups begin where there is room
  u64 idle_ = 0;      // instructions since anything happened that others see
};

} // namespace

ExecResult execute_beside(std::span<const LaunchBeside> launches, int cus, Memory& memory, const ExecOptions& options) {
  const std::size_t before = memory.allocations().size();
  ExecResult result = BesideRun(launches, cus, memory, options).run();
  memory.release_after(before);
  return result;
}

} // namespace kiln::exec
