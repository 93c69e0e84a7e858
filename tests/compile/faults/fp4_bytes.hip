// fault: bytes 1 and 2 of a conversion from fp4 change places
// reported: docs/mx.md
// arch: gfx950
// shown by: y[0] is not 0x3e003c00
// x: 0x76543210
// Byte 1 is 0x32, which is 1.0 and 1.5.
extern "C" __attribute__((global)) void fault(const unsigned* x, unsigned* y) {
  const auto values = __builtin_amdgcn_cvt_scalef32_pk_f16_fp4(x[0], 1.0F, 1);
  __builtin_memcpy(y, &values, 4);
}
