// doctor: one function for each line that it prints.
#include "runtime/launch/doctor.h"
#include "gen/error.h"
#include "gen/plan/target.h"
#include "runtime/cache/folder/cache_folder.h"
#include "runtime/compile/compile.h"
#include "runtime/launch/hip/hip.h"
#include "runtime/workers/pool.h"
#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <fstream>
#include <optional>
#include <unistd.h>

namespace kiln {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t most_verified = 200; // entries of the cache; 1 ms each

std::string first_line(const fs::path& file) {
  std::ifstream stream(file);
  std::string line;
  std::getline(stream, line);
  while (!line.empty() && (line.back() == ' ' || line.back() == '\r')) line.pop_back();
  return line;
}

std::vector<fs::path> folders_in(const fs::path& folder) {
  std::vector<fs::path> list;
  std::error_code error;
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) list.push_back(at->path());
  std::ranges::sort(list);
  return list;
}

std::string variable(const DoctorSources& sources, std::string_view name) {
  return sources.variables ? sources.variables(name).value_or(std::string()) : std::string();
}

// ---- what must be there

DoctorLine driver(const DoctorSources& sources) {
  const fs::path module = sources.root / "sys/module/amdgpu", device = sources.root / "dev/kfd";
  DoctorLine line{.subject = "driver", .found = {}, .advised = {}, .why = "amdgpu and /dev/kfd are what HIP talks to"};
  std::error_code error;
  if (!fs::exists(module, error)) {
    line.found = "the kernel module amdgpu is not loaded";
    line.advised = "on a machine with a GPU: load it (modprobe amdgpu); elsewhere Kiln compiles and emulates without it";
    line.verdict = Verdict::advice;
    return line;
  }
  const std::string version = first_line(module / "version");
  line.found = version.empty() ? "amdgpu, the one of the Linux kernel" : "amdgpu " + version;
  if (access(device.c_str(), R_OK | W_OK) == 0) return line;
  line.found += fs::exists(device, error) ? "; this user may not open /dev/kfd" : "; there is no /dev/kfd";
  line.advised = fs::exists(device, error) ? "add the user to the groups render and video"
                                           : "pass --device=/dev/kfd --device=/dev/dri to the container";
  line.verdict = Verdict::problem;
  return line;
}

DoctorLine rocm(const DoctorSources& sources) {
  DoctorLine line{.subject = "ROCm", .found = {}, .advised = {}, .why = "6.2 is the oldest whose hipRTC and HIP Kiln knows"};
  const std::string path = variable(sources, "ROCM_PATH");
  const fs::path folder = path.empty() ? sources.root / "opt/rocm" : fs::path(path);
  const std::string version = first_line(folder / ".info/version");
  line.found =
      version.empty() ? fmt::format("no {}", (folder / ".info/version").string()) : fmt::format("{} in {}", version, folder.string());
  if (version.empty()) line.found += "; libraries of the distribution may do";
  return line;
}

DoctorLine hip(const DoctorSources& sources) {
  DoctorLine line{.subject = "HIP runtime", .found = {}, .advised = {}, .why = "it loads and launches kernels"};
  try {
    const Hip loaded(sources.environment.hip_path);
    std::vector<std::string> devices;
    for (int i = 0, count = loaded.device_count(); i < count; ++i) {
      const HipDeviceFacts facts = loaded.device(i);
      devices.push_back(fmt::format("{} ({})", facts.name, facts.arch));
      if (std::ranges::find(known_archs(), facts.arch) == known_archs().end()) {
        line.verdict = Verdict::advice;
        line.advised = fmt::format("Kiln generates code for {} only", fmt::join(known_archs(), ", "));
      }
    }
    line.found = fmt::format("{} from {}; {}", loaded.version(), loaded.path(),
                             devices.empty() ? "no device" : fmt::format("{}", fmt::join(devices, ", ")));
  } catch (const EnvironmentError& error) {
    line.found = error.fact, line.advised = error.remedy;
    line.verdict = Verdict::advice; // compiling and emulating go on
  }
  return line;
}

// From the driver, so that it can be compared with what HIP lists.
DoctorLine gpus(const DoctorSources& sources) {
  DoctorLine line{
      .subject = "GPUs", .found = {}, .advised = {}, .why = "as the driver lists them; HIP_VISIBLE_DEVICES and containers hide some"};
  std::vector<std::string> archs;
  for (const fs::path& node : folders_in(sources.root / "sys/class/kfd/kfd/topology/nodes")) {
    std::ifstream stream(node / "properties");
    std::string key;
    for (std::uint64_t value = 0; stream >> key >> value;)
      if (key == "gfx_target_version" && value != 0) // 90402 is gfx942: two digits each of major, minor, stepping
        archs.push_back(fmt::format("gfx{}{:x}{:x}", value / 10000, value / 100 % 100, value % 100));
  }
  line.found = archs.empty() ? "none" : fmt::format("{}", fmt::join(archs, ", "));
  return line;
}

