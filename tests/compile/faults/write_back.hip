// fault: a write-back of cache lines gets no wait
// reported: llvm/llvm-project#178316
// arch: gfx942
// shown by: CMP003 error
extern "C" __attribute__((global)) void fault(unsigned* flag) {
  __builtin_amdgcn_fence(__ATOMIC_RELEASE, "agent");
  __hip_atomic_store(flag, 1U, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);
}
