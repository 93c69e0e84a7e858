"""Proves that every entry of the catalogue is an operator of torch: opcheck, results beside torch's own, .out, torch.compile without a break."""

import os
import tempfile
import unittest
from unittest import mock

import torch
import torch._dynamo.testing
from operator_inputs import REFERENCES, Inputs, of_e2m1, wide
from support import ARCH, DEVICE, KernelTest

import kiln
import kiln.torch
from kiln import catalog

kiln.torch.use(DEVICE)
OP = torch.ops.kiln


def _same_numbers(a, b, *_, _allclose=torch.allclose, **options):
    if a.dtype.is_floating_point and a.itemsize == 1:
        return torch.equal(a.view(torch.uint8), b.view(torch.uint8))
    return _allclose(a, b, *_, **options)


def results(made):
    return [made] if isinstance(made, torch.Tensor) else list(made or [])


class Operators(KernelTest):
    def test_opcheck(self):
        # SchemaCheckMode asks torch.allclose whether an input was changed, which on the CPU knows no fp8.
        with mock.patch.object(torch, "allclose", _same_numbers):
            self._opcheck()

    def _opcheck(self):
        # Half of them on each architecture: schemas and fake tensors are the same. All with KILN_LINT_ALL.
        first, step = (0, 1) if "KILN_LINT_ALL" in os.environ else (int(ARCH == "gfx950"), 2)
        for name in sorted(catalog.operators())[first::step]:
            with self.subTest(operator=name):
                torch.library.opcheck(getattr(OP, name).default, Inputs(name).values)

    def test_results_are_torchs(self):
        self.assertEqual(set(REFERENCES), set(catalog.operators()))
        for name, reference in REFERENCES.items():
            with self.subTest(operator=name):
                given = Inputs(name)
                wanted = results(reference(*[wide(value) if isinstance(value, torch.Tensor) else value for value in given.values if value is not None]))
                made = results(getattr(OP, name)(*given.values)) or [given.tensors[each] for each in catalog.operators()[name]["mutated"]]
                self.assertEqual(len(made), len(wanted))
                for got, right in zip(made, wanted):
                    self._close(got, right, name)

    def _close(self, got, right, name):
        self.assertEqual(got.shape, right.shape)
        if got.dtype in (torch.int32, torch.int64):
            self.assertTrue(torch.equal(got, right.to(got.dtype)), name)
            return
        if got.dtype == torch.uint8:  # e2m1, where 1 of 100 may round to the other neighbour, as sums have another order
            got, right = of_e2m1(got), of_e2m1(right)
            self.assertGreaterEqual((got == right).float().mean(), 0.99, name)
            self.assertTrue(((got - right).abs() <= 0.5 * right.abs().clamp(min=1)).all(), name)
            return
        # f16 has 2^-11; fp8 has 2^-4, and may round to a neighbour.
        relative, absolute = (0.13, 1e-2) if got.itemsize == 1 else (8e-3, 1e-2)
        self.close(wide(got).float().numpy(), right.float().numpy(), relative=relative, absolute=absolute)

    def test_out(self):
        for name, facts in catalog.operators().items():
            if not facts["results"]:
                continue
            with self.subTest(operator=name):
                wanted = results(getattr(OP, name)(*Inputs(name).values))
                outs = {each: torch.empty_like(made) for each, made in zip(facts["results"], wanted)}
                self.assertIsNone(getattr(OP, name).out(*Inputs(name).values, **outs))  # not those whose states a call has written
                for each, made in zip(outs.values(), wanted):
                    self.assertTrue(torch.equal(each.view(torch.uint8), made.view(torch.uint8)), name)
        given = Inputs("rmsnorm")
        torch.library.opcheck(OP.rmsnorm.out, given.values, {"y": torch.empty(3, 256, dtype=torch.float16)})

    def test_options(self):
        given = Inputs("group_quant", group=64)
        scale, _ = OP.group_quant(*given.values, group=64)
        self.assertEqual(tuple(scale.shape), (3, 4))
        x = torch.randn(3, 256, dtype=torch.bfloat16)
        other = {"gfx942": torch.float8_e5m2fnuz, "gfx950": torch.float8_e5m2}[ARCH]
        self.assertEqual(OP.cast(x, fp8=other).dtype, other)
        for rows in (1, 5, 17):  # a kernel for each power of two
            a, b = torch.randn(rows, 256).half(), torch.randn(256, 256).half() * 0.1
            self._close(OP.gemm(a, b), a.float() @ b.float().T, "gemm")
        with self.raises(ValueError, "gemm", "300"):
            OP.gemm(torch.zeros(300, 256).half(), b)
        with self.raises(TypeError, "rmsnorm, argument weight"):
            OP.rmsnorm(x, torch.ones(256))


