// kiln run: kernels executed without a GPU, from the outside.
#include "runtime/compile/compile.h"
#include "tests/compile/run_cli.h"
#include <cstdint>
#include <cstring>
#include <doctest/doctest.h>
#include <fstream>
#include <nlohmann/json.hpp>
#include <vector>

using kiln::test::CliResult;

namespace {

template <class T> void write_values(const std::string& file, const std::vector<T>& values) {
  std::ofstream(file, std::ios::binary)
      .write(reinterpret_cast<const char*>(values.data()), static_cast<std::streamsize>(values.size() * sizeof(T)));
}

void check_run_refused(const std::string& arguments, const std::string& says) {
  const CliResult result = kiln::test::kiln("run " + arguments);
  CAPTURE(arguments);
  CAPTURE(result.err);
  CHECK(result.exit_code == 2);
  CHECK(result.out.empty());
  CHECK(result.err.find(says) != std::string::npos);
}

} // namespace

TEST_CASE("run compares a kernel of the catalogue with its spec, for both architectures") {
  for (const std::string arch : {"gfx942", "gfx950"})
    for (const std::string special : {"", " --special"}) {
      const CliResult result = kiln::test::kiln("run rmsnorm --cols 1000 --rows 5 --seed 3 --json --arch " + arch + special);
      CAPTURE(result.err);
      REQUIRE(result.exit_code == 0);
      const nlohmann::json json = nlohmann::json::parse(result.out);
      CHECK(json["completed"] == true);
      CHECK(json["findings"].empty());
      CHECK(json["sizes"]["rows"] == 5);
      CHECK(json["outputs"]["y"]["elements"] == 5000);
      CHECK(json["outputs"]["y"]["outside_bounds"] == 0);
      CHECK(json["outputs"]["y"]["max_relative_error"].get<double>() < 0x1p-9);
      CHECK(json["executed"]["valu"]["total"].get<std::int64_t>() >=
            json["waves"].get<std::int64_t>() * json["executed"]["valu"]["least"].get<std::int64_t>());
      // x is read at least once and y written once, 2 bytes per element.
      std::int64_t bytes = 0;
      for (const nlohmann::json& m : json["memory"])
        if (m["class"] == "vmem") bytes += m["bytes"].get<std::int64_t>();
      CHECK(bytes >= 2 * 2 * 5000);
      CHECK(json["lanes_active"].get<double>() > 0);
      CHECK(json["lanes_active"].get<double>() <= 1);
    }
}

TEST_CASE("without --arch and --chip a command takes KILN_CHIP's, and says which") {
  for (const auto& [chip, arch] : {std::pair{"mi308x", "gfx942"}, {"mi355x", "gfx950"}}) {
    const std::string variables = std::string("KILN_CHIP=") + chip;
    CHECK(kiln::test::kiln("run rmsnorm --cols 64", variables).out.find(std::string("rmsnorm for ") + arch) == 0);
    CHECK(kiln::test::kiln("compile rmsnorm --cols 64", variables).out.find(arch) != std::string::npos);
    CHECK(kiln::test::kiln("predict rmsnorm --cols 64 --quick", variables).out.find(std::string("on ") + chip) != std::string::npos);
    CHECK(kiln::test::kiln("explain rmsnorm --cols 64", variables).out.find(std::string("on ") + chip) != std::string::npos);
  }
  CHECK(kiln::test::kiln("predict rmsnorm --cols 64 --quick --arch gfx950", "KILN_CHIP=mi300x").out.find("on mi355x") != std::string::npos);
}

TEST_CASE("list NAME shows an entry's options with their defaults, and the spec of those") {
  const CliResult result = kiln::test::kiln("list topk_softmax");
  CAPTURE(result.err);
  CHECK(result.exit_code == 0);
  for (const char* part : {"--top", "256", "kernel topk_softmax"}) CHECK(result.out.find(part) != std::string::npos);
  CHECK(result.out.find("--kv-heads") == std::string::npos);
  CHECK(kiln::test::kiln("list attention_decode").out.find("--cache-dtype  as --dtype") != std::string::npos);
}

TEST_CASE("run as text: a line an output, findings, classes") {
  const CliResult result = kiln::test::kiln("run softmax --cols 129 --rows 2 --arch gfx942");
  CHECK(result.exit_code == 0);
  for (const char* part : {"OUTSIDE BOUNDS", "findings: none", "valu", "lanes active"}) CHECK(result.out.find(part) != std::string::npos);
  CHECK(kiln::test::kiln("run softmax --cols 129 --rows 0 --arch gfx942").exit_code == 0);
}

