// isa_lint explain: the rules, in a list or one by its page.
#include "isa_checks/cli/command.h"
#include "isa_checks/cli/scan.h"
#include "isa_checks/error.h"
#include "isa_checks/verdict/rule.h"
#include <fmt/format.h>

namespace kiln::isa::cli {
namespace {

constexpr std::string_view contract_page = R"(# EXPECT: an expectation of the kernel is not met

Severity error; on whenever expectations are given, by --expect FILE or `expect:` in .isa_lint.yaml. The file says what the code of a
kernel has to look like, and the finding says what it looks like instead. docs/isa_lint.md has the file's format.
)";

std::string with_line_feed(std::string_view page) { return std::string(page) + (page.ends_with('\n') ? "" : "\n"); }

class Explain : public Command {
public:
  Explain()
      : Command("isa_lint explain", "What a rule finds, why it costs and what to try; without RULE, the list of all rules") {
    app.add_option("rule", rule_, "The rule's id, such as MEM001")->type_name("RULE");
  }

  int run(Streams& streams) override {
    if (rule_.empty())
      list(streams.out);
    else if (rule_ == contract_rule)
      streams.out << contract_page;
    else
      explain(streams.out);
    return clean;
  }

private:
  static void list(std::ostream& out) {
    for (const Rule& rule : all_rules())
      out << fmt::format("{:<8} {:<8} {:<4} {}\n", rule.id, to_string(rule.severity), rule.on ? "on" : "off", rule.summary);
    out << fmt::format("{:<8} {:<8} {:<4} {}\n", contract_rule, "error", "on", "an expectation of the kernel is not met");
  }

  void explain(std::ostream& out) const {
    const Rule* const rule = find_rule(rule_);
    if (!rule) throw Error("rule '" + rule_ + "'", "there is no such rule", "isa_lint explain lists them");
    out << with_line_feed(rule->page);
  }

  std::string rule_;
};

} // namespace

std::unique_ptr<Command> make_explain() { return std::make_unique<Explain>(); }

} // namespace kiln::isa::cli
