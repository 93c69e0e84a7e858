// Counts of values modulo `bins` in LDS, added to memory: LDS and device atomics, an integer remainder, divergent loops, and
// 64-bit and double arithmetic on the side.
__attribute__((shared)) unsigned counts[256];

extern "C" __attribute__((global)) __attribute__((amdgpu_flat_work_group_size(192, 192))) void histogram(const unsigned* x, unsigned n,
                                                                                                        unsigned bins, unsigned* out,
                                                                                                        double* mean) {
  const unsigned thread = __builtin_amdgcn_workitem_id_x(), group = __builtin_amdgcn_workgroup_id_x();
  for (unsigned b = thread; b < bins; b += 192) counts[b] = 0;
  __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup");
  __builtin_amdgcn_s_barrier();
  __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup");
  unsigned long sum = 0;
  for (unsigned i = group * 192 + thread; i < n; i += 192 * 4) {
    const unsigned v = x[i];
    __hip_atomic_fetch_add(&counts[v % bins], 1U, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_WORKGROUP);
    sum += (unsigned long)v * v;
  }
  mean[group * 192 + thread] = (double)sum / (double)n;
  __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup");
  __builtin_amdgcn_s_barrier();
  __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup");
  for (unsigned b = thread; b < bins; b += 192) __hip_atomic_fetch_add(&out[b], counts[b], __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);
}
