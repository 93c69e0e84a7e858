// Gemm: few rows times one or two matrices, or those of their experts, and an epilogue.
#pragma once
#include "gen/families/common/family.h"
#include "gen/families/common/fields.h"
#include "gen/plan/phases/whole_rows.h"
#include "templates/gemm_config.h"
#include "templates/rowwise_config.h"

namespace kiln {

template <> struct EnumText<GemmMethod> {
  static constexpr std::string_view type = "GemmMethod";
  static constexpr std::pair<GemmMethod, std::string_view> words[] = {
      {GemmMethod::matrix, "matrix"}, {GemmMethod::matrix32, "matrix32"},   {GemmMethod::sparse, "sparse"},
      {GemmMethod::dot, "dot"},       {GemmMethod::producers, "producers"}, {GemmMethod::shared_rows, "shared_rows"}};
};

template <> struct EnumText<Encoding> {
  static constexpr std::string_view type = "Encoding";
#define KILN_ENCODING(name) {Encoding::name, #name},
  static constexpr std::pair<Encoding, std::string_view> words[] = {KILN_ENCODINGS(KILN_ENCODING)};
#undef KILN_ENCODING
};

template <MaybeConst<OperandConfig> C, typename Visit> constexpr void for_each_field(C& c, const Visit& visit) {
  visit(Field{.name = "bits", .settable = false}, c.bits);
  visit(Field{.name = "encoding", .settable = false, .shown = !c.plain()}, c.encoding);
  visit(Field{.name = "group", .settable = false, .shown = c.group != 0}, c.group);
  visit(Field{.name = "scales_by_group", .settable = false, .shown = c.scales_by_group}, c.scales_by_group);
  visit(Field{.name = "quantises", .settable = false, .shown = c.quantises}, c.quantises);
  visit(Field{.name = "norm_parts", .settable = false, .shown = c.norm_parts != 0}, c.norm_parts);
  visit(Field{.name = "zero_bytes", .settable = false, .shown = c.zero_bytes != 0}, c.zero_bytes);
  visit(Field{.name = "preshuffled", .settable = false, .shown = c.preshuffled}, c.preshuffled);
}

template <MaybeConst<ExpertsConfig> C, typename Visit> constexpr void for_each_field(C& c, const Visit& visit) {
  visit(Field{.name = "count", .settable = false}, c.count);
  visit(Field{.name = "top", .settable = false}, c.top);
  visit(Field{.name = "tokens", .settable = false}, c.tokens);
  visit(Field{.name = "n", .settable = false}, c.n);
  visit(Field{.name = "of_pairs", .settable = false}, c.of_pairs);
  visit(Field{.name = "sums", .settable = false}, c.sums);
}

// With experts, blocks have as many rows as a schedule says, and the method is matrix.
template <MaybeConst<GemmConfig> C, typename Visit> constexpr void for_each_field(C& c, const Visit& visit) {
  const bool producers = c.has_producers(), dense = !c.by_expert();
  visit_nested("experts", c.experts, visit, [&](Field& f) {
    f.prefix = "experts_";
    f.shown = !dense;
  });
  visit(Field{.name = "rows", .settable = !dense, .begins_line = !dense}, c.rows);
  visit(Field{.name = "n", .settable = false}, c.n);
  visit(Field{.name = "k", .settable = false}, c.k);
  visit_nested("a", c.a, visit, [](Field& f) { f.prefix = "a_"; });
  visit_nested("b", c.b, visit, [](Field& f) { f.prefix = "b_"; });
  visit(Field{.name = "staged", .shown = c.a.quantises}, c.staged);
  visit(Field{.name = "method", .settable = dense, .shown = dense}, c.method);
  visit(Field{.name = "rows_at_end", .settable = false, .shown = c.rows_at_end}, c.rows_at_end);
  visit(Field{.name = "epilogue_group", .settable = false, .shown = c.epilogue_group != 0}, c.epilogue_group);
  visit(Field{.name = "products", .settable = false}, c.products);
  visit(Field{.name = "tile_n", .begins_line = true}, c.tile_n);
  visit(Field{"waves"}, c.waves);
  visit(Field{"loads"}, c.loads);
  visit(Field{"stages"}, c.stages);
  visit(Field{"workgroups"}, c.workgroups);
  visit(Field{"vec"}, c.vec);
  visit(Field{.name = "b_producers", .shown = producers, .begins_line = true}, c.b_producers);
  visit(Field{.name = "a_producers", .shown = producers}, c.a_producers);
  visit(Field{.name = "slots", .shown = producers}, c.slots);
  visit(Field{.name = "direct", .shown = producers}, c.direct);
  visit(Field{.name = "row_blocks", .shown = c.shares_rows(), .begins_line = true}, c.row_blocks);
  visit(Field{.name = "waves_per_eu", .shown = c.waves_per_eu != 0}, c.waves_per_eu);
  visit(Field{.name = "atomics", .settable = dense, .shown = dense}, c.atomics);
  visit(Field{.name = "batch_invariant", .settable = false, .shown = c.batch_invariant}, c.batch_invariant);
}

struct Gemm {
  using Config = GemmConfig;
  static constexpr std::string_view name = "gemm";
  static constexpr std::string_view remedy =
      "split the epilogue off, or try another method or a narrower tile: --set method=matrix, --set tile_n=16";
  static constexpr std::string_view words[] = {"Gemm",         "GemmConfig",         "GemmMethod",      "Encoding",
                                               "prefetched",   "prefetched_columns", "prefetched_rows", "prefetched_elements",
                                               "TileChunk",    "BlockScaled",        "PackedWeights",   "MxWeights",
                                               "Nvfp4Weights", "Nvfp4Scales",        "SortedPairs",     "u4x2"};
  static constexpr std::string_view leading_field = "method";
  static constexpr std::string_view fallback_field = "stages";

