// Rowwise: [rows, cols] with row reductions, broadcasts over rows or columns, groups, or leading strides.
#pragma once
#include "gen/families/common/family.h"
#include "gen/families/common/fields.h"
#include "gen/plan/passes.h"
#include "templates/rowwise_config.h"

namespace kiln {

template <> struct EnumText<Residency> {
  static constexpr std::string_view type = "Residency";
  static constexpr std::pair<Residency, std::string_view> words[] = {
      {Residency::registers, "registers"}, {Residency::lds, "lds"}, {Residency::reload, "reload"}};
};

template <MaybeConst<RowwiseConfig> C, typename Visit> constexpr void for_each_field(C& c, const Visit& visit) {
  visit(Field{.name = "cols", .settable = false}, c.cols);
  visit(Field{"vec"}, c.vec);
  visit(Field{"threads_per_row"}, c.threads_per_row);
  visit(Field{"rows_per_block"}, c.rows_per_block);
  visit(Field{"tiles"}, c.tiles);
  visit(Field{"prefetch_depth"}, c.prefetch_depth);
  visit(Field{"residency"}, c.residency);
  visit(Field{.name = "waves_per_eu", .shown = c.waves_per_eu != 0}, c.waves_per_eu);
}

struct Rowwise {
  using Config = RowwiseConfig;
  static constexpr std::string_view name = "rowwise";
  static constexpr std::string_view remedy = "split the kernel, or lower vec with --set vec=...";
  static constexpr std::string_view words[] = {"RowwiseConfig"};
  static constexpr std::string_view fallback_field = "waves_per_eu"; // not behind settings that name it

  static bool can_compute(const AnalysedSpec& spec);
  static void lay_out(AnalysedSpec& spec);
  static std::vector<Candidate<Config>> candidates(const Plan& plan, const Target& target);
  static std::vector<Candidate<Config>> fallbacks(const Config& first); // fewer waves per SIMD, which have more registers
  static std::optional<Refusal> why_not(const Config& config, const Plan& plan, const Target& target);
  static Demand demand(const Plan& plan, const Config& config, const Target& target, const RunTimeSizes& sizes);
  static KernelParts parts(const Plan& plan, const Config& config, const Target& target, const ProblemPlace& place);
  static int threads(const Config& config) { return config.threads(); }
  static Config with_threads(Config config, int threads, const Plan& plan, const Target& target);
  static Promises promises(const Plan& plan, const Config& config, const Target& target);
  static std::optional<std::int64_t> addition_depth(const Config& config);
  static SumOrder sum_order(const Plan& plan, const Config& config, const Target& target);
  static SumOrder invariant_order(const Plan& plan, const Target& target);
};

// The schedule whose order of sums batch-invariant rows have, whatever their bound is; in workgroups of so many threads, or of any number.
RowwiseConfig invariant_rows(const Plan& plan, const Target& target, int threads = 0);

// An output may overwrite an input only if no later pass reads that again.
std::optional<Refusal> why_no_in_place_reads(const Plan& plan, const RowwiseConfig& config);

// What a launch of so many rows demands.
Demand demand_of_rows(const Body& body, const RowwiseConfig& config, const Target& target, double rows);

// What a workgroup does with its rows, as text: lines behind the declaration of `row`, and `leave` for waves beyond the last one.
std::string rows_text(const Body& body, const RowwiseConfig& config, const Target& target, const std::string& row,
                      const std::string& leave);

// One wave a row, `rows` of them at a time, with the row in registers.
RowwiseConfig in_waves(const Body& body, int rows);

// The passes over a row: it stays where the config's residency says, and a cluster stores all outputs in the last one.
std::vector<Pass> rowwise_passes(const Body& body, const RowwiseConfig& config);

// VGPRs of a lane, estimated: all, and those of what stays between passes, for each chunk.
int registers_of(const Body& body, const std::vector<Pass>& passes, const RowwiseConfig& config);
int kept_registers(const Body& body, const std::vector<Pass>& passes, int vec);

// LDS bytes of a workgroup: kept values and reductions. An upper bound, at most 4 KiB above what the kernel takes.
int lds_bytes(const Body& body, const RowwiseConfig& config);

} // namespace kiln
