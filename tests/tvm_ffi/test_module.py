"""Proves that manifests, cache folders and specs are modules of tvm-ffi: results, choices between kernels, streams, errors."""

import ctypes
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

import numpy as np
import tvm_ffi

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "python"))
from support import ARCH, DEVICE, FP8, FP8_MAX, KernelTest, f64, numbers

import kiln
from kiln import dlpack
from kiln.tvm_ffi import load_module

MANIFEST = """{"catalog": "softmax", "cols": [256, 512], "dtype": "f32"}
{"spec": "kernel scaled dim rows input x: f16[rows, $cols] scalar factor: f32 output y: f16[rows, $cols] = x * factor", "cols": 64}
"""
IN_PLACE = """kernel joined dim n
input x: f16[n, 64]
input r: f16[n, 64]
output h: f16[n, 64] = x + r in_place_of r
"""


def softmax(x):
    e = np.exp(f64(x) - f64(x).max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def tensor(array):
    return tvm_ffi.from_dlpack(array)


class Files(KernelTest):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def file(self, name, text):
        path = Path(self.folder.name) / name
        path.write_text(text)
        return path


class Modules(Files):
    def test_a_manifest(self):
        module = load_module(self.file("kernels.jsonl", MANIFEST), DEVICE)
        self.assertEqual(list(module["kiln.names"]()), ["scaled", "softmax"])
        self.assertEqual(module.get_function_doc("softmax").splitlines()[1], "softmax(x: f32[rows, 512], y: f32[rows, 512] out)")
        for cols in (256, 512):
            x, y = numbers(3, cols, dtype=np.float32), np.empty((3, cols), np.float32)
            module["softmax"](tensor(x), tensor(y))
            self.close(y, softmax(x), 1e-5, 1e-7)
        x, y = numbers(2, 64), np.empty((2, 64), np.float16)
        module["scaled"](tensor(x), 0.5, tensor(y))
        self.close(y, f64(x) * 0.5)

    def test_a_cache_folder_needs_no_compiler(self):
        manifest, folder = self.file("kernels.jsonl", MANIFEST), Path(self.folder.name) / "kernels"
        subprocess.run([os.environ["KILN_CLI"], "aot", manifest, "--arch", ARCH, "-o", folder, "--quiet"], check=True)
        code = f"""
import sys; sys.path.insert(0, {str(Path(__file__).parent)!r})
from test_module import *
module = load_module({str(folder)!r}, DEVICE)
module["kiln.compile_all"]()
x, y = numbers(3, 512, dtype=np.float32), np.empty((3, 512), np.float32)
module["softmax"](tensor(x), tensor(y))
print(abs(y - softmax(x)).max() < 1e-6)
"""
        nowhere = {**os.environ, "KILN_HIPRTC_PATH": "/nowhere/libhiprtc.so", "KILN_CACHE_DIR": str(Path(self.folder.name) / "own")}
        told = subprocess.run([sys.executable, "-c", code], env=nowhere, check=True, capture_output=True, text=True).stdout
        self.assertEqual(told.split(), ["True"])
        other = {"gfx942": "gfx950", "gfx950": "gfx942"}[ARCH]
        with self.raises(ValueError, f"it holds no kernel for {other}"):
            load_module(folder, f"emulated:{other}")

    def test_a_spec_with_the_devices_fp8(self):
        text = "kernel quant dim n input x: f32[n, 64] output q: $fp8[n, 64] = clamp(x, -$fp8_max, $fp8_max)"
        os.environ["KILN_DEVICE"] = DEVICE
        module = tvm_ffi.load_module(str(self.file("quant.kiln", text)))  # by the file's ending
        self.assertIn(f"q: {FP8}[n, 64] out", module.get_function_doc("quant"))
        x = numbers(2, 64, dtype=np.float32, scale=1000)
        q = kiln.array(np.zeros((2, 64)), FP8)
        module["quant"](tensor(x), tensor(q))
        self.close(q.numpy(), np.clip(x, -FP8_MAX, FP8_MAX), 0.07, 0.1)

    def test_in_place_and_strides(self):
        module = load_module(self.file("joined.kiln", IN_PLACE), DEVICE)
        x, r = numbers(4, 64, seed=1), numbers(4, 64, seed=2)
        wanted = f64(x) + f64(r)
        module["joined"](tensor(x), tensor(r))
        self.close(r, wanted)
        with self.raises(ValueError, "kernel joined, argument x: its strides are [1, 4]", "copy it"):
            module["joined"](tensor(np.asfortranarray(x)), tensor(r))

    def test_errors(self):
        module = load_module(self.file("kernels.jsonl", MANIFEST), DEVICE)
        x = numbers(3, 100, dtype=np.float32)
        with self.raises(ValueError, "kernel softmax: none takes (f32[3, 100], f32[3, 100]); there are:", "softmax(x: f32[rows, 256]"):
            module["softmax"](tensor(x), tensor(x))
        with self.raises(TypeError, "kernel softmax, argument 2: it is", "give a tensor or a number"):
            module["softmax"](tensor(x), "y")
        with self.assertRaises(AttributeError):
            module["relu"]
        with self.raises(ValueError, "nothing.jsonl", "cannot be read"):
            load_module(Path(self.folder.name) / "nothing.jsonl", DEVICE)


class Streams(Files):
    def test_tensors_on_a_gpu_go_by_address_on_the_stream_of_the_caller(self):
        stub = ctypes.CDLL(os.environ["KILN_HIP_PATH"])
        stub.kiln_hip_stub_stream.restype = ctypes.c_void_p
        stub.kiln_hip_stub_launches.restype = ctypes.c_size_t
        module = load_module(self.file("kernels.jsonl", MANIFEST), "hip:0")
        memory = np.zeros(4 * 256, np.uint8)
        start = -memory.ctypes.data % 256

        class OnGpu:
            def __init__(self, at):
                self.at = memory.ctypes.data + start + at

            def __dlpack_device__(self):
                return (dlpack.ROCM, 0)

            def __dlpack__(self, **_):
                return dlpack.lend(self, self.at, "f16", (2, 64), (dlpack.ROCM, 0))

        x, y = tensor(OnGpu(0)), tensor(OnGpu(256))
        before = stub.kiln_hip_stub_launches()
        for stream in (0x1230, 0x4560):
            with tvm_ffi.use_raw_stream(tvm_ffi.device("rocm", 0), stream):
                module["scaled"](x, 2.0, y)
            self.assertEqual(stub.kiln_hip_stub_stream(), stream)
        self.assertEqual(stub.kiln_hip_stub_launches(), before + 2)
        with self.raises(ValueError, "it lies on a device of DLPack's type 1", "kDLROCM"):
            module["scaled"](tensor(numbers(2, 64)), 2.0, tensor(numbers(2, 64)))


if __name__ == "__main__":
    unittest.main()
