// Predictions of whole launches, and of those that are too long for that.
#include "runtime/launch/predict_kernel.h"
#include "gen/reference/index_check.h"
#include "gen/reference/random_inputs.h"
#include <algorithm>
#include <bit>
#include <fmt/format.h>
#include <new>
#include <optional>
#include <vector>

namespace kiln {
namespace {

constexpr std::int64_t tile_rows = 16; // of matrix instructions

using Sizes = std::map<std::string, std::int64_t>;

// All run-time sizes at most `most`.
Sizes at_most(const KernelSpec& spec, Sizes sizes, std::int64_t most) {
  for (const Dim& dim : spec.dynamic_dims()) sizes[dim.name()] = size_within(dim, std::min(sizes.at(dim.name()), most));
  return sizes;
}

std::int64_t largest(const Sizes& sizes) { return std::ranges::max_element(sizes, {}, &Sizes::value_type::second)->second; }

timing::RecordOptions record_options(const timing::Chip& chip, const timing::PredictOptions& options) {
  return {.max_steps = options.max_steps, .xcds = options.one_xcd ? static_cast<std::uint32_t>(chip.xcds) : 1};
}

// Blocks of rows of an expert in a launch, each of which streams a matrix: pairs go to the experts in turn (record_kernel), and fill a tile
// of matrix instructions before they make another block. 0: the kernel has no experts.
std::int64_t expert_blocks(const KernelSpec& spec, const Sizes& sizes) {
  const auto size_of = [&](const Dim& dim) { return dim.is_dynamic() ? sizes.at(dim.name()) : dim.size(); };
  std::int64_t blocks = 0;
  for (const ExpertUse& use : expert_uses(spec)) {
    std::int64_t pairs = 1;
    for (const Dim& dim : use.order.shape()) pairs *= size_of(dim);
    const std::int64_t busy = std::min(pairs, size_of(use.offsets.shape().front()) - 1), of_expert = (pairs + busy - 1) / busy;
    blocks += busy * ((of_expert + tile_rows - 1) / tile_rows);
  }
  return blocks;
}

// From launches of as many rows as are affordable, and of half as many: where loads are under way all the time, further rows take as long
// as those between the two. With experts from one launch, whose blocks take as long as those of the whole one: more rows soon have no
// more matrices. None: what the launch takes does not depend on its sizes.
std::optional<timing::Prediction> extrapolated(const KernelSpec& spec, const KernelSource& source, const CodeObject& object,
                                               const Sizes& sizes, const timing::Chip& chip, const timing::PredictOptions& options) {
  if (sizes.empty()) return std::nullopt;
  const auto record = [&](std::int64_t most) {
    return record_kernel(spec, source, object, at_most(spec, sizes, most), record_options(chip, options));
  };
  // What every launch takes, whatever its size, is soon less than what the rows take.
  const std::int64_t whole = largest(sizes);
  std::int64_t large = 1, more = 1;
  timing::Record larger;
  do {
    large *= more;
    if (large >= whole) return std::nullopt;
    larger = record(large);
    std::uint64_t steps = 1;
    for (const timing::Workgroup& w : larger.recorded) steps += w.steps();
    more = static_cast<std::int64_t>(options.max_steps / 2 / steps);
  } while (more >= 2);
  const std::int64_t small = large / 2, blocks = expert_blocks(spec, at_most(spec, sizes, large));
  if (small < 1 && blocks == 0) return std::nullopt;
  timing::PredictOptions own = options;
  own.changes = false; // of a part of the launch they would say little
  timing::Prediction p = timing::predict(larger, chip, own);
  const std::string why = fmt::format("the whole one, {}, is too long to be executed here", whole);
  if (blocks != 0) {
    timing::Prediction nothing;
    nothing.phases.resize(p.phases.size());
    p = timing::extrapolate(nothing, std::move(p), static_cast<double>(expert_blocks(spec, sizes)) / static_cast<double>(blocks) - 1,
                            fmt::format("a launch of size {}: {}", large, why));
  } else {
    p = timing::extrapolate(timing::predict(record(small), chip, own), std::move(p),
                            static_cast<double>(whole - large) / static_cast<double>(large - small),
                            fmt::format("launches of size {} and {}: {}", small, large, why));
  }
  p.workgroups = static_cast<std::uint32_t>(source.launch.blocks([&](const std::string& dim) { return sizes.at(dim); }));
  return p;
}

// The instructions of each wave that was executed, in order, as indices of Record::code.
using Executed = std::vector<std::vector<std::uint32_t>>;

Executed executed(const timing::Record& record) {
  Executed waves;
  for (const timing::Workgroup& g : record.recorded)
    for (const auto& steps : g.waves) {
      waves.emplace_back(steps.size());
      std::ranges::transform(steps, waves.back().begin(), &timing::Step::code);
    }
  return waves;
}

// Whether each wave of `more` does all that it does in `less`, in that order, and maybe something between.
bool does_all_of(const Executed& more, const Executed& less) {
  return std::ranges::equal(more, less, [](const auto& wave, const auto& part) {
    auto next = part.begin();
    for (const std::uint32_t code : wave)
      if (next != part.end() && *next == code) ++next;
    return next == part.end();
  });
}

// A launch of more rows of a tile of matrix instructions may do all that one of fewer rows does, and more. What it does, that one may do at
// the same time, so that it takes no longer. By itself it may come out longer, by chance of who is served first
// (docs/timing_validation.md): `p` becomes the least of those with the next powers of two rows, up to a tile.
void shorten_to_more_rows(timing::Prediction& p, const KernelSpec& spec, const KernelSource& source, const CodeObject& object,
                          const Sizes& sizes, const Executed& own, timing::PredictOptions options) {
  options.changes = options.spans = false;
  const auto workgroups = [&](const Sizes& of) { return source.launch.blocks([&](const std::string& dim) { return of.at(dim); }); };
  const timing::Simulation& s = p.simulation;
  Sizes before = sizes;
  for (std::int64_t rows = largest(sizes); rows < tile_rows;) {
    rows = static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(rows) + 1));
    Sizes more = sizes;
    for (const Dim& dim : spec.dynamic_dims()) more[dim.name()] = size_within(dim, rows);
    if (more == before || workgroups(more) != workgroups(sizes)) return;
    try {
      const timing::Record larger = record_kernel(spec, source, object, more, record_options(*p.chip, options));
      if (!does_all_of(executed(larger), own)) return;
      // It takes as long as its slowest XCD: mostly this one alone takes longer.
      if (timing::simulate(larger, *p.chip, {.cache = options.cache, .xcd = s.xcd}).nanoseconds < s.nanoseconds)
        timing::shorten(p, timing::predict(larger, *p.chip, options).microseconds);
    } catch (const timing::TooLong&) {
      return;
    } catch (const std::bad_alloc&) {
      return;
    }
    before = std::move(more);
  }
}

} // namespace

timing::Prediction predict_kernel(const KernelSpec& spec, const KernelSource& source, const CodeObject& object, const Sizes& sizes,
                                  const timing::Chip& chip, const timing::PredictOptions& options) {
  const auto shorter = [&] { return extrapolated(spec, source, object, sizes, chip, options); };
  try {
    std::optional<timing::Record> record = record_kernel(spec, source, object, sizes, record_options(chip, options));
    timing::Prediction p = timing::predict(*record, chip, options);
    if (options.one_xcd || sizes.empty() || largest(sizes) >= tile_rows) return p;
    const Executed own = executed(*record);
    record.reset(); // memory for another one
    shorten_to_more_rows(p, spec, source, object, sizes, own, options);
    return p;
  } catch (const timing::TooLong&) {
    if (auto p = shorter()) return *std::move(p);
    throw;
  } catch (const std::bad_alloc&) {
    if (auto p = shorter()) return *std::move(p);
    throw;
  }
}

} // namespace kiln
