"""Spec and Expr: a spec that is written in Python. Every operation is a statement that Kiln reads at once, so that shapes, types and errors
are Kiln's own, and an error comes at the line that is wrong."""

import contextvars
import json
import numbers
import re

from . import _library, dtypes, errors
from .errors import UserError

WORDS = {word["name"]: word for word in json.loads(_library.get("kiln_language"))}
_active = contextvars.ContextVar("kiln_spec", default=None)


def active():
    """The Spec that is being written by this thread."""
    spec = _active.get()
    if spec is None:
        raise UserError("no spec is being written here; use functions of specs under kiln.kernel, or in `with kiln.Spec(...)`")
    return spec


class Spec(_library.Owned):
    """A spec, statement by statement.

        with kiln.Spec("softmax") as spec:
            x = spec.input("x", "f16", ["rows", 4096])
            e = kiln.exp(x - kiln.row_max(x))
            spec.output("y", e / kiln.row_sum(e), "f16")
        kernel = jit.compile(spec.text())

    fp8: what "fp8" is, the e4m3 of an architecture: "e4m3fnuz" (gfx942) or "e4m3fn" (gfx950)
    """

    _free = "kiln_writer_free"

    def __init__(self, name, *, fp8="e4m3fn"):
        self._handle = _library.make("kiln_writer_create", name.encode())
        self.name, self.fp8, self._values, self._tokens = name, fp8, 0, []
        self.dims, self.inputs, self.scalars, self.outputs = {}, {}, {}, {}
        self.before_product = None  # called with the word and its operands

    def __enter__(self):
        self._tokens.append(_active.set(self))
        return self

    def __exit__(self, *_):
        _active.reset(self._tokens.pop())

    def dim(self, name, min=None, max=None):
        """Declares a run-time size, with bounds if they are given. Returns its name, for shapes."""
        bounds = "" if min is None and max is None else f" [{'' if min is None else min}..{'' if max is None else max}]"
        self._add(f"dim {name}{bounds}")
        self.dims[name] = (min, max)
        return name

    def input(self, name, dtype, shape, *, strided=False, preshuffled=False):
        """Declares a tensor. `shape` has numbers, and names of run-time sizes."""
        layout = " strided" if strided else " preshuffled" if preshuffled else ""
        declared = self._add(f"input {name}: {self.type_text(dtype)}{self.shape_text(shape)}{layout}")
        self.inputs[name] = Expr(self, name, declared, "input")
        return self.inputs[name]

    def scalar(self, name, dtype="f32"):
        """Declares a number that is given at launch: f32 or i32."""
        self.scalars[name] = Expr(self, name, self._add(f"scalar {name}: {dtypes.type_name(dtype)}"), "scalar")
        return self.scalars[name]

    def output(self, name, value, dtype=None, *, in_place_of=None, strided=False):
        """Declares a result, rounded to `dtype` (None: the value's own type)."""
        value = self.value(value)
        tail = (f" in_place_of {in_place_of}" if in_place_of else "") + (" strided" if strided else "")
        dtype = self.type_text(value.dtype if dtype is None else dtype)
        self._add(f"output {name}: {dtype}{self.shape_text(value.shape)} = {value.text}{tail}")
        self.outputs[name] = value

    def text(self):
        """The canonical text. Raises UserError when the spec is ill-formed."""
        return _library.text("kiln_writer_text", self._handle)

    def value(self, value):
        """An Expr of a number, or the Expr itself."""
        if isinstance(value, Expr):
            value = value.settled()
            if value.spec is not self:
                raise UserError(f"spec {self.name}: a value of the spec {value.spec.name} is used in it; give it as an argument")
            return value
        return Expr(self, _number(value), {"dtype": "f32", "shape": []}, "constant")

    def let(self, op, operands, text):
        """A value by its text, with a name of its own."""
        while True:
            self._values += 1
            name = f"value_{self._values}"
            if name not in self.inputs and name not in self.scalars and name not in self.dims:
                break
        return Expr(self, name, self._add(f"let {name} = {text}"), op, operands)

    def call(self, name, operands, before=(), behind=()):
        """A word of specs with its operands; `before` and `behind` them stand texts of types, shapes, numbers, options."""
        operands = [self.value(operand) for operand in operands]
        if self.before_product is not None and WORDS[name]["kind"] == "product":
            self.before_product(name, operands)
        texts = [*before, *(operand.text for operand in operands), *(str(part) for part in behind)]
        return self.let(name, operands, f"{name}({', '.join(texts)})")

    def type_text(self, dtype):
        """The type's name in the text; "fp8" is the device's own."""
        name = dtypes.type_name(dtype)
        return self.fp8 if name == "fp8" else name

    def shape_text(self, shape):
        for extent in shape:
            if isinstance(extent, str) and extent not in self.dims:
                self.dim(extent)
        return f"[{', '.join(str(extent) for extent in shape)}]"

    def _add(self, statement):
        try:
            return json.loads(_library.text("kiln_writer_add", self._handle, statement.encode()))
        except UserError as error:
            raise errors.at_callers_line(re.sub(r"^spec text, line \d+, column \d+: ", "", str(error))) from None

    def __repr__(self):
        return f"kiln.Spec({self.name}: {', '.join(self.inputs)} -> {', '.join(self.outputs)})"


