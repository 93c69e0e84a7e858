// HipStub: a HIP runtime that records what it is asked to do and fails on demand. A shared library that tests load in place of
// libamdhip64; "device memory" is the host's.
#pragma once
#include <cstddef>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

namespace kiln::test {

struct StubLaunch {
  std::string kernel;
  unsigned grid = 0, block = 0;
  void* stream = nullptr;
  int device = 0;                                 // current when it was launched
  std::vector<std::vector<std::byte>> parameters; // as many as parameter_sizes has entries
};

struct HipStub {
  static constexpr int hang = -1; // as an error: the call never returns
  std::unique_ptr<std::mutex> mutex = std::make_unique<std::mutex>();
  bool record = true; // false: nothing is recorded, nothing fails, and a launch does nothing at all
  int version = 60443484;
  std::vector<std::string> devices{"gfx942:sramecc+:xnack-"}; // architectures
  std::vector<std::string> names{"AMD Instinct MI300X"};
  int current = 0;
  std::vector<std::string> calls;           // names of functions, in order
  std::map<std::string, int> errors;        // by function: what it answers
  std::map<std::string, int> errors_after;  // by function: calls that succeed before errors applies
  std::vector<std::size_t> parameter_sizes; // bytes: a HIP runtime knows them from the metadata
  std::vector<StubLaunch> launches;
  std::map<void*, std::size_t> allocations; // live, with their bytes
  std::map<void*, int> allocated_on;        // device
  int modules = 0, events = 0;              // live
  // What HIP 7.2 does: calls that a capture in global mode does not allow are refused and invalidate it, unless the thread is in relaxed
  // mode; hipModuleLoadData is not among them. An event recorded on a destroyed stream, or after hipDeviceReset, crashes.
  bool capturing = false, capture_invalid = false, was_reset = false, crashed = false;
  std::set<void*> destroyed_streams;
  std::deque<float> elapsed_ms; // answers of hipEventElapsedTime; the last one stays
};

} // namespace kiln::test

// The one instance of the loaded library. Tests reset it by assigning its fields.
extern "C" kiln::test::HipStub* kiln_hip_stub();
