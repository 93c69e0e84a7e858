// Predictions of whole launches, and of those that are too long for that.
#include "runtime/launch/predict_kernel.h"
#include "gen/reference/index_check.h"
#include "gen/reference/random_inputs.h"
#include <algorithm>
#include <fmt/format.h>
#include <new>
#include <optional>

namespace kiln {
namespace {

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
  constexpr std::int64_t rows = 16;
  const auto size_of = [&](const Dim& dim) { return dim.is_dynamic() ? sizes.at(dim.name()) : dim.size(); };
  std::int64_t blocks = 0;
  for (const ExpertUse& use : expert_uses(spec)) {
    std::int64_t pairs = 1;
    for (const Dim& dim : use.order.shape()) pairs *= size_of(dim);
    const std::int64_t busy = std::min(pairs, size_of(use.offsets.shape().front()) - 1), of_expert = (pairs + busy - 1) / busy;
    blocks += busy * ((of_expert + rows - 1) / rows);
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

} // namespace

timing::Prediction predict_kernel(const KernelSpec& spec, const KernelSource& source, const CodeObject& object, const Sizes& sizes,
                                  const timing::Chip& chip, const timing::PredictOptions& options) {
  const auto shorter = [&] { return extrapolated(spec, source, object, sizes, chip, options); };
  try {
    return timing::predict(record_kernel(spec, source, object, sizes, record_options(chip, options)), chip, options);
  } catch (const timing::TooLong&) {
    if (auto p = shorter()) return *std::move(p);
    throw;
  } catch (const std::bad_alloc&) {
    if (auto p = shorter()) return *std::move(p);
    throw;
  }
}

} // namespace kiln
