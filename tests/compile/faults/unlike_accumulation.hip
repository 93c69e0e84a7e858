// fault: two kinds of matrix instructions on one accumulator get no wait
// reported: llvm/llvm-project#218363
// arch: gfx950
// shown by: CMP001 info
typedef _Float16 f16x8 __attribute__((ext_vector_type(8)));
typedef float f32x4 __attribute__((ext_vector_type(4)));

extern "C" __attribute__((global)) void fault(const f16x8* a, f32x4* c) {
  const unsigned i = __builtin_amdgcn_workitem_id_x();
  const f16x8 x = a[i];
  const f32x4 sum = __builtin_amdgcn_mfma_f32_16x16x32_f16(x, x, c[i], 0, 0, 0);
  c[i] = __builtin_amdgcn_mfma_f32_16x16x16f16(x.lo, x.lo, sum, 0, 0, 0);
}
