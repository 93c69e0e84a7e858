// RunReport: what an execution on the CPU found and counted, as text and as JSON.
#pragma once
#include "isa_checks/exec/run/execute.h"
#include <nlohmann/json.hpp>
#include <string>

namespace kiln::cli {

// Findings, then the measurements: executed instructions by class, memory by width, LDS conflicts.
std::string to_text(const exec::ExecResult& result);
nlohmann::ordered_json to_json(const exec::ExecResult& result);

} // namespace kiln::cli
