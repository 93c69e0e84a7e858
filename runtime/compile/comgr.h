// Comgr: AMD's code object manager, the library below hipRTC, used directly as the second compiler.
#pragma once
#include "runtime/compile/compiler_library.h"
#include "runtime/compile/dynamic_library.h"

namespace kiln {

class Comgr {
public:
  // `path`: the file to load; empty: libamd_comgr.so.3 or .2 from the loader's search, then from rocm_folders().
  // Throws EnvironmentError.
  explicit Comgr(const std::string& path = {});

  // Source to bitcode (the front end), bitcode to object (optimiser and code generator), object to executable (the
  // linker): three stages, timed one by one. No device library is linked, so a source must not need any.
  // Throws EnvironmentError only when the library itself misbehaves.
  CompilerOutput compile(const CompilerInput& input) const;

  const std::string& path() const { return library_.path(); }

private:
  DynamicLibrary library_;
};

} // namespace kiln
