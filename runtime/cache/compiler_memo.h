// CompilerMemo: the compiler's identity without loading the compiler.
#pragma once
#include "runtime/environment.h"
#include <filesystem>
#include <string>

namespace kiln {

// compiler_identity loads hipRTC and comgr, which takes 30 ms and more: too long for a process that finds all of its kernels
// in a cache. So a cache folder keeps what it was, with the files it was read from; it holds as long as these files and the
// loader's own cache have the same inode, size and times, and the settings that choose the library are the same.
// Kept per host by the name: other machines on a shared folder have notes of their own.
class CompilerMemo {
public:
  explicit CompilerMemo(std::filesystem::path folder) : folder_(std::move(folder)) {} // empty: nothing is kept

  // Throws EnvironmentError without a compiler library.
  std::string identity(const Environment& environment) const;
  // Reads it from the library, whatever was kept: when a compile has shown another identity.
  std::string refresh(const Environment& environment) const;

private:
  std::filesystem::path folder_;
};

} // namespace kiln
