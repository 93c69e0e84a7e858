// RemoteCache: GET and PUT through libcurl.
#include "runtime/cache/remote/remote.h"
#include "gen/error.h"
#include "runtime/cache/remote/action_result.h"
#include "runtime/compile/dynamic_library.h"
#include "runtime/digest.h"
#include "runtime/owner_process.h"
#include <algorithm>
#include <arpa/inet.h>
#include <array>
#include <curl/curl.h>
#include <fmt/format.h>
#include <memory>

namespace kiln {
namespace {

constexpr std::size_t max_record = 65536, max_file = 64u << 20;

// libcurl, loaded by name when a remote is first asked, so that who uses none need not have it.
struct CurlLibrary {
  decltype(::curl_global_init)* global_init;
  decltype(::curl_easy_init)* easy_init;
  decltype(::curl_easy_cleanup)* easy_cleanup;
  decltype(::curl_easy_reset)* easy_reset;
  decltype(::curl_easy_setopt)* easy_setopt;
  decltype(::curl_easy_perform)* easy_perform;
  decltype(::curl_easy_getinfo)* easy_getinfo;
  decltype(::curl_easy_strerror)* easy_strerror;
  decltype(::curl_version_info)* version_info;
};

CurlLibrary load_curl() {
  // The names of one library, by who built it: with OpenSSL (every distribution's), with GnuTLS (Debian's other one).
  const DynamicLibrary library({.subject = "libcurl",
                                .given_path = {},
                                .variable = {},
                                .names = {"libcurl.so.4", "libcurl-gnutls.so.4"},
                                .folders = {},
                                .remedy = "install libcurl (package libcurl4t64 or libcurl), or unset KILN_CACHE_URL"});
  const CurlLibrary curl{.global_init = library.function<decltype(::curl_global_init)>("curl_global_init"),
                         .easy_init = library.function<decltype(::curl_easy_init)>("curl_easy_init"),
                         .easy_cleanup = library.function<decltype(::curl_easy_cleanup)>("curl_easy_cleanup"),
                         .easy_reset = library.function<decltype(::curl_easy_reset)>("curl_easy_reset"),
                         .easy_setopt = library.function<decltype(::curl_easy_setopt)>("curl_easy_setopt"),
                         .easy_perform = library.function<decltype(::curl_easy_perform)>("curl_easy_perform"),
                         .easy_getinfo = library.function<decltype(::curl_easy_getinfo)>("curl_easy_getinfo"),
                         .easy_strerror = library.function<decltype(::curl_easy_strerror)>("curl_easy_strerror"),
                         .version_info = library.function<decltype(::curl_version_info)>("curl_version_info")};
  curl.global_init(CURL_GLOBAL_DEFAULT); // not safe among threads, unlike the initialisation below
  return curl;
}

// Set up. Throws EnvironmentError that says what was tried; the next call tries again.
const CurlLibrary& curl_library() {
  static const CurlLibrary library = load_curl(); // a constructor that throws runs again
  return library;
}

struct Answer {
  std::string bytes;
  std::size_t most = 0;
};

std::size_t receive(char* data, std::size_t size, std::size_t count, void* to) {
  Answer& body = *static_cast<Answer*>(to);
  if (body.bytes.size() + size * count > body.most) return 0; // ends the transfer with an error
  body.bytes.append(data, size * count);
  return size * count;
}

struct Upload {
  std::string_view left;
};

std::size_t send(char* data, std::size_t size, std::size_t count, void* from) {
  Upload& upload = *static_cast<Upload*>(from);
  const std::size_t n = std::min(size * count, upload.left.size());
  std::ranges::copy(upload.left.substr(0, n), data);
  upload.left.remove_prefix(n);
  return n;
}

// Options of a request, and connections that are kept. A child of fork() inherits both, and its parent goes on with the very same
// sockets: it must neither use nor close them, for to close TLS is to say so to the server.
struct Handle {
  OwnerProcess owner;
  CURL* curl = curl_library().easy_init();
  std::unique_ptr<Handle> inherited; // stays as it is
  Handle() = default;
  ~Handle() {
    if (owner.is_current()) curl_library().easy_cleanup(curl);
  }
  Handle(const Handle&) = delete;
  Handle& operator=(const Handle&) = delete;
};

// Connections are kept for as long as their thread lives.
CURL* thread_handle() {
  thread_local std::unique_ptr<Handle> handle;
  if (!handle || !handle->owner.is_current()) {
    auto own = std::make_unique<Handle>();
    own->inherited = std::move(handle);
    handle = std::move(own);
  }
  return handle->curl;
}

// True as well where there is no libcurl: the first request says so, and nothing waits.
bool resolves_asynchronously() {
  try {
    return (curl_library().version_info(CURLVERSION_NOW)->features & CURL_VERSION_ASYNCHDNS) != 0;
  } catch (const EnvironmentError&) {
    return true;
  }
}

} // namespace

void check_scheme(const Url& url, bool insecure) {
  if (url.empty() || url.encrypted() || insecure) return;
  throw UserError("KILN_CACHE_URL", fmt::format("{} is not https: anybody on the way could put in other kernels", url.shown()),
                  "use https, or set KILN_CACHE_URL_INSECURE=1 where the network is yours alone");
}

void check_resolver(const Url& url, bool asynchronous) {
  const std::string host = url.host();
  in6_addr address{};
  if (asynchronous || host.empty() || inet_pton(AF_INET, host.c_str(), &address) == 1 || inet_pton(AF_INET6, host.c_str(), &address) == 1)
    return;
  throw EnvironmentError(
      "KILN_CACHE_URL",
      fmt::format("libcurl {} looks up {} without a bound of time", curl_library().version_info(CURLVERSION_NOW)->version, host),
      "use a libcurl with its threaded resolver or c-ares, as distributions build it, or write the address as a number");
}

RemoteCache::RemoteCache(RemoteOptions options, std::shared_ptr<EventLog> events)
    : options_(std::move(options)), events_(std::move(events)) {
  check_scheme(options_.url, options_.insecure);
  if (!options_.url.empty()) check_resolver(options_.url, resolves_asynchronously());
}

// After a pause one request goes out; others wait for what becomes of it.
bool RemoteCache::may_ask() {
  const std::lock_guard lock(mutex_);
  const auto now = std::chrono::steady_clock::now();
  if (now < ask_again_) return false;
  if (pause_.count() != 0) ask_again_ = now + pause_;
  return true;
}

void RemoteCache::accept() {
  const std::lock_guard lock(mutex_);
  pause_ = {};
  ask_again_ = {};
}

void RemoteCache::pause(const std::string& reason) {
  std::chrono::milliseconds length{};
  {
    const std::lock_guard lock(mutex_);
    length = pause_ = std::min(std::max(options_.first_pause, 2 * pause_), options_.max_pause);
    ask_again_ = std::chrono::steady_clock::now() + pause_;
  }
  events_->note("remote_paused", fmt::format("{} is not asked for {} ms: {}", shown(), length.count(), reason));
}

void RemoteCache::reject(const std::string& reason) {
  events_->note("remote_rejected", fmt::format("{}: {}", shown(), reason));
  pause("it gave wrong bytes");
}

RemoteCache::Response RemoteCache::transfer(const std::string& path, const std::string* upload, std::size_t max_bytes) {
  CURL* curl = nullptr;
  try {
    curl = thread_handle();
  } catch (const EnvironmentError& error) {
    pause(error.what());
    return {};
  }
  if (curl == nullptr) {
    pause("libcurl could not be set up");
    return {};
  }
  curl_library().easy_reset(curl); // options only: connections stay
  const std::string url = options_.url.secret(path);
  Answer body{.bytes = {}, .most = max_bytes};
  Upload source{upload == nullptr ? std::string_view() : std::string_view(*upload)};
  curl_library().easy_setopt(curl, CURLOPT_URL, url.c_str());
  curl_library().easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
  curl_library().easy_setopt(curl, CURLOPT_CONNECTTIMEOUT_MS, static_cast<long>(options_.connect_timeout.count()));
  curl_library().easy_setopt(curl, CURLOPT_TIMEOUT_MS, static_cast<long>(options_.timeout.count()));
  curl_library().easy_setopt(curl, CURLOPT_PROTOCOLS_STR, options_.insecure ? "http,https" : "https");
  curl_library().easy_setopt(curl, CURLOPT_FOLLOWLOCATION, 0L); // to where the record's owner never wrote
  curl_library().easy_setopt(curl, CURLOPT_SSL_VERIFYPEER, 1L);
  curl_library().easy_setopt(curl, CURLOPT_SSL_VERIFYHOST, 2L);
  curl_library().easy_setopt(curl, CURLOPT_SSLVERSION, static_cast<long>(CURL_SSLVERSION_TLSv1_2)); // at least
  if (!options_.authorities.empty()) {
    curl_library().easy_setopt(curl, CURLOPT_CAINFO, options_.authorities.c_str());
    curl_library().easy_setopt(curl, CURLOPT_CAPATH, nullptr);
  }
  curl_library().easy_setopt(curl, CURLOPT_WRITEFUNCTION, receive);
  curl_library().easy_setopt(curl, CURLOPT_WRITEDATA, &body);
  if (upload != nullptr) {
    curl_library().easy_setopt(curl, CURLOPT_UPLOAD, 1L);
    curl_library().easy_setopt(curl, CURLOPT_READFUNCTION, send);
    curl_library().easy_setopt(curl, CURLOPT_READDATA, &source);
    curl_library().easy_setopt(curl, CURLOPT_INFILESIZE_LARGE, static_cast<curl_off_t>(upload->size()));
  }
  const CURLcode result = curl_library().easy_perform(curl);
  Response response;
  curl_library().easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &response.status);
  if (result != CURLE_OK || response.status >= 500) {
    pause(result != CURLE_OK ? std::string(curl_library().easy_strerror(result)) : fmt::format("HTTP status {}", response.status));
    return {};
  }
  response.arrived = true;
  response.body = std::move(body.bytes);
  return response;
}

