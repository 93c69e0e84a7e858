// Offload bundles: code objects of several architectures in one blob, as clang-offload-bundler writes them; plain
// (__CLANG_OFFLOAD_BUNDLE__) and compressed (CCOB, versions 1 to 3, zlib or zstd).
#pragma once
#include "isa_checks/object/elf_image.h"
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>

namespace kiln::isa {

struct BundleEntry {
  std::string_view id;   // "hipv4-amdgcn-amd-amdhsa--gfx942:xnack-", "host-x86_64-unknown-linux-gnu-"
  std::string_view arch; // "gfx942", or "" when the id names none
  std::uint64_t size = 0;
};

struct BundleVisitor {
  std::function<bool(const BundleEntry&)> wanted;       // false: passed over; called for entries with bytes only
  std::function<void(const BundleEntry&, Bytes)> entry; // the bytes of a wanted one
};

bool is_bundle(std::span<const std::uint8_t> bytes); // begins with the mark of either kind
std::string_view arch_of_id(std::string_view id);

// Visits the entries of the bundle at the start of `bytes`, in the order of their offsets. No more than one entry is in
// memory at a time, beside a window of the decompressor (128 MiB at most). A compressed bundle may state 1024 times its size, or 4 MiB:
// more is an error, and so is a stream that holds more than is stated. It is decompressed up to the last wanted entry. Returns how many
// bytes the bundle has. Throws Error for a malformed bundle; entries before the damage have then been visited. LLVM 21 has such a reader
// (llvm/Object/OffloadBundle.h); it holds the whole bundle, lacks version 3, and LLVM 20 has none.
std::uint64_t read_bundle(std::span<const std::uint8_t> bytes, const std::string& name, const BundleVisitor& visitor);

} // namespace kiln::isa
