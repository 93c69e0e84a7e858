// fault: a scaled matrix instruction takes its scale from a scalar register
// reported: llvm/llvm-project#158117
// arch: gfx950
// shown by: ERR002 error
typedef int i32x8 __attribute__((ext_vector_type(8)));
typedef float f32x4 __attribute__((ext_vector_type(4)));

extern "C" __attribute__((global)) void fault(const i32x8* a, const i32x8* b, f32x4* c, int scale) {
  const unsigned i = __builtin_amdgcn_workitem_id_x();
  c[i] = __builtin_amdgcn_mfma_scale_f32_16x16x128_f8f6f4(a[i], b[i], c[i], 0, 0, 0, scale, 0, scale);
}
