// JitStats: where kernels came from, counted.
#pragma once
#include "runtime/cache/cache.h"
#include <atomic>
#include <cstdint>
#include <map>
#include <string>

namespace kiln {

struct JitStats {
  std::uint64_t requests = 0;
  std::uint64_t memory_hits = 0, joined = 0; // joined: another thread was at it already
  std::uint64_t folder_hits = 0, layer_hits = 0, remote_hits = 0, compiled = 0;
  std::uint64_t failed = 0;                    // ended in an exception, misses of cache_only among them
  double compile_ms = 0;                       // wall time, summed over kernels
  std::map<std::string, std::uint64_t> events; // every fallback by name; docs/cache.md explains the names
};
std::string to_text(const JitStats& stats);

// The counters of a running Jit.
struct JitCounters {
  std::atomic<std::uint64_t> requests{0}, memory_hits{0}, joined{0}, folder_hits{0}, layer_hits{0}, remote_hits{0}, compiled{0}, failed{0};
  std::atomic<double> compile_ms{0};

  void count(Origin origin);
  JitStats with(std::map<std::string, std::uint64_t> events) const;
};

} // namespace kiln
