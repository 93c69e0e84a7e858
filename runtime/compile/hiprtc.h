// Hiprtc: the compiler of HIP's runtime compilation library, loaded when it is needed.
#pragma once
#include "runtime/compile/compiler_library.h"
#include "runtime/compile/dynamic_library.h"

namespace kiln {

class Hiprtc {
public:
  // `path`: the file to load; empty: libhiprtc.so.7 or .6 from the loader's search, then from rocm_folders().
  // Throws EnvironmentError.
  explicit Hiprtc(const std::string& path = {});

  // Compiles with no GPU present. hipRTC runs one compile of a process at a time, whatever the thread.
  // A program that does not compile is ok == false; throws EnvironmentError only when the library itself misbehaves.
  CompilerOutput compile(const CompilerInput& input) const;

  // hipRTC loads comgr, where the compiler itself lives, with its first program (30 ms); this makes it do so now.
  void load_compiler() const;

  const std::string& path() const { return library_.path(); }

private:
  DynamicLibrary library_;
};

// A header named "hiprtc_runtime.h" among CompilerInput::headers takes the place of the 1 MB header that hipRTC puts
// before every program. hipRTC 6.4 (LLVM 21): a small kernel 199 ms with the built-in header, 33 ms with this one.
// Its text defines KILN_HIPRTC_HEADER_REPLACED, so that a program can tell which of the two it got.
IncludedHeader replaced_builtin_header();

// Whether this hipRTC takes the replacement. Costs one compile of an empty program.
bool honours_replaced_header(const Hiprtc& hiprtc, const std::string& arch);

} // namespace kiln
