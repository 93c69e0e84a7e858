// Executed instructions of public kernels, counted once on the CPU model as Kiln's are: what `./dev bench isa` prints beside.
#pragma once
#include <string_view>
#include <vector>

namespace kiln {

struct PublicKernel {
  std::string_view name;
  int gfx942, gfx950; // wave instructions, prologue, reductions and exit included; 0: it has none for the target
};

// Kernels that compute what the catalogue's entry does; results checked. docs/measurements.md has versions, shapes and what was launched.
// Per 512 outputs, which is 8 of each lane, of [16, 16384] f16 in, fp8 out; compiled with clang 22 and Triton 3.6. Empty for other entries.
inline std::vector<PublicKernel> public_kernels(std::string_view entry) {
  if (entry == "add_rmsnorm_quant")
    return {
        {"Hugging Face", 247, 239}, {"vLLM", 234, 237}, {"aiter", 331, 324}, {"Triton, 4 warps", 89, 384}, {"Triton, 16 warps", 128, 427}};
  // Kernels of aiter e404860, vLLM and ggml d99724f2, compiled with clang 21.
  if (entry == "rope_kv_write") return {{"aiter's rope of k, then vLLM's cache", 360, 356}};
  if (entry == "silu_mul_mx_quant") return {{"aiter", 0, 216}};
  if (entry == "silu_mul_mx_quant, MXFP8") return {{"aiter, f32 scales, e4m3fnuz on gfx942", 228, 228}};
  if (entry == "swiglu_quant") return {{"Hugging Face", 319, 319}, {"vLLM", 1233, 1233}, {"aiter", 199, 201}, {"Triton", 191, 477}};
  // One token's wave: 8 of 256 experts from f16 logits.
  if (entry == "topk_softmax") return {{"aiter", 1119, 1119}};
  if (entry == "topk_softmax, sigmoid") return {{"aiter", 604, 604}};
  // The whole launch, f16 activations; ggml's are quantised to 8 bits by a launch before, which is not counted.
  if (entry == "gemm_w_mxfp4, m = 1") return {{"ggml", 2211840, 2220032}};
  if (entry == "gemm_w_mxfp4, m = 8") return {{"ggml", 3600384, 3594240}};
  if (entry == "grouped_gemm") return {{"ggml", 13500416, 13467648}};
  // vLLM a590bc5's product for these tokens, and aiter's choice for each of them.
  if (entry == "router, m = 1") return {{"vLLM's wvSplitK, then aiter", 364191, 324447}};
  if (entry == "router, m = 4") return {{"vLLM's wvSplitK, then aiter", 771132, 683388}};
  if (entry == "router, m = 16") return {{"vLLM's wvSplitKrc, then aiter", 0, 148240}};
  return {};
}

} // namespace kiln
