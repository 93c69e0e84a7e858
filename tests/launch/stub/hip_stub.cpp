// HipStub: the C functions.
#include "tests/launch/hip_stub.h"
#include <cstdlib>
#include <cstring>
#include <sstream>
#include <unistd.h>
#include <utility>

using kiln::test::HipStub;

namespace {

constexpr int invalid_value = 1, invalid_device = 101;

struct StubModule {
  int device = 0;
};
struct StubFunction {
  std::string name;
};

// Counts the call; what the function is to answer.
int enter(const char* function) {
  HipStub& stub = *kiln_hip_stub();
  if (!stub.record) return 0;
  stub.calls.emplace_back(function);
  const auto error = stub.errors.find(function);
  if (error == stub.errors.end()) return 0;
  if (const auto after = stub.errors_after.find(function); after != stub.errors_after.end() && after->second-- > 0) return 0;
  while (error->second == HipStub::hang) sleep(1);
  return error->second;
}

thread_local int capture_mode = 0; // hipStreamCaptureModeGlobal; 2 is relaxed

// Counts the call of a function that a capture does not allow.
int enter_outside_capture(const char* function) {
  const int error = enter(function);
  HipStub& stub = *kiln_hip_stub();
  if (error != 0 || !stub.capturing || capture_mode == 2) return error;
  stub.capture_invalid = true;
  return 900; // hipErrorStreamCaptureUnsupported
}

} // namespace

