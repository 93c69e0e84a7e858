"""Proves that what used to be wrong in silence is right or an error: byte order, read-only arrays, streams, constants, limits. And that
errors name the argument and the line of the function that is wrong."""

import gc
import os
import threading
import unittest
import weakref

import numpy as np
from support import DEVICE, KernelTest, jit, numbers

import kiln

TEXT = "kernel twice\ndim n\ninput x: f16[n, 64]\noutput y: f16[n, 64] = x + x\n"


@kiln.kernel(device=DEVICE)
def twice(x):
    return kiln.cast("f16", x + x)


class Memory(KernelTest):
    def test_big_endian_arrays_are_refused(self):
        big = numbers(2, 64).astype(">f2")
        with self.raises(TypeError, "argument x", "another order", "astype('float16')"):
            twice(big)
        kernel = jit.compile(TEXT)
        with self.raises(TypeError, "y: ", "another order"):
            kernel(x=numbers(2, 64), y=np.zeros((2, 64), ">f2"))
        with self.raises(TypeError, "another order"):
            jit.device.upload(np.zeros(4, ">i4"))

    def test_read_only_arrays_are_not_written(self):
        kernel = jit.compile(TEXT)
        y = np.zeros((2, 64), np.float16)
        y.flags.writeable = False
        text = bytes(2 * 64 * 2)
        for target in (y, np.frombuffer(text, np.float16).reshape(2, 64)):
            with self.raises(ValueError, "kernel twice, argument y: it is written", "may only be read"):
                kernel(x=numbers(2, 64), y=target)
        self.assertEqual((y.any(), text), (False, bytes(256)))

        in_place = jit.compile("kernel up dim n input x: f16[n, 64] output y: f16[n, 64] = x + 1 in_place_of x")
        with self.raises(ValueError, "kernel up, argument x: it is written"):
            in_place(x=y)
        kernel(x=y)  # an input may be read-only

    def test_read_only_arrays_of_dlpack(self):
        class Lent:
            """NumPy's own export says that it is read-only, from DLPack 1.0 on."""

            def __init__(self, array):
                self.array, self.shape = array, array.shape

            def __dlpack_device__(self):
                return self.array.__dlpack_device__()

            def __dlpack__(self, **options):
                return self.array.__dlpack__(**options)

        y = np.zeros((2, 64), np.float16)
        y.flags.writeable = False
        with self.raises(ValueError, "argument y: it is written"):
            jit.compile(TEXT)(x=numbers(2, 64), y=Lent(y))
        x = numbers(2, 64)
        np.testing.assert_array_equal(np.asarray(twice(Lent(x))), x + x)

    def test_streams_are_streams(self):
        kernel = jit.compile(TEXT)
        x = jit.device.upload(numbers(2, 64))
        bound = kernel.bind(x=x, y=jit.device.empty((2, 64), "f16"))
        for wrong in ("x", -1, 1.5, True, b"x", object()):
            with self.raises(TypeError, "stream", "hipStream_t"):
                bound.launch(wrong)
            with self.raises(TypeError, "stream", "hipStream_t"):
                kernel(x=x, stream=wrong)
        bound.launch(None)
        bound.launch(0)

    def test_numbers_of_numpy_and_int64(self):
        numbers_ = np.array([[1, -7, 2**31 - 1]], np.int64)
        encoded = kiln.array([1, -7, 3], "i64")
        np.testing.assert_array_equal(encoded, [1, -7, 3])
        self.assertEqual(encoded.dtype, np.int64)
        exact = kiln.array([2**24 + 1, -(2**40), 2**40], "i32")
        self.assertEqual(exact.tolist(), [2**24 + 1, -(2**31), 2**31 - 1])
        self.assertEqual(kiln.array(np.array([2**63 + 5], np.uint64), "u8").tolist(), [255])
        self.assertEqual(jit.device.upload(numbers_).numpy().tolist(), numbers_.tolist())

    def test_arrays_of_a_device_are_arrays_of_numpy(self):
        x = numbers(2, 64)
        there = jit.device.upload(x)
        np.testing.assert_array_equal(np.asarray(there), x)
        np.testing.assert_array_equal(np.asarray(there, np.float32), x.astype(np.float32))


