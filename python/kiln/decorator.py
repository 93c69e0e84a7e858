"""kiln.kernel: a Python function of arrays becomes a spec, is compiled for the sizes that come, and launched."""

import functools
import inspect
import math
import numbers
import operator
import os
import re
import weakref

from . import arrays, trace
from .calls import Call, kind_of, remember
from .errors import UserError
from .jit import check_spec, default_jit

MOST_ROWS_OF_PRODUCTS = 128  # of matmul_nt and its like: docs/gemm.md


def kernel(function=None, *, device=None, jit=None, sizes=None, bounds=None):
    """Makes a kernel of a function of arrays.

    Parameters that take arrays become inputs; those that take numbers become scalars, given at launch; keyword-only ones are
    constants of the spec: numbers, texts, lists, anything hashable. The function returns one value, a tuple, or a dict of them by name.

    Sizes are compiled in, but for one, "rows": the first size of the first array with two or more dimensions, and of every other such
    array whose first size is the same. Operands of products other than the first are compiled in whole.

    device   where it runs ("emulated:gfx942"); None: the GPU of the first array, else what KILN_DEVICE names
    jit      a Jit to use instead
    sizes    names for sizes that are known at launch, by parameter: {"table": ("slots",), "ids": ("tokens",)}; None is a number
    bounds   of such names: {"tokens": (1, 64)}
    """
    if function is None:
        return functools.partial(kernel, device=device, jit=jit, sizes=sizes, bounds=bounds)
    return TracedKernel(function, device, jit, sizes or {}, bounds or {})


_all = weakref.WeakSet()


def _forget():
    for traced in _all:
        traced._calls.clear()


os.register_at_fork(after_in_child=_forget)  # a child makes Jits of its own


class TracedKernel:
    """What kiln.kernel makes of a function. Thread-safe: at worst two threads write the same spec."""

    def __init__(self, function, device, jit, sizes, bounds):
        functools.update_wrapper(self, function)
        self._function, self._device, self._jit, self._sizes, self._bounds = function, device, jit, sizes, bounds
        self.name = _kernel_name(function)
        self._signature = inspect.signature(function)
        self._fixed, self._kernels, self._calls = {}, {}, {}
        parameters = self._signature.parameters.values()
        self._constants = frozenset(parameter.name for parameter in parameters if parameter.kind is parameter.KEYWORD_ONLY)
        for parameter in self._signature.parameters.values():
            if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
                raise TypeError(f"{function.__name__}: a kernel has a fixed list of parameters, and {parameter} is none")
        for name in sizes:
            if name not in self._signature.parameters:
                raise TypeError(f"{function.__name__}: sizes names {name}, which is no parameter")
        _all.add(self)

    def __call__(self, *positional, **named):
        key = tuple(map(kind_of, positional))
        if named:
            key += tuple([(name, _constant(value) if name in self._constants else kind_of(value)) for name, value in named.items()])
        found = self._calls.get(key)
        if found is None:
            return self._first_call(key, positional, named)
        call, unpack, order = found
        return unpack(call(positional if order is None else _in_order(order, positional, named)))

    def _first_call(self, key, positional, named):
        asked = _Asked(self, positional, named)
        kernel = self._kernel(asked)
        values = list(asked.given.values())
        call, unpack = Call(kernel, asked.given, values), asked.unpacker([output.name for output in kernel.outputs])
        order = [name if name in named else i if i < len(positional) else (value,) for i, (name, value) in enumerate(asked.given.items())]
        if not any(kind is None or kind[-1] is None for kind in key if not isinstance(kind, type)):
            remember(self._calls, key, (call, unpack, None if order == list(range(len(positional))) else order))
        return unpack(call(values))

    def kernel(self, *positional, **named):
        """The compiled Kernel for arguments like these."""
        return self._kernel(_Asked(self, positional, named))

    def spec(self, *positional, **named):
        """The text of the spec for arguments like these."""
        return self._write(_Asked(self, positional, named))[0]

    def _kernel(self, asked):
        # Which first sizes are operands of products is known once the function has run for arguments of this kind.
        key = (asked.jit, asked.kind, asked.details(self._fixed.get(asked.kind)))
        found = self._kernels.get(key) if asked.kind in self._fixed else None
        if found is None:
            text, form = self._write(asked)
            key = (asked.jit, asked.kind, asked.details(self._fixed[asked.kind]))
            found = self._kernels.setdefault(key, (self._compile(asked.jit, text), form))
        asked.form = found[1]
        return found[0]

    def _compile(self, jit, text):
        try:
            return jit.compile(text)
        except UserError as error:
            raise UserError(f"{_place(self._function)}: {error}") from None

    def _write(self, asked):
        """The text, and the form of the result: None for one value, a number for a tuple, "dict"."""
        fixed, has_product = frozenset(), False
        while True:
            try:
                spec, outputs, form = self._trace(asked, fixed, has_product)
                break
            except _CompiledIn as found:
                fixed, has_product = fixed | found.names, True
        order = trace.nodes(outputs.values())
        self._fixed[asked.kind] = (fixed, has_product)
        used = {node.text for node in order if node.op in ("input", "scalar")}
        unused = [name for name in asked.given if name not in used]
        if unused:
            raise UserError(f"{self.__name__}: its result does not depend on {', '.join(unused)}; leave that out, or make it keyword-only")
        try:
            return spec.text(), form
        except UserError as error:
            raise UserError(f"{_place(self._function)}: {error}") from None

    def _trace(self, asked, fixed, has_product):
        spec = trace.Spec(self.name, fp8=asked.jit.fp8)

        def before_product(word, operands):
            names = _compiled_in(word, operands)
            if not has_product or not names <= fixed:
                raise _CompiledIn(names)

        spec.before_product = before_product
        try:
            inputs = asked.declare(spec, fixed, has_product)
        except UserError as error:
            raise UserError(f"{_place(self._function)}: {error}") from None
        with spec:
            returned = self._function(**inputs, **asked.constants)
            outputs, form = _outputs(self, spec, returned)
            for name, value in outputs.items():
                in_place_of = value.overwrites or (value.operands[0].text if value.op == "scatter" else None)
                spec.output(name, value, in_place_of=in_place_of)
        return spec, outputs, form

    def __repr__(self):
        return f"kiln.kernel({self.__name__}{self._signature})"


