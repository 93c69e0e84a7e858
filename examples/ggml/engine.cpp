// Engine: the cache of compiled graphs.
#include "examples/ggml/engine.h"
#include "examples/ggml/operations/operations.h"
#include <algorithm>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <fmt/format.h>
#include <stdexcept>
#include <string_view>

namespace kiln_ggml {
namespace {

constexpr std::size_t max_graphs = 64; // an engine has a few: prompts of several sizes, a token, with and without logits

// Two sums that mix 64 bits at a time: what they miss is one graph in 2^128.
struct Mixer {
  std::uint64_t first = 0x9e3779b97f4a7c15, second = 0xc2b2ae3d27d4eb4f;
  void add(std::uint64_t x) {
    first = (first ^ x) * 0xff51afd7ed558ccd;
    first ^= first >> 32;
    second = (second + x) * 0xc4ceb9fe1a85ec53;
    second ^= second >> 29;
  }
  void add(const ggml_tensor& t) {
    add(static_cast<std::uint64_t>(t.type));
    for (std::size_t d = 0; d < 4; ++d) add(static_cast<std::uint64_t>(t.ne[d])), add(t.nb[d]);
    add(reinterpret_cast<std::uintptr_t>(t.data));
  }
};

} // namespace

Settings settings_of_process() {
  Settings settings;
  const auto value = [](const char* name) { return std::string_view(std::getenv(name) ? std::getenv(name) : ""); };
  settings.explain = value("KILN_GGML_EXPLAIN") == "1";
  settings.fuse = value("KILN_GGML_FUSE") != "0";
  if (const auto memory = value("KILN_GGML_MEMORY_MB"); !memory.empty()) {
    std::uint32_t mib = 0;
    const char* const end = memory.data() + memory.size();
    if (const auto [stop, error] = std::from_chars(memory.data(), end, mib); stop != end || error != std::errc())
      throw kiln::UserError("KILN_GGML_MEMORY_MB", fmt::format("\"{}\" is not a number of MiB", memory),
                            "give one from 0 to 4294967295, or unset it for 65536");
    settings.memory = std::uint64_t{mib} << 20;
  }
  return settings;
}

Engine::Engine(kiln::Device device) : device_(std::move(device)), jit_(device_), settings_(settings_of_process()) {}

Engine::Key Engine::key_of(const std::vector<const ggml_tensor*>& nodes, const std::vector<int>& uses) {
  Mixer mixer;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    const ggml_tensor& node = *nodes[i];
    mixer.add(static_cast<std::uint64_t>(node.op) | (uses.empty() ? 0 : static_cast<std::uint64_t>(uses[i]) << 32));
    mixer.add(static_cast<std::uint64_t>(node.flags));
    mixer.add(node);
    for (const std::int32_t parameter : node.op_params) mixer.add(static_cast<std::uint32_t>(parameter));
    for (int s = 0; s < GGML_MAX_SRC && node.src[s] != nullptr; ++s) mixer.add(*node.src[s]);
  }
  return {mixer.first, mixer.second};
}

const CompiledGraph& Engine::find(const ggml_cgraph& graph) {
  auto* const g = const_cast<ggml_cgraph*>(&graph); // ggml's accessors take no const one
  const std::vector<const ggml_tensor*> nodes(ggml_graph_nodes(g), ggml_graph_nodes(g) + ggml_graph_n_nodes(g));
  const std::vector<int> uses = settings_.fuse ? use_counts(graph) : std::vector<int>{};
  const Key key = key_of(nodes, uses);
  if (const auto found = graphs_.find(key); found != graphs_.end()) {
    recent_.splice(recent_.begin(), recent_, found->second);
    return found->second->second;
  }
  for (const ggml_tensor* node : nodes) // of a program that did not ask supports_op, or did not heed it
    if (!supports(*node))
      throw std::invalid_argument(
          fmt::format("node {}: {} with these types and shapes is none that supports_op takes", node->name, ggml_op_desc(node)));
  GraphPlan plan = compile_graph(jit_, device_, nodes, uses);
  if (settings_.explain)
    std::fputs(fmt::format("kiln: a graph of {} nodes: {} regions, {} launches\n{}", nodes.size(), plan.regions.size(),
                           plan.compiled.launches.size(), explain(plan))
                   .c_str(),
               stderr);
  recent_.emplace_front(key, std::move(plan.compiled));
  graphs_[key] = recent_.begin();
  if (recent_.size() > max_graphs) {
    device_.synchronize();
    graphs_.erase(recent_.back().first);
    recent_.pop_back();
  }
  return recent_.front().second;
}

void Engine::compute(const ggml_cgraph& graph) {
  const std::lock_guard lock(mutex_);
  for (const kiln::BoundKernel& launch : find(graph).launches) launch.launch();
}

bool Engine::take(std::size_t bytes) {
  const std::lock_guard lock(mutex_);
  if (device_.is_emulated() && bytes > settings_.memory - taken_) return false;
  taken_ += bytes;
  return true;
}

void Engine::give_back(std::size_t bytes) {
  const std::lock_guard lock(mutex_);
  taken_ -= bytes;
}

std::size_t Engine::memory_free() const {
  const std::lock_guard lock(mutex_);
  return settings_.memory - std::min<std::size_t>(taken_, settings_.memory);
}

} // namespace kiln_ggml
