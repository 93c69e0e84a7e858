"""The words of specs as functions. Their list and their operands come from the library, so they are those of the text and of C++."""

import inspect

from . import dtypes
from .trace import WORDS, Expr, active, call, cast, overwrite

_X, _AB = ("x",), ("a", "b")
# What the operands and numbers of a word are called, and a line about it with shapes. Words that are not here are pointwise or reductions.
_TOLD = {
    "ungroup": (("x", "group", "cols"), "One value a group back to one a column: [rows, cols / group] to [rows, cols]."),
    "ungroup_rows": (("x", "group", "rows"), "One value a group of rows back to one a row, in an operand of a product: [n / group, k] to [n, k]."),
    "unpack4": (_X, "Numbers of 4 bits, 0 to 15, in an operand of a product: u8 [n, k / 2] or i32 [n, k / 8] to [n, k]."),
    "row_top": (("x", "k"), "The columns of the k largest elements of each row, the largest first: [rows, cols] to [rows, k]."),
    "pick": (("x", "top"), "The elements of x at the columns of a row_top: [rows, cols] to [rows, k]."),
    "row_cumsum": (_X, "The running sum along the row: [rows, cols]."),
    "matmul_nt": (_AB, "a x b^T: [m, k] and [n, k] to [m, n]; m up to 128. Operands are arguments of the function, or decode or prepare them. Also a @ b.T."),
    "matmul_nt_scaled": (
        ("a", "b", "a_scale", "b_scale"),
        "The product of fp8 or i8 with f32 scales: one for 1 x 128 of a, and one for 128 x 128 of b.",
    ),
    "matmul_nt_w4": (
        ("a", "b", "scale", "zero", "group"),
        "The product with 4-bit weights: u8 [n, k / 2], a scale and a zero point for each `group` of k.",
    ),
    "matmul_nt_mx": (("a", "b", "scale"), "The product with MXFP4 weights: e2m1 [n, k], and e8m0 [n, k / 32]."),
    "matmul_nt_mx_mx": (
        ("a", "b", "a_scale", "b_scale"),
        "The product of MX operands: e2m1, e4m3fn or e5m2 [m, k] and [n, k], and e8m0 [m, k / 32] and [n, k / 32].",
    ),
    "matmul_nt_quantised": (_AB, "The product of f16 or bf16 rows, quantised to fp8 by their absmax inside, with fp8."),
    "matmul_nt_normed": (
        ("a", "b", "weight", "squares", "scale", "epsilon"),
        "The product of f16 or bf16 rows, normed, weighed and quantised to fp8 inside, with fp8; squares are parts of their sums.",
    ),
    "columns": (("product", "first", "count"), "Some columns of a product: [m, n] to [m, count]. Also product[..., a:b]."),
    "by_expert": (
        ("product", "order", "offsets"),
        "The products of each pair of a token and an expert: [tokens, top, n]. `product` has a matrix for each expert, b [experts, n, k].",
    ),
    "sum_of_experts": (
        ("product", "order", "offsets", "weights"),
        "The sum of a token's products with its experts, each times its weight f32 [tokens, top]: [tokens, n].",
    ),
    "expert_order": (("experts", "count"), "The pairs of tokens and experts in the order of the experts: i32 [tokens, top]."),
    "expert_offsets": (("experts", "count"), "Where the pairs of each expert begin in expert_order, and the end: i32 [count + 1]."),
    "iota": (("shape",), "The index of each element along the one dimension of `shape` that is not 1: iota([rows, 1]) counts rows."),
    "pair_sign": (("cols", "distance"), "-1 in the first column of each pair, 1 in the second: [cols]."),
    "gather": (
        ("table", "index"),
        "The rows of `table` [n, ...] that `index` names, i32 or i64 [tokens, 1]: [tokens, ...]. Negative: zeros. checked: beyond: the last row.",
    ),
    "scatter": (
        ("target", "index", "value"),
        "`target` with the rows that `index` names replaced by `value`: a result in place of it. checked: beyond the last row is not written; "
        "duplicates: two indices may name one row.",
    ),
    "tile": (("x", "times"), "The columns `times` times in turn, a b a b: [rows, cols * times]."),
    "repeat": (("x", "times"), "Each column `times` times, a a b b: [rows, cols * times]."),
    "partner": (("x", "distance"), "The other element of each pair of columns that lie `distance` apart, as x."),
    "shift_columns": (("x", "distance"), "Columns `distance` places further on, or before if it is negative, zeros where there is none, as x."),
    "unstack": (("x", "index"), "One index of the second dimension of an input or of a gather: [rows, n, ...] to [rows, ...]."),
    "rotate": (("x", "distance"), "Each pair of columns after a quarter turn, (a, b) to (-b, a), as x."),
    "philox": (
        ("c0", "c1", "c2", "c3", "k0", "k1", "word"),
        "Word 0 to 3 of what Philox 4x32-10 makes of a counter of four i32 and a key of two: i32.",
    ),
    "random_bits": (("position", "offset", "seed"), "32 random bits for each position: i32, from i32."),
    "uniform": (("bits",), "A number between 0 and 1, neither included, from 32 random bits: f32."),
    "gumbel": (("bits",), "-log(-log(u)) of a uniform number u from 32 random bits: f32."),
    "hadamard": (("x", "n"), "The Walsh-Hadamard transform of every n consecutive columns, without a factor, as x."),
    "sinkhorn": (("x", "n", "times"), "Every n * n columns a matrix whose rows, then columns, are divided by their sums, `times` times, as x."),
    "scale_up": (("x", "scale"), "x * scale, exactly, with a scale of e8m0."),
    "scale_down": (("x", "scale"), "x / scale, exactly, with a scale of e8m0."),
    "attention_scores": (
        ("q", "k"),
        "The products of queries [sequences, (tokens,) heads, d] and the keys of a cache [sequences, keys, kv_heads, d].",
    ),
    "attention_scores_paged": (("q", "k", "table"), "The same for a cache of pages [pages, keys of a page, kv_heads, d], by the sequences' table."),
    "attention": (("scores", "v", "lengths"), "The rows of v weighted by the softmax of scores, of `lengths` keys i32 [sequences]: as q."),
    "log_sum_exp": (("scores", "lengths"), "log(sum(exp(scores))) of each row of scores."),
    "heads_first": (_X, "[sequences, tokens, heads, ...] with the heads in front of the tokens."),
    "transpose": (_X, "One value a group with the groups in front: [rows, groups] to [groups, rows]. Directly below a result. Also x.T."),
    "select": (("condition", "a", "b"), "a where the condition holds, else b. Also kiln.where and np.where."),
    "clamp": (("x", "low", "high"), "min(max(x, low), high)."),
    "row_argmax": (_X, "The column of the largest element of each row, the lowest of those alike: [rows, 1]."),
    "row_argmin": (_X, "The column of the smallest element of each row, the lowest of those alike: [rows, 1]."),
}


