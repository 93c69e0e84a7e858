// KernelSpec: a named set of outputs, each an Expr. Inputs are found from the outputs.
#pragma once
#include "gen/spec/expr.h"
#include <string>
#include <string_view>
#include <vector>

namespace kiln {

struct Output {
  std::string name;
  DType dtype;
  Expr value;              // already cast to dtype
  std::string in_place_of; // name of the input whose memory it shares, or empty
  Layout layout = Layout::contiguous;
};

struct OutputOptions {
  std::string in_place_of = {};
  Layout layout = Layout::contiguous;
};

class KernelSpec {
public:
  explicit KernelSpec(std::string name); // a C identifier
  // Adds an output of the shape of `value`. Rounds to `dtype` (fp8 saturates) unless value has that type already.
  KernelSpec& output(std::string name, DType dtype, Expr value, OutputOptions options = {});

  const std::string& name() const { return name_; }
  const std::vector<Output>& outputs() const { return outputs_; }
  // Op::input and Op::scalar nodes in order of first use, depth first from the first output.
  std::vector<Expr> inputs() const;
  std::vector<Expr> scalars() const;
  // The names of the dynamic dims, in order of first use.
  std::vector<Dim> dynamic_dims() const;

private:
  std::string name_;
  std::vector<Output> outputs_;
};

// Throws UserError when the spec is ill-formed: no outputs, two names alike, one name with two types or shapes,
// an in-place pair of different type or shape, values whose shapes do not belong to one iteration space.
void validate(const KernelSpec& spec);

// One canonical text for equal specs; parse_spec(to_text(s)) equals s. Errors carry line and column.
std::string to_text(const KernelSpec& spec);
KernelSpec parse_spec(std::string_view text);
// The same spec with equal nodes merged, as to_text prints it, and in each node the line of that text, from 1, that says it first.
KernelSpec with_lines(const KernelSpec& spec);
bool operator==(const KernelSpec& a, const KernelSpec& b);

} // namespace kiln
