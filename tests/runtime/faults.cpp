// What goes wrong around a cache: killed writers, crowds, full and read-only disks, clocks that jump. Nothing wrong is served,
// and nothing hangs. KILN_FAULT_KILLS: how many processes are killed (40; the full sweep is 500).
#include "runtime/cache/folder/cache_folder.h"
#include "runtime/cache/folder/claim.h"
#include "runtime/cache/folder/process_mark.h"
#include "runtime/stopwatch.h"
#include "tests/compile/run_cli.h"
#include "tests/fuzz/seeds.h"
#include "tests/runtime/fake_kernel.h"
#include "tests/runtime/processes.h"
#include "tests/runtime/system_calls.h"
#include <atomic>
#include <cerrno>
#include <csignal>
#include <ctime>
#include <doctest/doctest.h>
#include <fcntl.h>
#include <fstream>
#include <random>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <thread>

namespace faults_tests {
using namespace kiln;
using namespace kiln::test;
namespace fs = std::filesystem;

namespace {

struct SharedCounts { // among processes
  std::atomic<int>* counts;
  std::size_t size;
  explicit SharedCounts(std::size_t n) : size(n * sizeof(std::atomic<int>)) {
    counts = static_cast<std::atomic<int>*>(mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  }
  ~SharedCounts() { munmap(counts, size); }
  SharedCounts(const SharedCounts&) = delete;
  SharedCounts& operator=(const SharedCounts&) = delete;
};

int kills_wanted() { return static_cast<int>(kiln::testing::number_from("KILN_FAULT_KILLS", 40)); }

std::size_t names_in(const fs::path& folder) {
  std::error_code error;
  const auto names = fs::directory_iterator(folder, error);
  return error ? 0 : static_cast<std::size_t>(std::distance(fs::begin(names), fs::end(names)));
}

void set_used(const fs::path& path, std::int64_t seconds) {
  const timespec times[2] = {{.tv_sec = seconds, .tv_nsec = 0}, {.tv_sec = seconds, .tv_nsec = 0}};
  REQUIRE(utimensat(AT_FDCWD, path.c_str(), times, 0) == 0);
}

} // namespace

TEST_CASE("kill -9 of a process that fills the cache leaves valid entries only") {
  const Scratch scratch;
  const int kills = kills_wanted();
  std::mt19937 random(20261121);
  int entries_seen = 0;
  for (int round = 0; round < kills; ++round) {
    const pid_t filler = start_child([&] {
      FakeCache fake(scratch.path, 300000); // small: pruning is killed as well
      for (int i = 0;; ++i) {
        const KernelRequest request = fake_request("k" + std::to_string(round % 7) + "_" + std::to_string(i % 50));
        fake.cache.find_or_make(request, [&] { return fake_entry(request, 4000 + 200 * static_cast<std::size_t>(i % 50)); });
      }
      return 0;
    });
    const unsigned longest_us = entries_seen > round ? 12000 : 240000; // so that a slow machine's fillers come to write, too
    usleep(static_cast<useconds_t>(random() % longest_us));
    kill(filler, SIGKILL);
    CHECK(wait_for(filler) == -1);
    const CacheFolder layer(scratch.path, {.writable = true});
    for (const EntryInfo& entry : layer.list()) {
      CHECK_NOTHROW(layer.verify(entry));
      ++entries_seen;
    }
  }
  CHECK(entries_seen > kills);
  // What the dead left behind is swept, and their claims stop nobody.
  FakeCache after(scratch.path);
  const Stopwatch watch;
  for (int i = 0; i < 50; ++i) {
    const KernelRequest request = fake_request("k0_" + std::to_string(i));
    after.cache.find_or_make(request, [&] { return fake_entry(request); });
  }
  CHECK(watch.milliseconds() < 100000); // one wait for a dead process's claim would be 60 s
  after.cache.folder()->sweep(false);
  CHECK(names_in(scratch.path / "staging") == 0);
  CHECK(names_in(scratch.path / "claims") == 0);
  CHECK(after.events->counts().empty());
}

TEST_CASE("32 processes of 8 threads that want the same 20 kernels compile each exactly once") {
  constexpr int processes = 32, threads = 8, kernels = 20;
  const Scratch scratch;
  const SharedCounts compiles(kernels), served(1), gate(1);
  std::vector<pid_t> children;
  for (int p = 0; p < processes; ++p)
    children.push_back(start_child([&] {
      FakeCache fake(scratch.path);
      while (gate.counts[0] == 0) usleep(100); // all at once
      {
        std::vector<std::jthread> crowd;
        for (int t = 0; t < threads; ++t)
          crowd.emplace_back([&, t] {
            for (int i = 0; i < kernels; ++i) {
              const int k = (i * 7 + t) % kernels;
              const KernelRequest request = fake_request("k" + std::to_string(k));
              const Found found = fake.cache.find_or_make(request, [&] {
                ++compiles.counts[k];
                usleep(3000);
                return fake_entry(request);
              });
              if (found.kernel.object == fake_object("k" + std::to_string(k), "gfx942")) ++served.counts[0];
            }
          });
      }
      return fake.events->counts().empty() ? 0 : 1;
    }));
  gate.counts[0] = 1;
  for (const pid_t child : children) CHECK(wait_for(child) == 0);
  for (int k = 0; k < kernels; ++k) CHECK(compiles.counts[k] == 1);
  CHECK(served.counts[0] == processes * threads * kernels);
}

TEST_CASE("a claim of a dead process is taken over, one of a live process is waited for, but not for ever") {
  using namespace std::chrono_literals;
  const Scratch scratch;
  const fs::path claims = scratch.path / "claims";
  const Folder cache = Folder::open(scratch.path, Trust::self);
  const auto never = [] { return false; };
  CHECK(exit_code_of([&] {
          const Claim claim(cache, "k", 0ms, never);
          _exit(claim.result() == Claim::Result::mine ? 7 : 1); // no destructor: as if killed
          return 0;
        }) == 7);
  REQUIRE(fs::is_symlink(claims / "k"));
  {
    const Claim mine(cache, "k", 10s, never);
    CHECK(mine.result() == Claim::Result::mine);
    CHECK(exit_code_of([&] {
            const Stopwatch watch;
            const Claim theirs(cache, "k", 200ms, never);
            return theirs.result() == Claim::Result::expired && watch.milliseconds() < 10000 ? 0 : 1;
          }) == 0);
  }
  {
    const Claim mine(cache, "k", 10s, never);
    const Claim second(cache, "k", 10s, [] { return true; });
    CHECK(second.result() == Claim::Result::done);
  }
  CHECK_FALSE(fs::is_symlink(claims / "k"));
  // For a machine that cannot be asked: waited for within the bound, then removed.
  fs::create_symlink("otherhost123-1-1-1", claims / "k");
  CHECK(Claim(cache, "k", 50ms, never).result() == Claim::Result::expired);
  CHECK(Claim(cache, "k", 50ms, never).result() == Claim::Result::mine);
  fs::remove_all(claims);
  fs::create_symlink("/tmp", claims); // no claim is made through a link
  CHECK(Claim(cache, "k", 50ms, never).result() == Claim::Result::unavailable);
}

TEST_CASE("a claim whose target is a path is no process, and nobody looks at what lies there") {
  std::string home = (fs::temp_directory_path() / "kilnclaimsXXXXXX").string(); // without a dash, which would end the path in a mark
  REQUIRE(mkdtemp(home.data()) != nullptr);
  const Scratch scratch;
  REQUIRE(mkfifo((home + "/stat").c_str(), 0600) == 0); // an open of it for reading waits for ever
  const std::string host = process_mark().substr(0, 12);
  for (const std::string& target : {host + "-.." + home + "-1-1", host + "-../../../../../.." + home + "-1-1", host + "-/self-1-1"}) {
    CAPTURE(target);
    fs::remove_all(scratch.path / "claims");
    fs::create_directory(scratch.path / "claims");
    const std::string key = cache_key(fake_request("k"), fake_compiler).hex;
    fs::create_symlink(target, scratch.path / "claims" / key);
    CHECK(exit_code_of([&] {
            alarm(20);
            if (surely_gone(target)) return 1;
            CacheFolder(scratch.path, {.writable = true}).sweep(true);
            FakeCache fake(CacheOptions{.folder = scratch.path, .layers = {}, .claim_wait = std::chrono::milliseconds(50), .remote = {}});
            const Found found = fake.cache.find_or_make(fake_request("k"), [] { return fake_entry(fake_request("k")); });
            return found.origin == Origin::compiled && fake.events->count("wait_expired") == 1 ? 0 : 2;
          }) == 0);
    fs::remove_all(scratch.path / "v1");
  }
  fs::remove_all(home);
}

TEST_CASE("without memory for an entry it is a miss, and not the end of the compile") {
  const Scratch scratch;
  const KernelRequest request = fake_request("k");
  {
    FakeCache fake(scratch.path);
    fake.cache.find_or_make(request, [&] { return fake_entry(request, std::size_t{200} << 20); });
  }
  CHECK(exit_code_of([&] {
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
          FakeCache fake(scratch.path);
          std::ifstream file("/proc/self/statm");
          std::size_t pages = 0;
          file >> pages;
          const rlimit limit{(pages << 12) + (std::size_t{100} << 20), RLIM_INFINITY}; // room for 100 MiB more
          setrlimit(RLIMIT_AS, &limit);
          if (fake.cache.find(request)) return 1;
          if (fake.events->count("entry_unreadable") != 1) return 2;
          return fake.cache.find_or_make(fake_request("other"), [] { return fake_entry(fake_request("other")); }).origin == Origin::compiled
                     ? 0
                     : 3;
#else
          return 0;
#endif
        }) == 0);
}

TEST_CASE("a file beyond the host's limit is an error of its write, not the end of the host") {
  const Scratch scratch;
  CHECK(exit_code_of([&] { // SIGXFSZ as a program has it that never heard of it
          FakeCache fake(scratch.path);
          const rlimit limit{4096, RLIM_INFINITY};
          setrlimit(RLIMIT_FSIZE, &limit);
          const KernelRequest request = fake_request("k");
          if (fake.cache.find_or_make(request, [&] { return fake_entry(request, 100000); }).origin != Origin::compiled) return 1;
          return fake.events->count("not_stored") == 1 ? 0 : 2;
        }) == 0);
}

TEST_CASE("a claim that cannot be removed is waited for as any other: no spinning, and not for ever") {
  using namespace std::chrono_literals;
  const auto never = [] { return false; };
  const auto with_dead_claim = [&](const auto& body) { // in a child that may unlink nothing
    const Scratch scratch;
    const Folder cache = Folder::open(scratch.path, Trust::self);
    CHECK(exit_code_of([&] {
            const Claim claim(cache, "k", 0ms, never);
            _exit(7);
            return 0;
          }) == 7);
    return exit_code_of([&] { return fail_system_call(SYS_unlinkat, EACCES) ? body(cache) : 77; });
  };
  const int waited = with_dead_claim([&](const Folder& cache) {
    alarm(60);
    const Stopwatch watch;
    const Claim claim(cache, "k", 1000ms, never);
    const double wall = watch.milliseconds();
    rusage use{};
    getrusage(RUSAGE_SELF, &use); // of this process alone, which did nothing else
    const auto busy = [](const timeval& t) { return static_cast<double>(t.tv_sec) * 1e3 + static_cast<double>(t.tv_usec) / 1e3; };
    if (claim.result() != Claim::Result::expired || wall < 1000) return 1;
    return busy(use.ru_utime) + busy(use.ru_stime) < 500 ? 0 : 2; // asked some 25 times
  });
  CHECK((waited == 0 || waited == 77));
  if (waited == 77) MESSAGE("skipped: no seccomp filter can be set here");
  const int kept = with_dead_claim([&](const Folder& cache) { // one's own: the end of the process frees it
    { const Claim mine(cache, "other", 1000ms, never); }
    return cache.child("claims").look("other") ? 0 : 1;
  });
  CHECK((kept == 0 || kept == 77));
}

TEST_CASE("a disk that is full costs the cache, not the kernel") {
  const Scratch scratch;
  const fs::path folder = scratch.path / "small";
  fs::create_directory(folder);
  const KernelRequest request = fake_request("k");
  const auto fills_up = [&](const fs::path& cache) {
    FakeCache fake(cache);
    const Found found = fake.cache.find_or_make(request, [&] { return fake_entry(request, 200000); });
    const bool right = found.origin == Origin::compiled && found.kernel.object.size() == 200000;
    const bool clean = !fake.cache.find(request) && names_in(cache / "staging") == 0;
    return right && clean && fake.events->count("not_stored") == 1 ? 0 : 1;
  };
  CHECK(exit_code_of([&] { // a limit on the size of files stands for a disk: writes fail half way
          signal(SIGXFSZ, SIG_IGN);
          const rlimit limit{100000, 100000};
          setrlimit(RLIMIT_FSIZE, &limit);
          return fills_up(scratch.path / "limited");
        }) == 0);
  const int status = exit_code_of([&] {
    if (unshare(CLONE_NEWNS) != 0 || mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
        mount("tmpfs", folder.c_str(), "tmpfs", 0, "size=128k,mode=0700") != 0)
      return 77;
    return fills_up(folder);
  });
  if (status == 77) MESSAGE("skipped: no tmpfs can be mounted here; the limit on file sizes was tested instead");
  CHECK((status == 0 || status == 77));
}

TEST_CASE("a folder that cannot be written to is read, and costs no more than that") {
  const Scratch scratch;
  const KernelRequest there = fake_request("there"), missing = fake_request("missing");
  const fs::path folder = scratch.path / "c";
  {
    FakeCache fake(CacheOptions{.folder = folder, .layers = {}, .shipped = true, .remote = {}});
    fake.cache.find_or_make(there, [&] { return fake_entry(there); });
  }
  chmod(scratch.path.c_str(), 0755);
  const int status = exit_code_of([&] {
    if (geteuid() == 0) { // permissions mean nothing to root
      if (setresgid(65534, 65534, 65534) != 0 || setresuid(65534, 65534, 65534) != 0) return 77;
    } else {
      chmod(folder.c_str(), 0555);
      chmod((folder / "claims").c_str(), 0555);
      chmod((folder / "staging").c_str(), 0555);
    }
    FakeCache fake(folder);
    const bool hit = fake.cache.find(there).has_value();
    const bool made = fake.cache.find_or_make(missing, [&] { return fake_entry(missing); }).origin == Origin::compiled;
    return hit && made && fake.events->count("claim_unavailable") == 1 && fake.events->count("not_stored") == 1 ? 0 : 1;
  });
  if (status == 77) MESSAGE("skipped: root cannot become another user here");
  CHECK((status == 0 || status == 77));
}

TEST_CASE("clocks that jump cost no entry that is in use, and keep none for ever") {
  const Scratch scratch;
  FakeCache fake(scratch.path);
  std::vector<std::string> keys;
  for (int i = 0; i < 6; ++i) {
    const KernelRequest request = fake_request("k" + std::to_string(i));
    fake.cache.find_or_make(request, [&] { return fake_entry(request); });
    keys.push_back(cache_key(request, fake_compiler).hex);
  }
  const CacheFolder& layer = *fake.cache.folder();
  const auto path = [&](int i) {
    return scratch.path / "v1" / keys[static_cast<std::size_t>(i)].substr(0, 2) / keys[static_cast<std::size_t>(i)];
  };
  set_used(path(0), 4102444800); // the year 2100: written while the clock was wrong
  set_used(path(1), 0);          // 1970
  set_used(path(2), std::time(nullptr) - 100000);
  for (int i = 0; i < 3; ++i) CHECK(fake.cache.find(fake_request("k" + std::to_string(i))));         // whatever their time
  for (const EntryInfo& entry : layer.list()) CHECK(std::abs(entry.used - std::time(nullptr)) < 60); // and used now

  set_used(path(3), 4102444800);
  set_used(path(4), std::time(nullptr) - 50000);
  const std::uint64_t one = layer.list().front().bytes;
  layer.prune(4 * one + one / 2);
  CHECK_FALSE(fs::exists(path(3))); // a time in the future is no reason to stay
  CHECK_FALSE(fs::exists(path(4)));
  CHECK(layer.list().size() == 4);

  const Stopwatch watch; // a claim whose time is wrong is waited for as long as any other
  const Folder root = Folder::open(scratch.path, Trust::self);
  const Claim held(root, "k", std::chrono::milliseconds(0), [] { return false; });
  const timespec times[2] = {{.tv_sec = 4102444800, .tv_nsec = 0}, {.tv_sec = 4102444800, .tv_nsec = 0}};
  utimensat(AT_FDCWD, (scratch.path / "claims" / "k").c_str(), times, AT_SYMLINK_NOFOLLOW);
  CHECK(exit_code_of([&] {
          return Claim(root, "k", std::chrono::milliseconds(100), [] { return false; }).result() == Claim::Result::expired ? 0 : 1;
        }) == 0);
  CHECK(watch.milliseconds() < 10000);
}

TEST_CASE("the cache stays within its bound, and what was used last stays") {
  const Scratch scratch;
  FakeCache fake(scratch.path, 200000);
  for (int i = 0; i < 60; ++i) {
    const KernelRequest request = fake_request("k" + std::to_string(i));
    fake.cache.find_or_make(request, [&] { return fake_entry(request, 10000); });
    set_used(scratch.path / "v1" / cache_key(request, fake_compiler).hex.substr(0, 2) / cache_key(request, fake_compiler).hex, 1000000 + i);
  }
  std::uint64_t bytes = 0;
  for (const EntryInfo& entry : fake.cache.folder()->list()) bytes += entry.bytes;
  CHECK(bytes <= 200000);
  CHECK(bytes > 100000);
  CHECK(fake.cache.find(fake_request("k59")));
  CHECK_FALSE(fake.cache.find(fake_request("k0")));
}

} // namespace faults_tests
