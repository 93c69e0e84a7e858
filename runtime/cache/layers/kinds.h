// The kinds of layers, each made by one function from its file. Throw EnvironmentError when it cannot be used.
#pragma once
#include "runtime/cache/layers/layer.h"
#include "runtime/cache/sign.h"

namespace kiln {

// `signers` null: entries need no signature.
std::unique_ptr<CacheLayer> make_shipped_folder(const std::filesystem::path& path, const CacheOptions& options,
                                                std::shared_ptr<const PublicKeys> signers, std::shared_ptr<EventLog> events);
std::unique_ptr<CacheLayer> make_remote_layer(const CacheOptions& options, std::shared_ptr<const PublicKeys> signers,
                                              std::shared_ptr<EventLog> events);

} // namespace kiln
