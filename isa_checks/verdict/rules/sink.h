// FindingSink: where a rule puts what it finds; fills in all that follows from the rule and the place.
#pragma once
#include "isa_checks/analysis/kernel_analysis.h"
#include "isa_checks/verdict/lint.h"
#include "isa_checks/verdict/rule.h"
#include <map>
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
  // Claims of one rule, loop, severity and cause become one finding: the first of them, with the places of all. "": never.
  std::string cause = {};
  std::vector<std::string> path = {}; // see Finding
  // What would mend it, before the first instruction; "": the rule's advice, and the share of the clocks that is at stake.
  std::string change = {}, effect = {};
};

class FindingSink {
public:
  FindingSink(const KernelAnalysis& kernel, const LintOptions& options) : kernel_(kernel), options_(options) {}
  const LintOptions& options() const { return options_; }
  void begin(const Rule& rule) { rule_ = &rule; }
  void add(Claim claim);
  // One finding about all of the instructions, with their count as evidence: `what` names it. Nothing when there are none.
  void add_counted(std::string what, std::string message, std::vector<std::size_t> instructions, std::size_t loop = nothing);
  std::vector<Finding> take();

private:
  double share_of(const Claim& claim) const;

  const KernelAnalysis& kernel_;
  const LintOptions& options_;
  const Rule* rule_ = nullptr;
  std::vector<Finding> findings_;
  struct Group {
    std::size_t finding; // index
    std::size_t places;  // claims in it
  };
  std::map<std::string, Group> groups_; // by rule, loop, severity and cause
};

} // namespace kiln::isa