def _doc(word):
    name, kind, operands = word["name"], word["kind"], word["operands"]
    if name in _TOLD:
        return _TOLD[name]
    if kind == "row":
        return _X, f"{name} of the last dimension, which stays with size 1: [rows, cols] to [rows, 1]."
    if kind == "group":
        return ("x", "group"), f"{name} of every `group` consecutive columns: [rows, cols] to [rows, ceil(cols / group)]."
    names = {1: _X, 2: _AB}.get(operands, ("a", "b", "c"))
    gives = {"condition": "bool", "integer": "i32"}.get(kind, "f32")
    return names, f"The pointwise function {name}: {gives} of the shape that the operands broadcast to."


def _function(word):
    names, doc = _doc(word)
    name, operands, has_shape = word["name"], word["operands"], word.get("first") == "shape"
    kind = inspect.Parameter
    parameters = [kind(each, kind.POSITIONAL_OR_KEYWORD) for each in names]
    parameters += [kind(option, kind.KEYWORD_ONLY, default=False) for option in word["options"]]
    signature = inspect.Signature(parameters)

    def function(*values, **named):
        try:
            bound = signature.bind(*values, **named)
        except TypeError:
            raise TypeError(f"{name} takes {signature}, and {len(values) + len(named)} values are given") from None
        given = list(bound.arguments.values())
        options = [option for option in word["options"] if named.get(option)]
        values, numbers = given[has_shape : has_shape + operands], given[has_shape + operands : len(names)]
        spec = next((value.spec for value in values if isinstance(value, Expr)), None) or active()
        before = [spec.shape_text(given[0])] if has_shape else []
        return spec.call(name, values, before, [*map(_whole, numbers), *options])

    function.__name__ = function.__qualname__ = name
    function.__doc__, function.__signature__, function.__module__ = doc, signature, "kiln"
    return function


