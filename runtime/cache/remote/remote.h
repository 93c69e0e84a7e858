// RemoteCache: kernels on an HTTP server, as bazel-remote and compatible servers keep them.
#pragma once
#include "runtime/cache/entry.h"
#include "runtime/events.h"
#include "runtime/url.h"
#include <chrono>
#include <filesystem>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

namespace kiln {

struct RemoteOptions {
  Url url;                                                        // "https://cache.example:8080"; empty: none
  bool insecure = false;                                          // http:// is taken too
  bool write = false;                                             // upload what was compiled
  std::filesystem::path authorities = {};                         // certificates in PEM; empty: those that libcurl trusts
  std::chrono::milliseconds connect_timeout{500}, timeout{3000};  // the second: of a whole transfer
  std::chrono::milliseconds first_pause{1000}, max_pause{300000}; // after trouble; doubled each time
};
// Throws UserError unless the address is https, or `insecure`.
void check_scheme(const Url& url, bool insecure);
// Throws EnvironmentError where libcurl would look the host's name up without a bound of time: it has no resolver of its own
// (`asynchronous` false), and the address is no number.
void check_resolver(const Url& url, bool asynchronous);

// /ac/KEY holds an ActionResult (the protocol buffer of Bazel's remote execution API) that names the files of the entry with
// size and SHA-256; /cas/SHA256 holds each file. Every byte that arrives is checked against these digests. After trouble (no
// connection, time-out, server error, wrong bytes) the server is not asked for a while, longer each time, and then with one
// request; each pause is an event "remote_paused". Thread-safe; nothing but the constructor throws.
class RemoteCache {
public:
  RemoteCache(RemoteOptions options, std::shared_ptr<EventLog> events); // throws what the checks throw

  std::optional<EntryFiles> get(const std::string& key);
  bool put(const std::string& key, const EntryFiles& files); // false: it is not there now. Does nothing unless options.write
  void accept();                                             // what it gave was right: the next pause is a short one again
  void reject(const std::string& reason);                    // what it gave is not what was asked for
  std::string shown() const { return options_.url.shown(); }

private:
  struct Response {
    bool arrived = false; // with a status; otherwise the server is being left alone now
    long status = 0;
    std::string body;
  };
  Response transfer(const std::string& path, const std::string* upload, std::size_t max_bytes);
  bool may_ask();
  void pause(const std::string& reason);

  RemoteOptions options_;
  std::shared_ptr<EventLog> events_;
  std::mutex mutex_;
  std::chrono::milliseconds pause_{0}; // the latest; zero: the server answers
  std::chrono::steady_clock::time_point ask_again_{};
};

} // namespace kiln
