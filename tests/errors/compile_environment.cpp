// Every KILN_* variable reaches its field, and a wrong value is refused with what is allowed.
#include "gen/error.h"
#include "runtime/environment.h"
#include <doctest/doctest.h>
#include <map>

using namespace kiln;

namespace {

Environment parsed(const std::map<std::string, std::string, std::less<>>& variables) {
  return parse_environment([&](std::string_view name) -> std::optional<std::string> {
    const auto found = variables.find(name);
    if (found == variables.end()) return std::nullopt;
    return found->second;
  });
}

std::string message(const std::map<std::string, std::string, std::less<>>& variables) {
  try {
    parsed(variables);
  } catch (const UserError& error) {
    return error.what();
  }
  return "no error";
}

} // namespace

TEST_CASE("no variable, and empty ones, are the defaults") {
  CHECK(parsed({}) == Environment{});
  CHECK(parsed({{"KILN_COMPILER", ""}, {"KILN_HIPRTC_PATH", ""}, {"KILN_SAVE_TEMPS", ""}}) == Environment{});
  CHECK(dump_folder(Environment{}).filename().string().starts_with("kiln-"));
}

TEST_CASE("every variable reaches its field") {
  const Environment environment = parsed({{"KILN_COMPILER", "comgr"},
                                          {"KILN_HIPRTC_PATH", "/a/libhiprtc.so"},
                                          {"KILN_COMGR_PATH", "/b/libamd_comgr.so"},
                                          {"KILN_DUMP_DIR", "/c"},
                                          {"KILN_SAVE_TEMPS", "1"}});
  CHECK(environment.compiler == CompilerKind::comgr);
  CHECK(environment.hiprtc_path == "/a/libhiprtc.so");
  CHECK(environment.comgr_path == "/b/libamd_comgr.so");
  CHECK(environment.dump_dir == "/c");
  CHECK(environment.save_temps);
  CHECK(environment.preload_arguments);
  CHECK_FALSE(parsed({{"KILN_PRELOAD_ARGUMENTS", "0"}}).preload_arguments);
  CHECK(dump_folder(parsed({{"TMPDIR", "/d"}})).string().starts_with("/d/kiln-"));

  const Environment run_time = parsed({{"KILN_CACHE_DIR", "/e"},
                                       {"KILN_CACHE_LAYERS", "/f:/g"},
                                       {"KILN_CACHE_MAX_MB", "7"},
                                       {"KILN_CACHE_TRUST_SHARED", "1"},
                                       {"KILN_CACHE_URL", "http://h"},
                                       {"KILN_CACHE_URL_WRITE", "1"},
                                       {"KILN_CACHE_URL_CA", "/q"},
                                       {"KILN_CACHE_URL_INSECURE", "1"},
                                       {"KILN_CACHE_PUBLIC_KEY", "/m"},
                                       {"KILN_JIT_POLICY", "record"},
                                       {"KILN_JIT_MANIFEST", "/i"},
                                       {"KILN_TUNING", "/n:/o"},
                                       {"KILN_TUNING_MISSES", "/p"},
                                       {"KILN_CHIP", "mi308x"},
                                       {"KILN_WORKER", "/j"},
                                       {"KILN_JOBS", "3"}});
  CHECK(run_time.cache_dir == "/e");
  CHECK(run_time.cache_layers == std::vector<std::filesystem::path>{"/f", "/g"});
  CHECK(run_time.cache_max_bytes == 7u << 20);
  CHECK(run_time.cache_trust_shared);
  CHECK(run_time.cache_url == Url("http://h"));
  CHECK(run_time.cache_url_write);
  CHECK(run_time.cache_url_ca == "/q");
  CHECK(run_time.cache_url_insecure);
  CHECK(run_time.cache_public_key == "/m");
  CHECK(run_time.policy == "record");
  CHECK(run_time.manifest == "/i");
  CHECK(run_time.tuning == std::vector<std::filesystem::path>{"/n", "/o"});
  CHECK(run_time.tuning_misses == "/p");
  CHECK(run_time.chip == "mi308x");
  CHECK(run_time.worker == "/j");
  CHECK(run_time.jobs == 3);
  CHECK(parsed({{"XDG_CACHE_HOME", "/k"}, {"HOME", "/l"}}).cache_dir == "/k/kiln/kernels");
  CHECK(parsed({{"HOME", "/l"}}).cache_dir == "/l/.cache/kiln/kernels");
}

TEST_CASE("a wrong value is told the variable, the value and what is allowed") {
  CHECK(message({{"KILN_COMPILER", "hipcc"}}) ==
        "KILN_COMPILER: \"hipcc\" is not a compiler that Kiln knows; set it to hiprtc or comgr, or unset it");
  CHECK(message({{"KILN_SAVE_TEMPS", "yes"}}) == "KILN_SAVE_TEMPS: \"yes\" is neither 0 nor 1; set it to 0 or 1");
  CHECK(message({{"KILN_DUMP_DIR", "dumps"}}) ==
        "KILN_DUMP_DIR: \"dumps\" is not an absolute path; write the path from the root, starting with /");
}

TEST_CASE("the table shows what is in force") {
  const std::vector<VariableInfo> table = describe(parsed({{"KILN_COMPILER", "comgr"}, {"KILN_DUMP_DIR", "/c"}}));
  for (const VariableInfo& row : table) {
    CHECK(row.name.starts_with("KILN_"));
    CHECK_FALSE(row.meaning.empty());
    if (row.name == "KILN_COMPILER") CHECK(row.current == "comgr");
    if (row.name == "KILN_DUMP_DIR") CHECK(row.current == "/c");
  }
  CHECK(table.size() == 27);
}
