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
constexpr std::uint64_t affordable_steps = timing::max_recorded_steps / 3; // of the larger launch that is extrapolated from

// All run-time sizes at most `most`.
Sizes at_most(const KernelSpec& spec, Sizes sizes, std::int64_t most) {
  for (const Dim& dim : spec.dynamic_dims()) sizes[dim.name()] = size_within(dim, std::min(sizes.at(dim.name()), most));
  return sizes;
}

std::int64_t largest(const Sizes& sizes) { return std::ranges::max_element(sizes, {}, &Sizes::value_type::second)->second; }

// From launches of as many rows as are affordable, and of half as many: as long loads are under way all the time, further rows take as
// long as those between the two. None: what the launch takes does not depend on its sizes.
std::optional<timing::Prediction> extrapolated(const KernelSpec& spec, const KernelSource& source, const CodeObject& object,
                                               const Sizes& sizes, const timing::Chip& chip, const timing::PredictOptions& options) {
  if (sizes.empty()) return std::nullopt;
  std::uint64_t of_one = 0;
  for (const timing::Workgroup& w : record_kernel(spec, source, object, at_most(spec, sizes, 1)).recorded) of_one += w.steps();
  const Sizes larger = at_most(spec, sizes, static_cast<std::int64_t>(affordable_steps / std::max<std::uint64_t>(of_one, 1)));
  const Sizes smaller = at_most(spec, larger, largest(larger) / 2);
  const std::int64_t small = largest(smaller), large = largest(larger), whole = largest(sizes);
  if (small >= large || large >= whole) return std::nullopt;
  timing::PredictOptions own = options;
  own.changes = false; // of a part of the launch they would say little
  const auto at = [&](const Sizes& s) { return timing::predict(record_kernel(spec, source, object, s), chip, own); };
  timing::Prediction p = timing::extrapolate(
      at(smaller), at(larger), static_cast<double>(whole - large) / static_cast<double>(large - small),
      fmt::format("launches of size {} and {}: the whole one, {}, is too long to be executed here", small, large, whole));
  p.workgroups = static_cast<std::uint32_t>(source.launch.blocks([&](const std::string& dim) { return sizes.at(dim); }));
  return p;
}

} // namespace

timing::Prediction predict_kernel(const KernelSpec& spec, const KernelSource& source, const CodeObject& object, const Sizes& sizes,
                                  const timing::Chip& chip, const timing::PredictOptions& options) {
  const auto shorter = [&] { return extrapolated(spec, source, object, sizes, chip, options); };
  try {
    return timing::predict(record_kernel(spec, source, object, sizes), chip, options);
  } catch (const timing::TooLong&) {
    if (auto p = shorter()) return *std::move(p);
    throw;
  } catch (const std::bad_alloc&) {
    if (auto p = shorter()) return *std::move(p);
    throw;
  }
}

} // namespace kiln
