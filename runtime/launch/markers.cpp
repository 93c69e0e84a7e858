// Markers: the library, and launches inside ranges.
#include "runtime/launch/markers.h"
#include "runtime/compile/dynamic_library.h"
#include "runtime/compile/loaded_libraries.h"
#include "runtime/compile/rocm_folders.h"
#include <fmt/format.h>
#include <utility>

namespace kiln {
namespace {

// rocprofv3 --marker-trace loads the first of these into the program; roctracer's older one is known to it as well.
LibraryRequest roctx_request(const std::string& roctx) {
  std::string given = roctx == "1" ? std::string() : roctx;
  for (const char* name : {"librocprofiler-sdk-roctx.so", "libroctx64.so"})
    if (given.empty()) given = path_of_loaded(name);
  return {.subject = "roctx",
          .given_path = given,
          .variable = given == roctx ? "KILN_ROCTX" : "this process",
          .names = {"librocprofiler-sdk-roctx.so.1", "librocprofiler-sdk-roctx.so.0", "libroctx64.so.4"},
          .folders = rocm_library_folders(),
          .remedy = "install rocprofiler-sdk (or roctracer), set KILN_ROCTX to the library's file, or unset it"};
}

class MarkedCode : public LoadedCode {
public:
  MarkedCode(std::unique_ptr<LoadedCode> code, const Markers& markers, std::string kernel)
      : code_(std::move(code)), markers_(markers), kernel_(std::move(kernel)) {}
  void launch(const LaunchPacket& packet, Stream stream) const override {
    const Markers::Range range = markers_.range("launch", kernel_);
    code_->launch(packet, stream);
  }

private:
  std::unique_ptr<LoadedCode> code_;
  Markers markers_;
  std::string kernel_;
};

} // namespace

Markers::Markers(const std::string& roctx) {
  if (roctx.empty()) return;
  const DynamicLibrary library(roctx_request(roctx)); // stays loaded
  pop_ = library.function<int()>("roctxRangePop");
  push_ = library.function<int(const char*)>("roctxRangePushA");
}

Markers::Range Markers::range(std::string_view what, std::string_view kernel) const {
  if (!active()) return Range(nullptr);
  static_cast<void>(push_(fmt::format("kiln {} {}", what, kernel).c_str()));
  return Range(pop_);
}

std::unique_ptr<LoadedCode> marked(std::unique_ptr<LoadedCode> code, const Markers& markers, const std::string& kernel) {
  if (!markers.active()) return code;
  return std::make_unique<MarkedCode>(std::move(code), markers, kernel);
}

} // namespace kiln
