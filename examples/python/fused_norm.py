"""Residual add, RMS norm and quantisation to fp8: three kernels, or one. What each reads, writes and consists of, as a figure.

    python3 examples/python/fused_norm.py [--device emulated:gfx942] [--output fused_norm.svg]

Bytes follow from shapes and types. Instructions are counted in the code objects: they are no times, and a loop counts once.
"""

# %% The kernels. A function of arrays is a kernel; what it returns is what the kernel writes.
import argparse

import numpy as np

import kiln

parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
parser.add_argument("--device", default="emulated:gfx942", help="emulated:gfx942, emulated:gfx950 or hip:N")
parser.add_argument("--output", default="fused_norm.svg", help="the figure")
parser.add_argument("--cols", type=int, default=4096)
options = parser.parse_args()
jit = kiln.default_jit(options.device)


@kiln.kernel(jit=jit)
def add(x, residual):
    return kiln.cast("f16", x + residual)


@kiln.kernel(jit=jit)
def norm(h, weight, *, eps=1e-6):
    return kiln.cast("f16", h * kiln.rsqrt(kiln.row_mean(h * h) + eps) * weight)


@kiln.kernel(jit=jit)
def quantise(y, scale):
    return kiln.cast("fp8", y / scale)


@kiln.kernel(jit=jit)
def add_norm_quantise(x, residual, weight, scale, *, eps=1e-6):
    h = kiln.cast("f16", x + residual)
    y = kiln.cast("f16", h * kiln.rsqrt(kiln.row_mean(h * h) + eps) * weight)
    return {"h": h, "q": kiln.cast("fp8", y / scale)}


# %% The same numbers, both ways.
random = np.random.default_rng(1)
x, residual = (random.standard_normal((4, options.cols)).astype(np.float16) for _ in range(2))
weight, scale = np.ones(options.cols, np.float16), np.array(0.05, np.float32)

h = add(x, residual)
y = norm(h, weight)
q = quantise(y, scale)
fused = add_norm_quantise(x, residual, weight, scale)
same = np.array_equal(h, fused["h"]), np.abs(q.numpy() - fused["q"].numpy()).max()
print(f"{jit.device.description}: h is {'the same' if same[0] else 'NOT the same'}, q differs by at most {same[1]}")

# %% What they move and what they consist of.
STEPS = {
    "add": (add.kernel(x, residual), [x, residual, h]),
    "norm": (norm.kernel(h, weight), [h, weight, y]),
    "quantise": (quantise.kernel(y, scale), [y, scale, q]),
    "all in one": (add_norm_quantise.kernel(x, residual, weight, scale), [x, residual, weight, scale, fused["h"], fused["q"]]),
}
CLASSES = ("vmem_load", "vmem_store", "lds", "valu", "packed", "trans", "salu", "smem", "wait")  # of the ISA facts


def bytes_of(arrays):
    return sum(kiln.arrays.view(array).size * kiln.dtypes.size_bytes(kiln.arrays.view(array).dtype) for array in arrays)


rows = []
for name, (kernel, arrays) in STEPS.items():
    facts = kernel.meta["facts"]
    rows.append((name, bytes_of(arrays), {key: facts["classes"][key] for key in CLASSES}, facts["instructions"]))
    print(f"{name:<12} {rows[-1][1]:>8} bytes  {facts['instructions']:>5} instructions  {facts['resources']['vgprs']:>3} VGPRs")

# %% The figure: three kernels, one after the other in a bar, above one.
COLOURS = ("#4477aa", "#66ccee", "#228833", "#ccbb44", "#ee6677", "#aa3377", "#bbbbbb", "#dddddd", "#eeeeee")
WIDTH, LEFT, BAR = 900, 130, 26


def bar(parts, top, scale, unit):
    """`parts`: (length, colour, title) side by side."""
    svg, at = [], float(LEFT)
    for length, colour, title in parts:
        wide = length * scale
        box = f'<rect x="{at:.1f}" y="{top}" width="{wide:.1f}" height="{BAR}" fill="{colour}" stroke="white">'
        svg.append(f"{box}<title>{title}: {length} {unit}</title></rect>")
        at += wide
    svg.append(f'<text x="{at + 6:.1f}" y="{top + 18}">{sum(part[0] for part in parts)}</text>')
    return svg


def by_class(counts, prefix):
    return [(counts[key], colour, f"{prefix}, {key}") for key, colour in zip(CLASSES, COLOURS) if counts[key]]


apart, together = rows[:3], rows[3]
max_bytes = sum(row[1] for row in apart)
max_instructions = max(sum(sum(row[2].values()) for row in apart), sum(together[2].values()))
by_bytes, by_count = (WIDTH - LEFT - 80) / max_bytes, (WIDTH - LEFT - 80) / max_instructions
svg = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="300" font-family="sans-serif" font-size="13">']
svg.append('<rect width="100%" height="100%" fill="white"/>')
svg.append(f'<text x="10" y="22" font-size="15">Residual add, RMS norm, fp8: 4 rows of {options.cols} on {jit.arch}</text>')
svg.append('<text x="10" y="50">Bytes read and written at least</text>')
parts = [(row[1], colour, row[0]) for row, colour in zip(apart, COLOURS)]
svg += ['<text x="10" y="78">three kernels</text>', *bar(parts, 60, by_bytes, "bytes")]
svg += ['<text x="10" y="110">one kernel</text>', *bar([(together[1], COLOURS[4], together[0])], 92, by_bytes, "bytes")]
svg.append('<text x="10" y="150">Instructions in the code, by class (a count, no time)</text>')
parts = [part for row in apart for part in by_class(row[2], row[0])]
svg += ['<text x="10" y="178">three kernels</text>', *bar(parts, 160, by_count, "instructions")]
parts = by_class(together[2], together[0])
svg += ['<text x="10" y="210">one kernel</text>', *bar(parts, 192, by_count, "instructions")]
for i, (name, colour) in enumerate(zip(CLASSES, COLOURS)):
    left = 10 + 98 * i
    svg.append(f'<rect x="{left}" y="250" width="12" height="12" fill="{colour}" stroke="gray"/>')
    svg.append(f'<text x="{left + 17}" y="261">{name}</text>')
svg.append("</svg>")
with open(options.output, "w", encoding="utf-8") as file:
    file.write("\n".join(svg) + "\n")
print(f"{options.output}: the figure")
