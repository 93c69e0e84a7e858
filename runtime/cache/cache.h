// KernelCache: read-only layers and a remote under one writable folder, and one compile of a key at a time.
#pragma once
#include "runtime/cache/compiler_memo.h"
#include "runtime/cache/entry.h"
#include "runtime/cache/layer.h"
#include "runtime/cache/remote/remote.h"
#include "runtime/events.h"
#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

namespace kiln {

struct CacheOptions {
  std::filesystem::path folder;                // writable; empty: nothing is kept
  std::vector<std::filesystem::path> layers;   // read-only, asked in this order after the folder
  bool trust_shared = false;                   // folders that others may write to are used
  bool shipped = false;                        // `folder` is made for others to read (kiln aot)
  std::filesystem::path notes = {};            // where the compiler's identity is noted; empty: hosts/ in `folder`
  std::uint64_t max_bytes = 1u << 30;          // of `folder`; the entries used longest ago are removed
  std::chrono::milliseconds claim_wait{60000}; // the longest wait for another process that compiles the same
  RemoteOptions remote;
};
CacheOptions cache_options(const Environment& environment);

enum class Origin { memory, folder, layer, remote, compiled };
std::string_view to_string(Origin origin);

struct Found {
  CachedKernel kernel;
  Origin origin = Origin::folder;
};

// Thread-safe. Nothing here throws because of a cache: what is wrong with one is counted and logged by name in `events`, and
// the kernel is compiled instead.
class KernelCache {
public:
  // `identity`: of the compiler at hand; called when a key needs it, may throw.
  KernelCache(CacheOptions options, std::shared_ptr<EventLog> events,
              std::function<std::string(const Environment&)> identity = {});

  std::optional<Found> find(const KernelRequest& request);
  // For messages: the name under which the first place that is asked would have it. Loads no compiler for this alone.
  CacheKey key(const KernelRequest& request);

  // find, else `make`, published for everybody: of all threads and processes that ask at once, one makes it and the others wait,
  // for at most claim_wait. Throws what `make` throws.
  Found find_or_make(const KernelRequest& request, const std::function<EntryFiles()>& make);

  const CacheLayer* folder() const { return folder_ ? &*folder_ : nullptr; }

private:
  std::string identity(const Environment& environment); // empty: there is no compiler
  std::optional<Found> find_in(const CacheLayer& layer, const CacheKey& key, Origin origin);
  std::optional<Found> find_remote(const CacheKey& key);
  Found store(const KernelRequest& request, EntryFiles files, const std::string& assumed_compiler);
  void keep(const std::string& key, const EntryFiles& files);

  CacheOptions options_;
  std::shared_ptr<EventLog> events_;
  CompilerMemo memo_;
  std::function<std::string(const Environment&)> identity_source_;
  struct ReadOnlyLayer {
    CacheLayer layer;
    std::vector<std::string> compilers; // that it was made with; empty: the one at hand
  };
  std::optional<CacheLayer> folder_;
  std::vector<ReadOnlyLayer> layers_;
  std::unique_ptr<RemoteCache> remote_;
  std::mutex identity_mutex_;
  std::optional<std::string> known_identity_;
  std::mutex size_mutex_;
  std::optional<std::uint64_t> bytes_; // in the folder, as far as this process knows
};

} // namespace kiln
