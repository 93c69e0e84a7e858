// CachedKernel: a compiled kernel with all that Kiln knows of it, and the three files that hold it in a cache.
#pragma once
#include "gen/emit/kernel_source.h"
#include "runtime/build/build_kernel.h"
#include "runtime/cache/request.h"
#include <stdexcept>
#include <string>
#include <vector>

namespace kiln {

struct CachedKernel {
  CacheKey key;
  std::string name, arch;
  std::vector<KernelArgument> arguments;
  Launch launch;
  std::int64_t workspace_bytes = 0; // as KernelSource has it
  std::string object; // the code object, an ELF file
  std::string meta;   // meta.json: all of the above, ISA facts, verdict, schedule, checksums
};

// As they lie in the folder of an entry. Equal kernels give equal bytes: no path, no time, no machine is in them.
struct EntryFiles {
  std::string meta;   // meta.json
  std::string object; // kernel.co
  std::string source; // kernel.hip, self-contained
};
inline constexpr const char *meta_file = "meta.json", *object_file = "kernel.co", *source_file = "kernel.hip";

// What meta.json records beside the kernel itself.
struct EntryFacts {
  std::string compiler, llvm;        // as CodeObject has them
  std::string schedule;              // text
  std::vector<std::string> rejected; // schedules that broke the contract before, with the reason: text
  std::string facts, contract;       // JSON of isa::KernelFacts and isa::IsaReport
};

// Bytes that are no intact entry for the key that was asked for; what() is the reason, for people.
struct CorruptEntry : std::runtime_error {
  using std::runtime_error::runtime_error;
};

EntryFiles make_entry(const KernelRequest& request, const KernelSource& source, std::string object, const EntryFacts& facts);
EntryFiles make_entry(const KernelRequest& request, const BuiltKernel& built);

// Everything is checked: the checksum of meta.json, every field of the key, size and checksum of the code object, and
// that its ELF header names the architecture. Throws CorruptEntry. `expected` null: the key is only checked against itself.
CachedKernel read_entry(std::string meta, std::string object, const CacheKey* expected);
void check_source(const std::string& meta, const std::string& source); // throws CorruptEntry

} // namespace kiln
