// Finding and reading settings files.
#include "isa_checks/cli/policy.h"
#include "isa_checks/error.h"
#include "isa_checks/object/yaml.h"
#include <algorithm>
#include <array>
#include <filesystem>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <fstream>

namespace kiln::isa::cli {
namespace {

namespace fs = std::filesystem;
constexpr std::string_view settings_name = ".isa_lint.yaml";
constexpr std::size_t largest_text = 16 << 20; // bytes; settings, expectations and baselines have kilobytes

// The nearest settings file in the folder of `file` or above; "" when there is none.
std::string find_settings(const std::string& file) {
  std::error_code error;
  fs::path folder = fs::absolute(file, error).parent_path();
  while (!error) {
    const fs::path candidate = folder / settings_name;
    if (fs::is_regular_file(candidate, error)) return candidate.string();
    if (folder == folder.parent_path()) break;
    folder = folder.parent_path();
    error.clear();
  }
  return {};
}

class SettingsReader {
public:
  SettingsReader(const std::string& path) : path_(path), read_(path) {}

  Policy run() {
    const YamlNode root = parse_yaml(read_text_file(path_), path_);
    if (root.kind == YamlNode::Kind::null) return {};
    read_.expect(root, YamlNode::Kind::map, "the file");
    for (const auto& [key, value] : root.keys) {
      if (key == "severity") policy_.severity = severity(value);
      else if (key == "rules") rules(value);
      else if (key == "expect") expectations(read_.text(value, key));
      else if (key == "baseline") policy_.baseline = beside(read_.text(value, key));
      else if (key == "suppress") suppress(value);
      else if (key == "pinned") pinned(value);
      else read_.unknown_key(value, key, "severity, rules, expect, baseline, suppress or pinned");
    }
    return std::move(policy_);
  }

private:
  // Paths in the file are relative to it.
  std::string beside(const std::string& path) const { return (fs::path(path_).parent_path() / path).string(); }

  void expectations(const std::string& path) {
    const std::string file = beside(path);
    policy_.expectations = parse_expectations(read_text_file(file), file);
  }

  Severity severity(const YamlNode& node) const {
    if (const auto value = severity_of(read_.text(node, "severity"))) return *value;
    read_.fail(node, fmt::format("'severity' is '{}'", node.text), "write error, warning or info");
  }

  std::vector<std::string> ids(const YamlNode& node, const std::string& key) const {
    std::vector<std::string> result;
    for (const std::string& word : read_.texts(node, key))
      for (std::string& id : rules_named(word, fmt::format("{}:{}", path_, node.line))) result.push_back(std::move(id));
    return result;
  }

  void rules(const YamlNode& node) {
    read_.expect(node, YamlNode::Kind::map, "rules");
    for (const auto& [key, value] : node.keys) {
      if (key == "enable") policy_.rules.with = ids(value, key);
      else if (key == "disable") policy_.rules.without = ids(value, key);
      else read_.unknown_key(value, key, "enable or disable");
    }
  }

  // The registers of PIN001.
  void pinned(const YamlNode& node) {
    read_.expect(node, YamlNode::Kind::map, "pinned");
    PinnedRegisters& registers = policy_.rules.pinned.emplace();
    const YamlNode* const first = node.find("first_vgpr");
    if (!first) read_.fail(node, "'pinned' lacks first_vgpr", "say which vector register is the first that is kept");
    for (const auto& [key, value] : node.keys)
      if (key == "first_vgpr") registers.first_vgpr = static_cast<int>(read_.count(value, key));
      else if (key == "allowed") registers.allowed = read_.texts(value, key);
      else read_.unknown_key(value, key, "first_vgpr or allowed");
  }

  std::string suppressed_rule(const YamlNode& node) const {
    const std::string word = read_.text(node, "rule");
    if (word != "*" && !names_rule(word, contract_rule)) rules_named(word, fmt::format("{}:{}", path_, node.line)); // throws
    return word;
  }

