"""Proves that functions of arrays become kernels whose results are NumPy's: norms, softmax, SwiGLU, quantisation, products."""

import unittest

import numpy as np
from support import DEVICE, FP8, FP8_MAX, KernelTest, f64, numbers, silu

import kiln


@kiln.kernel(device=DEVICE)
def softmax(x):
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    return (e / e.sum(axis=-1, keepdims=True)).astype(x.dtype)


@kiln.kernel(device=DEVICE)
def add_rmsnorm(x, residual, weight, *, eps=1e-6):
    h = kiln.cast("f16", x + residual)
    return {"h": h, "y": kiln.cast("f16", h * kiln.rsqrt(kiln.row_mean(h * h) + eps) * weight)}


@kiln.kernel(device=DEVICE)
def layernorm(x, weight, bias, eps):
    centred = x - kiln.row_mean(x)
    return kiln.cast("f16", centred * kiln.rsqrt(kiln.row_mean(centred**2) + eps) * weight + bias)


@kiln.kernel(device=DEVICE)
def swiglu(gate, up):
    return kiln.cast("f16", kiln.silu(gate) * up)


@kiln.kernel(device=DEVICE)
def token_quant(x, *, limit):
    scale = kiln.max(kiln.row_absmax(x), 1e-10) / limit
    return kiln.cast("fp8", x / scale), scale


@kiln.kernel(device=DEVICE)
def group_quant(x, *, group):
    scale = kiln.group_absmax(x, group) / 127
    return kiln.cast("i8", x / kiln.ungroup(scale, group, x.shape[-1])), scale


@kiln.kernel(device=DEVICE)
def projection(a, b, bias, residual):
    return kiln.cast("f16", kiln.gelu(kiln.matmul_nt(a, b) + bias) + residual)


@kiln.kernel(device=DEVICE)
def gated(a, b, a_scale, b_scale, *, n):
    both = kiln.matmul_nt(a, b)
    scale = a_scale * b_scale
    return kiln.cast("bf16", kiln.silu(kiln.columns(both, 0, n) * scale) * (kiln.columns(both, n, n) * scale))


@kiln.kernel(device=DEVICE)
def w4_product(a, b, scale, zero, *, group):
    return kiln.cast("f16", kiln.matmul_nt_w4(a, b, scale, zero, group))


@kiln.kernel(device=DEVICE)
def mx_pair(x):
    scale = kiln.mx_scale("e2m1", x)
    return kiln.mx_quantise("e2m1", x, scale), scale


@kiln.kernel(device=DEVICE)
def mx_numbers(q, scale):
    return kiln.mx_dequantise(q, scale)


@kiln.kernel(device=DEVICE)
def mx_product(a, b, scale):
    return kiln.cast("bf16", kiln.matmul_nt_mx(a, b, scale))


class Norms(KernelTest):
    def test_softmax_of_two_widths_and_sizes(self):
        for rows, cols in ((3, 1000), (5, 1000), (2, 64)):
            x = numbers(rows, cols, seed=rows)
            e = np.exp(f64(x) - f64(x).max(-1, keepdims=True))
            y = softmax(x)
            self.assertEqual(y.dtype, np.float16)
            self.close(y, e / e.sum(-1, keepdims=True))

    def test_the_same_function_on_numpy(self):
        x = numbers(2, 64)
        self.close(softmax(x), softmax.__wrapped__(x.astype(np.float32)))

    def test_add_rmsnorm_has_two_results_by_name(self):
        x, residual, weight = numbers(3, 1000), numbers(3, 1000, seed=2), numbers(1000, seed=3)
        result = add_rmsnorm(x, residual, weight)
        h = f64(x + residual)
        self.assertEqual(list(result), ["h", "y"])
        self.close(result["h"], h, relative=0, absolute=0)
        self.close(result["y"], h / np.sqrt((h * h).mean(-1, keepdims=True) + 1e-6) * f64(weight))

    def test_layernorm_takes_a_number_at_launch(self):
        x, weight, bias = numbers(2, 768), numbers(768, seed=2), numbers(768, seed=3)
        x64 = f64(x)
        for eps in (1e-5, 1.0):
            wanted = (x64 - x64.mean(-1, keepdims=True)) / np.sqrt(x64.var(-1, keepdims=True) + eps) * f64(weight) + f64(bias)
            self.close(layernorm(x, weight, bias, eps), wanted, absolute=3e-3)
        self.assertIs(layernorm.kernel(x, weight, bias, 1e-5), layernorm.kernel(x, weight, bias, 1.0))


class Activations(KernelTest):
    def test_swiglu(self):
        gate, up = numbers(4, 512), numbers(4, 512, seed=2)
        self.close(swiglu(gate, up), silu(f64(gate)) * f64(up))

    def test_strided_input_and_one_dimension(self):
        wide = numbers(4, 1024)
        self.close(swiglu(wide[:, :512], wide[:, 512:]), silu(f64(wide[:, :512])) * f64(wide[:, 512:]))
        self.close(swiglu(wide[0], wide[1]), silu(f64(wide[0])) * f64(wide[1]))

    def test_rows_and_columns_broadcast(self):
        @kiln.kernel(device=DEVICE)
        def scaled(x, by_row, by_column, by_all):
            return kiln.where(x > 0, x * by_row, -x * by_column) / by_all

        x, by_row, by_column = numbers(3, 256), numbers(3, 1, seed=2, dtype=np.float32), numbers(256, seed=3)
        wanted = np.where(f64(x) > 0, f64(x) * by_row, -f64(x) * f64(by_column)) / 4
        result = scaled(x, by_row, by_column, np.array(4.0, np.float32))
        self.assertEqual(result.dtype, np.float32)
        self.close(result, wanted)


