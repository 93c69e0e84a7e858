// Models: a layer of each class, its launches executed and compared.
#pragma once
#include <kiln/gen/plan/target.h>

// Whether every value was within its bounds and the chains stay close.
bool run_llama_class(const kiln::Target& to);
bool run_folded_llama_class(const kiln::Target& to); // without a kernel for its norms
bool run_gpt_oss_class(const kiln::Target& to);
bool run_deepseek_class(const kiln::Target& to);
bool run_hybrid_class(const kiln::Target& to); // three recurrent layers, and one of attention

class Layer;
void run_attention_layer(Layer& layer); // the dense one of grouped queries, from x to x_out
