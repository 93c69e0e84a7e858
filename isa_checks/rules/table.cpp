// The table of rules: their words, and which function each is.
#include "isa_checks/rule.h"
#include "isa_checks/rules/rules.h"

namespace kiln::isa {
namespace {

using enum Severity;

constexpr Rule table[] = {
    {.id = "SPL001",
     .name = "scratch-memory",
     .severity = error,
     .on = true,
     .summary = "scratch memory is used",
     .why = "memory of one lane goes through the vector cache path and, at 64 lanes a wave, soon beyond the caches",
     .advice = "unroll loops so that arrays are indexed by constants, keep fewer values live, state launch bounds, or "
               "index LDS instead",
     .check = rules::spl001},
    {.id = "SPL002",
     .name = "vgpr-spills",
     .severity = error,
     .on = true,
     .summary = "vector registers are spilled to scratch memory",
     .why = "each spill is a store and a load of 256 bytes a wave through the vector memory path",
     .advice = "state the workgroup size (__launch_bounds__), ask for fewer waves (amdgpu_waves_per_eu), use smaller "
               "tiles",
     .check = rules::spl002},
    {.id = "SPL005",
     .name = "dynamic-stack",
     .severity = warning,
     .on = true,
     .summary = "the stack has no fixed size",
     .why = "recursion or indirect calls: scratch is sized for the worst case, and nothing was inlined",
     .advice = "remove recursion and function pointers, or force inlining",
     .check = rules::spl005},
};

} // namespace

std::span<const Rule> all_rules() { return table; }

const Rule* find_rule(std::string_view id) {
  for (const Rule& rule : table)
    if (rule.id == id) return &rule;
  return nullptr;
}

} // namespace kiln::isa
