// Claim: every wait has a pause and an end, also where a claim cannot be removed.
#include "runtime/cache/claim.h"
#include "runtime/cache/files.h"
#include "tests/compile/run_cli.h"
#include "tests/runtime/child.h"
#include <atomic>
#include <cerrno>
#include <ctime>
#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/syscall.h>

using namespace kiln;
using namespace kiln::test;

namespace {
std::atomic<bool> removal_fails{false};
int remove_file(int folder, const char* path, int flags) {
  if (!removal_fails) return static_cast<int>(syscall(SYS_unlinkat, folder, path, flags));
  errno = EACCES;
  return -1;
}
} // namespace

// In the place of libc's: a folder whose owner is another lets nobody remove, and root, as which tests may run, removes anywhere.
extern "C" int unlink(const char* path) noexcept { return remove_file(AT_FDCWD, path, 0); }
extern "C" int unlinkat(int folder, const char* path, int flags) noexcept { return remove_file(folder, path, flags); }

TEST_CASE("claim: one of a dead process that cannot be removed is waited for to the end of the bound, not polled for ever") {
  const Scratch scratch;
  CHECK(in_child([&] { // leaves its claim behind
          new Claim(scratch.path, "key", std::chrono::milliseconds(1), [] { return false; });
          return 0;
        }) == ChildEnd{0, 0});
  CHECK(in_child(
            [&] {
              removal_fails = true;
              timespec before{}, after{};
              clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &before);
              const Claim claim(scratch.path, "key", std::chrono::milliseconds(500), [] { return false; });
              clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &after);
              const double busy = static_cast<double>(after.tv_sec - before.tv_sec) +
                                  static_cast<double>(after.tv_nsec - before.tv_nsec) * 1e-9;
              if (claim.result() != Claim::Result::expired) return 1;
              return busy < 0.25 ? 0 : 2;
            },
            10) == ChildEnd{0, 0});
  const Claim next(scratch.path, "key", std::chrono::milliseconds(500), [] { return false; });
  CHECK(next.result() == Claim::Result::mine);
}
