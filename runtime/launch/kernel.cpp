// Kernel: from what was just built.
#include "runtime/launch/kernel.h"
#include "runtime/cache/entry.h"

namespace kiln {

Kernel kernel_of(const KernelSpec& spec, const Target& target, const std::vector<std::string>& overrides, const CompileOptions& options,
                 const BuiltKernel& built) {
  EntryFiles files = make_entry(kernel_request(spec, target, overrides, options), built);
  return Kernel(read_entry(std::move(files.meta), std::move(files.object), nullptr), Origin::compiled);
}

} // namespace kiln
