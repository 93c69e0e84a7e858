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
    """Numbers rounded to a type of Kiln's, to nearest even by way of f32; fp8 and integers clamp. Whole numbers for a type of whole ones
    stay exact. A NumPy array, or an Array for bf16, fp8 and types of MX."""
    dtype = dtypes.type_name(dtype)
    given = np.asarray(values)
    if dtype in ("i32", "i64", "i8", "u8") and given.dtype.kind in "iub":
        limits = np.iinfo(dtypes.foreign_name(dtype))
        if given.dtype.kind == "u":  # NumPy compares it with negative limits as f64
            given = np.minimum(given, limits.max)
        return np.clip(given.astype(np.int64), limits.min, limits.max).astype(dtypes.foreign_name(dtype))
    numbers = np.ascontiguousarray(np.asarray(values, np.float32)).reshape(np.shape(values))
    result = empty(numbers.shape, dtype)
    _library.call("kiln_encode", dtype.encode(), numbers.ctypes.data_as(POINTER(c_float)), storage(result).ctypes.data, numbers.size)
    return result


def storage(host):
    """The NumPy array whose memory an array of empty() has."""
    return host.bits if isinstance(host, Array) else host


class View:
    """An array of anybody's as an address. `place`: "host", "device" (this device's memory) or "gpu" (a GPU's, of another library).
    `strides` count elements; None: contiguous. `writable` is False where the owner forbids it."""

    def __init__(self, owner, address, dtype, shape, strides, place, ordinal=0, keep=None, writable=True):
        self.owner, self.address, self.dtype, self.shape, self.strides = owner, address, dtype, tuple(shape), strides
        self.place, self.ordinal, self.keep, self.writable = place, ordinal, keep, writable

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
    """What an array is. Raises TypeError for what is none. `stream`: where an array of DLPack on a GPU will be used; None: the default
    stream."""
    try:
        return _view(value, stream)
    except (TypeError, BufferError) as error:
        raise TypeError(f"{name}: {error}") from None


def _view(value, stream):
    if hasattr(value, "_kiln_view"):
        return value._kiln_view()
    if isinstance(value, Array):
        bits = value.bits
        if value.dtype == "e2m1":
            bits = np.ascontiguousarray(bits)
            return View(value, bits.ctypes.data, value.dtype, value.shape, None, "host", keep=bits, writable=bits is value.bits and bits.flags.writeable)
        return View(value, bits.ctypes.data, value.dtype, bits.shape, _strides(bits), "host", writable=bits.flags.writeable)
    if isinstance(value, np.ndarray):
        dtype = dtypes.type_name(value.dtype)
        return View(value, value.ctypes.data, dtype, value.shape, _strides(value), "host", writable=value.flags.writeable)
    if is_torch(value):
        return _of_torch(value)
    if not hasattr(value, "__dlpack__"):
        raise TypeError(f"{type(value).__name__} is no array; give one of NumPy, torch or kiln, or one with __dlpack__")
    # For ROCm DLPack has 0 as the default stream, and a hipStream_t as a number above 2.
    found = dlpack.borrow(value, stream or 0)
    kind, ordinal = found.device
    if kind not in (dlpack.CPU, dlpack.ROCM):
        raise TypeError(f"it lies on DLPack's device type {kind}, which is neither host memory nor an AMD GPU")
    place = "host" if kind == dlpack.CPU else "gpu"
    return View(value, found.address, found.dtype, found.shape, found.strides, place, ordinal, found.keep, found.writable)


