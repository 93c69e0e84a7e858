// What the kernels of the lint tests share. They are compiled without HIP's headers.
// A comment "// lint: IDS" above a kernel says which rules must fire on it, and no others may; "// lint gfx950: IDS" says it
// for one architecture, "// lint here: ID" on a line of code that a finding must name this line.
#pragma once
typedef float float4v __attribute__((ext_vector_type(4)));
typedef _Float16 half4 __attribute__((ext_vector_type(4)));
typedef _Float16 half8 __attribute__((ext_vector_type(8)));
typedef int int4v __attribute__((ext_vector_type(4)));

#define KERNEL(size) extern "C" __attribute__((global)) __attribute__((amdgpu_flat_work_group_size(size, size)))
#define SHARED __attribute__((shared)) static
#define DEVICE __attribute__((device))
#define ROLLED _Pragma("clang loop unroll(disable) vectorize(disable)")

DEVICE inline unsigned lane() { return __builtin_amdgcn_workitem_id_x(); }
DEVICE inline unsigned group() { return __builtin_amdgcn_workgroup_id_x(); }
DEVICE inline void sync() {
  __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup");
  __builtin_amdgcn_s_barrier();
  __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup");
}
