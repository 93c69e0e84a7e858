// Blocks of a row: their Hadamard transforms, and Sinkhorn normalisations of small matrices.
#include "gen/catalog/entries.h"
#include "gen/error.h"
#include "gen/spec/math.h"
#include <bit>
#include <cmath>
#include <fmt/format.h>

namespace kiln {
namespace {

constexpr double min_entry = 1e-6; // keeps sums of columns above zero; of DeepSeek's hyper-connections, hc_eps

bool is_edge_up_to(std::int64_t n, std::int64_t most) { return n > 1 && n <= most && std::has_single_bit(static_cast<std::uint64_t>(n)); }

} // namespace

// Orthogonal, and its own inverse.
KernelSpec hadamard_blocks(const CatalogOptions& options) {
  const Expr y = hadamard(activation("x", options), options.group) * (1 / std::sqrt(static_cast<double>(options.group)));
  return KernelSpec("hadamard").output("y", options.dtype, y, {.in_place_of = options.in_place ? "x" : ""});
}

// Positive matrices of logits. The largest of a matrix row becomes 1 first, which its first normalisation takes back.
KernelSpec sinkhorn_matrices(const CatalogOptions& options) {
  const Expr x = activation("x", options);
  Expr most = x;
  for (std::int64_t distance = 1; distance < options.side; distance *= 2) most = max(most, partner(most, distance));
  const Expr y = sinkhorn(exp(x - most) + min_entry, options.side, options.times);
  return KernelSpec("sinkhorn").output("y", options.dtype, y);
}

std::optional<Refusal> why_no_blocks_of_hadamard(const std::string& subject, const CatalogOptions& options) {
  if (!is_edge_up_to(options.group, max_paired_columns))
    return Refusal{subject, fmt::format("group is {}", options.group), fmt::format("use a power of two from 2 to {}", max_paired_columns)};
  if (options.cols % options.group)
    return Refusal{subject, fmt::format("cols is {}, and blocks have {}", options.cols, options.group), "use a multiple of group"};
  return {};
}

std::optional<Refusal> why_no_matrices_of_sinkhorn(const std::string& subject, const CatalogOptions& options) {
  if (!is_edge_up_to(options.side, 16)) return Refusal{subject, fmt::format("side is {}", options.side), "use 2, 4, 8 or 16"};
  if (options.times < 1 || options.times > 64) return Refusal{subject, fmt::format("times is {}", options.times), "use 1 to 64"};
  if (options.cols % (options.side * options.side))
    return Refusal{subject, fmt::format("cols is {}, and matrices have {} elements", options.cols, options.side * options.side),
                   "use a multiple of them: one matrix after the other"};
  return {};
}

} // namespace kiln
