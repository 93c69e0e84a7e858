// Engine: Kiln on one device as ggml's backend sees it: the device, its Jit, and the graphs that were compiled.
#pragma once
#include "examples/ggml/compile_graph.h"
#include "examples/ggml/ggml_backend_abi.h"
#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <unordered_map>

namespace kiln_ggml {

// What a program asked for, by its environment: see docs/ggml.md.
struct Settings {
  bool explain = false;               // KILN_GGML_EXPLAIN=1: regions of each graph to stderr
  bool fuse = true;                   // KILN_GGML_FUSE=0: a kernel a node
  std::uint64_t memory = 64ull << 30; // KILN_GGML_MEMORY_MB: what an emulated device has
};
Settings settings_of_process();

class Engine {
public:
  explicit Engine(kiln::Device device);
  const kiln::Device& device() const { return device_; }
  const Settings& settings() const { return settings_; }

  // Runs the graph: from the second time on lookups and launches only.
  void compute(const ggml_cgraph& graph);

  // Accounts for memory of buffers; false when the device has no more.
  bool take(std::size_t bytes);
  void give_back(std::size_t bytes);
  std::size_t memory_free() const;

private:
  struct Key {
    std::uint64_t first = 0, second = 0;
    bool operator==(const Key&) const = default;
  };
  struct KeyHash {
    std::size_t operator()(const Key& key) const { return static_cast<std::size_t>(key.first); }
  };
  static Key key_of(const std::vector<const ggml_tensor*>& nodes, const std::vector<int>& uses);
  const CompiledGraph& find(const ggml_cgraph& graph);

  kiln::Device device_;
  kiln::Jit jit_;
  Settings settings_;
  mutable std::mutex mutex_;
  std::size_t taken_ = 0;
  std::list<std::pair<Key, CompiledGraph>> recent_; // the latest first
  std::unordered_map<Key, std::list<std::pair<Key, CompiledGraph>>::iterator, KeyHash> graphs_;
};

// How often each node is used by the graph that `graph` is a part of; empty if libggml's layout is another one.
std::vector<int> use_counts(const ggml_cgraph& graph);

} // namespace kiln_ggml

// What libggml calls (registration.cpp). Null says that there is no such backend here; the reason goes to stderr.
extern "C" __attribute__((visibility("default"))) ggml_backend_reg_t ggml_backend_init();