def _whole(number):
    if isinstance(number, str) or int(number) != number:
        raise TypeError(f"{number!r} stands where a whole number belongs")
    return int(number)


def cast_nonsaturating(dtype, x):
    """Rounds to an fp8 that overflows to infinity or NaN, instead of to the largest number."""
    return cast(dtype, x, saturate=False)


def stack(*values):
    """Values along a second dimension: [rows, ...] to [rows, n, ...]. Directly a result, or the value of a scatter."""
    return call("stack", *values)


def attention_scores(q, k, table=None):
    """The products of queries [sequences, (tokens,) heads, d] and the keys of a cache: [sequences, keys, kv_heads, d], or with `table` of
    pages [pages, keys of a page, kv_heads, d]."""
    return call("attention_scores", q, k) if table is None else call("attention_scores_paged", q, k, table)


def row_logsumexp(x):
    """log(sum(exp(x))) of each row without overflow: [rows, cols] to [rows, 1]; minus infinity for a row of nothing else."""
    largest = max_finite("f32")
    top = call("clamp", call("row_max", x), -largest, largest)
    return call("log", call("row_sum", call("exp", x - top))) + top


def mx_scale(dtype, x):
    """The scale of each block of 32 columns by the rule of OCP's MX formats, for elements of e2m1, e4m3fn or e5m2: e8m0 [rows, cols / 32]."""
    largest_power = {"e2m1": 4.0, "e4m3fn": 256.0, "e5m2": 32768.0}[dtypes.type_name(dtype)]
    absmax = x.spec.call("group_absmax_nan", [x], behind=[32])
    return cast("e8m0", call("scale_down", cast("e8m0", absmax), cast("e8m0", largest_power)))


def mx_quantise(dtype, x, scale):
    """x / scale rounded to e2m1, e4m3fn or e5m2, with the scale of its block."""
    return cast(dtype, call("scale_down", x, x.spec.call("ungroup", [scale], behind=[32, x.shape[-1]])))


def mx_dequantise(x, scale):
    """The numbers of elements and scales of an MX format."""
    return call("scale_up", x, x.spec.call("ungroup", [scale], behind=[32, x.shape[-1]]))


def max_finite(dtype):
    """The largest finite number of a type: 240 of e4m3fnuz, 448 of e4m3fn. "fp8" is the device's own where a kernel is written."""
    name = dtypes.type_name(dtype)
    return dtypes.max_finite(active().fp8 if name == "fp8" else name)


FUNCTIONS = {name: _function(word) for name, word in WORDS.items() if word.get("first") != "type"}
FUNCTIONS.update(
    {
        "cast": cast,
        "cast_nonsaturating": cast_nonsaturating,
        "stack": stack,
        "attention_scores": attention_scores,
        "where": FUNCTIONS["select"],
        "row_logsumexp": row_logsumexp,
        "mx_scale": mx_scale,
        "mx_quantise": mx_quantise,
        "mx_dequantise": mx_dequantise,
        "max_finite": max_finite,
        "overwrite": overwrite,
    }
)

__all__ = ["FUNCTIONS"]
