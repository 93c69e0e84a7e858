// Running workgroups: waves interleaved by a seeded scheduler, workgroups spread over host threads.
#include "isa_checks/exec/execute.h"
#include "isa_checks/error.h"
#include "isa_checks/exec/control.h"
#include "isa_checks/exec/definedness.h"
#include "isa_checks/exec/launch.h"
#include "isa_checks/exec/lds_shadow.h"
#include "isa_checks/exec/operand_checks.h"
#include "isa_checks/exec/program.h"
#include "isa_checks/exec/wait_counts.h"
#include <algorithm>
#include <atomic>
#include <cstring>
#include <fmt/format.h>
#include <mutex>
#include <thread>

namespace kiln::exec {
namespace {

using u64 = std::uint64_t;

constexpr std::uint16_t vector_file = 256, register_slack = 32; // slack: a wide operand at the end of the file

struct Random { // xorshift64*
  u64 state;
  u64 next() {
    state ^= state >> 12;
    state ^= state << 25;
    state ^= state >> 27;
    return state * 0x2545f4914f6cdd1dULL;
  }
};

// One host thread's share: its own waves, findings and counters.
class Worker {
public:
  Worker(const Program& program, const Launch& launch, Memory& memory, const ExecOptions& options, std::atomic<bool>& stop, int slot)
      : program_(program), launch_(launch), options_(options), stop_(stop), slot_(slot) {
    counters_.resize(program.instructions.size());
    const bool accumulation = launch.kernel->descriptor.vgprs > launch.kernel->descriptor.accum_offset;
    waves_.resize(static_cast<std::size_t>(launch.waves));
    in_flight_.resize(waves_.size());
    if (options.check_undefined) shadows_.resize(waves_.size());
    for (Wave& w : waves_) {
      w.arch_count = vector_file;
      w.acc_count = accumulation ? vector_file : 0;
      w.vector = std::make_unique<Lanes[]>(static_cast<std::size_t>(w.arch_count + vector_file + register_slack));
      w.group = &group_;
      w.memory = &memory;
      w.findings = &findings;
      w.counters = options.measure ? counters_.data() : nullptr;
      w.program = program.instructions;
      w.lds_banks = program.target->lds_read_banks;
    }
  }

  void run_workgroup(const std::array<std::uint32_t, 3>& id, u64 number);

  Findings findings;
  WaveTotals totals;
  const std::vector<InstCounters>& counters() const { return counters_; }

private:
  void run_slice(Wave& wave, ClassCounts& counts, u64 length);
  template <bool checked> void run_instructions(Wave& wave, ClassCounts& counts, u64 length);
  void release_barrier();
  void stop_with(FindingKind kind, const Wave& wave, std::string message);
  void add_totals(const ClassCounts& counts);
  std::string positions() const;

