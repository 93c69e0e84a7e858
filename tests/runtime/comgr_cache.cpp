// comgr's own cache, which knows no owner: no worker and no program of Kiln uses it, and no compile in another program does where others
// could put something in.
#include "runtime/compile/comgr_cache.h"
#include "gen/catalog/catalog.h"
#include "gen/error.h"
#include "runtime/build/build_kernel.h"
#include "runtime/jit/jit.h"
#include "tests/compile/run_cli.h"
#include "tests/runtime/child.h"
#include <doctest/doctest.h>
#include <map>
#include <sys/stat.h>

namespace comgr_cache_tests {
using namespace kiln;
using namespace kiln::test;
namespace fs = std::filesystem;

namespace {

std::string problem(const std::map<std::string, std::string>& variables) {
  return comgr_cache_problem([&](std::string_view name) -> std::optional<std::string> {
    const auto found = variables.find(std::string(name));
    return found == variables.end() ? std::nullopt : std::optional(found->second);
  });
}

// In a child whose folder is `folder`, with comgr's cache as variables choose it.
template <class Work> ChildEnd in_folder(const fs::path& folder, const std::map<std::string, std::string>& variables, const Work& work) {
  return in_child([&] {
    for (const char* name : {"AMD_COMGR_CACHE", "AMD_COMGR_CACHE_DIR", "XDG_CACHE_HOME"}) unsetenv(name);
    for (const auto& [name, value] : variables) setenv(name.c_str(), value.c_str(), 1);
    fs::current_path(folder);
    return work();
  });
}

} // namespace

TEST_CASE("comgr's cache may lie in a folder of this user alone, and nowhere else") {
  const Scratch scratch;
  const std::string folder = (scratch.path / "c").string();
  fs::create_directory(folder);
  CHECK(problem({{"AMD_COMGR_CACHE", "0"}, {"XDG_CACHE_HOME", ""}}).empty());
  CHECK(problem({{"XDG_CACHE_HOME", ""}}).find("./comgr, of whatever folder is current") != std::string::npos);
  CHECK(problem({{"AMD_COMGR_CACHE", "1"}, {"XDG_CACHE_HOME", "caches"}}).find("./caches/comgr") != std::string::npos);
  CHECK(problem({{"AMD_COMGR_CACHE_DIR", "."}}).find("is current") != std::string::npos);
  CHECK_FALSE(problem({{"HOME", ""}}).empty());
  CHECK(problem({{"XDG_CACHE_HOME", folder}}).empty()); // not there yet
  CHECK(problem({{"AMD_COMGR_CACHE_DIR", folder}}).empty());
  CHECK(problem({{"HOME", folder}}).empty());
  chmod(folder.c_str(), 0775);
  CHECK(problem({{"AMD_COMGR_CACHE_DIR", folder}}).find("others may write to it") != std::string::npos);
}

TEST_CASE("workers and kiln leave nothing of comgr's in the current folder, and take nothing from there") {
  const Scratch scratch;
  const std::map<std::string, std::string> unsafe{{"XDG_CACHE_HOME", ""}};
  CHECK(in_folder(scratch.path, unsafe, [] {
          JitOptions options = jit_options(process_environment());
          options.cache = {};
          options.log = {};
          Jit jit(target("gfx942"), options);
          return jit.compile(catalog_spec("rmsnorm", {.cols = 512})).origin() == Origin::compiled && jit.stats().events.empty() ? 0 : 1;
        }) == ChildEnd{0, 0});
  CHECK(fs::is_empty(scratch.path));
  CHECK(in_folder(scratch.path, unsafe, [] {
          return std::system((std::string(KILN_CLI) + " compile rmsnorm --cols 512 --arch gfx942 -o out >/dev/null 2>&1").c_str()) == 0 ? 0
                                                                                                                                        : 1;
        }) == ChildEnd{0, 0});
  CHECK(fs::exists(scratch.path / "out"));
  CHECK_FALSE(fs::exists(scratch.path / "comgr"));
}

TEST_CASE("a compile in this process is refused where comgr's cache is open to others") {
  const Scratch scratch;
  const auto compiles = [] {
    try {
      build_kernel(catalog_spec("rmsnorm", {.cols = 512}), target("gfx942"), {.environment = process_environment()}, {});
      return 0;
    } catch (const EnvironmentError& error) {
      return error.subject == "comgr's own cache" && error.remedy.find("AMD_COMGR_CACHE=0") != std::string::npos ? 1 : 2;
    }
  };
  CHECK(in_folder(scratch.path, {{"XDG_CACHE_HOME", ""}}, compiles) == ChildEnd{1, 0});
  CHECK(in_folder(scratch.path, {{"XDG_CACHE_HOME", ""}, {"AMD_COMGR_CACHE", "0"}}, compiles) == ChildEnd{0, 0});
  CHECK(fs::is_empty(scratch.path));
}

} // namespace comgr_cache_tests
