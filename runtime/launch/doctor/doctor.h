// doctor: what of this machine and this process's environment makes Kiln's kernels slow or keeps them from running.
#pragma once
#include "runtime/environment.h"
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace kiln {

enum class Verdict : std::uint8_t {
  good,
  advice,  // works; could be better
  problem, // something will not work
};
std::string_view to_string(Verdict verdict);

struct DoctorLine {
  std::string subject, found, advised, why; // advised is empty where nothing is to be done
  Verdict verdict = Verdict::good;
};

struct DoctorSources {
  std::filesystem::path root = "/"; // of /sys, /proc, /dev and /opt
  VariableLookup variables;         // other programs' variables; empty: none is set
  Environment environment;          // Kiln's own
};

// Looks, and changes nothing. Never throws because of what it finds.
std::vector<DoctorLine> examine(const DoctorSources& sources);

} // namespace kiln
