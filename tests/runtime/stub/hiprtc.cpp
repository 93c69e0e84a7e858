// A stand-in for hipRTC that compiles nothing, and says so in two lines. It needs the stand-in for libLLVM: enough to be identified.
#include <cstddef>
#include <cstring>

static constexpr char program_log[] = "stub.hip:1:2: error: no compiler\n    1 | here";

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
  *size = sizeof program_log;
  return 0;
}
int hiprtcGetProgramLog(void*, char* to) {
  std::memcpy(to, program_log, sizeof program_log);
  return 0;
}
const char* hiprtcGetErrorString(int) { return "stub"; }
}
