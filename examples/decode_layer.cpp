// Decode layer: one layer of a Llama-class model while it decodes, as four fused kernels, executed on the CPU at a reduced size.
//
//   h, q    = add_rmsnorm_quant(x, residual)     twice: before attention and before the MLP
//   qkv     = QKV projection of q
//   act     = quantised SwiGLU of the gate/up projection of q
//   h       = down projection of act + h
//
// Attention and its output projection are left out: random data stands for their result. Each kernel's output is compared with
// the reference on the same inputs, and the end of the chain with a chain of references.
#include "gen/reference/evaluate_bounds.h"
#include "gen/reference/random_spec.h"
#include "gen/spec/math.h"
#include "runtime/build/build_kernel.h"
#include "runtime/launch/emulated/emulate.h"
#include <cmath>
#include <fmt/format.h>

using namespace kiln;

namespace {

constexpr std::int64_t tokens = 4, hidden = 512, qkv_columns = 768, mlp = 1024; // Llama-class models have 8 to 32 times these
const Dim m = dynamic("m", 1, 16);

Expr scale(std::string name) { return input(std::move(name), f32, {}); }

KernelSpec norm(const Target& to) {
  const Expr x = input("x", f16, {m, hidden}), residual = input("residual", f16, {m, hidden});
  const Expr h = cast(f16, x + residual);
  const Expr y = h * rsqrt(row_mean(h * h) + 1e-6) * input("weight", f16, {hidden});
  return KernelSpec("add_rmsnorm_quant").output("h", f16, h).output("q", to.fp8(), y / scale("q_scale"));
}

KernelSpec qkv_projection(const Target& to) {
  const Expr product = matmul_nt(input("q", to.fp8(), {m, hidden}), input("w_qkv", to.fp8(), {qkv_columns, hidden}));
  return KernelSpec("qkv_projection").output("qkv", f16, product * scale("q_scale") * scale("w_scale"));
}

KernelSpec gate_up_projection(const Target& to) { // the gate's rows of the weights first, then those of up
  const Expr both = matmul_nt(input("q", to.fp8(), {m, hidden}), input("w_gate_up", to.fp8(), {2 * mlp, hidden}));
  const Expr factor = scale("q_scale") * scale("w_scale");
  const Expr act = silu(columns(both, 0, mlp) * factor) * (columns(both, mlp, mlp) * factor);
  return KernelSpec("gate_up_projection").output("act", to.fp8(), act / scale("act_scale"));
}

KernelSpec down_projection(const Target& to) {
  const Expr product = matmul_nt(input("act", to.fp8(), {m, mlp}), input("w_down", to.fp8(), {hidden, mlp}));
  const Expr sum = product * scale("act_scale") * scale("w_scale") + input("h", f16, {m, hidden});
  return KernelSpec("down_projection").output("h_out", f16, sum);
}

// The values of a chain by name: those of executed kernels, or of the reference.
using Values = std::map<std::string, Tensor>;

Inputs inputs_of(const KernelSpec& spec, const Values& values) {
  Inputs inputs;
  for (const Expr& e : spec.inputs()) inputs.tensors.emplace(e->name, values.at(e->name));
  return inputs;
}

// Runs both chains, one kernel at a time.
class Layer {
public:
  explicit Layer(const Target& to) : to_(to) {}

  void set(const std::string& name, const Tensor& tensor) {
    executed_.insert_or_assign(name, tensor);
    expected_.insert_or_assign(name, tensor);
  }
  // Gives a value of both chains another name.
  void rename(const std::string& from, const std::string& to) {
    executed_.insert_or_assign(to, executed_.at(from));
    expected_.insert_or_assign(to, expected_.at(from));
  }
  void run(const KernelSpec& spec) {
    const BuiltKernel kernel = build_kernel(spec, to_);
    const Inputs inputs = inputs_of(spec, executed_);
    const EmulatedRun run = emulate(spec, kernel.source, kernel.object, inputs);
    for (const exec::Defect& finding : run.result.defects) fmt::print("{}\n", exec::to_text(finding));
    const auto wrong = find_mismatch(run.outputs, evaluate_bounds(spec, inputs, bounds_options(kernel.schedule)));
    fmt::print("  {:<20} {:>7} wave instructions; {}\n", spec.name(), run.result.waves.executed(),
               wrong ? to_text(*wrong) : "all values within their bounds");
    good_ = good_ && run.result.completed && run.result.defects.empty() && !wrong;
    for (const auto& [name, tensor] : evaluate(spec, inputs_of(spec, expected_))) expected_.insert_or_assign(name, tensor);
    for (const auto& [name, tensor] : run.outputs) executed_.insert_or_assign(name, tensor);
  }
  // Compares the root mean square of the chains' difference with that of the values. An fp8 number that rounds the other way
  // is 1/16 off; many of them average out.
  bool close(const std::string& name, double most) {
    double difference = 0, size = 0;
    for (std::int64_t i = 0; i < executed_.at(name).size(); ++i) {
      const double expected = expected_.at(name).at(i);
      difference += std::pow(executed_.at(name).at(i) - expected, 2);
      size += expected * expected;
    }
    const double relative = std::sqrt(difference / size);
    fmt::print("  {:<20} the chains differ by {:.2e} of its size\n", name, relative);
    return good_ && relative <= most;
  }

private:
  const Target& to_;
  Values executed_, expected_;
  bool good_ = true;
};

Tensor number(float value) {
  Tensor tensor(f32, {});
  tensor.set(0, value);
  return tensor;
}

bool run_layer(const Target& to) {
  fmt::print("{}: {} tokens, hidden {}, qkv {}, mlp {}\n", to.arch(), tokens, hidden, qkv_columns, mlp);
  Layer layer(to);
  std::uint64_t seed = 0;
  for (const KernelSpec& spec : {norm(to), qkv_projection(to), gate_up_projection(to), down_projection(to)})
    for (const auto& [name, tensor] : random_inputs(spec, ++seed, {.dynamic_size = tokens}).tensors) layer.set(name, tensor);
  layer.set("q_scale", number(0.02F));
  layer.set("w_scale", number(0.03F));
  layer.set("act_scale", number(0.05F));

  layer.run(norm(to));
  layer.run(qkv_projection(to));
  layer.set("x", random_inputs(norm(to), 99, {.dynamic_size = tokens}).tensors.at("x")); // attention and its projection
  layer.rename("h", "residual");
  layer.run(norm(to));
  layer.run(gate_up_projection(to));
  layer.run(down_projection(to));
  return layer.close("qkv", 0.01) && layer.close("h_out", 0.01);
}

} // namespace

int main() { return run_layer(target("gfx942")) && run_layer(target("gfx950")) ? 0 : 1; }
