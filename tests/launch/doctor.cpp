// doctor: each line, on machines made of files.
#include "runtime/launch/doctor/doctor.h"
#include "runtime/cache/folder/cache_folder.h"
#include "runtime/launch/hip/known_bugs.h"
#include "tests/compile/run_cli.h"
#include "tests/launch/loaded.h"
#include "tests/runtime/fake_kernel.h"
#include <algorithm>
#include <nlohmann/json.hpp>
#include <sys/stat.h>

using namespace kiln;
using kiln::test::Scratch;

namespace {

struct Machine {
  Scratch scratch;
  std::map<std::string, std::string, std::less<>> variables;
  Environment environment;

  void file(const std::string& path, const std::string& text) const {
    const std::filesystem::path to = scratch.path / path;
    std::filesystem::create_directories(to.parent_path());
    std::ofstream(to) << text;
  }
  DoctorLine line(std::string_view subject) const {
    const std::vector<DoctorLine> lines = examine({.root = scratch.path,
                                                   .variables = [this](std::string_view name) -> std::optional<std::string> {
                                                     const auto found = variables.find(name);
                                                     return found == variables.end() ? std::nullopt : std::optional(found->second);
                                                   },
                                                   .environment = environment});
    const auto found = std::ranges::find(lines, subject, &DoctorLine::subject);
    REQUIRE(found != lines.end());
    CHECK(!found->why.empty());
    CHECK((found->verdict == Verdict::good) == found->advised.empty());
    return *found;
  }
  void expect(std::string_view subject, Verdict verdict, const std::string& found, const std::string& advised = {}) const {
    const DoctorLine is = line(subject);
    CAPTURE(subject);
    CAPTURE(is.found);
    CAPTURE(is.advised);
    CHECK(is.verdict == verdict);
    CHECK(is.found.find(found) != std::string::npos);
    CHECK(is.advised.find(advised) != std::string::npos);
  }
};

} // namespace

TEST_CASE("doctor: driver, ROCm and the GPUs that the driver lists") {
  Machine m;
  m.expect("driver", Verdict::advice, "amdgpu is not loaded", "modprobe");
  m.expect("GPUs", Verdict::good, "none");
  m.expect("ROCm", Verdict::good, ".info/version");
  m.file("sys/module/amdgpu/version", "6.12.12\n");
  m.expect("driver", Verdict::good, "amdgpu 6.12.12");
  m.expect("device nodes", Verdict::problem, "there is no /dev/kfd and no /dev/dri/renderD*", "--device=/dev/kfd");
  m.file("dev/kfd", "");
  m.expect("device nodes", Verdict::problem, "/dev/kfd can be opened", "pass both to the container");
  m.file("dev/dri/renderD128", "");
  m.file("dev/dri/card0", ""); // HIP does not need it
  m.expect("device nodes", Verdict::good, "/dev/kfd can be opened, /dev/dri/renderD128 can be opened");
  m.file("opt/rocm/.info/version", "6.4.3-128\n");
  m.expect("ROCm", Verdict::good, "6.4.3-128 in");
  m.file("sys/class/kfd/kfd/topology/nodes/0/properties", "cpu_cores_count 64\ngfx_target_version 0\n");
  m.file("sys/class/kfd/kfd/topology/nodes/1/properties", "simd_count 1216\ngfx_target_version 90402\n");
  m.file("sys/class/kfd/kfd/topology/nodes/2/properties", "gfx_target_version 90500\nsimd_count 1024\n");
  m.file("sys/class/kfd/kfd/topology/nodes/3/properties", "gfx_target_version 90010\n");
  m.expect("GPUs", Verdict::good, "gfx942, gfx950, gfx90a");
}

TEST_CASE("doctor: HIP with its devices, or why there is none") {
  Machine m;
  m.environment.hip_path = "/nowhere/libamdhip64.so";
  m.expect("HIP runtime", Verdict::advice, "/nowhere/libamdhip64.so of KILN_HIP_PATH could not be loaded", "KILN_HIP_PATH");
  auto& stub = kiln::test::fresh_stub();
  m.environment.hip_path = KILN_HIP_STUB;
  m.expect("HIP runtime", Verdict::good, "6.4.43484 from");
  m.expect("HIP runtime", Verdict::good, "AMD Instinct MI300X (gfx942)");
  stub.devices = {"gfx942", "gfx90a"};
  m.expect("HIP runtime", Verdict::advice, "(gfx90a)", "gfx942, gfx950 only");
  stub.devices.clear();
  m.expect("HIP runtime", Verdict::good, "no device");
  // The driver has one, and HIP does not see it: the step that failed is named.
  stub.errors["hipGetDeviceCount"] = 100;
  m.file("sys/class/kfd/kfd/topology/nodes/1/properties", "gfx_target_version 90402\n");
  m.expect("HIP runtime", Verdict::advice, "hipGetDeviceCount failed", "\"device nodes\"");
  m.variables = {{"ROCR_VISIBLE_DEVICES", "7"}};
  m.expect("HIP runtime", Verdict::advice, "hipGetDeviceCount failed", "unset ROCR_VISIBLE_DEVICES=7");
  m.file("sys/class/kfd/kfd/topology/nodes/1/properties", "gfx_target_version 90500\n");
  m.expect("HIP runtime", Verdict::advice, "hipGetDeviceCount failed", "HIP 6.4.43484 does not know gfx950: take ROCm 7");
  kiln::test::fresh_stub();
}