  const Program& program_;
  const Launch& launch_;
  const ExecOptions& options_;
  std::atomic<bool>& stop_;
  int slot_;
  Workgroup group_;
  std::vector<Wave> waves_;
  std::vector<InFlight> in_flight_;
  std::vector<RegisterShadow> shadows_; // empty when unwritten values are not followed
  LdsShadow lds_shadow_;
  std::vector<InstCounters> counters_;
};

void Worker::stop_with(FindingKind kind, const Wave& wave, std::string message) {
  stop_ = true;
  const bool inside = wave.pc < program_.instructions.size();
  const std::uint64_t address = inside ? program_.instructions[wave.pc].address : 0;
  findings.report(kind, address, [&] {
    Finding f{kind, address, inside ? program_.instructions[wave.pc].text : "", {}, wave.index, -1, std::move(message)};
    std::memcpy(f.workgroup, group_.id, sizeof f.workgroup);
    return f;
  });
}

std::string Worker::positions() const {
  std::string text;
  for (const Wave& w : waves_)
    text += fmt::format("{}wave {} {} {:#x}", text.empty() ? "" : ", ", w.index,
                        w.state == WaveState::ended ? "ended at" : w.state == WaveState::at_barrier ? "waits at the barrier before" : "at",
                        w.pc < program_.instructions.size() ? program_.instructions[w.pc].address : 0);
  return text;
}

template <bool checked> void Worker::run_instructions(Wave& wave, ClassCounts& counts, u64 length) {
  const Inst* const program = program_.instructions.data();
  const auto count = static_cast<std::uint32_t>(program_.instructions.size());
  while (length-- != 0 && wave.state == WaveState::running) {
    if (wave.next >= count) throw Stop("runs past the end of the kernel's code");
    wave.pc = wave.next;
    wave.next = wave.pc + 1;
    const Inst& inst = program[wave.pc];
    if constexpr (checked)
      if (wave.in_flight != nullptr) check_waits(wave, inst);
    if (wave.counters != nullptr) {
      InstCounters& c = wave.counters[wave.pc];
      ++c.executed;
      c.lanes += static_cast<u64>(std::popcount(wave.exec()));
    }
    ++counts[static_cast<std::size_t>(inst.op->cls)];
    ++wave.executed;
    ++wave.clock;
    if constexpr (checked)
      if (wave.shadow != nullptr) {
        run_tracked(wave, inst);
        continue;
      }
    inst.handler(wave, inst);
  }
}

void Worker::run_slice(Wave& wave, ClassCounts& counts, u64 length) {
  try {
    if (wave.in_flight != nullptr || wave.shadow != nullptr) run_instructions<true>(wave, counts, length);
    else run_instructions<false>(wave, counts, length);
    if (wave.executed > options_.max_instructions)
      stop_with(FindingKind::instruction_limit, wave,
                fmt::format("a wave executed {} instructions, the limit is {}: {}", wave.executed, options_.max_instructions, positions()));
  } catch (const Stop& stop) {
    stop_with(FindingKind::not_modelled, wave, stop.what());
  }
}

// Waves that have ended count as arrived.
void Worker::release_barrier() {
  for (const Wave& w : waves_)
    if (w.state == WaveState::running) return;
  bool any = false;
  for (Wave& w : waves_)
    if (w.state == WaveState::at_barrier) {
      w.state = WaveState::running;
      any = true;
    }
  if (any && group_.lds_shadow != nullptr) lds_shadow_.barrier();
}

void Worker::add_totals(const ClassCounts& counts) {
  const auto sum = [](const ClassCounts& c) {
    u64 n = 0;
    for (const u64 x : c) n += x;
    return n;
  };
  if (totals.waves == 0 || sum(counts) < sum(totals.least)) totals.least = counts;
  if (totals.waves == 0 || sum(counts) > sum(totals.most)) totals.most = counts;
  for (std::size_t i = 0; i < counts.size(); ++i) totals.total[i] += counts[i];
  ++totals.waves;
}

void Worker::run_workgroup(const std::array<std::uint32_t, 3>& id, u64 number) {
  std::copy(id.begin(), id.end(), group_.id);
  Random random{((options_.seed * 0x9e3779b97f4a7c15ULL) ^ ((number + 1) * 0xbf58476d1ce4e5b9ULL)) | 1U};
  group_.lds.assign(launch_.lds_bytes, static_cast<std::byte>(random.next() & 0xffU));
  group_.lds_shadow = options_.check_undefined || options_.check_races ? &lds_shadow_ : nullptr;
  if (group_.lds_shadow != nullptr) lds_shadow_.reset(group_.lds.size(), launch_.waves, options_.check_races);
  std::vector<ClassCounts> counts(waves_.size());
  for (std::size_t i = 0; i < waves_.size(); ++i) {
    waves_[i].index = static_cast<int>(i);
    in_flight_[i] = {};
    waves_[i].in_flight = options_.check_waits ? &in_flight_[i] : nullptr;
    waves_[i].shadow = options_.check_undefined ? &shadows_[i] : nullptr;
    const int scalars = start_wave(launch_, waves_[i], slot_ * launch_.waves + static_cast<int>(i), random.next());
    if (options_.check_undefined) shadows_[i].reset(scalars);
  }
  std::vector<std::size_t> ready;
  while (!stop_) {
    ready.clear();
    for (std::size_t i = 0; i < waves_.size(); ++i)
      if (waves_[i].state == WaveState::running) ready.push_back(i);
    if (ready.empty()) break;
    const std::size_t chosen = ready[random.next() % ready.size()];
    run_slice(waves_[chosen], counts[chosen], 1 + random.next() % 128);
    release_barrier();
  }
  for (const ClassCounts& c : counts) add_totals(c);
}

void merge(WaveTotals& into, const WaveTotals& from) {
  const auto sum = [](const ClassCounts& c) {
    u64 n = 0;
    for (const u64 x : c) n += x;
    return n;
  };
  if (from.waves == 0) return;
  if (into.waves == 0 || sum(from.least) < sum(into.least)) into.least = from.least;
  if (into.waves == 0 || sum(from.most) > sum(into.most)) into.most = from.most;
  for (std::size_t i = 0; i < from.total.size(); ++i) into.total[i] += from.total[i];
  into.waves += from.waves;
}

} // namespace

std::uint64_t WaveTotals::executed() const {
  u64 n = 0;
  for (const u64 x : total) n += x;
  return n;
}

void InstCounters::add(const InstCounters& other) {
  executed += other.executed;
  lanes += other.lanes;
  bytes += other.bytes;
  lines64 += other.lines64;
  lines128 += other.lines128;
  lds_cycles += other.lds_cycles;
  lds_ideal += other.lds_ideal;
}

ExecResult execute(const isa::CodeObject& object, std::string_view name, const Grid& grid, std::span<const std::byte> arguments,
                   Memory& memory, const ExecOptions& options) {
  const isa::Kernel& kernel = object.kernel(name);
  const Program program = predecode(object, kernel);
  const std::size_t before = memory.allocations().size();
  const u64 groups = u64{grid.workgroups[0]} * grid.workgroups[1] * grid.workgroups[2];
  const u64 wanted = options.threads > 0 ? static_cast<u64>(options.threads) : std::max(1U, std::thread::hardware_concurrency());
  const int threads = static_cast<int>(std::clamp<u64>(groups, 1, wanted));
  const Launch launch = prepare_launch(object, kernel, program, grid, arguments, memory, threads);

  ExecResult result;
  std::atomic<bool> stop = false;
  std::atomic<u64> next = 0;
  std::vector<std::unique_ptr<Worker>> workers;
  for (int t = 0; t < threads; ++t) workers.push_back(std::make_unique<Worker>(program, launch, memory, options, stop, t));
  const auto work = [&](Worker& worker) {
    for (u64 n = next++; n < groups && !stop; n = next++)
      worker.run_workgroup({static_cast<std::uint32_t>(n % grid.workgroups[0]), static_cast<std::uint32_t>(n / grid.workgroups[0] % grid.workgroups[1]),
                            static_cast<std::uint32_t>(n / grid.workgroups[0] / grid.workgroups[1])}, n);
  };
  std::vector<std::thread> pool;
  for (int t = 1; t < threads; ++t) pool.emplace_back(work, std::ref(*workers[static_cast<std::size_t>(t)]));
  work(*workers[0]);
  for (std::thread& t : pool) t.join();
  memory.release_after(before);

  Findings findings;
  std::vector<InstCounters> counters(program.instructions.size());
  for (const auto& worker : workers) {
    findings.merge(worker->findings);
    merge(result.waves, worker->totals);
    for (std::size_t i = 0; i < counters.size(); ++i) counters[i].add(worker->counters()[i]);
  }
  result.findings = findings.list();
  result.completed = !stop;
  if (options.measure)
    for (std::size_t i = 0; i < counters.size(); ++i) {
      const Inst& inst = program.instructions[i];
      result.instructions.push_back({inst.address, inst.text, inst.op->cls, counters[i]});
    }
  return result;
}

} // namespace kiln::exec
