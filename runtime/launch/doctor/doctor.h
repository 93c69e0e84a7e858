// doctor: what of this machine and this process's environment makes Kiln's kernels slow or keeps them from running.
#pragma once
#include "runtime/environment.h"
#include <cstdint>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

namespace kiln {

enum class Verdict : std::uint8_t {
  good,
  advice,  // works; could be better
  problem, // something will not work
};
std::string_view to_string(Verdict verdict);

struct DoctorLine {
  std::string subject, why;
  std::string found = {}, advised = {}; // the latter is empty where nothing is to be done
  Verdict verdict = Verdict::good;

  // Makes it a line of which something is to be done.
  void advise(std::string what, Verdict how = Verdict::advice) {
    advised = std::move(what);
    verdict = how;
  }
};

struct DoctorSources {
  std::filesystem::path root = "/"; // of /sys, /proc, /dev and /opt
  VariableLookup variables;         // other programs' variables; empty: none is set
  Environment environment;          // Kiln's own
};

// Looks, and changes nothing. Never throws because of what it finds.
std::vector<DoctorLine> examine(const DoctorSources& sources);

// "gfx942" of each node of the driver's topology that is a GPU, in its order, without HIP. `root` is "/", but in tests. Without a
// driver: none.
std::vector<std::string> driver_archs(const std::filesystem::path& root);

} // namespace kiln
