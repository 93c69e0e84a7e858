// RemoteCache: GET and PUT through libcurl.
#include "runtime/cache/remote/remote.h"
#include "runtime/cache/remote/action_result.h"
#include "runtime/cache/digest.h"
#include <algorithm>
#include <array>
#include <curl/curl.h>
#include <fmt/format.h>
#include <mutex>

namespace kiln {
namespace {

constexpr std::size_t most_record = 65536, most_file = 64u << 20;

struct Body {
  std::string bytes;
  std::size_t most = 0;
};

std::size_t receive(char* data, std::size_t size, std::size_t count, void* to) {
  Body& body = *static_cast<Body*>(to);
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
  std::copy_n(upload.left.data(), n, data);
  upload.left.remove_prefix(n);
  return n;
}

// A connection is kept for as long as its thread lives.
CURL* thread_handle() {
  static std::once_flag once; // libcurl's own set-up, which is not safe among threads
  std::call_once(once, [] { curl_global_init(CURL_GLOBAL_DEFAULT); });
  struct Handle {
    CURL* curl = curl_easy_init();
    ~Handle() { curl_easy_cleanup(curl); }
  };
  thread_local const Handle handle;
  return handle.curl;
}

// For messages: an address may hold a password.
std::string shown(const std::string& url) {
  const std::size_t scheme = url.find("://"), at = url.find('@');
  if (scheme == std::string::npos || at == std::string::npos || url.find('/', scheme + 3) < at) return url;
  return url.substr(0, scheme + 3) + "..." + url.substr(at);
}

} // namespace

RemoteCache::RemoteCache(RemoteOptions options, std::shared_ptr<EventLog> events)
    : options_(std::move(options)), events_(std::move(events)) {
  while (options_.url.ends_with('/')) options_.url.pop_back();
}

void RemoteCache::off(const std::string& reason) {
  if (on_.exchange(false))
    events_->note("remote_off", fmt::format("{} is not asked again in this run: {}", shown(options_.url), reason));
}

void RemoteCache::reject(const std::string& reason) {
  events_->note("remote_rejected", fmt::format("{}: {}", shown(options_.url), reason));
  off("it gave wrong bytes");
}

RemoteCache::Response RemoteCache::transfer(const std::string& path, const std::string* upload, std::size_t most_bytes) {
  CURL* curl = thread_handle();
  if (curl == nullptr) {
    off("libcurl could not be set up");
    return {};
  }
  curl_easy_reset(curl); // options only: connections stay
  const std::string url = options_.url + path;
  Body body{.bytes = {}, .most = most_bytes};
  Upload source{upload == nullptr ? std::string_view() : std::string_view(*upload)};
  curl_easy_setopt(curl, CURLOPT_URL, url.c_str());
  curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT_MS, static_cast<long>(options_.connect_timeout.count()));
  curl_easy_setopt(curl, CURLOPT_TIMEOUT_MS, static_cast<long>(options_.timeout.count()));
  curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http,https");
  curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, receive);
  curl_easy_setopt(curl, CURLOPT_WRITEDATA, &body);
  if (upload != nullptr) {
    curl_easy_setopt(curl, CURLOPT_UPLOAD, 1L);
    curl_easy_setopt(curl, CURLOPT_READFUNCTION, send);
    curl_easy_setopt(curl, CURLOPT_READDATA, &source);
    curl_easy_setopt(curl, CURLOPT_INFILESIZE_LARGE, static_cast<curl_off_t>(upload->size()));
  }
  const CURLcode result = curl_easy_perform(curl);
  Response response;
  curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &response.status);
  if (result != CURLE_OK || response.status >= 500) {
    off(result != CURLE_OK ? std::string(curl_easy_strerror(result)) : fmt::format("HTTP status {}", response.status));
    return {};
  }
  response.arrived = true;
  response.body = std::move(body.bytes);
  return response;
}

std::optional<EntryFiles> RemoteCache::get(const std::string& key) {
  if (!on_) return std::nullopt;
  const Response record = transfer("/ac/" + key, nullptr, most_record);
  if (!record.arrived || record.status == 404) return std::nullopt;
  if (record.status != 200) {
    off(fmt::format("HTTP status {}", record.status));
    return std::nullopt;
  }
  const std::optional<std::vector<OutputFile>> files = decode_action_result(record.body);
  EntryFiles entry;
  for (const auto& [name, bytes] :
       {std::pair{meta_file, &entry.meta}, {object_file, &entry.object}, {source_file, &entry.source}}) {
    const auto file = !files ? std::vector<OutputFile>::const_iterator() : std::ranges::find(*files, name, &OutputFile::path);
    if (!files || file == files->end() || !is_sha256(file->sha256) || file->size > most_file) {
      reject(fmt::format("the record {} names no {}", key, name));
      return std::nullopt;
    }
    Response content = transfer("/cas/" + file->sha256, nullptr, static_cast<std::size_t>(file->size));
    if (!content.arrived || content.status == 404) return std::nullopt; // removed by the server to make room: a miss
    if (content.status != 200 || content.body.size() != file->size || sha256(content.body) != file->sha256) {
      reject(fmt::format("/cas/{} is not what its name says (HTTP status {}, {} bytes)", file->sha256, content.status,
                         content.body.size()));
      return std::nullopt;
    }
    *bytes = std::move(content.body);
  }
  return entry;
}

void RemoteCache::put(const std::string& key, const EntryFiles& files) {
  if (!options_.write) return;
  std::vector<OutputFile> record;
  const auto upload = [&](const std::string& path, const std::string& bytes) {
    if (!on_) return;
    const Response response = transfer(path, &bytes, most_record);
    if (response.arrived && response.status / 100 != 2) off(fmt::format("it refused an upload: HTTP status {}", response.status));
  };
  for (const auto& [name, bytes] :
       {std::pair{meta_file, &files.meta}, {object_file, &files.object}, {source_file, &files.source}}) {
    record.push_back({name, sha256(*bytes), bytes->size()});
    upload("/cas/" + record.back().sha256, *bytes);
  }
  upload("/ac/" + key, encode_action_result(record)); // last: a record names only what is there
}

} // namespace kiln