def _in_order(order, positional, named):
    return [named[at] if type(at) is str else positional[at] if type(at) is int else at[0] for at in order]


def _constant(value):
    """What tells a constant from others: its type and value, through lists, dicts and arrays."""
    kind = type(value)
    if kind in (list, tuple):
        return (kind, tuple(map(_constant, value)))
    if kind is dict:
        return (kind, tuple((key, _constant(item)) for key, item in value.items()))
    if kind is float:
        return (kind, value.hex())  # -0.0 and NaN too
    if arrays.is_array(value):
        raise TypeError("a keyword-only parameter is a constant of the spec, and an array is none; take the array before the *")
    try:
        hash(value)
    except TypeError:
        raise TypeError(f"{kind.__name__} is no constant that kernels could be remembered by; give one that is hashable") from None
    return (kind, value)


def _place(function):
    code = getattr(function, "__code__", None)
    return function.__name__ if code is None else f"{os.path.basename(code.co_filename)}, line {code.co_firstlineno}, {function.__name__}"


def _kernel_name(function):
    """The function's own, or that with _kernel where it is a word of specs, of C++ or of emitted kernels: add, softplus, double."""
    name = re.sub(r"\W", "", function.__name__).strip("_")  # also of "<lambda>"
    try:
        check_spec(f"kernel {name} input x: f32[8] output y: f32[8] = x")
        return name
    except UserError:
        return f"{name}_kernel"


class _CompiledIn(Exception):
    """A product came whose operands were declared with sizes of the launch: the function has to be run again."""

    def __init__(self, names):
        self.names = names


def _compiled_in(word, operands):
    """The inputs whose first size is no run-time size: all operands but those that have a's rows."""
    of_rows = {"matmul_nt_scaled": (0, 2), "matmul_nt_mx_mx": (0, 2), "matmul_nt_normed": (0, 3)}.get(word, (0,))
    return frozenset(operand.text for i, operand in enumerate(operands) if i not in of_rows and operand.op == "input")


def _outputs(traced, spec, returned):
    if isinstance(returned, dict):
        named, form = dict(returned), "dict"
    elif isinstance(returned, (tuple, list)):
        named, form = {f"out_{i}": value for i, value in enumerate(returned)}, len(returned)
    else:
        named, form = {"out": returned}, None
    for name, value in named.items():
        if not isinstance(value, trace.Expr):
            raise TypeError(f"{traced.__name__}: its result {name} is {type(value).__name__}, and has to be made of its arrays")
    return {name: spec.value(value) for name, value in named.items()}, form


