// Products that Gemm computes, and the part of its config that follows from them.
#include "gen/error.h"
#include "gen/families/gemm/gemm.h"
#include "gen/families/rowwise/rowwise.h"
#include <fmt/format.h>
#include <utility>

namespace kiln {
namespace {

constexpr std::int64_t max_rows = 128;     // as why_invalid of GemmConfig
constexpr std::int64_t max_size = 1 << 24; // the same

// Columns of a product begin where rows of b, and blocks that share a scale, do in memory.
void require_first_column(const Product& p) {
  const auto subject = fmt::format("operation 'columns' of a product with '{}'", p.b.memory->name);
  const std::int64_t multiple = p.b.encoding == Encoding::block_scaled ? scale_block : p.b.preshuffled() ? 16 : p.b.packed_zeros() ? 8 : 1;
  if (p.first % multiple)
    throw UserError(subject,
                    fmt::format("it begins at column {}, inside of {}", p.first,
                                multiple == 16  ? "16 preshuffled rows"
                                : multiple == 8 ? "a word of 8 zero points"
                                                : "a block of 128 rows with one scale"),
                    fmt::format("begin at a multiple of {}", multiple));
}

void require_sizes(const AnalysedSpec& spec) {
  const auto subject = fmt::format("kernel '{}'", spec.spec.name());
  const Product& first = spec.products.front();
  const Dim& m = first.a.memory.shape()[0];
  const std::string rows = fmt::format("rows of '{}'", first.a.memory->name);
  if (m.is_dynamic() && !m.max())
    throw UserError(rows, fmt::format("'{}' has no upper bound", m.name()),
                    fmt::format("declare it as dynamic(\"{0}\", 1, 16), or dim {0}[1..16]; at most {1}", m.name(), max_rows));
  const std::int64_t most = bound_of_rows(first);
  if (most < 1 || most > max_rows)
    throw UserError(rows, fmt::format("there may be {}", most),
                    fmt::format("use 1 to {}: a skinny product; larger ones are another kernel's work", max_rows));
  const std::int64_t k = first.k();
  for (const auto& [what, size] : {std::pair{"n", first.n}, std::pair{"k", k}})
    if (size > max_size) throw UserError(subject, fmt::format("{} is {}", what, size), fmt::format("use at most {}", max_size));
  for (const Operand& operand : {first.a, first.b}) {
    const Expr& e = operand.memory;
    const std::int64_t natural = 128 / operand.bits();
    if (k % natural)
      throw UserError(fmt::format("operand '{}' of {}", e->name, first.name),
                      fmt::format("k is {}, but rows of {} are read 16 bytes at a time", k,
                                  operand.bits() == 4 ? "4-bit numbers" : to_string(e.dtype())),
                      fmt::format("pad k to {}, a multiple of {}, with zeros", (k + natural - 1) / natural * natural, natural));
  }
  for (const Product& p : spec.products) require_first_column(p);
}

} // namespace

RowwiseConfig rows_at_end(const Body& epilogue, const GemmConfig& config) { return in_waves(epilogue, config.waves); }

bool Gemm::can_compute(const AnalysedSpec& spec) { return !spec.products.empty(); }

void Gemm::lay_out(AnalysedSpec& spec) {
  if (const auto refusal = why_unlike(spec.spec.name(), spec.products)) throw UserError(*refusal);
  require_sizes(spec);
  lay_out_rows(spec.body);
  if (spec.products.front().by_expert()) return require_by_expert(spec);
  if (spec.body.outer_dims.size() > 1 || spec.body.space.size() != 2)
    throw UserError(fmt::format("kernel '{}'", spec.spec.name()), "its epilogue has more than two dimensions",
                    "give every operand [m, n], [n], [m, 1] or []");
}

// Elements of k with a common scale, as a lane takes them: two scales of NVFP4 are one load.
static int group_of(const Operand& operand) {
  return static_cast<int>(operand.encoding == Encoding::nvfp4 ? 2 * operand.group : operand.group);
}

GemmConfig planned_config(const Plan& plan, const Target& target) {
  return planned_config(plan, target, bound_of_rows(plan.products.front()));
}

GemmConfig planned_config(const Plan& plan, const Target& target, std::int64_t rows) {
  const Product& first = plan.products.front();
  const OperandConfig a{.bits = first.a.bits(),
                        .encoding = first.a.encoding,
                        .group = group_of(first.a),
                        .scales_by_group = first.a.scales_by_group,
                        .quantises = first.a.prologue != Prologue::none,
                        .norm_parts = static_cast<int>(first.norm_parts())};
  const OperandConfig b{.bits = first.b.bits(),
                        .encoding = first.b.encoding,
                        .group = group_of(first.b),
                        .zero_bytes = first.b.packed_zeros() ? static_cast<int>(first.rows_of_b() / 2) : 0,
                        .preshuffled = first.b.preshuffled()};
  GemmConfig c{.rows = first.by_expert() ? 16 : static_cast<int>(rows),
               .n = static_cast<int>(first.n),
               .k = static_cast<int>(first.k()),
               .a = a,
               .b = b,
               .rows_at_end = reduces_rows(plan.body, plan.products, rows),
               .epilogue_group = group_in_tile(plan.body, plan.products, rows),
               .products = static_cast<int>(plan.products.size()),
               .batch_invariant = target.batch_invariant()};
  if (first.by_expert())
    c.experts = {.count = static_cast<int>(first.experts()),
                 .top = static_cast<int>(first.top()),
                 .tokens = static_cast<int>(rows),
                 .n = static_cast<int>(first.rows_of_b()),
                 .of_pairs = first.a.memory.shape().size() == 3,
                 .sums = first.sums_experts()};
  // One instruction takes 128 bytes of k; a block with a scale has as many.
  const bool wide = target.has_scaled_mfma() && (is_fp8(first.a.memory.dtype()) || c.a.quantises) && is_fp8(first.b.memory.dtype());
  if (wide || c.block_scaled() || (c.a.mx() && !c.packed())) c.loads = 2;
  // Batch-invariant: whole lines for all numbers of rows, or for none. Tiles of groups of columns may have no registers for them.
  if (GemmConfig lines = c; c.batch_invariant && plan.body.group_sizes.empty()) {
    lines.loads = 2;
    if (lines.whole_lines()) c = lines;
  }
  return c;
}

} // namespace kiln
