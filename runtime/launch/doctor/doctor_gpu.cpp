// doctor: the lines about the GPU: what HIP needs, in the order in which it needs it.
#include "gen/error.h"
#include "gen/plan/target.h"
#include "runtime/compile/rocm_folders.h"
#include "runtime/launch/doctor/doctor_lines.h"
#include "runtime/launch/hip/hip.h"
#include "runtime/launch/hip/known_bugs.h"
#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <fstream>
#include <grp.h>
#include <sys/stat.h>
#include <unistd.h>

namespace kiln {

namespace fs = std::filesystem;

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

// Those of /sys/class/kfd/kfd/topology/nodes/N/properties.
std::vector<std::string> driver_archs(const std::filesystem::path& root) {
  std::vector<std::string> archs;
  for (const std::filesystem::path& node : folders_in(root / "sys/class/kfd/kfd/topology/nodes")) {
    std::ifstream stream(node / "properties");
    std::string key;
    for (std::uint64_t value = 0; stream >> key >> value;)
      if (key == "gfx_target_version" && value != 0) // 90402 is gfx942: two digits each of major, minor, stepping
        archs.push_back(fmt::format("gfx{}{:x}{:x}", value / 10000, value / 100 % 100, value % 100));
  }
  return archs;
}

std::string variable(const DoctorSources& sources, std::string_view name) {
  return sources.variables ? sources.variables(name).value_or(std::string()) : std::string();
}

namespace {

DoctorLine driver(const DoctorSources& sources) {
  const fs::path module = sources.root / "sys/module/amdgpu";
  DoctorLine line{.subject = "driver", .why = "amdgpu is what HIP talks to, through /dev/kfd"};
  std::error_code error;
  if (!fs::exists(module, error)) {
    line.found = "the kernel module amdgpu is not loaded";
    line.advise("on a machine with a GPU: load it (modprobe amdgpu); elsewhere Kiln compiles and emulates without it");
    return line;
  }
  const std::string version = first_line(module / "version");
  line.found = version.empty() ? "amdgpu, the one of the Linux kernel" : "amdgpu " + version;
  return line;
}

std::string group_of(const fs::path& node) {
  struct stat facts{};
  if (stat(node.c_str(), &facts) != 0) return "unknown";
  const group* const entry = getgrgid(facts.st_gid);
  return entry != nullptr ? entry->gr_name : fmt::format("{}", facts.st_gid);
}

// The nodes that HIP opens, one after the other.
DoctorLine nodes(const DoctorSources& sources) {
  DoctorLine line{.subject = "device nodes", .why = "HIP opens /dev/kfd first, then /dev/dri/renderD* of each GPU"};
  std::error_code error;
  std::vector<fs::path> found;
  if (fs::exists(sources.root / "dev/kfd", error)) found.push_back(sources.root / "dev/kfd");
  for (const fs::path& node : folders_in(sources.root / "dev/dri"))
    if (node.filename().string().starts_with("renderD")) found.push_back(node);
  if (found.empty()) {
    line.found = "there is no /dev/kfd and no /dev/dri/renderD*";
    if (!fs::exists(sources.root / "sys/module/amdgpu", error)) return line; // the line above says it
    line.advise("in a container: pass --device=/dev/kfd --device=/dev/dri to it", Verdict::problem);
    return line;
  }
  std::vector<std::string> texts, groups;
  for (const fs::path& node : found) {
    const bool opens = access(node.c_str(), R_OK | W_OK) == 0;
    texts.push_back(fmt::format("/{} {}", fs::relative(node, sources.root, error).string(), opens ? "can be opened" : "may not be opened"));
    if (!opens) groups.push_back(group_of(node));
  }
  line.found = fmt::format("{}", fmt::join(texts, ", "));
  if (found.front().filename() != "kfd" || found.size() == 1)
    line.advise(found.size() == 1 ? "one of /dev/kfd and /dev/dri/renderD* is missing: pass both to the container"
                                  : "pass --device=/dev/kfd to the container",
                Verdict::problem);
  if (groups.empty()) return line;
  std::ranges::sort(groups);
  groups.erase(std::ranges::unique(groups).begin(), groups.end());
  line.advise(fmt::format("add this user to the group{} {} (usermod -a -G), and log in anew", groups.size() == 1 ? "" : "s",
                          fmt::join(groups, ", ")),
              Verdict::problem);
  return line;
}

DoctorLine rocm(const DoctorSources& sources) {
  DoctorLine line{.subject = "ROCm", .why = "6.2 is the oldest whose hipRTC and HIP Kiln knows"};
  for (const fs::path& folder : rocm_folders(sources.variables, sources.root))
    if (const std::string version = first_line(folder / ".info/version"); !version.empty()) {
      line.found = fmt::format("{} in {}", version, folder.string());
      return line;
    }
  line.found = "no .info/version in ROCM_PATH, HIP_PATH, /opt/rocm or /opt/rocm-*; libraries of the distribution may do";
  return line;
}

DoctorLine gpus(const DoctorSources& sources) {
  DoctorLine line{.subject = "GPUs", .why = "as the driver lists them; HIP_VISIBLE_DEVICES and containers hide some"};
  const std::vector<std::string> archs = driver_archs(sources.root);
  line.found = archs.empty() ? "none" : fmt::format("{}", fmt::join(archs, ", "));
  return line;
}

// Why HIP sees no device although the driver has one.
std::string why_no_device(const DoctorSources& sources, const Hip& loaded) {
  const std::vector<std::string> archs = driver_archs(sources.root);
  if (archs.empty()) return {};
  const int major = RocmVersion::parse(loaded.version()).major;
  if (major < 7 && std::ranges::find(archs, "gfx950") != archs.end()) // 6.4.3 says "Unsupported HSA device"
    return fmt::format("HIP {} does not know gfx950: take ROCm 7, and KILN_HIP_PATH if it is not found", loaded.version());
  for (const char* name : {"HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES", "CUDA_VISIBLE_DEVICES"})
    if (const std::string value = variable(sources, name); !value.empty())
      return fmt::format("unset {}={}, which may hide it", name, value);
  return "see the lines \"driver\" and \"device nodes\"; rocminfo says what ROCr finds";
}

DoctorLine hip(const DoctorSources& sources, const Hip& loaded) {
  DoctorLine line{.subject = "HIP runtime", .why = "it loads and launches kernels"};
  const std::string head = fmt::format("{} from {}", loaded.version(), loaded.path());
  try {
    std::vector<std::string> devices;
    for (int i = 0, count = loaded.device_count(); i < count; ++i) {
      const HipDeviceFacts facts = loaded.device(i);
      devices.push_back(fmt::format("{} ({})", facts.name, facts.arch));
      if (std::ranges::find(known_archs(), facts.arch) == known_archs().end())
        line.advise(fmt::format("Kiln generates code for {} only", fmt::join(known_archs(), ", ")));
    }
    line.found = fmt::format("{}; {}", head, devices.empty() ? "no device" : fmt::format("{}", fmt::join(devices, ", ")));
    if (devices.empty()) line.advised = why_no_device(sources, loaded);
  } catch (const EnvironmentError& error) {
    line.found = fmt::format("{}; {}", head, error.fact);
    line.advised = why_no_device(sources, loaded);
    if (line.advised.empty()) line.advised = error.remedy;
  }
  if (!line.advised.empty()) line.verdict = Verdict::advice; // compiling and emulating go on
  return line;
}

DoctorLine bugs(const DoctorSources& sources, const Hip& loaded) {
  DoctorLine line{.subject = "known bugs", .why = "they look like faults of a kernel"};
  const std::string beside = first_line(fs::path(loaded.path()).parent_path().parent_path() / ".info/version");
  RocmVersion version = RocmVersion::parse(beside.empty() ? loaded.version() : beside);
  if (beside.empty()) version.patch.reset(); // of HIP: a build number
  std::vector<std::string> archs = driver_archs(sources.root);
  try {
    for (int i = 0, count = loaded.device_count(); i < count; ++i) archs.push_back(loaded.device(i).arch);
  } catch (const EnvironmentError&) { // the line above says it
  }
  std::vector<std::string> found, remedies;
  for (const KnownBug& bug : known_bugs())
    if (std::ranges::any_of(archs, [&](const std::string& arch) { return may_have(bug, arch, version); })) {
      found.push_back(fmt::format("{} ({})", bug.what, bug.where));
      remedies.emplace_back(bug.remedy);
    }
  const std::string name = fmt::format("{}.{}{}", version.major, version.minor, version.patch ? fmt::format(".{}", *version.patch) : "");
  line.found = found.empty() ? fmt::format("none of {} for this GPU", name) : fmt::format("{} may have: {}", name, fmt::join(found, "; "));
  if (!found.empty()) line.advise(fmt::format("{}", fmt::join(remedies, "; ")));
  return line;
}

std::vector<DoctorLine> hip_lines(const DoctorSources& sources) {
  try {
    const Hip loaded(sources.environment.hip_path);
    return {hip(sources, loaded), bugs(sources, loaded)};
  } catch (const EnvironmentError& error) {
    return {{.subject = "HIP runtime",
             .why = "it loads and launches kernels",
             .found = error.fact,
             .advised = error.remedy,
             .verdict = Verdict::advice}}; // compiling and emulating go on
  }
}

} // namespace

std::vector<DoctorLine> gpu_lines(const DoctorSources& sources) {
  std::vector<DoctorLine> lines{driver(sources), nodes(sources), gpus(sources), rocm(sources)};
  for (DoctorLine& line : hip_lines(sources)) lines.push_back(std::move(line));
  return lines;
}

} // namespace kiln
