// Whose files a cache takes, writes and deletes: never a stranger's, through no link, in no exchanged folder; a shared cache works
// for two real users; a disk that stumbles costs no entry; the bound holds for all processes; dumps stay private and few.
#include "gen/error.h"
#include "runtime/cache/folder/cache_folder.h"
#include "runtime/compile/dump.h"
#include "tests/compile/run_cli.h"
#include "tests/runtime/fake_kernel.h"
#include "tests/runtime/processes.h"
#include "tests/runtime/system_calls.h"
#include <doctest/doctest.h>
#include <fcntl.h>
#include <fstream>
#include <grp.h>
#include <sys/resource.h>
#include <sys/stat.h>

namespace whose_files_tests {
using namespace kiln;
using namespace kiln::test;
namespace fs = std::filesystem;

namespace {

constexpr uid_t alice = 60001, bob = 60002;
constexpr gid_t team = 60100;

Found get(FakeCache& fake, const std::string& name) {
  const KernelRequest request = fake_request(name);
  return fake.cache.find_or_make(request, [&] { return fake_entry(request); });
}

void make_old(const fs::path& path) {
  const timespec times[2] = {{.tv_sec = 0, .tv_nsec = 0}, {.tv_sec = 0, .tv_nsec = 0}};
  REQUIRE(utimensat(AT_FDCWD, path.c_str(), times, AT_SYMLINK_NOFOLLOW) == 0);
}

// A folder that somebody keeps things in, none of them new.
void make_home(const fs::path& home) {
  fs::create_directories(home / "photos");
  for (const char* file : {"photos/one.jpg", "thesis.txt"}) std::ofstream(home / file) << "precious";
  for (const char* name : {"photos/one.jpg", "photos", "thesis.txt"}) make_old(home / name);
}

bool is_whole(const fs::path& home) {
  return contents(home / "photos/one.jpg") == "precious" && contents(home / "thesis.txt") == "precious";
}

CacheOptions trusting(const fs::path& folder) { return {.folder = folder, .layers = {}, .trust_shared = true, .remote = {}}; }

std::uint64_t bytes_under(const fs::path& folder) {
  std::uint64_t bytes = 0;
  std::error_code error;
  for (fs::recursive_directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
    std::error_code gone;
    if (const auto size = at->is_regular_file(gone) ? at->file_size(gone) : 0; !gone) bytes += size;
  }
  return bytes;
}

} // namespace

TEST_CASE("a link inside a cache is refused by name, and nothing behind it is deleted") {
  for (const std::string part : {"staging", "quarantine", "claims", "hosts", "v1"}) {
    CAPTURE(part);
    const Scratch scratch;
    const fs::path home = scratch.path / "home", folder = scratch.path / "c";
    make_home(home);
    fs::create_directory(folder);
    chmod(folder.c_str(), 0700);
    fs::create_symlink(home, folder / part);
    const std::string named = (folder / part).string() + " is a symbolic link";

    const CliResult pruned = kiln::test::kiln("cache prune --max-mb 0 --quarantine -c " + folder.string());
    CHECK(pruned.exit_code == 1);
    CHECK(pruned.err.find(named) != std::string::npos);
    CHECK_THROWS_WITH_AS(CacheFolder(folder, {.writable = true, .trust = Trust::anyone}), doctest::Contains(named.c_str()),
                         EnvironmentError);
    for (const bool trust : {false, true}) {
      FakeCache fake(CacheOptions{.folder = folder, .layers = {}, .trust_shared = trust, .remote = {}});
      CHECK(get(fake, "k").origin == Origin::compiled);
      CHECK(fake.events->count("cache_unusable") == 1);
    }
    CHECK(is_whole(home));
  }
}

TEST_CASE("only names of Kiln's own form are deleted") {
  const Scratch scratch;
  const fs::path folder = scratch.path / "c";
  FakeCache fake(folder);
  get(fake, "k");
  for (const char* part : {"staging", "quarantine", "claims"}) {
    fs::create_directory(folder / part);
    make_home(folder / part);
  }
  const fs::path entry = entry_path(folder, fake_request("k"));
  std::ofstream(entry / "notes.txt") << "precious"; // somebody put a file beside ours
  fake.cache.folder()->sweep(true);
  fake.cache.folder()->prune(0);
  for (const char* part : {"staging", "quarantine", "claims"}) CHECK(is_whole(folder / part));
  std::size_t notes = 0;
  for (const auto& at : fs::recursive_directory_iterator(folder)) notes += at.path().filename() == "notes.txt" ? 1 : 0;
  CHECK(notes == 1);
  CHECK_FALSE(fs::exists(entry / object_file));
}

TEST_CASE("a folder that is exchanged under a running cache is not used") {
  const Scratch scratch;
  const fs::path folder = scratch.path / "c";
  FakeCache running(folder);
  get(running, "one");
  fs::rename(folder, scratch.path / "before");
  {
    FakeCache other(folder); // as somebody else would fill it
    get(other, "two");
  }
  CHECK_FALSE(running.cache.find(fake_request("two")));
  CHECK(running.cache.find(fake_request("one")));
  CHECK(get(running, "three").origin == Origin::compiled);
  CHECK(fs::exists(entry_path(scratch.path / "before", fake_request("three"))));
  CHECK_FALSE(fs::exists(entry_path(folder, fake_request("three"))));
}

TEST_CASE("an entry of somebody else, or that others may write to, is a miss with a reason, and is made anew") {
  const Scratch scratch;
  using Change = std::function<void(const fs::path& entry)>;
  std::vector<std::pair<const char*, Change>> changes{
      {"others may write to kernel.co", [](const fs::path& entry) { chmod((entry / object_file).c_str(), 0666); }},
      {"others may write to meta.json", [](const fs::path& entry) { chmod((entry / meta_file).c_str(), 0622); }},
      {"others may write to the entry", [](const fs::path& entry) { chmod(entry.c_str(), 0777); }},
      {"others may write to the group", [](const fs::path& entry) { chmod(entry.parent_path().c_str(), 0777); }}};
  if (geteuid() == 0) {
    changes.push_back(
        {"another's kernel.co", [](const fs::path& entry) { REQUIRE(lchown((entry / object_file).c_str(), alice, alice) == 0); }});
    changes.push_back({"another's entry", [](const fs::path& entry) { REQUIRE(lchown(entry.c_str(), alice, alice) == 0); }});
  } else {
    MESSAGE("skipped: files of another user (this is not root)");
  }
  int n = 0;
  for (const auto& [what, change] : changes) {
    CAPTURE(what);
    const fs::path folder = scratch.path / std::to_string(++n);
    const CacheOptions options{.folder = folder, .layers = {}, .shipped = true, .remote = {}}; // as kiln aot -o makes it
    {
      FakeCache maker(options);
      get(maker, "k");
    }
    const fs::path entry = entry_path(folder, fake_request("k"));
    change(entry);
    FakeCache careful(options), as_layer(CacheOptions{.folder = {}, .layers = {folder}, .remote = {}}), shared(trusting(folder));
    CHECK_FALSE(as_layer.cache.find(fake_request("k")));
    CHECK(as_layer.events->count("entry_foreign") == 1);
    CHECK(shared.cache.find(fake_request("k"))); // for who trusts all that write there
    CHECK_FALSE(careful.cache.find(fake_request("k")));
    CHECK(careful.events->count("entry_foreign") == 1);
    CHECK(careful.events->count("entry_quarantined") == 0);
    CHECK(get(careful, "k").origin == Origin::compiled);
    if (std::string_view(what).find("group") != std::string_view::npos) {
      CHECK(careful.events->count("not_stored") == 1); // there is no place for it that is ours: said, not overwritten
    } else {
      CHECK(careful.cache.find(fake_request("k")));
      struct stat info{};
      REQUIRE(stat((entry / object_file).c_str(), &info) == 0);
      CHECK(info.st_uid == geteuid());
    }
  }
}

TEST_CASE("a cache that a group shares works for two users with any umask, and for nobody else") {
  const Scratch scratch;
  chmod(scratch.path.c_str(), 0755);
  const fs::path folder = scratch.path / "shared";
  {
    const CacheFolder made(folder, {.writable = true}); // kiln cache init --shared does this with a group of the system
  }
  if (chown(folder.c_str(), static_cast<uid_t>(-1), team) != 0 || chmod(folder.c_str(), 02770) != 0) {
    MESSAGE("skipped: two users (this is not root)");
    return;
  }
  const auto uses = [&](const char* finds, const char* makes) {
    return [=] {
      FakeCache fake(trusting(folder));
      const bool found = finds == nullptr || get(fake, finds).origin == Origin::folder;
      const bool made = get(fake, makes).origin == Origin::compiled && get(fake, makes).origin == Origin::folder;
      return !found ? 1 : !made ? 2 : !fake.events->counts().empty() ? 3 : 0;
    };
  };
  CHECK(as_user(alice, team, 0077, uses(nullptr, "a1")) == 0);
  CHECK(as_user(bob, team, 0022, uses("a1", "b1")) == 0);
  CHECK(as_user(alice, team, 0077, uses("b1", "a2")) == 0);
  CHECK(as_user(bob, team, 0022, [&] { // quarantine and prune what the other made
          const CacheFolder cache(folder, {.writable = true, .trust = Trust::anyone});
          cache.quarantine(cache_key(fake_request("a1"), fake_compiler).hex, "a test");
          cache.prune(0);
          return cache.list().empty() && cache.quarantined() == 1 ? 0 : 1;
        }) == 0);
  CHECK(as_user(alice, team, 0077, uses(nullptr, "a1")) == 0);
  const fs::path entry = entry_path(folder, fake_request("a1"));
  struct stat of_folder{}, of_file{};
  REQUIRE(stat(entry.c_str(), &of_folder) == 0);
  REQUIRE(stat((entry / object_file).c_str(), &of_file) == 0);
  CHECK((of_folder.st_mode & 07777) == 02770);
  CHECK((of_file.st_mode & 07777) == 0640);
  CHECK(of_file.st_gid == team);
  // Somebody who is in the group and does not say that the others are trusted, and somebody who is not in it.
  CHECK(as_user(bob, team, 0022, [&] { return FakeCache(folder).events->count("cache_unusable") == 1 ? 0 : 1; }) == 0);
  CHECK(as_user(bob, bob, 0022, [&] { return FakeCache(trusting(folder)).events->count("cache_unusable") == 1 ? 0 : 1; }) == 0);
}

TEST_CASE("kiln cache init makes a folder for its user alone, or for a group") {
  const Scratch scratch;
  chmod(scratch.path.c_str(), 0755);
  const auto init = [](const std::string& arguments) { return kiln::test::kiln("cache init " + arguments); };
  const auto mode_of = [](const fs::path& path) {
    struct stat info{};
    REQUIRE(stat(path.c_str(), &info) == 0);
    return std::pair(info.st_mode & 07777, info.st_gid);
  };
  const fs::path own = scratch.path / "own", shared = scratch.path / "shared", used = scratch.path / "used";
  CHECK(kiln::test::kiln("cache init", "KILN_CACHE_DIR=" + own.string()).exit_code == 0);
  CHECK(mode_of(own).first == 0700);
  const CliResult unknown = init("--shared no_such_group -c " + shared.string());
  CHECK(unknown.exit_code == 2);
  CHECK(unknown.err.find("no_such_group") != std::string::npos);
  const ::group* others = nullptr; // one of the system's that is not ours
  for (setgrent(); others == nullptr || others->gr_gid == getegid();)
    if (others = getgrent(); others == nullptr) break;
  if (geteuid() != 0 || others == nullptr) {
    MESSAGE("skipped: a cache of a group (this is not root)");
    return;
  }
  const gid_t gid = others->gr_gid;
  const CliResult made = init(std::string("--shared ") + others->gr_name + " -c " + shared.string());
  CHECK(made.exit_code == 0);
  CHECK(made.out.find("KILN_CACHE_TRUST_SHARED=1") != std::string::npos);
  CHECK(mode_of(shared) == std::pair<mode_t, gid_t>(02770, gid));
  const auto uses = [&](const char* finds, const char* makes) {
    return [=, &shared] {
      FakeCache fake(trusting(shared));
      return (finds == nullptr || get(fake, finds).origin == Origin::folder) && get(fake, makes).origin == Origin::compiled ? 0 : 1;
    };
  };
  CHECK(as_user(alice, gid, 0077, uses(nullptr, "a")) == 0);
  CHECK(as_user(bob, gid, 0022, uses("a", "b")) == 0);
  CHECK(as_user(bob, bob, 0022, [&] { return FakeCache(trusting(shared)).events->count("cache_unusable") == 1 ? 0 : 1; }) == 0);
  {
    FakeCache fake(used); // what lies in it is its owner's alone, so the group would find nothing
    get(fake, "k");
  }
  const CliResult late = init(std::string("--shared ") + others->gr_name + " -c " + used.string());
  CHECK(late.exit_code == 2);
  CHECK(late.err.find("kiln cache merge") != std::string::npos);
  CHECK(mode_of(used).first == 0700);
}

TEST_CASE("trouble that passes makes a miss that is counted, and costs no entry") {
  const Scratch scratch;
  const KernelRequest request = fake_request("k");
  {
    FakeCache fake(scratch.path);
    get(fake, "k");
  }
  const auto misses_once = [&](const auto& trouble) {
    return exit_code_of([&] {
      FakeCache fake(scratch.path);
      if (!trouble()) return 77;
      const bool missed = !fake.cache.find(request);
      return !missed ? 1 : fake.events->count("entry_unreadable") != 1 ? 2 : fake.events->count("entry_quarantined") != 0 ? 3 : 0;
    });
  };
  int skipped = 0;
  for (const int error : {EIO, ESTALE, ENOMEM, EMFILE, ENFILE})
    for (const long call : {SYS_read, SYS_openat}) {
      CAPTURE(error);
      CAPTURE(call);
      const int end = misses_once([&] { return fail_system_call(call, error); });
      CHECK((end == 0 || end == 77));
      skipped += end == 77 ? 1 : 0;
      FakeCache after(scratch.path);
      CHECK(after.cache.find(request)); // healed
    }
  if (skipped != 0) MESSAGE("skipped: no seccomp filter can be set here");
  for (int spare = 0; spare < 6; ++spare) // no descriptor is left, then one, ...: fails at each step of a load
    CHECK(exit_code_of([&] {
            FakeCache fake(scratch.path);
            const int next = dup(0);
            const rlimit limit{static_cast<rlim_t>(next + spare), static_cast<rlim_t>(next + spare)};
            close(next);
            if (setrlimit(RLIMIT_NOFILE, &limit) != 0) return 1;
            const bool found = fake.cache.find(request).has_value();
            return fake.events->count("entry_quarantined") == 0 && found != (fake.events->count("entry_unreadable") == 1) ? 0 : 2;
          }) == 0);
  FakeCache after(scratch.path);
  CHECK(after.cache.find(request));
  CHECK_FALSE(fs::exists(scratch.path / "quarantine"));
}

TEST_CASE("the bound holds for what lies in the folder, whichever process put it there") {
  constexpr std::uint64_t bound = 200000;
  const Scratch scratch;
  FakeCache first(scratch.path, bound), second(scratch.path, bound);
  std::uint64_t most = 0;
  for (int i = 0; i < 40; ++i)
    for (FakeCache* fake : {&first, &second}) { // each knows of its own only
      const KernelRequest request = fake_request((fake == &first ? "a" : "b") + std::to_string(i));
      fake->cache.find_or_make(request, [&] { return fake_entry(request, 10000); });
      most = std::max(most, bytes_under(scratch.path));
    }
  CHECK(most <= bound);
  CHECK(most > bound / 2);
  std::vector<pid_t> children;
  for (int p = 0; p < 4; ++p)
    children.push_back(start_child([&] {
      FakeCache fake(scratch.path, bound);
      for (int i = 0; i < 40; ++i) {
        const KernelRequest request = fake_request("p" + std::to_string(p) + "_" + std::to_string(i));
        fake.cache.find_or_make(request, [&] { return fake_entry(request, 10000); });
      }
      return 0;
    }));
  for (const pid_t child : children) CHECK(wait_for(child) == 0);
  CHECK(bytes_under(scratch.path) <= bound);
}

TEST_CASE("dumps go to a folder that nobody else can write to, and are few") {
  const Scratch scratch;
  const DumpFile files[] = {{"k.hip", "text"}, {"common/platform.h", "more"}};
  const fs::path open = scratch.path / "open";
  fs::create_directory(open);
  chmod(open.c_str(), 0777);
  CHECK_THROWS_WITH_AS(write_dump(open, "k-gfx942", files), doctest::Contains("others may write to it"), EnvironmentError);
  CHECK(fs::is_empty(open));
  chmod(open.c_str(), 01777); // as /tmp
  const fs::path dump = write_dump(open, "k-gfx942", files);
  CHECK(contents(dump / "common/platform.h") == "more");
  CHECK((fs::status(dump).permissions() & fs::perms::all) == fs::perms::owner_all);
  if (geteuid() == 0) {
    const fs::path theirs = scratch.path / "theirs", link = scratch.path / "link";
    fs::create_directory(theirs);
    REQUIRE(chown(theirs.c_str(), alice, alice) == 0);
    CHECK_THROWS_WITH_AS(write_dump(theirs, "k-gfx942", files), doctest::Contains("belongs to user 60001"), EnvironmentError);
    fs::create_symlink(open, link);
    REQUIRE(lchown(link.c_str(), alice, alice) == 0);
    CHECK_THROWS_WITH_AS(write_dump(link, "k-gfx942", files), doctest::Contains("the link belongs to user 60001"), EnvironmentError);
  } else {
    MESSAGE("skipped: folders of another user (this is not root)");
  }
  const fs::path root = scratch.path / "dumps";
  std::ofstream(write_dump(root, "kept-gfx942", files) / "notes.md") << "precious"; // of the person who looked
  for (std::size_t i = 0; i < max_dumps + 20; ++i) write_dump(root, "k-gfx942", files);
  const auto count = std::distance(fs::directory_iterator(root), fs::directory_iterator());
  CHECK(static_cast<std::size_t>(count) <= max_dumps + 1);
  std::size_t notes = 0;
  for (const auto& at : fs::recursive_directory_iterator(root)) notes += at.path().filename() == "notes.md" ? 1 : 0;
  CHECK(notes == 1);
}

} // namespace whose_files_tests
