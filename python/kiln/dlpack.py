"""DLPack by ctypes: tensors of other libraries as addresses, and Kiln's arrays for other libraries.

Layout: DLManagedTensor and DLManagedTensorVersioned of dlpack.h 1.0. Arrays are lent as the former, which every consumer knows; of others
the latter is asked for, which says what may not be written.
"""

import ctypes
from ctypes import POINTER, c_char_p, c_int32, c_int64, c_uint8, c_uint16, c_uint32, c_uint64, c_void_p
from types import SimpleNamespace

from . import dtypes

CPU, ROCM = 1, 10


class _Tensor(ctypes.Structure):
    _fields_ = [
        ("data", c_void_p),
        ("device_type", c_int32),
        ("device_id", c_int32),
        ("rank", c_int32),
        ("code", c_uint8),
        ("bits", c_uint8),
        ("lanes", c_uint16),
        ("shape", POINTER(c_int64)),
        ("strides", POINTER(c_int64)),
        ("byte_offset", c_uint64),
    ]


_Deleter = ctypes.CFUNCTYPE(None, c_void_p)


class _Managed(ctypes.Structure):
    _fields_ = [("tensor", _Tensor), ("context", c_void_p), ("deleter", _Deleter)]


class _Versioned(ctypes.Structure):
    _fields_ = [
        ("major", c_uint32),
        ("minor", c_uint32),
        ("context", c_void_p),
        ("deleter", _Deleter),
        ("flags", c_uint64),
        ("tensor", _Tensor),
    ]


_python = ctypes.pythonapi
_python.PyCapsule_GetPointer.restype = c_void_p
_python.PyCapsule_GetPointer.argtypes = [ctypes.py_object, c_char_p]
_capsule_new = ctypes.PYFUNCTYPE(ctypes.py_object, c_void_p, c_char_p, c_void_p)(("PyCapsule_New", _python))
_is_valid = ctypes.PYFUNCTYPE(ctypes.c_int, c_void_p, c_char_p)(("PyCapsule_IsValid", _python))
_pointer_of = ctypes.PYFUNCTYPE(c_void_p, c_void_p, c_char_p)(("PyCapsule_GetPointer", _python))
_NAME, _VERSIONED_NAME = b"dltensor", b"dltensor_versioned"
_READ_ONLY = 1  # DLPACK_FLAG_BITMASK_READ_ONLY


def borrow(tensor, stream=None):
    """What a DLPack producer's tensor is: address, dtype, shape, strides (elements, None: contiguous), device (type, number).

    `stream`: where a GPU's tensor will be used, as DLPack numbers streams. The memory stays the producer's; it is there as long as the
    result is.
    """
    device = tuple(int(part) for part in tensor.__dlpack_device__())
    options = {} if device[0] == CPU else {"stream": stream}
    try:
        capsule = tensor.__dlpack__(max_version=(1, 0), **options)
    except TypeError:  # a producer of before DLPack 1.0
        capsule = tensor.__dlpack__(**options)
    writable = True
    if _is_valid(id(capsule), _VERSIONED_NAME):
        managed = ctypes.cast(_python.PyCapsule_GetPointer(capsule, _VERSIONED_NAME), POINTER(_Versioned)).contents
        writable = not managed.flags & _READ_ONLY
    else:
        managed = ctypes.cast(_python.PyCapsule_GetPointer(capsule, _NAME), POINTER(_Managed)).contents
    found = managed.tensor
    rank = found.rank
    return SimpleNamespace(
        keep=capsule,  # nobody takes it over, so its end ends the loan
        address=(found.data or 0) + found.byte_offset,
        dtype=dtypes.of_dlpack(found.code, found.bits, found.lanes),
        shape=tuple(found.shape[:rank]),
        strides=tuple(found.strides[:rank]) if found.strides else None,
        device=device,
        writable=writable,
    )


_lent = {}  # what lives for a consumer, by the address of its DLManagedTensor


@_Deleter
def _end_loan(address):
    _lent.pop(address, None)


# Ends the loan of a capsule that nobody took over. Its argument is no py_object: the capsule has no references any more.
@ctypes.PYFUNCTYPE(None, c_void_p)
def _end_capsule(capsule):
    if _is_valid(capsule, _NAME):
        _end_loan(_pointer_of(capsule, _NAME))


def lend(owner, address, dtype, shape, device):
    """A capsule of contiguous elements, for from_dlpack of another library. `owner` lives until that is done with it."""
    code, bits = dtypes.dlpack_code(dtype)
    sizes = (c_int64 * len(shape))(*shape)
    kind, ordinal = device
    tensor = _Tensor(
        data=address, device_type=kind, device_id=ordinal, rank=len(shape), code=code, bits=bits, lanes=1, shape=sizes
    )
    managed = _Managed(tensor=tensor, deleter=_end_loan)
    key = ctypes.addressof(managed)
    _lent[key] = (managed, sizes, owner)
    return _capsule_new(key, _NAME, ctypes.cast(_end_capsule, c_void_p))
