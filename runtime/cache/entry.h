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
  std::string object;               // the code object, an ELF file
  std::string meta;                 // meta.json: all of the above, ISA facts, verdict, schedule, checksums
};

// As they lie in the folder of an entry. Equal kernels give equal bytes: no path, no time, no machine is in them.
struct EntryFiles {
  std::string meta;           // meta.json
  std::string object;         // kernel.co
  std::string source;         // kernel.hip, self-contained
  std::string signature = {}; // signature, of meta.json and so of all of them (sign.h); empty: it is not signed
  bool compiled_here = false; // this user compiled it, and took it from nowhere: in a folder, the file `compiled` says so
};
inline constexpr const char *meta_file = "meta.json", *object_file = "kernel.co", *source_file = "kernel.hip",
                            *signature_file = "signature", *compiled_file = "compiled";

// What meta.json records beside the kernel itself.
struct EntryFacts {
  std::string compiler, llvm;        // as CodeObject has them
  std::string schedule;              // text
  std::vector<std::string> rejected; // schedules that broke the contract before, with the reason: text
  std::string facts, contract;       // JSON of isa::KernelFacts and isa::IsaReport
};

// Why an entry that is there is not taken. what() is the reason, for people; `event` counts it (docs/cache.md).
struct EntryProblem : std::runtime_error {
  EntryProblem(const char* event_, const std::string& reason) : std::runtime_error(reason), event(event_) {}
  const char* event;
};
// Its bytes were read, and are no intact entry for the key that was asked for. The only problem that never passes.
struct CorruptEntry : EntryProblem {
  explicit CorruptEntry(const std::string& reason) : EntryProblem("entry_quarantined", reason) {}
};
// It could not be read: too many open files, no memory, an error of the disk or the network.
struct UnreadableEntry : EntryProblem {
  explicit UnreadableEntry(const std::string& reason) : EntryProblem("entry_unreadable", reason) {}
};
// It belongs to somebody else, or others may write to it.
struct ForeignEntry : EntryProblem {
  explicit ForeignEntry(const std::string& reason) : EntryProblem("entry_foreign", reason) {}
};
// It is not signed, or by none of the keys of KILN_CACHE_PUBLIC_KEY.
struct UnsignedEntry : EntryProblem {
  explicit UnsignedEntry(const std::string& reason) : EntryProblem("entry_unsigned", reason) {}
};

EntryFiles make_entry(const KernelRequest& request, const KernelSource& source, std::string object, const EntryFacts& facts);
EntryFiles make_entry(const KernelRequest& request, const BuiltKernel& built);

// Everything is checked: the checksum of meta.json, every field of the key, size and checksum of the code object, that its ELF
// header names the architecture, and that arguments and launch are within what Kiln makes (check_launchable). Throws
// CorruptEntry. `expected` null: the key is only checked against itself.
CachedKernel read_entry(std::string meta, std::string object, const CacheKey* expected);
void check_source(const std::string& meta, const std::string& source); // throws CorruptEntry

// Whether a launch can follow it without harm: every argument is 4 or 8 bytes, aligned, one after the other in a block of at most
// 4 KB; threads are whole waves that the architecture has; no count is zero, negative, or so large that a product overflows.
// Checksums say nothing about this: whoever wrote the entry made them too. Throws CorruptEntry.
void check_launchable(const CachedKernel& kernel);

} // namespace kiln