def _number(value):
    if isinstance(value, numbers.Integral) and not isinstance(value, bool):
        return f"({int(value)})" if value < 0 else str(int(value))
    try:
        number = float(value)
    except (TypeError, ValueError):
        raise TypeError(f"{type(value).__name__} is neither an array of the kernel nor a number") from None
    if number != number:
        return "nan"
    text = {float("inf"): "inf", float("-inf"): "-inf"}.get(number, repr(number))
    return f"({text})" if text.startswith("-") else text


class Expr:
    """A value of a spec: an array that is known by its shape and type. Operators, methods and functions say what is to be computed.

    shape   numbers, and names of run-time sizes; dtype: Kiln's name of the type. All maths is f32.
    """

    __hash__ = object.__hash__
    __array_priority__ = 1000

    def __init__(self, spec, text, declared, op, operands=()):
        self.spec, self.text, self.op, self.operands = spec, text, op, tuple(operands)
        self.shape, self.dtype, self.overwrites = tuple(declared["shape"]), declared["dtype"], None

    ndim = property(lambda self: len(self.shape))

    def settled(self):
        """This value, as statements name it."""
        return self

    @property
    def T(self):
        """The transposed matrix: for `a @ b.T`, which is kiln.matmul_nt(a, b), and else kiln.transpose."""
        return Transposed(self)

    def transpose(self):
        return Transposed(self)

    def astype(self, dtype):
        """Rounds to a type: every rounding is explicit."""
        return cast(dtype, self)

    def sum(self, axis=None, keepdims=False):
        return self._row("row_sum", axis, keepdims)

    def mean(self, axis=None, keepdims=False):
        return self._row("row_mean", axis, keepdims)

    def max(self, axis=None, keepdims=False):
        return self._row("row_max", axis, keepdims)

    def min(self, axis=None, keepdims=False):
        return self._row("row_min", axis, keepdims)

    def argmax(self, axis=None, keepdims=False):
        return self._row("row_argmax", axis, keepdims)

    def argmin(self, axis=None, keepdims=False):
        return self._row("row_argmin", axis, keepdims)

    def cumsum(self, axis=None):
        self._last_axis("cumsum", axis)
        return call("row_cumsum", self)

    def clip(self, min, max):
        return call("clamp", self, min, max)

    def round(self, decimals=0):
        if decimals != 0:
            raise TypeError("round goes to whole numbers: decimals=0")
        return call("round", self)

    def repeat(self, repeats, axis=None):
        self._last_axis("repeat", axis)
        return self.spec.call("repeat", [self], behind=[repeats])

    def _last_axis(self, name, axis):
        if axis not in (-1, self.ndim - 1):
            raise TypeError(f"{name} goes along the last axis: write axis=-1")

    def _row(self, op, axis, keepdims):
        if axis not in (-1, self.ndim - 1) or not keepdims:
            name = op.removeprefix("row_")
            raise TypeError(
                f"{name}: {op} reduces the last axis, which stays with size 1; write {name}(axis=-1, keepdims=True), or kiln.{op}(x)"
            )
        return call(op, self)

    def __getitem__(self, index):
        index = index if isinstance(index, tuple) else (index,)
        last = index[-1]
        outer = index[:-1]
        if not all(part is Ellipsis or part == slice(None) for part in outer) or not isinstance(last, slice) or last.step not in (None, 1):
            raise TypeError("an array of a kernel is sliced in its columns alone, x[..., a:b], and rows are taken with kiln.gather")
        first, stop, _ = last.indices(self.shape[-1])
        return self.spec.call("columns", [self], behind=[first, max(0, stop - first)])

    def __matmul__(self, other):
        if not isinstance(other, Transposed):
            raise TypeError("products take the second matrix as [n, k]: write a @ b.T, or kiln.matmul_nt(a, b)")
        return self.spec.call("matmul_nt", [self, other.of])

    def __array_ufunc__(self, ufunc, method, *inputs, **options):
        from . import numpy_names

        return numpy_names.ufunc(ufunc, method, inputs, options)

    def __array_function__(self, function, types, arguments, options):
        from . import numpy_names

        return numpy_names.function(function, arguments, options)

    def __bool__(self):
        raise TypeError("an array of a kernel has no truth value while the kernel is written: use kiln.select(condition, a, b)")

    def __iter__(self):
        raise TypeError("an array of a kernel cannot be taken apart while the kernel is written")

    def __pos__(self):
        return self

    def __pow__(self, power):
        return call("mul", self, self) if isinstance(power, (int, float)) and power == 2 else call("pow", self, power)

    def __rpow__(self, base):
        return call("pow", base, self)

    def __repr__(self):
        return f"kiln.Expr({self.dtype}[{', '.join(str(extent) for extent in self.shape)}], {self.op})"


