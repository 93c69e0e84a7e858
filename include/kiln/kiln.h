// Everything that a program which embeds Kiln needs: specs, the Jit, devices, launches. docs/embedding.md tells it in order.
#pragma once
#include "gen/catalog/catalog.h" // ready specs: norms, activations, quantisation
#include "gen/math.h"            // the language of specs
#include "gen/spec.h"
#include "gen/target.h"
#include "runtime/jit/jit.h"          // specs to kernels, through caches
#include "runtime/launch/benchmark.h" // kernels to microseconds
#include "runtime/launch/device.h"    // kernels to launches
