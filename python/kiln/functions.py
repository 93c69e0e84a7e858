"""The functions of specs, for functions under kiln.kernel. exp, silu, select and the other pointwise ones come from the library."""

from . import trace
from .trace import call, cast, columns, ungroup

def _pointwise(name, operands):
    def function(*values):
        return call(name, *values)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"The pointwise function {name} of specs, with {operands} operand{'s' if operands != 1 else ''}."
    return function


def _row(name):
    def function(value):
        return trace.row(name, value)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"{name} of the last axis, which stays with size 1."
    return function


def _group(name):
    def function(value, group):
        return trace.group(name, value, group)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"{name} of each `group` consecutive columns."
    return function


POINTWISE = {name: _pointwise(name, entry["operands"]) for name, entry in trace.OPERATIONS.items()}
ROWS = {f"row_{name}": _row(f"row_{name}") for name in trace.REDUCTIONS}
GROUPS = {f"group_{name}": _group(f"group_{name}") for name in trace.REDUCTIONS}
where = POINTWISE["select"]


def matmul_nt(a, b):
    """The product a x b^T of [m, k] and [n, k], m up to 128. Both are arguments of the function."""
    return trace.product("matmul_nt", [a, b])


def matmul_nt_scaled(a, b, a_scale, b_scale):
    """The product of fp8 or i8 with f32 scales: one for 1 x 128 of a, and one for 128 x 128 of b."""
    return trace.product("matmul_nt_scaled", [a, b, a_scale, b_scale])


def matmul_nt_w4(a, b, scale, zero, group):
    """The product with 4-bit weights: u8 [n, k / 2], a scale and a zero point for each `group` of k."""
    return trace.product("matmul_nt_w4", [a, b, scale, zero], [group])


def matmul_nt_mx(a, b, scale):
    """The product with MXFP4 weights: e2m1 [n, k], and e8m0 [n, k / 32]."""
    return trace.product("matmul_nt_mx", [a, b, scale])


def matmul_nt_mx_mx(a, b, a_scale, b_scale):
    """The product of MX operands: e2m1, e4m3fn or e5m2 [m, k] and [n, k], and e8m0 [m, k / 32] and [n, k / 32]."""
    return trace.product("matmul_nt_mx_mx", [a, b, a_scale, b_scale])


def matmul_nt_quantised(a, b):
    """The product of f16 or bf16 rows, quantised to fp8 by their absmax inside, with fp8."""
    return trace.product("matmul_nt_quantised", [a, b])


def matmul_nt_normed(a, b, weight, squares, scale, epsilon):
    """The product of f16 or bf16 rows, normed, weighed and quantised to fp8 inside, with fp8; squares are parts of their sums."""
    return trace.product("matmul_nt_normed", [a, b, weight, squares, scale, epsilon])


def scale_up(value, scale):
    """value * scale, exactly, with a scale of e8m0."""
    return trace.scaled("scale_up", value, scale)


def scale_down(value, scale):
    """value / scale, exactly, with a scale of e8m0."""
    return trace.scaled("scale_down", value, scale)


def mx_scale(dtype, value):
    """The scale of each block of 32 columns by the rule of OCP's MX formats, for elements of e2m1, e4m3fn or e5m2."""
    largest_power = {"e2m1": 4.0, "e4m3fn": 256.0, "e5m2": 32768.0}[dtype]
    return cast("e8m0", scale_down(cast("e8m0", trace.group("group_absmax_nan", value, 32)), cast("e8m0", largest_power)))


def mx_quantise(dtype, value, scale):
    """value / scale rounded to e2m1, e4m3fn or e5m2, with the scale of its block."""
    return cast(dtype, scale_down(value, ungroup(scale, 32, value.shape[-1])))


def mx_dequantise(value, scale):
    """The numbers of elements and scales of an MX format."""
    return scale_up(value, ungroup(scale, 32, value.shape[-1]))


FUNCTIONS = {
    **POINTWISE,
    **ROWS,
    **GROUPS,
    "cast": cast,
    "columns": columns,
    "ungroup": ungroup,
    "where": where,
    "matmul_nt": matmul_nt,
    "matmul_nt_scaled": matmul_nt_scaled,
    "matmul_nt_w4": matmul_nt_w4,
    "matmul_nt_mx": matmul_nt_mx,
    "matmul_nt_mx_mx": matmul_nt_mx_mx,
    "matmul_nt_quantised": matmul_nt_quantised,
    "matmul_nt_normed": matmul_nt_normed,
    "scale_up": scale_up,
    "scale_down": scale_down,
    "mx_scale": mx_scale,
    "mx_quantise": mx_quantise,
    "mx_dequantise": mx_dequantise,
}
