// Decode layer: whole layers of four models, one of them in two ways, while they decode, each launch a fused kernel, executed on the CPU
// at a reduced size.
//
//   Llama-3 class, dense                          gpt-oss class, a mixture of experts
//   y        = rmsnorm(x)                         the same
//   qkv      = y x w_qkv                          the same, with a bias
//   q        = rope(q)                            the same
//   cache   <- rope(k), v                         the same
//   o        = attention(q, cache)                over a window, with a sink a head
//   h        = o x w_o + x                        the same, with a bias
//   y        = rmsnorm(h)                         the same
//   act      = swiglu(y x w_gate_up)              experts = router(y), sorted; act = swiglu(y x their MXFP4 weights)
//   x        = act x w_down + h                   x = weighted sum of act x their w_down, + h
//
// The Llama-3 class again with its norms folded into the products around them: h = o x w_o + x leaves sums of squares, and the product
// behind it norms, weighs and quantises h while it loads it.
// DeepSeek class, latent attention and experts in fp8: examples/decode_layer/latent.cpp lists its launches.
// Qwen3-Next class, three recurrent layers and one of attention: examples/decode_layer/hybrid.cpp lists its launches.
// Each kernel's output is compared with its bounds on the same inputs, and the end of the chain with a chain of references.
#include "examples/decode_layer/models.h"
#include <cstdio>
#include <exception>

int main() try {
  bool good = true;
  for (const char* arch : {"gfx942", "gfx950"})
    for (const auto run : {run_llama_class, run_folded_llama_class, run_gpt_oss_class, run_deepseek_class, run_hybrid_class})
      good = run(kiln::target(arch)) && good;
  return good ? 0 : 1;
} catch (const std::exception& error) { // errors say the subject, the fact and the remedy
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
