// CacheLayer: one place in which kernels are looked for, and may be kept. A new kind is a file here and a line in layers.def.
#pragma once
#include "runtime/cache/entry.h"
#include "runtime/cache/options.h"
#include "runtime/events.h"
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace kiln {

// What is looked for. The compiler at hand is asked for its identity when a layer first needs it: a shipped layer does not.
class Lookup {
public:
  Lookup(const KernelRequest& request, std::function<std::string()> compiler) : request_(request), compiler_(std::move(compiler)) {}
  const KernelRequest& request() const { return request_; }
  const CacheKey& key() { // with the compiler at hand
    if (!key_) key_ = cache_key(request_, compiler_());
    return *key_;
  }
  CacheKey key(const std::string& compiler) const { return cache_key(request_, compiler); }

private:
  const KernelRequest& request_;
  std::function<std::string()> compiler_;
  std::optional<CacheKey> key_;
};

struct LayerHit {
  CachedKernel kernel;
  std::optional<EntryFiles> files; // for the layers that were asked before, to keep; none: it is near enough where it is
};

// Thread-safe. What is wrong with a layer is an event, never an exception.
class CacheLayer {
public:
  virtual ~CacheLayer() = default;
  virtual std::string name() const = 0; // for messages: "folder kernels"
  virtual Origin origin() const = 0;    // of what is found here
  // With what key the layer would have it. Loads no compiler for this alone where the layer names its own.
  virtual CacheKey key(Lookup& lookup) const { return lookup.key(); }
  virtual std::optional<LayerHit> find(Lookup& lookup) = 0;
  virtual void put(const std::string& /*key*/, const EntryFiles& /*files*/) {} // nothing in a layer that is only read
};

} // namespace kiln
