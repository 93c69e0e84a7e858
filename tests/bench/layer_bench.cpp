// Predicted times of the kernels that a decode layer of Llama-3-70B launches on one of 8 GPUs, each and in all, beside the chain without
// fused products and without rows of several workgroups. Everything is predicted; attention and the exchange between GPUs are left out.
#include "isa_checks/timing/predict.h"
#include "runtime/aot/manifest.h"
#include "runtime/build/build_kernel.h"
#include "runtime/launch/record.h"
#include "tests/bench/arguments.h"
#include <fmt/format.h>
#include <map>

using namespace kiln;

namespace {

struct Launch {
  const char* what;
  const char* line;     // of a manifest, with {m} for the tokens
  bool weights = false; // read from HBM; else the data come from the launch before, out of the Infinity Cache
};

constexpr const char* norm = R"({{"spec_file": "add_rmsnorm_quant.kiln", "m": {m}, "cols": 8192, "epsilon": "1e-05", "fp8": "fp8"}})";
constexpr const char* one_workgroup_norm = // of any number of rows
    R"({{"catalog": "add_rmsnorm_quant", "cols": 8192, "dtype": "bf16", "in_place": true}})";
constexpr Launch attention[] = {
    {"queries, keys, values", R"({{"spec_file": "projection.kiln", "m": {m}, "n": 1280, "k": 8192, "fp8": "fp8"}})", true},
    {"quantisation", R"({{"spec_file": "quant.kiln", "cols": 1024, "fp8": "fp8"}})"},
    {"output projection", R"({{"spec_file": "projection.kiln", "m": {m}, "n": 8192, "k": 1024, "fp8": "fp8"}})", true}};
constexpr Launch fused_mlp[] = {
    {"gate, up, SwiGLU, quantisation", R"({{"catalog": "gemm_swiglu_quant", "m": {m}, "n": 3584, "k": 8192, "dtype": "fp8"}})", true}};
constexpr Launch separate_mlp[] = {
    {"gate, up", R"({{"spec_file": "projection.kiln", "m": {m}, "n": 7168, "k": 8192, "fp8": "fp8"}})", true},
    {"SwiGLU, quantisation", R"({{"catalog": "swiglu_quant", "cols": 3584, "dtype": "bf16"}})"}};
constexpr Launch down = {"down projection", R"({{"spec_file": "projection.kiln", "m": {m}, "n": 8192, "k": 3584, "fp8": "fp8"}})", true};

// Without a kernel for norms: the products of the residual stream leave sums of its squares, and the next ones norm it.
constexpr Launch folded_layer[] = {
    {"norm, queries, keys, values",
     R"({{"spec_file": "norm_projection.kiln", "m": {m}, "n": 1280, "k": 8192, "parts": 256, "epsilon": "1e-05", "fp8": "fp8"}})", true},
    attention[1],
    {"output projection, residual",
     R"({{"spec_file": "projection_residual.kiln", "m": {m}, "n": 8192, "k": 1024, "parts": 256, "fp8": "fp8"}})", true},
    {"norm, gate, up, SwiGLU, quantisation",
     R"({{"spec_file": "norm_swiglu_quant.kiln", "m": {m}, "n": 3584, "both": 7168, "k": 8192, "parts": 256, "epsilon": "1e-05", "fp8": "fp8"}})",
     true},
    {"down projection, residual",
     R"({{"spec_file": "projection_residual.kiln", "m": {m}, "n": 8192, "k": 3584, "parts": 256, "fp8": "fp8"}})", true}};

enum class Chain { separate, fused, folded };

std::vector<Launch> layer(Chain chain) {
  if (chain == Chain::folded) return {std::begin(folded_layer), std::end(folded_layer)};
  const bool is_fused = chain == Chain::fused;
  std::vector<Launch> all{{"residual, norm, quantisation", is_fused ? norm : one_workgroup_norm}};
  all.insert(all.end(), std::begin(attention), std::end(attention));
  all.push_back(all.front());
  if (is_fused) all.insert(all.end(), std::begin(fused_mlp), std::end(fused_mlp));
  else all.insert(all.end(), std::begin(separate_mlp), std::end(separate_mlp));
  all.push_back(down);
  return all;
}

timing::Prediction predicted(const Launch& launch, int m, const timing::Chip& chip) {
  const CompileOptions options = own_process_options(process_environment());
  const AotKernel kernel = parse_manifest(fmt::format(fmt::runtime(launch.line), fmt::arg("m", m)), launch.what,
                                          KILN_SOURCE_DIR "/examples/manifests", {std::string(chip.arch)}, options)
                               .front();
  const KernelSpec spec = parse_spec(kernel.request.spec);
  const BuiltKernel built = build_kernel(spec, target_of(kernel.request), options, kernel.request.overrides);
  std::map<std::string, std::int64_t> sizes;
  for (const Dim& dim : spec.dynamic_dims()) sizes[dim.name()] = m;
  return timing::predict(record_kernel(spec, built.source, built.object, sizes), chip,
                         {.cache = launch.weights ? timing::CacheState::cold : timing::CacheState::mall, .changes = false});
}

void print_layer(const timing::Chip& chip, int m) {
  constexpr const char* names[] = {"separate kernels, a workgroup a row", "fused, rows of several workgroups",
                                   "fused, norms folded into products"};
  double sums[3] = {};
  std::map<std::string, timing::Prediction> known; // by line
  for (const Chain chain : {Chain::separate, Chain::fused, Chain::folded}) {
    double& sum = sums[static_cast<int>(chain)];
    fmt::print("{}, m = {}, {}\n", chip.name, m, names[static_cast<int>(chain)]);
    double megabytes = 0;
    for (const Launch& launch : layer(chain)) {
      if (!known.contains(launch.line)) known.emplace(launch.line, predicted(launch, m, chip));
      const timing::Prediction& p = known.at(launch.line);
      fmt::print("  {:<38}{:>8.2f} us {:>8.2f} MB {:>5} workgroups\n", launch.what, p.microseconds, p.bytes / 1e6, p.workgroups);
      std::fflush(stdout);
      sum += p.microseconds;
      megabytes += p.bytes / 1e6;
    }
    fmt::print("  {:<38}{:>8.2f} us {:>8.2f} MB\n", "in all, predicted", sum, megabytes);
  }
  fmt::print("  fused {:.2f} of the separate chain, with folded norms {:.2f}\n\n", sums[1] / sums[0], sums[2] / sums[0]);
}

} // namespace

int main(int argc, char** argv) {
  try {
    if (take_short_form(argc, argv)) return print_layer(timing::chip("mi300x"), 1), 0;
    for (const char* name : {"mi300x", "mi355x"})
      for (const int m : {1, 8, 32}) print_layer(timing::chip(name), m);
    return 0;
  } catch (const std::exception& error) {
    fmt::print(stderr, "error: {}\n", error.what());
    return 1;
  }
}
