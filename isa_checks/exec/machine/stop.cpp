// Stop, compiled once.
#include "isa_checks/exec/machine/stop.h"

namespace kiln::exec {

Stop::Stop(const char* met) : std::runtime_error(met) {}
Stop::Stop(const std::string& met) : std::runtime_error(met) {}
Stop::~Stop() = default;

} // namespace kiln::exec
