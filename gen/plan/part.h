// Spec part: what one family alone computes of a spec, and behind which an ordinary body is left.
#pragma once
#include "gen/spec/graph.h"
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace kiln {

struct PartRead {
  Expr input;
  int alignment = 1; // bytes
};

class SpecPart {
public:
  virtual ~SpecPart() = default;
  virtual std::vector<PartRead> reads() const = 0;          // in the order of the kernel's arguments; one may be there twice
  virtual bool stands_for(std::string_view name) const = 0; // whether an input of the body is a value of this part
  virtual std::string text() const = 0;                     // of a plan: one line
};

struct PartSplit {
  KernelSpec rest;        // the spec with inputs in the place of the part's values
  bool one_a_row = false; // whether outputs of the rest may have one element a row
  std::shared_ptr<const SpecPart> part;
};

// Whether a spec has a part, and the split of one that has. Throws UserError for a part that cannot be computed.
bool has_part(const SpecGraph& graph);
PartSplit split_part(const SpecGraph& graph);

} // namespace kiln
