// Loaded libraries: which shared libraries of this process a compiler consists of, and the exact build of each.
#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace kiln {

struct LoadedLibrary {
  std::string name;  // of the file, as it was asked for: "libLLVM.so.21.1"
  std::string path;  // of the file, links resolved
  std::string build; // the GNU build id in hexadecimal, or the SHA-256 of the file where it has none
};

// The loaded libraries whose file names start with one of `roots`, and every loaded library that one of them needs (DT_NEEDED),
// and so on, but for those that make no code: the C and C++ libraries, compression, terminals, drivers. By name, each once.
// A library that nobody thought of counts as one that makes code.
std::vector<LoadedLibrary> loaded_closure(const std::vector<std::string>& roots);

// The file of a loaded library whose file name starts with `name`, links resolved; empty when there is none.
std::string path_of_loaded(std::string_view name);

// Whether one of the files holds the text. One that cannot be read holds nothing.
bool any_holds(const std::vector<std::string>& files, std::string_view text);

} // namespace kiln
