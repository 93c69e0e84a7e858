// Who compiled an entry: with a public key, a shared cache gives what this user compiled and what is signed, whatever members put into
// its entries; and a folder remembers what came from elsewhere, whenever a key is set or taken out.
#include "runtime/cache/folder/cache_folder.h"
#include "tests/compile/run_cli.h"
#include "tests/runtime/processes.h"
#include "tests/runtime/signed_entries.h"
#include <fstream>
#include <sys/stat.h>

namespace provenance_tests {
using namespace kiln;
using namespace kiln::test;
namespace fs = std::filesystem;

namespace {

constexpr uid_t alice = 60001, bob = 60002;
constexpr gid_t team = 60100;

CacheOptions options_of(const fs::path& folder, const fs::path& key, bool shared = false) {
  return {.folder = folder, .layers = {}, .trust_shared = shared, .public_key = key, .remote = {}};
}

Found get(FakeCache& fake, const std::string& name) {
  const KernelRequest request = fake_request(name);
  return fake.cache.find_or_make(request, [&] { return fake_entry(request); });
}

// The same kernel with other code, every checksum right.
EntryFiles forged(const std::string& name) {
  EntryFiles files = fake_entry(fake_request(name));
  const std::string before = sha256(files.object);
  files.object[100] = static_cast<char>(files.object[100] ^ 1);
  files.meta = resealed(files.meta, before, sha256(files.object));
  return files;
}

void replace(const fs::path& file, const std::string& bytes) {
  fs::remove(file);
  std::ofstream(file, std::ios::binary) << bytes;
}

// Exit codes of children: which of the steps was wrong.
int loads_forged(const fs::path& folder, const fs::path& key) {
  FakeCache fake(options_of(folder, key, true));
  if (fake.cache.find(fake_request("k"))) return 1;
  if (fake.events->count("entry_unsigned") != 1) return 2;
  if (get(fake, "k").origin != Origin::compiled) return 3;
  const auto again = fake.cache.find(fake_request("k")); // what was in the way was replaced
  if (!again || again->kernel.object != fake_entry(fake_request("k")).object) return 4;
  return fake.events->count("not_stored") == 0 ? 0 : 5;
}

} // namespace

TEST_CASE("a member of a shared cache gets no code past another member's public key") {
  const Scratch scratch;
  const Keys ours(scratch.path, "ours");
  chmod(scratch.path.c_str(), 0755);
  const fs::path folder = scratch.path / "shared";
  fs::create_directory(folder);
  if (chown(folder.c_str(), static_cast<uid_t>(-1), team) != 0 || chmod(folder.c_str(), 02770) != 0) {
    MESSAGE("skipped: two users (this is not root)");
    return;
  }
  const auto compiles = [&] {
    FakeCache fake(options_of(folder, ours.open, true));
    return get(fake, "k").origin == Origin::compiled && get(fake, "k").origin == Origin::folder &&
                   get(fake, "other").origin == Origin::compiled
               ? 0
               : 1;
  };
  const auto loads = [&] { return loads_forged(folder, ours.open); };
  const fs::path entry = entry_path(folder, fake_request("k"));
  const EntryFiles other_code = forged("k");
  REQUIRE(as_user(alice, team, 0077, compiles) == 0);

  // Within alice's entry, which stays hers.
  CHECK(as_user(bob, team, 0027, [&] {
          replace(entry / object_file, other_code.object);
          replace(entry / meta_file, other_code.meta);
          return 0;
        }) == 0);
  struct stat info{};
  REQUIRE(stat(entry.c_str(), &info) == 0);
  REQUIRE(info.st_uid == alice);
  CHECK(as_user(alice, team, 0077, loads) == 0);

  // As an entry of his own in her folder, with her note of another kernel beside it.
  CHECK(as_user(bob, team, 0027, [&] {
          for (const auto& [name, bytes] : {std::pair{object_file, &other_code.object}, {meta_file, &other_code.meta}})
            replace(entry / name, *bytes);
          fs::remove(entry / compiled_file);
          fs::rename(entry_path(folder, fake_request("other")) / compiled_file, entry / compiled_file);
          return 0;
        }) == 0);
  CHECK(as_user(alice, team, 0077, loads) == 0);

  // His whole entry, unsigned, is replaced where a key is set.
  CHECK(as_user(bob, team, 0027, [&] {
          fs::rename(entry, folder / "staging" / "away");
          CacheFolder(folder, {.writable = true, .trust = Trust::anyone})
              .publish(cache_key(fake_request("k"), fake_compiler).hex, other_code);
          return 0;
        }) == 0);
  CHECK(as_user(alice, team, 0077, loads) == 0);
}

TEST_CASE("a key that is set late, or taken out, reaches what a folder has from a remote") {
  const Scratch scratch;
  const Keys ours(scratch.path, "ours"), theirs(scratch.path, "theirs");
  const fs::path folder = scratch.path / "c";
  const KernelRequest request = fake_request("k");
  const auto from_remote = [&](const EntryFiles& files, const fs::path& key) {
    fs::remove_all(folder);
    const BadServer server([&](const std::string& head) { return answer_for(head, request, files); });
    CacheOptions options = options_of(folder, key);
    options.remote.url = Url(server.url());
    options.remote.insecure = true;
    FakeCache fake(options);
    CHECK(fake.cache.find(request)->origin == Origin::remote);
    CHECK(fake.cache.find(request)->origin == Origin::folder);
  };
  const auto served = [&](const fs::path& key) {
    FakeCache fake(options_of(folder, key));
    const bool found = fake.cache.find(request).has_value();
    CHECK(fake.events->count("entry_unsigned") == (found ? 0 : 1));
    return found;
  };
  from_remote(forged("k"), {}); // without a key, whoever may write to the server decides
  CHECK(served({}));
  CHECK_FALSE(served(ours.open));
  from_remote(signed_entry(request, ours), ours.open);
  CHECK(served(ours.open));
  CHECK_FALSE(served(theirs.open)); // the key was taken out

  FakeCache careful(options_of(folder, theirs.open));
  CHECK(get(careful, "k").origin == Origin::compiled);
  CHECK(careful.cache.find(request)); // in the place of what must not be taken
}

TEST_CASE("what this user compiled before a key was set needs no signature; what was imported does") {
  const Scratch scratch;
  const Keys ours(scratch.path, "ours");
  const fs::path folder = scratch.path / "c", elsewhere = scratch.path / "elsewhere", tar = scratch.path / "a.tar";
  {
    FakeCache fake(options_of(folder, {}));
    get(fake, "k");
  }
  FakeCache with_key(options_of(folder, ours.open));
  CHECK(with_key.cache.find(fake_request("k")));
  CHECK(kiln::test::kiln("cache export " + tar.string() + " -c " + folder.string()).exit_code == 0);
  CHECK(kiln::test::kiln("cache import " + tar.string() + " -c " + elsewhere.string()).exit_code == 0);
  FakeCache imported(options_of(elsewhere, ours.open));
  CHECK_FALSE(imported.cache.find(fake_request("k")));
  CHECK(imported.events->count("entry_unsigned") == 1);
}

} // namespace provenance_tests
