// The kinds of layers: a function for each line of layers.def, which adds the layers of that kind that the options name.
#pragma once
#include "gen/error.h"
#include "runtime/cache/layers/layer.h"
#include "runtime/cache/sign.h"

namespace kiln {

// What the functions are given, and where they leave their layers.
struct LayerList {
  const CacheOptions& options;
  const std::shared_ptr<EventLog>& events;
  const std::shared_ptr<const PublicKeys> signers; // null: entries need no signature
  std::vector<std::unique_ptr<CacheLayer>> layers;

  // Adds the layer that make() returns. If it throws EnvironmentError, the event `unusable` says why there is none.
  template <typename Make> void add(const char* unusable, const Make& make) {
    try {
      layers.push_back(make());
    } catch (const EnvironmentError& error) {
      events->note(unusable, error.what());
    }
  }
};

namespace layer_kinds {
#define KILN_LAYER_KIND(name) void name(LayerList& list);
#include "runtime/cache/layers/layers.def"
#undef KILN_LAYER_KIND
} // namespace layer_kinds

} // namespace kiln
