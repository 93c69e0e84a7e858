"""Kiln's kernels as operators of torch: torch.ops.kiln.rmsnorm(x, weight), one for each entry of the catalogue, and functions of one's own.

    import torch, kiln.torch
    y = torch.ops.kiln.rmsnorm(x, weight)              # torch.compile(fullgraph=True) takes it as it is
    torch.ops.kiln.rmsnorm.out(x, weight, y=y)         # into memory of one's own

docs/torch.md is the guide. Tensors on a GPU are computed there, on torch's current stream, with memory of torch's allocator; tensors in
host memory on the device that KILN_DEVICE names, or use() sets. There are no derivatives.
"""

import os
import typing

import torch

from . import arrays, catalog, dtypes
from .calls import Call, remember
from .decorator import TracedKernel, _Asked
from .errors import UserError
from .jit import Jit, default_jit

_TAGS = (torch.Tag.pt2_compliant_tag, getattr(torch.Tag, "needs_contiguous_strides", torch.Tag.needs_fixed_stride_order))
_own = torch.library.Library("kiln", "DEF")
_libraries = {"kiln": _own}
_host_jit = None


def use(jit):
    """What tensors in host memory are computed with: a Jit, or a device's name. None: what KILN_DEVICE names."""
    global _host_jit
    _host_jit = jit if jit is None or isinstance(jit, Jit) else default_jit(jit)
    _forget()


def _forget():
    for each in _Operator.all:
        each._calls.clear()


os.register_at_fork(after_in_child=_forget)  # a child makes Jits of its own


def jit_of(device):
    """The Jit for tensors on a device of torch's."""
    if device.type == "cuda":
        return default_jit(f"hip:{device.index or 0}")
    return _host_jit or default_jit()


def warm_up(file, device=None):
    """Compiles the kernels of a manifest with a spec a line, as KILN_JIT_POLICY=record writes them, or takes them from the cache. Returns
    their keys. Manifests with lists and ranges are for `kiln aot`."""
    import json

    jit = jit_of(torch.device(device or "cpu"))
    pending = []
    with open(file, encoding="utf-8") as lines:
        for line in lines:
            entry = json.loads(line) if line.strip() and not line.startswith("#") else None
            if entry is None or jit.arch not in _listed(entry.get("arch", jit.arch)):
                continue
            if not isinstance(entry.get("spec"), str):
                raise UserError(f"{file}: a line has no text of a spec; compile it with `kiln aot`, and mount the folder as a layer")
            pending.append(jit.compile_async(entry["spec"], _listed(entry.get("set", []))))
    return [each.result().key for each in pending]


def _listed(value):
    return value if isinstance(value, list) else [value]


# ---- what the shapes of inputs make of an operator


def _seen(tensor, declared=None):
    """A tensor's type and sizes as Kiln names them; two elements of e2m1 are a byte."""
    dtype, shape = dtypes.type_name(tensor.dtype) if tensor.dtype != _PAIRS else "e2m1", list(tensor.shape)
    if dtype == "u8" and declared in ("e2m1", "e8m0"):
        dtype = declared
    if dtype == "e2m1":
        shape[-1] = shape[-1] * 2
    return dtype, shape


_PAIRS = getattr(torch, "float4_e2m1fn_x2", None)
# Stand for sizes that are not known while a graph is traced: no two alike, and within what products take.
_STANDINS = (101, 103, 107, 109, 113, 97, 89, 83)


def _concrete(seen, at_launch):
    """Sizes as numbers: a stand-in for those that are known at launch alone. Others are compiled in, so the graph is for that number.
    Returns what each stand-in stands for."""
    standins, symbols = {}, {}
    for name, (_, shape) in seen.items():
        for i, size in enumerate(shape):
            if isinstance(size, int):
                continue
            if i not in at_launch.get(name, ()):
                shape[i] = int(size)
                continue
            number = standins.setdefault(str(size), _STANDINS[len(standins)])
            symbols[number], shape[i] = size, number
    return symbols


