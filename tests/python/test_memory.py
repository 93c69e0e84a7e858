"""Proves how arrays come in and go out: device memory, results in place, DLPack, texts, compiles in the background, threads."""

import gc
import threading
import unittest

import numpy as np
from support import ARCH, DEVICE, KernelTest, jit, numbers

import kiln
from kiln import dlpack

ADD = """
kernel add_to
dim n
input x: f32[n, 64]
input sum: f32[n, 64]
output result: f32[n, 64] = sum + x in_place_of sum
output twice: f32[n, 64] = x + x
"""


class Lent:
    """An array that is seen through DLPack alone, as another library's would be."""

    def __init__(self, owner):
        self.owner = owner

    def __dlpack_device__(self):
        return self.owner.__dlpack_device__()

    def __dlpack__(self, stream=None):
        return self.owner.__dlpack__()


class Memory(KernelTest):
    def test_in_place_results_are_the_given_array(self):
        kernel = jit.compile(ADD)
        x, total = numbers(3, 64, dtype=np.float32), numbers(3, 64, seed=2, dtype=np.float32)
        wanted = x + total
        result = kernel(x=x, sum=total)
        self.assertIs(result["result"], total)
        self.close(total, wanted, relative=0, absolute=0)
        self.close(result["twice"], 2 * x, relative=0, absolute=0)

    def test_results_into_a_given_array(self):
        kernel = jit.compile(ADD)
        wide = np.zeros((3, 128), np.float32)
        x = numbers(3, 64, dtype=np.float32)
        result = kernel(x=x, sum=x.copy(), twice=wide[:, ::2])
        self.close(wide[:, ::2], 2 * x, relative=0, absolute=0)
        self.assertEqual(np.abs(wide[:, 1::2]).max(), 0)
        self.assertTrue(np.shares_memory(result["twice"], wide))

    def test_device_arrays_stay_on_the_device(self):
        kernel, device = jit.compile(ADD), jit.device
        x, total = device.upload(numbers(2, 64, dtype=np.float32), "x"), device.empty((2, 64), "f32", "sum")
        total.write(np.zeros((2, 64), np.float32))
        result = kernel(x=x, sum=total)
        self.assertIsInstance(result["twice"], kiln.DeviceArray)
        bound = kernel.bind(x=x, sum=total, twice=result["twice"])
        self.assertGreater(min(bound.grid), 0)
        bound.launch()
        jit.device.synchronize()
        self.close(total.numpy(), 2 * x.numpy(), relative=0, absolute=0)
        with self.assertRaises(BufferError):
            np.from_dlpack(x)
        with self.raises(TypeError, "cannot be copied"):
            total.write(np.zeros((2, 63), np.float32))

    def test_no_rows(self):
        result = jit.compile(ADD)(x=np.zeros((0, 64), np.float32), sum=np.zeros((0, 64), np.float32))
        self.assertEqual(result["twice"].shape, (0, 64))


class Exchange(KernelTest):
    def test_dlpack_in(self):
        x = numbers(3, 64, dtype=np.float32)
        for given in (Lent(x), Lent(np.asfortranarray(x)), Lent(x[:, :])):
            self.close(jit.compile(ADD)(x=given, sum=np.zeros_like(x))["twice"], 2 * x, relative=0, absolute=0)

    def test_dlpack_of_types_that_numpy_has_not(self):
        for dtype in ("bf16", "e4m3fn", "e4m3fnuz", "e5m2", "e5m2fnuz"):
            own = kiln.array(numbers(2, 8), dtype)
            found = dlpack.borrow(own)
            self.assertEqual((found.dtype, found.shape, found.address), (dtype, (2, 8), own.bits.ctypes.data))
        del found
        gc.collect()
        self.assertEqual(len(dlpack._lent), 0)  # every loan has ended

    def test_dlpack_out(self):
        lent = Lent(kiln.array(numbers(2, 8), "bf16"))
        self.assertEqual(kiln.arrays.view(lent).dtype, "bf16")
        # NumPy takes over an array of a type that it knows, and ends the loan with its own.
        values = numbers(2, 8)
        wrapped = kiln.Array(values, "f16")
        taken = np.from_dlpack(wrapped)
        self.assertTrue(np.shares_memory(taken, values))
        self.assertEqual(len(dlpack._lent), 1)
        del taken
        gc.collect()
        self.assertEqual(len(dlpack._lent), 0)

    def test_numbers_of_every_type(self):
        for dtype in ("f32", "f16", "bf16", "e4m3fn", "e4m3fnuz", "e5m2", "e5m2fnuz", "e2m1", "i32", "i8", "u8", "bool"):
            values = kiln.array([[0.0, 1.0], [1.0, 0.0]], dtype)
            self.close(values, [[0, 1], [1, 0]])
        fours = kiln.array([[0.5, -6.0, 100.0, 1.25]], "e2m1")
        self.assertEqual((fours.shape, fours.bits.tolist()), ((1, 4), [[0xF1, 0x27]]))
        self.close(fours, [[0.5, -6, 6, 1]])
        self.close(kiln.array([3.0, 0.25], "e8m0"), [2, 0.25])
        with self.assertRaises(ValueError):
            kiln.array([1.0], "e2m1")
        self.close(kiln.array([1000.0, -1000.0], "i8"), [127, -128])
        self.assertEqual(kiln.array(2.5, "f16").shape, ())


class Texts(KernelTest):
    def test_a_kernel_says_what_it_is(self):
        kernel = jit.compile(ADD, fields=["vec=2"])
        self.assertEqual((kernel.name, kernel.arch, len(kernel.key)), ("add_to", ARCH, 64))
        self.assertEqual(kernel.code_object[:4], b"\x7fELF")
        self.assertIn("vec=2", kernel.meta["schedule"])
        self.assertEqual(kernel.interface["kernel"], "add_to")
        self.assertEqual(kiln.check_spec(ADD), kernel.spec)
        self.assertEqual(kernel.tensors["result"].in_place_of, "sum")
        self.assertEqual(kernel.tensors["twice"].shape, ("n", 64))

    def test_in_the_background(self):
        text = "kernel later dim n input x: f32[n, {0}] output y: f32[n, {0}] = x * 2.0"
        pending = [jit.compile_async(text.format(width)) for width in (64, 128)]
        for one, width in zip(pending, (64, 128)):
            x = numbers(1, width, dtype=np.float32)
            self.close(one.result()(x=x)["y"], 2 * x, relative=0, absolute=0)
            self.assertTrue(one.done())
        with self.raises(ValueError, "spec text, line 1"):
            jit.compile_async("kernel")
        failing = jit.compile_async(ADD, fields=["vec=3"])
        with self.raises(ValueError, "vec"):
            failing.result()

    def test_threads(self):
        results = []

        def work(seed):
            x = numbers(1, 64, seed=seed, dtype=np.float32)
            results.append(np.array_equal(jit.compile(ADD)(x=x, sum=x.copy())["twice"], 2 * x))

        threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(results, [True] * 4)


if __name__ == "__main__":
    unittest.main()
