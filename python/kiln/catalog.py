"""The catalogue of ready specs: which entries there are, their options, and the options that tensors of some types and shapes ask for."""

import functools
import json
import pathlib

from . import _library
from .errors import UserError


@functools.cache
def entries():
    """A line about each entry, by name."""
    return {entry["name"]: entry["doc"] for entry in json.loads(_library.text("kiln_catalog"))}


@functools.cache
def _table():
    with open(pathlib.Path(__file__).with_name("operators.json"), encoding="utf-8") as file:
        return json.load(file)


def options(entry):
    """The options of an entry: their defaults by name."""
    return _table()["options"][entry]


def operators():
    """The operators of kiln.torch, by name: entry, fixed options, parameters, results, mutated inputs."""
    return _table()["operators"]


def spec(entry, arch, **given):
    """The text of an entry's spec: kiln.catalog.spec("rmsnorm", "gfx942", cols=4096, dtype="bf16")."""
    texts = {name: str(value).lower() if isinstance(value, bool) else str(value) for name, value in given.items()}
    pairs = (_library.Setting * len(texts))(*[(name.encode(), text.encode()) for name, text in texts.items()])
    return _library.text("kiln_catalog_spec", entry.encode(), arch.encode(), pairs, len(pairs))


def described_text(text):
    """What a spec declares: kiln_spec_describe of kiln_c.h."""
    return json.loads(_library.text("kiln_spec_describe", text.encode()))


@functools.lru_cache(maxsize=4096)
def _described(entry, arch, given):
    return described_text(spec(entry, arch, **dict(given)))


def described(entry, arch, given):
    """What an entry's spec declares."""
    return _described(entry, arch, tuple(sorted(given.items())))


def _tried(entry, arch, given):
    try:
        return described(entry, arch, given)
    except UserError:
        return None


class Shown:
    """How an option shows in the inputs of an entry: as the type of the input `name` (dim None), or as a size of it: the option is
    size * times / parts."""

    def __init__(self, option, name, dim=None, times=1, parts=1):
        self.option, self.name, self.dim, self.times, self.parts = option, name, dim, times, parts

    def of(self, dtype, shape):
        return dtype if self.dim is None else shape[self.dim] * self.times // self.parts


# Small sizes, so that entries with few columns are there too; options of which one is a multiple or a part of another.
_SMALL = {"cols": 256, "n": 256, "k": 256, "length": 64, "d": 128, "experts": 16, "heads": 8, "kv_heads": 4, "top": 4, "page": 16}
_MARKED = {"cols": 512, "n": 512, "k": 512, "length": 96, "d": 256, "experts": 32, "heads": 16, "kv_heads": 8, "top": 2, "page": 32}
_TYPES = ("bf16", "f32", "e4m3fn", "e4m3fnuz", "i8", "e5m2", "i32", "e2m1")


def base_of(entry, given=()):
    """Small values of the options that an entry has, and `given` ones."""
    base = {name: value for name, value in _SMALL.items() if name in options(entry)}
    if "side" in options(entry):
        base["side"] = 4
    return {**base, **dict(given)}


@functools.lru_cache(maxsize=4096)
def shown(entry, arch, given=()):
    """The options that the inputs show, and the one that bounds rows: (list of Shown, names of options that bound a run-time size).
    `given`: pairs of options that are set."""
    base = base_of(entry, given)
    found, bounding = [], []
    start = _tried(entry, arch, base)
    if start is None:
        return (), ()
    for name, default in options(entry).items():
        if name in dict(given) or isinstance(default, bool):
            continue
        is_type = isinstance(default, str)
        for value in _TYPES if is_type else [_MARKED.get(name, 32)]:
            other = _tried(entry, arch, {**base, name: value})
            if other is None or other == start:
                continue
            at = _where(start, other, base.get(name, default), value, is_type)
            if at is not None:
                found.append(Shown(name, *at))
                break
            if not is_type and start["inputs"] == other["inputs"] and start["dims"] != other["dims"] and name != "max_rows":
                bounding.append(name)
    return tuple(found), tuple(bounding)


def _where(start, other, before, after, is_type):
    """(input, dim, times, parts); the size itself rather than a multiple, and that rather than a part."""
    by_name = {entry["name"]: entry for entry in other["inputs"]}
    found = []
    for entry in start["inputs"]:
        changed = by_name.get(entry["name"])
        if changed is None:
            continue
        if is_type:
            if changed["dtype"] == after != entry["dtype"]:
                return (entry["name"],)
            continue
        for dim, (old, new) in enumerate(zip(entry["shape"], changed["shape"])):
            if isinstance(old, str) or old == new or old * after != new * before:
                continue
            whole = old % before == 0
            found.append((0 if old == before else 1 if whole else 2, (entry["name"], dim, *((1, old // before) if whole else (before // old, 1)))))
    return min(found)[1] if found else None


def _taken(result, found, inputs):
    for each in found:
        if each.name in inputs:
            value = each.of(*inputs[each.name])
            # Types of weights and caches are left out where they are those of activations.
            if each.option not in ("weights", "cache_dtype") or value not in (result.get("dtype", "f16"), result.get("mx", "e2m1")):
                result[each.option] = value
    return result


def from_inputs(entry, arch, given, inputs, max_rows):
    """The options that make the spec of inputs of these types and shapes: {name: (dtype, shape)}. `given` ones stay."""
    found, bounding = shown(entry, arch, tuple(sorted(given.items())))
    result = _taken(dict(given), [each for each in found if each.times == each.parts], inputs)
    # With what was found: a multiple may be one of another option, and a type may show others.
    result = _taken(result, shown(entry, arch, tuple(sorted(result.items())))[0], inputs)
    for name in bounding:
        result[name] = max_rows
    return result


__all__ = ["base_of", "described", "entries", "from_inputs", "options", "shown", "spec"]
