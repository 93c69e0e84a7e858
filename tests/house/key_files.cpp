// Proves that the hash in the cache key covers what decides about a kernel or its verdict, and nothing else.
#include "tests/house/sources.h"
#include <doctest/doctest.h>
#include <set>

namespace kiln::house {
namespace {

// Folders of isa_checks and runtime that can change neither an entry nor its verdict: reading foreign files, executing and timing code,
// printing for people, and everything after a kernel is built. A new folder counts until it is named here and in
// cmake/KilnGeneratorHash.cmake.
const std::vector<std::string> harmless{"isa_checks/cli/", "isa_checks/exec/", "isa_checks/input/", "isa_checks/timing/",
                                        "runtime/cache/",  "runtime/workers/", "runtime/launch/",   "runtime/jit/",
                                        "runtime/aot/",    "runtime/c/",       "runtime/cli/",      "runtime/include/",
                                        "runtime/proof/",  "runtime/tune/",    "runtime/tvm_ffi/"};
const std::vector<std::string> harmless_files{"runtime/append_line", "runtime/digest", "runtime/environment",
                                              "runtime/events",      "runtime/folder", "runtime/owner_process",
                                              "runtime/stopwatch",   "runtime/table",  "runtime/url"};

TEST_CASE("the list of hashed files is that of the folders") {
  std::set<std::string> wanted, listed;
  for (const auto& [path, text] : read_sources({"machine", "gen", "templates", "isa_checks", "runtime"})) {
    bool counts = true;
    for (const std::string& start : harmless) counts = counts && !path.starts_with(start);
    for (const std::string& start : harmless_files) counts = counts && !path.starts_with(start);
    if (counts) wanted.insert(path);
  }
  std::ifstream list(KILN_GENERATOR_FILES);
  REQUIRE(list);
  for (std::string name, hash; list >> name >> hash;) listed.insert(name);
  for (const std::string& path : wanted) CHECK_MESSAGE(listed.contains(path), path, " is not in the key's hash");
  for (const std::string& path : listed)
    CHECK_MESSAGE((wanted.contains(path) || path.starts_with("docs/rules/")), path, " is in the key's hash without need");
  CHECK(listed.size() > 150);
}

} // namespace
} // namespace kiln::house
