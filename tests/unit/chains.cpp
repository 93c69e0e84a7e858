// Long chains of operators: every stage from a spec to its text runs on the small stack of an engine's thread, up to max_depth; a
// longer chain is an error, whoever builds it.
#include "gen/error.h"
#include "gen/families/schedule.h"
#include "gen/reference/evaluate.h"
#include "gen/reference/evaluate_bounds.h"
#include "gen/reference/random_inputs.h"
#include "gen/spec/math.h"
#include "gen/spec/spec.h"
#include <doctest/doctest.h>
#include <exception>
#include <pthread.h>

namespace chains_tests {
using namespace kiln;

namespace {

// Runs `work` on a thread with so much stack, and gives what it throws.
template <class Work> void on_small_stack(const Work& work) {
  struct Task {
    const Work& work;
    std::exception_ptr error;
  } task{work, {}};
  pthread_attr_t attributes;
  pthread_t thread{};
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, 256u << 10);
  const auto run = [](void* given) -> void* {
    Task& mine = *static_cast<Task*>(given);
    try {
      mine.work();
    } catch (...) {
      mine.error = std::current_exception();
    }
    return nullptr;
  };
  REQUIRE(pthread_create(&thread, &attributes, run, &task) == 0);
  pthread_join(thread, nullptr);
  pthread_attr_destroy(&attributes);
  if (task.error) std::rethrow_exception(task.error);
}

// y = x * x * ... of so many factors.
KernelSpec chain(int factors) {
  const Expr x = input("x", f16, {dynamic("rows", 1, 2), 64});
  Expr y = x;
  for (int i = 1; i < factors; ++i) y = y * x;
  return KernelSpec("chain").output("y", f32, y);
}

} // namespace

TEST_CASE("operations one upon another, as many as there may be, go through every stage on a small stack") {
  on_small_stack([] {
    const Target to = target("gfx942");
    const Expr x = input("x", f16, {dynamic("rows", 1, 2), 64});
    Expr mixed = x; // neither printed nor emitted as one flat chain
    for (int i = 0; i + 2 < max_depth; ++i) mixed = i % 2 ? mixed + x : exp(mixed);
    for (const KernelSpec& spec : {chain(max_depth + 1), KernelSpec("mixed").output("y", f32, mixed + partner(mixed, 32))}) {
      const KernelSpec read = parse_spec(to_text(spec));
      const Plan plan = make_plan(read, to);
      const auto schedules = candidates(plan, to);
      CHECK(!emit_source(plan, schedules.front(), to).text.empty());
      const Inputs inputs = random_inputs(read, 1, {.dynamic_size = 1});
      CHECK(evaluate(read, inputs).size() == 1);
      CHECK(evaluate_bounds(read, inputs).size() == 1);
    }
  });
}

TEST_CASE("a chain that is too long is an error in text and in C++, on any stack") {
  on_small_stack([] {
    std::string text = "kernel chain\ninput x: f16[8, 64]\noutput y: f32[8, 64] = x";
    for (int i = 1; i < 200'000; ++i) text += " * x";
    CHECK_THROWS_WITH_AS(parse_spec(text + "\n"), doctest::Contains("more than 400 operations stand one upon another"), UserError);
    CHECK_THROWS_AS(chain(200'000), UserError);
    CHECK_THROWS_AS(chain(max_depth + 2), UserError);
  });
}

} // namespace chains_tests
