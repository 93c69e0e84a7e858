// Loads and stores on their way through L1, L2, MALL and HBM.
#include "isa_checks/timing/memory_levels.h"
#include <algorithm>
#include <bit>
#include <cmath>

namespace kiln::timing {
namespace {

using machine::l1_ways, machine::l2_ways;
// The slice of MALL that has a line serves so much: 17.2 TB/s over 128 slices (CDNA 3 white paper).
constexpr double slice_bytes_per_ns = 134;
constexpr double min_cycles = 4;   // that the addresses of 64 lanes take
constexpr double read_once = 1.02; // workgroups that request a line, on average: beyond it they share lines at the ends of their shares

} // namespace

std::string_view to_string(CacheState state) { return state == CacheState::cold ? "cold" : state == CacheState::mall ? "mall" : "l2"; }

std::string_view to_string(Resource resource) {
  static constexpr std::array<std::string_view, resource_count> names{
      "vector instructions", "matrix instructions", "LDS", "L1", "a CU's path from L2", "L2", "MALL", "HBM"};
  return names[static_cast<std::size_t>(resource)];
}

void BusyTime::add(Resource resource, double from, double cycles) {
  std::vector<double>& s = slices_[static_cast<std::size_t>(resource)];
  while (cycles > 0) {
    const auto at = static_cast<std::size_t>(from / slice);
    if (s.size() <= at) s.resize(at + 1);
    const double here = std::min(cycles, (static_cast<double>(at) + 1) * slice - from);
    s[at] += here;
    from = (static_cast<double>(at) + 1) * slice;
    cycles -= std::max(here, 1e-9);
  }
}

double BusyTime::between(Resource resource, double from, double to) const {
  const std::vector<double>& s = slices(resource);
  double sum = 0;
  for (auto i = static_cast<std::size_t>(from / slice); i < s.size() && static_cast<double>(i) * slice < to; ++i) sum += s[i];
  return sum;
}

// 256 bytes lie in a channel, which all bits of their address decide (ROCm Compute Profiler documentation, L2 cache: a hash that spreads
// requests evenly; which one, AMD does not say: all bits, folded). That a channel's sets follow the address is an assumption.
L2::Line* L2::set_of(std::uint64_t line) {
  constexpr std::uint64_t channels = 16, lines = 2, sets = machine::l2_bytes / line_bytes / l2_ways / channels; // CDNA 3 white paper: 16
  constexpr int bits = std::countr_zero(channels);
  const std::uint64_t piece = line / lines;
  std::uint64_t channel = 0;
  for (std::uint64_t rest = piece; rest != 0; rest >>= bits) channel ^= rest % channels;
  return &lines_[(channel * sets + (piece / channels * lines + line % lines) % sets) * l2_ways];
}

double* L2::find(std::uint64_t line) {
  Line* const set = set_of(line);
  for (std::size_t w = 0; w < l2_ways; ++w)
    if (set[w].line == line) {
      set[w].used = ++clock_;
      return &set[w].ready;
    }
  return nullptr;
}

double L2::put(std::uint64_t line, double ready, double dirty_bytes, bool streamed) {
  Line* const set = set_of(line);
  Line* oldest = set;
  const std::int64_t used = ++clock_ - (streamed ? streamed_ : 0);
  for (std::size_t w = 0; w < l2_ways; ++w) {
    if (set[w].line == line) {
      set[w].used = used;
      set[w].dirty = std::min<double>(line_bytes, set[w].dirty + dirty_bytes);
      return 0;
    }
    if (set[w].used < oldest->used) oldest = &set[w];
  }
  const double leaves = oldest->dirty;
  *oldest = {line, used, ready, dirty_bytes};
  return leaves;
}

// What a launch has written leaves L2 at its end, for other XCDs to read, and is in MALL; what it has only read stays.
double L2::clean() {
  double bytes = 0;
  for (Line& l : lines_) {
    bytes += l.dirty;
    if (l.dirty != 0) l = {};
    l.ready = 0;
  }
  return bytes;
}

MemoryLevels::MemoryLevels(const Chip& chip, const Record& record, const Requesters& requesters, CacheState state, const WhatIf& what_if,
                           int active_xcds, int cus, BusyTime& busy)
    : chip_(chip), record_(record), requesters_(requesters), what_if_(what_if), cu_share_(static_cast<double>(active_xcds) / chip.cus),
      busy_(busy), from_hbm_(state == CacheState::cold || record.footprint > machine::mall_bytes), cus_(static_cast<std::size_t>(cus)),
      far_(1 / ((from_hbm_ ? chip.hbm_ns_per_byte : chip.mall_ns_per_byte) * chip.clock_ghz * what_if.far_latency * cu_share_)) {
  const auto rate = [&](double tbs, double parts) { return tbs * 1e3 / chip.clock_ghz / parts; }; // bytes per cycle
  l2_rate_ = rate(chip.l2_tbs, chip.xcds);
  mall_rate_ = rate(chip.mall_tbs, active_xcds) * what_if.bandwidth;
  hbm_rate_ = rate(chip.hbm_tbs, active_xcds) * what_if.bandwidth;
  write_rate_ = rate(chip.write_tbs, chip.xcds) * what_if.bandwidth;
  shared_write_rate_ = rate(chip.write_tbs, active_xcds) * what_if.bandwidth;
}

// The line as this workgroup has it, and how many XCDs request it. A workgroup that was not recorded has its share of the buffers that
// workgroups do not share, further on than the one that it is like. If that one's lines have those of others between them, they stay as far
// apart as they are, at a place that nobody else has. Lines that one workgroup reads alone stay its own, in the set where they would be:
// workgroups whose work begins and ends within a tile are only about as far apart as their share. Each group has its own of the lines that
// some share.
std::pair<std::uint64_t, double> MemoryLevels::key_of(std::uint64_t line, const Workgroup& like, std::uint32_t number) const {
  constexpr std::uint64_t nobodys = 1ULL << 40, groups = 1ULL << 60; // beyond all lines, and of the same set as 0
  for (std::size_t i = 0; i < record_.buffers.size(); ++i) {
    const Buffer& b = record_.buffers[i];
    if (line < b.first_line || line >= b.end_line) continue;
    const LineSpan span = like.spans.empty() ? LineSpan{} : like.spans[i];
    if (b.sharers.together != 0 && record_.recorded.size() < record_.workgroups) {
      const std::uint32_t group = b.sharers.group_of(number);
      const auto begin = b.first_line + static_cast<std::uint64_t>(b.touched * b.sharers.together / record_.workgroups * group);
      return {begin + line - span.first + groups + nobodys * group, requesters_.xcds[i]};
    }
    if (number == like.number || b.sharing() >= 1.5) return {line, requesters_.xcds[i]};
    const double share = b.touched / record_.workgroups; // lines of a workgroup
    const std::uint64_t after = number - like.number;
    if (static_cast<double>(span.count) > 1.5 * share + 2)
      return {line + after * span.count + nobodys * (like.number + 1), requesters_.xcds[i]};
    const std::uint64_t moved = line + static_cast<std::uint64_t>(share * static_cast<double>(after));
    return {b.sharing() < read_once ? moved + nobodys * (number + 1ULL) : moved, requesters_.xcds[i]};
  }
  return {line, 1};
}

// A line on its way is requested once: who misses it too waits for it.
const double* MemoryLevels::find_in_l1(const Cu& cu, std::uint64_t key) {
  const std::size_t set = key % Cu::sets * l1_ways;
  for (std::size_t w = 0; w < l1_ways; ++w)
    if (cu.lines[set + w].first == key) return &cu.lines[set + w].second;
  const auto waiting = cu.waiting.find(key);
  return waiting != cu.waiting.end() ? &waiting->second : nullptr;
}

void MemoryLevels::request_for_l1(Cu& cu, std::uint64_t key, double ready) {
  cu.waiting[key] = ready;
  cu.arriving.emplace(ready, key);
}

// Puts the lines into L1 that have come until now, in the order in which they came.
void MemoryLevels::put_in_l1(Cu& cu, double now) {
  for (; !cu.arriving.empty() && cu.arriving.top().first <= now; cu.arriving.pop()) {
    const auto [ready, key] = cu.arriving.top();
    const std::size_t set = key % Cu::sets;
    std::uint8_t& way = cu.oldest[set];
    cu.lines[set * l1_ways + way] = {key, ready};
    way = static_cast<std::uint8_t>((way + 1) % l1_ways);
    cu.waiting.erase(key);
  }
}

// So many lines may be on their way to an L1. Beyond them it stands until data come, for hits too.
double MemoryLevels::room(double now, int cu_number, const Workgroup& like, const Access& access, std::uint32_t number) {
  Cu& cu = cus_[static_cast<std::size_t>(cu_number)];
  put_in_l1(cu, now);
  std::size_t lines = access.lines;
  const auto fits = [&] { return static_cast<double>((cu.waiting.size() + lines) * line_bytes) <= chip_.max_missing_bytes; };
  if (cu.arriving.empty() || fits()) return now;
  for (std::size_t i = 0; i < access.lines; ++i)
    if (find_in_l1(cu, key_of(like.lines[access.first + i], like, number).first) != nullptr) --lines;
  if (lines == 0 || fits()) return now;
  return cu.l1.free = cu.arriving.top().first;
}

// Latency grows with the bytes in flight, and the queue of a level holds back what it has no rate for.
double MemoryLevels::far_load(double now, const Miss& miss) {
  const bool hbm = from_hbm_;
  const double per_cu = (far_.at(now) + miss.bytes) * cu_share_;
  const double base = hbm ? chip_.hbm_latency_ns : chip_.mall_latency_ns;
  const double extra = hbm ? chip_.hbm_ns_per_byte * std::max(0.0, per_cu - chip_.hbm_free_bytes)
                           : chip_.mall_ns_per_byte * std::max(0.0, per_cu - chip_.mall_free_bytes);
  double served = serve(mall_, Resource::mall, now, miss.bytes / mall_rate_);
  if (hbm) served = std::max(served, serve(hbm_, Resource::hbm, now, miss.from_hbm / hbm_rate_));
  const double ready = std::max(now + (base + extra) * chip_.clock_ghz * what_if_.far_latency, served + chip_.l2_latency_cycles);
  far_.add(ready, miss.bytes);
  traffic_.mall += miss.bytes - (hbm ? miss.from_hbm : 0);
  traffic_.hbm += hbm ? miss.from_hbm : 0;
  const auto at = static_cast<std::size_t>(ready / BusyTime::slice);
  if (far_bytes_.size() <= at) far_bytes_.resize(at + 1);
  far_bytes_[at] += miss.bytes;
  return ready;
}

double MemoryLevels::tagged(double now, int cu_number, const Access& access) {
  Cu& cu = cus_[static_cast<std::size_t>(cu_number)];
  const double path = std::max({min_cycles, access.halves * 64 / chip_.l1_bytes_per_cycle, access.bytes / chip_.l1_bytes_per_cycle});
  busy_.add(Resource::l1, std::max(now, cu.l1.free), path);
  return cu.l1.serve(now, path);
}

double MemoryLevels::load(double now, int cu_number, const Workgroup& like, const Access& access, std::uint32_t number) {
  Cu& cu = cus_[static_cast<std::size_t>(cu_number)];
  put_in_l1(cu, now);
  double ready = now + chip_.l1_latency_cycles;
  found_.clear();
  missed_.clear();
  Miss miss;
  for (std::size_t i = 0; i < access.lines; ++i) {
    const auto [key, sharers] = key_of(like.lines[access.first + i], like, number);
    if (const double* at = find_in_l1(cu, key)) {
      ready = std::max(ready, *at);
      traffic_.l1 += line_bytes;
    } else if (const double* there = l2_lines_.find(key)) {
      found_.emplace_back(key, *there);
    } else {
      missed_.push_back(key);
      miss.bytes += line_bytes; // whole lines: the other half comes along
      miss.from_hbm += line_bytes / sharers;
    }
  }
  if (found_.empty() && missed_.empty()) return ready;
  const double fill_bytes = static_cast<double>(found_.size() * line_bytes) + miss.bytes;
  const double fill_cycles = fill_bytes / chip_.fill_bytes_per_cycle;
  busy_.add(Resource::fill, std::max(now, cu.fill.free), fill_cycles);
  const double served = std::max(cu.fill.serve(now, fill_cycles), serve(l2_, Resource::l2, now, fill_bytes / l2_rate_));
  traffic_.l2 += fill_bytes - miss.bytes;
  for (const auto& [key, there] : found_) {
    const double filled = std::max(there, served + chip_.l2_latency_cycles);
    request_for_l1(cu, key, filled);
    ready = std::max(ready, filled);
  }
  if (missed_.empty()) return ready;
  const double filled = std::max(served + chip_.l2_latency_cycles, far_load(now, miss) + (served - now));
  double leaves = 0;
  for (const std::uint64_t key : missed_) {
    leaves += l2_lines_.put(key, filled, 0, false);
    request_for_l1(cu, key, filled);
  }
  write_back(now, leaves); // when the line that they leave for is requested
  return std::max(ready, filled);
}

double MemoryLevels::serve(Queue& queue, Resource resource, double now, double cycles) {
  const double done = queue.serve(now, cycles);
  busy_.add(resource, done - cycles, cycles);
  return done;
}

double MemoryLevels::store(double now, int cu_number, const Workgroup& like, const Access& access, std::uint32_t number, bool streamed) {
  Cu& cu = cus_[static_cast<std::size_t>(cu_number)];
  const double path = std::max({min_cycles, access.halves * 64 / chip_.l1_bytes_per_cycle});
  busy_.add(Resource::l1, std::max(now, cu.l1.free), path);
  const double sent = cu.l1.serve(now, path), bytes = access.halves * 64.0;
  const double taken = serve(l2_, Resource::l2, sent, access.lines * static_cast<double>(line_bytes) / l2_rate_);
  traffic_.written += bytes;
  const double dirty = access.lines == 0 ? 0 : bytes / access.lines;
  double leaves = 0;
  for (std::size_t i = 0; i < access.lines; ++i)
    leaves += l2_lines_.put(key_of(like.lines[access.first + i], like, number).first, taken, dirty, streamed);
  return std::max(now + chip_.store_ack_cycles, std::max(taken, write_back(sent, leaves)) - path + chip_.store_ack_cycles);
}

// What leaves L2 for memory; returns when it has left.
double MemoryLevels::write_back(double now, double bytes) {
  if (bytes == 0) return now;
  // Reads and writes share the way to memory: a copy is no faster than reading alone.
  const double shared = from_hbm_ ? serve(hbm_, Resource::hbm, now, bytes / shared_write_rate_)
                                  : serve(mall_, Resource::mall, now, bytes / shared_write_rate_);
  return std::max(shared, write_.serve(now, bytes / write_rate_));
}

double MemoryLevels::atomic(double now, int cu_number, const Access& access) {
  Cu& cu = cus_[static_cast<std::size_t>(cu_number)];
  const double sent = cu.l1.serve(now, std::max(min_cycles, static_cast<double>(access.halves)));
  const double bytes = access.halves * 64.0;
  const double served = mall_.serve(sent, bytes / mall_rate_);
  traffic_.written += bytes;
  return std::max(sent + chip_.atomic_ns * chip_.clock_ghz * what_if_.exit, served);
}

// Those who poll a line queue at its slice of MALL, reads that only wait among them (the record has none of those): what is published, and
// the read that finds it, wait for a round of them.
double MemoryLevels::coherent_load(double now, int cu_number, const Workgroup& like, const Access& access) {
  const double sent = cus_[static_cast<std::size_t>(cu_number)].l1.serve(now, min_cycles);
  const auto polled = requesters_.pollers.find(like.lines[access.first]);
  const double round = polled == requesters_.pollers.end() ? 0 : polled->second * access.halves * 64 / slice_bytes_per_ns;
  return sent + (chip_.mall_latency_ns + round) * chip_.clock_ghz * what_if_.exit;
}

// At the end of a kernel what L2 holds for other XCDs to read is written to memory.
double MemoryLevels::drained(double now) { return std::max(write_.free, write_back(now, l2_lines_.clean())); }

} // namespace kiln::timing
