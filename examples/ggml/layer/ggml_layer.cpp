// ggml_layer: a layer's graph before and after fusion as a picture, its launches as a list, and the host's time for a token.
#include "examples/ggml/buffer.h"
#include "examples/ggml/layer/layer_graph.h"
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fmt/format.h>
#include <fstream>
#include <string>

using namespace kiln_ggml;

namespace {

constexpr int line = 22, width = 250, gap = 130;

std::string box(int x, int y, int height, const char* colour) {
  return fmt::format("<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" rx=\"4\" fill=\"{}\" stroke=\"#555\"/>\n", x, y, width, height,
                     colour);
}

std::string words(int x, int y, const std::string& text) { return fmt::format("<text x=\"{}\" y=\"{}\">{}</text>\n", x, y, text); }

std::string label(const ggml_tensor& node) { return fmt::format("{} {}", ggml_op_desc(&node), node.name); }

// The kernel that computes node `i`: that of the last node of its region.
std::size_t root_of(const Partition& parts, std::size_t i) {
  while (parts.nodes[i].absorbed) i = static_cast<std::size_t>(parts.find(parts.nodes[i].user) - parts.nodes.data());
  return i;
}

// On the left a box a node, which is a launch each without fusion; on the right a box a kernel with its nodes.
std::string picture(const Partition& parts, std::size_t launches) {
  std::vector<std::vector<std::size_t>> regions(parts.nodes.size());
  std::vector<std::size_t> computed;
  for (std::size_t i = 0; i < parts.nodes.size(); ++i) {
    if (parts.nodes[i].kind == Kind::view) continue;
    computed.push_back(i);
    regions[root_of(parts, i)].push_back(i);
  }
  std::string left, right;
  std::vector<int> left_at(parts.nodes.size());
  int y = 40, kernels = 0;
  for (const std::size_t i : computed) {
    left += box(10, y, line - 4, "#e8eef7") + words(18, y + 13, label(*parts.nodes[i].node));
    left_at[i] = y + line / 2 - 2;
    y += line;
  }
  const int bottom = y;
  y = 40;
  for (const auto& nodes : regions) {
    if (nodes.empty()) continue;
    ++kernels;
    const int height = line * static_cast<int>(nodes.size()) - 4;
    right += box(10 + width + gap, y, height, nodes.size() > 1 ? "#d9f0d3" : "#e8eef7");
    for (const std::size_t i : nodes) {
      right += words(18 + width + gap, y + 13, label(*parts.nodes[i].node));
      right += fmt::format("<path d=\"M{} {} C{} {} {} {} {} {}\" fill=\"none\" stroke=\"#999\"/>\n", 10 + width, left_at[i],
                           10 + width + gap / 2, left_at[i], 10 + width + gap / 2, y + line / 2 - 2, 10 + width + gap, y + line / 2 - 2);
      y += line;
    }
    y += 2;
  }
  return fmt::format("<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{}\" height=\"{}\" font-family=\"sans-serif\" font-size=\"12\">\n"
                     "<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n",
                     2 * width + gap + 20, std::max(bottom, y) + 10) +
         words(10, 24, fmt::format("ggml: {} operations", computed.size())) +
         words(10 + width + gap, 24, fmt::format("Kiln: {} launches of {} regions", launches, kernels)) + left + right + "</svg>\n";
}

Partition parts_of(const LayerGraph& layer) {
  ggml_cgraph* const graph = layer.graph();
  return partition({ggml_graph_nodes(graph), ggml_graph_nodes(graph) + ggml_graph_n_nodes(graph)}, use_counts(*graph));
}

int draw(const char* file) {
  Engine engine(kiln::default_device());
  ggml_backend_buffer_type buffers{.iface = buffer_type_interface(), .device = nullptr, .context = &engine};
  const LayerGraph layer(LayerSize{}, &buffers);
  const Partition parts = parts_of(layer);
  kiln::Jit jit(engine.device());
  GraphBuilder graph(jit, engine.device()); // collects launches, compiles nothing
  lower_graph(graph, parts);
  std::ofstream(file) << picture(parts, graph.launches());
  return 0;
}

// Computes the layer `tokens` times on KILN_DEVICE. With a HIP runtime that does nothing, all of the time is the host's.
int measure(const LayerGraph& layer, ggml_backend_t backend, int tokens) {
  using clock = std::chrono::steady_clock;
  std::vector<double> us;
  for (int i = 0; i < tokens; ++i) {
    const auto start = clock::now();
    if (ggml_backend_graph_compute_async(backend, layer.graph()) != GGML_STATUS_SUCCESS) return 1;
    us.push_back(std::chrono::duration<double, std::micro>(clock::now() - start).count());
  }
  const double first = us.front();
  std::ranges::sort(us);
  fmt::print("{} nodes; first token {:.0f} us, then {:.1f} us (median of {}), {:.1f} us at best\n", ggml_graph_n_nodes(layer.graph()),
             first, us[us.size() / 2], tokens, us.front());
  return 0;
}

} // namespace

int main(int argc, char** argv) {
  if (argc < 3 || (std::strcmp(argv[1], "picture") != 0 && std::strcmp(argv[1], "time") != 0)) {
    std::fputs("usage: ggml_layer picture FILE.svg    the layer's graph before and after fusion\n"
               "       ggml_layer time TOKENS         the host's time a token, on KILN_DEVICE\n",
               stderr);
    return 2;
  }
  if (std::strcmp(argv[1], "picture") == 0) return draw(argv[2]);
  ggml_backend_reg* const registration = ggml_backend_init();
  if (registration == nullptr) return 1;
  ggml_backend_dev_t const device = registration->iface.get_device(registration, 0);
  const LayerGraph layer(LayerSize{}, ggml_backend_dev_buffer_type(device));
  ggml_backend_t const backend = ggml_backend_dev_init(device, nullptr);
  const int result = measure(layer, backend, std::max(1, std::atoi(argv[2])));
  ggml_backend_free(backend);
  return result;
}
