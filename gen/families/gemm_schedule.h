// Schedules of Family::skinny_gemm; called by gen/families/schedule.cpp.
#pragma once
#include "gen/families/schedule.h"

namespace kiln {

std::vector<Schedule> gemm_candidates(const Plan& plan, const Target& target);
void require_valid_gemm(const SkinnyGemmConfig& config, const Plan& plan, const Target& target);
std::string gemm_fields_text(const SkinnyGemmConfig& config);

// The config with another method, and what that asks of other fields: tile, ring, workgroups and so on, as the chosen schedule
// has them for method matrix. It may be invalid for the plan (rows over the method's limit): require_valid_gemm says why.
SkinnyGemmConfig with_method(SkinnyGemmConfig config, GemmMethod method, const Target& target);

// The share of the target's CUs that are busy all the time if every step takes as long as another: steps over CUs times the
// steps of the CU that has most. Workgroups are dealt out evenly.
double gemm_balance(const SkinnyGemmConfig& config, const Target& target);

// 16-byte loads of A that a lane makes in a step.
int gemm_a_loads(const SkinnyGemmConfig& config);

// Loads of scales and zero points that a lane makes in a turn of the ring, each of less than 16 bytes.
int gemm_scale_loads(const SkinnyGemmConfig& config);

// Whether the kernel is compiled for VGPRs alone: where sums are read after every step, and fit.
bool gemm_without_agprs(const SkinnyGemmConfig& config);

} // namespace kiln
