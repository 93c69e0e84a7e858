// Rule: one check of isa_lint, with the words that explain it, and the table of all of them.
#pragma once
#include "isa_checks/verdict/finding.h"
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace kiln::isa {

struct KernelAnalysis;
class FindingSink; // isa_checks/verdict/rules/sink.h

// All but `check` is read from the page docs/rules/ID.md, where alone the words stand.
struct Rule {
  std::string_view id;                // "MEM001": stable, in reports, baselines and suppressions
  std::string_view name;              // "narrow-global-access": for people
  Severity severity = Severity::info; // of its findings, unless a finding says otherwise
  bool on = false;                    // runs unless switched off; the others run when they are asked for
  std::string_view summary;           // one line
  std::string_view why;               // why it costs; goes into each finding
  std::string_view advice;            // what to try; goes into each finding
  std::string_view page;              // the whole page, in Markdown
  void (*check)(const KernelAnalysis& kernel, FindingSink& sink) = nullptr;
};

std::span<const Rule> all_rules();          // by id within its family; the families' order is in cmake/embed_pages.cmake
const Rule* find_rule(std::string_view id); // null for an id that is none

// A word that a person writes names a rule, in any case: by its id or the beginning of it ("MEM001", "mem"), its name
// ("narrow-global-access"), or a glob over either ("MEM*").
bool names_rule(std::string_view word, std::string_view id);
// The ids of all rules that `word` names ("all": every one). Throws Error when there are none; `what` is the error's subject.
std::vector<std::string> rules_named(std::string_view word, const std::string& what);

} // namespace kiln::isa
