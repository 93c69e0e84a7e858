// calibrate: the constants of the timing model that micro-benchmarks can tell, on the device that is there.
#pragma once
#include "isa_checks/timing/chips.h"
#include "runtime/compile/compile.h"
#include "runtime/launch/device.h"
#include <optional>
#include <string>
#include <vector>

namespace kiln {

struct CalibratedConstant {
  std::string name; // of a field of Chip
  double table = 0;
  std::optional<double> measured; // in the field's unit; nothing on the CPU model, which counts no clocks
};

// All CUs read from HBM with so many bytes in flight each.
struct RatePoint {
  double bytes_in_flight = 0;
  std::optional<double> tbs; // 1e12 bytes per second
};

struct Calibration {
  std::string chip, arch, device;
  std::vector<CalibratedConstant> constants;
  std::vector<RatePoint> rates;
};

// Compiles templates/calibrate_instructions.h and runs each kernel of it: about a minute and 3 GiB on a GPU. On an emulated device every
// kernel runs with a small size, so that all that is here is executed; what the kernels compute is checked on both. Throws
// EnvironmentError: HIP refuses, or a kernel did not compute what it should, which makes its time worth nothing.
Calibration calibrate(const Device& device, const timing::Chip& chip, const CompileOptions& options);

std::string to_json(const Calibration& calibration); // as timing::read_chip reads it

} // namespace kiln
