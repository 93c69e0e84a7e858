// doctor: each line, on machines made of files.
#include "runtime/launch/doctor.h"
#include "runtime/cache/folder/cache_folder.h"
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
  m.expect("driver", Verdict::problem, "amdgpu 6.12.12; there is no /dev/kfd", "--device=/dev/kfd");
  m.file("dev/kfd", "");
  m.expect("driver", Verdict::good, "amdgpu 6.12.12");
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
  kiln::test::fresh_stub();
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