class Gradients(KernelTest):
    def test_there_are_none_and_they_say_so(self):
        x, weight = torch.randn(2, 256).half().requires_grad_(), torch.ones(256).half()
        y = OP.rmsnorm(x, weight)
        with self.raises(RuntimeError, "kiln::rmsnorm has no derivative", "torch.no_grad()"):
            y.sum().backward()
        with torch.no_grad():
            remembered = kiln.torch.operators["rmsnorm"]._calls
            before = len(remembered)
            for _ in range(3):
                self.assertFalse(OP.rmsnorm(x, weight).requires_grad)
            self.assertLessEqual(len(remembered), before + 1)
            self.assertGreater(len(remembered), 0)


class Norms(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(256).half())
        self.up = torch.nn.Parameter(torch.randn(512, 256).half() * 0.1)
        self.down = torch.nn.Parameter(torch.randn(256, 256).half() * 0.1)

    def forward(self, x):
        y = OP.rmsnorm(x, self.weight)
        gate, up = OP.gemm(y, self.up).chunk(2, -1)
        return OP.gemm_residual(OP.silu_mul(gate.contiguous(), up.contiguous()), self.down, x) + 1


class Compile(KernelTest):
    def backends(self):
        yield "eager"
        yield "aot_eager"
        if os.path.exists("/usr/include/torch/csrc/inductor/cpp_prefix.h") or os.path.exists(os.path.join(os.path.dirname(torch.__file__), "include")):
            yield "inductor"

    @torch.no_grad()
    def test_a_model_is_one_graph(self):
        model = Norms()
        for backend in self.backends():
            torch._dynamo.reset()
            graphs = torch._dynamo.testing.CompileCounter() if backend == "eager" else backend
            compiled = torch.compile(model, fullgraph=True, backend=graphs, dynamic=True)
            for rows in (3, 5):
                x = torch.randn(rows, 256).half()
                wanted, got = model(x), compiled(x)
                self.close(got.float().numpy(), wanted.float().numpy(), relative=2e-3, absolute=2e-3)
            if backend == "eager":
                self.assertEqual(graphs.frame_count, 1)

    @torch.no_grad()
    def test_caches_are_written_in_a_graph(self):
        def write(*values):
            OP.rope_kv_write(*values)
            return values[0] * 1

        for backend in ("aot_eager",):
            given, again = Inputs("rope_kv_write"), Inputs("rope_kv_write")
            cache = torch.compile(write, fullgraph=True, backend=backend)(*given.values)
            write(*again.values)
            for name in ("k_cache", "v_cache"):
                self.assertTrue(torch.equal(given.tensors[name], again.tensors[name]))
            self.assertTrue(torch.equal(cache, again.tensors["k_cache"]))


@kiln.torch.operator(namespace="kiln_test", results=2)
@kiln.kernel(device=DEVICE)
def scaled_norm(x, weight, alpha: float, *, eps: float = 1e-6):
    y = x * kiln.rsqrt(kiln.row_mean(x * x) + eps) * weight
    return kiln.cast("f16", y * alpha), kiln.row_absmax(y)


