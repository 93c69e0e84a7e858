// MemoryLevels: the memory that the CUs of one XCD see: L1 of each, their L2, and the XCD's share of MALL and HBM, as queues.
#pragma once
#include "isa_checks/timing/chips.h"
#include "isa_checks/timing/queues.h"
#include "isa_checks/timing/record.h"
#include "isa_checks/timing/requesters.h"
#include <array>
#include <cstdint>
#include <deque>
#include <queue>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

namespace kiln::timing {

// Says where the data of a launch lies before it.
enum class CacheState : std::uint8_t { cold, mall, l2 };
std::string_view to_string(CacheState state);

// What the model calls a resource; each is busy or not, and the busiest one bounds a phase.
enum class Resource : std::uint8_t { valu, matrix, lds, l1, fill, l2, mall, hbm };
inline constexpr std::size_t resource_count = 8;
std::string_view to_string(Resource resource);

// Busy time of each resource by slice of time.
class BusyTime {
public:
  static constexpr double slice = 128; // cycles
  void add(Resource resource, double from, double cycles);
  double between(Resource resource, double from, double to) const; // cycles
  const std::vector<double>& slices(Resource resource) const { return slices_[static_cast<std::size_t>(resource)]; }

private:
  std::array<std::vector<double>, resource_count> slices_;
};

// Changes to a chip that a what-if asks for.
struct WhatIf {
  double far_latency = 1; // factors: of latency from MALL and HBM, with what depends on bytes in flight
  double issue = 1;       // of the time that instructions take
  double bandwidth = 1;   // of MALL and HBM
  double lds = 1;         // of LDS passes
  double exit = 1;        // of release, acquire and atomics
};

// The L2 of an XCD: of a set of a channel streamed lines leave first, the oldest of them first, then those least recently used. Before a
// launch it is full of what others have read. A line may still be on its way, and may have bytes that memory lacks.
class L2 {
public:
  // When the line is there; null when it has to be fetched.
  double* find(std::uint64_t line);
  // Returns the bytes that have to be written to memory because they leave.
  double put(std::uint64_t line, double ready, double dirty_bytes, bool streamed);
  double clean(); // writes everything back, returns the bytes, and keeps what was only read

private:
  struct Line {
    std::uint64_t line = ~0ULL;
    std::int64_t used = 0; // when it was last; of a streamed one, so much before all others
    double ready = 0, dirty = 0;
  };
  Line* set_of(std::uint64_t line);
  std::vector<Line> lines_{machine::l2_bytes / line_bytes};
  static constexpr std::int64_t streamed_ = 1LL << 60;
  std::int64_t clock_ = 0;
};

class MemoryLevels {
public:
  MemoryLevels(const Chip& chip, const Record& record, const Requesters& requesters, CacheState state, const WhatIf& what_if,
               int active_xcds, int cus, BusyTime& busy);

  // When the L1 of CU `cu` takes the next access. Calls for a CU have to come in order of time, and those for several nearly so.
  double l1_free(int cu) const { return cus_[static_cast<std::size_t>(cu)].l1.free; }
  double tagged(double now, int cu, const Access& access); // when L1 has looked up what a load asks for at cycle `now`
  // The first time from `now` on at which L1 may have room for the lines that a load of workgroup `number`, recorded as `like`, misses. L1
  // stands until then.
  double room(double now, int cu, const Workgroup& like, const Access& access, std::uint32_t number);
  // When the data of a load are there, that L1 has looked up at cycle `now`.
  double load(double now, int cu, const Workgroup& like, const Access& access, std::uint32_t number);
  // When it is acknowledged. `streamed`: its lines are the first to leave L2.
  double store(double now, int cu, const Workgroup& like, const Access& access, std::uint32_t number, bool streamed);
  double atomic(double now, int cu, const Access& access);
  double coherent_load(double now, int cu, const Workgroup& like, const Access& access); // what others have written for the device

  L2 take_l2() { return std::move(l2_lines_); }
  void put_l2(L2 left) { l2_lines_ = std::move(left); } // before the launch
  double drained(double now);                           // when all that was written has left L2, after the last wave ended at `now`
  struct Traffic {
    double l1 = 0, l2 = 0, mall = 0, hbm = 0, written = 0; // bytes, by the level that gave them
  };
  const Traffic& traffic() const { return traffic_; }
  const std::vector<double>& far_bytes() const { return far_bytes_; } // by BusyTime::slice
  bool from_hbm() const { return from_hbm_; }                         // where lines are found that L2 does not have: HBM, or MALL

private:
  struct Cu {
    static constexpr std::size_t line_count = machine::l1_bytes / line_bytes, sets = line_count / machine::l1_ways;
    Queue l1, fill;
    std::vector<std::pair<std::uint64_t, double>> lines{line_count, {~0ULL, 0}}; // L1: the ways of a set lie together
    std::array<std::uint8_t, sets> oldest{};
    // Lines on their way: when each is there, and the next ones to come. A line takes its place in L1 when it comes.
    std::unordered_map<std::uint64_t, double> waiting;
    std::priority_queue<std::pair<double, std::uint64_t>, std::vector<std::pair<double, std::uint64_t>>, std::greater<>> arriving;
  };
  struct Miss {
    double bytes = 0, from_hbm = 0; // of one access beyond L2; the part that HBM gives
  };
  std::pair<std::uint64_t, double> key_of(std::uint64_t line, const Workgroup& like, std::uint32_t number) const;
  double serve(Queue& queue, Resource resource, double now, double cycles);
  static const double* find_in_l1(const Cu& cu, std::uint64_t key);
  static void request_for_l1(Cu& cu, std::uint64_t key, double ready);
  static void put_in_l1(Cu& cu, double now);
  double far_load(double now, const Miss& miss);
  double write_back(double now, double bytes);

  const Chip& chip_;
  const Record& record_;
  const Requesters& requesters_;
  WhatIf what_if_;
  double cu_share_; // CUs of the chip that one simulated byte in flight is spread over
  BusyTime& busy_;
  bool from_hbm_;
  std::vector<Cu> cus_;
  L2 l2_lines_;
  Queue l2_, mall_, hbm_, write_;
  double l2_rate_, mall_rate_, hbm_rate_, write_rate_, shared_write_rate_; // bytes per cycle, of this XCD
  InFlight far_;                                                           // bytes beyond L2
  Traffic traffic_;
  std::vector<double> far_bytes_;
  std::vector<std::pair<std::uint64_t, double>> found_; // lines of the access under way that L2 has, and when
  std::vector<std::uint64_t> missed_;                   // those that it does not have
};

} // namespace kiln::timing
