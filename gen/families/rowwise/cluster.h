// Cluster: several workgroups that share a row with reductions. Which launches may have them, and what they cost.
#pragma once
#include "gen/families/common/family.h"
#include "templates/rowwise_config.h"
#include <optional>

namespace kiln {

std::int64_t cluster_reductions(const Body& body); // of a row

// Workgroups of a row that has to be reduced exchange their parts.
inline bool is_cluster(const Body& body, const RowwiseConfig& c) { return c.tiles > 1 && cluster_reductions(body) > 0; }

// The most rows of a launch; nothing without bounds of the run-time sizes.
std::optional<std::int64_t> max_rows(const Body& body);

// Whether one CU loads a row for so long that several are worth their meeting.
bool is_long(const RowwiseConfig& config);

// Whether a row costs so much that more CUs than rows are worth it: it is long, or has elements like random numbers, of which one
// takes about 200 slots.
bool has_heavy_rows(const Body& body, const RowwiseConfig& config, const Target& target);

// Whether a launch has at most one wave for each CU of the chip: more rows keep it busy with a workgroup each. Several, where rows cost
// much.
bool fills_idle_cus(const Body& body, const RowwiseConfig& config, const Target& target);

// Throws the UserError of a cluster that may not be.
std::optional<Refusal> why_no_cluster(const Plan& plan, const RowwiseConfig& config);

// Loads that are narrower than those of inputs in the code: the generation; and the parts of each reduction, loaded in a loop, which may
// have a first turn of its own, and once behind a turn over another tile.
std::uint32_t cluster_loads(const Body& body);

// Places of 8 bytes: [row][reduction][workgroup].
std::int64_t cluster_workspace_bytes(const Body& body, const RowwiseConfig& config);

// Bytes of LDS that a workgroup has for parts that it computes in place of others, and for what its waves agree on.
int cluster_lds_bytes(const Body& body, const RowwiseConfig& config);

// Nanoseconds that the reductions take on top in a launch of so many workgroups: the way of a store, a load there and back that sees it,
// and what all waves load until then.
double cluster_chain_ns(const Body& body, const RowwiseConfig& config, double workgroups, const machine::Chip& chip);

} // namespace kiln
