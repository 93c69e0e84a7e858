// Register model of skinny GEMM: how many VGPRs a config needs, and how many of them LLVM allocates without spills or copies.
//
// The limits were measured with LLVM 21, the compiler of hipRTC 6.4, on the points of tests/fuzz/gemm_points.cpp. Those points
// fail when a limit is too high: their kernels spill, or copy loaded values to AGPRs and drain the ring, which breaks the promises.
// To fit the model to another LLVM, run 500 of them.
#pragma once
#include "gen/plan/target.h"
#include "templates/gemm_config.h"

namespace kiln {

// 16-byte loads of A that a lane makes in a step.
int gemm_a_loads(const GemmConfig& config);

// Loads of scales and zero points that a lane makes in a turn of the ring, each of less than 16 bytes: at most, on any target, and on one.
int gemm_scale_loads(const GemmConfig& config);
int gemm_scale_loads(const GemmConfig& config, const Target& target);

// VGPRs and AGPRs that the ring and the accumulators of a wave take.
int gemm_vgprs(const GemmConfig& config);

// Waves that share a SIMD, by those and what else a wave needs.
int gemm_waves_per_simd(const GemmConfig& config);

// Whether the ring, the accumulators and what lies between them fit the registers of a wave.
bool fits_registers(const GemmConfig& config);

// The same for the waves of method producers that load B, and that multiply.
bool producers_fit_registers(const GemmConfig& config);

// Whether the kernel is compiled for VGPRs alone: accumulators that are read after every step, and fit, are then not copied
// out of AGPRs.
bool gemm_without_agprs(const GemmConfig& config);

} // namespace kiln