TEST_CASE("doctor: bugs of HIP's releases, by version and architecture") {
  Machine m;
  auto& stub = kiln::test::fresh_stub();
  m.environment.hip_path = KILN_HIP_STUB;
  m.expect("known bugs", Verdict::good, "none of 6.4 for this GPU");
  stub.version = 70253210; // HIP's own number has a build, and not ROCm's patch, in its end
  m.expect("known bugs", Verdict::advice, "7.2 may have: captured graphs may fail or hang (ROCm/clr#279)", "ROCm 7.2.4");
  stub.version = 70153210;
  m.expect("known bugs", Verdict::good, "none of 7.1");
  stub.devices = {"gfx950"};
  m.expect("known bugs", Verdict::advice, "ROCm/hip#3902", "KILN_PRELOAD_ARGUMENTS=0");
  kiln::test::fresh_stub();
  const KnownBug& graphs = known_bugs().front();
  CHECK(may_have(graphs, "gfx942", RocmVersion::parse("7.2.3-81")));
  CHECK(!may_have(graphs, "gfx942", RocmVersion::parse("7.2.4")));
  CHECK(!may_have(graphs, "gfx950", RocmVersion::parse("7.2.1")));
  CHECK(!may_have(graphs, "gfx942", RocmVersion::parse("unknown")));
}

TEST_CASE("doctor: a ROCm without /opt/rocm") {
  Machine m;
  m.file("opt/rocm-7.2.0/.info/version", "7.2.0-43\n");
  m.file("opt/rocm-10.0.0/.info/version", "10.0.0-1\n");
  m.expect("ROCm", Verdict::good, "10.0.0-1 in");
  m.variables = {{"ROCM_PATH", (m.scratch.path / "opt/rocm-7.2.0").string()}};
  m.expect("ROCm", Verdict::good, "7.2.0-43 in");
}

TEST_CASE("doctor: the compiler and the worker") {
  Machine m;
  m.environment.hiprtc_path = "/nowhere/libhiprtc.so";
  m.expect("compiler", Verdict::problem, "/nowhere/libhiprtc.so of KILN_HIPRTC_PATH could not be loaded", "install ROCm");
  m.environment = process_environment();
  m.expect("compiler", Verdict::good, "hip");
  m.environment.worker = "/nowhere/kiln-worker";
  m.environment.program_path.clear();
  const DoctorLine worker = m.line("kiln-worker");
  CHECK((worker.verdict == Verdict::advice || !worker.found.empty()));
}

TEST_CASE("doctor: settings of the run time") {
  Machine m;
  m.expect("HIP_FORCE_DEV_KERNARG", Verdict::advice, "not set", "HIP_FORCE_DEV_KERNARG=1");
  m.expect("HSA_NO_SCRATCH_RECLAIM", Verdict::advice, "not set", "HSA_NO_SCRATCH_RECLAIM=1");
  m.expect("AMD_LOG_LEVEL", Verdict::good, "not set");
  m.expect("GPU_MAX_HW_QUEUES", Verdict::good, "not set (4)");
  m.variables = {{"HIP_FORCE_DEV_KERNARG", "1"}, {"HSA_NO_SCRATCH_RECLAIM", "1"}, {"AMD_LOG_LEVEL", "3"}, {"GPU_MAX_HW_QUEUES", "8"}};
  m.expect("HIP_FORCE_DEV_KERNARG", Verdict::good, "1");
  m.expect("HSA_NO_SCRATCH_RECLAIM", Verdict::good, "1");
  m.expect("AMD_LOG_LEVEL", Verdict::advice, "3", "AMD_LOG_LEVEL=0");
  m.expect("GPU_MAX_HW_QUEUES", Verdict::advice, "8", "GPU_MAX_HW_QUEUES=2");
  m.variables = {{"HIP_FORCE_DEV_KERNARG", "0"}, {"GPU_MAX_HW_QUEUES", "2"}};
  m.expect("HIP_FORCE_DEV_KERNARG", Verdict::advice, "0", "=1");
  m.expect("GPU_MAX_HW_QUEUES", Verdict::good, "2");
}

