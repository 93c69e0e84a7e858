// What commands write: an output that does not take all of it is an error of the command, and a file is there when all of it is.
#include "gen/error.h"
#include "runtime/cache/cache.h"
#include "runtime/cache/folder/archive.h"
#include "runtime/tune/tuning_table.h"
#include "tests/compile/run_cli.h"
#include "tests/runtime/signed_entries.h"
#include <cstdlib>
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <sys/stat.h>

namespace output_tests {
using namespace kiln;
using namespace kiln::test;
namespace fs = std::filesystem;

namespace {

CliResult shell(const std::string& command) {
  const Scratch scratch;
  const std::string err = (scratch.path / "err").string();
  const int status = std::system(("(" + command + ") 2>" + err).c_str());
  return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, {}, contents(err)};
}

const std::string program = KILN_CLI;

void fill(const fs::path& folder) {
  FakeCache fake(folder);
  for (const char* name : {"one", "two"}) fake.cache.find_or_make(fake_request(name), [&] { return fake_entry(fake_request(name)); });
}

} // namespace

TEST_CASE("every command says so when standard output does not take what it prints") {
  const Scratch scratch;
  const std::string cache = (scratch.path / "c").string(), in_cache = " -c " + cache;
  fill(cache);
  for (const std::string& command :
       {std::string("list"), std::string("list --json"), std::string("env"), std::string("--help"), "cache ls" + in_cache,
        "cache stats" + in_cache, "cache verify" + in_cache, "cache prune --max-mb 9" + in_cache, "cache export -" + in_cache,
        std::string("compile rmsnorm --cols 512 --arch gfx942 --emit spec"), std::string("eval rmsnorm --cols 64")}) {
    CAPTURE(command);
    const CliResult full = shell(program + " " + command + " >/dev/full");
    CHECK(full.exit_code == 1);
    CHECK(full.err.find("error: ") != std::string::npos);
    CHECK(full.err.find("2 exported") == std::string::npos);
    CHECK(shell(program + " " + command + " >/dev/null").exit_code == 0);
  }
}

TEST_CASE("an export is there when all of it is") {
  const Scratch scratch;
  const fs::path tar = scratch.path / "all.tar";
  const std::string cache = (scratch.path / "c").string(), command = program + " cache export " + tar.string() + " -c " + cache;
  fill(cache);
  const CliResult cut = shell("ulimit -f 1; trap '' XFSZ; " + command); // 512 or 1024 bytes
  CHECK(cut.exit_code == 1);
  CHECK_FALSE(fs::exists(tar));
  CHECK(shell(command).exit_code == 0);
  const std::string before = contents(tar);
  CHECK(shell("ulimit -f 1; trap '' XFSZ; " + command).exit_code == 1);
  CHECK(contents(tar) == before); // the one that was there stays
  CHECK(std::distance(fs::directory_iterator(scratch.path), fs::directory_iterator()) == 2);
  CHECK(shell(program + " cache export /dev/full -c " + cache).exit_code == 1);
  CHECK(fs::is_character_file("/dev/full"));
}

TEST_CASE("a signature may lie anywhere among the files of its entry in an archive") {
  const Scratch scratch;
  const Keys ours(scratch.path, "ours");
  const std::string variables = "KILN_CACHE_PUBLIC_KEY=" + ours.open.string();
  const auto imports = [&](const std::vector<const char*>& order, const std::vector<const char*>& names) {
    const fs::path tar = scratch.path / "a.tar";
    std::ofstream archive(tar, std::ios::binary);
    for (const char* file : order)
      for (const char* name : names) {
        const EntryFiles files = signed_entry(fake_request(name), ours);
        const std::string key = cache_key(fake_request(name), fake_compiler).hex, what = file;
        write_archive_file(archive, fmt::format("v1/{}/{}/{}", key.substr(0, 2), key, file),
                           what == meta_file     ? files.meta
                           : what == object_file ? files.object
                           : what == source_file ? files.source
                                                 : files.signature);
      }
    end_archive(archive);
    archive.close();
    static int n = 0;
    return kiln::test::kiln("cache import " + tar.string() + " -c " + (scratch.path / std::to_string(++n)).string(), variables);
  };
  CHECK(imports({object_file, source_file, meta_file, signature_file}, {"k"}).err.find("1 imported") != std::string::npos); // as by name
  CHECK(imports({signature_file, object_file, source_file, meta_file}, {"k"}).err.find("1 imported") != std::string::npos);
  CHECK(imports({object_file, signature_file, meta_file, source_file}, {"k"}).err.find("1 imported") != std::string::npos);
  const CliResult apart = imports({object_file, source_file, meta_file, signature_file}, {"k", "other"}); // one file of each in turn
  CHECK(apart.exit_code == 1);
  CHECK(apart.err.find("its signature lies apart from its other files") != std::string::npos);
}

TEST_CASE("a file of keys that is too large, and a table that is a folder, are errors") {
  const Scratch scratch;
  const Keys ours(scratch.path, "ours");
  const fs::path keys = scratch.path / "keys";
  std::ofstream(keys) << std::string(70000, '#') << "\n" << contents(ours.open); // the key lies behind what is read
  CHECK(kiln::test::kiln("cache ls", "KILN_CACHE_PUBLIC_KEY=" + keys.string() + " KILN_CACHE_DIR=" + scratch.path.string()).exit_code == 0);
  CHECK(kiln::test::kiln("cache verify --signed", "KILN_CACHE_PUBLIC_KEY=" + keys.string() + " KILN_CACHE_DIR=" + scratch.path.string())
            .err.find("more than 65536 bytes") != std::string::npos);
  CHECK_THROWS_WITH_AS(read_tuning_table(scratch.path, {}), doctest::Contains("it cannot be read"), UserError);
}

} // namespace output_tests