def _strides(value):
    if value.itemsize and any(step % value.itemsize for step in value.strides):
        raise TypeError(f"its strides {value.strides} are no multiples of its element's {value.itemsize} bytes; copy it")
    return tuple(step // value.itemsize for step in value.strides)


def _of_torch(value):
    torch = sys.modules["torch"]
    kind = value.device.type
    if value.layout != torch.strided or kind not in ("cpu", "cuda"):
        raise TypeError(f"a torch tensor of {value.layout} on {value.device} has no address that a kernel could take")
    if value.requires_grad and torch.is_grad_enabled():
        raise TypeError("it requires a gradient, and kernels have no derivatives; use torch.no_grad() or x.detach()")
    shape, strides = tuple(value.shape), tuple(value.stride())
    if value.dtype == getattr(torch, "float4_e2m1fn_x2", None):  # two elements each
        shape, strides = (*shape[:-1], 2 * shape[-1]), (*(2 * stride for stride in strides[:-1]), 1)
        dtype = "e2m1"
    else:
        dtype = dtypes.type_name(value.dtype)
    return View(value, value.data_ptr(), dtype, shape, strides, "host" if kind == "cpu" else "gpu", value.device.index or 0)


def as_declared(given, dtype):
    """A view of bytes as elements of a type that other libraries lack: e2m1, two a byte, and e8m0. Else the view itself."""
    if given.dtype != "u8" or dtype not in ("e2m1", "e8m0") or not given.shape:
        return given
    each = 2 if dtype == "e2m1" else 1
    strides = given.strides and (*(each * stride for stride in given.strides[:-1]), given.strides[-1])
    shape = (*given.shape[:-1], each * given.shape[-1])
    return View(given.owner, given.address, dtype, shape, strides, given.place, given.ordinal, given.keep, given.writable)


def current_stream(value):
    """torch's stream of a GPU tensor, as a number for Kiln; None, the default stream, for every other array."""
    if not is_torch(value) or not value.is_cuda:
        return None
    return sys.modules["torch"].cuda.current_stream(value.device).cuda_stream or None


def stream_address(stream):
    """A hipStream_t as a number: of a number, torch.cuda.Stream, or anything with __cuda_stream__. None: the default stream."""
    if hasattr(stream, "__cuda_stream__"):
        stream = stream.__cuda_stream__()[1]
    elif hasattr(stream, "cuda_stream"):
        stream = stream.cuda_stream
    if stream is None:
        return None
    if type(stream) is not int or not 0 <= stream < 1 << 64:
        raise TypeError(f"stream {stream!r}: a stream is a hipStream_t as a number, a torch.cuda.Stream, or None for the default stream")
    return stream or None


def like(first, shape, dtype):
    """Memory for a result of the kind that `first`, an array in host memory or on a GPU, is. Not filled."""
    if is_torch(first):
        torch = sys.modules["torch"]
        return torch.empty(_packed(shape, dtype), dtype=dtypes.torch_dtype(dtype), device=first.device)
    return empty(shape, dtype)


def _packed(shape, dtype):
    return (*shape[:-1], shape[-1] // 2) if dtype == "e2m1" and shape else shape


def contiguous_bytes(given):
    """The elements of a host view without gaps, in order: an address, their number in bytes, and what to keep meanwhile."""
    count = dtypes.storage_bytes(given.dtype, given.size)
    if given.is_contiguous:
        return given.address, count, given
    if isinstance(given.owner, (np.ndarray, Array)):
        packed = np.ascontiguousarray(storage(given.owner))
    else:
        packed = np.ascontiguousarray(strided(given))
    return packed.ctypes.data, count, packed


def strided(given):
    """A host view with gaps as an array of integers of its elements' size. Strides are not negative: those are NumPy's alone."""
    element_bytes = dtypes.size_bytes(given.dtype)
    if element_bytes == 0:
        raise TypeError(f"{given.dtype}{list(given.shape)} has gaps between its rows; copy it")
    kind = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64}[element_bytes]
    reach = sum((size - 1) * stride for size, stride in zip(given.shape, given.strides)) + 1
    flat = np.ctypeslib.as_array((ctypes.c_uint8 * (reach * element_bytes)).from_address(given.address)).view(kind)
    steps = tuple(stride * element_bytes for stride in given.strides)
    return np.lib.stride_tricks.as_strided(flat, given.shape, steps)
