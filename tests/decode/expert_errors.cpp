// Experts: what is ill-formed is refused with subject, fact and remedy; pairs that are not sorted are found before a kernel runs.
#include "gen/catalog/catalog.h"
#include "gen/families/make_plan.h"
#include "gen/families/schedule.h"
#include "gen/reference/index_check.h"
#include "gen/reference/random_inputs.h"
#include "gen/spec/math.h"
#include "tests/errors/expect.h"
#include "tests/launch/loaded.h"
#include <tuple>

namespace expert_errors_tests {
using namespace kiln;

namespace {

const Dim m = dynamic("m", 1, 8);
const Expr order = input("order", i32, {m, 2}), offsets = input("offsets", i32, {5}), weights = input("weights", f32, {m, 2});
Expr of_tokens() { return matmul_nt(input("a", f16, {m, 64}), input("b", f16, {4, 32, 64})); }
Expr of_pairs() { return matmul_nt(input("a", f16, {m, 2, 64}), input("b", f16, {4, 32, 64})); }
void plan_of(const KernelSpec& spec) { make_plan(spec, target("gfx942")); }
KernelSpec stored(const Expr& value) { return KernelSpec("k").output("y", f32, value); }

} // namespace

TEST_CASE("what products by expert take") {
  const auto of = [](const char* which) { return std::string("operation 'by_expert', operand ") + which; };
  expect_user_error([] { by_expert(matmul_nt(input("a", f16, {m, 64}), input("b", f16, {32, 64})), order, offsets); }, of("product"),
                    "'matmul_nt'", "[experts, n, k]");
  expect_user_error([] { by_expert(of_tokens(), input("order", i64, {m, 2}), offsets); }, of("order"), "i64", "i32");
  expect_user_error([] { by_expert(of_tokens(), input("order", i32, {m, 17}), offsets); }, of("order"), "17 experts", "1 to 16");
  expect_user_error([] { by_expert(of_tokens(), input("order", i32, {m}), offsets); }, of("order"), "[m[1..8]]", "[tokens, top]");
  expect_user_error([] { by_expert(of_tokens(), input("order", i32, {dynamic("t"), 2}), offsets); }, of("order"), "[t, 2]",
                    "pairs in the order");
  expect_user_error([] { by_expert(of_pairs(), input("order", i32, {m, 3}), offsets); }, of("product"), "a is [m[1..8], 2, 64]",
                    "[tokens, top, k]");
  expect_user_error([] { by_expert(of_tokens(), order, input("offsets", i32, {4})); }, of("offsets"), "i32[4]", "i32[5]");
  expect_user_error([] { by_expert(of_tokens(), order + 1, offsets); }, of("order"), "'add_i32', not an input", "every workgroup");
  expect_user_error([] { by_expert(matmul_nt(input("a", f16, {m, 64}), input("b", f16, {2000, 32, 64})), order, offsets); },
                    "operation 'by_expert'", "2000 experts", "1 to 1024");
  expect_user_error([] { input("b", f16, {4, 32, 64}, Layout::preshuffled); }, "input 'b'", "preshuffled", "[n, k]");
  expect_user_error([] { sum_of_experts(of_pairs(), order, offsets, input("weights", f16, {m, 2})); },
                    "operation 'sum_of_experts', operand weights", "f16", "f32");
  expect_user_error([] { matmul_nt(input("a", f16, {m, 2, 64}), input("b", f16, {32, 64})); }, "operation 'matmul_nt'", "has no experts",
                    "[experts, n, k]");
  expect_user_error([] { matmul_nt_mx(input("a", f16, {m, 64}), input("b", e2m1, {4, 32, 64}), input("s", e8m0, {4, 32, 3})); },
                    "operation 'matmul_nt_mx', operand scale", "2 blocks of 32", "e8m0[4, 32, 2]");
}

TEST_CASE("what a kernel with products by expert is") {
  expect_user_error([] { plan_of(stored(of_tokens() * 2)); }, "operation 'matmul_nt'", "a matrix for each expert", "by_expert");
  const Expr y = by_expert(of_tokens(), order, offsets), sum = sum_of_experts(of_pairs(), order, offsets, weights);
  expect_user_error([&] { plan_of(stored(y - row_max(y))); }, "kernel 'k'", "it reduces rows", "kernel of its own");
  expect_user_error([&] { plan_of(stored(columns(sum, 0, 16) * columns(sum, 16, 16))); }, "kernel 'k'", "two sums over experts",
                    "by_expert");
  const Expr others = input("others", i32, {m, 2});
  const Expr other = by_expert(matmul_nt(input("a", f16, {m, 64}), input("c", f16, {4, 32, 64})), others, offsets);
  expect_user_error([&] { plan_of(stored(y * other)); }, "kernel 'k'", "other experts", "the same order and offsets");
  CHECK(make_plan(stored(y).output("z", f32, order * 2), target("gfx942")).problems.size() == 2); // over [m, 2]
  const Plan plan = make_plan(stored(y), target("gfx942"));
  const Schedule chosen = choose_schedule(plan, target("gfx942"));
  const auto set = [&](const char* field) { with_overrides(chosen, {field}, plan, target("gfx942")); };
  expect_user_error([&] { set("rows=24"); }, "schedule of 'k'", "rows=24", "16, 32, 64 or 128");
  expect_user_error([&] { set("vec=3"); }, "schedule of 'k'", "vec=3", "divide n");
  expect_user_error([&] { set("workgroups=100000"); }, "schedule of 'k'", "workgroups=100000", "must not exceed");
}

TEST_CASE("what sorts take") {
  const auto subject = std::string("operation 'expert_order', operand experts");
  expect_user_error([] { expert_order(input("e", i64, {m, 2}), 8); }, subject, "i64", "i32");
  expect_user_error([] { expert_order(input("e", i32, {m, 2, 2}), 8); }, subject, "[m[1..8], 2, 2]", "[tokens, top]");
  expect_user_error([] { expert_order(input("e", i32, {m, 2}), 1025); }, "operation 'expert_order'", "1025 experts", "1 to 1024");
  const Expr e = input("e", i32, {m, 2});
  expect_user_error([&] { plan_of(KernelSpec("k").output("o", i32, expert_order(e, 8))); }, "kernel 'k'", "no output with the offsets",
                    "both");
  expect_user_error([&] { plan_of(KernelSpec("k").output("o", f32, expert_order(e, 8)).output("p", i32, expert_offsets(e, 8))); },
                    "output 'o'", "f32", "i32");
  expect_user_error([&] { plan_of(KernelSpec("k").output("o", i32, expert_order(e, 8)).output("p", i32, expert_offsets(e, 9))); },
                    "kernel 'k'", "twice", "two kernels");
  expect_user_error([&] { plan_of(KernelSpec("k").output("o", i32, expert_order(e, 8) + 1).output("p", i32, expert_offsets(e, 8))); },
                    "operation 'expert_order'", "operation 'add' uses it", "another kernel");
  const Expr x = input("x", f16, {m, 2});
  expect_user_error(
      [&] { plan_of(KernelSpec("k").output("y", f16, x * 2).output("o", i32, expert_order(e, 8)).output("p", i32, expert_offsets(e, 8))); },
      "kernel 'k'", "sorts its input 'e', and computes other things", "kernel of its own");
  expect_user_error([] { plan_of(catalog_spec("topk_softmax", {.cols = 64, .sorted = true})); }, "kernel 'topk_softmax'",
                    "many workgroups have", "moe_sort");
  const Expr top = row_top(matmul_nt(input("a", f16, {m, 64}), input("b", f16, {16, 64})), 2);
  expect_user_error(
      [&] {
        plan_of(KernelSpec("k").output("y", f32, top).output("o", i32, expert_order(top, 16)).output("p", i32, expert_offsets(top, 16)));
      },
      "kernel 'k'", "a row_top that is no output", "of i32");
  expect_user_error([] { catalog_spec("moe_sort", {.experts = 0}); }, "catalogue entry 'moe_sort'", "experts is 0", "1 to 1024");
  expect_user_error([] { catalog_spec("grouped_gemm", {.weights = u8}); }, "catalogue entry 'grouped_gemm'", "weights is u8", "e2m1");
}

TEST_CASE("pairs that are not sorted: the reference refuses them, an emulated device finds them before the kernel runs") {
  const KernelSpec spec = stored(by_expert(of_tokens(), order, offsets));
  const Inputs sound = random_inputs(spec, 1, {.dynamic_size = 3});
  CHECK_NOTHROW(evaluate(spec, sound));
  const Device device = Device::emulated("gfx942");
  const LoadedKernel kernel = device.load(test::compiled(spec, "gfx942", {"workgroups=4"}));
  for (const auto& [name, at, value, fact] :
       {std::tuple("offsets", 0, 1, "offset 0 is 1"), std::tuple("offsets", 2, 7, "must not fall"),
        std::tuple("offsets", 4, 5, "there are 6 pairs"), std::tuple("order", 2, 6, "element 2 of the order is 6"),
        std::tuple("order", 1, 0, "stands at"), std::tuple("order", 5, -1, "element 5 of the order is -1")}) {
    CAPTURE(name);
    CAPTURE(at);
    Inputs inputs = sound;
    if (std::string_view(name) == "order")
      for (std::int64_t i = 0; i < 6; ++i) inputs.tensors.at("order").set_bits(i, static_cast<std::uint64_t>(i));
    else
      for (std::int64_t e = 0; e < 5; ++e) inputs.tensors.at("offsets").set_bits(e, static_cast<std::uint64_t>(e < 4 ? e : 6));
    inputs.tensors.at(name).set_bits(at, static_cast<std::uint64_t>(static_cast<std::int64_t>(value)));
    expect_user_error([&] { evaluate(spec, inputs); }, "pairs 'order' with offsets 'offsets'", fact, "moe_sort");
    std::vector<DeviceMemory> memory;
    std::vector<Argument> arguments;
    for (const auto& [tensor_name, tensor] : inputs.tensors) {
      memory.push_back(device.upload(tensor, tensor_name));
      arguments.emplace_back(tensor_name, memory.back().tensor(tensor.dtype(), tensor.shape()));
    }
    const DeviceMemory of_y = device.allocate(3 * 2 * 32 * 4, "y");
    arguments.emplace_back("y", of_y.tensor(f32, {3, 2, 32}));
    try {
      kernel.bind(arguments).launch();
      FAIL_CHECK("nothing was found");
    } catch (const ExecutionError& error) {
      REQUIRE(error.findings.size() == 1);
      CHECK_MESSAGE(error.findings[0].find(fact) != std::string::npos, error.findings[0]);
    }
  }
}

TEST_CASE("a product by expert serves the next launch as it is") {
  const KernelSpec spec = KernelSpec("k").output("y", f32, sum_of_experts(of_pairs(), order, offsets, weights));
  const Device device = Device::emulated("gfx950");
  const LoadedKernel kernel = device.load(test::compiled(spec, "gfx950", {"workgroups=6"}));
  const DeviceMemory of_y = device.allocate(3 * 32 * 4, "y");
  const DeviceTensor y = of_y.tensor(f32, {3, 32});
  std::vector<DeviceMemory> memory;
  std::vector<Argument> arguments{{"y", y}};
  const Inputs inputs = random_inputs(spec, 1, {.dynamic_size = 3});
  for (const auto& [name, tensor] : inputs.tensors) {
    memory.push_back(device.upload(tensor, name));
    arguments.emplace_back(name, memory.back().tensor(tensor.dtype(), tensor.shape()));
  }
  const BoundKernel bound = kernel.bind(arguments);
  const Tensor wanted = evaluate(spec, inputs).at("y");
  for (int launch = 0; launch < 3; ++launch) {
    bound.launch();
    const Tensor got = device.download(y);
    for (std::int64_t i = 0; i < wanted.size(); ++i) CHECK(got.at(i) == doctest::Approx(wanted.at(i)).epsilon(1e-3));
  }
}

TEST_CASE("specs with experts parse back") {
  for (const char* name : {"moe_sort", "grouped_gemm", "grouped_gemm_swiglu", "grouped_gemm_sum"}) {
    const KernelSpec spec = catalog_spec(name, {.dtype = bf16, .n = 128, .k = 128, .weights = e2m1});
    validate(spec);
    CHECK(parse_spec(to_text(spec)) == spec);
  }
}

} // namespace expert_errors_tests
