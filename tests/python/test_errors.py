"""Proves that what is wrong raises Python's own kind of error with Kiln's text, and that functions of specs follow the library."""

import os
import unittest
import warnings

import numpy as np
from support import ARCH, DEVICE, FP8, KernelTest, jit, numbers

import kiln

TEXT = """
kernel scaled  # y = alpha * x
dim rows [1..64]
input x: f16[rows, 256]
scalar alpha: f32
output y: f16[rows, 256] = alpha * x
"""
OTHER = {"gfx942": "gfx950", "gfx950": "gfx942"}[ARCH]


@kiln.kernel(device=DEVICE)
def total(x, y):
    return x + y


class Arguments(KernelTest):
    @classmethod
    def setUpClass(cls):
        cls.kernel = jit.compile(TEXT)

    def test_a_wrong_type_is_a_type_error(self):
        with self.raises(TypeError, "kernel scaled, argument x: it is f32, and the kernel takes f16"):
            self.kernel(x=numbers(2, 256, dtype=np.float32), alpha=1)
        with self.raises(TypeError, "float64", "is no type of Kiln's"):
            self.kernel(x=numbers(2, 256, dtype=np.float64), alpha=1)
        with self.raises(TypeError, "argument alpha: str is neither an array nor a number"):
            self.kernel(x=numbers(2, 256), alpha="much")

    def test_a_wrong_list_of_arguments_is_a_type_error(self):
        with self.raises(TypeError, "kernel scaled, argument alpha: it is missing"):
            self.kernel(x=numbers(2, 256))
        with self.raises(TypeError, "kernel scaled, argument x: it is missing"):
            self.kernel(alpha=1)
        with self.raises(TypeError, "kernel scaled, argument beta", "no such argument"):
            self.kernel(x=numbers(2, 256), alpha=1, beta=2)
        with self.raises(TypeError, "missing a required argument: 'y'"):
            total(numbers(2, 8))

    def test_a_wrong_shape_is_a_value_error(self):
        with self.raises(ValueError, "kernel scaled, argument x", "dimension 1 is 255, and the kernel was compiled for 256"):
            self.kernel(x=numbers(2, 255), alpha=1)
        with self.raises(ValueError, "kernel scaled, argument x", "65", "64"):
            self.kernel(x=numbers(65, 256), alpha=1)
        with self.raises(ValueError, "kernel scaled, argument x: its shape is [256]"):
            self.kernel(x=numbers(256), alpha=1)
        with self.raises(ValueError, "add", "[rows, 255]", "[rows, 256]"):
            total(numbers(2, 255), numbers(2, 256))

    def test_a_wrong_device(self):
        other = kiln.Device(f"emulated:{OTHER}")
        with self.raises(ValueError, "kernel scaled, argument x: it lies on", OTHER, ARCH):
            self.kernel(x=other.upload(numbers(2, 256)), alpha=1)
        with self.raises(ValueError, '"cuda:0" names none', "emulated:ARCH"):
            kiln.Device("cuda:0")
        with self.raises(ValueError, "compiled with no device"):
            kiln.Jit(arch=OTHER).compile(TEXT)(x=numbers(2, 256), alpha=1)
        wrong = {"e4m3fn": "e4m3fnuz", "e4m3fnuz": "e4m3fn"}[FP8]
        with self.raises(ValueError, wrong, FP8):
            jit.compile(f"kernel q dim n input x: f16[n, 64] output y: {wrong}[n, 64] = x")

    def test_bind_takes_arrays_of_the_device(self):
        with self.raises(TypeError, "argument x: it lies in host memory", "upload"):
            self.kernel.bind(x=numbers(2, 256), alpha=1)


class Settings(KernelTest):
    def test_of_a_jit(self):
        missing = kiln.Jit(DEVICE, settings={"KILN_JIT_POLICY": "cache_only", "KILN_CACHE_DIR": "/dev/null/kiln"}, log=lambda line: None)
        with self.raises(kiln.CacheMiss, f"kernel scaled for {ARCH}: no cache has it"):
            missing.compile(TEXT)
        self.assertEqual(missing.stats()["failed"], 1)
        with self.raises(ValueError, "KILN_JIT_POLICY", '"never" is no policy'):
            kiln.Jit(DEVICE, settings={"KILN_JIT_POLICY": "never"})
        with self.raises(ValueError, "setting KILN_POLICY", "there is no such variable"):
            kiln.Jit(DEVICE, settings={"KILN_POLICY": "jit"})

    def test_the_log_is_the_programs(self):
        lines = []
        log = kiln.Jit(DEVICE, settings={"KILN_CACHE_DIR": "/dev/null/kiln", "KILN_JIT_POLICY": "cache_only"}, log=lines.append)
        with self.raises(LookupError):
            log.compile(TEXT)
        self.assertTrue(any("/dev/null/kiln" in line for line in lines), lines)

    def test_a_child_of_fork_is_told(self):
        read, write = os.pipe()
        with warnings.catch_warnings():  # that other threads are there: the child uses nothing of theirs
            warnings.simplefilter("ignore", DeprecationWarning)
            child = os.fork()
        if child == 0:
            try:
                jit.compile(TEXT)
                os.write(write, b"compiled")
            except kiln.UserError as error:
                x = numbers(1, 256)
                right = np.array_equal(total(x, x), 2 * x.astype(np.float32))  # by a Jit that the child makes
                os.write(write, f"{error} The child's own: {right}".encode()[:800])
            os._exit(0)
        os.waitpid(child, 0)
        said = os.read(read, 800).decode()
        self.assertIn("fork", said)
        self.assertIn("The child's own: True", said)
        os.close(read)
        os.close(write)


class Functions(KernelTest):
    def test_errors_in_a_function(self):
        @kiln.kernel(device=DEVICE)
        def branches(x):
            return x if x > 0 else -x

        @kiln.kernel(device=DEVICE)
        def unused(x, y):
            return x + 1

        @kiln.kernel(device=DEVICE)
        def foreign(x):
            return np.cbrt(x)

        @kiln.kernel(device=DEVICE)
        def sum_of_rows(x):
            return x.sum(axis=0)

        x = numbers(2, 64)
        refused = {branches: "kiln.select", foreign: "numpy.cbrt is no function of specs", sum_of_rows: "reduces the last axis"}
        for function, words in refused.items():
            with self.raises(TypeError, words):
                function(x)
        with self.raises(ValueError, "input 'cos': the name is a word of the spec text"):
            kiln.kernel(lambda cos: cos + 1, device=DEVICE)(x)
        with self.raises(ValueError, "unused: its result does not depend on y"):
            unused(x, x)
        with self.raises(TypeError, "silu takes (x), and 2 values are given"):
            kiln.silu(1, 2)

    def test_a_name_that_specs_have_themselves(self):
        @kiln.kernel(device=DEVICE)
        def add(x, y):
            return x + y

        self.assertTrue(add.spec(numbers(2, 64), numbers(2, 64)).startswith("kernel add_kernel\n"))
        self.assertEqual(total.name, "total")

    def test_deep_functions_and_constants(self):
        @kiln.kernel(device=DEVICE)
        def deep(x, *, steps):
            for i in range(steps):
                x = x * 0.5 + (-1e-7 if i % 2 else 1e20)
            return x

        kiln.check_spec(deep.spec(numbers(2, 64), steps=190))


if __name__ == "__main__":
    unittest.main()
