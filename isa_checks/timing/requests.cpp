// Vector memory: what waves request of the L1 of their CU, which serves it in order of time. So no request takes its place in the queues of
// L2, MALL and HBM before those that other CUs make earlier.
#include "isa_checks/timing/xcd.h"
#include <algorithm>
#include <limits>
#include <utility>

namespace kiln::timing {

using std::uint32_t;

namespace {

constexpr double unknown = std::numeric_limits<double>::infinity(); // when a request is complete that L1 has yet to serve

bool is_vector_memory(Action action) {
  return action == Action::load || action == Action::store || action == Action::atomic || action == Action::release ||
         action == Action::acquire;
}

} // namespace

double Xcd::lds(double now, int cu_number, const Access* access) {
  const double passes = access == nullptr ? 2 : std::max(1U, access->passes);
  const double cycles = std::max(4.0, passes * chip_.lds_pass_cycles) * options_.what_if.lds;
  Cu& cu = cus_[static_cast<std::size_t>(cu_number)];
  result_.busy.add(Resource::lds, std::max(now, cu.lds.free), cycles);
  return cu.lds.serve(now, cycles) + chip_.lds_latency_cycles;
}

void Xcd::vector_memory(uint32_t w) {
  WaveState& wave = waves_[w];
  const Running& g = groups_[wave.group];
  const uint32_t number = wave.next - 1;
  const Step& step = g.like->waves[static_cast<std::size_t>(wave.index)][number];
  const Code& code = record_.code[step.code];
  if (code.for_device && code.action == Action::store) wave.published.emplace_back(number, unknown);
  wave.vector.push_back(unknown);
  ++wave.unserved;
  std::deque<Request>& requests = cus_[static_cast<std::size_t>(wave.cu)].requests;
  requests.push_back({w, number, wave.time});
  if (requests.size() == 1) push_l1(wave.cu);
  note(wave, WaveActivity::issue, wave.time, wave.time + issue_cycles * options_.what_if.issue);
  wave.time += issue_cycles * options_.what_if.issue;
}

// Says whether a wave may go on with `code`. It may not before L1 has served another one of its requests if it waits for that one, has as
// many outstanding as a wave may have, or ends. Moves its time to when it has room for one more.
bool Xcd::await_l1(WaveState& wave, const Code& code, bool last) {
  const bool one_more = is_vector_memory(code.action), waits = code.action == Action::wait && wave.unserved > code.vmcnt;
  wave.awaits_l1 = wave.unserved != 0 && (last || waits || (one_more && wave.unserved >= static_cast<std::size_t>(max_vmcnt)));
  if (wave.awaits_l1) return false;
  if (!one_more) return true;
  while (!wave.vector.empty() && wave.vector.front() <= wave.time) wave.vector.pop_front();
  if (wave.vector.size() < static_cast<std::size_t>(max_vmcnt)) return true;
  note(wave, WaveActivity::load, wave.time, wave.vector.front());
  wave.time = wave.vector.front();
  return true;
}

void Xcd::push_l1(int cu) {
  const Request& next = cus_[static_cast<std::size_t>(cu)].requests.front();
  ready_.emplace(std::max(next.issued, memory_.l1_free(cu)), -1, l1_of + static_cast<uint32_t>(cu));
}

// Serves the oldest request of a CU, when its L1 has room for what that one misses.
void Xcd::serve_l1(int cu, double now) {
  std::deque<Request>& requests = cus_[static_cast<std::size_t>(cu)].requests;
  Request& request = requests.front();
  WaveState& wave = waves_[request.wave];
  const Running& g = groups_[wave.group];
  const Step& step = g.like->waves[static_cast<std::size_t>(wave.index)][request.step];
  const Code& code = record_.code[step.code];
  const Access* const a = step.access == none ? nullptr : &g.like->accesses[step.access];
  if (code.action == Action::load && a != nullptr && a->awaited == 0 && a->lines != 0) {
    if (request.tagged == 0) request.tagged = memory_.tagged(now, cu, *a);
    now = std::max(now, request.tagged);
    if (memory_.room(now, cu, *g.like, *a, g.number) > now) return push_l1(cu);
  }
  const double done = access_memory(wave, request, now);
  const std::size_t at = wave.vector.size() - wave.unserved--;
  wave.vector[at] = at == 0 ? done : std::max(done, wave.vector[at - 1]);
  if (std::exchange(wave.awaits_l1, false)) ready_.push(ready(request.wave));
  requests.pop_front();
  if (!requests.empty()) push_l1(cu);
}

// When a request that L1 serves at cycle `now` is complete.
double Xcd::access_memory(WaveState& wave, const Request& request, double now) {
  const Running& g = groups_[wave.group];
  const Step& step = g.like->waves[static_cast<std::size_t>(wave.index)][request.step];
  const Code& code = record_.code[step.code];
  double done = now;
  if (code.action == Action::release || code.action == Action::acquire) {
    const double cost = (code.action == Action::release ? chip_.release_ns : chip_.acquire_ns) * chip_.clock_ghz * options_.what_if.exit;
    done = std::max(now, wave.last_store) + cost;
  } else if (step.access != none) {
    const Access& a = g.like->accesses[step.access];
    if (code.action == Action::load && a.awaited != 0) {
      done = memory_.coherent_load(now, wave.cu, *g.like, a);
    } else if (code.action == Action::load && a.lines != 0) {
      done = memory_.load(now, wave.cu, *g.like, a, g.number);
      result_.first_data = any_data_ ? std::min(result_.first_data, done) : done;
      result_.last_data = std::max(result_.last_data, done);
      any_data_ = true;
    } else if (code.action == Action::load || a.lines == 0) { // a flat access of LDS
      done = lds(now, wave.cu, &a);
    } else if (code.action == Action::store) {
      done = memory_.store(now, wave.cu, *g.like, a, g.number, code.streamed);
    } else {
      done = memory_.atomic(now, wave.cu, a);
    }
    if (code.action != Action::load) wave.last_store = std::max(wave.last_store, done);
  }
  if (code.for_device && code.action == Action::store) { // others see it when it has passed the queues, behind what the CU stored before
    const double passed = done - chip_.store_ack_cycles;
    std::ranges::find(wave.published, request.step, &std::pair<uint32_t, double>::first)->second =
        passed + chip_.atomic_ns / 2 * chip_.clock_ghz * options_.what_if.exit;
    for (const uint32_t b : std::exchange(blocked_on_others_, {})) ready_.push(ready(b));
  }
  return done;
}

} // namespace kiln::timing
