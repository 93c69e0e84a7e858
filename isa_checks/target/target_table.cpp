// Rows of machine/arch.h by name and number.
#include "isa_checks/target/target_table.h"
#include "isa_checks/error.h"
#include <string>

namespace kiln::isa {

const TargetFacts* find_target(std::string_view arch) {
  for (const TargetFacts& facts : machine::archs)
    if (facts.name == arch) return &facts;
  return nullptr;
}

const TargetFacts* find_target_by_machine(std::uint32_t number) {
  for (const TargetFacts& facts : machine::archs)
    if (facts.elf_machine == number) return &facts;
  return nullptr;
}

const TargetFacts& target_facts(std::string_view arch) {
  if (const TargetFacts* facts = find_target(arch)) return *facts;
  throw UnknownArch("architecture", "'" + std::string(arch) + "' is not in the target table",
                    "use one of " + std::string(known_target_names()));
}

std::string_view known_target_names() {
  static const std::string names = [] {
    std::string all;
    for (const TargetFacts& facts : machine::archs) all += (all.empty() ? "" : ", ") + std::string(facts.name);
    return all;
  }();
  return names;
}

} // namespace kiln::isa
