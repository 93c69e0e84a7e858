// Proves what ggml's own tests do not look at: regions of a layer, lookups from the second token on, refusals.
#include "examples/ggml/buffer.h"
#include "examples/ggml/layer/layer_graph.h"
#include <cstdio>
#include <cstdlib>
#include <doctest/doctest.h>
#include <ggml-alloc.h>
#include <map>
#include <numeric>
#include <string>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

namespace kiln_ggml {
namespace {

// Buffers of an engine, as registration.cpp makes them.
struct Buffers {
  explicit Buffers(Engine& engine) : type{.iface = buffer_type_interface(), .device = nullptr, .context = &engine} {}
  ggml_backend_buffer_type type;
};

TEST_CASE("a layer becomes kernels whose nodes are the ones that one space can express") {
  Engine engine(kiln::Device::emulated("gfx942"));
  Buffers buffers(engine);
  const LayerGraph layer(LayerSize{}, &buffers.type);
  ggml_cgraph* const graph = layer.graph();
  const Partition parts = partition({ggml_graph_nodes(graph), ggml_graph_nodes(graph) + ggml_graph_n_nodes(graph)}, use_counts(*graph));
  std::map<std::string, std::string> user;
  int nodes = 0;
  for (const NodePlan& plan : parts.nodes) {
    CHECK(supports(*plan.node));
    if (plan.kind == Kind::view) continue;
    ++nodes;
    if (plan.absorbed) user[plan.node->name] = plan.user->name;
  }
  CHECK(nodes == 19);
  CHECK(user["ffn_up"] == "ffn_swiglu"); // both products and the gate are one kernel
  CHECK(user["ffn_gate"] == "ffn_swiglu");
  CHECK(user["ffn_down"] == "l_out");
  CHECK(user["attn_out"] == "ffn_inp");
  CHECK(user["v"] == "q"); // one product: their weights lie one behind the other
  CHECK(user["k"] == "q");
  CHECK(user["k_rope"] == "k_write");  // rotated and written
  CHECK(user["k_write"] == "v_write"); // by the kernel that writes both
  CHECK(user["q_rope"] == "attention");
  kiln::Jit jit(engine.device());
  GraphBuilder builder(jit, engine.device());
  lower_graph(builder, parts);
  CHECK(builder.launches() == 9);
}

TEST_CASE("without counts of uses nothing is fused") {
  const LayerGraph layer(LayerSize{}, nullptr);
  ggml_cgraph* const graph = layer.graph();
  const Partition parts = partition({ggml_graph_nodes(graph), ggml_graph_nodes(graph) + ggml_graph_n_nodes(graph)}, {});
  for (const NodePlan& plan : parts.nodes) CHECK_FALSE(plan.absorbed);
}

TEST_CASE("nodes of an inactive branch are left out") {
  const LayerGraph layer(LayerSize{}, nullptr);
  ggml_cgraph* const graph = layer.graph();
  const int last = ggml_graph_n_nodes(graph) - 1;
  ggml_graph_node(graph, last)->flags &= ~GGML_TENSOR_FLAG_COMPUTE;
  const Partition parts = partition({ggml_graph_nodes(graph), ggml_graph_nodes(graph) + last + 1}, use_counts(*graph));
  CHECK(parts.nodes.back().kind == Kind::view);
}

TEST_CASE("elements of permuted and repeated tensors") {
  const TensorView view{.data = nullptr, .dtype = kiln::f16, .ne = {2, 3, 1, 1}, .stride = {3, 1, 6, 6}};
  CHECK_FALSE(view.is_dense());
  CHECK_FALSE(view.has_dense_rows());
  CHECK(view.last() == 5);
  CHECK(repeated(view, {4, 3, 1, 1}) == IndexMap{0, 3, 0, 3, 1, 4, 1, 4, 2, 5, 2, 5});
  CHECK(dense_view(nullptr, kiln::f32, {5, 2, 3, 1}).is_dense());
}

TEST_CASE("a size of memory that is no number is refused") {
  for (const char* const wrong : {"2G", "-1", " 2", "4294967296"}) {
    setenv("KILN_GGML_MEMORY_MB", wrong, 1);
    CHECK_THROWS_AS(settings_of_process(), kiln::UserError);
  }
  unsetenv("KILN_GGML_MEMORY_MB");
}

TEST_CASE("a buffer beyond the device's memory is ggml's own error path, and nothing is lost") {
  setenv("KILN_GGML_MEMORY_MB", "2", 1);
  Engine engine(kiln::Device::emulated("gfx942"));
  unsetenv("KILN_GGML_MEMORY_MB");
  Buffers buffers(engine);
  const std::size_t before = engine.memory_free();
  CHECK(before == std::size_t{2} << 20);
  CHECK(ggml_backend_buft_alloc_buffer(&buffers.type, std::size_t{3} << 20) == nullptr);
  CHECK(engine.memory_free() == before);
  ggml_backend_buffer_t const some = ggml_backend_buft_alloc_buffer(&buffers.type, std::size_t{1} << 20);
  REQUIRE(some != nullptr);
  CHECK(engine.memory_free() == before / 2);
  CHECK(ggml_backend_buft_alloc_buffer(&buffers.type, std::size_t{2} << 20) == nullptr);
  ggml_backend_buffer_free(some);
  CHECK(engine.memory_free() == before);
}

// Through libggml's own functions, which choose the asynchronous ways where a backend has them.
TEST_CASE("events, copies that only begin, and copies within the device") {
  ggml_backend_reg_t const registration = ggml_backend_init();
  REQUIRE(registration != nullptr);
  ggml_backend_dev_t const device = ggml_backend_reg_dev_get(registration, 0);
  ggml_backend_dev_props properties{};
  ggml_backend_dev_get_props(device, &properties);
  CHECK(properties.caps.async);
  CHECK(properties.caps.events);
  ggml_backend_t const backend = ggml_backend_dev_init(device, nullptr), other = ggml_backend_dev_init(device, nullptr);
  ggml_context* const context = ggml_init({.mem_size = 1 << 16, .mem_buffer = nullptr, .no_alloc = true});
  ggml_tensor* const a = ggml_new_tensor_1d(context, GGML_TYPE_F32, 64);
  ggml_tensor* const b = ggml_new_tensor_1d(context, GGML_TYPE_F32, 64);
  ggml_backend_buffer_t const buffer = ggml_backend_alloc_ctx_tensors(context, backend);
  REQUIRE(buffer != nullptr);
  std::vector<float> values(64), got(64);
  std::iota(values.begin(), values.end(), 1.0f);
  ggml_backend_tensor_set_async(backend, a, values.data(), 0, sizeof(float) * 64);
  ggml_backend_event_t const event = ggml_backend_event_new(device);
  REQUIRE(event != nullptr);
  ggml_backend_event_synchronize(event); // recorded nowhere yet
  ggml_backend_event_record(event, backend);
  ggml_backend_event_wait(other, event);
  ggml_backend_tensor_copy_async(backend, other, a, b);
  ggml_backend_tensor_get_async(other, b, got.data(), 0, sizeof(float) * 64);
  ggml_backend_event_record(event, other);
  ggml_backend_event_synchronize(event);
  CHECK(got == values);
  ggml_backend_tensor_memset(b, 0, 0, sizeof(float) * 64);
  ggml_backend_tensor_copy(a, b);
  ggml_backend_tensor_get(b, got.data(), 0, sizeof(float) * 64);
  CHECK(got == values);
  ggml_backend_event_free(event);
  ggml_backend_buffer_free(buffer);
  ggml_free(context);
  ggml_backend_free(other);
  ggml_backend_free(backend);
}

TEST_CASE("an operation that supports_op refuses is an error of the graph, and no crash") {
  Engine engine(kiln::Device::emulated("gfx942"));
  Buffers buffers(engine);
  ggml_context* const context = ggml_init({.mem_size = 1 << 16, .mem_buffer = nullptr, .no_alloc = true});
  // No model that decodes pools images, so this stays refused.
  ggml_tensor* const image = ggml_new_tensor_2d(context, GGML_TYPE_F32, 8, 8);
  ggml_tensor* const pooled = ggml_pool_2d(context, image, GGML_OP_POOL_MAX, 2, 2, 2, 2, 0, 0);
  ggml_cgraph* const graph = ggml_new_graph_custom(context, 8, false);
  ggml_build_forward_expand(graph, pooled);
  ggml_backend_buffer_t const buffer = ggml_backend_alloc_ctx_tensors_from_buft(context, &buffers.type);
  REQUIRE(buffer != nullptr);
  REQUIRE_FALSE(supports(*pooled));
  CHECK_THROWS_WITH(engine.compute(*graph), doctest::Contains("POOL_2D with these types and shapes is none that supports_op takes"));
  ggml_backend_buffer_free(buffer);
  ggml_free(context);
}

// In a child, for ggml never forgets a registration.
TEST_CASE("a libggml of another version is refused, by name and number") {
  int ends[2];
  REQUIRE(pipe(ends) == 0);
  const pid_t child = fork();
  if (child == 0) {
    dup2(ends[1], 2);
    static ggml_backend_reg other{.api_version = 7, .iface = {}, .context = nullptr};
    other.iface.get_name = [](ggml_backend_reg_t) { return "other"; };
    other.iface.get_device_count = [](ggml_backend_reg_t) { return std::size_t{0}; };
    ggml_backend_register(&other);
    _exit(ggml_backend_init() == nullptr ? 0 : 1);
  }
  close(ends[1]);
  std::string words;
  char buffer[512];
  for (ssize_t n; (n = read(ends[0], buffer, sizeof buffer)) > 0;) words.append(buffer, static_cast<std::size_t>(n));
  close(ends[0]);
  int status = 1;
  waitpid(child, &status, 0);
  CHECK(status == 0);
  CHECK(words.find("libggml-kiln.so for version 3") != std::string::npos);
  CHECK(words.find("has version 7") != std::string::npos);
}

} // namespace
} // namespace kiln_ggml
