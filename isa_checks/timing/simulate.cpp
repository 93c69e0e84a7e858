// Waves on the SIMDs of one XCD, in the order of their next instruction.
#include "isa_checks/error.h"
#include "isa_checks/timing/xcd.h"
#include <algorithm>
#include <fmt/format.h>
#include <numeric>
#include <set>
#include <utility>

namespace kiln::timing {
using std::uint32_t;

namespace {

bool is_vector_memory(Action action) {
  return action == Action::load || action == Action::store || action == Action::atomic || action == Action::release ||
         action == Action::acquire;
}

// The place of each wave of a workgroup in an order by what they do: instructions, and the memory that they touch. Their numbers count only
// for waves that do the same.
std::vector<uint32_t> places(const Workgroup& g) {
  const auto what = [&](const Step& s) {
    const Access& a = s.access == none ? Access{} : g.accesses[s.access];
    return std::tuple(s.code, s.taken, a.lines == 0 ? 0 : g.lines[a.first], a.lines, a.halves, a.passes, a.bytes);
  };
  std::vector<uint32_t> order(g.waves.size()), places(g.waves.size());
  std::iota(order.begin(), order.end(), 0U);
  std::ranges::stable_sort(
      order, [&](uint32_t a, uint32_t b) { return std::ranges::lexicographical_compare(g.waves[a], g.waves[b], {}, what, what); });
  for (uint32_t i = 0; i < order.size(); ++i) places[order[i]] = i;
  return places;
}

} // namespace

void Xcd::launch_next(double now) {
  while (!queue_.empty()) {
    const auto cu = std::ranges::min_element(cus_, {}, &Cu::workgroups);
    if (cu->workgroups >= record_.workgroups_per_cu) return;
    launch(queue_.front(), static_cast<int>(cu - cus_.begin()), now);
    queue_.pop_front();
  }
}

void Xcd::launch(uint32_t number, int cu, double now) {
  Cu& at = cus_[static_cast<std::size_t>(cu)];
  const Workgroup& like = record_.representative_of(number);
  Running& g = groups_.emplace_back();
  g.like = &like;
  g.number = number;
  g.cu = cu;
  launched_[number] = static_cast<uint32_t>(groups_.size() - 1);
  g.left = static_cast<int>(like.waves.size());
  ++at.workgroups;
  dispatcher_ = std::max(dispatcher_, now);
  const auto first = static_cast<uint32_t>(waves_.size());
  waves_.resize(first + like.waves.size());
  for (const uint32_t place : places(like)) {
    dispatcher_ += chip_.wave_launch_cycles;
    WaveState& w = waves_[first + place];
    w.group = static_cast<uint32_t>(groups_.size() - 1);
    w.index = static_cast<int>(g.waves.size());
    w.cu = cu;
    w.simd = at.next_simd++ % simds_per_cu;
    w.time = dispatcher_;
    g.waves.push_back(first + place);
    ready_.push(ready(g.waves.back()));
  }
  at.waves += static_cast<int>(like.waves.size());
  result_.peak_waves = std::max<double>(result_.peak_waves, at.waves);
}

void Xcd::note(const WaveState& wave, WaveActivity doing, double from, double to) {
  if (to <= from) return;
  result_.wave_cycles[static_cast<std::size_t>(doing)] += to - from;
  if (!options_.spans || wave.cu != 0) return;
  const uint32_t number = groups_[wave.group].number;
  for (auto s = result_.spans.rbegin(); s != result_.spans.rend() && s - result_.spans.rbegin() < 64; ++s)
    if (s->workgroup == number && s->wave == wave.index) {
      if (s->doing == doing && from - s->to < 1) {
        s->to = to;
        return;
      }
      break;
    }
  result_.spans.push_back({number, wave.index, doing, from, to});
}

// Issues when the pipe is free; the wave goes on four cycles later.
double Xcd::issue(WaveState& wave, Queue& pipe, double cycles, Resource resource, bool counted) {
  const double scale = options_.what_if.issue;
  const double start = std::max(wave.time, pipe.free);
  pipe.free = start + cycles * scale;
  if (counted) result_.busy.add(resource, start, cycles * scale);
  note(wave, WaveActivity::issue, wave.time, start + issue_cycles * scale);
  wave.time = start + issue_cycles * scale;
  return start;
}

double Xcd::lds(WaveState& wave, const Access* access) {
  const double passes = access == nullptr ? 2 : std::max(1U, access->passes);
  const double cycles = std::max(4.0, passes * chip_.lds_pass_cycles) * options_.what_if.lds;
  Cu& cu = cus_[static_cast<std::size_t>(wave.cu)];
  result_.busy.add(Resource::lds, std::max(wave.time, cu.lds.free), cycles);
  return cu.lds.serve(wave.time, cycles) + chip_.lds_latency_cycles;
}

// A wave has so many vector memory operations outstanding at most.
void Xcd::await_room(WaveState& wave) {
  while (!wave.vector.empty() && wave.vector.front() <= wave.time) wave.vector.pop_front();
  if (wave.vector.size() < static_cast<std::size_t>(max_vmcnt)) return;
  note(wave, WaveActivity::load, wave.time, wave.vector.front());
  wave.time = wave.vector.front();
}

void Xcd::vector_memory(WaveState& wave, const Code& code, const Step& step) {
  const Running& g = groups_[wave.group];
  double done = wave.time;
  if (code.action == Action::release || code.action == Action::acquire) {
    const double cost = (code.action == Action::release ? chip_.release_ns : chip_.acquire_ns) * chip_.clock_ghz * options_.what_if.exit;
    done = std::max(wave.time, wave.last_store) + cost;
  } else if (step.access != none) {
    const Access& a = g.like->accesses[step.access];
    if (code.action == Action::load && a.awaited != 0) {
      done = memory_.coherent_load(wave.time, wave.cu, *g.like, a);
    } else if (code.action == Action::load && a.lines != 0) {
      done = memory_.load(wave.time, wave.cu, *g.like, a, g.number);
      result_.first_data = any_data_ ? std::min(result_.first_data, done) : done;
      result_.last_data = std::max(result_.last_data, done);
      any_data_ = true;
    } else if (code.action == Action::load || a.lines == 0) { // a flat access of LDS
      done = lds(wave, &a);
    } else if (code.action == Action::store) {
      done = memory_.store(wave.time, wave.cu, *g.like, a, g.number);
      if (code.for_device) { // others see it when it has passed the queues, behind what the CU stored before
        const double passed = done - chip_.store_ack_cycles;
        wave.published.emplace_back(wave.next - 1, passed + chip_.atomic_ns / 2 * chip_.clock_ghz * options_.what_if.exit);
      }
    } else {
      done = memory_.atomic(wave.time, wave.cu, a);
    }
    if (code.action != Action::load) wave.last_store = std::max(wave.last_store, done);
  }
  wave.vector.push_back(wave.vector.empty() ? done : std::max(done, wave.vector.back()));
  note(wave, WaveActivity::issue, wave.time, wave.time + issue_cycles * options_.what_if.issue);
  wave.time += issue_cycles * options_.what_if.issue;
}

void Xcd::end(uint32_t w) {
  WaveState& wave = waves_[w];
  Running& g = groups_[wave.group];
  const double done = std::max({wave.time, wave.last_store, wave.vector.empty() ? 0 : wave.vector.back()});
  note(wave, WaveActivity::store, wave.time, done);
  g.ended = std::max(g.ended, done);
  ended_ = std::max(ended_, done);
  Cu& cu = cus_[static_cast<std::size_t>(wave.cu)];
  --cu.waves;
  if (--g.left != 0) return;
  --cu.workgroups;
  launch_next(g.ended + chip_.slot_turnover_ns * chip_.clock_ghz);
}

Ready Xcd::ready(uint32_t w) const {
  const WaveState& wave = waves_[w];
  const std::size_t steps = groups_[wave.group].like->waves[static_cast<std::size_t>(wave.index)].size();
  return {wave.time, wave.group, wave.next - static_cast<std::int64_t>(steps), w};
}

bool Xcd::step(uint32_t w) {
  WaveState* wave = &waves_[w];
  Running& g = groups_[wave->group];
  const std::vector<Step>& steps = g.like->waves[static_cast<std::size_t>(wave->index)];
  const Step& step = steps[wave->next];
  const Code& code = record_.code[step.code];
  Simd& simd = cus_[static_cast<std::size_t>(wave->cu)].simd[static_cast<std::size_t>(wave->simd)];
  const double scale = options_.what_if.issue;
  const double requested = wave->time;
  if (code.polls && step.access != none && !await_flag(w, step)) return false;
  if (code.for_device && step.access != none && !await_others(w, g.like->accesses[step.access])) return false;
  if (is_vector_memory(code.action)) await_room(*wave);
  if (wave->time > requested) return true; // what other waves do until then comes first
  ++wave->next;
  switch (code.action) {
  case Action::valu:
  case Action::trans: issue(*wave, simd.valu, code.cycles, Resource::valu, true); break;
  case Action::matrix: {
    simd.valu.serve(wave->time, issue_cycles * scale); // the two share the way of instructions
    issue(*wave, simd.matrix, code.cycles, Resource::matrix, true);
    break;
  }
  case Action::scalar_load:
    issue(*wave, simd.scalar, issue_cycles, Resource::valu, false);
    wave->scalar = std::max(wave->scalar, wave->time + chip_.scalar_load_cycles);
    break;
  case Action::load:
  case Action::store:
  case Action::atomic:
  case Action::release:
  case Action::acquire: vector_memory(*wave, code, step); break;
  case Action::lds:
    wave->lds.push_back(lds(*wave, step.access == none ? nullptr : &g.like->accesses[step.access]));
    if (wave->lds.size() > 15) wave->lds.pop_front();
    note(*wave, WaveActivity::issue, wave->time, wave->time + issue_cycles * scale);
    wave->time += issue_cycles * scale;
    break;
  case Action::wait: wait(*wave, code); break;
  case Action::nop:
    note(*wave, WaveActivity::issue, wave->time, wave->time + code.cycles * scale);
    wave->time += code.cycles * scale;
    break;
  case Action::barrier: wave->time += issue_cycles * scale; break;
  default:
    issue(*wave, simd.scalar, issue_cycles, Resource::valu, false);
    if (step.taken) {
      note(*wave, WaveActivity::issue, wave->time, wave->time + (chip_.taken_branch_cycles - issue_cycles) * scale);
      wave->time += (chip_.taken_branch_cycles - issue_cycles) * scale;
    }
  }
  if (wave->next < steps.size() && steps[wave->next].dependent) wave->time += (chip_.dependent_cycles - issue_cycles) * scale;
  if (!g.blocked.empty()) wake_blocked(w);
  const bool ended = wave->next == steps.size();
  if (ended || (code.for_device && code.action == Action::store))
    for (const uint32_t b : std::exchange(blocked_on_others_, {})) ready_.push(ready(b));
  if (code.action == Action::barrier && !ended) arrive(w);
  if (ended) end(w);
  return !release_barrier(waves_[w].group) && !ended && !waves_[w].at_barrier;
}

Simulation Xcd::run(uint32_t xcd) {
  xcd_ = xcd;
  for (uint32_t n = xcd; n < record_.workgroups; n += static_cast<uint32_t>(xcds_)) queue_.push_back(n);
  result_.workgroups = static_cast<uint32_t>(queue_.size()), result_.xcds = xcds_;
  if (options_.cache == CacheState::l2) memory_.warm(queue_);
  launch_next(0);
  while (!ready_.empty() || break_circle()) {
    const uint32_t w = std::get<3>(ready_.top());
    ready_.pop();
    while (step(w)) {
      if (ready_.empty() || waves_[w].time <= std::get<0>(ready_.top())) continue;
      ready_.push(ready(w));
      break;
    }
  }
  for (const Running& g : groups_)
    if (g.left != 0)
      throw isa::Error("kernel " + record_.kernel,
                       fmt::format("in the simulation {} waves of workgroup {} wait for each other for ever", g.left, g.number),
                       "internal: please report, with the code object and the launch");
  result_.cycles = memory_.drained(ended_);
  result_.nanoseconds = result_.cycles / chip_.clock_ghz + chip_.floor_ns;
  result_.traffic = memory_.traffic();
  result_.from_hbm = memory_.from_hbm();
  result_.far_bytes = memory_.far_bytes();
  result_.cus = std::min<int>(static_cast<int>(cus_.size()), static_cast<int>(result_.workgroups));
  return std::move(result_);
}

std::string_view to_string(WaveActivity doing) {
  static constexpr std::array<std::string_view, doing_count> names{
      "issues",           "waits for loads",    "waits for scalar loads", "waits for LDS",
      "waits for stores", "waits at a barrier", "waits for another wave"};
  return names[static_cast<std::size_t>(doing)];
}

// The slowest of the XCDs that may be: with the most instructions, with the most lines of memory, and with a last workgroup that is unlike
// the first. At the end of a tensor elements are moved one by one, so that what has fewer lines may have more instructions.
Simulation simulate(const Record& record, const Chip& chip, const SimulateOptions& options) {
  const std::size_t xcds = std::min<std::size_t>(static_cast<std::size_t>(chip.xcds), record.workgroups);
  std::vector<std::size_t> steps(xcds, 0), lines(xcds, 0);
  for (uint32_t n = 0; n < record.workgroups; ++n) {
    steps[n % xcds] += record.representative_of(n).steps();
    lines[n % xcds] += record.representative_of(n).lines.size();
  }
  const auto most = [](const std::vector<std::size_t>& of) { return static_cast<uint32_t>(std::ranges::max_element(of) - of.begin()); };
  std::set<uint32_t> numbers{most(steps), most(lines)};
  if (record.representative_of(record.workgroups - 1).signature != record.representative_of(0).signature)
    numbers.insert(static_cast<uint32_t>((record.workgroups - 1) % xcds));
  if (record.xcds > 1) numbers = {0};
  Simulation slowest;
  for (const uint32_t xcd : numbers) {
    Simulation one = Xcd(record, chip, options).run(xcd);
    if (one.nanoseconds > slowest.nanoseconds) slowest = std::move(one);
  }
  return slowest;
}

} // namespace kiln::timing
