// fault: the data of a 16-byte store with a scalar offset is overwritten at once
// reported: llvm/llvm-project#197267
// arch: gfx950
// shown by: DAT004 error
typedef unsigned u32x4 __attribute__((ext_vector_type(4)));

extern "C" __attribute__((global)) void fault(const u32x4* x, void* y, unsigned n) {
  const unsigned i = __builtin_amdgcn_workitem_id_x();
  u32x4 data = x[i];
  const auto buffer = __builtin_amdgcn_make_buffer_rsrc(y, 0, 1 << 20, 0x27000);
  for (unsigned k = 0; k < 4; ++k) {
    __builtin_amdgcn_raw_buffer_store_b128(data, buffer, i * 16, n + k * 4096, 0);
    data += n;
  }
}
