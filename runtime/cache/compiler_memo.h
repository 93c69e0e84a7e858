// CompilerMemo: the compiler's identity without loading the compiler.
#pragma once
#include "runtime/compile/compile.h"
#include "runtime/folder.h"
#include <functional>
#include <string>

namespace kiln {

// compiler_identity loads hipRTC and comgr, which takes 30 ms and more: too long for a process that finds all of its kernels
// in a cache. So a cache folder keeps what it was, with the files it was read from: every library that makes code. It holds as
// long as these files and the loader's own cache have the same inode, size and times, and the settings that choose the
// libraries are the same. Kept per host by the name: other machines on a shared folder have notes of their own.
class CompilerMemo {
public:
  using Read = std::function<CompilerParts(const Environment&)>;
  // Without a folder nothing is kept. `read`: asks the library.
  explicit CompilerMemo(Folder folder, Read read = compiler_parts) : folder_(std::move(folder)), read_(std::move(read)) {}

  // Throws EnvironmentError without a compiler library.
  std::string identity(const Environment& environment) const;
  // Reads it from the library, whatever was kept: when a compile has shown another identity.
  std::string refresh(const Environment& environment) const;

private:
  std::string kept(const std::string& note) const;
  Folder folder_;
  Read read_;
};

} // namespace kiln
