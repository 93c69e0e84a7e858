// The remote cache: against a real nginx, and against servers that are down, slow, lying, or go away in the middle.
#include "gen/error.h"
#include "runtime/cache/remote/action_result.h"
#include "runtime/digest.h"
#include "runtime/stopwatch.h"
#include "tests/runtime/fake_kernel.h"
#include "tests/runtime/servers.h"
#include <doctest/doctest.h>
#include <random>

namespace remote_tests {
using namespace kiln;
using namespace kiln::test;
namespace fs = std::filesystem;

namespace {

struct Client {
  std::vector<std::string> log;
  std::shared_ptr<EventLog> events = std::make_shared<EventLog>([this](const std::string& line) { log.push_back(line); });
  KernelCache cache;
  Client(const fs::path& folder, const std::string& url, bool write = false, int patience_ms = 10000, int pause_ms = 3600000)
      : cache({.folder = folder,
               .layers = {},
               .remote = {.url = Url(url),
                          .insecure = true, // of a loopback that is this test's alone
                          .write = write,
                          .connect_timeout = std::chrono::milliseconds(patience_ms),
                          .timeout = std::chrono::milliseconds(patience_ms),
                          .first_pause = std::chrono::milliseconds(pause_ms),
                          .max_pause = std::chrono::milliseconds(pause_ms)}},
              events, identify) {}
  Found get(const KernelRequest& request) {
    return cache.find_or_make(request, [&] { return fake_entry(request); });
  }
};

// The server's answers for one entry, by path.
std::string answer_for(const std::string& head, const KernelRequest& request, const EntryFiles& files) {
  std::vector<OutputFile> record;
  for (const auto& [name, bytes] : {std::pair{meta_file, &files.meta}, {object_file, &files.object}, {source_file, &files.source}}) {
    record.push_back({name, sha256(*bytes), bytes->size()});
    if (head.starts_with("GET /cas/" + record.back().sha256)) return http(*bytes);
  }
  if (head.starts_with("GET /ac/" + cache_key(request, fake_compiler).hex)) return http(encode_action_result(record));
  return http("", "404 Not Found");
}

} // namespace

TEST_CASE("an action result is encoded as Bazel's protocol says, and decoded from any bytes without harm") {
  const std::vector<OutputFile> files{{"kernel.co", std::string(64, 'a'), 300}, {"meta.json", std::string(64, 'b'), 5}};
  const std::string bytes = encode_action_result(files);
  CHECK(decode_action_result(bytes) == files);
  // By hand: field 2, length 82: field 1 "kernel.co"; field 2, length 69: field 1, 64 digits; field 2, the varint 300.
  CHECK(bytes.substr(0, 17) == std::string("\x12\x52\x0a\x09kernel.co\x12\x45\x0a\x40", 17));
  CHECK(bytes.substr(17 + 64, 3) == "\x10\xac\x02");
  // What other writers add is skipped: an exit code (4), an empty message (1), a 64-bit field.
  CHECK(decode_action_result(std::string("\x20\x00\x0a\x00\x49", 5) + "12345678" + bytes) == files);
  CHECK_FALSE(decode_action_result("\x12"));
  CHECK_FALSE(decode_action_result(bytes.substr(0, bytes.size() - 1)));
  std::mt19937 random(7);
  for (int i = 0; i < 20000; ++i) {
    std::string noise = bytes.substr(0, random() % bytes.size());
    for (int k = 0; k < 4 && !noise.empty(); ++k) noise[random() % noise.size()] = static_cast<char>(random());
    decode_action_result(noise); // must end, and touch nothing that is not there: the sanitizers watch
  }
}

TEST_CASE("nginx keeps what one machine compiled, and another machine finds it") {
  const Scratch scratch;
  Nginx server(scratch.path / "nginx");
  if (!server.running()) {
    MESSAGE("skipped: there is no nginx");
    return;
  }
  const KernelRequest request = fake_request("k"), other = fake_request("other");
  {
    Client reader(scratch.path / "a", server.url());
    CHECK(reader.get(request).origin == Origin::compiled);
    CHECK_FALSE(fs::exists(server.files() / "ac")); // read-only unless told to write
    Client writer(scratch.path / "b", server.url(), true);
    CHECK(writer.get(request).origin == Origin::compiled);
    CHECK(writer.events->counts().empty());
  }
  CHECK(fs::exists(server.files() / "ac" / cache_key(request, fake_compiler).hex));
  Client elsewhere(scratch.path / "c", server.url());
  const Found found = elsewhere.get(request);
  CHECK(found.origin == Origin::remote);
  CHECK(found.kernel.object == fake_entry(request).object);
  CHECK(elsewhere.get(request).origin == Origin::folder); // kept
  CHECK(elsewhere.get(other).origin == Origin::compiled);
  CHECK(elsewhere.events->counts().empty());

  // A file on the server is damaged: nothing of it is used, and the server is left alone for now.
  for (const auto& file : fs::directory_iterator(server.files() / "cas")) {
    std::string bytes = contents(file.path());
    bytes[bytes.size() / 2] = static_cast<char>(bytes[bytes.size() / 2] ^ 1);
    std::ofstream(file.path(), std::ios::binary) << bytes;
  }
  Client careful(scratch.path / "d", server.url());
  CHECK(careful.get(request).origin == Origin::compiled);
  CHECK(careful.events->count("remote_rejected") == 1);
  CHECK(careful.events->count("remote_paused") == 1);

  // It goes away in the middle of a run.
  Client late(scratch.path / "e", server.url());
  CHECK(late.get(other).origin == Origin::compiled);
  CHECK(late.events->counts().empty());
  server.stop();
  for (int i = 0; i < 5; ++i) CHECK(late.get(fake_request("k" + std::to_string(i))).origin == Origin::compiled);
  CHECK(late.events->count("remote_paused") == 1);
  REQUIRE(late.log.size() == 1);
  CHECK(late.log[0].find("is not asked for") != std::string::npos);
}

TEST_CASE("a server that is down or silent costs one short wait a pause") {
  const Scratch scratch;
  const std::string nobody = "http://127.0.0.1:" + std::to_string(Listener().port); // closed again
  const BadServer silent([](const std::string&) { return std::string(); });
  int n = 0;
  for (const std::string& url : {nobody, silent.url()}) {
    Client client(scratch.path / std::to_string(++n), url, true, 300);
    const Stopwatch watch;
    for (int i = 0; i < 20; ++i) CHECK(client.get(fake_request("k" + std::to_string(i))).origin == Origin::compiled);
    CHECK(watch.milliseconds() < 6000);
    CHECK(client.events->counts() == std::map<std::string, std::uint64_t>{{"remote_paused", 1}});
    CHECK(client.log.size() == 1);
  }
  CHECK(silent.requests() == 1);
}

TEST_CASE("a server that lies is never believed") {
  const KernelRequest request = fake_request("k"), two = fake_request("two");
  const EntryFiles right = fake_entry(request), other = fake_entry(two);
  EntryFiles mixed = right;
  mixed.object = other.object;
  std::string cut = http(right.meta);
  cut.resize(cut.size() - 10);
  using Answer = std::function<std::string(const std::string&)>;
  const std::vector<std::pair<const char*, Answer>> lies{
      {"wrong bytes of the right length",
       [&](const std::string& head) {
         return head.starts_with("GET /ac/") ? answer_for(head, request, right) : http(std::string(right.meta.size(), 'x'));
       }},
      {"another kernel's entry under this key", [&](const std::string& head) { return answer_for(head, request, other); }},
      {"another kernel's code, with its right digest", [&](const std::string& head) { return answer_for(head, request, mixed); }},
      {"a record that is none", [&](const std::string&) { return http("<html>Welcome</html>"); }},
      {"an empty record", [&](const std::string&) { return http(""); }},
      {"an endless file",
       [&](const std::string& head) {
         return head.starts_with("GET /ac/") ? answer_for(head, request, right) : http(std::string(10u << 20, 'x'));
       }},
      {"an error", [&](const std::string&) { return http("", "500 Internal Server Error"); }},
      {"a door", [&](const std::string&) { return http("", "403 Forbidden"); }},
      {"a redirect",
       [&](const std::string&) { return std::string("HTTP/1.1 302 Found\r\nLocation: file:///etc/passwd\r\nContent-Length: 0\r\n\r\n"); }},
      {"half an answer", [&](const std::string& head) { return head.starts_with("GET /ac/") ? answer_for(head, request, right) : cut; }},
      {"noise", [&](const std::string&) { return std::string("\1\2\3\4\r\n\r\n"); }},
  };
  for (const auto& [what, answer] : lies) {
    CAPTURE(what);
    const Scratch scratch;
    const BadServer server(answer);
    Client client(scratch.path, server.url());
    const Found found = client.get(request);
    CHECK(found.origin == Origin::compiled);
    CHECK(found.kernel.object == right.object);
    CHECK(client.events->count("remote_paused") == 1);
    const int asked = server.requests();
    CHECK(client.get(two).origin == Origin::compiled);
    CHECK(server.requests() == asked); // left alone
  }
  // And the same server without a lie is believed.
  const Scratch scratch;
  const BadServer honest([&](const std::string& head) { return answer_for(head, request, right); });
  Client client(scratch.path, honest.url());
  CHECK(client.get(request).origin == Origin::remote);
  CHECK(client.get(two).origin == Origin::compiled);
  CHECK(client.events->counts().empty());
}

TEST_CASE("a server that comes back is asked again after a pause, by one request at a time") {
  const Scratch scratch;
  const KernelRequest request = fake_request("k");
  const EntryFiles right = fake_entry(request);
  std::atomic<bool> well{false};
  const BadServer server(
      [&](const std::string& head) { return well ? answer_for(head, request, right) : http("", "503 Service Unavailable"); });
  Client client(scratch.path / "a", server.url(), false, 10000, 300);
  for (int i = 0; i < 3; ++i) CHECK(client.get(fake_request("other" + std::to_string(i))).origin == Origin::compiled);
  CHECK(client.events->count("remote_paused") >= 1);
  const int asked = server.requests();
  well = true;
  const Stopwatch watch;
  Origin origin = Origin::compiled;
  for (int i = 0; i < 1000 && origin != Origin::remote && watch.milliseconds() < 60000; ++i, usleep(20000)) {
    const std::optional<Found> found = client.cache.find(request);
    if (found) origin = found->origin;
  }
  CHECK(origin == Origin::remote);
  CHECK(server.requests() > asked);
}

TEST_CASE("an address is shown without what is secret in it") {
  const std::pair<const char*, const char*> cases[] = {
      {"https://cache.example:8080/kiln", "https://cache.example:8080/kiln"},
      {"https://user:secret@cache.example/kiln", "https://...@cache.example/kiln"},
      {"https://user:se@cret@cache.example", "https://...@cache.example"},
      {"https://user:se/cr@et@cache.example", "https://...@cache.example"},
      {"https://user:se?cret#x@cache.example", "https://...@cache.example"},
      {"https://cache.example/?token=secret", "https://cache.example/?..."},
      {"https://cache.example/kiln#secret", "https://cache.example/kiln#..."},
      {"user:secret@cache.example", "...@cache.example"},
      {"https://h/\x1b[2J\r\nkiln: fine\x7f", "https://h/?[2J??kiln: fine?"}, // what a log on a terminal must not obey
      {"", ""},
  };
  for (const auto& [url, shown] : cases) {
    CAPTURE(url);
    CHECK(Url(url).shown() == shown);
    CHECK(Url(url).shown().find("secret") == std::string::npos);
  }
  CHECK(Url("https://h/p/?token=t").secret("/ac/1") == "https://h/p/ac/1?token=t");

  const Scratch scratch; // and nothing that is said holds it
  Client client(scratch.path, "http://user:se@cret@127.0.0.1:" + std::to_string(Listener().port) + "?token=cret");
  client.get(fake_request("k"));
  REQUIRE(client.log.size() == 1);
  CHECK(client.log[0].find("cret") == std::string::npos);
  CHECK(client.log[0].find("...@127.0.0.1") != std::string::npos);
  for (const char* command : {"env", "env --json"}) {
    const CliResult said = kiln::test::kiln(command, "KILN_CACHE_URL='https://user:se@cret@h/p?token=cret'");
    CHECK((said.out + said.err).find("cret") == std::string::npos);
    CHECK(said.out.find("https://...@h/p?...") != std::string::npos);
  }
}

TEST_CASE("a remote without encryption is refused unless it is asked for by name") {
  const auto open = [](const char* url, bool insecure) {
    CacheOptions options;
    options.remote.url = Url(url);
    options.remote.insecure = insecure;
    KernelCache(options, std::make_shared<EventLog>(LogFunction()), identify);
  };
  CHECK_THROWS_AS(open("http://user:secret@cache.example", false), UserError);
  CHECK_THROWS_AS(open("ftp://cache.example", false), UserError);
  CHECK_NOTHROW(open("http://cache.example", true));
  CHECK_NOTHROW(open("https://cache.example", false));
}

} // namespace remote_tests
