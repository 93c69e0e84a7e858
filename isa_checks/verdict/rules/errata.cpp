// ERR001, ERR002: instructions that a published fault of the hardware makes unsafe.
#include "isa_checks/verdict/errata.h"
#include "isa_checks/verdict/rules/rules.h"
#include "isa_checks/verdict/rules/select.h"
#include <string>

namespace kiln::isa::rules {
namespace {

void report(std::string_view rule, const KernelAnalysis& k, FindingSink& sink) {
  for (const std::size_t i : all_instructions(k))
    if (auto erratum = erratum_of(k.instruction(i), *k.target); erratum && erratum->rule == rule)
      sink.add({.message = std::move(erratum->what),
                .evidence = {},
                .instructions = {i},
                .severity = erratum->severity,
                .cause = std::string(rule)});
}

} // namespace

void err001(const KernelAnalysis& k, FindingSink& sink) { report("ERR001", k, sink); }
void err002(const KernelAnalysis& k, FindingSink& sink) { report("ERR002", k, sink); }

} // namespace kiln::isa::rules