DoctorLine compiler(const DoctorSources& sources) {
  DoctorLine line{.subject = "compiler", .found = {}, .advised = {}, .why = "it turns HIP text into code objects"};
  try {
    line.found = compiler_identity(sources.environment);
  } catch (const EnvironmentError& error) {
    line.found = error.fact, line.advised = error.remedy;
    line.verdict = Verdict::problem;
  }
  return line;
}

DoctorLine worker(const DoctorSources& sources) {
  const fs::path found = find_worker(sources.environment.worker, sources.environment.program_path);
  DoctorLine line{.subject = "kiln-worker",
                  .found = found.string(),
                  .advised = {},
                  .why = "hipRTC compiles one kernel of a process at a time; workers compile several"};
  if (found.empty()) {
    line.found = "not found";
    line.advised = "set KILN_WORKER to it, or put it beside the program";
    line.verdict = Verdict::advice;
  }
  return line;
}

// ---- settings of the run time

struct KernelSetting {
  const char *name, *wanted, *unset; // unset: what it means when it is not set
  bool good_unset;
  const char* why;
};

// Sources: ROCm's HIP and ROCr lists of environment variables, and AMD's guides to tuning MI300X.
constexpr KernelSetting settings[] = {
    {"HIP_FORCE_DEV_KERNARG", "1", "kernel arguments in host memory, unless this ROCm decides otherwise", false,
     "1 keeps kernel arguments in device memory: a launch starts 2 to 3 us earlier, which short kernels feel"},
    {"HSA_NO_SCRATCH_RECLAIM", "1", "0", false,
     "1 keeps scratch memory assigned to its queue; otherwise a kernel of any library with much scratch stops the queue each "
     "time. "
     "Kiln's own kernels use none"},
    {"AMD_LOG_LEVEL", "0", "0", true, "levels above 0 write a line for each HIP call, which costs more than a launch"},
};

DoctorLine setting(const DoctorSources& sources, const KernelSetting& s) {
  const std::string value = variable(sources, s.name);
  DoctorLine line{.subject = s.name, .found = value.empty() ? fmt::format("not set ({})", s.unset) : value, .advised = {}, .why = s.why};
  if (value.empty() ? s.good_unset : value == s.wanted) return line;
  line.advised = fmt::format("{}={}", s.name, s.wanted);
  line.verdict = Verdict::advice;
  return line;
}

DoctorLine queues(const DoctorSources& sources) {
  constexpr const char* name = "GPU_MAX_HW_QUEUES";
  const std::string value = variable(sources, name);
  DoctorLine line{.subject = name,
                  .found = value.empty() ? "not set (4)" : value,
                  .advised = {},
                  .why = "streams share this many hardware queues of a device; over 4 in all (2 for compute beside 2 of RCCL) "
                         "they are switched in turn"};
  if (value.empty() || value == "1" || value == "2" || value == "3" || value == "4") return line;
  line.advised = "GPU_MAX_HW_QUEUES=2 where RCCL runs beside, else leave it unset";
  line.verdict = Verdict::advice;
  return line;
}

DoctorLine numa(const DoctorSources& sources) {
  const std::string value = first_line(sources.root / "proc/sys/kernel/numa_balancing");
  DoctorLine line{.subject = "NUMA balancing",
                  .found = value.empty()  ? "this kernel has none"
                           : value == "0" ? "off"
                                          : "on",
                  .advised = {},
                  .why = "it moves pages of the host while the GPU has them mapped, and stalls launches"};
  if (value.empty() || value == "0") return line;
  line.advised = "echo 0 > /proc/sys/kernel/numa_balancing";
  line.verdict = Verdict::advice;
  return line;
}

