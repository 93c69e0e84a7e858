// The subcommands of `kiln`, from the outside.
#include "gen/catalog/catalog.h"
#include "gen/plan/target.h"
#include "isa_checks/object/code_object.h"
#include "tests/compile/run_cli.h"
#include <algorithm>
#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

using kiln::test::CliResult;

namespace {

nlohmann::json json_of(const CliResult& result) {
  CAPTURE(result.err);
  REQUIRE(result.exit_code == 0);
  return nlohmann::json::parse(result.out);
}

} // namespace

TEST_CASE("list names the whole catalogue") {
  const CliResult text = kiln::test::kiln("list");
  CHECK(text.exit_code == 0);
  const nlohmann::json json = json_of(kiln::test::kiln("list --json"));
  REQUIRE(json.size() == kiln::catalog().size());
  for (std::size_t i = 0; i < json.size(); ++i) {
    CHECK(json[i]["name"] == kiln::catalog()[i].name);
    CHECK(text.out.find(kiln::catalog()[i].name) != std::string::npos);
  }
}

TEST_CASE("env shows what is in force and the compiler it makes") {
  const nlohmann::json json = json_of(kiln::test::kiln("env --json", "KILN_COMPILER=comgr KILN_COMPILR=x"));
  CHECK(json["variables"]["KILN_COMPILER"]["now"] == "comgr");
  CHECK(json["unknown_variables"].front() == "KILN_COMPILR"); // others are of this run of the tests
  CHECK(json["compiler"]["identity"].get<std::string>().starts_with("comgr libamd_comgr"));
  const CliResult text = kiln::test::kiln("env", "KILN_COMPILR=x");
  CHECK(text.exit_code == 0);
  CHECK(text.out.find("KILN_DUMP_DIR") != std::string::npos);
  CHECK(text.err.find("warning: KILN_COMPILR") != std::string::npos);
  CHECK(kiln::test::kiln("env", "KILN_HIPRTC_PATH=/nowhere/lib.so").exit_code == 1);
}

TEST_CASE("blocks and matrices of catalogue entries are options of compile") {
  const auto spec = [](const std::string& arguments) {
    const CliResult result = kiln::test::kiln("compile " + arguments + " --arch gfx942 --emit spec");
    CHECK(result.exit_code == 0);
    return result.out;
  };
  const auto expected = [](const char* name, const kiln::CatalogOptions& options) { return to_text(kiln::catalog_spec(name, options)); };
  CHECK(spec("hadamard --cols 1024 --group 64") == expected("hadamard", {.cols = 1024, .group = 64}));
  CHECK(spec("sinkhorn --cols 64 --side 8 --times 2") == expected("sinkhorn", {.cols = 64, .side = 8, .times = 2}));
  CHECK(kiln::test::kiln("compile sinkhorn --cols 64 --side 3 --arch gfx942").err.find("use 2, 4, 8 or 16") != std::string::npos);
}

TEST_CASE("compile emits every value on the way, for both architectures") {
  const std::string all = "--emit spec,plan,schedule,source,object,asm,facts,report";
  const nlohmann::json json = json_of(kiln::test::kiln("compile rmsnorm --cols 4096 --dtype bf16 --arch gfx942,gfx950 --json " + all));
  REQUIRE(json.size() == 2);
  for (const nlohmann::json& kernel : json) {
    CHECK(kernel["kernel"] == "rmsnorm");
    CHECK(kernel["facts"]["arch"] == kernel["arch"]);
    CHECK(kernel["object"].get<int>() > 1000);
    CHECK(kernel["source"].get<std::string>().find("rmsnorm") != std::string::npos);
    CHECK(kernel["asm"].get<std::string>().find("s_endpgm") != std::string::npos);
    CHECK_FALSE(kernel["plan"].get<std::string>().empty());
    CHECK_FALSE(kernel["schedule"].get<std::string>().empty());
    CHECK(kernel["report"].dump().find("scratch") != std::string::npos);
    CHECK(kernel["compile_ms"].get<double>() > 0);
    CHECK(kernel["interface"]["arguments"][0]["name"] == "x"); // enough for another program to launch the object
    CHECK(kernel["interface"]["grid"]["threads"] == kernel["facts"]["resources"]["workgroup_size"]);
    CHECK(kernel["interface"]["workspace"]["bytes"] == 0);
  }
  CHECK(json[0]["arch"] != json[1]["arch"]);
}

