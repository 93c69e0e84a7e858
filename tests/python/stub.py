"""The stub __init__.pyi from what the package has: one signature a function. test_language compares; KILN_UPDATE_GOLDEN=1 writes it."""

import inspect

import kiln

_HEAD = '''# Types of the package kiln. Written by tests/python/stub.py, which a test holds against the package: KILN_UPDATE_GOLDEN=1 writes it anew.
from typing import Any

from . import catalog as catalog
from .arrays import Array as Array, array as array
from .decorator import TracedKernel as TracedKernel, kernel as kernel
from .device import Device as Device, DeviceArray as DeviceArray
from .errors import (
    ArgumentTypeError as ArgumentTypeError,
    CacheMiss as CacheMiss,
    Error as Error,
    ExecutionError as ExecutionError,
    InternalError as InternalError,
    MachineError as MachineError,
    Rejected as Rejected,
    UserError as UserError,
)
from .jit import Bound as Bound, Jit as Jit, Kernel as Kernel, Pending as Pending, check_spec as check_spec, default_jit as default_jit
from .trace import Expr as Expr, Spec as Spec

__version__: str

Value = Expr | float  # an array of the kernel, or a number
'''
_TYPES = {"dtype": "Any", "shape": "tuple[int | str, ...] | list[int | str]", "saturate": "bool", "checked": "bool", "duplicates": "bool"}
_WHOLE = ("group", "cols", "k", "first", "count", "distance", "n", "times", "index")


def text():
    parts = [_HEAD]
    for name, function in kiln.functions.FUNCTIONS.items():
        takes = []
        starred = False
        whole = kiln.trace.WORDS.get(name, {}).get("numbers", 0)
        parameters = list(inspect.signature(function).parameters.values())
        values = [each for each in parameters if each.kind is not each.KEYWORD_ONLY]
        for each in parameters:
            if each.kind is each.KEYWORD_ONLY and not starred:
                takes.append("*")
                starred = True
            if each.kind is each.VAR_POSITIONAL:
                takes.append(f"*{each.name}: Value")
                continue
            is_whole = whole and each in values[-whole:] and each.name in _WHOLE
            kind = _TYPES.get(each.name) or ("int" if is_whole else "Value")
            default = "" if each.default is each.empty else f" = {each.default!r}"
            takes.append(f"{each.name}: {kind if default != ' = None' else kind + ' | None'}{default}")
        gives = "float" if name == "max_finite" else "Expr"
        parts.append(f"def {name}({', '.join(takes)}) -> {gives}: ...")
    return "\n".join(parts) + "\n"
