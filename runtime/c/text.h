// copy_text: a text that the caller of the C ABI owns.
#pragma once
#include <string>

namespace kiln::c {

char* copy_text(const std::string& text); // for kiln_text_free; throws std::bad_alloc

} // namespace kiln::c
