// RemoteCache: kernels on an HTTP server, as bazel-remote and compatible servers keep them.
#pragma once
#include "runtime/cache/entry.h"
#include "runtime/events.h"
#include <atomic>
#include <chrono>
#include <memory>
#include <optional>
#include <string>

namespace kiln {

struct RemoteOptions {
  std::string url;                                               // "http://cache.example:8080"; empty: none
  bool write = false;                                            // upload what was compiled
  std::chrono::milliseconds connect_timeout{500}, timeout{3000}; // the second: of a whole transfer
};

// /ac/KEY holds an ActionResult (the protocol buffer of Bazel's remote execution API) that names the files of the entry with
// size and SHA-256; /cas/SHA256 holds each file. Every byte that arrives is checked against these digests. The first sign of
// trouble (no connection, time-out, server error, wrong bytes) switches the server off for the rest of the run, with one
// event: "remote_off". Thread-safe; nothing throws.
class RemoteCache {
public:
  RemoteCache(RemoteOptions options, std::shared_ptr<EventLog> events);

  std::optional<EntryFiles> get(const std::string& key);
  void put(const std::string& key, const EntryFiles& files); // nothing unless options.write
  void reject(const std::string& reason);                    // what it gave is not what was asked for
  bool on() const { return on_; }

private:
  struct Response {
    bool arrived = false; // with a status; otherwise the server is off now
    long status = 0;
    std::string body;
  };
  Response transfer(const std::string& path, const std::string* upload, std::size_t most_bytes);
  void off(const std::string& reason);

  RemoteOptions options_;
  std::shared_ptr<EventLog> events_;
  std::atomic<bool> on_{true};
};

} // namespace kiln