class Transposed(Expr):
    """x.T: the right side of a product, or kiln.transpose(x) anywhere else."""

    def __init__(self, of):
        super().__init__(of.spec, None, {"shape": of.shape[::-1], "dtype": of.dtype}, "transpose", [of])
        self.of = of

    T = property(lambda self: self.of)

    def settled(self):
        return self.spec.call("transpose", [self.of])


def _operators():
    names = {"add": "add", "sub": "sub", "mul": "mul", "truediv": "div", "and": "logical_and", "or": "logical_or"}
    for python, op in names.items():
        setattr(Expr, f"__{python}__", lambda self, other, op=op: _binary(op, self, other))
        setattr(Expr, f"__r{python}__", lambda self, other, op=op: _binary(op, self, other, swapped=True))
    for python, op in {"abs": "abs", "neg": "neg", "invert": "logical_not"}.items():
        setattr(Expr, f"__{python}__", lambda self, op=op: call(op, self))
    for op in ("lt", "le", "gt", "ge", "eq", "ne"):
        setattr(Expr, f"__{op}__", lambda self, other, op=op: _binary(op, self, other))


def _binary(op, value, other, swapped=False):
    if not isinstance(other, Expr) and not hasattr(other, "__float__"):
        return NotImplemented
    return call(op, other, value) if swapped else call(op, value, other)


_operators()


def call(name, *values):
    """A word of specs that takes values alone."""
    spec = next((value.spec for value in values if isinstance(value, Expr)), None) or active()
    return spec.call(name, values)


def cast(dtype, value, *, saturate=True):
    """Rounds to a type, to nearest even. fp8 clamps unless `saturate` is False; "fp8" is the device's own e4m3."""
    spec = value.spec if isinstance(value, Expr) else active()
    return spec.call("cast" if saturate else "cast_nonsaturating", [value], before=[spec.type_text(dtype)])


def overwrite(target, value):
    """`value` as a result that is written into the memory of `target`, an input of its shape and type."""
    if not isinstance(target, Expr) or target.op != "input":
        raise TypeError("overwrite: its first argument is an array that the kernel gets")
    result = value.spec.value(value) if isinstance(value, Expr) else target.spec.value(value)
    marked = Expr(result.spec, result.text, {"shape": result.shape, "dtype": target.dtype}, result.op, result.operands)
    marked.overwrites = target.text
    return marked


def nodes(values):
    """Every Expr that the values rest on, each once."""
    seen, stack = {}, list(values)
    while stack:
        node = stack.pop()
        if id(node) not in seen:
            seen[id(node)] = node
            stack.extend(node.operands)
    return list(seen.values())


__all__ = ["Expr", "Spec", "cast", "overwrite"]
