// The remote over TLS, with certificates made here: an entry comes only from the host that the address names, vouched for by an authority
// that is asked for, now, and over a version of TLS that is whole. Whoever else listens there is not even asked for a kernel.
#include "gen/error.h"
#include "tests/fuzz/seeds.h"
#include "tests/runtime/signed_entries.h"
#include <cstdlib>
#include <fcntl.h>
#include <fmt/format.h>
#include <fstream>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <random>

namespace tls_tests {
using namespace kiln;
using namespace kiln::test;
namespace fs = std::filesystem;

namespace {

using Key = std::shared_ptr<EVP_PKEY>;
using Certificate = std::shared_ptr<X509>;
constexpr long day = 86400; // s

struct Identity {
  Key key;
  Certificate certificate;
};

void extend(X509* certificate, X509* issuer, int what, const std::string& value) {
  X509V3_CTX context;
  X509V3_set_ctx_nodb(&context);
  X509V3_set_ctx(&context, issuer, certificate, nullptr, nullptr, 0);
  X509_EXTENSION* extension = X509V3_EXT_conf_nid(nullptr, &context, what, value.c_str());
  REQUIRE(extension != nullptr);
  X509_add_ext(certificate, extension, -1);
  X509_EXTENSION_free(extension);
}

// Signed by `issuer`, or by itself: then it is an authority. `names`: "IP:127.0.0.1". Valid from `begin` to `end`, in seconds from now.
Identity identity(const std::string& common_name, const Identity* issuer, const std::string& names, long begin, long end) {
  static long serial = 1;
  Identity made{Key(EVP_PKEY_Q_keygen(nullptr, nullptr, "EC", "P-256"), EVP_PKEY_free), Certificate(X509_new(), X509_free)};
  X509* const x = made.certificate.get();
  X509_set_version(x, 2);
  ASN1_INTEGER_set(X509_get_serialNumber(x), serial++);
  X509_gmtime_adj(X509_getm_notBefore(x), begin);
  X509_gmtime_adj(X509_getm_notAfter(x), end);
  X509_NAME_add_entry_by_txt(X509_get_subject_name(x), "CN", MBSTRING_ASC, reinterpret_cast<const unsigned char*>(common_name.c_str()), -1,
                             -1, 0);
  X509* const by = issuer == nullptr ? x : issuer->certificate.get();
  X509_set_issuer_name(x, X509_get_subject_name(by));
  X509_set_pubkey(x, made.key.get());
  if (issuer == nullptr) extend(x, by, NID_basic_constraints, "critical,CA:TRUE");
  else extend(x, by, NID_subject_alt_name, names);
  REQUIRE(X509_sign(x, issuer == nullptr ? made.key.get() : issuer->key.get(), EVP_sha256()) > 0);
  return made;
}

fs::path in_file(const fs::path& path, const Certificate& certificate) {
  std::FILE* const file = std::fopen(path.c_str(), "w");
  PEM_write_X509(file, certificate.get());
  std::fclose(file);
  return path;
}

// Answers as BadServer does, over TLS of at most `newest`.
class TlsServer {
public:
  TlsServer(const Identity& as, std::function<std::string(const std::string& head)> answer, int newest = TLS1_3_VERSION)
      : answer_(std::move(answer)), context_(SSL_CTX_new(TLS_server_method()), SSL_CTX_free) {
    SSL_CTX_set_security_level(context_.get(), 0); // to offer what is old
    SSL_CTX_set_min_proto_version(context_.get(), TLS1_VERSION);
    SSL_CTX_set_max_proto_version(context_.get(), newest);
    SSL_CTX_use_certificate(context_.get(), as.certificate.get());
    SSL_CTX_use_PrivateKey(context_.get(), as.key.get());
    thread_ = std::thread([this] { serve(); });
  }
  ~TlsServer() {
    stop_ = true;
    thread_.join();
  }
  std::string url() const { return "https://127.0.0.1:" + std::to_string(listener_.port); }
  int requests() const { return requests_; } // that came through TLS
  int connections() const { return connections_; }

private:
  void serve() {
    while (!stop_) {
      pollfd waiting{.fd = listener_.socket, .events = POLLIN, .revents = 0};
      if (poll(&waiting, 1, 10) <= 0) continue;
      const int client = accept(listener_.socket, nullptr, nullptr);
      const timeval patience{.tv_sec = 5, .tv_usec = 0};
      setsockopt(client, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
      ++connections_;
      const std::unique_ptr<SSL, void (*)(SSL*)> tls(SSL_new(context_.get()), SSL_free);
      SSL_set_fd(tls.get(), client);
      std::string head;
      char byte = 0;
      if (SSL_accept(tls.get()) == 1)
        while (head.find("\r\n\r\n") == std::string::npos && SSL_read(tls.get(), &byte, 1) == 1) head += byte;
      if (head.find("\r\n\r\n") != std::string::npos) {
        ++requests_;
        const std::string answer = answer_(head);
        SSL_write(tls.get(), answer.data(), static_cast<int>(answer.size()));
        SSL_shutdown(tls.get());
      }
      close(client);
    }
  }

  std::function<std::string(const std::string& head)> answer_;
  Listener listener_;
  std::shared_ptr<SSL_CTX> context_;
  std::atomic<bool> stop_{false};
  std::atomic<int> requests_{0}, connections_{0};
  std::thread thread_; // last
};

struct Asked {
  Origin origin = Origin::compiled;
  std::uint64_t paused = 0;
  std::string object; // the code that came of it
};

// What a host that is vouched for may answer by mistake or malice: some bytes changed, a piece left out, doubled or put in, the end cut
// off.
std::string damaged(std::string answer, std::mt19937_64& dice) {
  const auto below = [&](std::size_t count) { return static_cast<std::size_t>(dice() % std::max<std::size_t>(count, 1)); };
  for (std::size_t times = 1 + below(3); times > 0; --times) {
    const std::size_t at = below(answer.size()), length = 1 + below(std::min<std::size_t>(answer.size() - at, 40));
    switch (dice() % 5) {
    case 0: answer[at] = static_cast<char>(dice()); break;
    case 1: answer.erase(at, length); break;
    case 2: answer.insert(at, answer.substr(at, length)); break;
    case 3: answer.insert(at, std::string(length, static_cast<char>(dice()))); break;
    default: answer.resize(at); break;
    }
    if (answer.empty()) answer = "x"; // BadServer's "never" is another test
  }
  return answer;
}

Asked ask(const fs::path& folder, const std::string& url, const fs::path& authorities, const KernelRequest& request) {
  CacheOptions options{.folder = folder, .layers = {}, .remote = {}};
  options.remote.url = Url(url);
  options.remote.authorities = authorities;
  options.remote.connect_timeout = options.remote.timeout = std::chrono::seconds(10);
  FakeCache fake(options);
  const Found found = fake.cache.find_or_make(request, [&] { return fake_entry(request); });
  return {found.origin, fake.events->count("remote_paused"), found.kernel.object};
}

} // namespace

TEST_CASE("a remote is asked only where an authority vouches for its host now, over whole TLS") {
  signal(SIGPIPE, SIG_IGN); // of the server: clients hang up on it
  const Scratch scratch;
  const KernelRequest request = fake_request("k");
  const auto answer = [&](const std::string& head) { return answer_for(head, request, fake_entry(request)); };
  const Identity ours = identity("ours", nullptr, "", -day, day), theirs = identity("theirs", nullptr, "", -day, day);
  const fs::path trusted = in_file(scratch.path / "ours.pem", ours.certificate),
                 other = in_file(scratch.path / "theirs.pem", theirs.certificate);
  const Identity right = identity("right", &ours, "IP:127.0.0.1", -day, day),
                 expired = identity("late", &ours, "IP:127.0.0.1", -2 * day, -day),
                 not_yet = identity("early", &ours, "IP:127.0.0.1", day, 2 * day),
                 elsewhere = identity("elsewhere", &ours, "DNS:cache.example,IP:127.0.0.2", -day, day),
                 by_them = identity("by them", &theirs, "IP:127.0.0.1", -day, day);
  int n = 0;
  const auto from = [&](const TlsServer& server, const fs::path& authorities) {
    return ask(scratch.path / std::to_string(++n), server.url(), authorities, request);
  };
  {
    const TlsServer server(right, answer);
    CHECK(from(server, trusted).origin == Origin::remote);
    CHECK(server.requests() == 4);
    CHECK(from(server, other).origin == Origin::compiled); // another authority
    CHECK(from(server, {}).origin == Origin::compiled);    // none that the system trusts
    CHECK(server.requests() == 4);
    CHECK(server.connections() >= 6);
  }
  for (const Identity* wrong : {&expired, &not_yet, &elsewhere, &by_them}) {
    const TlsServer server(*wrong, answer);
    const Asked asked = from(server, trusted);
    CHECK(asked.origin == Origin::compiled);
    CHECK(asked.paused == 1);
    CHECK(server.connections() == 1);
    CHECK(server.requests() == 0);
  }
  const TlsServer old(right, answer, TLS1_1_VERSION);
  CHECK(from(old, trusted).origin == Origin::compiled);
  CHECK(old.connections() == 1);
  CHECK(old.requests() == 0);
}

// In a process of its own: OpenSSL reads its configuration once.
TEST_CASE("TLS 1.1 is refused where the system's OpenSSL would take it too") {
  const Scratch scratch;
  const fs::path config = scratch.path / "openssl.cnf";
  std::ofstream(config) << "openssl_conf = all\n[all]\nssl_conf = ssl\n[ssl]\nsystem_default = lax\n[lax]\nMinProtocol = TLSv1\n"
                           "CipherString = DEFAULT:@SECLEVEL=0\n";
  const std::string self = fs::read_symlink("/proc/self/exe").string();
  CHECK(std::system(fmt::format("OPENSSL_CONF={} {} -tc='a remote is asked only*' >/dev/null", config.string(), self).c_str()) == 0);
}

TEST_CASE("an https address never leads to a server without TLS") {
  const Scratch scratch;
  const KernelRequest request = fake_request("k");
  const Identity ours = identity("ours", nullptr, "", -day, day), right = identity("right", &ours, "IP:127.0.0.1", -day, day);
  const fs::path trusted = in_file(scratch.path / "ours.pem", ours.certificate);
  const BadServer plain([&](const std::string& head) { return answer_for(head, request, fake_entry(request)); });
  const TlsServer redirects(right, [&](const std::string& head) {
    const std::string path = head.substr(4, head.find(' ', 4) - 4);
    return "HTTP/1.1 302 Found\r\nLocation: " + plain.url() + path + "\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
  });
  CHECK(ask(scratch.path / "a", redirects.url(), trusted, request).origin == Origin::compiled);
  CHECK(redirects.requests() == 1);
  CHECK(plain.requests() == 0);
  const Asked spoken_to = ask(scratch.path / "b", "https" + plain.url().substr(4), trusted, request); // it hears a greeting of TLS
  CHECK(spoken_to.origin == Origin::compiled);
  CHECK(spoken_to.paused == 1);
}

// KILN_HOSTILE_ANSWERS: how many look-ups.
TEST_CASE("answers over TLS that are damaged anywhere: the right kernel or none") {
  signal(SIGPIPE, SIG_IGN);
  const Scratch scratch;
  const KernelRequest request = fake_request("k");
  const EntryFiles right = fake_entry(request);
  const Identity ours = identity("ours", nullptr, "", -day, day), host = identity("host", &ours, "IP:127.0.0.1", -day, day);
  const fs::path trusted = in_file(scratch.path / "ours.pem", ours.certificate), folder = scratch.path / "c";
  std::mt19937_64 dice(1);
  int honest = 0; // answers before the damaged one
  const TlsServer server(host, [&](const std::string& head) {
    const std::string answer = answer_for(head, request, right);
    return honest-- > 0 ? answer : damaged(answer, dice);
  });
  std::uint64_t compiled = 0, count = kiln::testing::number_from("KILN_HOSTILE_ANSWERS", 40);
  for (std::uint64_t i = 0; i < count; ++i) {
    honest = static_cast<int>(i % 4); // the record, then three files
    const Asked asked = ask(folder, server.url(), trusted, request);
    REQUIRE(asked.object == right.object);
    compiled += asked.origin == Origin::compiled ? 1 : 0;
    fs::remove_all(folder);
  }
  MESSAGE(count, " look-ups with damaged answers, ", compiled, " of them compiled");
  CHECK(compiled > count / 2); // else little was damaged
}

TEST_CASE("a libcurl that would look names up without a bound of time is refused") {
  for (const char* url : {"https://cache.example:8080/kiln", "https://user:word@cache.example"}) {
    CHECK_THROWS_WITH_AS(check_resolver(Url(url), false), doctest::Contains("cache.example without a bound"), EnvironmentError);
    CHECK_NOTHROW(check_resolver(Url(url), true));
  }
  for (const char* url : {"https://127.0.0.1:8080/kiln", "https://[::1]:80", ""}) CHECK_NOTHROW(check_resolver(Url(url), false));
}

} // namespace tls_tests
