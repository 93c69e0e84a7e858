// What a tuner tries beside the schedules that the cost model has first: every other method that can compute the product, a few of each,
// and what changes results only where that is allowed. The model's own choice stays among its candidates.
#include "gen/catalog/catalog.h"
#include "gen/families/schedule.h"
#include <doctest/doctest.h>
#include <map>
#include <set>

namespace unit_tuning_candidates {
using namespace kiln;

namespace {

constexpr Allowed all_allowed{.atomics = true, .sparse = true};

const GemmConfig& config_of(const Schedule& schedule) { return std::get<GemmConfig>(schedule.config); }

std::map<std::string, int> methods(const std::vector<Schedule>& schedules) {
  std::map<std::string, int> count;
  for (const Schedule& s : schedules) ++count[std::string(s.family->method(s))];
  return count;
}

std::map<std::string, int> tuned_methods(const char* entry, const CatalogOptions& options, const Target& to,
                                         const Allowed& allowed = all_allowed) {
  const Plan plan = make_plan(catalog_spec(entry, options), to);
  return methods(tuning_candidates(plan, to, 3, allowed));
}

std::set<std::string> names(const std::map<std::string, int>& count) {
  std::set<std::string> result;
  for (const auto& [name, n] : count) result.insert(name);
  return result;
}

} // namespace

TEST_CASE("every method that can compute a product is tried, and no other") {
  using Names = std::set<std::string>;
  for (const std::string_view arch : known_archs()) {
    CAPTURE(arch);
    const Target to = target(arch);
    const auto tried = [&](const char* entry, DType type, std::int64_t m) {
      return names(tuned_methods(entry, {.dtype = type, .fp8 = to.fp8(), .m = m, .n = 2304, .k = 16384}, to));
    };
    const Names few = {"matrix", "matrix32", "dot", "producers", "sparse", "shared_rows", "atomics"};
    const Names many = {"matrix", "matrix32", "producers", "shared_rows", "atomics"};
    for (const DType type : {f16, bf16, to.fp8()}) {
      CHECK(tried("gemm", type, 1) == few);
      CHECK(tried("gemm", type, 32) == many);
    }
    CHECK(tried("gemm", f32, 8) == Names{"matrix", "atomics"}); // f32 takes method matrix only
  }
}

TEST_CASE("of each other method at most two, behind the first of the cost model, each once and valid") {
  for (const std::string_view arch : known_archs()) {
    const Target to = target(arch);
    for (const std::int64_t m : {1, 8, 32, 128}) {
      const Plan plan = make_plan(catalog_spec("gemm", {.dtype = bf16, .m = m, .n = 4096, .k = 4096}), to);
      const std::vector<Schedule> model = candidates(plan, to), tuned = tuning_candidates(plan, to, 3, all_allowed);
      CAPTURE(m);
      REQUIRE(tuned.size() > 3);
      for (std::size_t i = 0; i < 3; ++i) CHECK(tuned[i] == model[i]);
      const auto first = methods({tuned.begin(), tuned.begin() + 3}), later = methods({tuned.begin() + 3, tuned.end()});
      for (const auto& [method, count] : later) CHECK(count + (first.contains(method) ? first.at(method) : 0) <= tuned_each);
      for (const Schedule& s : tuned) {
        CHECK(std::ranges::count(tuned, s.config, &Schedule::config) == 1);
        CHECK_FALSE(why_not(s, plan, to));
      }
      for (const Schedule& s : model) CHECK((config_of(s).method != GemmMethod::sparse && !config_of(s).atomics));
    }
  }
}

TEST_CASE("what changes results is tried where it is allowed only, and never of batch-invariant products") {
  const Target to = target("gfx942");
  const CatalogOptions options{.dtype = f16, .m = 1, .n = 2304, .k = 16384};
  const auto without = tuned_methods("gemm", options, to, {});
  CHECK_FALSE(without.contains("sparse"));
  CHECK_FALSE(without.contains("atomics"));
  CHECK(tuned_methods("gemm", options, to, {.atomics = true}).contains("atomics"));
  CHECK_FALSE(tuned_methods("gemm", options, to, {.atomics = true}).contains("sparse"));
  CHECK(names(tuned_methods("gemm", options, to.with_batch_invariance())) == std::set<std::string>{"matrix"});
}

TEST_CASE("a family of one method has its candidates and no more") {
  const Target to = target("gfx942");
  const Plan plan = make_plan(catalog_spec("rmsnorm", {.cols = 4096}), to);
  CHECK(tuning_candidates(plan, to, 0, all_allowed) == candidates(plan, to));
  CHECK(tuning_candidates(plan, to, 2, all_allowed).size() == 2);
}

} // namespace unit_tuning_candidates
