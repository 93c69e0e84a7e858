// Suppressions: findings that somebody has looked at and accepted: in a settings file, a baseline, or a comment in the source.
#pragma once
#include "isa_checks/verdict/finding.h"
#include <cstdint>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

namespace kiln::isa::cli {

// An entry of a settings file: a word that names rules (names_rule), and globs as in fnmatch(3); all of them have to match.
struct SuppressionEntry {
  std::string rule = "*", kernel = "*", arch = "*", file = "*"; // `file`: the input's path or its last part
};
bool matches(const SuppressionEntry& entry, const Finding& finding, const std::string& file);

// Findings known at some time: for each rule, architecture and kernel, how many. More than that are new. Addresses are not
// kept, because every rebuild moves them.
class Baseline {
public:
  using Key = std::tuple<std::string, std::string, std::string>; // rule, kernel, architecture
  Baseline() = default;
  static Baseline parse(std::string_view text, const std::string& name); // throws Error
  void add(const Finding& finding) { ++counts_[key_of(finding)]; }
  // How many findings of this kind are known.
  std::uint32_t known(const Finding& finding) const;
  std::string to_json() const; // what parse reads
  static Key key_of(const Finding& finding);

private:
  std::map<Key, std::uint32_t> counts_;
};

// Removes the findings that the baseline knows (of each kind the first so many); returns how many. For one kernel.
std::size_t remove_known(std::vector<Finding>& findings, const Baseline& baseline);

// Comments in the file of a finding's source line: `isa_lint: allow MEM001, WAIT001` on that line or the one before it, and
// `isa_lint: allow-file MEM001` anywhere in the file; `*` stands for every rule. Files that are not there allow nothing. May be
// used by several threads.
class SourceComments {
public:
  // `kernel_file`: the source file of the kernel's first instruction, for findings that have no line; may be "".
  bool allows(const Finding& finding, const std::string& kernel_file);

private:
  struct Allowed {
    std::map<int, std::set<std::string, std::less<>>> lines; // line of the comment -> rules
    std::set<std::string, std::less<>> whole_file;
  };
  const Allowed& of(const std::string& file);
  static Allowed read(const std::string& file);

  std::mutex mutex_;
  std::map<std::string, Allowed> files_;
};

} // namespace kiln::isa::cli
