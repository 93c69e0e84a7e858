// RMS norm of one row a workgroup of 256: wide loads, a reduction through DPP-free shuffles and LDS, a barrier.
typedef _Float16 f16;
struct alignas(16) Eight {
  f16 v[8];
};
__attribute__((shared)) float partial[4];

extern "C" __attribute__((global)) __attribute__((amdgpu_flat_work_group_size(256, 256))) void rmsnorm(const f16* x, const f16* weight,
                                                                                                      f16* y, int cols, float eps) {
  const unsigned thread = __builtin_amdgcn_workitem_id_x(), row = __builtin_amdgcn_workgroup_id_x();
  const unsigned lane = __builtin_amdgcn_mbcnt_hi(~0U, __builtin_amdgcn_mbcnt_lo(~0U, 0));
  float sum = 0;
  for (unsigned i = thread * 8; i < (unsigned)cols; i += 2048) {
    const Eight a = *(const Eight*)(x + (unsigned long)row * cols + i);
    for (int k = 0; k < 8; ++k) sum += (float)a.v[k] * (float)a.v[k];
  }
  for (unsigned m = 1; m < 64; m *= 2)
    sum += __builtin_bit_cast(float, __builtin_amdgcn_ds_bpermute((int)((lane ^ m) * 4), __builtin_bit_cast(int, sum)));
  if (lane == 0) partial[thread / 64] = sum;
  __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup");
  __builtin_amdgcn_s_barrier();
  __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup");
  const float scale = __builtin_amdgcn_rsqf((partial[0] + partial[1] + partial[2] + partial[3]) / (float)cols + eps);
  for (unsigned i = thread * 8; i < (unsigned)cols; i += 2048) {
    const Eight a = *(const Eight*)(x + (unsigned long)row * cols + i), w = *(const Eight*)(weight + i);
    Eight out;
    for (int k = 0; k < 8; ++k) out.v[k] = (f16)((float)a.v[k] * scale * (float)w.v[k]);
    *(Eight*)(y + (unsigned long)row * cols + i) = out;
  }
}
