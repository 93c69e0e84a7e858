// comgr's own cache of code objects, which knows no owner and no signature: where it would lie, and whether that may be used.
#pragma once
#include "runtime/environment.h"
#include <string>

namespace kiln {

// Switches it off, for workers and Kiln's own programs.
inline constexpr const char *comgr_cache_variable = "AMD_COMGR_CACHE", *comgr_cache_off = "0";

// Why a compile must not use it, as the variables choose it: it would lie in the folder that is current just now, or where others may
// write. Empty: it is off, or in a folder of this user alone. (ROCm 6.3 and newer have it on unless AMD_COMGR_CACHE is 0. It lies in
// AMD_COMGR_CACHE_DIR, else in comgr/ of LLVM's cache_directory: XDG_CACHE_HOME, also where that is set but empty, else .cache in HOME.)
std::string comgr_cache_problem(const VariableLookup& lookup);

// Throws EnvironmentError with comgr_cache_problem of this process.
void require_safe_comgr_cache();

} // namespace kiln
