// DynamicLibrary: a shared library that is loaded when it is needed, with one clear error when it is not there.
#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace kiln {

struct LibraryRequest {
  std::string subject;              // "hipRTC", for errors
  std::string given_path;           // by the user; when set, nothing else is tried
  std::string variable;             // that `given_path` came from, for errors: "KILN_HIPRTC_PATH"
  std::vector<std::string> names;   // tried in this order: "libhiprtc.so.7", ...
  std::vector<std::string> folders; // tried after the loader's own search: "/opt/rocm/lib"
  std::string remedy;               // "install ..."
};

class DynamicLibrary {
public:
  // Throws EnvironmentError that lists what was tried and why each failed. A library that is loaded stays loaded to
  // the end of the process: compilers hold threads and exit handlers, and loading again costs microseconds.
  explicit DynamicLibrary(const LibraryRequest& request);

  // The address of a C function. Throws EnvironmentError when the library has none of that name.
  template <typename Function> Function* function(const char* symbol) const { return reinterpret_cast<Function*>(address(symbol)); }

  const std::string& path() const { return path_; } // of the file that was loaded, links resolved

private:
  void* address(const char* symbol) const;
  void* handle_ = nullptr;
  std::string subject_, path_;
};

} // namespace kiln
