// fork(): a child that inherits a Jit gets an error from it and leaves the parent's workers alone; a new Jit in the child works;
// workers end with the process that started them, whoever else holds its descriptors.
#include "gen/catalog/catalog.h"
#include "runtime/jit/jit.h"
#include "tests/compile/run_cli.h"
#include "tests/runtime/child.h"
#include "tests/runtime/fake_kernel.h"
#include "tests/runtime/jit_options.h"
#include "tests/runtime/processes.h"
#include "tests/runtime/servers.h"
#include <cstdlib>
#include <doctest/doctest.h>
#include <fmt/format.h>

namespace fork_tests {
using namespace kiln;
using namespace kiln::test;
namespace fs = std::filesystem;

namespace {

KernelSpec norm(std::int64_t cols) { return catalog_spec("rmsnorm", {.cols = cols}); }

const Target gpu = target("gfx942");

// 0: `call` throws an error that says what a child of fork() should do.
template <class Call> int refused(const Call& call) {
  try {
    call();
  } catch (const UserError& error) {
    return error.fact.find("fork()") != std::string::npos && !error.remedy.empty() ? 0 : 2;
  } catch (...) {
    return 3;
  }
  return 1;
}

constexpr ChildEnd ended_well{0, 0};

} // namespace

TEST_CASE("fork: every call of an inherited Jit is refused, and nothing waits") {
  Jit jit(gpu, options_in({}));
  const KernelSpec known = norm(512);
  jit.compile(known);
  CHECK(in_child([&] { return refused([&] { jit.compile(norm(1024)); }); }) == ended_well);
  CHECK(in_child([&] { return refused([&] { jit.compile(known); }); }) == ended_well); // of memory too: one rule for all calls
  CHECK(in_child([&] { return refused([&] { jit.compile_async(norm(1024)).get(); }); }, 20) == ended_well);
  CHECK(in_child([&] {
          const KernelSpec specs[] = {norm(1024)};
          return refused([&] { jit.warm(specs); });
        }) == ended_well);
  CHECK(in_child([&] { return refused([&] { static_cast<void>(jit.stats()); }); }) == ended_well);
  CHECK_NOTHROW(jit.compile(norm(2048)));
}

TEST_CASE("fork: destroying an inherited Jit touches nothing, by exit and by _exit") {
  auto jit = std::make_unique<Jit>(gpu, options_in({}));
  jit->compile_async(norm(512)).get(); // with a thread that a child does not have
  const std::vector<pid_t> workers = workers_of(getpid());
  REQUIRE(workers.size() == 1);
  CHECK(in_child([&] {
          jit.reset();
          return 0;
        }) == ended_well);
  CHECK(in_child([&] {
          jit.reset();
          std::exit(0);
          return 1;
        }) == ended_well);
  CHECK(workers_of(getpid()) == workers);
  CHECK(jit->compile(norm(1024)).origin() == Origin::compiled);
  CHECK(workers_of(getpid()) == workers);
  CHECK(jit->stats().events.empty());
}

TEST_CASE("fork: a new Jit in the child compiles with a worker of its own, the parent goes on") {
  const Scratch scratch;
  Jit jit(gpu, options_in(scratch.path));
  const std::string key = jit.compile(norm(512)).key();
  CHECK(in_child([&] {
          Jit own(gpu, options_in(scratch.path));
          if (own.compile(norm(512)).key() != key || own.stats().folder_hits != 1) return 1;
          if (own.compile_async(norm(1024)).get().origin() != Origin::compiled) return 2;
          return workers_of(getpid()).size() == 1 && own.stats().events.empty() ? 0 : 3;
        }) == ended_well);
  CHECK(jit.compile(norm(1024)).origin() == Origin::folder); // what the child stored
}

TEST_CASE("fork: a child does not share its parent's live connection to a remote") {
  const Scratch scratch;
  const Nginx server(scratch.path / "nginx");
  if (!server.running()) {
    MESSAGE("skipped: there is no nginx");
    return;
  }
  constexpr int kernels = 40, children = 4;
  const auto name = [](int i) { return fmt::format("k{}", i); };
  const auto cache_in = [&](const std::string& folder, bool write) {
    CacheOptions options{.folder = scratch.path / folder, .layers = {}, .remote = {}};
    options.remote = {.url = Url(server.url()),
                      .insecure = true,
                      .write = write,
                      .connect_timeout = std::chrono::seconds(20),
                      .timeout = std::chrono::seconds(20)};
    return std::make_unique<FakeCache>(options);
  };
  const auto from_remote = [&](FakeCache& fake, int i) {
    const KernelRequest request = fake_request(name(i));
    const Found found = fake.cache.find_or_make(request, [&] { return fake_entry(request); });
    return found.origin == Origin::remote && found.kernel.object == fake_entry(request).object;
  };
  {
    const auto writer = cache_in("writer", true);
    for (int i = 0; i < kernels; ++i) CHECK_FALSE(from_remote(*writer, i));
  }
  const auto parent = cache_in("parent", false);
  REQUIRE(from_remote(*parent, 0)); // the connection stays
  std::vector<pid_t> pids;
  for (int child = 0; child < children; ++child)
    pids.push_back(start_child([&, child] {
      const auto own = cache_in(fmt::format("child{}", child), false);
      int missed = 0;
      for (int i = 0; i < kernels; ++i) missed += from_remote(*own, i) ? 0 : 1;
      return missed;
    }));
  for (int i = 1; i < kernels; ++i) CHECK(from_remote(*parent, i));
  for (const pid_t pid : pids) CHECK(wait_for(pid) == 0);
  CHECK(parent->events->counts().empty());
}

TEST_CASE("fork: workers end with their owner although a child of it lives on with its descriptors") {
  int pipes[2];
  REQUIRE(pipe(pipes) == 0);
  struct Said {
    pid_t child, worker;
  } said{};
  const pid_t owner = fork();
  if (owner == 0) {
    Jit jit(gpu, options_in({}));
    jit.compile(norm(512));
    const pid_t child = fork();
    if (child == 0) {
      pause();
      _exit(0);
    }
    const Said now{child, workers_of(getpid()).at(0)};
    if (write(pipes[1], &now, sizeof now) != static_cast<ssize_t>(sizeof now)) _exit(1);
    raise(SIGKILL);
  }
  REQUIRE(read(pipes[0], &said, sizeof said) == static_cast<ssize_t>(sizeof said));
  close(pipes[0]);
  close(pipes[1]);
  waitpid(owner, nullptr, 0);
  CHECK(is_running(said.child));
  bool gone = false;
  for (int i = 0; i < 500 && !gone; ++i, usleep(10000)) gone = !is_running(said.worker);
  CHECK(gone);
  kill(said.child, SIGKILL);
  if (!gone) kill(said.worker, SIGKILL);
}

} // namespace fork_tests
