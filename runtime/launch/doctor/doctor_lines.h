// What the lines of doctor share.
#pragma once
#include "runtime/launch/doctor/doctor.h"

namespace kiln {

std::string first_line(const std::filesystem::path& file);                          // empty when there is none
std::vector<std::filesystem::path> folders_in(const std::filesystem::path& folder); // and files, sorted
std::string variable(const DoctorSources& sources, std::string_view name);          // empty when it is not set

// Driver, device nodes, GPUs, ROCm, HIP, known bugs.
std::vector<DoctorLine> gpu_lines(const DoctorSources& sources);

} // namespace kiln
