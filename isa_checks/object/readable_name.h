// readable_name: a kernel's name as a person would write it.
#pragma once
#include <string>

namespace kiln::isa {

// "_Z3addPfS_" -> "add(float*, float*)"; a name that is not mangled stays.
std::string readable_name(const std::string& kernel);

} // namespace kiln::isa
