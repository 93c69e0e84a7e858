"""Proves that the Llama layer in examples/python gives the same with both, that README's five lines run, and that kiln.vllm registers as
vLLM's IR takes it: with a stand-in for vLLM, which is not here."""

import os
import re
import subprocess
import sys
import types
import unittest
from pathlib import Path
from unittest import mock

import torch
import torch.nn.functional as F
from support import DEVICE, KernelTest

import kiln
import kiln.torch
import kiln.vllm

TREE = Path(__file__).resolve().parents[2]
kiln.torch.use(DEVICE)


class Examples(KernelTest):
    def test_llama_layer(self):
        program = [sys.executable, str(TREE / "examples/python/llama_layer.py"), "--device", DEVICE]
        environment = {name: value for name, value in os.environ.items() if name != "KILN_HIP_PATH"}  # as on a machine without a GPU
        told = subprocess.run(program, env=environment, check=True, capture_output=True, text=True).stdout
        before, after, own = (int(re.search(words, told).group(1)) for words in (r"before: (\d+)", r"after: +(\d+)", r"of these (\d+)"))
        self.assertLess(after, before / 3, told)
        self.assertEqual(own, 9, told)
        self.assertLess(float(re.search(r"at most ([0-9.]+)", told).group(1)), 0.03, told)

    def test_the_readme(self):
        lines = re.search(r"```python\n(import torch, kiln.torch\n.*?)```", (TREE / "README.md").read_text(), re.S).group(1)
        self.assertEqual(len(lines.strip().split("\n")), 5)
        half = lambda *shape: torch.randn(*shape).half()
        names = {
            "q": half(2, 8, 128), "k": half(2, 2, 128), "v": half(2, 2, 128), "q_weight": half(128), "k_weight": half(128),
            "k_cache": half(2 * 8192, 2, 128), "v_cache": half(2 * 8192, 2, 128), "slots": torch.tensor([3, 8192]).view(2, 1, 1),
            "cos": half(16, 64), "sin": half(16, 64), "positions": torch.tensor([3, 0]).view(2, 1, 1),
            "lengths": torch.tensor([4, 1], dtype=torch.int32).view(2, 1, 1), "weights": half(256, 1024), "residual": half(2, 256),
        }  # fmt: skip
        exec(lines, names)
        self.assertEqual(tuple(names["y"].shape), (2, 256))


class Operator:
    """What vLLM's IR does with a registration, as far as it was read: schemas are compared, supports_args has the same parameters."""

    def __init__(self, native):
        self.native, self.implementations = native, {}

    def register_impl(self, provider, *, supported=True, supports_args=None, inplace=False):
        def registered(function):
            schema = torch.library.infer_schema(function, mutates_args=[])
            assert schema == torch.library.infer_schema(self.native, mutates_args=[]), schema
            assert supports_args.__code__.co_argcount == self.native.__code__.co_argcount
            self.implementations[provider] = (function, supports_args, supported)
            return function

        return registered


def native_add_norm(
    x: torch.Tensor, x_residual: torch.Tensor, weight: torch.Tensor | None, epsilon: float, variance_size: int | None = None
) -> tuple[torch.Tensor, torch.Tensor]:
    h = x.float() + x_residual.float()
    y = h * torch.rsqrt(h.pow(2).mean(-1, keepdim=True) + epsilon)
    return (y.to(weight.dtype) * weight).to(x.dtype), h.to(x.dtype)


def native_norm(x: torch.Tensor, weight: torch.Tensor | None, epsilon: float, variance_size: int | None = None) -> torch.Tensor:
    return native_add_norm(x, torch.zeros_like(x), weight, epsilon)[0]


def native_silu(x: torch.Tensor) -> torch.Tensor:
    gate, up = x.chunk(2, -1)
    return F.silu(gate) * up


class Vllm(KernelTest):
    def test_without_vllm(self):
        with mock.patch.dict(sys.modules, {"vllm": None}):
            with self.raises(kiln.MachineError, "vLLM", "cannot be imported"):
                kiln.vllm.register()

    def test_providers(self):
        ops = types.SimpleNamespace(rms_norm=Operator(native_norm), fused_add_rms_norm=Operator(native_add_norm), silu_and_mul=Operator(native_silu))
        modules = {name: types.ModuleType(name) for name in ("vllm", "vllm.ir", "vllm.platforms")}
        modules["vllm"].ir = modules["vllm.ir"]
        modules["vllm.ir"].ops = ops
        modules["vllm.platforms"].current_platform = types.SimpleNamespace(is_rocm=lambda: True)
        with mock.patch.dict(sys.modules, modules):
            self.assertEqual(kiln.vllm.register(), ["rms_norm", "fused_add_rms_norm", "silu_and_mul"])
        half = lambda *shape: torch.randn(*shape).half()
        x, residual, weight = half(2, 3, 256), half(2, 3, 256), half(256)
        given = {"rms_norm": (x, weight, 1e-5), "fused_add_rms_norm": (x, residual, weight, 1e-5), "silu_and_mul": (x,)}
        with mock.patch.dict(os.environ, {"KILN_DEVICE": DEVICE}):
            for name, values in given.items():
                operator = getattr(ops, name)
                function, supports, supported = operator.implementations["kiln"]
                self.assertTrue(supported and supports(*values))
                got, wanted = function(*values), operator.native(*values)
                for one, other in zip(got if isinstance(got, tuple) else [got], wanted if isinstance(wanted, tuple) else [wanted]):
                    self.close(one.float().numpy(), other.float().numpy(), relative=2e-3, absolute=2e-3)
        supports = ops.rms_norm.implementations["kiln"][1]
        self.assertFalse(supports(x, weight, 1e-5, 128) or supports(x, None, 1e-5) or supports(x, weight.float(), 1e-5))


if __name__ == "__main__":
    unittest.main()
