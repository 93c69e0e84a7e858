// A stand-in for hipRTC that compiles nothing and needs the stand-in for libLLVM: enough to be identified.
#include <cstddef>

extern "C" {
int kiln_stub_llvm();

int hiprtcCreateProgram(void** program, const char*, const char*, int, const char**, const char**) {
  static int any = kiln_stub_llvm();
  *program = &any;
  return 0;
}
int hiprtcDestroyProgram(void**) { return 0; }
int hiprtcCompileProgram(void*, int, const char**) { return 6; } // HIPRTC_ERROR_COMPILATION
int hiprtcGetProgramLogSize(void*, std::size_t* size) {
  *size = 0;
  return 0;
}
const char* hiprtcGetErrorString(int) { return "stub"; }
}
