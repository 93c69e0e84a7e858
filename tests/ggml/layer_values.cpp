// Proves that a layer's merged kernels compute what ggml's CPU backend does: one product for q, k and v, writes with rope, attention.
#include "examples/ggml/buffer.h"
#include "examples/ggml/layer/layer_graph.h"
#include <cmath>
#include <doctest/doctest.h>
#include <random>
#include <string>

namespace kiln_ggml {
namespace {

constexpr std::int64_t past = 100; // positions that the cache has

// Every leaf of the graph, by its name: alike on both devices.
void fill(const LayerGraph& layer) {
  for (ggml_tensor* t = ggml_get_first_tensor(layer.leaves()); t != nullptr; t = ggml_get_next_tensor(layer.leaves(), t)) {
    if (t->op != GGML_OP_NONE || t->view_src != nullptr) continue;
    const auto count = static_cast<std::size_t>(ggml_nelements(t));
    std::mt19937 random(static_cast<unsigned>(std::hash<std::string>()(t->name)));
    std::normal_distribution<float> number(0.0f, std::string(t->name) == "x" || t->ne[1] == 1 ? 1.0f : 0.1f);
    std::vector<std::byte> bytes(ggml_nbytes(t));
    for (std::size_t i = 0; i < count; ++i) {
      const std::int64_t key = static_cast<std::int64_t>(i) % t->ne[0], token = static_cast<std::int64_t>(i) / t->ne[0];
      if (t->type == GGML_TYPE_F32) reinterpret_cast<float*>(bytes.data())[i] = number(random);
      else if (t->type == GGML_TYPE_I32) reinterpret_cast<std::int32_t*>(bytes.data())[i] = static_cast<std::int32_t>(past + key);
      else if (t->type == GGML_TYPE_I64) reinterpret_cast<std::int64_t*>(bytes.data())[i] = past + key;
      else if (std::string(t->name) == "mask")
        reinterpret_cast<ggml_fp16_t*>(bytes.data())[i] = ggml_fp32_to_fp16(key <= past + token ? 0.0f : -INFINITY);
      else reinterpret_cast<ggml_fp16_t*>(bytes.data())[i] = ggml_fp32_to_fp16(number(random));
    }
    ggml_backend_tensor_set(t, bytes.data(), 0, bytes.size());
  }
}

std::vector<float> values(const LayerGraph& layer, const char* name) {
  ggml_tensor* const t = layer.find(name);
  std::vector<std::byte> bytes(ggml_nbytes(t));
  ggml_backend_tensor_get(t, bytes.data(), 0, bytes.size());
  std::vector<float> result(static_cast<std::size_t>(ggml_nelements(t)));
  for (std::size_t i = 0; i < result.size(); ++i)
    result[i] = t->type == GGML_TYPE_F32 ? reinterpret_cast<float*>(bytes.data())[i]
                                         : ggml_fp16_to_fp32(reinterpret_cast<ggml_fp16_t*>(bytes.data())[i]);
  return result;
}

double error(const std::vector<float>& found, const std::vector<float>& expected) {
  double difference = 0, size = 0;
  for (std::size_t i = 0; i < found.size(); ++i) {
    difference += (found[i] - expected[i]) * (found[i] - expected[i]);
    size += expected[i] * expected[i];
  }
  return difference / size;
}

} // namespace

TEST_CASE("a layer's values are those of ggml's CPU backend") {
  ggml_backend_load_all();
  ggml_backend_t const cpu = ggml_backend_init_by_type(GGML_BACKEND_DEVICE_TYPE_CPU, nullptr);
  REQUIRE(cpu != nullptr);
  Engine engine(kiln::Device::emulated("gfx942"));
  ggml_backend_buffer_type buffers{.iface = buffer_type_interface(), .device = nullptr, .context = &engine};
  for (const std::int64_t tokens : {1, 3}) {
    CAPTURE(tokens);
    const LayerSize size{.tokens = tokens};
    const LayerGraph here(size, &buffers), there(size, ggml_backend_cpu_buffer_type());
    fill(here);
    fill(there);
    engine.compute(*here.graph());
    REQUIRE(ggml_backend_graph_compute(cpu, there.graph()) == GGML_STATUS_SUCCESS);
    for (const char* name : {"l_out", "k_cache", "v_cache"}) {
      CAPTURE(name);
      CHECK(error(values(here, name), values(there, name)) < 1e-6);
    }
    // The rows that were written, by themselves.
    const std::vector<float> found = values(here, "k_cache"), expected = values(there, "k_cache");
    const auto width = static_cast<std::ptrdiff_t>(size.kv_heads * size.head), first = past * width, last = (past + tokens) * width;
    CHECK(error({found.begin() + first, found.begin() + last}, {expected.begin() + first, expected.begin() + last}) < 1e-6);
  }
  ggml_backend_free(cpu);
}

} // namespace kiln_ggml
