"""Arguments of kernels as C takes them, the checks that need Python, and Kiln's errors as Python's kinds."""

import ctypes
import re

from . import _library, arrays
from .errors import ArgumentTypeError, UserError


class Arguments:
    """A C array of (name, View or None, number). Keeps what it points to."""

    def __init__(self, given):
        self.list, self._keep = (_library.Argument * len(given))(), []
        for slot, (name, view, number) in zip(self.list, given):
            slot.name, slot.number = name.encode(), number
            if view is not None:
                slot.tensor = ctypes.pointer(self._tensor(view))

    def _tensor(self, view):
        shape, strides = _library.sizes(view.shape), None if view.strides is None else _library.sizes(view.strides)
        dtype = view.dtype.encode()
        self._keep.append((view, shape, strides, dtype))
        return _library.Tensor(view.address, dtype, len(view.shape), shape, strides)


def require_device(kernel):
    if kernel.device is None:
        raise UserError(f"kernel {kernel.name}: it was compiled with no device; make the Jit with one to launch")


def require_place(kernel, name, view):
    """That the kernel's device reaches an array that lies on a device."""
    subject, here = f"kernel {kernel.name}, argument {name}", kernel.device
    if view.place == "device" and not view.owner.device.shares_memory_with(here):
        there = view.owner.device.description
        raise UserError(f"{subject}: it lies on {there}, and the kernel runs on {here.description}; upload it there, or use its Jit")
    if view.place == "gpu" and here.is_emulated:
        raise UserError(
            f"{subject}: it lies on GPU {view.ordinal}, and the kernel runs on {here.description}; make the Jit for hip:{view.ordinal}"
        )


def require_writable(kernel, name, view):
    """That an array which the kernel writes may be written."""
    if view.writable:
        return
    declared = kernel.tensors.get(name)
    is_overwritten = any(tensor.in_place_of == name for tensor in kernel.tensors.values())
    if is_overwritten or (declared is not None and declared.kind == "output"):
        raise UserError(f"kernel {kernel.name}, argument {name}: it is written, and the array may only be read; give a copy of it")


def number(name, value):
    try:
        return float(value)
    except (TypeError, ValueError):
        raise TypeError(f"argument {name}: {type(value).__name__} is neither an array nor a number") from None


def as_python(error, kernel, names, types):
    """Kiln's words in Python's kind of error: types, and arguments that are missing or too many, are a TypeError."""
    named = re.match(rf"kernel {kernel.name}, argument (\w+): ", str(error))
    name = named and named.group(1)
    declared = kernel.tensors.get(name)
    wrong_type = declared is not None and name in types and types[name] != declared.dtype
    if name and (wrong_type or name not in names or "no such argument" in str(error)):
        return ArgumentTypeError(str(error))
    return error
