"""kiln.kernel: a Python function of arrays becomes a spec, is compiled for the sizes that come, and launched."""

import functools
import inspect
import math
import numbers
import re

from . import arrays, trace
from .errors import UserError
from .jit import check_spec, default_jit


def kernel(function=None, *, device=None, jit=None):
    """Makes a kernel of a function of arrays.

    Parameters that take arrays become inputs; those that take numbers become scalars, given at launch; keyword-only ones are
    constants of the spec, of any type. The function returns one value, a tuple, or a dict of them by name.

    Sizes are compiled in, but for one: the first size of the first array with two or more dimensions, and of every other such array
    whose first size is the same. Operands of products other than the first are compiled in whole.

    device   where it runs ("emulated:gfx942"); None: the GPU of the first array, else what KILN_DEVICE names
    jit      a Jit to use instead
    """
    if function is None:
        return functools.partial(kernel, device=device, jit=jit)
    return TracedKernel(function, device, jit)


class TracedKernel:
    """What kiln.kernel makes of a function. Thread-safe: at worst two threads write the same spec."""

    def __init__(self, function, device, jit):
        functools.update_wrapper(self, function)
        self._function, self._device, self._jit = function, device, jit
        self.name = _kernel_name(function)
        self._signature = inspect.signature(function)
        self._fixed, self._kernels = {}, {}
        for parameter in self._signature.parameters.values():
            if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
                raise TypeError(f"{function.__name__}: a kernel has a fixed list of parameters, and {parameter} is none")

    def __call__(self, *positional, **named):
        asked = _Asked(self, positional, named)
        outputs = self._kernel(asked)(**asked.given)
        return asked.unpack(outputs)

    def kernel(self, *positional, **named):
        """The compiled Kernel for arguments like these."""
        return self._kernel(_Asked(self, positional, named))

    def spec(self, *positional, **named):
        """The text of the spec for arguments like these."""
        asked = _Asked(self, positional, named)
        return self._write(asked)[0]

    def _kernel(self, asked):
        # Which first sizes are operands of products is known once the function has run for arguments of this kind.
        key = (asked.jit, asked.kind, asked.details(self._fixed.get(asked.kind)))
        found = self._kernels.get(key) if asked.kind in self._fixed else None
        if found is None:
            text, asked.result = self._write(asked)
            key = (asked.jit, asked.kind, asked.details(self._fixed[asked.kind]))
            found = self._kernels.setdefault(key, (asked.jit.compile(text), asked.result))
        asked.result = found[1]
        return found[0]

    def _write(self, asked):
        """The text, and the form of the result: None for one value, a number for a tuple, "dict"."""
        fixed, has_product = frozenset(), False
        for _ in range(2):  # again when operands of products turn out to be fixed
            inputs = asked.inputs(fixed)
            returned = self._function(**inputs, **asked.constants)
            outputs, form = _outputs(self, returned)
            order = trace.nodes(list(outputs.values()))
            products = [node for node in order if node.op in trace.PRODUCTS]
            has_product = bool(products)
            operands = frozenset(name for node in products for name in _compiled_in(node))
            if operands == fixed:
                break
            fixed = operands
        self._fixed[asked.kind] = (fixed, has_product)
        used = {node.text for node in order if node.op in ("input", "scalar")}
        unused = [name for name in inputs if name not in used]
        if unused:
            raise UserError(f"{self.__name__}: its result does not depend on {', '.join(unused)}; leave that out, or make it keyword-only")
        declarations = asked.declarations(inputs, has_product)
        return trace.spec_text(self.name, declarations, outputs, asked.jit_fp8), form


def _kernel_name(function):
    """The function's own, or that with _kernel where it is a word of specs, of C++ or of emitted kernels: add, softplus, double."""
    name = re.sub(r"\W", "", function.__name__).strip("_")  # also of "<lambda>"
    try:
        check_spec(f"kernel {name} input x: f32[8] output y: f32[8] = x")
        return name
    except UserError:
        return f"{name}_kernel"


def _compiled_in(product):
    """The inputs whose first size is no run-time size: all operands but a, and the scale of a, which has a's rows."""
    of_rows = (0, 2) if product.op == "matmul_nt_scaled" else (0,)
    return [operand.text for i, operand in enumerate(product.operands) if i not in of_rows and operand.op == "input"]


