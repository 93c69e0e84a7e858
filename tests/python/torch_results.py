"""Proves that kernels written in Python give torch's results on torch's tensors: norms, softmax, SwiGLU, quantisation, products, rope."""

import unittest

import numpy as np
import torch
import torch.nn.functional as F
from support import DEVICE, FP8, FP8_MAX, KernelTest

import kiln

TORCH_FP8 = {"e4m3fnuz": torch.float8_e4m3fnuz, "e4m3fn": torch.float8_e4m3fn}[FP8]


def tensor(*shape, seed=1, dtype=torch.float16, scale=1.0):
    return (torch.randn(*shape, generator=torch.Generator().manual_seed(seed)) * scale).to(dtype)


@kiln.kernel(device=DEVICE)
def softmax(x):
    e = kiln.exp(x - kiln.row_max(x))
    return (e / kiln.row_sum(e)).astype(x.dtype)


@kiln.kernel(device=DEVICE)
def rmsnorm(x, weight, *, eps):
    return (x * kiln.rsqrt(kiln.row_mean(x * x) + eps) * weight).astype(x.dtype)


@kiln.kernel(device=DEVICE)
def layernorm(x, weight, bias, *, eps):
    centred = x - kiln.row_mean(x)
    return (centred * kiln.rsqrt(kiln.row_mean(centred * centred) + eps) * weight + bias).astype(x.dtype)


@kiln.kernel(device=DEVICE)
def swiglu(gate, up):
    return (kiln.silu(gate) * up).astype(gate.dtype)


@kiln.kernel(device=DEVICE)
def quantise(x, scale):
    return kiln.cast("fp8", kiln.clamp(x / scale, -FP8_MAX, FP8_MAX))


@kiln.kernel(device=DEVICE)
def linear(x, weight, bias):
    return kiln.cast("bf16", kiln.matmul_nt(x, weight) + bias)


@kiln.kernel(device=DEVICE)
def rope(first, second, c, s):
    return (first * c - second * s).astype(first.dtype), (first * s + second * c).astype(first.dtype)


class Torch(KernelTest):
    def matches(self, got, wanted, **bound):
        self.assertIsInstance(got, torch.Tensor)
        self.assertEqual(got.dtype, wanted.dtype)
        self.close(got.float().numpy(), wanted.float().numpy(), **bound)

    def test_norms(self):
        for dtype in (torch.float16, torch.bfloat16, torch.float32):
            x, weight, bias = tensor(3, 768, dtype=dtype), tensor(768, seed=2, dtype=dtype), tensor(768, seed=3, dtype=dtype)
            bound = {torch.float16: 2e-3, torch.bfloat16: 1.6e-2, torch.float32: 1e-5}[dtype]
            self.matches(rmsnorm(x, weight, eps=1e-6), F.rms_norm(x, (768,), weight, 1e-6), relative=bound, absolute=bound)
            self.matches(layernorm(x, weight, bias, eps=1e-5), F.layer_norm(x, (768,), weight, bias, 1e-5), relative=bound, absolute=bound)

    def test_softmax_and_swiglu(self):
        x, up = tensor(4, 512, dtype=torch.bfloat16), tensor(4, 512, seed=2, dtype=torch.bfloat16)
        self.matches(softmax(x), F.softmax(x.float(), -1).bfloat16(), relative=8e-3)
        self.matches(swiglu(x, up), (F.silu(x.float()) * up.float()).bfloat16(), relative=8e-3)
        self.matches(swiglu(x[:, ::2], up.t()[:256].t()), (F.silu(x[:, ::2].float()) * up[:, :256].float()).bfloat16(), relative=8e-3)

    def test_quantisation(self):
        x = tensor(2, 512, scale=100)
        q = quantise(x, torch.tensor(0.5))
        wanted = (x.float() / 0.5).clamp(-FP8_MAX, FP8_MAX).to(TORCH_FP8)
        self.matches(q, wanted, relative=0, absolute=0)
        again = kiln.kernel(dequantise, device=DEVICE)(q, torch.tensor(0.5))
        self.matches(again, (wanted.float() * 0.5).half(), relative=0, absolute=0)

    def test_products(self):
        x, weight, bias = (tensor(*shape, seed=i, dtype=torch.bfloat16) for i, shape in enumerate(((5, 512), (192, 512), (192,))))
        self.matches(linear(x, weight, bias), F.linear(x.float(), weight.float(), bias.float()).bfloat16(), relative=8e-3, absolute=1e-2)

    def test_rope(self):
        x = tensor(6, 128)
        angle = torch.outer(torch.arange(6).float(), 10000.0 ** (-torch.arange(64) / 64.0))
        first, second = rope(x[:, :64], x[:, 64:], angle.cos(), angle.sin())
        turned = torch.view_as_complex(torch.stack((x[:, :64].float(), x[:, 64:].float()), -1)) * torch.polar(torch.ones(6, 64), angle)
        self.matches(first, turned.real.half(), absolute=1e-3)
        self.matches(second, turned.imag.half(), absolute=1e-3)

    def test_results_for_torch_by_dlpack(self):
        own = kiln.array(np.arange(8.0), "bf16")
        self.matches(torch.from_dlpack(own), torch.arange(8).bfloat16(), relative=0)

    def test_gradients_are_refused(self):
        with self.raises(TypeError, "argument x: it requires a gradient", "torch.no_grad()"):
            softmax(tensor(2, 64).requires_grad_())


def dequantise(q, scale):
    return kiln.cast("f16", q * scale)


if __name__ == "__main__":
    unittest.main()