  static bool can_compute(const AnalysedSpec& spec);
  static void lay_out(AnalysedSpec& spec);
  static std::vector<Candidate<Config>> candidates_on(const Plan& plan, const Target& target, int cus);
  static std::vector<Candidate<Config>> fallbacks(const Config& first);
  static std::string_view method(const Config& config); // a GemmMethod's name, or atomics
  static std::vector<Config> other_methods(const Config& config, const Target& target, const Allowed& allowed);
  static void after_setting(Config& config, std::string_view field, const Plan& plan, const Target& target);
  static std::optional<Refusal> why_not(const Config& config, const Plan& plan, const Target& target);
  static Demand demand(const Plan& plan, const Config& config, const Target& target, const RunTimeSizes& sizes);
  static KernelParts parts(const Plan& plan, const Config& config, const Target& target, const ProblemPlace& place);
  static int threads(const Config& config) { return config.threads(); }
  static Config with_threads(const Config& config, int, const Plan&, const Target&) { return config; } // waves share its steps
  static Promises promises(const Plan& plan, const Config& config, const Target& target);
  static std::optional<std::int64_t> addition_depth(const Config& config);
  static SumOrder sum_order(const Plan& plan, const Config& config, const Target& target);
  static SumOrder invariant_order(const Plan& plan, const Target& target);
};

// How the workgroup that has all of C deals out its rows.
RowwiseConfig rows_at_end(const Body& epilogue, const GemmConfig& config);

// The config before any choice: what the plan says, and 16 or 32 bytes of a row of B for a lane and step; and with another bound of rows.
GemmConfig planned_config(const Plan& plan, const Target& target);
GemmConfig planned_config(const Plan& plan, const Target& target, std::int64_t rows);

// Batch-invariant products: into how many parts each tile is split, and how many workgroups that are.
int invariant_parts(const Plan& plan, const Target& target);
int workgroups_of_parts(const GemmConfig& config, int parts, int cus);

// With a matrix for each expert: what the kernel does not compute; schedules; and one product that streams as much as the likely blocks, in
// as many steps.
void require_by_expert(const AnalysedSpec& spec);
std::vector<Candidate<GemmConfig>> candidates_by_expert(const Plan& plan, const Target& target);
GemmConfig as_one_product(GemmConfig config);

// The config with another method, and what that asks of other fields: tile, ring, workgroups and so on, as the chosen schedule
// has them for method matrix. It may be invalid for the plan (rows over the method's limit): why_not says why.
GemmConfig with_method(GemmConfig config, GemmMethod method, const Target& target);

// The config with method shared_rows. Its workgroups have a tile of so many columns each, of one of so many blocks of rows.
constexpr int shared_columns = 128, max_shared_rows = 64, min_shared_stages = 3;
GemmConfig with_shared_rows(GemmConfig config, int row_blocks);

// What a launch of `rows` rows of type `a` demands.
Demand demand_of_rows(const GemmConfig& config, double rows, DType a, const Target& target);

// Fields that follow from others, as far as registers, vmcnt and LDS allow.
// The ring that keeps enough in flight and gives the waves the same work; of those the smallest.
GemmConfig with_ring(GemmConfig config);
// One wave a workgroup, which has all of a tile in flight at once, by the fewest loads a step; nullopt if a tile is too long for that. By
// expert a tile is one step: how many tiles there are, only the launch says, and one step is never split. `workgroups` are left as they
// are.
std::optional<GemmConfig> with_wave_a_tile(GemmConfig config);
// The longest shorter ring that leaves the wave with the most steps fewer of them, although less is in flight.
std::optional<GemmConfig> with_shorter_ring(GemmConfig config);
// The widest vector of the epilogue that divides n and gives every lane some of a tile.
GemmConfig with_vec(GemmConfig config);
// As many workgroups as CUs, but each with a step for every wave at least.
GemmConfig with_workgroups(GemmConfig config, int cus);

// What is still in flight after a wait for the oldest step that hides the latency of HBM, with one workgroup a CU.
inline constexpr int min_kib_in_flight = 48;

// The share of the target's CUs that are busy all the time if every step takes as long as another: steps over CUs times the
// steps of the CU that has most. Workgroups are dealt out evenly.
double gemm_balance(const GemmConfig& config, const Target& target);

} // namespace kiln
