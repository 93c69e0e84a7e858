"""What operators.json says, from the catalogue: an operator of torch for each entry, and for each flag that gives an entry other results.

    python3 -m kiln.operator_facts > python/kiln/operators.json

It takes seconds, which is why the file is there; a test compares the two.
"""

import json

from . import _library, catalog
from .errors import UserError

ARCH = "gfx950"  # inputs, results and options are the same on every architecture
# Options beside which an entry may have other inputs.
_VARIANTS = [
    *({name: True} for name in ("preshuffled", "packed_zeros", "transposed", "sigmoid", "interleaved", "head_norm", "fp8_cache")),
    {"dtype": "e4m3fn"},
    {"dtype": "i8"},
    {"weights": "e2m1"},
    {"cache_dtype": "e4m3fn"},
]
_NO_PARAMETERS = {"in_place", "max_rows"}  # .out has memory of one's own, and torch's sizes have no bounds


def options(entry):
    listed = json.loads(_library.text("kiln_catalog_options", entry.encode()))
    return {option["name"]: option["default"] for option in listed}


def _described(entry, given):
    try:
        return catalog.described(entry, ARCH, {**catalog.base_of(entry), **given})
    except UserError:
        return None


def _inputs(described):
    return [each["name"] for each in described["inputs"]]


def results(described):
    return [each["name"] for each in described["outputs"] if not each["in_place_of"]]


def operator(entry, fixed):
    """The facts of an operator: of an entry with some options fixed."""
    base = _described(entry, fixed)
    variants = [base]
    for extra in _VARIANTS:
        described = _described(entry, {**extra, **fixed}) if set(extra) <= set(catalog.options(entry)) else None
        if described is not None and results(described) == results(base):
            variants.append(described)
    shown, bounding = catalog.shown(entry, ARCH, tuple(fixed.items()))
    hidden = {each.option for each in shown} | set(bounding) | set(fixed) | _NO_PARAMETERS
    inputs = dict.fromkeys(name for variant in variants for name in _inputs(variant))
    always = [name for name in inputs if all(name in _inputs(variant) for variant in variants)]
    scalars = {each["name"]: each["dtype"] for each in base["scalars"]}
    parameters = [["Tensor", name, None] for name in always]
    parameters += [["int" if dtype == "i32" else "float", name, None] for name, dtype in scalars.items()]
    parameters += [["Tensor?", name, "None"] for name in inputs if name not in always]
    named = {}
    for option, default in catalog.options(entry).items():
        if option in hidden or _gives_other_results(entry, fixed, option, default):
            continue
        name = f"num_{option}" if option in inputs else option  # moe_sort's number of experts, beside its input
        named[name] = option
        kind = "bool" if isinstance(default, bool) else "ScalarType?" if isinstance(default, str) else "int"
        parameters.append([kind, name, "None" if isinstance(default, str) else str(default)])
    return {
        "entry": entry,
        "fixed": fixed,
        "parameters": parameters,
        "options": named,
        "declared": {each["name"]: each["dtype"] for variant in reversed(variants) for each in variant["inputs"]},
        # Which sizes of an input are known at launch; the others are compiled in.
        "at_launch": {each["name"]: _at_launch(each["shape"]) for variant in variants for each in variant["inputs"]},
        "scalars": scalars,
        "results": results(base),
        "mutated": [output["in_place_of"] for output in base["outputs"] if output["in_place_of"]],
    }


def _at_launch(shape):
    return [i for i, extent in enumerate(shape) if isinstance(extent, str)]


def _gives_other_results(entry, fixed, option, default):
    if not isinstance(default, bool):
        return False
    other = _described(entry, {**fixed, option: not default})
    return other is not None and results(other) != results(_described(entry, fixed))


def facts():
    """All of operators.json."""
    known = {entry: options(entry) for entry in catalog.entries()}
    table, catalog._table = catalog._table, lambda: {"options": known}
    try:
        return {"options": known, "operators": _operators(known)}
    finally:
        catalog._table = table


def _operators(known):
    operators = {}
    for entry, defaults in known.items():
        operators[entry] = operator(entry, {})
        for flag, default in defaults.items():
            if flag not in _NO_PARAMETERS and _gives_other_results(entry, {}, flag, default):
                operators[f"{entry}_{flag}"] = operator(entry, {flag: not default})
    return operators


def text():
    """The file: a line for each entry's options and for each operator."""
    parts = []
    for title, lines in facts().items():
        parts.append(f'"{title}": {{\n' + ",\n".join(f"{json.dumps(name)}: {json.dumps(value)}" for name, value in lines.items()) + "\n}")
    return "{\n" + ",\n".join(parts) + "\n}\n"


if __name__ == "__main__":
    print(text(), end="")