TEST_CASE("doctor: NUMA balancing and clocks") {
  Machine m;
  m.expect("NUMA balancing", Verdict::good, "has none");
  m.expect("clocks", Verdict::good, "no GPU tells");
  m.file("proc/sys/kernel/numa_balancing", "1\n");
  m.expect("NUMA balancing", Verdict::advice, "on", "echo 0");
  m.file("proc/sys/kernel/numa_balancing", "0\n");
  m.expect("NUMA balancing", Verdict::good, "off");
  m.file("sys/class/drm/card0/device/vendor", "0x1a03\n"); // another maker's
  m.file("sys/class/drm/card0/device/power_dpm_force_performance_level", "auto\n");
  m.file("sys/class/drm/card1/device/vendor", "0x1002\n");
  m.file("sys/class/drm/card1/device/power_dpm_force_performance_level", "auto\n");
  m.file("sys/class/drm/card1-DP-1/device/vendor", "0x1002\n"); // a connector
  m.expect("clocks", Verdict::advice, "card1 auto", "setperfdeterminism");
  CHECK(m.line("clocks").found == "card1 auto");
  m.file("sys/class/drm/card1/device/power_dpm_force_performance_level", "perf_determinism\n");
  m.expect("clocks", Verdict::good, "card1 perf_determinism");
}

TEST_CASE("doctor: the health of caches") {
  Machine m;
  m.expect("cache", Verdict::advice, "no folder", "KILN_CACHE_DIR");
  const std::filesystem::path folder = m.scratch.path / "cache";
  m.environment.cache_dir = folder;
  m.expect("cache", Verdict::good, "not there yet");
  const KernelRequest request = kiln::test::fake_request("one");
  const CacheFolder layer(folder, {.writable = true});
  layer.publish(cache_key(request, kiln::test::fake_compiler).hex, kiln::test::fake_entry(request));
  m.expect("cache", Verdict::good, "1 kernels");
  m.expect("cache", Verdict::good, "1 of them checked, 0 broken; 0 in quarantine");
  std::filesystem::resize_file(layer.list().front().path / object_file, 10);
  m.expect("cache", Verdict::advice, "1 broken", "kiln cache verify");
  chmod(folder.c_str(), 0777);
  m.expect("cache", Verdict::problem, folder.string(), "");
  m.environment.cache_dir.clear();
  m.environment.cache_layers = {"/nowhere/layer"};
  m.expect("cache layer", Verdict::problem, "/nowhere/layer: not there", "KILN_CACHE_LAYERS");
}

TEST_CASE("kiln doctor --report: no paths and no names") {
  const Scratch scratch;
  const std::string file = (scratch.path / "report.json").string();
  const auto done = kiln::test::kiln("doctor --report " + file, "KILN_HIP_PATH=/home/somebody/secret/libamdhip64.so");
  REQUIRE(done.exit_code == 0);
  const auto report = nlohmann::json::parse(kiln::test::contents(file));
  CHECK(report["lines"].size() > 10);
  CHECK(!report["system"].get<std::string>().empty());
  CHECK(report.dump().find("secret") == std::string::npos);
  CHECK(report.dump().find(".../libamdhip64.so of KILN_HIP_PATH could not be loaded") != std::string::npos);
}

TEST_CASE("kiln doctor: text and JSON") {
  const auto text = kiln::test::kiln("doctor", "HSA_NO_SCRATCH_RECLAIM=1 KILN_TYPING_MISTAKE=1");
  INFO(text.err);
  CHECK(text.exit_code == 0);
  CHECK(text.out.find("good    HSA_NO_SCRATCH_RECLAIM: 1\n") != std::string::npos);
  CHECK(text.out.find("advice  KILN_ variables: Kiln knows no KILN_TYPING_MISTAKE\n        advised: kiln env") != std::string::npos);
  const auto json = kiln::test::kiln("doctor --json", "KILN_HIPRTC_PATH=/nowhere.so");
  CHECK(json.exit_code == 1); // nothing can be compiled
  for (const auto& line : nlohmann::json::parse(json.out)) {
    CHECK(line["why"].get<std::string>().size() > 10);
    if (line["subject"] == "compiler") CHECK(line["verdict"] == "problem");
  }
}