DoctorLine clocks(const DoctorSources& sources) {
  DoctorLine line{.subject = "clocks",
                  .found = {},
                  .advised = {},
                  .why = "times vary with clocks that the driver changes; only benchmarks need them fixed"};
  std::vector<std::string> modes;
  for (const fs::path& card : folders_in(sources.root / "sys/class/drm")) {
    if (card.filename().string().find('-') != std::string::npos || first_line(card / "device/vendor") != "0x1002") continue; // AMD
    if (const std::string mode = first_line(card / "device/power_dpm_force_performance_level"); !mode.empty())
      modes.push_back(fmt::format("{} {}", card.filename().string(), mode));
  }
  line.found = modes.empty() ? "no GPU tells" : fmt::format("{}", fmt::join(modes, ", "));
  if (std::ranges::any_of(modes, [](const std::string& mode) { return mode.ends_with(" auto") || mode.ends_with(" low"); })) {
    line.advised = "before a benchmark: rocm-smi --setperfdeterminism CLOCK, and rocm-smi -r after it";
    line.verdict = Verdict::advice;
  }
  return line;
}

// ---- Kiln's own

std::string entries_found(const CacheFolder& layer, std::size_t& broken) {
  const std::vector<EntryInfo> entries = layer.list();
  std::uint64_t bytes = 0;
  for (const EntryInfo& entry : entries) bytes += entry.bytes;
  const std::size_t checked = std::min(entries.size(), most_verified);
  for (std::size_t i = 0; i < checked; ++i) {
    try {
      static_cast<void>(layer.verify(entries[i]));
    } catch (const CorruptEntry&) {
      ++broken;
    } catch (const EntryProblem&) { // another process removed it meanwhile
    }
  }
  return fmt::format("{}: {} kernels, {} MB; {} of them checked, {} broken; {} in quarantine", layer.path().string(), entries.size(),
                     bytes >> 20, checked, broken, layer.quarantined());
}

DoctorLine cache_folder(const fs::path& folder, bool trust, const std::string& subject) {
  DoctorLine line{.subject = subject, .found = {}, .advised = {}, .why = "a kernel that is there need not be compiled"};
  std::error_code error;
  if (!fs::exists(folder, error)) {
    line.found = fmt::format("{}: not there", folder.string());
    return line;
  }
  try {
    std::size_t broken = 0;
    line.found = entries_found(CacheFolder(folder, {.writable = false, .trust = trust ? Trust::anyone : Trust::self}), broken);
    if (broken != 0) line.advised = "kiln cache verify", line.verdict = Verdict::advice;
  } catch (const EnvironmentError& failure) {
    line.found = fmt::format("{}: {}", failure.subject, failure.fact);
    line.advised = failure.remedy;
    line.verdict = Verdict::problem;
  }
  return line;
}

std::vector<DoctorLine> caches(const DoctorSources& sources) {
  const Environment& e = sources.environment;
  std::vector<DoctorLine> lines;
  if (e.cache_dir.empty())
    lines.push_back({.subject = "cache",
                     .found = "no folder: neither KILN_CACHE_DIR nor XDG_CACHE_HOME nor HOME is set",
                     .advised = "set KILN_CACHE_DIR",
                     .why = "without one every process compiles every kernel",
                     .verdict = Verdict::advice});
  else {
    lines.push_back(cache_folder(e.cache_dir, e.cache_trust_shared, "cache"));
    if (lines.back().found.ends_with("not there")) lines.back().found += " yet; the first compile makes it";
  }
  for (const fs::path& layer : e.cache_layers) {
    lines.push_back(cache_folder(layer, e.cache_trust_shared, "cache layer"));
    if (!lines.back().found.ends_with("not there")) continue;
    lines.back().advised = "mend or remove it in KILN_CACHE_LAYERS";
    lines.back().verdict = Verdict::problem;
  }
  return lines;
}

DoctorLine names() {
  const std::vector<std::string> unknown = unknown_variables();
  DoctorLine line{.subject = "KILN_ variables", .found = "all known", .advised = {}, .why = "a misspelt variable does nothing"};
  if (unknown.empty()) return line;
  line.found = fmt::format("Kiln knows no {}", fmt::join(unknown, ", "));
  line.advised = "kiln env lists those it knows";
  line.verdict = Verdict::advice;
  return line;
}

} // namespace

std::string_view to_string(Verdict verdict) {
  switch (verdict) {
  case Verdict::good: return "good";
  case Verdict::advice: return "advice";
  case Verdict::problem: return "problem";
  }
  throw InternalError("unknown Verdict");
}

std::vector<DoctorLine> examine(const DoctorSources& sources) {
  std::vector<DoctorLine> lines{driver(sources), rocm(sources), hip(sources), gpus(sources), compiler(sources), worker(sources)};
  for (const KernelSetting& s : settings) lines.push_back(setting(sources, s));
  lines.insert(lines.end(), {queues(sources), numa(sources), clocks(sources)});
  for (DoctorLine& line : caches(sources)) lines.push_back(std::move(line));
  lines.push_back(names());
  return lines;
}

} // namespace kiln
