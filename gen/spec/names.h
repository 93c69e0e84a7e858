// Names: what an input, output, scalar, dimension or kernel may be called.
#pragma once
#include <set>
#include <span>
#include <string>
#include <string_view>

namespace kiln {

// A C identifier of at most 64 characters that does not begin with an underscore or contain two in a row, and is no
// word of the spec text or of C++. Throws UserError with subject "<what> '<name>'".
void require_name(std::string_view what, std::string_view name);
bool is_reserved_word(std::string_view name);
// Whether it is a word of one family's kernels. Defined with the registry (gen/families/make_plan.cpp).
bool is_word_of_a_family(std::string_view name);

// `name`, with "kiln_" before it as often as needed to differ from all that are taken.
std::string unused_name(std::string name, const std::set<std::string>& taken);

// The remedy for an unknown name: "did you mean 'x'?", the candidate with the fewest edits, at most a third of its letters, else one
// that begins with the name; without such a one "use one of ...".
std::string did_you_mean(std::string_view name, std::span<const std::string_view> candidates);

} // namespace kiln
