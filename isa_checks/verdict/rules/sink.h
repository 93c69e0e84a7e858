// FindingSink: where a rule puts what it finds; fills in all that follows from the rule and the place.
#pragma once
#include "isa_checks/analysis/kernel_analysis.h"
#include "isa_checks/verdict/lint.h"
#include "isa_checks/verdict/rule.h"
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace kiln::isa {

// What a rule says itself. Everything else of a Finding comes from the rule's words and the kernel.
struct Claim {
  std::string message;
  std::vector<Evidence> evidence;
  std::vector<std::size_t> instructions = {}; // by index; the first is the finding's place, the rest are `others`
  std::size_t loop = nothing;                 // nothing: the innermost around the first instruction
  std::optional<Severity> severity = {};      // when it is not the rule's
};

class FindingSink {
public:
  FindingSink(const KernelAnalysis& kernel, const LintOptions& options) : kernel_(kernel), options_(options) {}
  const LintOptions& options() const { return options_; }
  void begin(const Rule& rule) { rule_ = &rule; }
  void add(Claim claim);
  std::vector<Finding> take() { return std::move(findings_); }

private:
  const KernelAnalysis& kernel_;
  const LintOptions& options_;
  const Rule* rule_ = nullptr;
  std::vector<Finding> findings_;
};

} // namespace kiln::isa
