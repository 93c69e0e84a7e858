// make_layers: the registration of every kind of layer, in the order in which they are asked.
#include "gen/error.h"
#include "runtime/cache/layers/kinds.h"
#include "runtime/cache/layers/own_folder.h"

namespace kiln {

std::vector<std::unique_ptr<CacheLayer>> make_layers(const CacheOptions& options, const std::shared_ptr<EventLog>& events) {
  std::vector<std::unique_ptr<CacheLayer>> layers;
  const auto add = [&](const char* unusable, const auto& make) {
    try {
      layers.push_back(make());
    } catch (const EnvironmentError& error) {
      events->note(unusable, error.what());
    }
  };
  const auto signers = options.public_key.empty() ? nullptr : PublicKeys::read(options.public_key);
  if (!options.folder.empty()) add("cache_unusable", [&] { return std::make_unique<OwnFolder>(options, signers, events); });
  for (const std::filesystem::path& path : options.layers)
    add("layer_unusable", [&] { return make_shipped_folder(path, options, signers, events); });
  if (!options.remote.url.empty()) add("remote_unusable", [&] { return make_remote_layer(options, signers, events); });
  return layers;
}

} // namespace kiln