class _Asked:
    """One call: arguments by name, sorted into arrays, numbers and constants, and what of them a kernel depends on."""

    def __init__(self, traced, positional, named, jit=None):
        bound = traced._signature.bind(*positional, **named)  # Python's own TypeError for a wrong list
        bound.apply_defaults()
        self.name, self.given, self.constants, self.views = traced.__name__, {}, {}, {}
        self.sizes, self.bounds = traced._sizes, traced._bounds
        for parameter in traced._signature.parameters.values():
            value = bound.arguments[parameter.name]
            if parameter.kind is parameter.KEYWORD_ONLY:
                self.constants[parameter.name] = value
                continue
            self.given[parameter.name] = value
            if arrays.is_array(value):
                self.views[parameter.name] = arrays.view(value, f"{self.name}, argument {parameter.name}")
            elif not hasattr(value, "__float__"):
                raise TypeError(f"{self.name}, argument {parameter.name}: {type(value).__name__} is neither an array nor a number")
        if not self.views:
            raise TypeError(f"{self.name}: no argument is an array")
        self.jit = traced._jit or (jit if jit and not traced._device else default_jit(traced._device or _device_of(self.views)))
        self.rows = next((view.shape[0] for name, view in self.views.items() if len(view.shape) > 1 and name not in self.sizes), None)
        self.kind = (
            tuple((name, *self._kind_of(name)) for name in self.given),
            tuple(sorted((name, _constant(value)) for name, value in self.constants.items())),
        )

    def _kind_of(self, name):
        view = self.views.get(name)
        if view is None:
            return ("i32" if isinstance(self.given[name], numbers.Integral) else "f32",)
        return (view.dtype, self._shape(name, view), self._is_strided(view))

    def _shape(self, name, view):
        """Numbers, and names of what is known at launch."""
        names = self.sizes.get(name)
        if names is None:
            names = ("rows",) if len(view.shape) > 1 and view.shape[0] == self.rows else ()
        if len(names) > len(view.shape):
            raise TypeError(f"{self.name}, argument {name}: it has {len(view.shape)} dimensions, and sizes names {len(names)}")
        return tuple(named or size for named, size in zip((*names, *(None for _ in view.shape[len(names) :])), view.shape))

    def _is_strided(self, view):
        return view.place == "gpu" and not view.is_contiguous  # what lies in host memory is packed on its way

    def details(self, fixed):
        """What a kernel depends on beside the kind: sizes of products' operands, and the bound of rows."""
        if fixed is None:
            return None
        names, has_product = fixed
        return tuple(self.views[name].shape[0] for name in sorted(names) if name in self.views), self._bound() if has_product else None

    def _bound(self):
        """The most rows that a product's kernel takes: a power of two, so that few kernels serve all sizes. More than a product has are
        left to Kiln, which says so."""
        rows = max(self.rows or 1, 1)
        return 1 << math.ceil(math.log2(rows)) if rows <= MOST_ROWS_OF_PRODUCTS else rows

    def declare(self, spec, fixed, has_product):
        """Declares the parameters. Returns the Exprs that the function is called with."""
        shapes = {name: view.shape if name in fixed else self._shape(name, view) for name, view in self.views.items()}
        for size in dict.fromkeys(size for shape in shapes.values() for size in shape if isinstance(size, str)):
            bounds = self.bounds.get(size, (1, self._bound()) if has_product and size == "rows" else (None, None))
            spec.dim(size, *bounds)
        made = {}
        for name in self.given:
            view = self.views.get(name)
            if view is None:
                made[name] = spec.scalar(name, self._kind_of(name)[0])
            else:
                made[name] = spec.input(name, view.dtype, shapes[name], strided=self._is_strided(view))
        return made

    def unpacker(self, names):
        """From the results in order to what the function returned: one, a tuple, or a dict."""
        if self.form is None:
            return operator.itemgetter(0)
        return functools.partial(_as_dict, names) if self.form == "dict" else tuple


def _as_dict(names, values):
    return dict(zip(names, values))


def _device_of(views):
    """The device of the first array on one, as a name or a Device; None when all are in host memory."""
    for view in views.values():
        if view.place == "gpu":
            return f"hip:{view.ordinal}"
        if view.place == "device":
            return view.owner.device
    return None


__all__ = ["kernel", "TracedKernel"]
