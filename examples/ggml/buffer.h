// Buffers of ggml in a device's memory.
#pragma once
#include "examples/ggml/engine.h"

namespace kiln_ggml {

ggml_backend_buffer_type_i buffer_type_interface(); // its context is an Engine

// Starts to copy a tensor to one of the same layout; false, and nothing is done, unless both lie in buffers of one Engine.
bool start_copy(const kiln::Device& device, const ggml_tensor& from, ggml_tensor& to);

} // namespace kiln_ggml