def _results(described, seen, symbols, device):
    """Empty tensors of the shapes and types of a spec's outputs that are not in place of an input."""
    sizes = {}
    for entry in described["inputs"]:
        for extent, size in zip(entry["shape"], seen[entry["name"]][1]):
            if isinstance(extent, str):
                sizes[extent] = symbols.get(size, size)
    results = []
    for output in described["outputs"]:
        if not output["in_place_of"]:
            shape = [sizes.get(extent, extent) for extent in output["shape"]]
            if output["dtype"] == "e2m1":
                shape[-1] //= 2
            results.append(torch.empty(shape, dtype=dtypes.torch_dtype(output["dtype"]), device=device))
    return results


# ---- operators


class _Operator:
    """An operator and its .out form. Subclasses say which spec given inputs make."""

    all: typing.ClassVar[list] = []

    def __init__(self, namespace, name, parameters, options, defaults, results, mutated=()):
        # parameters: (type, name, default as the schema writes it, or None); those in `options` come last, and by name alone. `defaults`: of
        # the others, None for tensors: torch leaves out what is a default.
        self.name, self.results, self.mutated, self.behind_star = name, results, frozenset(mutated), frozenset(options)
        self.defaults = tuple(defaults)
        self.parameters, self._calls, self._fakes = parameters, {}, {}
        self.names = [name for _, name, _ in parameters]
        _Operator.all.append(self)
        library = _libraries.setdefault(namespace, None) or torch.library.Library(namespace, "FRAGMENT")
        _libraries[namespace] = library
        gives = {0: "()", 1: "Tensor"}.get(len(results), f"({', '.join('Tensor' for _ in results)})")
        self._define(library, name, self._schema([]), gives, self._run, self._fake)
        self.op = getattr(getattr(torch.ops, namespace), name)
        if results:
            self._define(library, f"{name}.out", self._schema(results), "()", self._run_out, lambda *_, **__: None)
        if not self.mutated:
            torch.library.register_autograd(f"{namespace}::{name}", self._no_backward, lib=library)

    def _schema(self, outputs):
        parts, starred = [], False
        for kind, name, default in self.parameters:
            if name in self.behind_star and not starred:
                parts.append("*")
                starred = True
            if name in self.mutated:
                kind = f"Tensor({chr(ord('a') + sorted(self.mutated).index(name))}!)"
            parts.append(f"{kind} {name}" + ("" if default is None else f"={default}"))
        if outputs and not starred:
            parts.append("*")
        letters = "abcdefghijklmnopqrstuvwxyz"[len(self.mutated) :]
        return ", ".join(parts + [f"Tensor({letters[i]}!) {name}" for i, name in enumerate(outputs)])

    @staticmethod
    def _define(library, name, schema, gives, run, fake):
        library.define(f"{name}({schema}) -> {gives}", tags=_TAGS)
        for key in ("CPU", "CUDA"):
            library.impl(name, run, key)
        library._register_fake(name, fake)

    def _no_backward(self, context, *gradients):
        raise RuntimeError(f"kiln::{self.name} has no derivative; call it under torch.no_grad(), or with inputs that require no gradient")

    def _run(self, *values, **options):
        made = self._launch(values, options, {})
        return made[0] if len(made) == 1 else tuple(made) if made else None

    def _run_out(self, *values, **options):
        self._launch(values, options, {name: options.pop(name) for name in self.results})

    def _launch(self, values, options, outputs):
        values += self.defaults[len(values) :]
        key = (len(outputs), *map(_kind, values), *options.items(), *map(_kind, outputs.values()))
        found = self._calls.get(key)
        if found is None:
            found = self._prepare(values, options, outputs)
            if _FORGET not in key:
                remember(self._calls, key, found)
        call, at, results = found
        given = [values[i] for i in at] + [*outputs.values()]
        made = call(given)
        return [made[i] for i in results]

    def _prepare(self, values, options, outputs):
        named = {**dict(zip(self.names, values)), **options}
        jit = jit_of(next(value for value in values if isinstance(value, torch.Tensor)).device)
        kernel = jit.compile(self.spec(jit, named))
        inputs = [name for name in self.names if name in named and named[name] is not None and self.is_argument(name)]
        call = Call(kernel, [*inputs, *outputs], [named[name] for name in inputs] + [*outputs.values()])
        results = [i for i, output in enumerate(kernel.outputs) if not output.in_place_of]
        return call, [self.names.index(name) for name in inputs], results

    def _fake(self, *values, **options):
        values += self.defaults[len(values) :]
        named = {**dict(zip(self.names, values)), **options}
        tensors = {name: value for name, value in named.items() if isinstance(value, torch.Tensor)}
        device = next(iter(tensors.values())).device
        made = self.fake(jit_of(device), named, tensors, device)
        if len(made) != len(self.results):
            raise UserError(f"kiln::{self.name}: it was defined with {len(self.results)} results, and its spec has {len(made)}")
        return made[0] if len(made) == 1 else tuple(made) if made else None


