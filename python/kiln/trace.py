"""Expr: what an array is while a decorated function runs. Operators and functions note what is to be computed.

Shapes and types follow docs/guide.md. If one cannot be right, Kiln says so when it reads the text, in its own words.
"""

import json

from . import _library, dtypes
from .errors import UserError

# NumPy's functions that a spec has under another name. Others have the same name in both. Kiln's max and min ignore NaN, as fmax.
_UFUNCS = {
    "subtract": "sub",
    "multiply": "mul",
    "divide": "div",
    "true_divide": "div",
    "negative": "neg",
    "absolute": "abs",
    "fabs": "abs",
    "fmax": "max",
    "fmin": "min",
    "less": "lt",
    "less_equal": "le",
    "greater": "gt",
    "greater_equal": "ge",
    "equal": "eq",
    "not_equal": "ne",
    "reciprocal": "rcp",
    "rint": "round",
    "power": "pow",
}
OPERATIONS = {entry["name"]: entry for entry in json.loads(_library.get("kiln_operations"))}
REDUCTIONS = ("sum", "mean", "max", "min", "absmax", "absmax_nan")
PRODUCTS = (
    "matmul_nt",
    "matmul_nt_scaled",
    "matmul_nt_w4",
    "matmul_nt_mx",
    "matmul_nt_mx_mx",
    "matmul_nt_quantised",
    "matmul_nt_normed",
)


class Expr:
    """A value of the spec. `shape` has numbers, and names of run-time sizes; `dtype` is Kiln's name of the type."""

    __hash__ = object.__hash__

    def __init__(self, op, operands=(), shape=(), dtype="f32", text=None, extra=()):
        self.op, self.operands, self.shape, self.dtype = op, tuple(operands), tuple(shape), dtype
        self.text = text  # of a leaf
        self.extra = tuple(extra)  # numbers and types among the arguments of a call

    ndim = property(lambda self: len(self.shape))

    def astype(self, dtype):
        """Rounds to a type: every rounding is explicit."""
        return cast(dtype, self)

    def sum(self, axis=-1, keepdims=True):
        return self._reduce("row_sum", axis, keepdims)

    def mean(self, axis=-1, keepdims=True):
        return self._reduce("row_mean", axis, keepdims)

    def max(self, axis=-1, keepdims=True):
        return self._reduce("row_max", axis, keepdims)

    def min(self, axis=-1, keepdims=True):
        return self._reduce("row_min", axis, keepdims)

    def _reduce(self, op, axis, keepdims):
        if axis not in (-1, self.ndim - 1) or not keepdims:
            raise TypeError(f"{op} reduces the last axis, which stays with size 1: use axis=-1, keepdims=True")
        return row(op, self)

    def __array_ufunc__(self, ufunc, method, *inputs, **options):
        name = _UFUNCS.get(ufunc.__name__, ufunc.__name__)
        if method != "__call__" or options or name not in OPERATIONS:
            raise TypeError(f"numpy.{ufunc.__name__} is no function of specs; those are {', '.join(sorted(OPERATIONS))}")
        return call(name, *inputs)

    def __bool__(self):
        raise TypeError("an array of a kernel has no truth value while the kernel is written: use kiln.select(condition, a, b)")

    def __iter__(self):
        raise TypeError("an array of a kernel cannot be taken apart while the kernel is written")

    def __abs__(self):
        return call("abs", self)

    def __neg__(self):
        return call("neg", self)

    def __invert__(self):
        return call("logical_not", self)

    def __pow__(self, power):
        return call("mul", self, self) if isinstance(power, (int, float)) and power == 2 else call("pow", self, power)


def _operators():
    names = {"add": "add", "sub": "sub", "mul": "mul", "truediv": "div", "and": "logical_and", "or": "logical_or"}
    for python, op in names.items():
        setattr(Expr, f"__{python}__", lambda self, other, op=op: call(op, self, other))
        setattr(Expr, f"__r{python}__", lambda self, other, op=op: call(op, other, self))
    for op in ("lt", "le", "gt", "ge", "eq", "ne"):
        setattr(Expr, f"__{op}__", lambda self, other, op=op: call(op, self, other))


_operators()


def expression(value):
    """An Expr of a number, or the Expr itself."""
    if isinstance(value, Expr):
        return value
    try:
        number = float(value)
    except (TypeError, ValueError):
        raise TypeError(f"{type(value).__name__} is neither an array of the kernel nor a number") from None
    text = {float("inf"): "inf", float("-inf"): "-inf"}.get(number, "nan" if number != number else repr(number))
    return Expr("constant", text=text if number >= 0 or number != number else f"({text})")


