"""Kiln's element types by name, and those of NumPy, torch and DLPack that are the same."""

import sys
from ctypes import byref, c_double

from . import _library

# Kiln's name: NumPy's name (also torch's and ml_dtypes'), and DLPack's code and bits.
_TYPES = {
    "f32": ("float32", 2, 32),
    "f16": ("float16", 2, 16),
    "bf16": ("bfloat16", 4, 16),
    "e4m3fn": ("float8_e4m3fn", 10, 8),
    "e4m3fnuz": ("float8_e4m3fnuz", 11, 8),
    "e5m2": ("float8_e5m2", 12, 8),
    "e5m2fnuz": ("float8_e5m2fnuz", 13, 8),
    "e2m1": ("float4_e2m1fn", 17, 4),  # two in a byte, the first in the low half
    "e8m0": ("float8_e8m0fnu", 14, 8),
    "i32": ("int32", 0, 32),
    "i64": ("int64", 0, 64),  # row indices alone
    "i8": ("int8", 0, 8),
    "u8": ("uint8", 1, 8),
    "bool": ("bool", 6, 8),
}
NAMES = tuple(_TYPES)
_BY_FOREIGN = {foreign: name for name, (foreign, _, _) in _TYPES.items()}
# torch packs two e2m1 in an element of its own; as bytes they are Kiln's.
_BY_DLPACK = {(code, bits): name for name, (_, code, bits) in _TYPES.items()}
IN_NUMPY = frozenset(("f32", "f16", "i32", "i64", "i8", "u8", "bool"))
_known = {}  # of dtypes of other libraries, by themselves


def type_name(dtype):
    """Kiln's name of a type: of "f16", numpy.float16, numpy.dtype("float16") or torch.float16. "fp8" stays as it is."""
    if isinstance(dtype, str) and (dtype in _TYPES or dtype == "fp8"):
        return dtype
    try:
        return _known[dtype]
    except (KeyError, TypeError):
        pass
    if dtype is float or dtype is bool:
        return "f32" if dtype is float else "bool"
    order = getattr(dtype, "byteorder", "=")
    if order in "<>" and (order == "<") != (sys.byteorder == "little"):
        raise TypeError(f"{dtype} has its bytes in another order than devices have them; convert it: x.astype('{dtype.newbyteorder('=').name}')")
    foreign = getattr(dtype, "name", None) or getattr(dtype, "__name__", None) or str(dtype)
    found = _BY_FOREIGN.get(foreign.removeprefix("torch."))
    if found is None:
        raise TypeError(f"{dtype!r} is no type of Kiln's; those are {', '.join(_TYPES)}")
    try:
        _known[dtype] = found
    except TypeError:  # not hashable
        pass
    return found


def foreign_name(dtype):
    """NumPy's and torch's name of a type of Kiln's: float16 of f16."""
    return _TYPES[dtype][0]


def torch_dtype(dtype):
    """torch's type of a type of Kiln's. Two elements of e2m1 are a byte."""
    import torch

    return torch.uint8 if dtype == "e2m1" else getattr(torch, _TYPES[dtype][0])


def dlpack_code(dtype):
    return _TYPES[dtype][1:]


def of_dlpack(code, bits, lanes):
    found = _BY_DLPACK.get((code, bits)) if lanes == 1 else None
    if found is None:
        raise TypeError(f"DLPack's type (code {code}, {bits} bits, {lanes} lanes) is no type of Kiln's; those are {', '.join(_TYPES)}")
    return found


def storage_bytes(dtype, elements):
    """What elements of a type take in memory; e2m1 has two in a byte."""
    return (elements * _TYPES[dtype][2] + 7) // 8


def size_bytes(dtype):
    """Of one element. e2m1 has none that is whole."""
    return _TYPES[dtype][2] // 8


def max_finite(dtype):
    """The largest finite number of a type."""
    largest = c_double()
    _library.call("kiln_type_max", dtype.encode(), byref(largest))
    return largest.value
