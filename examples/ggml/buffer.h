// Buffers of ggml in a device's memory.
#pragma once
#include "examples/ggml/engine.h"

namespace kiln_ggml {

ggml_backend_buffer_type_i buffer_type_interface(); // its context is an Engine

} // namespace kiln_ggml
