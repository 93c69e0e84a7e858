// fault: a result that needs 20 states is read after 19
// reported: llvm/llvm-project#222040
// arch: gfx950
// shown by: HAZ002 info
typedef _Float16 f16x4 __attribute__((ext_vector_type(4)));
typedef float f32x32 __attribute__((ext_vector_type(32)));

// 19 instructions, which no scheduler moves.
#define FOUR __builtin_amdgcn_s_setprio(0), __builtin_amdgcn_s_setprio(1), __builtin_amdgcn_s_setprio(0), __builtin_amdgcn_s_setprio(1)
#define NINETEEN FOUR, FOUR, FOUR, FOUR, __builtin_amdgcn_s_setprio(0), __builtin_amdgcn_s_setprio(1), __builtin_amdgcn_s_setprio(0)

extern "C" __attribute__((global)) void fault(const f16x4* a, char* y) {
  unsigned offset = __builtin_amdgcn_workitem_id_x() * 4;
  const f16x4 x = a[offset];
  asm volatile("" : "+v"(offset));
  const f32x32 result = __builtin_amdgcn_mfma_f32_32x32x4f16(x, x, f32x32{}, 0, 0, 0);
  __builtin_amdgcn_sched_barrier(0);
  NINETEEN;
  __builtin_amdgcn_sched_barrier(0);
  *reinterpret_cast<float*>(y + offset) = result[0];
}
