// ShippedFolder: a folder that is only read, as kiln aot makes it, looked up with the compilers that it was made with.
#include "runtime/cache/folder/cache_folder.h"
#include "runtime/cache/layers/kinds.h"
#include <fmt/format.h>

namespace kiln {
namespace {

class ShippedFolder : public CacheLayer {
public:
  ShippedFolder(CacheFolder folder, std::shared_ptr<EventLog> events)
      : folder_(std::move(folder)), compilers_(folder_.compilers()), events_(std::move(events)) {}

  std::string name() const override { return "layer " + folder_.path().string(); }
  Origin origin() const override { return Origin::layer; }
  CacheKey key(Lookup& lookup) const override { return compilers_.empty() ? lookup.key() : lookup.key(compilers_.front()); }

  std::optional<LayerHit> find(Lookup& lookup) override {
    if (compilers_.empty()) return find_key(lookup.key());
    for (const std::string& compiler : compilers_)
      if (auto hit = find_key(lookup.key(compiler))) return hit;
    return std::nullopt;
  }

private:
  std::optional<LayerHit> find_key(const CacheKey& key) {
    auto kernel = folder_.find(key, [&](const EntryProblem& problem) {
      events_->note(problem.event, fmt::format("{}, entry {}: {}", name(), key.hex, problem.what()));
    });
    if (!kernel) return std::nullopt;
    return LayerHit{std::move(*kernel), std::nullopt};
  }

  CacheFolder folder_;
  std::vector<std::string> compilers_; // empty: the one at hand
  std::shared_ptr<EventLog> events_;
};

} // namespace

void layer_kinds::shipped_folders(LayerList& list) {
  for (const std::filesystem::path& path : list.options.layers)
    list.add("layer_unusable", [&] {
      CacheFolder folder(path,
                         {.writable = false, .trust = list.options.trust_shared ? Trust::anyone : Trust::self, .signers = list.signers});
      return std::make_unique<ShippedFolder>(std::move(folder), list.events);
    });
}

} // namespace kiln
