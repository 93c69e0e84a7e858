"""Kiln from Python: fused kernels for AMD Instinct GPUs, written as functions of arrays or as spec texts.

    @kiln.kernel(device="emulated:gfx942")
    def softmax(x):
        e = np.exp(x - x.max(axis=-1, keepdims=True))
        return (e / e.sum(axis=-1, keepdims=True)).astype(x.dtype)

    y = softmax(np.ones((4, 4096), np.float16))

docs/python.md is the guide. Nothing is compiled to install this package: it calls libkiln_c.so.
"""

from . import _library, catalog
from .arrays import Array, array
from .decorator import TracedKernel, kernel
from .device import Device, DeviceArray
from .errors import ArgumentTypeError, CacheMiss, Error, ExecutionError, InternalError, MachineError, Rejected, UserError
from .functions import FUNCTIONS as _functions
from .jit import Bound, Jit, Kernel, Pending, check_spec, default_jit
from .trace import Expr, Spec

__version__ = _library.get("kiln_release")

# exp, silu, select, row_sum, group_absmax, matmul_nt, cast, ...: the functions of specs. `max`, `min`, `abs`, `round` and `pow` are
# Kiln's here, so `from kiln import *` leaves them out.
globals().update(_functions)

__all__ = [
    "ArgumentTypeError",
    "Array",
    "Bound",
    "CacheMiss",
    "Device",
    "DeviceArray",
    "Error",
    "ExecutionError",
    "Expr",
    "InternalError",
    "Jit",
    "Kernel",
    "MachineError",
    "Pending",
    "Rejected",
    "Spec",
    "TracedKernel",
    "UserError",
    "array",
    "catalog",
    "check_spec",
    "default_jit",
    "kernel",
    *(name for name in _functions if name not in ("abs", "max", "min", "pow", "round")),
]
