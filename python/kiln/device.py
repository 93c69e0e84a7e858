"""Devices, and arrays that lie in their memory."""

import math

import numpy as np

from . import _library, arrays, dlpack, dtypes
from .errors import MachineError


MOST_UNUSED_BYTES = 256 << 20
_ANY = object()  # in place of a stream: memory that several may use, which is released to HIP, and HIP waits


class Device(_library.Owned):
    """A GPU ("hip:0") or the CPU model ("emulated:gfx942"). None: what KILN_DEVICE names, hip:0 without it.

    arch: "gfx942"; fp8: its native e4m3, "e4m3fnuz" or "e4m3fn"; is_emulated
    """

    _free = "kiln_device_free"

    def __init__(self, name=None):
        self._handle = _library.make("kiln_device_open", None if name is None else name.encode())
        self.name = name
        self.launched = {}  # kernels by key: their code has to be there until their launches are over
        self.arch = _library.get("kiln_device_arch", self._handle)
        self.fp8 = _library.get("kiln_device_fp8", self._handle)  # its native e4m3
        self.is_emulated = bool(_library.get("kiln_device_is_emulated", self._handle))
        # Memory of results that were given up: addresses by (stream, bytes). The CPU model has none, since it finds uses after the end.
        self._unused, self._unused_bytes = {}, 0

    @property
    def description(self):
        return _library.get("kiln_device_description", self._handle)

    def empty(self, shape, dtype, name="array"):
        """Memory of the device for elements of a type; not filled."""
        return DeviceArray(self, shape, dtypes.type_name(dtype), name)

    def upload(self, values, name="array"):
        """A copy, in the device's memory, of an array in host memory."""
        given = arrays.view(values, name)
        if given.place != "host":
            raise TypeError(f"{name}: it lies in a GPU's memory already")
        copy = self.empty(given.shape, given.dtype, name)
        copy.write(given)
        return copy

    def release_unused(self):
        """Gives back to HIP what is kept for further results: up to 256 MiB, of results that were used on one stream alone."""
        unused, self._unused, self._unused_bytes = self._unused, {}, 0
        for addresses in unused.values():
            while addresses:
                _library.call("kiln_device_release", self._handle, addresses.pop())

    def shares_memory_with(self, other):
        """Whether kernels on `other` reach arrays of this one. Each emulated device has memory of its own."""
        return self is other or (not self.is_emulated and not other.is_emulated and self.name == other.name)

    def synchronize(self, stream=None):
        """Waits for what was launched on a stream."""
        _library.call("kiln_device_synchronize", self._handle, arrays.stream_address(stream))

    def __repr__(self):
        return f"kiln.Device({self.description})"


class DeviceArray:
    """Elements without gaps in the memory of a Device, which ends with it."""

    def __init__(self, device, shape, dtype, name):
        self._address = None
        self.device, self.shape, self.dtype = device, tuple(int(size) for size in shape), dtype
        self.bytes = dtypes.storage_bytes(dtype, math.prod(self.shape))
        self._kind = (device, dtype, self.shape)  # what calls are remembered by
        self._stream = _ANY
        self._address = _library.make("kiln_device_allocate", device._handle, self.bytes, name.encode())

    @classmethod
    def _for_results(cls, kind, bytes, name, stream):
        """Memory for a result of a launch on `stream`, which may be that of an earlier one there: launches of a stream follow one another.
        `name` is bytes."""
        self = cls.__new__(cls)
        self._address = None
        self._kind, self.bytes, self._stream = kind, bytes, stream
        self.device, self.dtype, self.shape = kind
        device = self.device
        unused = device._unused.get((stream, bytes))
        if unused:
            self._address = unused.pop()
            device._unused_bytes -= bytes
        else:
            try:
                self._address = _library.make("kiln_device_allocate", device._handle, bytes, name)
            except MachineError:
                if not device._unused_bytes:
                    raise
                device.release_unused()
                self._address = _library.make("kiln_device_allocate", device._handle, bytes, name)
        return self

    ndim = property(lambda self: len(self.shape))
    size = property(lambda self: math.prod(self.shape))

    def write(self, values, stream=None):
        """Copies an array in host memory, of the same type and shape, to here."""
        given = values if isinstance(values, arrays.View) else arrays.view(values)
        if (given.dtype, given.shape, given.place) != (self.dtype, self.shape, "host"):
            what = f"{given.dtype}{list(given.shape)} in {given.place} memory"
            raise TypeError(f"an array {what} cannot be copied to {self.dtype}{list(self.shape)}")
        address, count, keep = arrays.contiguous_bytes(given)
        _library.call("kiln_device_write", self.device._handle, self._address, address, count, arrays.stream_address(stream))
        del keep

    def read_into(self, address, stream=None):
        _library.call("kiln_device_read", self.device._handle, address, self._address, self.bytes, arrays.stream_address(stream))

    def numpy(self, stream=None):
        """A copy in host memory: a NumPy array, or a kiln.Array for types that NumPy has not."""
        host = arrays.empty(self.shape, self.dtype)
        self.read_into(arrays.storage(host).ctypes.data, stream)
        return host

    def __array__(self, dtype=None, copy=None):
        if copy is False:
            raise ValueError(f"{self!r} lies in a device's memory: np.asarray copies it")
        host = self.numpy()
        return np.asarray(host) if dtype is None else np.asarray(host).astype(dtype)

    def _kiln_view(self):
        self._stream = _ANY  # whoever asks may use it on any
        return arrays.View(self, self._address, self.dtype, self.shape, None, "device")

    def __dlpack_device__(self):
        if self.device.is_emulated:
            raise BufferError(f"{self!r} lies in memory that only Kiln can reach; numpy() copies it")
        return (dlpack.ROCM, int(self.device.name.removeprefix("hip:")) if self.device.name else 0)

    def __dlpack__(self, stream=None, **_):
        device = self.__dlpack_device__()
        self._stream = _ANY
        self.device.synchronize()
        return dlpack.lend(self, self._address, self.dtype, self.shape, device)

    def __del__(self):
        device = self.device if self._address is not None else None
        if device is None or device._handle is None:  # a device that ended took its memory with it
            return
        if self._stream is not _ANY and not device.is_emulated and device._unused_bytes + self.bytes <= MOST_UNUSED_BYTES:
            device._unused.setdefault((self._stream, self.bytes), []).append(self._address)
            device._unused_bytes += self.bytes
        else:
            _library.get("kiln_device_release", device._handle, self._address)

    def __repr__(self):
        return f"kiln.DeviceArray({self.dtype}{list(self.shape)}, {self.device.description})"
