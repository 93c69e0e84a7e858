// predict_kernel: the time that a compiled kernel is predicted to take at given sizes. Needs no GPU and no data.
#pragma once
#include "isa_checks/timing/predict.h"
#include "runtime/launch/record.h"

namespace kiln {

// As record_kernel and timing::predict do. A launch takes no longer than those with more rows that do what it does and more, and no less
// than those with fewer of which the same is true of it: as many of these, of up to 128 rows, are executed too as it takes for all to be in
// order (docs/timing.md), but not for attention, nor to compare schedules (PredictOptions::alone, one_xcd). A launch that is too long to
// record, or too large for this machine's memory, is extrapolated from two smaller ones, with experts from one, if its run-time sizes allow
// such; the prediction says so, and no other number of rows bounds it. Throws as they do.
timing::Prediction predict_kernel(const KernelSpec& spec, const KernelSource& source, const CodeObject& object,
                                  const std::map<std::string, std::int64_t>& sizes, const timing::Chip& chip,
                                  const timing::PredictOptions& options);

} // namespace kiln
