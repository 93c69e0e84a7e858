// Hip: the functions of the HIP runtime that Kiln calls, from a libamdhip64 that is loaded when it is needed. No HIP header is
// needed to build Kiln.
#pragma once
#include "runtime/compile/dynamic_library.h"
#include <cstddef>
#include <string>

namespace kiln {

// Declarations of our own for the C interface of hip_runtime_api.h. Handles are pointers to opaque types, enumerations are ints.
// Checked with the headers of ROCm 6.4; unchanged up to 7.x.
struct HipFunctions {
  int (*runtime_version)(int* version);
  int (*device_count)(int* count);
  int (*get_device)(int* ordinal);
  int (*set_device)(int ordinal);
  int (*device_properties)(void* properties, int ordinal);
  int (*malloc)(void** pointer, std::size_t bytes);
  int (*free)(void* pointer);
  int (*memcpy_async)(void* to, const void* from, std::size_t bytes, int kind, void* stream);
  int (*memset_async)(void* to, int value, std::size_t bytes, void* stream);
  int (*stream_synchronize)(void* stream);
  int (*device_synchronize)();
  int (*exchange_capture_mode)(int* mode);
  int (*module_load_data)(void** module, const void* image);
  int (*module_unload)(void* module);
  int (*module_get_function)(void** function, void* module, const char* name);
  int (*module_launch_kernel)(void* function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x, unsigned block_y,
                              unsigned block_z, unsigned dynamic_lds, void* stream, void** parameters, void** extra);
  int (*event_create)(void** event);
  int (*event_destroy)(void* event);
  int (*event_record)(void* event, void* stream);
  int (*event_query)(void* event);
  int (*event_synchronize)(void* event);
  int (*event_elapsed_time)(float* milliseconds, void* begin, void* end);
  const char* (*error_name)(int error);
  const char* (*error_string)(int error);
};

inline constexpr int hip_capture_relaxed = 2;                               // hipStreamCaptureModeRelaxed
inline constexpr int hip_to_device = 1, hip_to_host = 2, hip_on_device = 3; // hipMemcpyKind

struct HipDeviceFacts {
  std::string name; // "AMD Instinct MI300X"
  std::string arch; // "gfx942", target features cut off
};

class Hip {
public:
  // `path`: the library to load (KILN_HIP_PATH). When it is empty: the libamdhip64 that this process has loaded already, so that
  // Kiln shares the devices and streams of its host program; else libamdhip64.so.7, .6 from the loader's path, then
  // from rocm_folders(). Throws EnvironmentError: none can be loaded, it lacks a function, or it is older than 6.2.
  explicit Hip(const std::string& path);

  const HipFunctions& functions() const { return functions_; }
  std::string version() const; // "6.4.43484"
  const std::string& path() const { return library_.path(); }
  int device_count() const;
  HipDeviceFacts device(int ordinal) const;

  // Throws EnvironmentError with the name of the error and what can be done about it, unless `error` is hipSuccess.
  void check(int error, const char* call) const {
    if (error != 0) [[unlikely]]
      fail(error, call);
  }

  // For calls whose failure nobody can be told of (destructors): a line on the error output. Silent when HIP itself is gone.
  void note(int error, const char* call) const noexcept;

private:
  [[noreturn]] void fail(int error, const char* call) const;
  std::string failure(int error, const char* call) const;
  DynamicLibrary library_;
  HipFunctions functions_{};
  int version_ = 0;
};

// Makes a device the current one of this thread, and the caller's own current again at its end.
class HipDeviceScope {
public:
  HipDeviceScope(const Hip& hip, int ordinal);
  ~HipDeviceScope();
  HipDeviceScope(const HipDeviceScope&) = delete;
  HipDeviceScope& operator=(const HipDeviceScope&) = delete;

private:
  const Hip& hip_;
  int before_ = 0;
  bool changed_ = false;
};

// While it lives, calls of this thread that HIP does not allow during a capture neither fail nor invalidate a capture: what destructors
// give back may go while some stream is captured (HIP 7.2 invalidates the capture at hipModuleUnload and hipFree otherwise).
class HipRelaxedCapture {
public:
  explicit HipRelaxedCapture(const Hip& hip) : hip_(hip) { hip_.note(hip_.functions().exchange_capture_mode(&mode_), exchange_call); }
  ~HipRelaxedCapture() { hip_.note(hip_.functions().exchange_capture_mode(&mode_), exchange_call); }
  HipRelaxedCapture(const HipRelaxedCapture&) = delete;
  HipRelaxedCapture& operator=(const HipRelaxedCapture&) = delete;

private:
  static constexpr const char* exchange_call = "hipThreadExchangeStreamCaptureMode";
  const Hip& hip_;
  int mode_ = hip_capture_relaxed;
};

} // namespace kiln
