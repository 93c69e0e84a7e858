// Fitting: fields of a skinny GEMM's config that follow from others, as far as registers, vmcnt and LDS allow.
#pragma once
#include "gen/plan/target.h"
#include "templates/skinny_gemm_config.h"

namespace kiln {

// What is still in flight after a wait for the oldest step that hides the latency of HBM, with one workgroup a CU.
inline constexpr int kib_enough_behind_a_wait = 48;

// The ring that keeps enough in flight and gives the waves the same work; of those the smallest.
SkinnyGemmConfig with_ring(SkinnyGemmConfig config);

// The widest vector of the epilogue that divides n and gives every lane some of a tile.
SkinnyGemmConfig with_vec(SkinnyGemmConfig config);

// As many workgroups as CUs, but each with a step for every wave at least.
SkinnyGemmConfig with_workgroups(SkinnyGemmConfig config, const Target& target);

} // namespace kiln
