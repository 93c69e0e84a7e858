"""Proves that Python has the whole language: every word of C++ and of the text, and that random specs and the catalogue, written in Python,
are the same specs."""

import ast
import os
import re
import subprocess
import unittest
from pathlib import Path

import numpy as np
import stub
from as_python import written_again
from support import ARCH, DEVICE, FP8, KernelTest, numbers

import kiln
from kiln import catalog, operator_facts
from kiln.trace import WORDS

TREE = Path(__file__).resolve().parents[2]
# What one of the languages says in another way. C++ name, word of the text, Python's name.
ELSEWHERE = [
    ("input", None, "Spec.input"),
    ("scalar", None, "Spec.scalar"),
    ("constant", None, None),  # a number
    ("whole_number", None, None),  # the same
    ("reduction", None, None),  # any of them, by operation
    ("scores_node", None, None),  # of attention.h, which attention_scores uses
    (None, "attention_scores_paged", "attention_scores_paged"),  # C++ overloads attention_scores
    ("row_logsumexp", None, "row_logsumexp"),  # the text writes what they stand for
    ("mx_scale", None, "mx_scale"),
    ("mx_quantise", None, "mx_quantise"),
    ("mx_dequantise", None, "mx_dequantise"),
]


def cpp_words():
    """The functions of C++ that give an Expr: declared in gen/spec, or generated from ops.def."""
    text = "".join((TREE / "gen/spec" / header).read_text() for header in ("expr.h", "attention.h"))
    declared = set(re.findall(r"^Expr (\w+)\(", text, re.M))
    generated = set(re.findall(r"^KILN_(?:INTEGER_)?OP\((\w+),", (TREE / "gen/spec/ops.def").read_text(), re.M))
    return declared | generated


class Words(unittest.TestCase):
    def test_three_languages_word_by_word(self):
        table = {word: (word, word, word) for word in cpp_words() | set(WORDS)}
        for cpp, text, python in ELSEWHERE:
            table[cpp or text] = (cpp, text, python)
        self.assertGreater(len(table), 95)
        for cpp, text, python in table.values():
            with self.subTest(word=cpp or text):
                if cpp is not None:
                    self.assertTrue(cpp in cpp_words(), f"C++ has no {cpp}")
                if text is not None:
                    self.assertTrue(text in WORDS, f"the text has no {text}")
                if python is not None:
                    owner = kiln
                    for part in python.split("."):
                        owner = getattr(owner, part, None)
                    self.assertTrue(callable(owner), f"Python has no {python}")

    def test_every_word_is_told(self):
        for word in WORDS:
            doc = getattr(kiln, word).__doc__
            self.assertTrue(doc, word)
            self.assertIn(word, kiln.__all__ + ["abs", "max", "min", "pow", "round"])

    @unittest.skipIf(ARCH != "gfx942", "it is the same for every device, and takes seconds")
    def test_the_operators_of_torch_are_the_catalogues(self):
        file = TREE / "python/kiln/operators.json"
        if os.environ.get("KILN_UPDATE_GOLDEN"):
            file.write_text(operator_facts.text())
        self.assertEqual(file.read_text(), operator_facts.text(), "KILN_UPDATE_GOLDEN=1 writes it anew")
        self.assertEqual({facts["entry"] for facts in catalog.operators().values()}, set(catalog.entries()))

    def test_the_stub_is_the_package(self):
        file = TREE / "python/kiln/__init__.pyi"
        if os.environ.get("KILN_UPDATE_GOLDEN"):
            file.write_text(stub.text())
        ast.parse(file.read_text())
        self.assertEqual(file.read_text(), stub.text(), "KILN_UPDATE_GOLDEN=1 writes it anew")
        for name in kiln.__all__:
            self.assertRegex(file.read_text(), rf"\b{name}\b")


class Texts(unittest.TestCase):
    def same(self, text, seed):
        self.assertEqual(written_again(text, seed), kiln.check_spec(text), f"seed {seed}:\n{text}")

    def test_random_specs(self):
        told = subprocess.run([os.environ["KILN_RANDOM_SPECS"], "1", "500"], check=True, capture_output=True, text=True).stdout
        texts = told.split("---\n")[:-1]
        self.assertEqual(len(texts), 500)
        for seed, text in enumerate(texts, 1):
            self.same(text, seed)

    def test_the_catalogue(self):
        """With every flag too: attention, caches, experts, sorts, ranks, all products."""
        seen = set()
        for entry in catalog.entries():
            flags = [name for name, default in catalog.options(entry).items() if isinstance(default, bool)]
            for more in [{}, *({flag: True} for flag in flags), {"dtype": "e4m3fn"}, {"weights": "e2m1"}]:
                if not set(more) <= set(catalog.options(entry)) or catalog._tried(entry, ARCH, {**catalog.base_of(entry), **more}) is None:
                    continue
                text = catalog.spec(entry, ARCH, **{**catalog.base_of(entry), **more})
                seen.update(re.findall(r"(\w+)\(", text))
                self.same(text, 0)
        self.assertGreater(len(seen & set(WORDS)), 35)


