// Whose bytes are run: signatures against a lying server, a replayed entry and a stripped signature, in layers, imports and the
// remote; entries that pass every checksum and would corrupt the host; memory that hostile files can take.
#include "gen/error.h"
#include "runtime/cache/folder/archive.h"
#include "runtime/cache/folder/cache_folder.h"
#include "runtime/cache/folder/transfer.h"
#include "runtime/cache/json.h"
#include "runtime/cache/remote/action_result.h"
#include "runtime/digest.h"
#include "tests/compile/run_cli.h"
#include "tests/runtime/fake_kernel.h"
#include "tests/runtime/processes.h"
#include "tests/runtime/servers.h"
#include "tests/runtime/signed_entries.h"
#include <doctest/doctest.h>
#include <fstream>
#include <sstream>
#include <sys/resource.h>

namespace whose_bytes_tests {
using namespace kiln;
using namespace kiln::test;
namespace fs = std::filesystem;

TEST_CASE("with a public key, a remote's entries count only if it signed them") {
  const Scratch scratch;
  const Keys ours(scratch.path, "ours"), theirs(scratch.path, "theirs");
  const KernelRequest request = fake_request("k"), other = fake_request("other");
  EntryFiles right = signed_entry(request, ours), stripped = right, by_them = signed_entry(request, theirs), tampered = right;
  stripped.signature.clear();
  tampered.object[100] = static_cast<char>(tampered.object[100] ^ 1);
  tampered.meta = resealed(right.meta, sha256(right.object), sha256(tampered.object));
  EntryFiles replayed = signed_entry(other, ours), mixed = right;
  mixed.signature = replayed.signature; // a good signature, of another entry
  const auto asked = [&](const EntryFiles& files, const char* event) {
    static int n = 0;
    const BadServer server([&](const std::string& head) { return answer_for(head, request, files); });
    CacheOptions options{.folder = scratch.path / std::to_string(++n), .layers = {}, .public_key = ours.open, .remote = {}};
    options.remote.url = Url(server.url());
    options.remote.insecure = true;
    FakeCache fake(options);
    const Found found = fake.cache.find_or_make(request, [&] { return fake_entry(request); });
    CHECK(found.kernel.object == right.object);
    if (event != nullptr) CHECK(fake.events->count(event) == 1);
    return found.origin;
  };
  CHECK(asked(right, nullptr) == Origin::remote);
  CHECK(asked(stripped, "entry_unsigned") == Origin::compiled);
  CHECK(asked(by_them, "entry_unsigned") == Origin::compiled);
  CHECK(asked(tampered, "entry_unsigned") == Origin::compiled); // every checksum is right
  CHECK(asked(mixed, "entry_unsigned") == Origin::compiled);
  CHECK(asked(replayed, "remote_rejected") == Origin::compiled); // well signed, and for another key
}

TEST_CASE("with a public key, layers and imports count only if they are signed; what this user compiled needs no signature") {
  const Scratch scratch;
  const Keys ours(scratch.path, "ours"), theirs(scratch.path, "theirs");
  const fs::path layer = scratch.path / "layer", own = scratch.path / "own";
  const KernelRequest request = fake_request("k");
  {
    FakeCache fake(CacheOptions{.folder = layer, .layers = {}, .shipped = true, .remote = {}});
    fake.cache.find_or_make(request, [&] { return fake_entry(request); });
  }
  const auto origin = [&](const fs::path& key, const char* event) {
    FakeCache fake(CacheOptions{.folder = {}, .layers = {layer}, .public_key = key, .remote = {}});
    const auto found = fake.cache.find(request);
    CHECK(fake.events->count("entry_unsigned") == (event != nullptr ? 1 : 0));
    return found ? found->origin : Origin::compiled;
  };
  const std::string tar = (scratch.path / "a.tar").string(), with_key = "KILN_CACHE_PUBLIC_KEY=" + ours.open.string();
  const auto cli = [](const std::string& arguments, const std::string& variables = {}) {
    return kiln::test::kiln("cache " + arguments, variables);
  };
  const std::string in_layer = " -c " + layer.string();
  CHECK(origin(ours.open, "entry_unsigned") == Origin::compiled);
  CHECK(origin({}, nullptr) == Origin::layer);
  CHECK(cli("verify --signed" + in_layer, with_key).exit_code == 1);
  CHECK(cli("export " + tar + in_layer).exit_code == 0);
  CHECK(cli("import " + tar + " -c " + (scratch.path / "in1").string(), with_key).err.find("it is not signed") != std::string::npos);
  CHECK(cli("merge " + layer.string() + " -o " + (scratch.path / "in2").string(), with_key).exit_code == 1);

  CHECK(cli("sign --key " + theirs.secret.string() + in_layer).exit_code == 0);
  CHECK(origin(ours.open, "entry_unsigned") == Origin::compiled);
  CHECK(cli("sign --key " + ours.secret.string() + in_layer).err.find("1 signed") != std::string::npos);
  CHECK(origin(ours.open, nullptr) == Origin::layer);
  CHECK(cli("verify --signed" + in_layer, with_key).exit_code == 0);
  CHECK(cli("export " + tar + in_layer).exit_code == 0); // with its signature
  CHECK(cli("import " + tar + " -c " + (scratch.path / "in3").string(), with_key).err.find("1 imported") != std::string::npos);
  CHECK(cli("verify --signed -c " + (scratch.path / "in3").string(), with_key).exit_code == 0);

  FakeCache mine(CacheOptions{.folder = own, .layers = {}, .public_key = ours.open, .remote = {}});
  mine.cache.find_or_make(request, [&] { return fake_entry(request); });
  CHECK(mine.cache.find(request));
  const auto opens = [](const fs::path& key) {
    KernelCache({.folder = {}, .layers = {}, .public_key = key, .remote = {}}, std::make_shared<EventLog>(LogFunction()), identify);
  };
  CHECK_THROWS_AS(opens(scratch.path / "nowhere"), UserError); // never as if none were asked for
  CHECK_THROWS_AS(opens(ours.secret), UserError);
}

TEST_CASE("push sends what is intact, with its signature, and says what it did not send") {
  const Scratch scratch;
  const Keys ours(scratch.path, "ours");
  const std::string folder = (scratch.path / "c").string();
  const KernelRequest one = fake_request("one"), two = fake_request("two"), damaged = fake_request("damaged");
  {
    FakeCache fake(folder);
    for (const KernelRequest& request : {one, two, damaged}) fake.cache.find_or_make(request, [&] { return fake_entry(request); });
  }
  CHECK(kiln::test::kiln("cache sign --key " + ours.secret.string() + " " + folder).exit_code == 0);
  const std::string key = cache_key(damaged, fake_compiler).hex;
  std::ofstream(fs::path(folder) / "v1" / key.substr(0, 2) / key / source_file) << "other";
  const auto push = [&](const std::string& variables) { return kiln::test::kiln("cache push " + folder, variables); };
  CHECK(push("KILN_CACHE_URL=").exit_code == 2);
  const std::string nobody = "KILN_CACHE_URL=http://127.0.0.1:" + std::to_string(Listener().port);
  const CliResult open = push(nobody);
  CHECK(open.exit_code == 2);
  CHECK(open.err.find("is not https") != std::string::npos);
  const CliResult down = push(nobody + " KILN_CACHE_URL_INSECURE=1");
  CHECK(down.exit_code == 1);
  CHECK(down.err.find("0 sent, 0 were there, 3 left out") != std::string::npos);
  Nginx server(scratch.path / "nginx");
  if (!server.running()) {
    MESSAGE("skipped: there is no nginx");
    return;
  }
  const CliResult sent = push("KILN_CACHE_URL_INSECURE=1 KILN_CACHE_URL=" + server.url());
  CHECK(sent.exit_code == 1); // one is damaged
  CHECK(sent.err.find("2 sent, 0 were there, 1 left out") != std::string::npos);
  CHECK(sent.err.find(key) != std::string::npos);
  CacheOptions options{.folder = scratch.path / "elsewhere", .layers = {}, .public_key = ours.open, .remote = {}};
  options.remote.url = Url(server.url());
  options.remote.insecure = true;
  FakeCache elsewhere(options);
  for (const KernelRequest& request : {one, two}) CHECK(elsewhere.cache.find(request)->origin == Origin::remote);
  CHECK_FALSE(elsewhere.cache.find(damaged));
  CHECK(elsewhere.events->counts().empty());
}

TEST_CASE("an entry whose checksums are right and whose launch would corrupt the host is corrupt") {
  const KernelRequest request = fake_request("k");
  const EntryFiles files = fake_entry(request);
  const CacheKey key = cache_key(request, fake_compiler);
  REQUIRE_NOTHROW(read_entry(files.meta, files.object, &key));
  const std::pair<const char*, const char*> changes[] = {{"\"offset\": 8", "\"offset\": -8"},
                                                         {"\"offset\": 8", "\"offset\": 4"},
                                                         {"\"offset\": 8", "\"offset\": 9"},
                                                         {"\"offset\": 8", "\"offset\": 4096"},
                                                         {"\"offset\": 8", "\"offset\": 2147483644"},
                                                         {"\"offset\": 8", "\"offset\": 8589934592"},
                                                         {"\"size\": 8", "\"size\": 127"},
                                                         {"\"size\": 8", "\"size\": 0"},
                                                         {"\"size\": 4", "\"size\": 8"},
                                                         {"\"alignment\": 16", "\"alignment\": -16"},
                                                         {"\"threads\": 256", "\"threads\": 0"},
                                                         {"\"threads\": 256", "\"threads\": -64"},
                                                         {"\"threads\": 256", "\"threads\": 100"},
                                                         {"\"threads\": 256", "\"threads\": 2048"},
                                                         {"\"units\": 1", "\"units\": 0"},
                                                         {"\"units_per_block\": 4", "\"units_per_block\": 0"},
                                                         {"\"units_per_block\": 4", "\"units_per_block\": -1"},
                                                         {"\"blocks_per_unit\": 1", "\"blocks_per_unit\": 0"},
                                                         {"\"blocks_per_unit\": 1", "\"blocks_per_unit\": 9223372036854775807"},
                                                         {"\"workspace_bytes\": 0", "\"workspace_bytes\": 4096"},
                                                         {"\"workspace_bytes\": 0", "\"workspace_bytes\": -1"},
                                                         {"\"kernel\": \"k\"", "\"kernel\": \"other\""},
                                                         {"\"kind\": \"input\"", "\"kind\": \"scalar\""},
                                                         // and what is no meta.json of this Kiln
                                                         {"\"offset\": 8", "\"offset\": 8.0"},
                                                         {"\"offset\": 8", "\"offset\": 08x"},
                                                         {"\"offset\": 8", "\"offset\": \"8\""},
                                                         {"\"offset\": 8,", "\"offset\": 8"},
                                                         {"\"offset\": 8,", "\"offset\": 8, \"offset\": 8,"},
                                                         {"\"offset\": 8,", ""},
                                                         {"\"name\": \"x\"", "\"name\": \"\xff\""},
                                                         {"\"name\": \"x\"", "\"name\": \"\\q\""},
                                                         {"\"name\": \"x\"", "\"name\": \"\\u12"},
                                                         {"\"arguments\": [", "\"arguments\": [,"},
                                                         {"\"schedule\": ", "\"other\": "}};
  for (const auto& [from, to] : changes) {
    CAPTURE(to);
    CHECK_THROWS_AS(read_entry(resealed(files.meta, from, to), files.object, &key), CorruptEntry);
  }
}

TEST_CASE("what a hostile file claims takes no memory: tar headers, JSON, records") {
  const Scratch scratch;
  // A tar whose only header says 1 GiB, and ends.
  std::ostringstream archive;
  write_archive_file(archive, "v1/ab/x", std::string(1, 'x'));
  std::string bytes = archive.str().substr(0, 512);
  bytes.replace(124, 11, "10000000000"); // 1 GiB in octal
  std::fill_n(bytes.begin() + 148, 8, ' ');
  unsigned sum = 0;
  for (const char c : bytes) sum += static_cast<unsigned char>(c);
  char digits[8];
  std::snprintf(digits, sizeof digits, "%06o", sum);
  bytes.replace(148, 7, std::string(digits, 7));
  const auto limited = [](const auto& work) {
    return exit_code_of([&] {
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
      const rlimit limit{1u << 29, 1u << 29}; // 512 MiB of address space: less than was claimed
      setrlimit(RLIMIT_AS, &limit);
#endif
      return work();
    });
  };
  CHECK(limited([&] {
          std::istringstream in(bytes);
          try {
            read_archive(in, "hostile.tar", [](const std::string&, const std::string&) {});
          } catch (const UserError&) {
            return 0;
          }
          return 1;
        }) == 0);
  CHECK(limited([&] {
          try {
            parse_json(std::string(16u << 20, '['));
          } catch (const nlohmann::json::exception&) {
            return 0;
          }
          return 1;
        }) == 0);
  CHECK_NOTHROW(parse_json("{\"a[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[\": \"\\\"[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[\"}"));
  std::string record;
  for (int i = 0; i < 30000; ++i) record += std::string("\x12\x00", 2);
  CHECK_FALSE(decode_action_result(record));
}

} // namespace whose_bytes_tests
