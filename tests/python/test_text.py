"""Proves that texts of specs have the device's own fp8, by the C ABI."""

import unittest

import numpy as np
from support import DEVICE, FP8, FP8_MAX, KernelTest, jit, numbers

import kiln

TEXT = "kernel quant dim n input x: f32[n, 64] output q: $fp8[n, 64] = clamp(x, -$fp8_max, $fp8_max)"


class Text(KernelTest):
    def test_fp8_is_the_devices(self):
        x = numbers(2, 64, dtype=np.float32, scale=1000)
        q = jit.compile(TEXT)(x=x)["q"]
        self.assertEqual(q.dtype, FP8)
        self.close(q.numpy(), np.clip(x, -FP8_MAX, FP8_MAX), 0.07, 0.1)
        self.assertEqual(jit.compile_async(TEXT).result().key, jit.compile(TEXT.replace("$fp8_max", f"{FP8_MAX:.0f}").replace("$fp8", FP8)).key)

    def test_batch_invariance_is_asked_of_a_jit(self):
        invariant, plain = kiln.Jit(DEVICE, batch_invariant=True), kiln.Jit(DEVICE, batch_invariant=False)
        by_setting = kiln.Jit(DEVICE, settings={"KILN_BATCH_INVARIANT": "1"})
        self.assertEqual(invariant.compile(TEXT).key, by_setting.compile(TEXT).key)
        self.assertNotEqual(invariant.compile(TEXT).key, plain.compile(TEXT).key)

    def test_other_names_have_no_value(self):
        with self.raises(ValueError, "spec: it has $cols, for which there is no value here"):
            jit.compile("kernel a dim n input x: f16[n, $cols] output y: f16[n, $cols] = x")


if __name__ == "__main__":
    unittest.main()
