"""Arrays that Kiln takes and gives: NumPy's, torch's, any with DLPack, and its own for types that NumPy has not."""

import ctypes
import math
import sys
from ctypes import POINTER, c_float

import numpy as np

from . import _library, dlpack, dtypes


class Array:
    """Elements in host memory, of a type that NumPy has not: bf16, fp8, e2m1, e8m0. `bits` is an integer array of what lies there.

    Of e2m1 it has half of the columns: two elements share a byte, the first in the low half.
    """

    def __init__(self, bits, dtype):
        self.bits, self.dtype = bits, dtype

    ndim = property(lambda self: self.bits.ndim)
    size = property(lambda self: math.prod(self.shape))

    @property
    def shape(self):
        return self.bits.shape if self.dtype != "e2m1" else (*self.bits.shape[:-1], 2 * self.bits.shape[-1])

    def numpy(self):
        """The numbers as float32, which holds each of them exactly."""
        bits = np.ascontiguousarray(self.bits)
        numbers = np.empty(self.shape, np.float32)
        _library.call("kiln_decode", self.dtype.encode(), bits.ctypes.data, numbers.ctypes.data_as(POINTER(c_float)), self.size)
        return numbers

    def __array__(self, dtype=None, copy=None):
        return self.numpy() if dtype is None else self.numpy().astype(dtype)

    def __dlpack_device__(self):
        return (dlpack.CPU, 0)

    def __dlpack__(self, stream=None, **_):
        bits = np.ascontiguousarray(self.bits)
        return dlpack.lend(bits, bits.ctypes.data, self.dtype, self.shape, (dlpack.CPU, 0))

    def __repr__(self):
        return f"kiln.Array({self.numpy()!r}, dtype={self.dtype!r})"


def empty(shape, dtype):
    """Host memory for elements of any type: a NumPy array, or an Array."""
    if dtype in dtypes.IN_NUMPY:
        return np.empty(shape, dtypes.foreign_name(dtype))
    if dtype == "e2m1":
        if len(shape) == 0 or shape[-1] % 2:
            raise ValueError(f"e2m1{list(shape)}: two elements share a byte; give the last dimension an even size")
        shape = (*shape[:-1], shape[-1] // 2)
    return Array(np.empty(shape, np.uint16 if dtype == "bf16" else np.uint8), dtype)


def array(values, dtype):
    """Numbers rounded to a type of Kiln's, to nearest even; fp8 and integers clamp. A NumPy array, or an Array for bf16 and fp8."""
    dtype = dtypes.type_name(dtype)
    numbers = np.ascontiguousarray(np.asarray(values, np.float32)).reshape(np.shape(values))
    result = empty(numbers.shape, dtype)
    _library.call("kiln_encode", dtype.encode(), numbers.ctypes.data_as(POINTER(c_float)), storage(result).ctypes.data, numbers.size)
    return result


def storage(host):
    """The NumPy array whose memory an array of empty() has."""
    return host.bits if isinstance(host, Array) else host


class View:
    """An array of anybody's as an address. `place`: "host", "device" (this device's memory) or "gpu" (a GPU's, of another library)."""

    def __init__(self, owner, address, dtype, shape, strides, place, ordinal=0, keep=None):
        self.owner, self.address, self.dtype, self.shape, self.strides = owner, address, dtype, tuple(shape), strides
        self.place, self.ordinal, self.keep = place, ordinal, keep

    @property
    def size(self):
        return math.prod(self.shape)

    @property
    def is_contiguous(self):
        if self.strides is None or self.size == 0:
            return True
        expected = 1
        for size, stride in zip(reversed(self.shape), reversed(self.strides)):
            if size != 1 and stride != expected:
                return False
            expected *= size
        return True


def is_torch(value):
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, torch.Tensor)


def is_array(value):
    return isinstance(value, (np.ndarray, Array)) or hasattr(value, "__dlpack__") or hasattr(value, "_kiln_view")


def view(value, name="argument", stream=None):
    """What an array is. Raises TypeError for what is none. `stream`: where an array on a GPU will be used; None: torch's current stream
    for torch's, the default stream for others."""
    if hasattr(value, "_kiln_view"):
        return value._kiln_view()
    if isinstance(value, Array):
        bits = value.bits
        if value.dtype == "e2m1":
            bits = np.ascontiguousarray(bits)
            return View(value, bits.ctypes.data, value.dtype, value.shape, None, "host", keep=bits)
        return View(value, bits.ctypes.data, value.dtype, bits.shape, _strides(bits), "host")
    if isinstance(value, np.ndarray):
        return View(value, value.ctypes.data, dtypes.type_name(value.dtype), value.shape, _strides(value), "host")
    if not hasattr(value, "__dlpack__"):
        raise TypeError(f"{name}: {type(value).__name__} is no array; give one of NumPy, torch or kiln, or one with __dlpack__")
    return _of_dlpack(value, stream)


def _strides(value):
    return tuple(step // value.itemsize for step in value.strides)


def _of_dlpack(value, stream):
    dtype, lent = None, value
    if is_torch(value):
        dtype = dtypes.type_name(value.dtype)
        if dtype.startswith("e"):  # DLPack of many versions of torch has no fp8
            lent = value.view(sys.modules["torch"].uint8)
    # For ROCm DLPack has 0 as the default stream, and a hipStream_t as a number above 2.
    found = dlpack.borrow(lent, stream or current_stream(value) or 0)
    kind, ordinal = found.device
    if kind not in (dlpack.CPU, dlpack.ROCM):
        raise TypeError(f"an array on DLPack's device type {kind} is neither in host memory nor on an AMD GPU")
    place = "host" if kind == dlpack.CPU else "gpu"
    return View(value, found.address, dtype or found.dtype, found.shape, found.strides, place, ordinal, found.keep)


def current_stream(value):
    """torch's stream of a GPU tensor, as a number for Kiln; None, the default stream, for every other array."""
    if not is_torch(value) or not value.is_cuda:
        return None
    return sys.modules["torch"].cuda.current_stream(value.device).cuda_stream or None


def like(first, shape, dtype):
    """Memory for a result of the kind that `first`, an array in host memory or on a GPU, is. Not filled."""
    if is_torch(first):
        torch = sys.modules["torch"]
        return torch.empty(shape, dtype=getattr(torch, dtypes.foreign_name(dtype)), device=first.device)
    return empty(shape, dtype)


def contiguous_bytes(given):
    """The elements of a host view without gaps, in order: an address, their number in bytes, and what to keep meanwhile."""
    count = dtypes.storage_bytes(given.dtype, given.size)
    if given.is_contiguous:
        return given.address, count, given
    element_bytes = dtypes.size_bytes(given.dtype)
    kind = {1: np.uint8, 2: np.uint16, 4: np.uint32}[element_bytes]
    # The last byte that a stride reaches; negative strides are NumPy's alone, which it copies itself.
    if isinstance(given.owner, (np.ndarray, Array)):
        packed = np.ascontiguousarray(storage(given.owner))
    else:
        reach = sum((size - 1) * stride for size, stride in zip(given.shape, given.strides)) + 1
        flat = np.ctypeslib.as_array((ctypes.c_uint8 * (reach * element_bytes)).from_address(given.address)).view(kind)
        steps = tuple(stride * element_bytes for stride in given.strides)
        packed = np.ascontiguousarray(np.lib.stride_tricks.as_strided(flat, given.shape, steps))
    return packed.ctypes.data, count, packed