def _outputs(traced, returned):
    if isinstance(returned, dict):
        named, form = dict(returned), "dict"
    elif isinstance(returned, (tuple, list)):
        named, form = {f"out_{i}": value for i, value in enumerate(returned)}, len(returned)
    else:
        named, form = {"out": returned}, None
    for name, value in named.items():
        if not isinstance(value, trace.Expr):
            raise TypeError(f"{traced.__name__}: its result {name} is {type(value).__name__}, and has to be made of its arrays")
    return named, form


class _Asked:
    """One call: arguments by name, sorted into arrays, numbers and constants, and what of them a kernel depends on."""

    def __init__(self, traced, positional, named):
        bound = traced._signature.bind(*positional, **named)  # Python's own TypeError for a wrong list
        bound.apply_defaults()
        self.name, self.given, self.constants, self.views = traced.__name__, {}, {}, {}
        for parameter in traced._signature.parameters.values():
            value = bound.arguments[parameter.name]
            if parameter.kind is parameter.KEYWORD_ONLY:
                self.constants[parameter.name] = value
                continue
            self.given[parameter.name] = value
            if arrays.is_array(value):
                self.views[parameter.name] = arrays.view(value, parameter.name)
            elif not hasattr(value, "__float__"):
                raise TypeError(f"{self.name}, argument {parameter.name}: {type(value).__name__} is neither an array nor a number")
        if not self.views:
            raise TypeError(f"{self.name}: no argument is an array")
        self.jit = traced._jit or default_jit(traced._device or _device_of(self.views))
        self.jit_fp8 = self.jit.device.fp8 if self.jit.device else {"gfx942": "e4m3fnuz"}.get(self.jit.arch, "e4m3fn")
        self.rows = next((view.shape[0] for view in self.views.values() if len(view.shape) > 1), None)
        self.kind = (
            tuple((name, *self._kind_of(name)) for name in self.given),
            tuple(sorted((name, repr(value)) for name, value in self.constants.items())),
        )

    def _has_rows(self, view):
        return len(view.shape) > 1 and view.shape[0] == self.rows

    def _kind_of(self, name):
        view = self.views.get(name)
        if view is None:
            return ("i32" if isinstance(self.given[name], numbers.Integral) else "f32",)
        shape = ("rows",) + view.shape[1:] if self._has_rows(view) else view.shape
        return (view.dtype, shape, self._is_strided(view))

    def _is_strided(self, view):
        return view.place == "gpu" and not view.is_contiguous  # what lies in host memory is packed on its way

    def details(self, fixed):
        """What a kernel depends on beside the kind: sizes of products' operands, and the bound of rows."""
        if fixed is None:
            return None
        names, has_product = fixed
        return tuple(self.views[name].shape[0] for name in sorted(names) if name in self.views), self._bound() if has_product else None

    def _bound(self):
        """The most rows that a product's kernel takes: a power of two, so that few kernels serve all sizes."""
        return 1 << max(0, math.ceil(math.log2(max(self.rows or 1, 1))))

    def inputs(self, fixed):
        """The Exprs that the function is called with."""
        made = {}
        for name in self.given:
            view = self.views.get(name)
            if view is None:
                made[name] = trace.Expr("scalar", dtype=self._kind_of(name)[0], text=name)
                continue
            shape = ("rows",) + view.shape[1:] if self._has_rows(view) and name not in fixed else view.shape
            made[name] = trace.Expr("input", shape=shape, dtype=view.dtype, text=name)
        return made

    def declarations(self, inputs, has_product):
        lines = []
        if any("rows" in value.shape for value in inputs.values()):
            lines.append(f"dim rows [1..{self._bound()}]" if has_product else "dim rows")
        for name, value in inputs.items():
            if value.op == "scalar":
                lines.append(f"scalar {name}: {value.dtype}")
                continue
            extents = ", ".join(str(extent) for extent in value.shape)
            strided = " strided" if self._is_strided(self.views[name]) else ""
            lines.append(f"input {name}: {value.dtype}[{extents}]{strided}")
        return lines

    def unpack(self, outputs):
        values = list(outputs.values())
        return values[0] if self.result is None else outputs if self.result == "dict" else tuple(values)


def _device_of(views):
    """The device of the first array on one, as a name or a Device; None when all are in host memory."""
    for view in views.values():
        if view.place == "gpu":
            return f"hip:{view.ordinal}"
        if view.place == "device":
            return view.owner.device
    return None


__all__ = ["kernel", "TracedKernel"]
