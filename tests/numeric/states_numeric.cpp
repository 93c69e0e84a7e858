// States by slot, executed on both architectures: in place, for several tokens, as windows, with null slots, in any order of waves, and the
// same bits again and again.
#include "gen/catalog/catalog.h"
#include "gen/spec/math.h"
#include "runtime/build/build_kernel.h"
#include "runtime/launch/emulated/emulate.h"
#include "tests/numeric/check_kernel.h"
#include <doctest/doctest.h>
#include <tuple>

namespace states_numeric {
using namespace kiln;

namespace {

const Dim tokens = dynamic("tokens"), slots = dynamic("slots", 1);

void check(const KernelSpec& spec, std::int64_t rows, std::uint64_t seed = 1, const std::vector<std::string>& settings = {}) {
  for (const std::string_view arch : known_archs()) {
    const auto wrong = testing::check_kernel(spec, target(arch), seed, {.rows = rows, .settings = settings});
    CHECK_MESSAGE(!wrong, wrong.value_or(""));
  }
}

// Small ones: a head of q and k for two of v.
CatalogOptions small(std::string_view entry, DType state, std::int64_t count) {
  CatalogOptions options = default_options(entry);
  options.dtype = bf16, options.heads = 4, options.kv_heads = 2, options.d = 16, options.tokens = count, options.state = state;
  if (entry == "conv1d_update") options.cols = 96;
  return options;
}

} // namespace

TEST_CASE("states of the catalogue: every type, one token and several") {
  for (const std::string_view arch : known_archs())
    for (std::uint64_t point = 0; const char* const name : {"conv1d_update", "gated_delta_update", "ssm_update"})
      for (const std::int64_t count : {1, 2, 4, 8})
        for (const DType state : {f32, bf16, target(arch).fp8()}) {
          const Target to = target(arch);
          CatalogOptions options = small(name, state, count);
          options.index = count == 2 ? i32 : i64;
          options.per_channel = count == 4;
          if (!testing::runs_in_slice(to, ++point)) continue;
          const KernelSpec spec = catalog_spec(name, options);
          const BuiltKernel built = build_kernel(spec, to, own_process_options(process_environment()));
          const std::int64_t sequences = count > 2 ? 2 : 5;
          const Inputs inputs =
              random_inputs(spec, point, {.sizes = {{"tokens", sequences}, {"sequences", sequences}, {"slots", sequences * count + 3}}});
          const auto wrong = testing::check_orders(spec, built, inputs, {.count = 1});
          CHECK_MESSAGE(!wrong, wrong.value_or(""));
        }
}

TEST_CASE("states of the catalogue in twenty interleavings, and twenty times") {
  for (const std::string_view arch : known_archs())
    for (std::uint64_t point = 0; const char* const name : {"conv1d_update", "gated_delta_update", "ssm_update"})
      for (const std::int64_t count : {1, 3}) {
        const Target to = target(arch);
        if (!testing::runs_here(to, ++point)) continue;
        const KernelSpec spec = catalog_spec(name, small(name, f32, count));
        CompileOptions compile = own_process_options(process_environment());
        const BuiltKernel built = build_kernel(spec, to, compile);
        Inputs inputs = random_inputs(spec, 7, {.dynamic_size = 12, .sizes = {{"tokens", 4}, {"sequences", 4}}});
        const auto wrong = testing::check_orders(spec, built, inputs, {.count = 20, .launches = 2, .side_by_side = true});
        CHECK_MESSAGE(!wrong, wrong.value_or(""));
        for (int replay = 0; replay < 20; ++replay) { // each launch goes on with the states that the one before left
          const EmulatedRun run = emulate(spec, built.source, built.object, inputs);
          REQUIRE(run.result.defects.empty());
          const auto mismatch = find_mismatch(run.outputs, evaluate_bounds(spec, inputs, bounds_options(built.schedule)));
          REQUIRE_MESSAGE(!mismatch, to_text(*mismatch));
          inputs.tensors.at("state") = run.outputs.at("state_out");
        }
      }
}

TEST_CASE("a sequence's result and state have the same bits alone, in batches, beside others, and in any slot") {
  for (const std::string_view arch : known_archs())
    for (std::uint64_t point = 0; const char* const name : {"conv1d_update", "gated_delta_update", "ssm_update"}) {
      const Target to = target(arch);
      if (!testing::runs_here(to, ++point)) continue;
      const KernelSpec spec = catalog_spec(name, small(name, bf16, 1));
      const BuiltKernel built = build_kernel(spec, to, own_process_options(process_environment()));
      const auto run = [&](const Inputs& inputs) {
        const EmulatedRun done = emulate(spec, built.source, built.object, inputs);
        REQUIRE(done.result.defects.empty());
        return done.outputs;
      };
      const auto copy_row = [](Tensor& into, std::int64_t row, const Tensor& from, std::int64_t from_row) {
        const std::int64_t size = into.size() / into.shape()[0];
        for (std::int64_t i = 0; i < size; ++i) into.set_bits(row * size + i, from.bits(from_row * size + i));
      };
      Inputs alone = random_inputs(spec, 5, {.sizes = {{"tokens", 1}, {"slots", 2}}});
      alone.tensors.at("slot").set_bits(0, 1);
      const Outputs expected = run(alone);
      for (const auto& [tokens_of_batch, place, slot] : {std::tuple{2, 1, 0}, {5, 2, 6}, {9, 0, 3}}) {
        Inputs batch = random_inputs(spec, 6, {.sizes = {{"tokens", tokens_of_batch}, {"slots", 12}}});
        for (const Expr& input : spec.inputs()) {
          Tensor& tensor = batch.tensors.at(input->name);
          const bool of_token = input.shape()[0].is_dynamic() && input.shape()[0].name() == "tokens";
          if (of_token) copy_row(tensor, place, alone.tensors.at(input->name), 0);
          else if (input->name != "state") tensor = alone.tensors.at(input->name);
        }
        for (std::int64_t t = 0; t < tokens_of_batch; ++t)
          batch.tensors.at("slot").set_bits(t, static_cast<std::uint64_t>(t == place ? slot : t < slot ? t : t + 1));
        copy_row(batch.tensors.at("state"), slot, alone.tensors.at("state"), 1);
        const Outputs actual = run(batch);
        for (const auto& [output, tensor] : expected) {
          Tensor one(tensor.dtype(), tensor.shape()), same(tensor.dtype(), tensor.shape());
          const bool is_state = output == "state_out";
          copy_row(one, 0, actual.at(output), is_state ? slot : place);
          copy_row(same, 0, tensor, is_state ? 1 : 0);
          const std::int64_t size = tensor.size() / tensor.shape()[0];
          for (std::int64_t i = 0; i < size; ++i) REQUIRE(one.bits(i) == same.bits(i));
        }
      }
    }
}

TEST_CASE("a null slot is neither read nor written, and others keep their bits") {
  const Expr state = input("state", f32, {slots, 2, 64}), slot = input("slot", i64, {tokens, 1, 1}), x = input("x", f16, {tokens, 2, 64});
  const Expr old = gather(state, slot);
  const KernelSpec spec =
      KernelSpec("k").output("out", f32, scatter(state, slot, old * 0.5 + x), {.in_place_of = "state"}).output("y", f32, row_sum(old));
  for (const std::string_view arch : known_archs()) {
    CompileOptions compile = own_process_options(process_environment());
    const BuiltKernel built = build_kernel(spec, target(arch), compile);
    Inputs inputs = random_inputs(spec, 3, {.sizes = {{"tokens", 3}, {"slots", 4}}});
    const std::int64_t given[] = {2, -1, 0};
    for (int i = 0; i < 3; ++i) inputs.tensors.at("slot").set_bits(i, static_cast<std::uint64_t>(given[i]));
    Tensor& states = inputs.tensors.at("state");
    const EmulatedRun done = emulate(spec, built.source, built.object, inputs);
    CHECK(done.result.defects.empty());
    for (const std::int64_t untouched : {1, 3})
      for (std::int64_t i = 0; i < 128; ++i) REQUIRE(done.outputs.at("out").bits(untouched * 128 + i) == states.bits(untouched * 128 + i));
    for (std::int64_t head = 0; head < 2; ++head) CHECK(done.outputs.at("y").at(2 + head) == 0); // as if it were zeros
  }
}

TEST_CASE("states as wide as several waves, and several workgroups, strided, and with reductions before") {
  for (const std::int64_t cols : {1, 7, 64, 1000, 4100, 20000}) {
    CAPTURE(cols);
    const Expr state = input("state", bf16, {slots, cols}, Layout::strided), slot = input("slot", i32, {tokens, 1});
    const Expr x = input("x", f16, {tokens, cols}), old = gather(state, slot);
    const auto into = [&](const Expr& value) {
      return KernelSpec("k").output("out", bf16, scatter(state, slot, value), {.in_place_of = "state", .layout = Layout::strided});
    };
    check(into(old * 0.5 + x), 5, 2);
    check(into(old * rsqrt(row_mean(old * old) + 1e-3) + x), 4, 3);
  }
}

TEST_CASE("slices of inputs and stacks of outputs: strided, of rows, of windows, beside other problems") {
  const Expr wide = input("wide", f16, {tokens, 3, 4, 64}, Layout::strided), of_row = input("of_row", f32, {tokens, 2, 4, 1});
  const Expr shared = input("shared", bf16, {1, 3, 64});
  const Expr a = unstack(wide, 0) * unstack(of_row, 1), b = unstack(wide, 2) + unstack(shared, 1);
  check(KernelSpec("k").output("y", f16, stack({a, b, a - b})).output("z", f32, stack({row_sum(a), row_max(b)})), 5, 4);
  check(KernelSpec("k").output("y", f32, stack({a, b}), {.layout = Layout::strided}).output("w", f32, input("v", f16, {9, 32}) * 2), 3, 5);
  check(KernelSpec("k").output("y", f32, stack({stack({a, b}), stack({b, a})})), 3, 6);
}

TEST_CASE("columns shifted to both sides: rows of one lane, of a wave and of several, of every type") {
  for (const DType type : {f32, f16, i8})
    for (const std::int64_t cols : {2, 3, 4, 8, 100, 4096}) {
      CAPTURE(cols);
      const Expr x = input("x", type, {tokens, cols}), slot = input("slot", i32, {tokens, 1});
      const Expr both = shift_columns(x, 1) + shift_columns(x, -1) * 2;
      check(
          KernelSpec("k").output("y", f32, both).output("s", f32, row_sum(shift_columns(gather(input("t", type, {slots, cols}), slot), 1))),
          3, 8);
    }
}

TEST_CASE("a window that moves by one column in place") {
  for (const std::int64_t width : {3, 4}) {
    const Expr state = input("state", bf16, {slots, 160, width}), slot = input("slot", i64, {tokens, 1, 1});
    const Expr x = input("x", bf16, {tokens, 160, 1}), old = gather(state, slot);
    const Expr window = select(eq(iota({width}), static_cast<double>(width - 1)), x, shift_columns(old, -1));
    check(KernelSpec("k")
              .output("out", bf16, scatter(state, slot, window), {.in_place_of = "state"})
              .output("y", bf16, silu(row_sum(window * input("weight", bf16, {160, width})))),
          4, 9);
  }
}

} // namespace states_numeric
