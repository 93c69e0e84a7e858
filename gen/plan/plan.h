// Plan: a spec, analysed once, and the family that computes it.
#pragma once
#include "gen/plan/body.h"
#include "gen/plan/expert_sort.h"
#include "gen/plan/part.h"
#include "gen/plan/product.h"
#include "gen/plan/target.h"

namespace kiln {

struct Family; // gen/families/common/family.h
struct Plan;

// What every stage reads, found once: the products of a spec, and the rest of it.
struct AnalysedSpec {
  KernelSpec spec;                           // equal subexpressions merged
  std::vector<Product> products;             // empty without
  Body body;                                 // the whole spec; of a spec with products or a part their epilogue, which has them as inputs
  std::shared_ptr<const SpecPart> part = {}; // that the family splits off; null for most
  std::optional<SortParts> sort = {};        // of pairs by expert, behind the rest
  // Those that problems_of gives, for a spec with several. Then the body has their tensors together, and no values.
  std::vector<std::shared_ptr<Plan>> problems = {};
  // Problems in sequence: how many each phase has, in their order; and what a phase leaves in the workspace for those behind it, as the
  // inputs that they read.
  std::vector<std::size_t> phases = {};
  std::vector<Expr> between = {};
};

struct Plan : AnalysedSpec {
  const Family* family = nullptr; // never null; a Plan comes from make_plan of gen/families/make_plan.h
};

// Validates, merges equal subexpressions, splits products off. Throws UserError for ill-formed specs, and for fp8 types
// that are not the target's own.
AnalysedSpec analyse(const KernelSpec& spec, const Target& target);

} // namespace kiln
