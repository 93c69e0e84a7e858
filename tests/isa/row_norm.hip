// The source of row_norm.gfx942.s and row_norm.gfx950.s, which the tests read: one row per workgroup, in two passes, with a
// loop in each. Made with: clang++ -x hip --offload-device-only -nogpuinc -nogpulib -O3 -std=c++20 -fno-ident -fuse-cuid=none -S
//   --offload-arch=ARCH row_norm.hip -o row_norm.ARCH.s
typedef _Float16 half8 __attribute__((ext_vector_type(8)));
typedef float float4 __attribute__((ext_vector_type(4)));

extern "C" __attribute__((global)) __attribute__((amdgpu_flat_work_group_size(256, 256)))
void row_norm(const half8* x, half8* y, int chunks, float epsilon) {
  __attribute__((shared)) static float4 partial[64];
  const int lane = __builtin_amdgcn_workitem_id_x();
  const half8* row = x + static_cast<long>(__builtin_amdgcn_workgroup_id_x()) * chunks;
  half8* out = y + static_cast<long>(__builtin_amdgcn_workgroup_id_x()) * chunks;
  float sum = 0;
#pragma clang loop unroll(disable)
  for (int c = lane; c < chunks; c += 256) {
    const half8 v = row[c];
    for (int i = 0; i < 8; ++i)
      sum += static_cast<float>(v[i]) * static_cast<float>(v[i]);
  }
  reinterpret_cast<float*>(partial)[lane] = sum;
  __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup");
  __builtin_amdgcn_s_barrier();
  __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup");
  float total = 0;
#pragma clang loop unroll(disable)
  for (int i = 0; i < 64; ++i) {
    const float4 p = partial[i];
    total += p[0] + p[1] + p[2] + p[3];
  }
  const float scale = __builtin_amdgcn_rsqf(total / (8.0f * static_cast<float>(chunks)) + epsilon);
#pragma clang loop unroll(disable)
  for (int c = lane; c < chunks; c += 256) {
    half8 v = row[c];
    for (int i = 0; i < 8; ++i)
      v[i] = static_cast<_Float16>(static_cast<float>(v[i]) * scale);
    out[c] = v;
  }
}
