// Predictions of whole launches, and of those that are too long for that.
#include "runtime/launch/predict_kernel.h"
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

// From launches of as many rows as are affordable, and of half as many: where loads are under way all the time, further rows take as long
// as those between the two. None: what the launch takes does not depend on its sizes.
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
  const std::int64_t small = large / 2;
  if (small < 1) return std::nullopt;
  timing::PredictOptions own = options;
  own.changes = false; // of a part of the launch they would say little
  timing::Prediction p = timing::extrapolate(
      timing::predict(record(small), chip, own), timing::predict(larger, chip, own),
      static_cast<double>(whole - large) / static_cast<double>(large - small),
      fmt::format("launches of size {} and {}: the whole one, {}, is too long to be executed here", small, large, whole));
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
