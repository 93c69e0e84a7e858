// A stand-in for a shared libLLVM that a compiler library needs. Built twice, with two build ids.
extern "C" int kiln_stub_llvm() { return 1; }
