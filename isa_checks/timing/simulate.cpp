// Waves on the SIMDs of one XCD, in the order of their next instruction.
#include "isa_checks/error.h"
#include "isa_checks/parallel.h"
#include "isa_checks/timing/xcd.h"
#include <algorithm>
#include <deque>
#include <fmt/format.h>
#include <numeric>
#include <set>
#include <utility>

namespace kiln::timing {
using std::uint32_t;

namespace {

// The place of each wave in the order of what `key` says of it. Waves of which it says the same have one place, or `next` ones.
template <typename Key> std::vector<uint32_t> places_by(std::size_t waves, Key key, bool next) {
  std::vector<uint32_t> order(waves), places(waves);
  std::iota(order.begin(), order.end(), 0U);
  std::ranges::stable_sort(order, key);
  for (uint32_t i = 1; i < order.size(); ++i) places[order[i]] = next || key(order[i - 1], order[i]) ? i : places[order[i - 1]];
  return places;
}

// The place of each wave of a workgroup in an order by what they do: instructions, and the memory that they touch; of those that do the
// same, by what the waves of their SIMD do. Their numbers count only where that is the same too.
std::vector<uint32_t> places(const Workgroup& g) {
  const std::size_t waves = g.waves.size();
  const auto what = [&](const Step& s) {
    const Access& a = s.access == none ? Access{} : g.accesses[s.access];
    return std::tuple(s.code, s.taken, a.lines == 0 ? 0 : g.lines[a.first], a.lines, a.halves, a.passes, a.bytes);
  };
  const auto alone = places_by(
      waves, [&](uint32_t a, uint32_t b) { return std::ranges::lexicographical_compare(g.waves[a], g.waves[b], {}, what, what); }, false);
  std::vector<std::vector<uint32_t>> of_simd(simds_per_cu);
  for (std::size_t w = 0; w < waves; ++w) of_simd[w % simds_per_cu].push_back(alone[w]);
  for (std::vector<uint32_t>& simd : of_simd) std::ranges::sort(simd);
  const auto in_company = [&](uint32_t w) { return std::tie(alone[w], of_simd[w % simds_per_cu]); };
  return places_by(waves, [&](uint32_t a, uint32_t b) { return in_company(a) < in_company(b); }, true);
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

bool Xcd::step(uint32_t w) {
  WaveState* wave = &waves_[w];
  Running& g = groups_[wave->group];
  const std::vector<Step>& steps = g.like->waves[static_cast<std::size_t>(wave->index)];
  const Step& step = steps[wave->next];
  const Code& code = record_.code[step.code];
  Simd& simd = cus_[static_cast<std::size_t>(wave->cu)].simd[static_cast<std::size_t>(wave->simd)];
  const double scale = options_.what_if.issue;
  const double requested = wave->waits_since = wave->time;
  if (code.polls && step.access != none && !await_flag(w, step)) return false;
  if (code.for_device && step.access != none && !await_others(w, g.like->accesses[step.access])) return false;
  if (!await_l1(*wave, code, wave->next + 1 == steps.size())) return false;
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
  case Action::acquire: vector_memory(w); break;
  case Action::lds:
    wave->lds.push_back(lds(wave->time, wave->cu, step.access == none ? nullptr : &g.like->accesses[step.access]));
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
  if (ended)
    for (const uint32_t b : std::exchange(blocked_on_others_, {})) ready_.push(ready(b));
  if (code.action == Action::barrier && !ended) arrive(w);
  if (ended) end(w);
  return !release_barrier(waves_[w].group) && !ended && !waves_[w].at_barrier;
}

Simulation Xcd::run(uint32_t xcd) {
  result_.xcd = xcd;
  for (uint32_t n = xcd; n < record_.workgroups; n += static_cast<uint32_t>(xcds_)) queue_.push_back(n);
  result_.workgroups = static_cast<uint32_t>(queue_.size()), result_.xcds = xcds_;
  launch_next(0);
  while (!ready_.empty() || break_circle()) {
    const auto [time, since, w] = ready_.top();
    ready_.pop();
    if ((w & l1_of) != 0) {
      serve_l1(static_cast<int>(w - l1_of), time);
      continue;
    }
    while (step(w)) {
      if (ready_.empty() || waves_[w].time < std::get<0>(ready_.top()) || ready(w) < ready_.top()) continue;
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

namespace {

// The XCDs of which one may be the slowest. Those that execute the same may differ by 8 %, as rows end at other places of a line and lines
// lie in other sets of L1: where all workgroups were recorded, all are simulated. Else those with the most instructions, with the most
// lines of memory, and with a last workgroup that is unlike the first. At the end of a tensor elements are moved one by one, so that what
// has fewer lines may have more instructions.
std::set<uint32_t> maybe_slowest(const Record& record, uint32_t xcds) {
  if (record.xcds > 1) return {0}; // the others were not recorded
  std::set<uint32_t> result;
  if (record.recorded.size() == record.workgroups) {
    for (uint32_t xcd = 0; xcd < xcds; ++xcd) result.insert(xcd);
    return result;
  }
  std::vector<std::size_t> steps(xcds, 0), lines(xcds, 0);
  for (uint32_t n = 0; n < record.workgroups; ++n) {
    steps[n % xcds] += record.representative_of(n).steps();
    lines[n % xcds] += record.representative_of(n).lines.size();
  }
  for (const std::vector<std::size_t>& of : {steps, lines}) result.insert(static_cast<uint32_t>(std::ranges::max_element(of) - of.begin()));
  if (record.representative_of(record.workgroups - 1).signature != record.representative_of(0).signature)
    result.insert((record.workgroups - 1) % xcds);
  return result;
}

// A launch takes no longer if its data lie nearer: what it does with them farther away, it may do at the same time. If chance lets it come
// out longer, that one is taken. Out of L2 it follows the one out of MALL.
Simulation simulate_xcd(const Record& record, const Requesters& requesters, const Chip& chip, const SimulateOptions& options,
                        uint32_t xcd) {
  std::deque<Xcd> launches;
  Simulation least;
  for (const CacheState cache : {CacheState::cold, CacheState::mall, CacheState::l2}) {
    SimulateOptions own = options;
    own.cache = cache;
    Xcd& launch = launches.emplace_back(record, requesters, chip, own);
    if (cache == CacheState::l2) launch.follow(launches[1]);
    Simulation one = launch.run(xcd);
    if (launches.size() == 1 || one.nanoseconds <= least.nanoseconds) least = std::move(one);
    if (cache == options.cache) break;
  }
  return least;
}

} // namespace

Simulation simulate(const Record& record, const Chip& chip, const SimulateOptions& options) {
  const uint32_t xcds = std::min(static_cast<uint32_t>(chip.xcds), record.workgroups);
  const Requesters requesters(record, xcds);
  const std::set<uint32_t> chosen = options.xcd ? std::set{*options.xcd} : maybe_slowest(record, xcds);
  const std::vector<uint32_t> simulated(chosen.begin(), chosen.end());
  std::vector<Simulation> results(simulated.size());
  in_parallel(simulated.size(), processors(),
              [&](std::size_t i) { results[i] = simulate_xcd(record, requesters, chip, options, simulated[i]); });
  return std::move(*std::ranges::max_element(results, {}, &Simulation::nanoseconds));
}

} // namespace kiln::timing
