"""The text of a spec, written again in Python: declarations by kiln.Spec, expressions by operators, methods, NumPy's functions and kiln's,
each spelled in one of the ways that there are."""

import ast
import random
import re

import numpy as np

import kiln
from kiln.trace import WORDS

_OPERATORS = {"add": ast.Add, "sub": ast.Sub, "mul": ast.Mult, "div": ast.Div, "logical_and": ast.BitAnd, "logical_or": ast.BitOr}
_COMPARISONS = {"lt": ast.Lt, "le": ast.LtE, "gt": ast.Gt, "ge": ast.GtE, "eq": ast.Eq, "ne": ast.NotEq}
_METHODS = {"row_sum": "sum", "row_mean": "mean", "row_max": "max", "row_min": "min", "row_argmax": "argmax", "row_argmin": "argmin"}
_UFUNCS = {"max": "fmax", "min": "fmin", "abs": "absolute", "rcp": "reciprocal", "round": "rint", "pow": "power", "neg": "negative"}
_UFUNCS.update({name: name for name in ("exp", "exp2", "log", "log2", "sqrt", "tanh", "sin", "cos", "floor", "logical_not")})
_NUMPY = {"f32": "float32", "f16": "float16", "i32": "int32", "i8": "int8", "u8": "uint8", "bool": "bool_"}


def _is_number(node):
    if isinstance(node, ast.UnaryOp):
        return _is_number(node.operand)
    return isinstance(node, ast.Constant) or (isinstance(node, ast.Name) and node.id in ("inf", "nan"))


class _Speller(ast.NodeTransformer):
    def __init__(self, seed):
        self.random = random.Random(seed)

    def visit_Call(self, node):
        node = self.generic_visit(node)
        name, arguments = node.func.id, node.args
        options = [each.id for each in arguments if isinstance(each, ast.Name) and each.id in ("checked", "duplicates")]
        if options:
            values = [each for each in arguments if not (isinstance(each, ast.Name) and each.id in options)]
            return ast.Call(node.func, values, [ast.keyword(option, ast.Constant(True)) for option in options])
        other = self._other(name, arguments)
        return other if other is not None and self.random.random() < 0.7 else node

    def visit_BinOp(self, node):
        """Python computes with numbers at once, and the spec says what to compute."""
        node = self.generic_visit(node)
        if _is_number(node.left) and _is_number(node.right):
            name = {ast.Add: "add", ast.Sub: "sub", ast.Mult: "mul", ast.Div: "div"}[type(node.op)]
            return ast.Call(ast.Name(name, ast.Load()), [node.left, node.right], [])
        return node

    def _other(self, name, arguments):
        """Another spelling, if there is one and an operand is an array for sure."""
        if not any(isinstance(each, (ast.Name, ast.Call, ast.BinOp)) for each in arguments):
            return None
        first = arguments[0]
        is_array = isinstance(first, ast.Name) and first.id not in ("inf", "nan")
        if name in _OPERATORS and is_array:
            return ast.BinOp(first, _OPERATORS[name](), arguments[1])
        if name in _COMPARISONS and is_array:
            return ast.Compare(first, [_COMPARISONS[name]()], [arguments[1]])
        if name in _METHODS and is_array:
            keywords = [ast.keyword("axis", ast.UnaryOp(ast.USub(), ast.Constant(1))), ast.keyword("keepdims", ast.Constant(True))]
            return ast.Call(ast.Attribute(first, _METHODS[name], ast.Load()), [], keywords)
        if name in _UFUNCS and is_array:
            return ast.Call(ast.Attribute(ast.Name("np", ast.Load()), _UFUNCS[name], ast.Load()), arguments, [])
        if name == "select" and isinstance(first, ast.Name):
            return ast.Call(ast.Attribute(ast.Name("np", ast.Load()), "where", ast.Load()), arguments, [])
        if name == "cast" and isinstance(arguments[1], ast.Name) and arguments[1].id not in ("inf", "nan") and first.id in _NUMPY:
            dtype = ast.Attribute(ast.Name("np", ast.Load()), _NUMPY[first.id], ast.Load())
            return ast.Call(ast.Attribute(arguments[1], "astype", ast.Load()), [dtype], [])
        return None


def written_again(text, seed=0):
    """The canonical text of the spec that Python writes for `text`."""
    lines = text.strip().split("\n")
    with kiln.Spec(lines[0].split()[1]) as spec:
        names = {name: getattr(kiln, name) for name in WORDS}
        names.update({name: name for name in kiln.dtypes.NAMES}, inf=float("inf"), nan=float("nan"), np=np)
        for line in lines[1:]:
            _statement(spec, names, line, seed)
        return spec.text()


def _statement(spec, names, line, seed):
    if dim := re.fullmatch(r"dim (\w+)(?:\[(\d*)\.\.(\d*)\])?", line):
        name, low, high = dim.groups()
        names[name] = spec.dim(name, int(low) if low else None, int(high) if high else None)
    elif tensor := re.fullmatch(r"input (\w+): (\w+)\[(.*)\]( strided| preshuffled)?", line):
        name, dtype, shape, layout = tensor.groups()
        options = {layout.strip(): True} if layout else {}
        names[name] = spec.input(name, dtype, _shape(shape), **options)
    elif scalar := re.fullmatch(r"scalar (\w+): (\w+)", line):
        names[scalar.group(1)] = spec.scalar(*scalar.groups())
    elif let := re.fullmatch(r"let (\w+) = (.*)", line):
        names[let.group(1)] = _value(let.group(2), names, seed)
    else:
        name, dtype, value, target, strided = re.fullmatch(
            r"output (\w+): (\w+)\[.*?\] = (.*?)(?: in_place_of (\w+))?( strided)?", line
        ).groups()
        spec.output(name, _value(value, names, seed), dtype, in_place_of=target, strided=bool(strided))


def _shape(text):
    return [int(size) if size.isdigit() else size for size in text.split(", ") if size]


def _value(text, names, seed):
    tree = _Speller(f"{seed} {text}").visit(ast.parse(text, mode="eval"))
    return eval(compile(ast.fix_missing_locations(tree), "<spec>", "eval"), {"__builtins__": {}}, names)
