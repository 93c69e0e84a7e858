// Dim: one extent of a shape, a number or a named run-time size.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace kiln {

class Dim {
public:
  Dim(std::int64_t size) : size_(size) {} // implicit on purpose: {m, 16384}
  bool is_dynamic() const { return !name_.empty(); }
  std::int64_t size() const; // of a static dim; an internal error on a dynamic one
  const std::string& name() const { return name_; }
  std::optional<std::int64_t> min() const { return min_; }
  std::optional<std::int64_t> max() const { return max_; }
  std::string text() const; // "16384", "m", "m[1..16]"
  bool operator==(const Dim&) const = default;

private:
  friend Dim dynamic(std::string name, std::optional<std::int64_t> min, std::optional<std::int64_t> max);
  std::int64_t size_ = 0;
  std::string name_;
  std::optional<std::int64_t> min_, max_;
};

// A size that is known only at launch. Two dynamic dims are the same size if and only if they have the same name.
Dim dynamic(std::string name, std::optional<std::int64_t> min = {}, std::optional<std::int64_t> max = {});

// Equal numbers, or the same name; bounds are not compared.
bool same_size(const Dim& a, const Dim& b);

inline constexpr std::int64_t max_dim_size = 0x7fffffff; // of any dim: indices within a dim are 32 bit
inline constexpr int max_rank = 8;

using Shape = std::vector<Dim>;
std::string to_text(const Shape& shape); // "[m, 16384]"

} // namespace kiln
