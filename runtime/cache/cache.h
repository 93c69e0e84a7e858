// KernelCache: layers of compiled kernels, and one compile of a key at a time.
#pragma once
#include "runtime/cache/compiler_memo.h"
#include "runtime/cache/layers/layer.h"
#include "runtime/events.h"
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

namespace kiln {

class CacheFolder;
class Claim;
class OwnFolder;

struct Found {
  CachedKernel kernel;
  Origin origin = Origin::folder;
};

// Thread-safe. Nothing but the constructor throws because of a cache: what is wrong with one is counted and logged by name in
// `events`, and the kernel is compiled instead.
class KernelCache {
public:
  // `identity`: of the compiler at hand; called when a key needs it, may throw. Without it that is noted in the folder, and `compiler` asks
  // the library. Throws UserError for options that would weaken
  // what they ask for: a remote without encryption, a public key that cannot be read.
  KernelCache(const CacheOptions& options, std::shared_ptr<EventLog> events, std::function<std::string(const Environment&)> identity = {},
              CompilerMemo::Read compiler = compiler_parts);
  ~KernelCache();

  std::optional<Found> find(const KernelRequest& request);
  // For messages: the name under which the first place that is asked would have it. Loads no compiler for this alone.
  CacheKey key(const KernelRequest& request);

  // find, else `make`, published for everybody: of all threads and processes that ask at once, one makes it and the others wait,
  // for at most claim_wait. Throws what `make` throws.
  Found find_or_make(const KernelRequest& request, const std::function<EntryFiles()>& make);

  const CacheFolder* folder() const; // the writable one; null: there is none

private:
  Lookup look_up(const KernelRequest& request);
  std::string identity(const Environment& environment); // empty: there is no compiler
  void note_compiler(const std::string& assumed, const std::string& real, const Environment& environment);
  std::optional<LayerHit> ask(CacheLayer& layer, Lookup& lookup);
  std::optional<Found> find(Lookup& lookup);
  std::optional<Found> find_in_folder(Lookup& lookup);
  std::unique_ptr<const Claim> claim(Lookup& lookup);

  std::shared_ptr<EventLog> events_;
  std::vector<std::unique_ptr<CacheLayer>> layers_; // in the order in which they are asked
  OwnFolder* own_ = nullptr;                        // of layers_: where claims are made; null: nowhere
  std::function<std::string(const Environment&)> identity_source_;
  CompilerMemo memo_;
  std::mutex identity_mutex_;
  std::optional<std::string> known_identity_;
};

} // namespace kiln
