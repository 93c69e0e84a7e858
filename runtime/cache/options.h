// CacheOptions: which layers a cache has. Origin: which of them a kernel came from.
#pragma once
#include "runtime/cache/remote/remote.h"
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <string_view>
#include <vector>

namespace kiln {

struct CacheOptions {
  std::filesystem::path folder;                // writable; empty: nothing is kept
  std::vector<std::filesystem::path> layers;   // read-only, asked in this order after the folder
  bool trust_shared = false;                   // folders and files are taken of whoever can write there
  bool shipped = false;                        // `folder` is made for others to read (kiln aot)
  std::filesystem::path public_key = {};       // what layers and the remote give must be signed by it; empty: by nobody
  std::filesystem::path notes = {};            // where the compiler's identity is noted; empty: hosts/ in `folder`
  std::uint64_t max_bytes = 1u << 30;          // of `folder`; the entries used longest ago are removed
  std::chrono::milliseconds claim_wait{60000}; // the longest wait for another process that compiles the same
  RemoteOptions remote;
};
CacheOptions cache_options(const Environment& environment);

enum class Origin : std::uint8_t { memory, folder, layer, remote, compiled };
std::string_view name(Origin origin);

} // namespace kiln
