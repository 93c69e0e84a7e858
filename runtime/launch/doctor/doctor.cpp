// doctor: one function for each line that it prints; those about the GPU are in doctor_gpu.cpp.
#include "runtime/launch/doctor/doctor.h"
#include "gen/error.h"
#include "gen/plan/target.h"
#include "runtime/cache/folder/cache_folder.h"
#include "runtime/compile/compile.h"
#include "runtime/launch/doctor/doctor_lines.h"
#include "runtime/workers/pool.h"
#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>

namespace kiln {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t max_verified = 200; // entries of the cache; 1 ms each

// ---- what must be there

DoctorLine compiler(const DoctorSources& sources) {
  DoctorLine line{.subject = "compiler", .why = "it turns HIP text into code objects"};
  try {
    line.found = compiler_identity(sources.environment);
  } catch (const EnvironmentError& error) {
    line.found = error.fact;
    line.advise(error.remedy, Verdict::problem);
  }
  return line;
}

DoctorLine worker(const DoctorSources& sources) {
  const fs::path found = find_worker(sources.environment.worker, sources.environment.program_path);
  DoctorLine line{.subject = "kiln-worker",
                  .why = "hipRTC compiles one kernel of a process at a time; workers compile several",
                  .found = found.empty() ? "not found" : found.string()};
  if (found.empty()) line.advise("set KILN_WORKER to it, or put it beside the program");
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
  DoctorLine line{.subject = s.name, .why = s.why, .found = value.empty() ? fmt::format("not set ({})", s.unset) : value};
  if (!(value.empty() ? s.good_unset : value == s.wanted)) line.advise(fmt::format("{}={}", s.name, s.wanted));
  return line;
}

DoctorLine queues(const DoctorSources& sources) {
  constexpr const char* name = "GPU_MAX_HW_QUEUES";
  const std::string value = variable(sources, name);
  DoctorLine line{.subject = name,
                  .why = "streams share this many hardware queues of a device; over 4 in all (2 for compute beside 2 of RCCL) "
                         "they are switched in turn",
                  .found = value.empty() ? "not set (4)" : value};
  const bool few = value.empty() || value == "1" || value == "2" || value == "3" || value == "4";
  if (!few) line.advise("GPU_MAX_HW_QUEUES=2 where RCCL runs beside, else leave it unset");
  return line;
}

DoctorLine numa(const DoctorSources& sources) {
  const std::string value = first_line(sources.root / "proc/sys/kernel/numa_balancing");
  const bool off = value.empty() || value == "0";
  DoctorLine line{.subject = "NUMA balancing",
                  .why = "it moves pages of the host while the GPU has them mapped, and stalls launches",
                  .found = value.empty() ? "this kernel has none"
                           : off         ? "off"
                                         : "on"};
  if (!off) line.advise("echo 0 > /proc/sys/kernel/numa_balancing");
  return line;
}

DoctorLine clocks(const DoctorSources& sources) {
  DoctorLine line{.subject = "clocks", .why = "times vary with clocks that the driver changes; only benchmarks need them fixed"};
  std::vector<std::string> modes;
  for (const fs::path& card : folders_in(sources.root / "sys/class/drm")) {
    if (card.filename().string().find('-') != std::string::npos || first_line(card / "device/vendor") != "0x1002") continue; // AMD
    if (const std::string mode = first_line(card / "device/power_dpm_force_performance_level"); !mode.empty())
      modes.push_back(fmt::format("{} {}", card.filename().string(), mode));
  }
  line.found = modes.empty() ? "no GPU tells" : fmt::format("{}", fmt::join(modes, ", "));
  if (std::ranges::any_of(modes, [](const std::string& mode) { return mode.ends_with(" auto") || mode.ends_with(" low"); }))
    line.advise("before a benchmark: rocm-smi --setperfdeterminism CLOCK, and rocm-smi -r after it");
  return line;
}

// ---- Kiln's own

std::string entries_found(const CacheFolder& layer, std::size_t& broken) {
  const std::vector<EntryInfo> entries = layer.list();
  std::uint64_t bytes = 0;
  for (const EntryInfo& entry : entries) bytes += entry.bytes;
  const std::size_t checked = std::min(entries.size(), max_verified);
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
  DoctorLine line{.subject = subject, .why = "a kernel that is there need not be compiled"};
  std::error_code error;
  if (!fs::exists(folder, error)) {
    line.found = fmt::format("{}: not there", folder.string());
    return line;
  }
  try {
    std::size_t broken = 0;
    line.found = entries_found(CacheFolder(folder, {.writable = false, .trust = trust ? Trust::anyone : Trust::self}), broken);
    if (broken != 0) line.advise("kiln cache verify");
  } catch (const EnvironmentError& failure) {
    line.found = fmt::format("{}: {}", failure.subject, failure.fact);
    line.advise(failure.remedy, Verdict::problem);
  }
  return line;
}

std::vector<DoctorLine> caches(const DoctorSources& sources) {
  const Environment& e = sources.environment;
  std::vector<DoctorLine> lines;
  if (e.cache_dir.empty())
    lines.push_back({.subject = "cache",
                     .why = "without one every process compiles every kernel",
                     .found = "no folder: neither KILN_CACHE_DIR nor XDG_CACHE_HOME nor HOME is set",
                     .advised = "set KILN_CACHE_DIR",
                     .verdict = Verdict::advice});
  else {
    lines.push_back(cache_folder(e.cache_dir, e.cache_trust_shared, "cache"));
    if (lines.back().found.ends_with("not there")) lines.back().found += " yet; the first compile makes it";
  }
  for (const fs::path& layer : e.cache_layers) {
    lines.push_back(cache_folder(layer, e.cache_trust_shared, "cache layer"));
    if (lines.back().found.ends_with("not there")) lines.back().advise("mend or remove it in KILN_CACHE_LAYERS", Verdict::problem);
  }
  return lines;
}

DoctorLine names() {
  const std::vector<std::string> unknown = unknown_variables();
  DoctorLine line{.subject = "KILN_ variables", .why = "a misspelt variable does nothing", .found = "all known"};
  if (unknown.empty()) return line;
  line.found = fmt::format("Kiln knows no {}", fmt::join(unknown, ", "));
  line.advise("kiln env lists those it knows");
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
  std::vector<DoctorLine> lines = gpu_lines(sources);
  lines.insert(lines.end(), {compiler(sources), worker(sources)});
  for (const KernelSetting& s : settings) lines.push_back(setting(sources, s));
  lines.insert(lines.end(), {queues(sources), numa(sources), clocks(sources)});
  for (DoctorLine& line : caches(sources)) lines.push_back(std::move(line));
  lines.push_back(names());
  return lines;
}

} // namespace kiln
