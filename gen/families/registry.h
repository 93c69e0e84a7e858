// Registry: every family that Kiln has. A new one is its own files, an include and a name in the list.
#pragma once
#include "gen/families/attention/attention.h"
#include "gen/families/elementwise/elementwise.h"
#include "gen/families/expert_sort/expert_sort.h"
#include "gen/families/grouped_gemm/grouped_gemm.h"
#include "gen/families/rowwise/rowwise.h"
#include "gen/families/skinny_gemm/skinny_gemm.h"
#include <span>
#include <variant>

namespace kiln {

template <typename... Families> struct FamilyList {
  using Config = std::variant<typename Families::Config...>;
};

using RegisteredFamilies =
    FamilyList<Attention, GroupedGemm, SkinnyGemm, ExpertSort, Elementwise, Rowwise>; // the first that takes a spec has it

std::span<const Family> registered_families();

} // namespace kiln
