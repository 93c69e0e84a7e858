// Policy: what is asked of one file: its rules, threshold, contracts and suppressions, from options and settings file together.
#pragma once
#include "isa_checks/cli/suppressions.h"
#include "isa_checks/verdict/expectations_file.h"
#include "isa_checks/verdict/finding.h"
#include "isa_checks/verdict/lint.h"
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace kiln::isa::cli {

inline constexpr std::string_view contract_rule = "EXPECT"; // of findings about unmet expectations

// What the command line says; an option that was not given is empty and leaves the word to the settings file.
struct PolicyOptions {
  LintOptions rules = {};                                // `least` is not used
  std::optional<Severity> severity = {};                 // the threshold
  std::optional<std::string> expect = {}, baseline = {}; // files
  std::optional<std::string> settings = {};              // this settings file, for every input
  bool no_settings = false;                              // no settings file at all
};

struct Policy {
  LintOptions rules;
  Severity severity = Severity::warning;
  std::vector<KernelExpectations> expectations;
  std::vector<SuppressionEntry> suppressions; // of the settings file
  std::string baseline;                       // path, or ""
};

// Finds the policy of each file: the nearest .isa_lint.yaml in its folder or above it, under the command line.
class Policies {
public:
  explicit Policies(PolicyOptions options);
  // Throws Error for a settings, expectation or baseline file that cannot be read or understood.
  std::shared_ptr<const Policy> of(const std::string& file);
  // The baselines that were read, each shared by all files that name it.
  std::shared_ptr<const Baseline> baseline(const Policy& policy);

private:
  std::shared_ptr<const Policy> load(const std::string& settings);
  PolicyOptions options_;
  std::map<std::string, std::shared_ptr<const Policy>> by_settings_; // by the settings file's path; "" for none
  std::map<std::string, std::shared_ptr<const Baseline>> baselines_; // by path
};

std::string read_text_file(const std::string& path); // throws Error

// An unmet contract as a finding of contract_rule.
inline constexpr std::string_view contract_why = "The kernel's expectations say what its code has to look like.";
inline constexpr std::string_view contract_advice = "Look at what changed since the expectation was met, or change the expectation.";
Finding contract_finding(const IsaReport& report, const ExpectationResult& result);

} // namespace kiln::isa::cli
