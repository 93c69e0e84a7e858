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
  Explain() : Command("isa_lint explain", "What a rule finds, why it costs and what to try; without RULE, the list of all rules") {
    app.add_option("rule", rule_, "A rule by id or name, or several by the beginning of their ids: MEM001, mem, narrow-global-access")
        ->type_name("RULE");
  }

  int run(Streams& streams) override {
    if (rule_.empty()) list(streams.out);
    else if (names_rule(rule_, contract_rule)) streams.out << contract_page;
    else explain(streams.out);
    return clean;
  }

private:
  static void list(std::ostream& out) {
    for (const Rule& rule : all_rules())
      out << fmt::format("{:<8} {:<8} {:<4} {}\n", rule.id, to_string(rule.severity), rule.on ? "on" : "off", rule.summary);
    out << fmt::format("{:<8} {:<8} {:<4} {}\n", contract_rule, "error", "on", "an expectation of the kernel is not met");
  }

  void explain(std::ostream& out) const {
    std::string_view separator;
    for (const std::string& id : rules_named(rule_, "isa_lint explain")) {
      out << separator << with_line_feed(find_rule(id)->page);
      separator = "\n";
    }
  }

  std::string rule_;
};

} // namespace

std::unique_ptr<Command> make_explain() { return std::make_unique<Explain>(); }

} // namespace kiln::isa::cli