class Spellings(KernelTest):
    def test_results_of_methods_are_numpys(self):
        @kiln.kernel(device=DEVICE)
        def by_methods(x):
            return x.sum(axis=-1, keepdims=True), x.max(axis=1, keepdims=True), np.mean(x, axis=-1, keepdims=True), np.cumsum(x, axis=-1)

        x = numbers(3, 64)
        sums, largest, means, running = by_methods(x)
        wide = x.astype(np.float64)
        self.close(sums, wide.sum(axis=-1, keepdims=True), absolute=1e-3)
        self.close(largest, wide.max(axis=-1, keepdims=True))
        self.close(means, wide.mean(axis=-1, keepdims=True), absolute=1e-4)
        self.close(running, wide.cumsum(axis=-1), absolute=1e-3)

    def test_a_reduction_that_numpy_would_shape_in_another_way_is_refused(self):
        for body in (lambda x: x.max(), lambda x: x.max(axis=-1), lambda x: np.sum(x, axis=-1), lambda x: x.sum(axis=0, keepdims=True)):
            with self.raises(TypeError, "keepdims=True"):
                kiln.kernel(body, device=DEVICE)(numbers(2, 64))

    def test_embedding_with_int64(self):
        @kiln.kernel(device=DEVICE, sizes={"table": ("slots",), "ids": ("tokens",)})
        def embedding(table, ids):
            return kiln.cast("f16", kiln.gather(table, ids))

        table = numbers(10, 64)
        for count in (3, 5):
            ids = np.array([[7], [0], [-1], [9], [2]], np.int64)[:count]
            wanted = np.where(ids < 0, 0, table[ids[:, 0]])
            np.testing.assert_array_equal(embedding(table, ids), wanted)
        self.assertEqual(len(embedding._kernels), 1)

    def test_scatter_overwrites_its_target(self):
        @kiln.kernel(device=DEVICE)
        def write(cache, slot, x):
            return kiln.scatter(cache, slot, x)

        cache, x = numbers(8, 64), numbers(2, 64, seed=2)
        wanted = cache.copy()
        wanted[[5, 1]] = x
        self.assertIs(write(cache, np.array([[5], [1]], np.int32), x), cache)
        np.testing.assert_array_equal(cache, wanted)

    def test_products_and_columns(self):
        @kiln.kernel(device=DEVICE)
        def gated(a, b):
            product = a @ b.T
            return (kiln.silu(product[..., :64]) * product[:, 64:]).astype(np.float16)

        a, b = numbers(3, 128, scale=0.3), numbers(128, 128, seed=2, scale=0.3)
        product = a.astype(np.float64) @ b.astype(np.float64).T
        self.close(gated(a, b), product[:, :64] / (1 + np.exp(-product[:, :64])) * product[:, 64:], relative=4e-3, absolute=2e-3)
        with self.raises(TypeError, "a @ b.T"):
            kiln.kernel(lambda a, b: a @ b, device=DEVICE)(a, b)
        with self.raises(ValueError, "test_language.py, line ", "gated: rows of 'a': there may be 300; use 1 to 128"):
            gated(numbers(300, 128), b)

    def test_overwrite(self):
        @kiln.kernel(device=DEVICE)
        def add(x, residual):
            h = (x + residual).astype(np.float16)
            return kiln.overwrite(residual, h), kiln.row_absmax(h)

        x, residual = numbers(3, 64), numbers(3, 64, seed=2)
        wanted = x + residual
        h, largest = add(x, residual)
        self.assertIs(h, residual)
        np.testing.assert_array_equal(residual, wanted)
        self.close(largest, np.abs(wanted).max(axis=-1, keepdims=True))

    def test_max_finite_and_fp8(self):
        @kiln.kernel(device=DEVICE)
        def quantise(x):
            return kiln.cast("fp8", x / (kiln.row_absmax(x) / kiln.max_finite("fp8")))

        self.assertEqual(quantise(numbers(2, 64)).dtype, FP8)
        self.assertEqual([kiln.max_finite(name) for name in ("e4m3fn", "e4m3fnuz", "f16")], [448, 240, 65504])

    def test_numpys_names_that_mean_something_else(self):
        for body, words in ((lambda x: np.maximum(x, 0), "np.fmax"), (lambda x: np.sort(x), "numpy.sort is no function"), (lambda x: np.isnan(x), "x != x")):
            with self.raises(TypeError, words):
                kiln.kernel(body, device=DEVICE)(numbers(2, 64))


if __name__ == "__main__":
    unittest.main()
