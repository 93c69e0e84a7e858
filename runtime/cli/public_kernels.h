// Executed instructions of public kernels, counted once on the CPU model as Kiln's are: what `kiln demo` and `./dev bench isa` print
// beside.
#pragma once
#include <string_view>
#include <vector>

namespace kiln::cli {

struct PublicKernel {
  std::string_view name;
  int gfx942, gfx950; // wave instructions per 512 outputs, which is 8 of each lane; prologue, reductions and exit included; 0: it has none
};

// Kernels that compute what the catalogue's entry does, for [16, 16384] f16 in, fp8 out. Compiled with clang 22 and Triton 3.6; results
// checked. docs/measurements.md says more. Empty for other entries.
inline std::vector<PublicKernel> public_kernels(std::string_view entry) {
  if (entry == "add_rmsnorm_quant")
    return {
        {"Hugging Face", 247, 239}, {"vLLM", 234, 237}, {"aiter", 331, 324}, {"Triton, 4 warps", 89, 384}, {"Triton, 16 warps", 128, 427}};
  // Kernels of aiter e404860 and vLLM, compiled with clang 21: docs/measurements.md has the kernels, their shapes and what was launched.
  if (entry == "rope_kv_write") return {{"aiter's rope of k, then vLLM's cache", 360, 356}};
  if (entry == "silu_mul_mx_quant") return {{"aiter", 0, 216}};
  if (entry == "silu_mul_mx_quant, MXFP8") return {{"aiter, f32 scales, e4m3fnuz on gfx942", 228, 228}};
  if (entry == "swiglu_quant") return {{"Hugging Face", 319, 319}, {"vLLM", 1233, 1233}, {"aiter", 199, 201}, {"Triton", 191, 477}};
  return {};
}

} // namespace kiln::cli
