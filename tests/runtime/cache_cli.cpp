// kiln cache: each subcommand, from the outside, on caches of entries that need no compiler.
#include "runtime/cache/folder/cache_folder.h"
#include "tests/compile/run_cli.h"
#include "tests/runtime/fake_kernel.h"
#include <doctest/doctest.h>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sys/stat.h>

namespace cache_cli_tests {
using namespace kiln;
using namespace kiln::test;
namespace fs = std::filesystem;

namespace {

void fill(const fs::path& folder, int from, int to, const std::string& compiler = fake_compiler) {
  const CacheFolder layer(folder, {.writable = true});
  for (int i = from; i < to; ++i) {
    const KernelRequest request = fake_request("k" + std::to_string(i), i % 2 == 0 ? "gfx942" : "gfx950");
    layer.publish(cache_key(request, compiler).hex, fake_entry(request, 600, compiler));
  }
}

fs::path entry_of(const fs::path& folder, int i) {
  const std::string key = cache_key(fake_request("k" + std::to_string(i), i % 2 == 0 ? "gfx942" : "gfx950"), fake_compiler).hex;
  return folder / "v1" / key.substr(0, 2) / key;
}

void damage(const fs::path& file) {
  std::string bytes = contents(file);
  bytes[bytes.size() / 2] = static_cast<char>(bytes[bytes.size() / 2] ^ 4);
  std::ofstream(file, std::ios::binary) << bytes;
}

CliResult cache(const std::string& arguments, const std::string& variables = {}) {
  return kiln::test::kiln("cache " + arguments, variables);
}

} // namespace

TEST_CASE("ls, show and stats say what is there") {
  const Scratch scratch;
  const std::string c = (scratch.path / "c").string();
  fill(c, 0, 5);
  const nlohmann::json list = nlohmann::json::parse(cache("ls --json -c " + c).out);
  REQUIRE(list.size() == 5);
  CHECK(list[0]["bytes"].get<int>() > 1000);
  const CliResult text = cache("ls", "KILN_CACHE_DIR=" + c); // the variable names it as well
  CHECK(text.out.find("k4") != std::string::npos);
  const std::string key = list[2]["key"];
  const CliResult one = cache("show " + key.substr(0, 12) + " -c " + c);
  CHECK(one.exit_code == 0);
  CHECK(one.out.find(key) != std::string::npos);
  CHECK(one.out.find("input x: f16[rows, 64]") != std::string::npos);
  CHECK(nlohmann::json::parse(cache("show " + key + " --json -c " + c).out)["key"] == key);
  CHECK(cache("show zz -c " + c).exit_code == 2);
  CHECK(nlohmann::json::parse(cache("ls --json " + c).out) == list); // the folder as a word
  CHECK(cache("verify " + c).exit_code == 0);
  CHECK(cache("show " + key + " " + c).out == one.out);
  const nlohmann::json stats = nlohmann::json::parse(cache("stats --json -c " + c).out);
  CHECK(stats["entries"] == 5);
  CHECK(stats["archs"]["gfx942"] == 3);
  CHECK(stats["compilers"][fake_compiler] == 5);
}

TEST_CASE("verify finds what is damaged, in any of the files, and moves it away when told to") {
  const Scratch scratch;
  const std::string c = (scratch.path / "c").string();
  fill(c, 0, 5);
  CHECK(cache("verify -c " + c).exit_code == 0);
  damage(entry_of(c, 0) / source_file);
  damage(entry_of(c, 1) / object_file);
  fs::remove(entry_of(c, 2) / meta_file);
  const CliResult found = cache("verify -c " + c);
  CHECK(found.exit_code == 1);
  CHECK(found.out.find("2 intact, 3 corrupt") != std::string::npos);
  CHECK(found.out.find("kernel.hip does not have its checksum") != std::string::npos);
  CHECK(cache("verify --quarantine -c " + c).exit_code == 1);
  CHECK(cache("verify -c " + c).out == "2 intact, 0 corrupt\n");
  CHECK(fs::exists(scratch.path / "c" / "quarantine"));
  cache("prune --max-mb 1 --quarantine -c " + c);
  CHECK(fs::is_empty(scratch.path / "c" / "quarantine"));
  CHECK(cache("prune --max-mb 0 -c " + c).exit_code == 0);
  CHECK(cache("verify -c " + c).out == "0 intact, 0 corrupt\n");
}

TEST_CASE("export, import and merge carry intact entries only") {
  const Scratch scratch;
  const std::string one = (scratch.path / "one").string(), two = (scratch.path / "two").string(), tar = (scratch.path / "a.tar").string();
  fill(one, 0, 4);
  CHECK(cache("export " + tar + " -c " + one).exit_code == 0);
  const std::string archive = contents(tar);
  CHECK(archive.size() % 512 == 0);
  CHECK(cache("import " + tar + " -c " + two).err == "4 imported, 0 were there, 0 left out\n");
  CHECK(cache("export " + tar + " -c " + two).exit_code == 0);
  CHECK(contents(tar) == archive); // the same entries, the same bytes
  CHECK(cache("import " + tar + " -c " + two).err == "0 imported, 4 were there, 0 left out\n");
  if (std::system("command -v tar >/dev/null") == 0) {
    fs::create_directory(scratch.path / "unpacked");
    CHECK(std::system(("tar -x -C " + (scratch.path / "unpacked").string() + " -f " + tar).c_str()) == 0);
    CHECK(cache("verify -c " + (scratch.path / "unpacked").string()).out == "4 intact, 0 corrupt\n");
  }

  // Damaged archives: cut anywhere, or with a bit flipped anywhere, nothing wrong arrives.
  for (std::size_t at = 100; at + 1024 < archive.size(); at += archive.size() / 20) { // 1024: the end mark
    const fs::path to = scratch.path / "from-damaged";
    std::string bytes = archive;
    bytes[at] = static_cast<char>(bytes[at] ^ 1);
    std::ofstream(tar, std::ios::binary) << bytes;
    cache("import " + tar + " -c " + to.string());
    std::ofstream(tar, std::ios::binary) << archive.substr(0, at);
    CHECK(cache("import " + tar + " -c " + to.string()).exit_code == 2);
    if (fs::exists(to)) CHECK(cache("verify -c " + to.string()).exit_code == 0);
    fs::remove_all(to);
  }

  const std::string more = (scratch.path / "more").string(), all = (scratch.path / "all").string();
  fill(more, 2, 8, "another compiler");
  damage(entry_of(one, 1) / object_file);
  const CliResult merged = cache("merge " + one + " " + more + " -o " + all);
  CHECK(merged.exit_code == 1); // something was left out
  CHECK(merged.err.find("9 taken, 0 were there, 1 left out") != std::string::npos);
  CHECK(CacheFolder(all, {}).compilers() == std::vector<std::string>{"another compiler", fake_compiler});
  CHECK(cache("merge " + (scratch.path / "nowhere").string() + " -o " + all).exit_code == 1);
}

TEST_CASE("diff says what changed in the facts of the same kernels") {
  const Scratch scratch;
  const std::string before = (scratch.path / "before").string(), after = (scratch.path / "after").string();
  fill(before, 0, 3);
  const CacheFolder layer(after, {.writable = true});
  for (int i = 0; i < 4; ++i) {
    const KernelRequest request = fake_request("k" + std::to_string(i), i % 2 == 0 ? "gfx942" : "gfx950");
    KernelSource source;
    source.name = kernel_name(request);
    source.arch = request.arch;
    source.launch.threads = 64;
    const std::string facts = i == 1 ? "{\"instructions\": 9, \"resources\": {\"vgprs\": 130}}" : "{\"instructions\": 7}";
    layer.publish(
        cache_key(request, "newer compiler").hex,
        make_entry(
            request, source, fake_object(source.name, request.arch),
            {.compiler = "newer compiler", .llvm = {}, .schedule = "none", .rejected = {}, .facts = facts, .contract = "{\"met\": true}"}));
  }
  const CliResult same = cache("diff --exit-code " + before + " " + before);
  CHECK(same.exit_code == 0);
  CHECK(same.out == "3 kernels, 0 changed\n");
  const CliResult text = cache("diff " + before + " " + after);
  CHECK(text.exit_code == 0);
  CHECK(text.out.find("k1 gfx950") != std::string::npos);
  CHECK(text.out.find("  instructions: 7 -> 9\n") != std::string::npos);
  CHECK(text.out.find("  resources.vgprs: - -> 130\n") != std::string::npos);
  CHECK(text.out.find("k3 gfx950 only in the second") != std::string::npos);
  CHECK(text.out.find("k0") == std::string::npos);
  CHECK(text.out.find("4 kernels, 2 changed") != std::string::npos);
  CHECK(cache("diff --exit-code " + before + " " + after).exit_code == 1);
  const nlohmann::json json = nlohmann::json::parse(cache("diff --json " + before + " " + after).out);
  REQUIRE(json.size() == 4);
  CHECK(json[0]["same_code"] == true);
}

TEST_CASE("usage errors are refused") {
  CHECK(cache("").exit_code == 2);
  CHECK(cache("prune -c /tmp").exit_code == 2); // how much may stay has to be said
  CHECK(cache("ls -c /nowhere/at/all").exit_code == 1);
  CHECK(cache("ls", "KILN_CACHE_DIR=relative").exit_code == 2);
  CHECK(cache("import /nowhere/a.tar -c /tmp").exit_code == 2);
  CHECK(kiln::test::kiln("env", "KILN_CACHE_MAX_MB=many").err.find("KILN_CACHE_MAX_MB: \"many\" is no number") != std::string::npos);
  CHECK(kiln::test::kiln("env", "KILN_JIT_POLICY=never").err.find("set it to jit, cache_only or record") != std::string::npos);
  CHECK(kiln::test::kiln("env", "KILN_JIT_POLICY=record").err.find("KILN_JIT_MANIFEST") != std::string::npos);
  CHECK(kiln::test::kiln("env", "KILN_CACHE_LAYERS=/a:b").err.find("\"b\" is not an absolute path") != std::string::npos);
}

} // namespace cache_cli_tests
