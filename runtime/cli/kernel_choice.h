// KernelChoice: NAME|FILE and the options of the catalogue, as the command line gives them.
#pragma once
#include "gen/catalog/options.h"
#include "gen/plan/target.h"
#include "gen/spec/spec.h"
#include <CLI/CLI.hpp>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace kiln::cli {

struct KernelChoice {
  std::string kernel;                                  // a name of the catalogue, or a file with the text of a spec
  std::map<const CatalogOption*, std::string> options; // those that were given
};

// A file of kernels and not of one spec: docs/aot.md.
bool is_manifest(const std::string& file); // by its name, "kernels.jsonl"

std::string flag_of(const CatalogOption& option); // "--max-rows"
void add_kernel_options(CLI::App& app, KernelChoice& choice);

// The spec; fp8 of a catalogue entry is the native one of `target` unless asked otherwise.
// Throws UserError: no such entry or file, options that the entry does not have, options beside a file (which says everything itself),
// malformed text.
KernelSpec chosen_spec(const KernelChoice& choice, const Target& target);

// NAME=SIZE settings of run-time sizes of the spec. Throws UserError for malformed ones and for names that it does not have.
std::map<std::string, std::int64_t> named_sizes(const std::vector<std::string>& settings, const KernelSpec& spec);

} // namespace kiln::cli