std::optional<EntryFiles> RemoteCache::get(const std::string& key) {
  if (!may_ask()) return std::nullopt;
  const Response record = transfer("/ac/" + key, nullptr, max_record);
  if (!record.arrived) return std::nullopt;
  if (record.status != 200) {
    record.status == 404 ? accept() : pause(fmt::format("HTTP status {}", record.status));
    return std::nullopt;
  }
  const std::optional<std::vector<OutputFile>> files = decode_action_result(record.body);
  EntryFiles entry;
  for (const auto& [name, bytes] : {std::pair{meta_file, &entry.meta},
                                    {object_file, &entry.object},
                                    {source_file, &entry.source},
                                    {signature_file, &entry.signature}}) {
    const auto file = !files ? std::vector<OutputFile>::const_iterator() : std::ranges::find(*files, name, &OutputFile::path);
    if (files && file == files->end() && bytes == &entry.signature) break;
    if (!files || file == files->end() || !is_sha256(file->sha256) || file->size > max_file) {
      reject(fmt::format("the record {} names no {}", key, name));
      return std::nullopt;
    }
    Response content = transfer("/cas/" + file->sha256, nullptr, static_cast<std::size_t>(file->size));
    if (!content.arrived) return std::nullopt;
    if (content.status == 404) break; // removed by the server to make room: a miss
    if (content.status != 200 || content.body.size() != file->size || sha256(content.body) != file->sha256) {
      reject(
          fmt::format("/cas/{} is not what its name says (HTTP status {}, {} bytes)", file->sha256, content.status, content.body.size()));
      return std::nullopt;
    }
    *bytes = std::move(content.body);
  }
  if (entry.meta.empty() || entry.object.empty() || entry.source.empty()) return std::nullopt;
  return entry;
}

bool RemoteCache::put(const std::string& key, const EntryFiles& files) {
  if (!options_.write || !may_ask()) return false;
  std::vector<OutputFile> record;
  const auto upload = [&](const std::string& path, const std::string& bytes) {
    const Response response = transfer(path, &bytes, max_record);
    if (response.arrived && response.status / 100 != 2) pause(fmt::format("it refused an upload: HTTP status {}", response.status));
    return response.arrived && response.status / 100 == 2;
  };
  for (const auto& [name, bytes] : {std::pair{meta_file, &files.meta},
                                    {object_file, &files.object},
                                    {source_file, &files.source},
                                    {signature_file, &files.signature}}) {
    if (bytes->empty()) continue;
    record.push_back({name, sha256(*bytes), bytes->size()});
    if (!upload("/cas/" + record.back().sha256, *bytes)) return false;
  }
  if (!upload("/ac/" + key, encode_action_result(record))) return false; // last: a record names only what is there
  accept();
  return true;
}

} // namespace kiln