extern "C" {

// Programs that load the stub as a process of their own ask for errors by KILN_STUB_ERROR=FUNCTION:ERROR[:CALLS THAT SUCCEED BEFORE].
HipStub* kiln_hip_stub() {
  static HipStub stub = [] {
    HipStub s;
    const char* const asked = std::getenv("KILN_STUB_ERROR");
    if (asked == nullptr) return s;
    std::istringstream text(asked);
    std::string function, error, after;
    std::getline(text, function, ':'), std::getline(text, error, ':'), std::getline(text, after);
    s.errors[function] = std::atoi(error.c_str());
    if (!after.empty()) s.errors_after[function] = std::atoi(after.c_str());
    return s;
  }();
  return &stub;
}

// For tests in other languages than C++.
std::size_t kiln_hip_stub_launches() { return kiln_hip_stub()->launches.size(); }
void* kiln_hip_stub_stream() { return kiln_hip_stub()->launches.empty() ? nullptr : kiln_hip_stub()->launches.back().stream; }

int hipRuntimeGetVersion(int* version) {
  *version = kiln_hip_stub()->version;
  return enter("hipRuntimeGetVersion");
}

int hipGetDeviceCount(int* count) {
  *count = static_cast<int>(kiln_hip_stub()->devices.size());
  return enter("hipGetDeviceCount");
}

int hipGetDevice(int* ordinal) {
  *ordinal = kiln_hip_stub()->current;
  return enter("hipGetDevice");
}

int hipSetDevice(int ordinal) {
  if (ordinal < 0 || ordinal >= static_cast<int>(kiln_hip_stub()->devices.size())) return invalid_device;
  const int error = enter("hipSetDevice");
  if (error == 0) kiln_hip_stub()->current = ordinal;
  return error;
}

// hipDeviceProp_tR0600 of ROCm 6.4: 1472 bytes, name at 0, gcnArchName at 1160.
int hipGetDevicePropertiesR0600(void* properties, int ordinal) {
  const HipStub& stub = *kiln_hip_stub();
  const auto index = static_cast<std::size_t>(ordinal);
  char* bytes = static_cast<char*>(properties);
  std::memset(bytes, 0, 1472);
  std::strncpy(bytes, stub.names.at(index % stub.names.size()).c_str(), 255);
  std::strncpy(bytes + 1160, stub.devices.at(index).c_str(), 255);
  return enter("hipGetDevicePropertiesR0600");
}

int hipMalloc(void** pointer, std::size_t bytes) {
  HipStub& stub = *kiln_hip_stub();
  const int error = enter_outside_capture("hipMalloc");
  *pointer = nullptr;
  if (error != 0) return error;
  *pointer = std::aligned_alloc(256, (bytes + 255) / 256 * 256);
  std::memset(*pointer, 0xcd, bytes);
  stub.allocations[*pointer] = bytes;
  stub.allocated_on[*pointer] = stub.current;
  return 0;
}

int hipFree(void* pointer) {
  HipStub& stub = *kiln_hip_stub();
  const int error = enter_outside_capture("hipFree");
  if (error == 900 || stub.was_reset) return error == 900 ? error : invalid_value;
  if (stub.allocations.erase(pointer) == 0) return invalid_value;
  std::free(pointer);
  return error;
}

int hipMemcpyAsync(void* to, const void* from, std::size_t bytes, int, void*) {
  const int error = enter("hipMemcpyAsync");
  if (error == 0) std::memcpy(to, from, bytes);
  return error;
}

int hipMemsetAsync(void* to, int value, std::size_t bytes, void* stream) {
  const int error = stream == nullptr ? enter_outside_capture("hipMemsetAsync") : enter("hipMemsetAsync");
  if (error == 0) std::memset(to, value, bytes);
  return error;
}

int hipStreamSynchronize(void*) { return enter_outside_capture("hipStreamSynchronize"); }
int hipDeviceSynchronize() { return enter_outside_capture("hipDeviceSynchronize"); }

int hipThreadExchangeStreamCaptureMode(int* mode) {
  const int error = enter("hipThreadExchangeStreamCaptureMode");
  if (error == 0) std::swap(*mode, capture_mode);
  return error;
}

int hipModuleLoadData(void** module, const void* image) {
  const int error = enter("hipModuleLoadData");
  if (error != 0) return error;
  if (std::memcmp(image, "\177ELF", 4) != 0) return 200; // hipErrorInvalidImage
  *module = new StubModule{kiln_hip_stub()->current};
  ++kiln_hip_stub()->modules;
  return 0;
}

int hipModuleUnload(void* module) {
  const int error = enter_outside_capture("hipModuleUnload");
  if (error == 900) return error;
  delete static_cast<StubModule*>(module);
  --kiln_hip_stub()->modules;
  return error;
}

int hipModuleGetFunction(void** function, void*, const char* name) {
  const int error = enter("hipModuleGetFunction");
  static std::deque<StubFunction> functions; // never freed: a handle stays valid
  functions.push_back({name});
  *function = &functions.back();
  return error;
}

int hipModuleLaunchKernel(void* function, unsigned grid_x, unsigned, unsigned, unsigned block_x, unsigned, unsigned, unsigned, void* stream,
                          void** parameters, void**) {
  HipStub& stub = *kiln_hip_stub();
  if (!stub.record) return 0;
  const std::lock_guard lock(*stub.mutex);
  const int error = enter("hipModuleLaunchKernel");
  if (error != 0) return error;
  kiln::test::StubLaunch launch{static_cast<StubFunction*>(function)->name, grid_x, block_x, stream, stub.current, {}};
  for (std::size_t i = 0; i < stub.parameter_sizes.size(); ++i) {
    const auto* bytes = static_cast<const std::byte*>(parameters[i]);
    launch.parameters.emplace_back(bytes, bytes + stub.parameter_sizes[i]);
  }
  stub.launches.push_back(std::move(launch));
  return 0;
}

int hipEventCreate(void** event) {
  const int error = enter("hipEventCreate");
  if (error != 0) return error;
  *event = new char;
  ++kiln_hip_stub()->events;
  return 0;
}

int hipEventDestroy(void* event) {
  delete static_cast<char*>(event);
  --kiln_hip_stub()->events;
  return enter("hipEventDestroy");
}

int hipEventRecord(void*, void* stream) {
  HipStub& stub = *kiln_hip_stub();
  if (stub.was_reset || stub.destroyed_streams.contains(stream)) stub.crashed = true;
  return enter("hipEventRecord");
}
int hipEventQuery(void*) { return enter_outside_capture("hipEventQuery"); }
int hipEventSynchronize(void*) { return enter("hipEventSynchronize"); }

int hipEventElapsedTime(float* milliseconds, void*, void*) {
  HipStub& stub = *kiln_hip_stub();
  *milliseconds = stub.elapsed_ms.empty() ? 1.0F : stub.elapsed_ms.front();
  if (stub.elapsed_ms.size() > 1) stub.elapsed_ms.pop_front();
  return enter("hipEventElapsedTime");
}

// roctx, as a profiler's library has it.
int roctxRangePushA(const char* text) {
  enter((std::string("push ") + text).c_str());
  return 0;
}
int roctxRangePop() {
  enter("pop");
  return 0;
}

const char* hipGetErrorName(int error) {
  return error == 2     ? "hipErrorOutOfMemory"
         : error == 209 ? "hipErrorNoBinaryForGpu"
         : error == 900 ? "hipErrorStreamCaptureUnsupported"
                        : "hipErrorUnknown";
}
const char* hipGetErrorString(int error) { return error == 2 ? "out of memory" : "as the test asked"; }

} // extern "C"
