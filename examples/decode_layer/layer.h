// Layer: two chains of values through the launches of a layer, one of executed kernels and one of the reference.
#pragma once
#include <cstdint>
#include <kiln/gen/plan/target.h>
#include <kiln/gen/reference/evaluate.h>
#include <map>
#include <string>
#include <vector>

using Values = std::map<std::string, kiln::Tensor>; // tensors with one name are one tensor

class Layer {
public:
  // `sizes`: of the run-time dimensions of all kernels.
  Layer(const kiln::Target& to, std::map<std::string, std::int64_t> sizes) : to_(to), sizes_(std::move(sizes)) {}

  void set(const std::string& name, const kiln::Tensor& tensor);
  // Gives each input of `spec` that has no value yet numbers of a layer: weights ("w_...") are small, so that results stay near 1.
  void fill(const kiln::KernelSpec& spec);
  // Gives what `f` makes of both chains' values a name. A pointer into the same memory on a device: no launch.
  template <typename F> void view(const std::string& from, const std::string& to, const F& f) {
    for (Values* chain : {&executed_, &expected_}) chain->insert_or_assign(to, f(chain->at(from)));
  }
  // Compiles and executes a launch, and compares its outputs with their bounds on the same inputs.
  void run(const kiln::KernelSpec& spec);
  // Compares the root mean square of the chains' difference with that of the values. Whether that, and every launch before, is right.
  bool close(const std::string& name, double most);

private:
  const kiln::Target& to_;
  std::map<std::string, std::int64_t> sizes_;
  Values executed_, expected_;
  std::uint64_t seed_ = 0;
  int launches_ = 0;
  bool good_ = true;
};

// The same numbers in another shape.
kiln::Tensor reshaped(const kiln::Tensor& from, std::vector<std::int64_t> shape);
// Columns `first` and on of every row, in place, as `shape` with the rows in front: rows are as far apart as those of `from`.
kiln::Tensor columns_in(const kiln::Tensor& from, std::int64_t first, std::vector<std::int64_t> shape);

// Sequences of several lengths in a paged cache, whose pages lie in any order; the new token is the last of each.
constexpr std::int64_t tokens = 4, page = 16, pages_of_one = 4, pages_of_all = 20, slots = pages_of_all * page;
constexpr std::int64_t positions = page * pages_of_one;
// Sets position, slot, lengths, pages, and cos_table and sin_table of `pairs` columns.
void set_places(Layer& layer, std::int64_t pairs);
