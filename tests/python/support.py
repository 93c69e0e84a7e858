"""What the Python tests share: the device, random numbers, and comparing with NumPy's results."""

import os
import unittest

import numpy as np

import kiln

DEVICE = os.environ.get("KILN_TEST_DEVICE", "emulated:gfx942")
ARCH = DEVICE.removeprefix("emulated:")
FP8 = {"gfx942": "e4m3fnuz", "gfx950": "e4m3fn"}[ARCH]
FP8_MAX = {"e4m3fnuz": 240.0, "e4m3fn": 448.0}[FP8]


def numbers(*shape, seed=1, dtype=np.float16, scale=1.0):
    return (np.random.default_rng(seed).standard_normal(shape) * scale).astype(dtype)


class KernelTest(unittest.TestCase):
    def close(self, got, wanted, relative=2e-3, absolute=1e-5):
        """Every element within a bound that is a few roundings of f16."""
        got, wanted = np.asarray(got, np.float64), np.asarray(wanted, np.float64)
        self.assertEqual(got.shape, wanted.shape)
        off = np.abs(got - wanted) - (absolute + relative * np.abs(wanted))
        worst = np.unravel_index(np.argmax(off), off.shape)
        self.assertLessEqual(off[worst], 0, f"at {worst}: {got[worst]}, and {wanted[worst]} is right")

    def raises(self, kind, *words):
        """A context in which an error of Kiln's is raised, of Python's `kind`, with these words."""
        return _Raises(self, kind, words)


class _Raises:
    def __init__(self, test, kind, words):
        self.test, self.kind, self.words = test, kind, words

    def __enter__(self):
        return self

    def __exit__(self, kind, error, _):
        self.test.assertIsNotNone(error, f"nothing was raised, and {self.kind.__name__} was to be")
        if not isinstance(error, self.kind):
            return False
        for word in self.words:
            self.test.assertIn(word, str(error))
        return True


def silu(x):
    return x / (1 + np.exp(-x))


def f64(x):
    return np.asarray(x).astype(np.float64)


jit = kiln.default_jit(DEVICE)
