// What waves wait for: counters, barriers, and steps of other waves and workgroups.
#include "isa_checks/timing/xcd.h"
#include <algorithm>
#include <cmath>

namespace kiln::timing {

using std::uint32_t;

// A read that waits for another wave of the workgroup comes after the write that it saw.
bool Xcd::await_flag(uint32_t w, const Step& step) {
  WaveState& wave = waves_[w];
  Running& g = groups_[wave.group];
  const Access& a = g.like->accesses[step.access];
  if (a.writer == none) return true;
  const WaveState& writer = waves_[g.waves[a.writer]];
  if (writer.next > a.written_at) {
    const double seen = writer.next == a.written_at + 1 ? writer.time : wave.time;
    if (seen > wave.time) {
      note(wave, WaveActivity::flag, wave.time, seen);
      wave.time = seen;
    }
    return true;
  }
  if (!wave.blocked) wave.waiting_since = wave.time;
  wave.blocked = true;
  g.blocked.push_back(w);
  return false;
}

// When others see what a step wrote. A workgroup of another XCD is as far as the one here that was launched at the same time.
std::optional<double> Xcd::visible_at(const Awaited& awaited, uint32_t w) const {
  const auto xcds = static_cast<uint32_t>(xcds_);
  uint32_t number = awaited.workgroup / xcds * xcds + result_.xcd;
  if (number >= record_.workgroups) number = number < xcds ? awaited.workgroup : number - xcds;
  const auto found = launched_.find(number);
  if (found == launched_.end()) return std::nullopt;
  // Launched with the one that stands here for it: a workgroup does not wait for itself, nor its waves for each other.
  if (found->second == waves_[w].group) return waves_[w].time;
  const WaveState& writer = waves_[groups_[found->second].waves[awaited.wave]];
  const auto published = std::ranges::find(writer.published, awaited.step, &std::pair<uint32_t, double>::first);
  if (published != writer.published.end()) return std::isinf(published->second) ? std::nullopt : std::optional(published->second);
  // That one may take another path, and a shorter one.
  const bool is_past = writer.next > awaited.step || writer.next == groups_[found->second].like->waves[awaited.wave].size();
  return is_past ? std::optional(writer.time) : std::nullopt;
}

// A read of what other workgroups publish comes after the writes that it saw.
bool Xcd::await_others(uint32_t w, const Access& access) {
  WaveState& wave = waves_[w];
  const Workgroup& like = *groups_[wave.group].like;
  double seen = wave.time;
  for (uint32_t i = 0; i < access.awaited; ++i) {
    const std::optional<double> published = visible_at(like.awaited[access.first_awaited + i], w);
    if (!published && wave.in_circle && like.awaited[access.first_awaited + i].workgroup % static_cast<uint32_t>(xcds_) != result_.xcd)
      continue;
    if (!published) {
      blocked_on_others_.push_back(w);
      return false;
    }
    seen = std::max(seen, *published);
  }
  wave.in_circle = false;
  note(wave, WaveActivity::flag, wave.time, seen);
  wave.time = seen;
  return true;
}

// Workgroups that stand for those of other XCDs may wait for each other in a circle, which the others do not. The first of them goes on.
bool Xcd::break_circle() {
  std::vector<uint32_t>& blocked = blocked_on_others_;
  std::ranges::sort(blocked, {}, [&](uint32_t w) { return ready(w); });
  const auto first = std::ranges::find_if(blocked, [&](uint32_t w) { return !waves_[w].in_circle; });
  if (first == blocked.end()) return false;
  waves_[*first].in_circle = true;
  ready_.push(ready(*first));
  blocked.erase(first);
  return true;
}

// Loads and stores return in order, LDS operations too; scalar loads only count when nothing may be outstanding.
void Xcd::wait(WaveState& wave, const Code& code) {
  double until = wave.time;
  WaveActivity why = WaveActivity::issue;
  const auto await = [&](std::deque<double>& outstanding, std::size_t may_stay, WaveActivity doing) {
    while (outstanding.size() > may_stay) {
      if (outstanding.front() > until) {
        until = outstanding.front();
        why = doing;
      }
      outstanding.pop_front();
    }
  };
  while (!wave.vector.empty() && wave.vector.front() <= wave.time) wave.vector.pop_front();
  if (code.vmcnt < max_vmcnt)
    await(wave.vector, code.vmcnt, wave.last_store > wave.time && wave.vector.size() == 1 ? WaveActivity::store : WaveActivity::load);
  if (code.lgkmcnt < max_lgkmcnt) await(wave.lds, code.lgkmcnt, WaveActivity::lds);
  if (code.lgkmcnt == 0 && wave.scalar > until) {
    until = wave.scalar;
    why = WaveActivity::scalar_load;
  }
  note(wave, why, wave.time, until);
  note(wave, WaveActivity::issue, until, until + issue_cycles * options_.what_if.issue);
  wave.time = until + issue_cycles * options_.what_if.issue;
}

// Waves that wait for a step of wave `w` look again.
void Xcd::wake_blocked(uint32_t w) {
  const WaveState& wave = waves_[w];
  Running& g = groups_[wave.group];
  std::vector<uint32_t> blocked;
  blocked.swap(g.blocked);
  for (const uint32_t b : blocked) {
    WaveState& other = waves_[b];
    const Access& a = g.like->accesses[g.like->waves[static_cast<std::size_t>(other.index)][other.next].access];
    if (a.writer != static_cast<uint32_t>(wave.index) || wave.next <= a.written_at) {
      g.blocked.push_back(b);
      continue;
    }
    other.blocked = false;
    note(other, WaveActivity::flag, other.waiting_since, wave.time);
    other.time = std::max(other.time, wave.time + chip_.lds_latency_cycles);
    ready_.push(ready(b));
  }
}

void Xcd::arrive(uint32_t w) {
  WaveState& wave = waves_[w];
  Running& g = groups_[wave.group];
  wave.at_barrier = true;
  wave.waiting_since = wave.time;
  ++g.at_barrier;
  g.barrier_since = std::max(g.barrier_since, wave.time);
}

// Lets waves go on when all have arrived; waves that have ended count as arrived. Returns whether it did.
bool Xcd::release_barrier(uint32_t group) {
  Running& g = groups_[group];
  if (g.at_barrier == 0 || g.at_barrier != g.left) return false;
  const double go = g.barrier_since + chip_.barrier_cycles;
  for (const uint32_t w : g.waves) {
    WaveState& wave = waves_[w];
    if (!wave.at_barrier) continue;
    wave.at_barrier = false;
    note(wave, WaveActivity::barrier, wave.waiting_since, go);
    wave.time = go;
    ready_.push(ready(w));
  }
  g.at_barrier = 0;
  g.barrier_since = 0;
  return true;
}

} // namespace kiln::timing
