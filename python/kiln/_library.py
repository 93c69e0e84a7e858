"""libkiln_c.so by ctypes: where it is found, and the functions of kiln_c.h as it has them."""

import ctypes
import os
from ctypes import POINTER, c_char_p, c_double, c_float, c_int, c_int32, c_int64, c_size_t, c_uint32, c_void_p
from pathlib import Path

from .errors import BY_STATUS, Error, MachineError

MAJOR, MINOR = 1, 1  # of the C ABI that this package is written for
NOT_READY = 7
LOG = ctypes.CFUNCTYPE(None, c_void_p, c_char_p)


class Tensor(ctypes.Structure):
    _fields_ = [("data", c_void_p), ("dtype", c_char_p), ("rank", c_int32), ("shape", POINTER(c_int64)), ("strides", POINTER(c_int64))]


class Argument(ctypes.Structure):
    _fields_ = [("name", c_char_p), ("tensor", POINTER(Tensor)), ("number", c_double)]


class Setting(ctypes.Structure):
    _fields_ = [("name", c_char_p), ("value", c_char_p)]


class JitOptions(ctypes.Structure):
    _fields_ = [("size", c_size_t), ("settings", POINTER(Setting)), ("setting_count", c_size_t), ("log", LOG), ("log_context", c_void_p)]


_HANDLE, _TEXT, _OUT = c_void_p, c_char_p, POINTER(c_void_p)
_FIELDS = POINTER(c_char_p)

# Name: (what it gives, what it takes). "status" is checked by call().
_FUNCTIONS = {
    "kiln_error_text": (_TEXT, []),
    "kiln_c_check": ("status", [c_uint32, c_uint32]),
    "kiln_release": (_TEXT, []),
    "kiln_text_free": (None, [c_void_p]),
    "kiln_spec_check": ("status", [_TEXT, _OUT]),
    "kiln_language": (_TEXT, []),
    "kiln_spec_describe": ("status", [_TEXT, _OUT]),
    "kiln_writer_create": ("status", [_TEXT, _OUT]),
    "kiln_writer_free": (None, [_HANDLE]),
    "kiln_writer_add": ("status", [_HANDLE, _TEXT, _OUT]),
    "kiln_writer_text": ("status", [_HANDLE, _OUT]),
    "kiln_catalog": ("status", [_OUT]),
    "kiln_catalog_options": ("status", [_TEXT, _OUT]),
    "kiln_catalog_spec": ("status", [_TEXT, _TEXT, POINTER(Setting), c_size_t, _OUT]),
    "kiln_type_max": ("status", [_TEXT, POINTER(c_double)]),
    "kiln_encode": ("status", [_TEXT, POINTER(c_float), c_void_p, c_size_t]),
    "kiln_decode": ("status", [_TEXT, c_void_p, POINTER(c_float), c_size_t]),
    "kiln_device_open": ("status", [_TEXT, _OUT]),
    "kiln_device_free": (None, [_HANDLE]),
    "kiln_device_arch": (_TEXT, [_HANDLE]),
    "kiln_device_description": (_TEXT, [_HANDLE]),
    "kiln_device_fp8": (_TEXT, [_HANDLE]),
    "kiln_device_is_emulated": (c_int, [_HANDLE]),
    "kiln_device_allocate": ("status", [_HANDLE, c_size_t, _TEXT, _OUT]),
    "kiln_device_release": ("status", [_HANDLE, c_void_p]),
    "kiln_device_write": ("status", [_HANDLE, c_void_p, c_void_p, c_size_t, c_void_p]),
    "kiln_device_read": ("status", [_HANDLE, c_void_p, c_void_p, c_size_t, c_void_p]),
    "kiln_device_synchronize": ("status", [_HANDLE, c_void_p]),
    "kiln_jit_create": ("status", [_HANDLE, POINTER(JitOptions), _OUT]),
    "kiln_jit_create_for": ("status", [_TEXT, POINTER(JitOptions), _OUT]),
    "kiln_jit_free": (None, [_HANDLE]),
    "kiln_jit_arch": (_TEXT, [_HANDLE]),
    "kiln_jit_stats": ("status", [_HANDLE, _OUT]),
    "kiln_jit_compile": ("status", [_HANDLE, _TEXT, _FIELDS, c_size_t, _OUT]),
    "kiln_jit_compile_async": ("status", [_HANDLE, _TEXT, _FIELDS, c_size_t, _OUT]),
    "kiln_pending_wait": ("status", [_HANDLE, c_int64, _OUT]),
    "kiln_pending_free": (None, [_HANDLE]),
    "kiln_kernel_free": (None, [_HANDLE]),
    "kiln_kernel_name": (_TEXT, [_HANDLE]),
    "kiln_kernel_arch": (_TEXT, [_HANDLE]),
    "kiln_kernel_key": (_TEXT, [_HANDLE]),
    "kiln_kernel_origin": (_TEXT, [_HANDLE]),
    "kiln_kernel_spec": (_TEXT, [_HANDLE]),
    "kiln_kernel_meta": (_TEXT, [_HANDLE]),
    "kiln_kernel_interface": (_TEXT, [_HANDLE]),
    "kiln_kernel_workspace_bytes": (c_size_t, [_HANDLE]),
    "kiln_kernel_code_object": (c_void_p, [_HANDLE, POINTER(c_size_t)]),
    "kiln_kernel_load": ("status", [_HANDLE, _HANDLE]),
    "kiln_kernel_bind": ("status", [_HANDLE, _HANDLE, POINTER(Argument), c_size_t, _OUT]),
    "kiln_bound_free": (None, [_HANDLE]),
    "kiln_bound_grid": (None, [_HANDLE, POINTER(c_uint32), POINTER(c_uint32)]),
    "kiln_bound_launch": ("status", [_HANDLE, c_void_p]),
    "kiln_call_create": ("status", [_HANDLE, _HANDLE, POINTER(Argument), c_size_t, _OUT]),
    "kiln_call_free": (None, [_HANDLE]),
    "kiln_call_launch": ("status", [_HANDLE, c_void_p, c_void_p, c_void_p]),
}


