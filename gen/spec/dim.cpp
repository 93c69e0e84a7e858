// Dim: one extent of a shape, a number or a named run-time size.
#include "gen/spec/dim.h"
#include "gen/error.h"
#include "gen/spec/names.h"
#include <fmt/format.h>
#include <utility>

namespace kiln {

std::int64_t Dim::size() const {
  if (is_dynamic()) throw InternalError(fmt::format("the size of dimension '{}' was asked for before the launch", name_));
  return size_;
}

std::string Dim::text() const {
  if (!is_dynamic()) return std::to_string(size_);
  if (!min_ && !max_) return name_;
  return fmt::format("{}[{}..{}]", name_, min_ ? std::to_string(*min_) : "", max_ ? std::to_string(*max_) : "");
}

Dim dynamic(std::string name, std::optional<std::int64_t> min, std::optional<std::int64_t> max) {
  require_name("dimension", name);
  const auto subject = fmt::format("dimension '{}'", name);
  if ((min && *min < 0) || (max && *max < 1))
    throw UserError(subject, fmt::format("its bounds are {} to {}", min.value_or(0), max.value_or(max_dim_size)),
                    "give a minimum of 0 or more and a maximum of 1 or more");
  if (min && max && *min > *max) throw UserError(subject, fmt::format("its minimum {} exceeds its maximum {}", *min, *max), "swap them");
  Dim dim(0);
  dim.name_ = std::move(name);
  dim.min_ = min;
  dim.max_ = max;
  return dim;
}

bool same_size(const Dim& a, const Dim& b) {
  if (a.is_dynamic() != b.is_dynamic()) return false;
  return a.is_dynamic() ? a.name() == b.name() : a.size() == b.size();
}

std::string to_text(const Shape& shape) {
  std::string result = "[";
  for (const Dim& dim : shape) {
    if (result.size() > 1) result += ", ";
    result += dim.text();
  }
  return result + "]";
}

} // namespace kiln