class WarmUp(KernelTest):
    def test_nothing_is_compiled_after_it(self):
        self.addCleanup(kiln.torch.use, DEVICE)
        x, weight = torch.randn(2, 320).half(), torch.ones(320).half()
        with tempfile.TemporaryDirectory() as work:
            settings = {"KILN_CACHE_DIR": f"{work}/cache", "KILN_JIT_MANIFEST": f"{work}/kernels.jsonl"}
            recording = kiln.Jit(DEVICE, settings={**settings, "KILN_JIT_POLICY": "record"}, log=lambda line: None)
            kiln.torch.use(recording)
            OP.rmsnorm(x, weight)
            serving = kiln.Jit(DEVICE, settings={"KILN_CACHE_DIR": f"{work}/cache", "KILN_JIT_POLICY": "cache_only"}, log=lambda line: None)
            kiln.torch.use(serving)
            keys = kiln.torch.warm_up(f"{work}/kernels.jsonl")
            self.assertEqual([len(key) for key in keys], [64])
            OP.rmsnorm(x, weight)
            self.assertEqual(serving.stats()["compiled"], 0)
            with self.raises(kiln.CacheMiss, "rmsnorm"):
                OP.rmsnorm(torch.randn(2, 352).half(), torch.ones(352).half())
            with open(f"{work}/lists.jsonl", "w", encoding="utf-8") as file:
                file.write('{"catalog": "rmsnorm", "cols": [256, 512]}\n')
            with self.raises(ValueError, "lists.jsonl", "kiln aot"):
                kiln.torch.warm_up(f"{work}/lists.jsonl")


class Functions(KernelTest):
    def test_a_function_of_ones_own(self):
        x, weight = torch.randn(3, 256).half(), torch.randn(256).half()
        wanted = torch.nn.functional.rms_norm(x.float(), (256,), weight.float(), 1e-6)
        for _ in range(2):
            y, largest = torch.ops.kiln_test.scaled_norm(x, weight, 0.5)
            self.close(y.float().numpy(), 0.5 * wanted.numpy(), relative=4e-3, absolute=1e-3)
            self.close(largest.numpy(), wanted.abs().amax(-1, keepdim=True).numpy(), relative=1e-5)
        torch.library.opcheck(torch.ops.kiln_test.scaled_norm.default, (x, weight, 0.5), {"eps": 1e-5})
        y, largest = torch.empty(3, 256).half(), torch.empty(3, 1)
        torch.ops.kiln_test.scaled_norm.out(x, weight, 0.5, out_0=y, out_1=largest)
        self.close(y.float().numpy(), 0.5 * wanted.numpy(), relative=4e-3, absolute=1e-3)

    def test_defaults_and_constants(self):
        @kiln.torch.operator(namespace="kiln_test")
        @kiln.kernel(device=DEVICE)
        def shifted(x, alpha: float = 2.0, *, beta: float, times: int = 1):
            for _ in range(times):
                x = x * alpha + beta
            return x

        x = torch.randn(2, 64)
        for _ in range(2):
            self.close(torch.ops.kiln_test.shifted(x, beta=1.0).numpy(), (2 * x + 1).numpy())
            self.close(torch.ops.kiln_test.shifted(x, 0.5, beta=1.0).numpy(), (0.5 * x + 1).numpy())
            self.close(torch.ops.kiln_test.shifted(x, alpha=0.5, beta=3.0, times=2).numpy(), (0.5 * (0.5 * x + 3) + 3).numpy())
        torch.library.opcheck(torch.ops.kiln_test.shifted.default, (x,), {"beta": 1.0})
        with self.raises(ValueError, "parameter table", "annotate"):
            kiln.torch.operator(kiln.kernel(lambda x, *, table: x))

    @torch.no_grad()
    def test_it_compiles_for_sizes_that_are_not_known(self):
        compiled = torch.compile(lambda x, weight: torch.ops.kiln_test.scaled_norm(x + 1, weight, 2.0)[0] * 2, fullgraph=True, backend="aot_eager", dynamic=True)
        weight = torch.randn(256).half()
        for rows in (3, 7):
            x = torch.randn(rows, 256).half()
            self.assertTrue(torch.equal(compiled(x, weight), torch.ops.kiln_test.scaled_norm(x + 1, weight, 2.0)[0] * 2))


if __name__ == "__main__":
    unittest.main()
