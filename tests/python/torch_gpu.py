"""Proves that tensors on a GPU are computed on torch's current stream, with memory of torch's allocator: with tensors that stand in for a
GPU's, an allocator that counts, and a HIP that records what it is asked. Debian's torch has no GPU, so torch itself takes no part."""

import ctypes
import os
import unittest
from types import SimpleNamespace
from unittest import mock

import torch
from support import KernelTest

import kiln
import kiln.torch
from kiln import torch_memory

STUB = ctypes.CDLL(os.environ["KILN_HIP_PATH"])
STUB.kiln_hip_stub_stream.restype = ctypes.c_void_p
STUB.kiln_hip_stub_launches.restype = ctypes.c_size_t


class OnGpu(torch.Tensor):
    """A tensor of the host that says it is a GPU's; the stub's GPU has the host's memory."""

    is_cuda = property(lambda self: True)
    device = property(lambda self: torch.device("cuda", 0))

    def record_stream(self, stream):
        FAKE.recorded.append((self.data_ptr(), stream))

    @classmethod
    def __torch_function__(cls, function, types, arguments=(), options=None):
        with torch._C.DisableTorchFunctionSubclass():
            return function(*arguments, **(options or {}))


class FakeTorch:
    """What torch_memory uses of torch."""

    uint8 = torch.uint8

    def __init__(self):
        self.stream, self.capturing, self.recorded, self.allocated = 0x1230, False, [], []
        self.cuda = SimpleNamespace(
            current_stream=lambda device: SimpleNamespace(cuda_stream=self.stream),
            is_current_stream_capturing=lambda: self.capturing,
            Stream=type("Stream", (), {}),
            ExternalStream=lambda number: ("external", number),
        )

    def _made(self, kind, shape, dtype, device):
        """At a multiple of 256 bytes, as torch's allocator has them on a GPU."""
        self.allocated.append((kind, shape))
        count = torch.empty(shape, dtype=dtype, device="meta").nbytes
        memory = torch.zeros(count + 256, dtype=torch.uint8)
        start = -memory.data_ptr() % 256
        return memory[start : start + count].view(dtype).view(shape).as_subclass(OnGpu)

    def empty(self, shape, dtype, device):
        return self._made("empty", shape, dtype, device)

    def zeros(self, shape, dtype, device):
        return self._made("zeros", shape, dtype, device)


FAKE = FakeTorch()


def on_gpu(*shape):
    return torch.randn(*shape).half().as_subclass(OnGpu)


@kiln.kernel
def twice(x):
    return kiln.cast("f16", x + x)


@kiln.kernel
def product(a, b):
    return kiln.cast("f16", kiln.matmul_nt(a, b))


class GpuTensors(KernelTest):
    def setUp(self):
        FAKE.__init__()
        patch = mock.patch.object(torch_memory, "torch", FAKE)
        patch.start()
        self.addCleanup(patch.stop)

    def test_the_current_stream_and_the_allocator(self):
        x = on_gpu(3, 64)
        for stream in (0x1230, 0x4560):
            FAKE.stream = stream
            launches, y = STUB.kiln_hip_stub_launches(), twice(x)
            self.assertEqual((STUB.kiln_hip_stub_launches(), STUB.kiln_hip_stub_stream()), (launches + 1, stream))
            self.assertIsInstance(y, OnGpu)
            self.assertEqual((tuple(y.shape), y.dtype), ((3, 64), torch.float16))
        self.assertEqual(FAKE.allocated, [("empty", (3, 64))] * 2)
        self.assertEqual(FAKE.recorded, [])

    def test_a_number_that_lies_in_host_memory(self):
        @kiln.kernel
        def scaled(x, scale):
            return kiln.cast("f16", x * scale)

        y = scaled(on_gpu(3, 64), torch.tensor(0.5))
        self.assertEqual((type(y), STUB.kiln_hip_stub_stream()), (OnGpu, 0x1230))

    def test_another_stream_is_told_to_the_allocator(self):
        kernel, x = twice.kernel(on_gpu(3, 64)), on_gpu(3, 64)
        y = kernel(x=x, stream=0x7890)["out"]
        self.assertEqual(STUB.kiln_hip_stub_stream(), 0x7890)
        self.assertEqual(FAKE.recorded, [(tensor.data_ptr(), ("external", 0x7890)) for tensor in (x, y)])

    def test_workspaces_are_one_a_stream_and_one_a_captured_launch(self):
        a, b = on_gpu(3, 4096), on_gpu(512, 4096)
        kernel = product.kernel(a, b)
        self.assertGreater(kernel.workspace_bytes, 0, "the test wants a product whose sums meet")
        zeros = ("zeros", kernel.workspace_bytes)
        for _ in range(3):
            product(a, b)
        self.assertEqual(FAKE.allocated.count(zeros), 1)
        FAKE.stream = 0x4560
        product(a, b)
        self.assertEqual(FAKE.allocated.count(zeros), 2)
        FAKE.capturing = True
        product(a, b)
        product(a, b)
        self.assertEqual(FAKE.allocated.count(zeros), 4)

    def test_operators(self):
        rmsnorm = kiln.torch.operators["rmsnorm"]
        x, weight = on_gpu(3, 256), on_gpu(256)
        y = rmsnorm._run(x, weight)
        self.assertEqual((type(y), tuple(y.shape), STUB.kiln_hip_stub_stream()), (OnGpu, (3, 256), 0x1230))
        launches = STUB.kiln_hip_stub_launches()
        rmsnorm._run_out(x, weight, y=y)
        self.assertEqual((STUB.kiln_hip_stub_launches(), FAKE.allocated), (launches + 1, [("empty", (3, 256))]))

    def test_views_with_a_stride(self):
        wide = on_gpu(3, 128)
        self.assertIn("strided", twice.spec(wide[:, :64].as_subclass(OnGpu)))
        with self.raises(ValueError, "argument x", "strides"):
            twice(on_gpu(64, 3).t().as_subclass(OnGpu))

    def test_an_emulated_device_takes_none(self):
        with self.raises(ValueError, "it lies on GPU 0", "hip:0"):
            kiln.kernel(lambda x: x + 1, device="emulated:gfx942")(on_gpu(3, 64))


if __name__ == "__main__":
    unittest.main()