_FORGET = object()  # in a key that is not remembered


def _kind(value):
    """What a prepared call depends on of a value: of tensors all but the numbers in it, of numbers the type."""
    if isinstance(value, torch.Tensor):
        if value.requires_grad and torch.is_grad_enabled():
            return _FORGET
        return (value.dtype, value.shape, value.stride(), value.device)
    return None if value is None else type(value)


# ---- the catalogue


class _Entry(_Operator):
    """An entry of the catalogue: operators.json, which operator_facts.py writes."""

    def __init__(self, name, facts):
        self.entry, self.fixed, self.options = facts["entry"], facts["fixed"], facts["options"]
        self.declared, self.at_launch, self.scalars = facts["declared"], facts["at_launch"], facts["scalars"]
        parameters = [tuple(each) for each in facts["parameters"]]
        defaults = [None] * (len(parameters) - len(self.options))
        super().__init__("kiln", name, parameters, self.options, defaults, facts["results"], facts["mutated"])

    def is_argument(self, name):
        return name in self.declared or name in self.scalars

    def _options(self, named):
        given = dict(self.fixed)
        for name, option in self.options.items():
            value = named.get(name)
            if value is not None:
                given[option] = dtypes.type_name(value) if isinstance(value, torch.dtype) else value
        return given

    def _chosen(self, arch, named, seen, max_rows=None):
        """The options of the spec; of products with as many rows as the next power of two."""
        given = self._options(named)
        chosen = catalog.from_inputs(self.entry, arch, given, seen, max_rows or 128)
        if max_rows is None:
            rows = _bounded_size(catalog.described(self.entry, arch, chosen), seen)
            if rows is not None and rows <= 128:
                return self._chosen(arch, named, seen, 1 << max(0, rows - 1).bit_length())
        return chosen

    def _seen(self, named):
        return {n: _seen(named[n], dtype) for n, dtype in self.declared.items() if isinstance(named.get(n), torch.Tensor)}

    def spec(self, jit, named):
        return catalog.spec(self.entry, jit.arch, **self._chosen(jit.arch, named, self._seen(named)))

    def fake(self, jit, named, tensors, device):
        seen = self._seen(named)
        symbols = _concrete(seen, self.at_launch)
        described = catalog.described(self.entry, jit.arch, self._chosen(jit.arch, named, seen, 128))
        return _results(described, seen, symbols, device)


def _bounded_size(described, seen):
    """The size of the inputs that the spec bounds."""
    bounded = {dim["name"] for dim in described["dims"] if "max" in dim}
    for entry in described["inputs"]:
        for extent, size in zip(entry["shape"], seen.get(entry["name"], (None, ()))[1]):
            if extent in bounded:
                return size
    return None


# ---- functions of one's own


