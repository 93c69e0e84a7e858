"""Devices, and arrays that lie in their memory."""

import math

from . import _library, arrays, dlpack, dtypes


class Device:
    """A GPU ("hip:0") or the CPU model ("emulated:gfx942"). None: what KILN_DEVICE names, hip:0 without it."""

    def __init__(self, name=None):
        self._handle = None
        self._handle = _library.make("kiln_device_open", None if name is None else name.encode())
        self.name = name
        self.launched = {}  # kernels by key: their code has to be there until their launches are over
        self.arch = _library.get("kiln_device_arch", self._handle)
        self.fp8 = _library.get("kiln_device_fp8", self._handle)  # its native e4m3
        self.is_emulated = bool(_library.get("kiln_device_is_emulated", self._handle))

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

    def shares_memory_with(self, other):
        """Whether kernels on `other` reach arrays of this one. Each emulated device has memory of its own."""
        return self is other or (not self.is_emulated and not other.is_emulated and self.name == other.name)

    def synchronize(self, stream=None):
        _library.call("kiln_device_synchronize", self._handle, stream)

    def __del__(self):
        if self._handle is not None:
            handle, self._handle = self._handle, None
            _library.get("kiln_device_free", handle)

    def __repr__(self):
        return f"kiln.Device({self.description})"


class DeviceArray:
    """Elements without gaps in the memory of a Device, which ends with it."""

    def __init__(self, device, shape, dtype, name):
        self._address = None
        self.device, self.shape, self.dtype = device, tuple(int(size) for size in shape), dtype
        self.bytes = dtypes.storage_bytes(dtype, math.prod(self.shape))
        self._address = _library.make("kiln_device_allocate", device._handle, self.bytes, name.encode())

    def write(self, values, stream=None):
        """Copies an array in host memory, of the same type and shape, to here."""
        given = values if isinstance(values, arrays.View) else arrays.view(values)
        if (given.dtype, given.shape, given.place) != (self.dtype, self.shape, "host"):
            what = f"{given.dtype}{list(given.shape)} in {given.place} memory"
            raise TypeError(f"an array {what} cannot be copied to {self.dtype}{list(self.shape)}")
        address, count, keep = arrays.contiguous_bytes(given)
        _library.call("kiln_device_write", self.device._handle, self._address, address, count, stream)
        del keep

    def read_into(self, address, stream=None):
        _library.call("kiln_device_read", self.device._handle, address, self._address, self.bytes, stream)

    def numpy(self, stream=None):
        """A copy in host memory: a NumPy array, or a kiln.Array for types that NumPy has not."""
        host = arrays.empty(self.shape, self.dtype)
        self.read_into(arrays.storage(host).ctypes.data, stream)
        return host

    def _kiln_view(self):
        return arrays.View(self, self._address, self.dtype, self.shape, None, "device")

    def __dlpack_device__(self):
        if self.device.is_emulated:
            raise BufferError(f"{self!r} lies in memory that only Kiln can reach; numpy() copies it")
        return (dlpack.ROCM, int(self.device.name.removeprefix("hip:")) if self.device.name else 0)

    def __dlpack__(self, stream=None, **_):
        device = self.__dlpack_device__()
        self.device.synchronize()
        return dlpack.lend(self, self._address, self.dtype, self.shape, device)

    def __del__(self):
        if self._address is not None and self.device._handle is not None:  # a device that ended took its memory with it
            _library.get("kiln_device_release", self.device._handle, self._address)

    def __repr__(self):
        return f"kiln.DeviceArray({self.dtype}{list(self.shape)}, {self.device.description})"
