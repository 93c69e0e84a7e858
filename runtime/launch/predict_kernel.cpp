// Predictions of whole launches, and of those that are too long for that.
#include "runtime/launch/predict_kernel.h"
#include "gen/reference/index_check.h"
#include "gen/reference/random_inputs.h"
#include <algorithm>
#include <fmt/format.h>
#include <new>
#include <optional>
#include <set>
#include <utility>
#include <vector>

namespace kiln {
namespace {

constexpr std::int64_t tile_rows = 16;     // of matrix instructions
constexpr std::int64_t ordered_rows = 128; // the most of a product; launches with more are compared with one of these alone

using Sizes = std::map<std::string, std::int64_t>;

// All run-time sizes at most `most`.
Sizes at_most(const KernelSpec& spec, Sizes sizes, std::int64_t most) {
  for (const Dim& dim : spec.dynamic_dims()) sizes[dim.name()] = size_within(dim, std::min(sizes.at(dim.name()), most));
  return sizes;
}

Sizes all_of(const KernelSpec& spec, std::int64_t size) {
  Sizes sizes;
  for (const Dim& dim : spec.dynamic_dims()) sizes[dim.name()] = size_within(dim, size);
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

// What the waves of a launch do: instructions in order, as indices of Record::code.
struct Executed {
  std::vector<std::vector<std::vector<std::uint32_t>>> recorded; // of each wave of a workgroup that was executed
  std::vector<std::size_t> like;                                 // by number of a workgroup: which of these it does
};

Executed executed(const timing::Record& record) {
  Executed done;
  for (const timing::Workgroup& g : record.recorded) {
    auto& waves = done.recorded.emplace_back();
    for (const auto& steps : g.waves) {
      waves.emplace_back(steps.size());
      std::ranges::transform(steps, waves.back().begin(), &timing::Step::code);
    }
  }
  for (std::uint32_t n = 0; n < record.workgroups; ++n)
    done.like.push_back(static_cast<std::size_t>(&record.representative_of(n) - record.recorded.data()));
  return done;
}

// Whether each workgroup of `less` is one of `more`, where each of its waves does the same in that order, and maybe something between.
bool does_all_of(const Executed& more, const Executed& less) {
  const auto contains = [](const std::vector<std::uint32_t>& wave, const std::vector<std::uint32_t>& part) {
    auto next = part.begin();
    for (const std::uint32_t code : wave)
      if (next != part.end() && *next == code) ++next;
    return next == part.end();
  };
  if (more.like.size() < less.like.size()) return false;
  std::set<std::pair<std::size_t, std::size_t>> pairs;
  for (std::size_t n = 0; n < less.like.size(); ++n) pairs.emplace(more.like[n], less.like[n]);
  return std::ranges::all_of(
      pairs, [&](const auto& pair) { return std::ranges::equal(more.recorded[pair.first], less.recorded[pair.second], contains); });
}

// What a launch takes that another one is compared with, and what it does.
struct Compared {
  Executed done;
  double microseconds = 0;
};

// As a launch that does all that another one does takes no less time: that one may do the same at the same times.
double in_order(double microseconds, const Executed& done, const std::optional<Compared>& less, const std::optional<Compared>& more) {
  if (more && does_all_of(more->done, done)) microseconds = std::min(microseconds, more->microseconds);
  if (less && does_all_of(done, less->done)) microseconds = std::max(microseconds, less->microseconds);
  return microseconds;
}

// By itself a launch may come out longer than one that does the same and more, by chance of who is served first
// (docs/timing_validation.md). So launches of fewer and of more rows come first: of a tile of matrix instructions, of the powers of two
// from there to `sizes`, and then of half way between the next two. Any two numbers of rows have a third one in common, or one is on the
// way to the other, which bounds both: whichever is asked for, all are in order.
void put_in_order_of_rows(timing::Prediction& p, const KernelSpec& spec, const KernelSource& source, const CodeObject& object,
                          const Sizes& sizes, const Executed& own, timing::PredictOptions options) {
  options.changes = options.spans = false;
  std::optional<Compared> with_less, with_more;
  Sizes last; // compared
  const std::int64_t rows = largest(sizes);
  for (std::int64_t less = 0, more = 0, at = tile_rows; at != rows && less < ordered_rows; at = more == 0 ? 2 * less : (less + more) / 2) {
    Sizes other = at < rows ? at_most(spec, sizes, at) : all_of(spec, at);
    (at < rows ? less : more) = at;
    if (other == sizes) break;
    if (other == last) continue;
    try {
      const timing::Record record = record_kernel(spec, source, object, other, record_options(*p.chip, options));
      Compared one{executed(record), timing::predict(record, *p.chip, options).microseconds};
      one.microseconds = in_order(one.microseconds, one.done, with_less, with_more);
      (at < rows ? with_less : with_more) = std::move(one);
      last = std::move(other);
    } catch (const timing::TooLong&) { // nothing can be said of it
    } catch (const std::bad_alloc&) {}
  }
  timing::set_time(p, in_order(p.microseconds, own, with_less, with_more));
}

} // namespace

timing::Prediction predict_kernel(const KernelSpec& spec, const KernelSource& source, const CodeObject& object, const Sizes& sizes,
                                  const timing::Chip& chip, const timing::PredictOptions& options) {
  const auto shorter = [&] { return extrapolated(spec, source, object, sizes, chip, options); };
  try {
    std::optional<timing::Record> record = record_kernel(spec, source, object, sizes, record_options(chip, options));
    timing::Prediction p = timing::predict(*record, chip, options);
    const bool attends = !length_uses(spec).empty(); // waves that divide the keys of all rows: of more, each does something else
    if (options.alone || options.one_xcd || sizes.empty() || attends) return p;
    const Executed own = executed(*record);
    record.reset(); // memory for another one
    put_in_order_of_rows(p, spec, source, object, sizes, own, options);
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