class Quantisation(KernelTest):
    def test_a_scale_for_each_token(self):
        x = numbers(3, 1024)
        q, scale = token_quant(x, limit=FP8_MAX)
        wanted = np.abs(f64(x)).max(-1, keepdims=True) / FP8_MAX
        self.assertEqual((q.dtype, scale.dtype), (FP8, np.float32))
        self.close(scale, wanted, relative=1e-6)
        self.close(f64(q.numpy()) * wanted, f64(x), relative=0.07, absolute=1e-2)
        self.assertEqual(np.abs(q.numpy()).max(), FP8_MAX)

    def test_a_scale_for_each_group(self):
        x = numbers(2, 320)
        q, scale = group_quant(x, group=128)
        self.assertEqual((q.dtype, scale.shape), (np.int8, (2, 3)))
        spread = np.repeat(scale, 128, axis=1)[:, :320]
        self.assertLessEqual(np.abs(q * f64(spread) - f64(x)).max(), 0.51 * spread.max())

    def test_fp8_and_bf16_come_in_as_well(self):
        @kiln.kernel(device=DEVICE)
        def dequant(q, scale):
            return kiln.cast("bf16", q * scale)

        q = kiln.array(numbers(2, 256), FP8)
        result = dequant(q, np.array([[0.5], [2.0]], np.float32))
        self.assertEqual(result.dtype, "bf16")
        self.close(result, f64(q.numpy()) * [[0.5], [2.0]], relative=0)


class Products(KernelTest):
    def test_product_with_its_epilogue(self):
        # As many rows of b as of a at first: b is compiled in nevertheless.
        for m, n in ((16, 16), (3, 16), (3, 256)):
            a, b = numbers(m, 512), numbers(n, 512, seed=2, scale=0.05)
            bias, residual = numbers(n, seed=3), numbers(m, n, seed=4)
            x = f64(a) @ f64(b).T + f64(bias)
            gelu = 0.5 * x * (1 + np.vectorize(__import__("math").erf)(x / np.sqrt(2)))
            self.close(projection(a, b, bias, residual), gelu + f64(residual), absolute=2e-3)

    def test_two_columns_of_one_product_meet(self):
        n = 128
        a, b = kiln.array(numbers(4, 256), FP8), kiln.array(numbers(2 * n, 256, seed=2), FP8)
        both = f64(a.numpy()) @ f64(b.numpy()).T * 0.02
        result = gated(a, b, np.array(0.1, np.float32), 0.2, n=n)
        self.close(result, silu(both[:, :n]) * both[:, n:], relative=8e-3, absolute=1e-3)

    def test_scales_of_blocks(self):
        @kiln.kernel(device=DEVICE)
        def scaled(a, b, a_scale, b_scale):
            return kiln.cast("bf16", kiln.matmul_nt_scaled(a, b, a_scale, b_scale))

        # The scale of b has as many rows as a, and is compiled in; that of a is not.
        m, n, k = 2, 256, 512
        a, b = kiln.array(numbers(m, k), FP8), kiln.array(numbers(n, k, seed=2), FP8)
        a_scale = np.abs(numbers(m, k // 128, seed=3, dtype=np.float32)) + 0.1
        b_scale = np.abs(numbers(n // 128, k // 128, seed=4, dtype=np.float32)) + 0.1
        left = f64(a.numpy()) * np.repeat(a_scale, 128, 1)
        right = f64(b.numpy()) * np.repeat(np.repeat(b_scale, 128, 1), 128, 0)
        self.close(scaled(a, b, a_scale, b_scale), left @ right.T, relative=8e-3, absolute=2e-2)
        one = kiln.Array(a.bits[:1], FP8)
        self.close(scaled(one, b, a_scale[:1], b_scale), left[:1] @ right.T, relative=8e-3, absolute=2e-2)

    def test_weights_of_four_bits(self):
        a, n, k, group = numbers(2, 256), 64, 256, 32
        q = np.random.default_rng(3).integers(0, 16, (n, k), np.uint8)
        zero = np.random.default_rng(4).integers(0, 16, (n, k // group), np.uint8)
        scale = np.abs(numbers(n, k // group, seed=5, scale=0.1))
        weights = ((q.astype(np.float32) - np.repeat(zero, group, 1)) * np.repeat(scale, group, 1).astype(np.float32)).astype(np.float16)
        packed = (q[:, 0::2] | q[:, 1::2] << 4).astype(np.uint8)
        self.close(w4_product(a, packed, scale, zero, group=group), f64(a) @ f64(weights).T, absolute=1e-2)

    def test_mxfp4_there_and_back_and_as_weights(self):
        x = numbers(64, 256)
        q, scale = mx_pair(x)
        self.assertEqual((q.dtype, q.shape, q.bits.shape, scale.dtype, scale.shape), ("e2m1", (64, 256), (64, 128), "e8m0", (64, 8)))
        largest = np.abs(f64(x).reshape(64, 8, 32)).max(-1)
        self.close(scale, 2 ** (np.floor(np.log2(largest)) - 2), relative=0, absolute=0)
        weights = mx_numbers(q, scale)
        self.close(weights, f64(q) * np.repeat(f64(scale), 32, axis=-1), relative=0, absolute=0)
        a = kiln.array(numbers(3, 256, seed=2), "bf16")
        self.close(mx_product(a, q, scale), f64(a) @ f64(weights).T, relative=1e-2, absolute=0.1)


if __name__ == "__main__":
    unittest.main()
