// CacheReport: what changed between two caches, say what another compiler made of the kernels of a cache: errata, predicted time, lint,
// registers. Regressions come first.
#pragma once
#include "isa_checks/verdict/finding.h"
#include "runtime/cache/folder/cache_folder.h"
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

namespace kiln::cli {

struct FactChange {
  std::string fact; // "resources.vgprs"
  std::string before, after;
};

struct KernelComparison {
  std::string kernel, arch;
  std::string before_key, after_key; // one is empty: the kernel is in one cache only
  std::vector<FactChange> changes;   // of the facts and of the contract; empty: the same code quality
  bool same_code = false;            // byte by byte
};

// Findings, counted by rule and severity: the later ones of a kind are those that came or went.
struct FindingChanges {
  std::vector<isa::Finding> came, went;
  bool empty() const { return came.empty() && went.empty(); }
  std::size_t worse() const; // warnings and errors that came
};

struct KernelReport {
  KernelComparison facts;
  FindingChanges errata;                     // of the rules ERR and CMP, infos too
  FindingChanges lint;                       // of all other rules that are on: warnings and errors
  std::optional<double> before_us, after_us; // predicted; nothing where the code is the same, or could not be run on the CPU model
  std::vector<std::string> not_compared;     // why findings or times were not
  bool changed() const;
  bool regression() const;
  bool slower() const; // by more than a hundredth
};

struct CacheReportOptions {
  std::int64_t rows = 4; // size of every run-time dimension, clamped to its bounds
  bool times = true;     // predict them
};

// Regressions first: by errata that came, then by time, lint and registers; then in the order of compare_folders. Code that is the same
// is neither reviewed nor timed.
std::vector<KernelReport> report_changes(const CacheFolder& before, const CacheFolder& after, const CacheReportOptions& options);

std::string to_text(const KernelReport& report); // nothing where nothing changed
nlohmann::ordered_json to_json(const KernelReport& report);

} // namespace kiln::cli
