// Cluster: several workgroups that share a row with reductions. Which launches may have them, and what they cost.
#pragma once
#include "gen/families/common/family.h"
#include "templates/rowwise_config.h"
#include <optional>

namespace kiln {

std::int64_t cluster_reductions(const Body& body); // of a row

// Workgroups of a row that has to be reduced tell each other their parts, and wait for each other.
inline bool is_cluster(const Body& body, const RowwiseConfig& c) { return c.tiles > 1 && cluster_reductions(body) > 0; }

// The most rows of a launch; nothing without bounds of the run-time sizes.
std::optional<std::int64_t> most_rows(const Body& body);

// Whether every workgroup of a launch is resident at once on the smallest part of a chip that a process may have, so that none waits
// for one that has no room.
bool is_resident(const Body& body, const RowwiseConfig& config);

// Throws the UserError of a cluster that may not be.
std::optional<Refusal> why_no_cluster(const Plan& plan, const RowwiseConfig& config);

// Loads of 8 bytes that the code has: the generation, and the parts of each reduction, of which a loop may have a first turn of its own.
std::uint32_t cluster_loads(const Body& body);

// Places of 8 bytes: [row][reduction][workgroup].
std::int64_t cluster_workspace_bytes(const Body& body, const RowwiseConfig& config);

// Nanoseconds that the reductions take on top: the way of a store, and a load there and back that sees it.
double cluster_chain_ns(const Body& body, const machine::Chip& chip);

} // namespace kiln