TEST_CASE("run --object executes any code object on raw files; a buffer that is too short is a finding") {
  const kiln::test::Scratch scratch;
  const std::string folder = scratch.path.string();
  // sum = x + alpha * y; its arguments are x, y, sum, alpha, rows. One workgroup of 256 takes 4096 elements.
  REQUIRE(kiln::test::kiln("compile scaled_add --cols 256 --dtype f32 --arch gfx942 --set vec=4,threads=256,chunks=4 --emit object -o " +
                           folder)
              .exit_code == 0);
  std::vector<float> x(512), y(512);
  for (std::size_t i = 0; i < 512; ++i) x[i] = static_cast<float>(i), y[i] = 0.5F;
  write_values(folder + "/x.bin", x);
  write_values(folder + "/y.bin", y);
  const std::string start = "run --object " + folder + "/scaled_add.gfx942.co --kernel scaled_add --grid 1 --block 256 ";
  const std::string tail = " --arg f32:3 --arg i32:2 --json";
  const std::string buffers = "--arg x=" + folder + "/x.bin --arg y=" + folder + "/y.bin ";
  const CliResult good = kiln::test::kiln(start + buffers + "--arg out:2048:" + folder + "/out.bin" + tail);
  INFO(good.out, good.err);
  REQUIRE(good.exit_code == 0);
  const std::string out = kiln::test::contents(folder + "/out.bin");
  REQUIRE(out.size() == 2048);
  for (std::size_t i = 0; i < 512; ++i) {
    float value = 0;
    std::memcpy(&value, &out[4 * i], 4);
    CHECK(value == static_cast<float>(i) + 1.5F);
  }
  const CliResult small = kiln::test::kiln(start + buffers + "--arg out:1024:" + folder + "/small.bin" + tail);
  CHECK(small.exit_code == 1);
  CHECK(nlohmann::json::parse(small.out)["findings"][0]["kind"] == "out_of_bounds");
  check_run_refused(start.substr(4) + "--arg i32:1", "arguments, 1 were given");
  check_run_refused(start.substr(4) + "--arg five", "none of the kinds");
  check_run_refused(start.substr(4) + "--arg i32:five", "\"five\" is not a number");
}

TEST_CASE("run --object: a struct by value, workgroups of two dimensions") {
  const kiln::test::Scratch scratch;
  const std::string folder = scratch.path.string();
  kiln::KernelSource source;
  source.name = "k";
  source.arch = "gfx942";
  source.text = R"(struct S { int a, b, c; };
extern "C" __attribute__((global)) void k(int* out, S s) {
  const int x = __builtin_amdgcn_workitem_id_x(), y = __builtin_amdgcn_workitem_id_y();
  out[y * 3 + x] = s.a * 100 + s.b * 10 + s.c + y * 1000;
}
)";
  kiln::CompileOptions options;
  options.environment = kiln::process_environment();
  const kiln::CodeObject object = kiln::compile(source, kiln::target("gfx942"), options);
  std::ofstream(folder + "/k.co", std::ios::binary)
      .write(reinterpret_cast<const char*>(object.bytes.data()), static_cast<std::streamsize>(object.bytes.size()));
  const std::string start = "run --object " + folder + "/k.co --kernel k --grid 1 --block 3,2 --arg out:24:" + folder + "/out.bin ";
  const CliResult good = kiln::test::kiln(start + "--arg words:1,2,3");
  INFO(good.out, good.err);
  REQUIRE(good.exit_code == 0);
  const std::string out = kiln::test::contents(folder + "/out.bin");
  for (std::size_t i = 0; i < 6; ++i) {
    std::int32_t value = 0;
    std::memcpy(&value, &out[4 * i], 4);
    CHECK(value == 123 + (i >= 3 ? 1000 : 0));
  }
  check_run_refused(start.substr(4) + "--arg words:1,2", "it has 12 bytes, 8 were given");
  check_run_refused(start.substr(4) + "--arg words:1,,2", "\"\" is not a number");
  check_run_refused(start.substr(4) + "--block 3,0 --arg words:1,2,3", "one of them is 0");
}

TEST_CASE("run refuses usage errors") {
  check_run_refused("rmsnorm --row 4", "did you mean '--rows'?");
  check_run_refused("rmsnorm --arch gfx942 --rows -2", "-2 is no size");
  check_run_refused("--arch gfx942", "neither a kernel nor --object");
  check_run_refused("rmsnorm --object k.co --kernel k --grid 1 --block 64", "both 'rmsnorm' and --object");
  check_run_refused("rmsnorm --arch gfx942 --grid 4", "belong to --object");
  check_run_refused("--object k.co --kernel k --grid 0 --block 64", "--grid");
}