def _candidates():
    named = os.environ.get("KILN_C_LIBRARY")
    if named:
        return [named]
    name = f"libkiln_c.so.{MAJOR}"
    beside = [Path(__file__).parent / "lib" / name]
    # An installed tree: PREFIX/share/kiln/python/kiln with PREFIX/lib or PREFIX/lib/TRIPLET.
    prefix = Path(__file__).resolve().parents[4] if len(Path(__file__).resolve().parents) > 4 else None
    if prefix is not None:
        beside += [prefix / "lib" / name, *sorted(prefix.glob(f"lib/*/{name}")), prefix / "lib64" / name]
    return [str(file) for file in beside if file.exists()] + [name]


def _load():
    tried = []
    for candidate in _candidates():
        try:
            return ctypes.CDLL(candidate), candidate
        except OSError as error:
            tried.append(str(error))
    raise MachineError(
        f"libkiln_c.so.{MAJOR}: it could not be loaded ({'; '.join(tried)}); "
        "install Kiln (cmake --install), or set KILN_C_LIBRARY to the file"
    )


_functions = {}


def _function(name):
    function = _functions.get(name)
    if function is None:
        function = _functions[name] = getattr(_library, name)
        gives, function.argtypes = _FUNCTIONS[name]
        function.restype = c_int if gives == "status" else gives
    return function


_library, path = _load()  # path: other libraries of Kiln's lie beside it


def raise_error(status):
    """Raises this thread's latest error of Kiln."""
    raise BY_STATUS.get(status, Error)(_function("kiln_error_text")().decode())


def call(name, *arguments):
    """Calls a function that gives a status. Returns it; raises Kiln's error for every status but ok and not ready."""
    status = _function(name)(*arguments)
    if status not in (0, NOT_READY):
        raise_error(status)
    return status


def get(name, *arguments):
    """Calls a function that gives a value: a text becomes a str."""
    value = _function(name)(*arguments)
    return value.decode() if isinstance(value, bytes) else value


def make(name, *arguments):
    """Calls a function whose last parameter takes a handle or an address, and returns that."""
    handle = c_void_p()
    call(name, *arguments, ctypes.byref(handle))
    return handle.value


def text(name, *arguments):
    """Calls a function whose last parameter takes a text of the caller's, and returns it as a str."""
    address = make(name, *arguments)
    try:
        return ctypes.string_at(address).decode()
    finally:
        get("kiln_text_free", address)


class Owned:
    """What ends with this object: a handle, which the function `_free` of the library takes."""

    _handle = None

    def __del__(self):
        handle, self._handle = self._handle, None
        if handle is not None:
            get(self._free, handle)


def sizes(numbers):
    """A C array of int64."""
    return (c_int64 * len(numbers))(*numbers)


call("kiln_c_check", MAJOR, MINOR)
# The hot paths call these by themselves, and look at the status.
bound_launch, call_launch, device_allocate = _function("kiln_bound_launch"), _function("kiln_call_launch"), _function("kiln_device_allocate")
