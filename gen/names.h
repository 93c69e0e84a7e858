// Names: what an input, output, scalar, dimension or kernel may be called.
#pragma once
#include <string_view>

namespace kiln {

// A C identifier of at most 64 characters that does not begin with an underscore or contain two in a row, and is no word of
// the spec text, of C++ or of HIP that the emitted kernel could trip over. Throws UserError with subject "<what> '<name>'".
void require_name(std::string_view what, std::string_view name);
bool is_reserved_word(std::string_view name);

} // namespace kiln
