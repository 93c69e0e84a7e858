// EmulatedBackend: a device that is the CPU model of the executor. Slow, exact about addresses, and it needs no GPU.
#pragma once
#include "gen/error.h"
#include "runtime/launch/backend.h"
#include <string_view>
#include <vector>

namespace kiln {

struct EmulatorOptions {
  std::uint64_t seed = 1;                       // of the order of waves and of what unwritten memory and registers hold
  int threads = 1;                              // of the host; 0: all cores
  std::uint64_t max_instructions = 200'000'000; // of one wave, before a launch ends as endless
  // false: a launch is over when it returns. true: launches run, one after the other, when the program waits for the device
  // (synchronize, a copy, memory that is released), as late as a GPU may run them. Findings are thrown by the call that waits.
  bool deferred = false;
};

// A launch did what a GPU must not be asked to do: touched memory outside of allocations, read what nobody wrote, raced.
struct ExecutionError : Error {
  ExecutionError(const std::string& kernel, std::vector<std::string> findings);
  std::vector<std::string> findings;
};

// Throws UserError for an architecture that is not known.
std::shared_ptr<DeviceBackend> make_emulated_backend(std::string_view arch, EmulatorOptions options);

} // namespace kiln