TEST_CASE("the text of a spec compiles to the same kernel as the catalogue entry it came from") {
  const kiln::test::Scratch scratch;
  const std::string folder = scratch.path.string();
  const std::string options = "--cols 512 --dtype bf16 ", emit = "--arch gfx950 --emit source";
  CHECK(kiln::test::kiln("compile layernorm " + options + "--arch gfx950 --emit spec -o " + folder).exit_code == 0);
  const CliResult entry = kiln::test::kiln("compile layernorm " + options + emit);
  const CliResult file = kiln::test::kiln("compile " + folder + "/layernorm.gfx950.kiln " + emit);
  CHECK(file.exit_code == 0);
  CHECK(file.out == entry.out);
  CHECK(file.out.size() > 1000);
}

TEST_CASE("stages after the last one asked for do not run") {
  // A compiler that cannot be loaded does not matter to a plan.
  const CliResult plan = kiln::test::kiln("compile softmax --arch gfx942 --emit plan", "KILN_HIPRTC_PATH=/nowhere/lib.so");
  CHECK(plan.exit_code == 0);
  CHECK_FALSE(plan.out.starts_with("== ")); // one value is printed as it is
}

TEST_CASE("the emitted source is one file that compiles as a kernel text of its own") {
  const CliResult source = kiln::test::kiln("compile softmax --arch gfx950 --emit source");
  CHECK(source.exit_code == 0);
  CHECK(source.out.find("#include \"") == std::string::npos);
}

TEST_CASE("a folder gets one file a value, which -o lists") {
  const kiln::test::Scratch scratch;
  const CliResult result = kiln::test::kiln("compile softmax --arch gfx942 --emit object,source -o " + scratch.path.string() + "/new");
  CHECK(result.exit_code == 0);
  const std::string object = scratch.path.string() + "/new/softmax.gfx942.co";
  CHECK(result.out.find(object) != std::string::npos);
  CHECK(kiln::isa::load_code_object_file(object).find("softmax") != nullptr);
  CHECK(std::filesystem::exists(scratch.path / "new" / "softmax.gfx942.hip"));
}

TEST_CASE("both compilers, from the command line") {
  const auto object = [](const std::string& variables) {
    return json_of(kiln::test::kiln("compile silu_mul --arch gfx950 --emit facts --json", variables))[0];
  };
  const nlohmann::json one = object("KILN_COMPILER=hiprtc"), two = object("KILN_COMPILER=comgr");
  CHECK(one["compiler"] != two["compiler"]);
  CHECK(one["facts"] == two["facts"]);
}

TEST_CASE("overrides of the schedule reach the kernel") {
  const auto size_with = [](const std::string& set) {
    const nlohmann::json json = json_of(kiln::test::kiln("compile rmsnorm --cols 16384 --arch gfx942 --json " + set));
    return json[0]["facts"]["resources"]["workgroup_size"].get<int>();
  };
  CHECK(size_with("--set threads_per_row=256,prefetch_depth=1") == 256);
  CHECK(size_with("--set threads_per_row=512,prefetch_depth=1") == 512);
}

TEST_CASE("--dtype fp8 is the architecture's own e4m3") {
  const nlohmann::json json = json_of(kiln::test::kiln("compile gemm --n 64 --k 512 --dtype fp8 --arch gfx942,gfx950 --emit spec --json"));
  CHECK(json[0]["spec"].get<std::string>().find("e4m3fnuz") != std::string::npos);
  CHECK(json[1]["spec"].get<std::string>().find("e4m3fn[") != std::string::npos);
}

TEST_CASE("demo compiles, executes, compares and counts both kernels for both architectures, and leaves their files") {
  const kiln::test::Scratch scratch;
  const CliResult result = kiln::test::kiln("demo -o " + scratch.path.string());
  CHECK(result.err == "");
  CHECK(result.exit_code == 0);
  for (const std::string kernel : {"add_rmsnorm_quant", "swiglu_quant"}) {
    for (const std::string_view arch : kiln::known_archs()) {
      CHECK(result.out.find(kernel + "  ") != std::string::npos);
      for (const std::string ending : {".hip", ".co", ".s"}) {
        const std::string file = scratch.path.string() + "/" + kernel + "." + std::string(arch) + ending;
        CHECK(std::filesystem::file_size(file) > 500);
      }
    }
  }
  CHECK(result.out.find("as the reference") != std::string::npos);
  CHECK(result.out.find(scratch.path.string()) != std::string::npos);
}
