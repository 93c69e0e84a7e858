// KernelCache: the order in which layers are asked, and what happens on a miss.
#include "runtime/cache/cache.h"
#include "runtime/cache/claim.h"
#include <fmt/format.h>

namespace kiln {

namespace {

// What a compile gave, unless it is not of the request: no confusion between processes may reach a cache or a caller.
CachedKernel checked(const KernelRequest& request, const EntryFiles& files) {
  try {
    CachedKernel kernel = read_entry(files.meta, files.object, nullptr);
    if (kernel.key != cache_key(request, field_of(kernel.key, "compiler")))
      throw CorruptEntry(fmt::format("it is the kernel {} for {}", kernel.name, kernel.arch));
    return kernel;
  } catch (const CorruptEntry& error) {
    throw InternalError(
        fmt::format("the compile of {} for {} gave no entry of it: {}", kernel_name(request), request.arch, error.what()));
  }
}

} // namespace

CacheOptions cache_options(const Environment& environment) {
  CacheOptions options;
  options.folder = environment.cache_dir;
  options.layers = environment.cache_layers;
  options.trust_shared = environment.cache_trust_shared;
  options.max_bytes = environment.cache_max_bytes;
  options.remote.url = environment.cache_url;
  options.remote.write = environment.cache_url_write;
  return options;
}

std::string_view to_string(Origin origin) {
  switch (origin) {
  case Origin::memory:
    return "memory";
  case Origin::folder:
    return "folder";
  case Origin::layer:
    return "layer";
  case Origin::remote:
    return "remote";
  case Origin::compiled:
    break;
  }
  return "compiled";
}

KernelCache::KernelCache(CacheOptions options, std::shared_ptr<EventLog> events,
                         std::function<std::string(const Environment&)> identity)
    : options_(std::move(options)), events_(std::move(events)),
      memo_(options_.notes.empty() && !options_.folder.empty() ? options_.folder / "hosts" : options_.notes),
      identity_source_(std::move(identity)) {
  if (!options_.folder.empty()) {
    try {
      folder_.emplace(options_.folder,
                      LayerOptions{.writable = true, .trust = options_.trust_shared, .shipped = options_.shipped});
    } catch (const EnvironmentError& error) {
      events_->note("cache_unusable", error.what());
      memo_ = CompilerMemo(options_.notes);
    }
  }
  for (const std::filesystem::path& path : options_.layers) {
    try {
      const CacheLayer layer(path, {.writable = false, .trust = options_.trust_shared});
      layers_.push_back({layer, layer.compilers()});
    } catch (const EnvironmentError& error) {
      events_->note("layer_unusable", error.what());
    }
  }
  if (!options_.remote.url.empty()) remote_ = std::make_unique<RemoteCache>(options_.remote, events_);
}

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

std::optional<Found> KernelCache::find_in(const CacheLayer& layer, const CacheKey& key, Origin origin) {
  auto kernel = layer.find(key, [&](const std::string& reason) { events_->note("entry_quarantined", reason); });
  if (!kernel) return std::nullopt;
  return Found{std::move(*kernel), origin};
}

std::optional<Found> KernelCache::find_remote(const CacheKey& key) {
  if (!remote_) return std::nullopt;
  std::optional<EntryFiles> files = remote_->get(key.hex);
  if (!files) return std::nullopt;
  try {
    check_source(files->meta, files->source);
    Found found{read_entry(files->meta, files->object, &key), Origin::remote};
    keep(key.hex, *files);
    return found;
  } catch (const CorruptEntry& error) {
    remote_->reject(fmt::format("{}: {}", key.hex, error.what()));
    return std::nullopt;
  }
}

CacheKey KernelCache::key(const KernelRequest& request) {
  if (folder_ || remote_) return cache_key(request, identity(request.options.environment));
  for (const ReadOnlyLayer& layer : layers_)
    if (!layer.compilers.empty()) return cache_key(request, layer.compilers.front());
  return cache_key(request, "");
}

std::optional<Found> KernelCache::find(const KernelRequest& request) {
  // A shipped layer names its compilers; the one at hand is asked for only when something needs it.
  std::optional<CacheKey> here;
  const auto own_key = [&]() -> const CacheKey& {
    if (!here) here = cache_key(request, identity(request.options.environment));
    return *here;
  };
  if (folder_)
    if (auto found = find_in(*folder_, own_key(), Origin::folder)) return found;
  for (const ReadOnlyLayer& layer : layers_) {
    if (layer.compilers.empty())
      if (auto found = find_in(layer.layer, own_key(), Origin::layer)) return found;
    for (const std::string& compiler : layer.compilers)
      if (auto found = find_in(layer.layer, cache_key(request, compiler), Origin::layer)) return found;
  }
  return remote_ ? find_remote(own_key()) : std::nullopt;
}

Found KernelCache::find_or_make(const KernelRequest& request, const std::function<EntryFiles()>& make) {
  if (auto found = find(request)) return std::move(*found);
  const std::string compiler = identity(request.options.environment);
  if (!folder_) return store(request, make(), compiler);
  const CacheKey key = cache_key(request, compiler);
  const Claim claim(folder_->part("claims"), key.hex, options_.claim_wait, [&] { return folder_->has(key); });
  if (claim.result() == Claim::Result::unavailable)
    events_->note("claim_unavailable",
                  fmt::format("{} takes no claims; several processes may compile the same kernel", folder_->folder().string()));
  if (claim.result() == Claim::Result::expired)
    events_->note("wait_expired", fmt::format("process {} has been compiling {} for more than {} ms; compiling it here too",
                                              claim.holder(), kernel_name(request), options_.claim_wait.count()));
  // Somebody may have published it between the look and the claim.
  if (auto found = find_in(*folder_, key, Origin::folder)) return std::move(*found);
  return store(request, make(), compiler);
}

Found KernelCache::store(const KernelRequest& request, EntryFiles files, const std::string& assumed_compiler) {
  CachedKernel kernel = checked(request, files);
  if (const std::string compiler = field_of(kernel.key, "compiler"); compiler != assumed_compiler) {
    // The library was replaced since its identity was read. The entry has the key of the one that made it.
    events_->note("compiler_changed", fmt::format("{} instead of {}", compiler, assumed_compiler));
    const std::lock_guard lock(identity_mutex_);
    known_identity_ = compiler;
    if (!identity_source_) memo_.refresh(request.options.environment);
  }
  keep(kernel.key.hex, files);
  if (remote_) remote_->put(kernel.key.hex, files);
  return {std::move(kernel), Origin::compiled};
}

void KernelCache::keep(const std::string& key, const EntryFiles& files) {
  if (!folder_) return;
  try {
    folder_->publish(key, files);
    const std::lock_guard lock(size_mutex_);
    if (!bytes_) { // once a process: what is there, and what crashed processes left
      folder_->sweep(false);
      bytes_ = 0;
      for (const EntryInfo& entry : folder_->list()) *bytes_ += entry.bytes;
    } else {
      *bytes_ += files.meta.size() + files.object.size() + files.source.size();
    }
    if (*bytes_ <= options_.max_bytes) return;
    folder_->prune(options_.max_bytes / 10 * 9); // room for some more, so that not every new kernel looks at all of them
    bytes_.reset();
  } catch (const EnvironmentError& error) {
    events_->note("not_stored", error.what());
  }
}

} // namespace kiln
