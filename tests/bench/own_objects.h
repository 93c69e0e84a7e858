// Code objects to read for benchmarks that are otherwise given a library: a few of the catalogue's kernels, compiled.
#pragma once
#include "gen/catalog/catalog.h"
#include "runtime/build/build_kernel.h"
#include <filesystem>
#include <fstream>
#include <string>
#include <unistd.h>

namespace kiln {

// A folder of them for the architecture, that is gone at the end.
class OwnObjects {
public:
  explicit OwnObjects(std::string_view arch) {
    std::string pattern = (std::filesystem::temp_directory_path() / "kiln-bench-XXXXXX").string();
    if (mkdtemp(pattern.data()) == nullptr) throw InternalError("no temporary folder");
    folder_ = pattern;
    const Target gpu = target(arch);
    for (const std::string name : {"rmsnorm", "rope", "gemm"}) {
      const KernelSpec spec = catalog_spec(name, {.cols = 1024, .fp8 = gpu.fp8(), .n = 512, .k = 512});
      const BuiltKernel built = build_kernel(spec, gpu, own_process_options(process_environment()));
      const auto& object = built.object.bytes;
      std::ofstream(folder_ / (name + ".co"), std::ios::binary)
          .write(reinterpret_cast<const char*>(object.data()), static_cast<std::streamsize>(object.size()));
    }
  }
  ~OwnObjects() { std::filesystem::remove_all(folder_); }
  OwnObjects(const OwnObjects&) = delete;
  OwnObjects& operator=(const OwnObjects&) = delete;
  std::string folder() const { return folder_.string(); }

private:
  std::filesystem::path folder_;
};

} // namespace kiln
