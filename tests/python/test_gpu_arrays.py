"""Proves that arrays on a GPU go to HIP by address, on the stream that is given. With a HIP that records what it is asked.

What torch itself does on a GPU has not been run: there is none here.
"""

import ctypes
import os
import unittest

import numpy as np
from support import KernelTest, numbers

import kiln
from kiln import dlpack

STUB = ctypes.CDLL(os.environ["KILN_HIP_PATH"])
STUB.kiln_hip_stub_stream.restype = ctypes.c_void_p
STUB.kiln_hip_stub_launches.restype = ctypes.c_size_t


class OnGpu:
    """A tensor of another library on GPU 0, whose memory the stub takes from the host."""

    def __init__(self, values):
        memory = np.zeros(values.nbytes + 256, np.uint8)
        start = -memory.ctypes.data % 256
        self.values = memory[start : start + values.nbytes].view(values.dtype).reshape(values.shape)
        self.values[...] = values
        self.shape, self.streams = values.shape, []

    def __dlpack_device__(self):
        return (dlpack.ROCM, 0)

    def __dlpack__(self, stream=None):
        self.streams.append(stream)
        return dlpack.lend(self, self.values.ctypes.data, "f16", self.shape, (dlpack.ROCM, 0))


@kiln.kernel
def twice(x):
    return kiln.cast("f16", x + x)


class GpuArrays(KernelTest):
    def test_a_launch_on_a_stream(self):
        jit = kiln.Jit("hip:0")
        kernel = jit.compile("kernel twice dim n input x: f16[n, 64] output y: f16[n, 64] = x + x")
        x, y = OnGpu(numbers(2, 64)), OnGpu(numbers(2, 64))
        before = STUB.kiln_hip_stub_launches()
        bound = kernel.bind(x=x, y=y)
        for stream in (0x1230, 0x4560):
            bound.launch(stream)
            self.assertEqual(STUB.kiln_hip_stub_stream(), stream)
        self.assertEqual(STUB.kiln_hip_stub_launches(), before + 2)
        self.assertEqual(x.streams, [0])  # asked once, for the default stream
        kernel(x=x, y=y, stream=0x1230)
        self.assertEqual(x.streams[-1], 0x1230)

    def test_results_are_on_the_gpu_of_the_first_array(self):
        before = STUB.kiln_hip_stub_launches()
        y = twice(OnGpu(numbers(2, 64)))
        self.assertEqual(STUB.kiln_hip_stub_launches(), before + 1)
        self.assertIsInstance(y, kiln.DeviceArray)
        self.assertEqual((y.shape, y.dtype, y.__dlpack_device__()), ((2, 64), "f16", (dlpack.ROCM, 0)))
        self.assertEqual(dlpack.borrow(y).address, y._address)

    def test_an_emulated_device_takes_none(self):
        kernel = kiln.Jit("emulated:gfx942").compile("kernel twice dim n input x: f16[n, 64] output y: f16[n, 64] = x + x")
        with self.raises(ValueError, "kernel twice, argument x: it lies on GPU 0", "hip:0"):
            kernel(x=OnGpu(numbers(2, 64)))


if __name__ == "__main__":
    unittest.main()
