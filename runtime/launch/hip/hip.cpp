// Hip: loading, version, and errors with remedies.
#include "runtime/launch/hip/hip.h"
#include "gen/error.h"
#include "runtime/compile/loaded_libraries.h"
#include "runtime/compile/rocm_folders.h"
#include "runtime/events.h"
#include <array>
#include <cstring>
#include <fmt/format.h>

namespace kiln {
namespace {

constexpr int oldest = 60200000; // hipRuntimeGetVersion: major * 10^7 + minor * 10^5 + patch

// hipDeviceProp_tR0600, by offset: name and gcnArchName are char[256] each, the struct has 1472 bytes in ROCm 6.4. The name of
// the function pins the layout, and room is left for fields that a later release may append.
constexpr std::size_t properties_room = 4096, name_at = 0, arch_at = 1160, name_bytes = 256;

LibraryRequest request(const std::string& path) {
  const std::string loaded = path.empty() ? path_of_loaded("libamdhip64") : std::string();
  return {.subject = "HIP",
          .given_path = loaded.empty() ? path : loaded,
          .variable = loaded.empty() ? "KILN_HIP_PATH" : "this process",
          .names = {"libamdhip64.so.7", "libamdhip64.so.6"},
          .folders = rocm_library_folders(),
          .remedy = "install ROCm's HIP runtime 6.2 or newer (hip-runtime-amd, Debian: libamdhip64-6), set KILN_HIP_PATH to the file, "
                    "or use an emulated device (KILN_DEVICE=emulated:gfx942)"};
}

HipFunctions functions(const DynamicLibrary& library) {
  HipFunctions f{};
  const auto load = [&library]<typename Function>(Function*& to, const char* symbol) { to = library.function<Function>(symbol); };
  load(f.runtime_version, "hipRuntimeGetVersion");
  load(f.device_count, "hipGetDeviceCount");
  load(f.get_device, "hipGetDevice");
  load(f.set_device, "hipSetDevice");
  load(f.device_properties, "hipGetDevicePropertiesR0600");
  load(f.malloc, "hipMalloc");
  load(f.free, "hipFree");
  load(f.memcpy_async, "hipMemcpyAsync");
  load(f.memset_async, "hipMemsetAsync");
  load(f.stream_synchronize, "hipStreamSynchronize");
  load(f.device_synchronize, "hipDeviceSynchronize");
  load(f.exchange_capture_mode, "hipThreadExchangeStreamCaptureMode");
  load(f.module_load_data, "hipModuleLoadData");
  load(f.module_unload, "hipModuleUnload");
  load(f.module_get_function, "hipModuleGetFunction");
  load(f.module_launch_kernel, "hipModuleLaunchKernel");
  load(f.event_create, "hipEventCreate");
  load(f.event_destroy, "hipEventDestroy");
  load(f.event_record, "hipEventRecord");
  load(f.event_query, "hipEventQuery");
  load(f.event_synchronize, "hipEventSynchronize");
  load(f.event_elapsed_time, "hipEventElapsedTime");
  load(f.error_name, "hipGetErrorName");
  load(f.error_string, "hipGetErrorString");
  return f;
}

std::string version_text(int version) { return fmt::format("{}.{}.{}", version / 10000000, version / 100000 % 100, version % 100000); }

// By the numbers of hipError_t.
const char* remedy(int error) {
  switch (error) {
  case 2: // OutOfMemory
    return "free device memory, or allocate less";
  case 35:  // InsufficientDriver
  case 100: // NoDevice
    return "check that rocminfo lists a GPU and that this user may open /dev/kfd and /dev/dri/render*; kiln doctor says more";
  case 101: // InvalidDevice
    return "launch on a stream of the device that the kernel was loaded on";
  case 200: // InvalidImage
  case 209: // NoBinaryForGpu
    return "compile for the architecture of this device";
  case 700: // IllegalAddress
  case 719: // LaunchFailure
    return "an earlier kernel or copy touched memory that is not there; run the program on an emulated device, which names the "
           "access";
  default:
    if (error >= 900 && error <= 908) // StreamCapture*
      return "load, bind, allocate and copy before the capture begins; only launches belong into it";
    return "kiln doctor checks the installation";
  }
}

} // namespace

Hip::Hip(const std::string& path) : library_(request(path)), functions_(kiln::functions(library_)) {
  check(functions_.runtime_version(&version_), "hipRuntimeGetVersion");
  if (version_ < oldest)
    throw EnvironmentError("HIP", fmt::format("{} is version {}, Kiln needs {} or newer", library_.path(), version(), version_text(oldest)),
                           "install ROCm 6.2 or newer, or set KILN_HIP_PATH to its libamdhip64");
}

std::string Hip::version() const { return version_text(version_); }

int Hip::device_count() const {
  int count = 0;
  check(functions_.device_count(&count), "hipGetDeviceCount");
  return count;
}

HipDeviceFacts Hip::device(int ordinal) const {
  alignas(16) std::array<char, properties_room> bytes{};
  check(functions_.device_properties(bytes.data(), ordinal), "hipGetDevicePropertiesR0600");
  const auto text = [&bytes](std::size_t at) { return std::string(&bytes[at], strnlen(&bytes[at], name_bytes)); };
  std::string arch = text(arch_at);
  return {.name = text(name_at), .arch = arch.substr(0, arch.find(':'))};
}

std::string Hip::failure(int error, const char* call) const {
  const char* name = functions_.error_name(error);
  const char* text = functions_.error_string(error);
  return fmt::format("{} failed: {} ({}), {}", call, name == nullptr ? "unknown error" : name, error, text == nullptr ? "no text" : text);
}

void Hip::fail(int error, const char* call) const { throw EnvironmentError("HIP", failure(error, call), remedy(error)); }

void Hip::note(int error, const char* call) const noexcept {
  constexpr int not_initialized = 3, deinitialized = 4; // the process ends, and what HIP held ended with it
  if (error == 0 || error == not_initialized || error == deinitialized) return;
  try {
    log_to_stderr()(fmt::format("HIP: {}; what it should give back stays with the process", failure(error, call)));
  } catch (const std::exception&) { // no memory for the line
  }
}

HipDeviceScope::HipDeviceScope(const Hip& hip, int ordinal) : hip_(hip) {
  hip_.check(hip_.functions().get_device(&before_), "hipGetDevice");
  if (before_ == ordinal) return;
  hip_.check(hip_.functions().set_device(ordinal), "hipSetDevice");
  changed_ = true;
}

HipDeviceScope::~HipDeviceScope() {
  if (changed_) static_cast<void>(hip_.functions().set_device(before_)); // it was current a moment ago
}

} // namespace kiln