  void suppress(const YamlNode& node) {
    read_.expect(node, YamlNode::Kind::list, "suppress");
    for (const YamlNode& item : node.items) {
      read_.expect(item, YamlNode::Kind::map, "an entry of suppress");
      SuppressionEntry entry;
      bool reason = false;
      for (const auto& [key, value] : item.keys) {
        if (key == "rule") entry.rule = suppressed_rule(value);
        else if (key == "kernel") entry.kernel = read_.text(value, key);
        else if (key == "arch") entry.arch = read_.text(value, key);
        else if (key == "file") entry.file = read_.text(value, key);
        else if (key == "reason") reason = !read_.text(value, key).empty();
        else read_.unknown_key(value, key, "rule, kernel, arch, file or reason");
      }
      if (!reason) read_.fail(item, "an entry of suppress has no reason", "say why it is accepted: reason: \"...\"");
      policy_.suppressions.push_back(std::move(entry));
    }
  }

  std::string path_;
  YamlReader read_;
  Policy policy_;
};

} // namespace

std::string read_text_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::error_code error;
  if (!file || fs::is_directory(path, error)) throw Error(path, "it cannot be opened for reading", "check the path and its permissions");
  std::string text;
  std::array<char, 64 * 1024> piece;
  do {
    file.read(piece.data(), piece.size());
    text.append(piece.data(), static_cast<std::size_t>(file.gcount()));
    if (text.size() > largest_text)
      throw Error(path, fmt::format("it has more than {} MiB", largest_text >> 20), "give the file that was meant");
  } while (file);
  return text;
}

Policies::Policies(PolicyOptions options) : options_(std::move(options)) {}

std::shared_ptr<const Policy> Policies::of(const std::string& file) {
  const std::string settings = options_.no_settings ? std::string() : options_.settings ? *options_.settings : find_settings(file);
  const auto known = by_settings_.find(settings);
  if (known != by_settings_.end()) return known->second;
  return by_settings_.emplace(settings, load(settings)).first->second;
}

std::shared_ptr<const Policy> Policies::load(const std::string& settings) {
  Policy policy = settings.empty() ? Policy{} : SettingsReader(settings).run();
  LintOptions& rules = policy.rules;
  const LintOptions& said = options_.rules;
  // A rule that the command line names overrules what the settings file says of it.
  std::erase_if(rules.without, [&](const std::string& id) { return std::ranges::find(said.with, id) != said.with.end(); });
  if (!said.only.empty()) rules = {.pinned = rules.pinned};
  rules.only = said.only;
  rules.all = rules.all || said.all;
  rules.with.insert(rules.with.end(), said.with.begin(), said.with.end());
  rules.without.insert(rules.without.end(), said.without.begin(), said.without.end());
  if (options_.severity) policy.severity = *options_.severity;
  if (options_.expect) policy.expectations = parse_expectations(read_text_file(*options_.expect), *options_.expect);
  if (options_.baseline) policy.baseline = *options_.baseline;
  return std::make_shared<const Policy>(std::move(policy));
}

std::shared_ptr<const Baseline> Policies::baseline(const Policy& policy) {
  if (policy.baseline.empty()) return std::make_shared<const Baseline>();
  auto& known = baselines_[policy.baseline];
  if (!known) known = std::make_shared<const Baseline>(Baseline::parse(read_text_file(policy.baseline), policy.baseline));
  return known;
}

Finding contract_finding(const IsaReport& report, const ExpectationResult& result) {
  Finding finding;
  finding.rule = contract_rule;
  finding.severity = Severity::error;
  finding.kernel = report.kernel;
  finding.arch = report.arch;
  finding.message = fmt::format("{} is expected to be {} and is {}{}", result.name, result.expected, result.found,
                                result.evidence.empty() ? "" : fmt::format(" ({})", fmt::join(result.evidence, "; ")));
  finding.why = contract_why;
  finding.advice = contract_advice;
  return finding;
}

} // namespace kiln::isa::cli
