// Commands that use a device: on the CPU model as a device, and with the HIP stub failing at each call that they make.
#include "tests/compile/run_cli.h"
#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

using kiln::test::CliResult;

namespace {

constexpr const char* functions[] = {
    "hipRuntimeGetVersion", "hipGetDeviceCount",    "hipGetDevicePropertiesR0600", "hipGetDevice",         "hipMalloc",
    "hipMemcpyAsync",       "hipStreamSynchronize", "hipModuleLoadData",           "hipModuleGetFunction", "hipModuleLaunchKernel"};
constexpr const char* of_clock[] = {"hipEventCreate", "hipEventRecord", "hipEventSynchronize", "hipEventElapsedTime"};

const std::string stub = std::string("KILN_HIP_PATH=") + KILN_HIP_STUB + " ";

CliResult cli(const std::string& arguments, const std::string& variables = {}) { return kiln::test::kiln(arguments, variables); }

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

// The command ends with an error, and says which call it was, with what HIP said and what to do.
void expect_said(const std::string& command, const char* function, bool on_output = false) {
  const CliResult done = cli(command, stub + "KILN_STUB_ERROR=" + function + ":719");
  CAPTURE(command);
  CAPTURE(function);
  CAPTURE(done.out);
  CAPTURE(done.err);
  CHECK((done.exit_code == 1 || done.exit_code == 2));
  CHECK(has(on_output ? done.out + done.err : done.err, std::string(function) + " failed: hipErrorUnknown (719)"));
}

} // namespace

TEST_CASE("kiln run --device: the CPU model as a device") {
  const CliResult text = cli("run gemm --m 8 --n 256 --k 512 --rows 3 --set workgroups=64 --device emulated:gfx950");
  INFO(text.err);
  CHECK(text.exit_code == 0);
  CHECK(has(text.out, "on gfx950, emulated on the CPU"));
  CHECK(has(text.out, "as the reference\n"));
  const auto json = cli("run rmsnorm --cols 64 --rows 2 --device emulated:gfx942 --json");
  REQUIRE(json.exit_code == 0);
  CHECK(nlohmann::json::parse(json.out)["outputs"]["y"]["outside_bounds"] == 0);
  CHECK(has(cli("run rmsnorm --cols 64 --device emulated:gfx942 --arch gfx950").err, "it is gfx942, --arch is gfx950"));
  CHECK(has(cli("run rmsnorm --cols 64 --device hip:7", stub).err, "HIP has 1 device"));
}

TEST_CASE("kiln run --device: a device that computes nothing gives wrong outputs, in bounds and in bits") {
  const CliResult wrong = cli("run rmsnorm --cols 64 --rows 2 --device hip:0", stub);
  CHECK(wrong.exit_code == 1);
  CHECK(has(wrong.out, "OTHER BITS THAN THE CPU MODEL"));
  CHECK(has(wrong.out, "mismatch: output 'y': element 0"));
  for (const char* function : functions) expect_said("run rmsnorm --cols 64 --rows 2 --device hip:0", function);
}

TEST_CASE("kiln bench --check: outputs and prediction, with and without a clock") {
  const CliResult model = cli("bench rmsnorm --cols 256 --rows 4 --check --device emulated:gfx942");
  INFO(model.err);
  CHECK(model.exit_code == 0);
  CHECK(has(model.out, "as the reference\npredicted for mi300x: "));
  CHECK(has(model.out, "not measured: the CPU model executes"));
  const std::string command = "bench rmsnorm --cols 256 --rows 4 --check --cache-mb 0";
  const CliResult timed = cli(command + " --json", stub);
  CHECK(timed.exit_code == 1); // the stub computes nothing
  const auto json = nlohmann::json::parse(timed.out);
  CHECK(json["median_us"] == 1000);
  CHECK(json["predicted"]["us"].get<double>() > 0);
  CHECK(json["outputs"]["y"]["other_bits_than_model"].get<int>() > 0);
  for (const char* function : functions) expect_said(command, function);
  for (const char* function : of_clock) expect_said(command, function);
}

TEST_CASE("kiln demo: on the CPU model as a device, and on a GPU that fails") {
  const CliResult model = cli("demo --device emulated:gfx950");
  INFO(model.err);
  CHECK(model.exit_code == 0);
  CHECK(has(model.out, "On gfx950, emulated on the CPU, as mi355x"));
  const CliResult none = cli("demo", "KILN_HIP_PATH=/nowhere/libamdhip64.so");
  CHECK(none.exit_code == 0);
  CHECK(has(none.out, "No GPU was used (/nowhere/libamdhip64.so of KILN_HIP_PATH could not be loaded)"));
  const CliResult gpu = cli("demo", stub);
  CHECK(gpu.exit_code == 1);
  CHECK(has(gpu.out, "On AMD Instinct MI300X (gfx942), HIP device 0 of 1, as mi300x (by its name)"));
  for (const char* function : {"hipRuntimeGetVersion", "hipGetDeviceCount", "hipGetDevicePropertiesR0600"}) { // there is no GPU to use
    const CliResult unusable = cli("demo", stub + "KILN_STUB_ERROR=" + function + ":719");
    CHECK(unusable.exit_code == 0);
    CHECK(has(unusable.out, std::string("No GPU was used (") + function + " failed: hipErrorUnknown (719)"));
  }
  for (const char* function : {"hipMalloc", "hipModuleLaunchKernel", "hipEventSynchronize"}) expect_said("demo", function, true);
}

