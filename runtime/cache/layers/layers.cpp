// make_layers: the layers of every kind of layers.def.
#include "runtime/cache/layers/kinds.h"

namespace kiln {

std::vector<std::unique_ptr<CacheLayer>> make_layers(const CacheOptions& options, const std::shared_ptr<EventLog>& events) {
  LayerList list{.options = options,
                 .events = events,
                 .signers = options.public_key.empty() ? nullptr : PublicKeys::read(options.public_key),
                 .layers = {}};
#define KILN_LAYER_KIND(name) layer_kinds::name(list);
#include "runtime/cache/layers/layers.def"
#undef KILN_LAYER_KIND
  return std::move(list.layers);
}

} // namespace kiln
