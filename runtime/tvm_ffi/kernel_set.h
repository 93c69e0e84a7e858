// KernelSet: the kernels that a manifest, a cache folder or the text of one spec names, to be called with positional arguments.
#pragma once
#include "gen/plan/target.h"
#include "gen/spec/spec.h"
#include "runtime/compile/compile.h"
#include <filesystem>
#include <map>
#include <string>
#include <vector>

namespace kiln::tvm {

struct Parameter {
  std::string name;
  bool is_tensor = true;   // else a number
  bool is_written = false; // an output, or an input that an output overwrites
  DType dtype = f32;
  Shape shape = {};
  bool operator==(const Parameter&) const = default;
};

// One kernel, for some types and sizes.
struct Variant {
  KernelSpec spec;
  std::vector<std::string> overrides; // of its schedule
  std::vector<Parameter> parameters;  // inputs, scalars, outputs, each in the order of the canonical text; no output in place of an input
};
Variant variant_of(KernelSpec spec, std::vector<std::string> overrides = {});
std::string signature(const Variant& variant); // "scale(x: f16[rows, 512], factor: f32, y: f16[rows, 512])"; outputs end in " out"

struct KernelSet {
  std::map<std::string, std::vector<Variant>> variants; // by the kernel's name
  bool is_folder = false;                               // compiled already: nothing is to be compiled for them
};

// A folder: a cache as `kiln aot` makes it. NAME.kiln: the text of a spec. Another file: a manifest for `kiln aot`. Kernels of other
// architectures than the target are left out. Throws UserError for what cannot be read, or holds no kernel for the target.
KernelSet read_kernels(const std::filesystem::path& path, const Target& target, const CompileOptions& options);

// A tensor or number that a call gives.
struct Given {
  bool is_tensor = true;
  DType dtype = f32;
  std::vector<std::int64_t> shape = {};
};
// The variant whose types and sizes these are; of several with bounds of run-time sizes the one with the closest bounds. Throws UserError
// that lists the variants when none takes them, or when two differ in nothing that a call shows.
const Variant& choose(const std::string& kernel, const std::vector<Variant>& variants, const std::vector<Given>& given);

} // namespace kiln::tvm
