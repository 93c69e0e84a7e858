"""NumPy's functions on arrays of a kernel: those that have the same meaning, under NumPy's names."""

import numpy as np

from .trace import WORDS, Expr, call

# NumPy's name: the word of specs. Others have the same name in both. Kiln's max and min ignore NaN, as fmax and fmin.
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
    "bitwise_and": "logical_and",
    "bitwise_or": "logical_or",
    "invert": "logical_not",
    "reciprocal": "rcp",
    "rint": "round",
    "power": "pow",
    "float_power": "pow",
    "clip": "clamp",
}
_INSTEAD = {
    "maximum": "it gives NaN for NaN, and kernels pass NaN over: use np.fmax, or kiln.max",
    "minimum": "it gives NaN for NaN, and kernels pass NaN over: use np.fmin, or kiln.min",
    "isnan": "use x != x",
}


def ufunc(function, method, inputs, options):
    name = function.__name__
    if method == "__call__" and not options:
        if name == "matmul":
            return inputs[0] @ inputs[1] if isinstance(inputs[0], Expr) else NotImplemented
        if name == "square":
            return call("mul", inputs[0], inputs[0])
        if name == "positive":
            return inputs[0]
        word = WORDS.get(_UFUNCS.get(name, name))
        if word is not None and word["kind"] in ("pointwise", "condition") and word["operands"] == len(inputs):
            return call(word["name"], *inputs)
    raise _no_function(name)


def _no_function(name):
    if name in _INSTEAD:
        return TypeError(f"numpy.{name} is no function of specs: {_INSTEAD[name]}")
    pointwise = sorted(word for word, entry in WORDS.items() if entry["kind"] in ("pointwise", "condition"))
    return TypeError(f"numpy.{name} is no function of specs; those are {', '.join(pointwise)}")


def _where(condition, x, y):
    return call("select", condition, x, y)


def _clip(a, a_min, a_max):
    return call("clamp", a, a_min, a_max)


def _tile(A, reps):  # NumPy's name of the argument
    return A.spec.call("tile", [A], behind=[reps])


def _take_along_axis(arr, indices, axis):
    arr._last_axis("take_along_axis", axis)
    return call("pick", arr, indices)


def _round(a, decimals=0):
    return a.round(decimals)


def _transpose(a):
    return a.T


def _method(name):
    return lambda a, *arguments, **options: getattr(a, name)(*arguments, **options)


_FUNCTIONS = {
    np.where: _where,
    np.clip: _clip,
    np.tile: _tile,
    np.take_along_axis: _take_along_axis,
    np.round: _round,
    np.around: _round,
    np.transpose: _transpose,
    np.sum: _method("sum"),
    np.mean: _method("mean"),
    np.max: _method("max"),
    np.min: _method("min"),
    np.amax: _method("max"),
    np.amin: _method("min"),
    np.argmax: _method("argmax"),
    np.argmin: _method("argmin"),
    np.cumsum: _method("cumsum"),
    np.repeat: _method("repeat"),
}


def function(called, arguments, options):
    found = _FUNCTIONS.get(called)
    if found is None:
        raise _no_function(called.__name__)
    return found(*arguments, **options)


__all__ = ["function", "ufunc"]
