// CompilerMemo: the compiler's identity without loading the compiler.
#pragma once
#include "runtime/environment.h"
#include "runtime/folder.h"
#include <string>

namespace kiln {

// compiler_identity loads hipRTC and comgr, which takes 30 ms and more: too long for a process that finds all of its kernels
// in a cache. So a cache folder keeps what it was, with the files it was read from: every library that makes code. It holds as
// long as these files and the loader's own cache have the same inode, size and times, and the settings that choose the
// libraries are the same. Kept per host by the name: other machines on a shared folder have notes of their own.
class CompilerMemo {
public:
  explicit CompilerMemo(Folder folder) : folder_(std::move(folder)) {} // none: nothing is kept

  // Throws EnvironmentError without a compiler library.
  std::string identity(const Environment& environment) const;
  // Reads it from the library, whatever was kept: when a compile has shown another identity.
  std::string refresh(const Environment& environment) const;

private:
  std::string kept(const std::string& note) const;
  Folder folder_;
};

} // namespace kiln