class Constants(KernelTest):
    def test_constants_that_look_alike_are_others(self):
        @kiln.kernel(device=DEVICE)
        def scaled(x, *, table):
            return x * table[0]

        x = numbers(2, 64)
        self.close(scaled(x, table=[2.0, 1]), 2 * x.astype(np.float64))
        self.close(scaled(x, table=[3.0, 1]), 3 * x.astype(np.float64))

        class Factor:
            def __init__(self, value):
                self.value = value

            def __repr__(self):
                return "Factor()"

        @kiln.kernel(device=DEVICE)
        def by_factor(x, *, factor):
            return x * factor.value

        self.close(by_factor(x, factor=Factor(2)), 2 * x.astype(np.float64))
        self.close(by_factor(x, factor=Factor(3)), 3 * x.astype(np.float64))
        with self.raises(TypeError, "an array is none"):
            scaled(x, table=np.ones(2))

    def test_calls_by_name_and_with_defaults(self):
        @kiln.kernel(device=DEVICE)
        def combined(x, y, alpha=2.0, *, beta=1):
            return x + y * alpha + beta

        x, y = numbers(2, 64), numbers(2, 64, seed=2)
        wide = x.astype(np.float64), y.astype(np.float64)
        for _ in range(2):  # prepared, and remembered
            self.close(combined(x, y), wide[0] + 2 * wide[1] + 1)
            self.close(combined(x, y, 3.0), wide[0] + 3 * wide[1] + 1)
            self.close(combined(y=x, x=y), wide[1] + 2 * wide[0] + 1)
            self.close(combined(x, y, beta=5), wide[0] + 2 * wide[1] + 5)
            self.close(combined(x, y, alpha=0.5, beta=5), wide[0] + 0.5 * wide[1] + 5)
        self.assertEqual(len(combined._calls), 5)
        self.assertEqual(len(combined._kernels), 2)

    def test_what_is_remembered_keeps_no_array(self):
        for make in (lambda: numbers(5, 64), lambda: jit.device.upload(numbers(6, 64))):
            x = make()
            y = twice(x)
            given, result = weakref.ref(x), weakref.ref(y)
            del x, y
            gc.collect()
            self.assertEqual((given(), result()), (None, None))

    def test_arrays_of_the_host_and_of_the_device_together(self):
        @kiln.kernel(device=DEVICE)
        def scaled(x, scale):
            return kiln.cast("f16", x * scale)

        x, scale = numbers(2, 64), numbers(64, seed=2)
        wanted = (x.astype(np.float32) * scale).astype(np.float16)
        there = jit.device.upload(x)
        for _ in range(2):
            on_host, on_device = scaled(x, jit.device.upload(scale)), scaled(there, scale)
            self.assertEqual((type(on_host), type(on_device)), (np.ndarray, kiln.DeviceArray))
            np.testing.assert_array_equal(on_host, wanted)
            np.testing.assert_array_equal(np.asarray(on_device), wanted)

    def test_threads_share_what_is_remembered(self):
        x, failures = numbers(2, 64), []

        def run():
            for _ in range(20):
                if not np.array_equal(twice(x), x + x):
                    failures.append("wrong")

        threads = [threading.Thread(target=run) for _ in range(4)]
        [thread.start() for thread in threads]
        [thread.join() for thread in threads]
        self.assertEqual(failures, [])


class Errors(KernelTest):
    def test_the_line_of_the_function(self):
        @kiln.kernel(device=DEVICE)
        def wrong(x, y):
            h = x + 1
            return kiln.exp(h * y)

        with self.raises(ValueError, f"{os.path.basename(__file__)}, line ", "in wrong: ", "[rows, 64]", "[rows, 63]", "return kiln.exp(h * y)"):
            wrong(numbers(2, 64), numbers(2, 63))
        with self.raises(TypeError, "wrong, argument y: ", "complex128"):
            wrong(numbers(2, 64), np.zeros((2, 64), np.complex128))
        with self.raises(TypeError, "wrong, argument x: str"):
            wrong("x", numbers(2, 63))

    def test_the_text_that_is_cited(self):
        with self.raises(ValueError, "line 3, column 28: 'z' is not declared", "\n    output y: f16[n, 64] = x + z\n" + " " * 31 + "^"):
            jit.compile("kernel f dim n\ninput x: f16[n, 64]\noutput y: f16[n, 64] = x + z")

    def test_arrays_of_another_function(self):
        kept = []

        @kiln.kernel(device=DEVICE)
        def first(x):
            kept.append(x)
            return x + 1

        first(numbers(2, 64))
        with self.raises(ValueError, "a value of the spec lambda is used in it"):
            kiln.kernel(lambda y: kept[0] + y, device=DEVICE)(numbers(2, 64))
        with self.raises(ValueError, "no spec is being written"):
            kiln.iota([4])

    def test_what_things_are(self):
        kernel = twice.kernel(numbers(2, 64))
        x = jit.device.upload(numbers(2, 64))
        bound = kernel.bind(x=x, out=jit.device.empty((2, 64), "f16"))
        self.assertEqual(repr(twice), "kiln.kernel(twice(x))")
        self.assertIn("kiln.Kernel(twice(x: f16[rows, 64]) -> out: f16[rows, 64]; gfx", repr(kernel))
        self.assertRegex(repr(bound), r"kiln.Bound\(twice\(x, out\), 1 workgroups of \d+ threads\)")
        with kiln.Spec("f") as spec:
            self.assertEqual(repr(spec.input("x", "f16", ["rows", 8]).astype("bf16")), "kiln.Expr(bf16[rows, 8], cast)")


if __name__ == "__main__":
    unittest.main()