class _Function(_Operator):
    def __init__(self, traced, namespace, name, results):
        self.traced = traced
        parameters = [self._parameter(each) for each in traced._signature.parameters.values()]
        self.constants = traced._constants
        declared = [each for each in traced._signature.parameters.values() if each.name not in self.constants]
        defaults = [None if each.default is each.empty else each.default for each in declared]
        names = [f"out_{i}" for i in range(results)] if results > 1 else ["out"]
        super().__init__(namespace, name, parameters, self.constants, defaults, names)

    def _parameter(self, parameter):
        is_constant = parameter.kind is parameter.KEYWORD_ONLY
        example = None if parameter.default is parameter.empty else parameter.default
        kind = parameter.annotation if parameter.annotation in (bool, int, float, str) else type(example) if example is not None else None
        if kind is None and not is_constant:
            return "Tensor", parameter.name, None
        if kind not in (bool, int, float, str):
            raise UserError(f"{self.traced.__name__}, parameter {parameter.name}: annotate it as bool, int, float or str for an operator")
        default = f'"{example}"' if kind is str and example is not None else None if example is None else str(example)
        return kind.__name__, parameter.name, default

    def is_argument(self, name):
        return name not in self.constants

    def _asked(self, named, jit):
        constants = {name: named[name] for name in self.constants if name in named}
        return _Asked(self.traced, [named[name] for name in self.names if name not in self.constants], constants, jit)

    def _prepare(self, values, options, outputs):
        named = {**dict(zip(self.names, values)), **options}
        asked = self._asked(named, jit_of(next(value for value in values if isinstance(value, torch.Tensor)).device))
        kernel = self.traced._kernel(asked)
        if len(kernel.outputs) != len(self.results) or any(output.in_place_of for output in kernel.outputs):
            raise UserError(
                f"kiln::{self.name}: it was defined with {len(self.results)} results of its own, and the function gives {kernel.outputs}"
            )
        # Results have the names of the operator's schema there, and those of the function's here.
        names = [*asked.given, *(output.name for output, _ in zip(kernel.outputs, outputs))]
        call = Call(kernel, names, [*asked.given.values(), *outputs.values()])
        return call, [self.names.index(name) for name in asked.given], range(len(kernel.outputs))

    def fake(self, jit, named, tensors, device):
        # First sizes of matrices and named ones may be known at launch. What is compiled in all the same is made a number, and said again.
        at_launch = {n: {*range(len(self.traced._sizes.get(n, ()))), *range(each.ndim > 1)} for n, each in tensors.items()}
        while True:
            seen = {name: _seen(value) for name, value in tensors.items()}
            symbols = _concrete(seen, at_launch)
            described = self._described(jit, named, seen)
            compiled_in = [
                (entry["name"], i)
                for entry in described["inputs"]
                for i, extent in enumerate(entry["shape"])
                if not isinstance(extent, str) and not isinstance(tensors[entry["name"]].shape[i], int) and i in at_launch[entry["name"]]
            ]
            if not compiled_in:
                return _results(described, seen, symbols, device)
            for name, i in compiled_in:
                at_launch[name].discard(i)

    def _described(self, jit, named, seen):
        shaped = {name: _Shape(dtype, shape) for name, (dtype, shape) in seen.items()}
        constants = tuple((name, value) for name, value in named.items() if name not in seen)
        key = (jit, tuple((name, each.dtype, each.shape) for name, each in shaped.items()), constants)
        if key not in self._fakes:
            self._fakes[key] = catalog.described_text(self.traced._write(self._asked({**named, **shaped}, jit))[0])
        return self._fakes[key]


class _Shape:
    """An array that is known by type and shape alone."""

    def __init__(self, dtype, shape):
        self.dtype, self.shape = dtype, tuple(shape)

    def _kiln_view(self):
        return arrays.View(self, None, self.dtype, self.shape, None, "host")


def operator(function=None, *, name=None, namespace="kiln", results=None):
    """Makes an operator of a function under kiln.kernel: torch.ops.NAMESPACE.NAME, and NAME.out. Returns it.

    Parameters are tensors, but for those annotated, or with a default, of bool, int, float or str. `results`: how many the function
    returns; None: as many as its annotation, `-> tuple[Array, Array]`, says, or one.
    """
    if function is None:
        return lambda function: operator(function, name=name, namespace=namespace, results=results)
    if not isinstance(function, TracedKernel):
        raise TypeError("operator: give a function under kiln.kernel")
    if results is None:
        annotation = function._signature.return_annotation
        results = len(typing.get_args(annotation)) if typing.get_origin(annotation) is tuple else 1
    return _Function(function, namespace, name or function.name, results).op


operators = {name: _Entry(name, facts) for name, facts in catalog.operators().items()}

__all__ = ["jit_of", "operator", "operators", "use", "warm_up"]