TEST_CASE("kiln tune --device: a candidate that hangs is named, and the next run skips it and goes on") {
  const kiln::test::Scratch scratch;
  const std::string table = (scratch.path / "table.jsonl").string();
  const std::string command = "tune rmsnorm --cols 1024 --device hip:0 --candidates 2 --timeout 3 -o " + table;
  const CliResult hangs = cli(command, stub + "KILN_STUB_ERROR=hipEventSynchronize:-1");
  CHECK(hangs.exit_code == 1);
  CHECK(has(hangs.err, "error: the GPU did not come back within 3 s from rmsnorm gfx942 "));
  CHECK(std::filesystem::exists(table + ".trying"));
  CHECK(!std::filesystem::exists(table));
  const CliResult resumed = cli(command, stub);
  INFO(resumed.err);
  CHECK(resumed.exit_code == 0);
  CHECK(has(resumed.err, "kiln: an earlier run ended while rmsnorm gfx942 "));
  CHECK(has(resumed.err, "1 kernel: 1 tuned"));
  CHECK(has(resumed.out, "best of 1")); // of two
  CHECK(!std::filesystem::exists(table + ".trying"));
  const CliResult again = cli(command, stub);
  CHECK(has(again.err, "0 tuned, 1 already in"));
  const CliResult model = cli("tune rmsnorm --cols 1024 --device emulated:gfx942 -o " + table);
  CHECK(model.exit_code == 2);
  CHECK(has(model.err, "executes, it does not time"));
}

TEST_CASE("kiln tune --device: what HIP refuses is said") {
  const kiln::test::Scratch scratch;
  const auto expect_said_by_tune = [&](const char* function) { // with a table each: a candidate that fails is skipped afterwards
    expect_said("tune rmsnorm --cols 1024 --device hip:0 --candidates 1 -o " + (scratch.path / function).string(), function);
  };
  for (const char* function : functions) expect_said_by_tune(function);
  for (const char* function : of_clock) expect_said_by_tune(function);
}

TEST_CASE("kiln prove --device: a device that computes nothing fails in its own line, and what HIP refuses is said") {
  const std::string command = "prove rmsnorm --cols 64 --rows 2 --inputs 1 --interleavings 1 --launches 1 --device hip:0";
  const CliResult done = cli(command + " --json", stub);
  CHECK(done.exit_code == 1);
  const auto json = nlohmann::json::parse(done.out);
  CHECK(json["holds"] == false);
  for (const auto& line : json["lines"]) {
    const std::string name = line["name"];
    CHECK_MESSAGE((line["verdict"] == "fails") == name.starts_with("on AMD Instinct MI300X"), name);
    if (name == "measured time") CHECK(line["numbers"]["median_us"] == 1000);
  }
  for (const char* function : functions) expect_said(command, function, true);
  for (const char* function : of_clock) expect_said(command, function, true);
  const auto clock = nlohmann::json::parse(cli(command + " --json", stub + "KILN_STUB_ERROR=hipEventCreate:719").out)["lines"];
  CHECK(clock.back()["name"] == "measured time");
  CHECK(clock.back()["verdict"] == "fails");
}

TEST_CASE("kiln calibrate: every micro-benchmark runs on the CPU model, and predict reads the file") {
  const kiln::test::Scratch scratch;
  const std::string file = (scratch.path / "chip.json").string();
  for (const char* arch : {"gfx942", "gfx950"}) {
    const CliResult done = cli(std::string("calibrate --device emulated:") + arch + " -o " + file);
    INFO(done.err);
    REQUIRE(done.exit_code == 0);
    CHECK(has(done.out, "hbm_latency_ns"));
    CHECK(has(done.out, "nothing is measured"));
  }
  auto json = nlohmann::json::parse(kiln::test::contents(file));
  CHECK(json["chip"] == "mi355x");
  CHECK(json["constants"]["l2_latency_cycles"]["measured"].is_null());
  CHECK(json["rates"].size() == 4);
  const std::string predict = "predict rmsnorm --cols 16384 --rows 64 --quick --json ";
  const auto microseconds = [&](const std::string& chip) {
    const CliResult done = cli(predict + chip);
    INFO(done.err);
    REQUIRE(done.exit_code == 0);
    return nlohmann::json::parse(done.out)["predicted_us"].get<double>();
  };
  const double table = microseconds("--chip mi355x");
  CHECK(microseconds("--chip-file " + file) == table); // nothing was measured
  json["constants"]["floor_ns"]["measured"] = 5000;
  std::ofstream(file) << json;
  CHECK(microseconds("--chip-file " + file) > table + 3);
  json["constants"]["floor"] = 1;
  std::ofstream(file) << json;
  CHECK(has(cli(predict + "--chip-file " + file).err, "chip constant \"floor\""));
}

TEST_CASE("kiln calibrate: what HIP refuses, and a kernel that computes nothing, is said") {
  CHECK(has(cli("calibrate", stub).err, "calibrate_dependent on AMD Instinct MI300X (gfx942), HIP device 0 of 1: it computed "));
  for (const char* function : functions) expect_said("calibrate", function);
  for (const char* function : {"hipEventCreate", "hipEventRecord", "hipEventSynchronize", "hipEventElapsedTime"})
    expect_said("calibrate", function);
}
