// JitStats: by origin, and as text.
#include "runtime/jit/stats.h"
#include <fmt/format.h>

namespace kiln {

void JitCounters::count(Origin origin) {
  switch (origin) {
  case Origin::memory: ++memory_hits; break;
  case Origin::folder: ++folder_hits; break;
  case Origin::layer: ++layer_hits; break;
  case Origin::remote: ++remote_hits; break;
  case Origin::compiled: ++compiled; break;
  }
}

JitStats JitCounters::with(std::map<std::string, std::uint64_t> events) const {
  return {.requests = requests,
          .memory_hits = memory_hits,
          .joined = joined,
          .folder_hits = folder_hits,
          .layer_hits = layer_hits,
          .remote_hits = remote_hits,
          .compiled = compiled,
          .failed = failed,
          .compile_ms = compile_ms,
          .events = std::move(events)};
}

std::string to_text(const JitStats& s) {
  std::string text =
      fmt::format("{} requests: {} from memory, {} joined, {} from the folder, {} from layers, {} from the "
                  "remote, {} compiled in {:.0f} ms, {} failed\n",
                  s.requests, s.memory_hits, s.joined, s.folder_hits, s.layer_hits, s.remote_hits, s.compiled, s.compile_ms, s.failed);
  for (const auto& [name, count] : s.events) text += fmt::format("  {} x{}\n", name, count);
  return text;
}

} // namespace kiln
