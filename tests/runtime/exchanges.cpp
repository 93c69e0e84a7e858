// A cache whose files are exchanged while it reads them, by a process that never rests.
#include "runtime/cache/folder/cache_folder.h"
#include "tests/fuzz/seeds.h"
#include "tests/runtime/signed_entries.h"
#include <atomic>
#include <doctest/doctest.h>
#include <fcntl.h>
#include <thread>
#include <unistd.h>

namespace exchange_tests {
using namespace kiln;
using namespace kiln::test;
namespace fs = std::filesystem;

// KILN_EXCHANGES: how often at the least. The other user's entry is whole and has the right key; its code is another's.
TEST_CASE("an entry that is exchanged with somebody else's all the time: the user's own code or none") {
  if (geteuid() != 0) {
    MESSAGE("skipped: files of another user (this is not root)");
    return;
  }
  constexpr uid_t somebody = 60001;
  const Scratch scratch;
  const KernelRequest request = fake_request("k");
  EntryFiles hostile = fake_entry(request), own = hostile;
  hostile.object = fake_object("hostile", request.arch);
  hostile.meta = resealed(own.meta, sha256(own.object), sha256(hostile.object));
  const fs::path folder = scratch.path / "c", theirs = scratch.path / "theirs";
  for (const auto& [cache, entry] : {std::pair{folder, own}, std::pair{theirs, hostile}}) {
    FakeCache maker(
        CacheOptions{.folder = cache, .layers = {}, .shipped = true, .remote = {}}); // kept as it is: no file of this user's alone
    maker.cache.find_or_make(request, [&] { return entry; });
  }
  const fs::path mine = entry_path(folder, request), other = entry_path(theirs, request), link = scratch.path / "link";
  for (const char* file : {meta_file, object_file, source_file}) REQUIRE(lchown((other / file).c_str(), somebody, somebody) == 0);
  REQUIRE(lchown(other.c_str(), somebody, somebody) == 0);
  fs::create_symlink(other, link);

  const std::uint64_t wanted = kiln::testing::number_from("KILN_EXCHANGES", 20000);
  std::atomic<std::uint64_t> exchanges = 0;
  std::jthread exchanging([&](const std::stop_token& stop) {
    for (std::uint64_t i = 0; !stop.stop_requested(); ++i) { // with the folder, and back; with a link to it, and back
      const fs::path& with = i / 2 % 2 ? link : other;
      if (renameat2(AT_FDCWD, mine.c_str(), AT_FDCWD, with.c_str(), RENAME_EXCHANGE) == 0) ++exchanges;
    }
  });
  std::uint64_t asked = 0, found = 0;
  for (; exchanges < wanted || asked < 100; ++asked) {
    FakeCache fake(CacheOptions{.folder = {}, .layers = {folder}, .remote = {}});
    const std::optional<Found> one = fake.cache.find(request);
    found += one ? 1 : 0;
    if (one) REQUIRE(one->kernel.object == own.object);
  }
  exchanging.request_stop();
  MESSAGE(exchanges.load(), " exchanges, ", asked, " look-ups, ", found, " found the user's own");
  CHECK(found > 0);
  CHECK(found < asked);
}

} // namespace exchange_tests