def broadcast(*shapes):
    """NumPy's rule. Shapes that do not fit give the longest of them: Kiln refuses the text, with both in its words."""
    result = []
    for i in range(1, max((len(shape) for shape in shapes), default=0) + 1):
        sizes = [shape[-i] for shape in shapes if len(shape) >= i]
        result.append(next((size for size in sizes if size != 1), 1))
    return tuple(reversed(result))


def call(name, *values):
    """A pointwise function of docs/guide.md by its name."""
    entry = OPERATIONS.get(name)
    if entry is None:
        raise UserError(f"{name}: it is no pointwise function of specs; those are {', '.join(sorted(OPERATIONS))}")
    if len(values) != entry["operands"]:
        raise TypeError(f"{name} takes {entry['operands']} operands, and {len(values)} are given")
    operands = [expression(value) for value in values]
    return Expr(name, operands, broadcast(*(operand.shape for operand in operands)), entry["gives"])


def cast(dtype, value, *, saturate=True):
    """Rounds to a type, to nearest even. fp8 clamps unless `saturate` is False; "fp8" is the device's own e4m3."""
    value = expression(value)
    dtype = dtypes.type_name(dtype)
    return Expr("cast" if saturate else "cast_nonsaturating", [value], value.shape, dtype, extra=[dtype])


def row(name, value):
    """row_sum, row_mean, row_max, row_min, row_absmax: of the last axis, which stays with size 1."""
    value = expression(value)
    return Expr(name, [value], value.shape[:-1] + (1,) if value.shape else (), "f32")


def group(name, value, count):
    """group_sum and its like: of `count` consecutive columns."""
    value = expression(value)
    shape = value.shape
    if shape and isinstance(shape[-1], int):
        shape = shape[:-1] + (-(-shape[-1] // count),)
    return Expr(name, [value], shape, "f32", extra=[count])


def ungroup(value, count, cols):
    """One value a group back to one a column."""
    value = expression(value)
    return Expr("ungroup", [value], value.shape[:-1] + (cols,), value.dtype, extra=[count, cols])


def scaled(name, value, scale):
    """scale_up and scale_down."""
    operands = [expression(value), expression(scale)]
    return Expr(name, operands, broadcast(*(operand.shape for operand in operands)), "f32")


def product(name, operands, extra=()):
    """a x b^T: [m, k] x [n, k] to [m, n]."""
    operands = [expression(operand) for operand in operands]
    shape = tuple(operand.shape[0] if operand.shape else 1 for operand in operands[:2])
    return Expr(name, operands, shape, "f32", extra=extra)


def columns(value, first, count):
    """Some columns of a product."""
    value = expression(value)
    return Expr("columns", [value], value.shape[:-1] + (count,), "f32", extra=[first, count])


def nodes(outputs):
    """Every Expr that the outputs rest on, operands before what uses them, each once."""
    order, seen, stack = [], set(), [(value, False) for value in reversed(outputs)]
    while stack:
        node, done = stack.pop()
        if done:
            order.append(node)
        elif id(node) not in seen:
            seen.add(id(node))
            stack.append((node, True))
            stack.extend((operand, False) for operand in reversed(node.operands))
    return order


def _call_text(node, texts, fp8):
    arguments = [texts[id(operand)] for operand in node.operands]
    extra = [fp8 if part == "fp8" else str(part) for part in node.extra]
    arguments = extra + arguments if node.op.startswith("cast") else arguments + extra
    return f"{node.op}({', '.join(arguments)})"


def spec_text(name, declarations, outputs, fp8):
    """The text of a spec. `outputs`: Exprs by name. What is used more than once becomes a `let`."""
    order = nodes(list(outputs.values()))
    uses = {id(node): 0 for node in order}
    for node in order:
        for operand in node.operands:
            uses[id(operand)] += 1
    taken = {line.split()[1].rstrip(":") for line in declarations} | set(outputs)
    lines, texts, depth, count = [f"kernel {name}", *declarations], {}, {}, 0
    for node in order:
        below = max((depth[id(operand)] for operand in node.operands), default=0)
        texts[id(node)] = node.text if node.text is not None else _call_text(node, texts, fp8)
        depth[id(node)] = below + 1
        if node.operands and (uses[id(node)] > 1 or below > 50):  # Kiln's parser takes 200 levels
            count += 1
            while f"v{count}" in taken:
                count += 1
            lines.append(f"let v{count} = {texts[id(node)]}")
            texts[id(node)], depth[id(node)] = f"v{count}", 0
    for output, value in outputs.items():
        dtype = fp8 if value.dtype == "fp8" else value.dtype
        extents = ", ".join(str(extent) for extent in value.shape)
        lines.append(f"output {output}: {dtype}[{extents}] = {texts[id(value)]}")
    return "\n".join(lines) + "\n"
