// Which findings are accepted.
#include "isa_checks/cli/suppressions.h"
#include "isa_checks/error.h"
#include "isa_checks/object/yaml.h"
#include "isa_checks/verdict/expectations_file.h"
#include "isa_checks/verdict/rule.h"
#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

namespace kiln::isa::cli {
namespace {

constexpr std::string_view mark = "isa_lint:";
constexpr std::uintmax_t largest_source = 64 << 20; // bytes; a longer file is hardly a source that a person commented

// "allow MEM001, WAIT001 (reason)": the rule ids after the word, up to what is none.
std::set<std::string, std::less<>> rules_in(std::string_view text) {
  std::set<std::string, std::less<>> rules;
  while (!text.empty()) {
    text.remove_prefix(std::min(text.find_first_not_of(" \t,"), text.size()));
    const std::size_t end = std::min(text.find_first_not_of("ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789*"), text.size());
    if (end == 0) break;
    rules.emplace(text.substr(0, end));
    text.remove_prefix(end);
  }
  return rules;
}

bool names(const std::set<std::string, std::less<>>& rules, std::string_view id) { return rules.contains(id) || rules.contains("*"); }

} // namespace

bool matches(const SuppressionEntry& entry, const Finding& finding, const std::string& file) {
  return names_rule(entry.rule, finding.rule) && matches_glob(entry.kernel, finding.kernel) && matches_glob(entry.arch, finding.arch) &&
         (matches_glob(entry.file, file) || matches_glob(entry.file, std::filesystem::path(file).filename().string()));
}

Baseline::Key Baseline::key_of(const Finding& finding) { return {finding.rule, finding.kernel, finding.arch}; }

std::uint32_t Baseline::known(const Finding& finding) const {
  const auto at = counts_.find(key_of(finding));
  return at == counts_.end() ? 0 : at->second;
}

Baseline Baseline::parse(std::string_view text, const std::string& name) {
  const YamlReader read(name);
  const YamlNode root = parse_yaml(text, name);
  read.expect(root, YamlNode::Kind::map, "the file");
  const YamlNode* const list = root.find("findings");
  if (!list) read.fail(root, "it has no list 'findings'", "write it with --write-baseline");
  read.expect(*list, YamlNode::Kind::list, "findings");
  Baseline result;
  for (const YamlNode& item : list->items) {
    std::string rule, kernel, arch;
    std::uint32_t count = 1;
    read.expect(item, YamlNode::Kind::map, "an entry of findings");
    for (const auto& [key, value] : item.keys) {
      if (key == "rule") rule = read.text(value, key);
      else if (key == "kernel") kernel = read.text(value, key);
      else if (key == "arch") arch = read.text(value, key);
      else if (key == "count") count = read.count(value, key);
      else read.unknown_key(value, key, "rule, kernel, arch or count");
    }
    if (rule.empty() || kernel.empty() || arch.empty()) read.fail(item, "an entry lacks rule, kernel or arch", "give all three");
    result.counts_[{rule, kernel, arch}] += count;
  }
  return result;
}

std::string Baseline::to_json() const {
  nlohmann::ordered_json json{{"version", 1}, {"findings", nlohmann::ordered_json::array()}};
  for (const auto& [key, count] : counts_) {
    const auto& [rule, kernel, arch] = key;
    json["findings"].push_back({{"rule", rule}, {"kernel", kernel}, {"arch", arch}, {"count", count}});
  }
  return json.dump(1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

std::size_t remove_known(std::vector<Finding>& findings, const Baseline& baseline) {
  std::map<Baseline::Key, std::uint32_t> seen;
  return std::erase_if(findings, [&](const Finding& f) { return ++seen[Baseline::key_of(f)] <= baseline.known(f); });
}

bool SourceComments::allows(const Finding& finding, const std::string& kernel_file) {
  const std::string& file = finding.file.empty() ? kernel_file : finding.file;
  if (file.empty()) return false;
  const Allowed& allowed = of(file);
  if (names(allowed.whole_file, finding.rule)) return true;
  if (finding.line == 0) return false;
  return std::ranges::any_of(std::array{finding.line, finding.line - 1}, [&](int line) {
    const auto at = allowed.lines.find(line);
    return at != allowed.lines.end() && names(at->second, finding.rule);
  });
}

const SourceComments::Allowed& SourceComments::of(const std::string& file) {
  const std::lock_guard lock(mutex_);
  const auto at = files_.find(file); // a map's elements stay where they are
  return at != files_.end() ? at->second : files_.emplace(file, read(file)).first->second;
}

SourceComments::Allowed SourceComments::read(const std::string& file) {
  Allowed allowed;
  std::error_code error;
  if (!std::filesystem::is_regular_file(file, error) || std::filesystem::file_size(file, error) > largest_source) return allowed;
  std::ifstream text(file);
  std::string line;
  for (int number = 1; std::getline(text, line); ++number) {
    const std::size_t at = line.find(mark);
    if (at == line.npos) continue;
    std::string_view rest = std::string_view(line).substr(at + mark.size());
    rest.remove_prefix(std::min(rest.find_first_not_of(" \t"), rest.size()));
    constexpr std::string_view whole = "allow-file ", one = "allow ";
    if (rest.starts_with(whole)) allowed.whole_file.merge(rules_in(rest.substr(whole.size())));
    else if (rest.starts_with(one)) allowed.lines[number].merge(rules_in(rest.substr(one.size())));
  }
  return allowed;
}

} // namespace kiln::isa::cli
