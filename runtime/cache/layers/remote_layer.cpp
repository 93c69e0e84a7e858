// RemoteLayer: a remote cache as a layer. What it gives is checked whole, source and signature too, since it will be kept.
#include "runtime/cache/layers/kinds.h"
#include <fmt/format.h>

namespace kiln {
namespace {

class RemoteLayer : public CacheLayer {
public:
  RemoteLayer(const CacheOptions& options, std::shared_ptr<const PublicKeys> signers, std::shared_ptr<EventLog> events)
      : remote_(options.remote, events), signers_(std::move(signers)), events_(std::move(events)) {}

  std::string name() const override { return "remote " + remote_.shown(); }
  Origin origin() const override { return Origin::remote; }
  void put(const std::string& key, const EntryFiles& files) override { remote_.put(key, files); }

  std::optional<LayerHit> find(Lookup& lookup) override {
    const CacheKey& key = lookup.key();
    std::optional<EntryFiles> files = remote_.get(key.hex);
    if (!files) return std::nullopt;
    try {
      if (signers_) signers_->check(*files);
      check_source(files->meta, files->source);
      CachedKernel kernel = read_entry(files->meta, files->object, &key);
      remote_.accept();
      return LayerHit{std::move(kernel), std::move(files)};
    } catch (const UnsignedEntry& error) { // the server works; who wrote to it is another question
      remote_.accept();
      events_->note(error.event, fmt::format("{}, entry {}: {}", name(), key.hex, error.what()));
    } catch (const CorruptEntry& error) {
      remote_.reject(fmt::format("{}: {}", key.hex, error.what()));
    }
    return std::nullopt;
  }

private:
  RemoteCache remote_;
  std::shared_ptr<const PublicKeys> signers_;
  std::shared_ptr<EventLog> events_;
};

} // namespace

void layer_kinds::remote(LayerList& list) {
  if (list.options.remote.url.empty()) return;
  list.add("remote_unusable", [&] { return std::make_unique<RemoteLayer>(list.options, list.signers, list.events); });
}

} // namespace kiln
