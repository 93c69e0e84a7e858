// KernelCache: the order in which layers are asked, and what happens on a miss.
#include "runtime/cache/cache.h"
#include "gen/error.h"
#include "runtime/cache/layers/kinds.h"
#include "runtime/cache/layers/own_folder.h"
#include <fmt/format.h>
#include <new>

namespace kiln {

namespace {

// All layers that the options name, in the order in which they are asked. One that cannot be used is an event and left out.
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

// What a compile gave, unless it is not of the request: no confusion between processes may reach a cache or a caller.
CachedKernel checked(const KernelRequest& request, const EntryFiles& files) {
  try {
    CachedKernel kernel = read_entry(files.meta, files.object, nullptr);
    if (kernel.key != cache_key(request, field_of(kernel.key, "compiler")))
      throw CorruptEntry(fmt::format("it is the kernel {} for {}", kernel.name, kernel.arch));
    return kernel;
  } catch (const CorruptEntry& error) {
    throw InternalError(fmt::format("the compile of {} for {} gave no entry of it: {}", kernel_name(request), request.arch, error.what()));
  }
}

OwnFolder* own_folder(const std::vector<std::unique_ptr<CacheLayer>>& layers) {
  for (const auto& layer : layers)
    if (auto* own = dynamic_cast<OwnFolder*>(layer.get())) return own;
  return nullptr;
}

// Says where the compiler's identity is noted. Without such a place it is read from the libraries in every process.
Folder notes_folder(const CacheOptions& options, const OwnFolder* own) {
  try {
    if (!options.notes.empty()) return Folder::make(options.notes, Trust::self, 0700);
    return own == nullptr ? Folder() : own->folder().root().make_child("hosts");
  } catch (const Untrusted&) {
    return {};
  }
}

} // namespace

CacheOptions cache_options(const Environment& environment) {
  CacheOptions options;
  options.folder = environment.cache_dir;
  options.layers = environment.cache_layers;
  options.trust_shared = environment.cache_trust_shared;
  options.public_key = environment.cache_public_key;
  options.max_bytes = environment.cache_max_bytes;
  options.remote.url = environment.cache_url;
  options.remote.insecure = environment.cache_url_insecure;
  options.remote.write = environment.cache_url_write;
  options.remote.authorities = environment.cache_url_ca;
  return options;
}

std::string_view to_string(Origin origin) {
  switch (origin) {
  case Origin::memory: return "memory";
  case Origin::folder: return "folder";
  case Origin::layer: return "layer";
  case Origin::remote: return "remote";
  case Origin::compiled: break;
  }
  return "compiled";
}

KernelCache::KernelCache(const CacheOptions& options, std::shared_ptr<EventLog> events,
                         std::function<std::string(const Environment&)> identity, CompilerMemo::Read compiler)
    : events_(std::move(events)), layers_(make_layers(options, events_)), own_(own_folder(layers_)), identity_source_(std::move(identity)),
      memo_(notes_folder(options, own_), std::move(compiler)) {}

KernelCache::~KernelCache() = default;

const CacheFolder* KernelCache::folder() const { return own_ == nullptr ? nullptr : &own_->folder(); }

std::string KernelCache::identity(const Environment& environment) {
  const std::lock_guard lock(identity_mutex_);
  if (known_identity_) return *known_identity_;
  try {
    known_identity_ = identity_source_ ? identity_source_(environment) : memo_.identity(environment);
  } catch (const EnvironmentError& error) {
    events_->note("no_compiler", error.what());
    known_identity_ = std::string();
  }
  return *known_identity_;
}

// The library may have been replaced since its identity was read. The entry has the key of the one that made it.
void KernelCache::note_compiler(const std::string& assumed, const std::string& real, const Environment& environment) {
  if (real == assumed) return;
  events_->note("compiler_changed", fmt::format("{} instead of {}", real, assumed));
  const std::lock_guard lock(identity_mutex_);
  known_identity_ = real;
  if (!identity_source_) memo_.refresh(environment);
}

Lookup KernelCache::look_up(const KernelRequest& request) {
  return {request, [this, &request] { return identity(request.options.environment); }};
}

CacheKey KernelCache::key(const KernelRequest& request) {
  Lookup lookup = look_up(request);
  return layers_.empty() ? cache_key(request, "") : layers_.front()->key(lookup);
}

std::optional<Found> KernelCache::find(const KernelRequest& request) {
  Lookup lookup = look_up(request);
  return find(lookup);
}

// Without memory for an entry it is a miss: a compile in a worker needs less of this process.
std::optional<LayerHit> KernelCache::ask(CacheLayer& layer, Lookup& lookup) {
  try {
    return layer.find(lookup);
  } catch (const std::bad_alloc&) {
    events_->note("entry_unreadable",
                  fmt::format("{}: there is no memory for the entry of {}", layer.name(), kernel_name(lookup.request())));
    return std::nullopt;
  }
}

std::optional<Found> KernelCache::find(Lookup& lookup) {
  for (auto layer = layers_.begin(); layer != layers_.end(); ++layer) {
    std::optional<LayerHit> hit = ask(**layer, lookup);
    if (!hit) continue;
    if (hit->files)
      for (auto before = layers_.begin(); before != layer; ++before) (*before)->put(hit->kernel.key.hex, *hit->files);
    return Found{std::move(hit->kernel), (*layer)->origin()};
  }
  return std::nullopt;
}

std::unique_ptr<const Claim> KernelCache::claim(Lookup& lookup) {
  return own_ == nullptr ? nullptr : own_->claim(lookup.key(), kernel_name(lookup.request()));
}

std::optional<Found> KernelCache::find_in_folder(Lookup& lookup) {
  std::optional<LayerHit> hit = own_ == nullptr ? std::nullopt : ask(*own_, lookup);
  if (!hit) return std::nullopt;
  return Found{std::move(hit->kernel), Origin::folder};
}

Found KernelCache::find_or_make(const KernelRequest& request, const std::function<EntryFiles()>& make) {
  Lookup lookup = look_up(request);
  if (auto found = find(lookup)) return std::move(*found);
  const auto claimed = claim(lookup);                                // held to the end: others wait for what we publish
  if (auto found = find_in_folder(lookup)) return std::move(*found); // somebody was faster
  EntryFiles files = make();
  files.compiled_here = true;
  CachedKernel kernel = checked(request, files);
  note_compiler(field_of(lookup.key(), "compiler"), field_of(kernel.key, "compiler"), request.options.environment);
  for (const auto& layer : layers_) layer->put(kernel.key.hex, files);
  return {std::move(kernel), Origin::compiled};
}

} // namespace kiln
