// predict_kernel: the time that a compiled kernel is predicted to take at given sizes. Needs no GPU and no data.
#pragma once
#include "isa_checks/timing/predict.h"
#include "runtime/launch/record.h"

namespace kiln {

// As record_kernel and timing::predict do. A launch of fewer than 16 rows takes no longer than those with 2, 4, 8 and 16 in place of fewer
// whose waves do the same and more: they are executed too, but not to compare schedules (PredictOptions::one_xcd). A launch that is too
// long to record, or too large for this machine's memory, is extrapolated from two smaller ones, with experts from one, if its run-time
// sizes allow such; the prediction says so. Throws as they do.
timing::Prediction predict_kernel(const KernelSpec& spec, const KernelSource& source, const CodeObject& object,
                                  const std::map<std::string, std::int64_t>& sizes, const timing::Chip& chip,
                                  const timing::PredictOptions& options);

} // namespace kiln
