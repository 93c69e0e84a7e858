#!/usr/bin/env python3
"""Draws the pictures of the documentation: `python3 docs/pictures/draw.py` writes the .svg files beside it; with --check it only
compares, and ends with 1 if one is old.

Colours follow the reader's light or dark mode. Text that does not fit its box is an error."""
import pathlib
import sys
from html import escape

STYLE = """
  .page { fill: #ffffff } .t { fill: #1f2328 } .s { fill: #59636e }
  .box { fill: #f6f8fa; stroke: #59636e } .line { stroke: #59636e; fill: none } .head { fill: #59636e }
  .a { fill: #ddf4ff; stroke: #0969da } .b { fill: #fff1e5; stroke: #bc4c00 } .c { fill: #dafbe1; stroke: #1a7f37 }
  .d { fill: #fbefff; stroke: #8250df } .e { fill: #fff8c5; stroke: #9a6700 } .none { fill: none; stroke: #59636e }
  @media (prefers-color-scheme: dark) {
    .page { fill: #0d1117 } .t { fill: #f0f6fc } .s { fill: #b7bdc8 }
    .box { fill: #151b23; stroke: #9198a1 } .line { stroke: #9198a1 } .head { fill: #9198a1 }
    .a { fill: #0c2d6b; stroke: #4493f8 } .b { fill: #5a1e02; stroke: #db6d28 } .c { fill: #033a16; stroke: #3fb950 }
    .d { fill: #3c1e70; stroke: #ab7df8 } .e { fill: #4b2900; stroke: #d29922 } .none { stroke: #9198a1 }
  }
  text { font-family: -apple-system, "Segoe UI", "Noto Sans", Helvetica, Arial, sans-serif }
  .m { font-family: ui-monospace, SFMono-Regular, Menlo, Consolas, "Liberation Mono", monospace }
"""


class Picture:
    """An SVG of `width` x `height`, with a page of its own colour under it. `title` is what a screen reader says."""

    def __init__(self, name, width, height, title):
        self.name, self.width, self.height, self.title = name, width, height, title
        self.parts = []

    def text(self, x, y, words, size=14, kind="t", anchor="middle", mono=False, bold=False, room=None):
        width = len(words) * size * (0.61 if mono else 0.54 if not bold else 0.58)
        left = x - {"start": 0, "middle": width / 2, "end": width}[anchor]
        if left < 4 or left + width > self.width - 4 or (room and width > room):
            raise SystemExit(f"{self.name}: '{words}' takes {width:.0f}, and has {room or self.width}")
        weight = ' font-weight="600"' if bold else ""
        self.parts.append(f'<text x="{x:g}" y="{y:g}" font-size="{size}" text-anchor="{anchor}"{weight} class="{kind}{" m" if mono else ""}">{escape(words)}</text>')

    def box(self, x, y, w, h, kind="box", lines=(), size=14, mono=False, dashed=False, radius=6):
        """Lines of text in the middle, the first one bold."""
        dash = ' stroke-dasharray="5 4"' if dashed else ""
        self.parts.append(f'<rect x="{x:g}" y="{y:g}" width="{w:g}" height="{h:g}" rx="{radius}" class="{kind}" stroke-width="1.5"{dash}/>')
        step = size + 5
        top = y + h / 2 - (len(lines) - 1) * step / 2 + size * 0.35
        for i, line in enumerate(lines):
            first = i == 0
            self.text(x + w / 2, top + i * step, line, size if first else size - 2, "t" if first else "s", mono=mono and first, bold=first and len(lines) > 1, room=w - 8)

    def arrow(self, *points, dashed=False):
        path = "M" + " L".join(f"{x:g} {y:g}" for x, y in points)
        dash = ' stroke-dasharray="5 4"' if dashed else ""
        self.parts.append(f'<path d="{path}" class="line" stroke-width="1.5" marker-end="url(#head)"{dash}/>')

    def line(self, x1, y1, x2, y2, dashed=False):
        dash = ' stroke-dasharray="3 3"' if dashed else ""
        self.parts.append(f'<path d="M{x1:g} {y1:g} L{x2:g} {y2:g}" class="line" stroke-width="1"{dash}/>')

    def write(self):
        head = '<marker id="head" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8" markerHeight="8" orient="auto"><path d="M0 0 L8 4 L0 8 z" class="head"/></marker>'
        body = "\n".join("  " + part for part in self.parts)
        svg = (
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{self.width}" height="{self.height}" viewBox="0 0 {self.width} {self.height}" role="img">\n'
            f"  <title>{escape(self.title)}</title>\n  <style>{STYLE}  </style>\n  <defs>{head}</defs>\n"
            f'  <rect width="{self.width}" height="{self.height}" rx="8" class="page"/>\n{body}\n</svg>\n')
        file = pathlib.Path(__file__).with_name(self.name + ".svg")
        if "--check" not in sys.argv:
            file.write_text(svg)
        elif not file.exists() or file.read_text() != svg:
            raise SystemExit(f"{file} is old: run {__file__}")


def flow():
    p = Picture("flow", 980, 372, "From an expression to a launch: spec, plan, schedules, source, code object, report, kernel")
    nouns = [("KernelSpec", "an expression", "a"), ("Plan", "iteration space", "a"), ("Schedules", "best first", "a"),
             ("KernelSource", "HIP text", "a"), ("CodeObject", "machine code", "b"), ("IsaReport", "promises kept?", "c")]
    verbs = ["make_plan", "candidates", "emit_source", "hipRTC, comgr", "check_isa"]
    w, gap, y, h = 118, 45, 96, 60
    x = [30 + i * (w + gap) for i in range(6)]
    p.box(x[0] - 12, 60, x[3] + w - x[0] + 24, 108, "none", dashed=True)
    p.text(x[0], 80, "gen: pure values", 12, "s", "start")
    p.box(x[4] - 12, 60, w + 24, 108, "none", dashed=True)
    p.text(x[4], 80, "runtime", 12, "s", "start")
    p.box(x[5] - 12, 60, w + 24, 108, "none", dashed=True)
    p.text(x[5], 80, "isa_checks", 12, "s", "start")
    for i, (noun, what, kind) in enumerate(nouns):
        p.box(x[i], y, w, h, kind, [noun, what])
    for i, verb in enumerate(verbs):
        p.arrow((x[i] + w + 3, y + h / 2), (x[i + 1] - 3, y + h / 2))
        p.text(x[i] + w + gap / 2, 186, verb, 12, "s", mono=True)
    p.arrow((x[5] + w - 18, y - 3), (x[5] + w - 18, 34), (x[2] + w / 2, 34), (x[2] + w / 2, y - 3), dashed=True)
    p.text((x[2] + x[5] + w) / 2, 26, "a promise is broken: the next schedule", 12, "s")
    ky = 232
    p.arrow((x[5] + w / 2, y + h + 3), (x[5] + w / 2, ky - 3))
    p.text(x[5] + w / 2 - 8, 214, "kept", 12, "s", "end")
    p.box(x[5] - 52, ky, w + 64, h, "c", ["Kernel", "code, arguments, facts"])
    p.box(x[2] - 42, ky, w + 84, h, "e", ["cache", "memory, folder, layers, HTTP"])
    p.arrow((x[5] - 55, ky + 20), (x[2] + w + 45, ky + 20))
    p.text((x[2] + w + x[5] - 20) / 2, ky + 12, "stored; key: spec, target, Kiln, compiler", 12, "s")
    p.arrow((x[2] + w + 45, ky + 42), (x[5] - 55, ky + 42))
    p.text((x[2] + w + x[5] - 20) / 2, ky + 58, "found: nothing is compiled", 12, "s")
    p.arrow((x[0] + w / 2, y + h + 3), (x[0] + w / 2, ky + 30), (x[2] - 45, ky + 30))
    p.text(x[0] + w / 2 + 12, ky + 22, "asked for first", 12, "s", "start")
    dy = 322
    p.box(x[3] - 2, dy, 200, 36, "box", ["GPU, through HIP"])
    p.box(x[4] + 48, dy, 226, 36, "box", ["the CPU model, without a GPU"])
    p.arrow((x[5] - 20, ky + h + 3), (x[5] - 20, dy - 3))
    p.arrow((x[5] - 40, ky + h + 3), (x[5] - 40, dy - 14), (x[3] + 98, dy - 14), (x[3] + 98, dy - 3))
    p.text(x[3] - 14, dy + 22, "load, bind, launch", 12, "s", "end")
    p.write()


def tiles():
    p = Picture("tiles", 980, 470, "Steps, tiles and segments of a skinny product, shared by five workgroups")
    count, rows, columns, workgroups = 24, 3, 8, 5
    left, top, w, h = 190, 130, 56, 70
    p.text(left + columns * w / 2, 30, "A [m, k]: few rows, read from L2", 13, "s")
    p.box(left, 40, columns * w, 26, "box", ["m rows"], 12)
    p.text(left + columns * w / 2, 118, "B [n, k]: the weights, read once, from memory; k goes to the right", 13, "s")
    first = [g * count // workgroups for g in range(workgroups + 1)]
    kinds = "abcde"
    for step in range(count):
        g = max(i for i in range(workgroups) if first[i] <= step)
        x, y = left + step % columns * w, top + step // columns * h
        p.box(x, y, w, h, kinds[g], [str(step)], 15, radius=0)
    for row in range(rows):
        p.text(left - 14, top + row * h + h / 2 - 3, f"tile {row}", 13, "t", "end")
        p.text(left - 14, top + row * h + h / 2 + 14, "tile_n rows of B", 11, "s", "end")
    # one step
    p.line(left, top + rows * h + 8, left, top + rows * h + 20)
    p.line(left + w, top + rows * h + 8, left + w, top + rows * h + 20)
    p.line(left, top + rows * h + 14, left + w, top + rows * h + 14)
    p.text(left, top + rows * h + 36, "a step: tile_n rows by 64 or 128 bytes of k", 12, "s", "start")
    # C
    cx, cw = 800, 60
    p.text(cx + cw / 2, 118, "C [m, n], transposed", 13, "s")
    for row in range(rows):
        p.box(cx, top + row * h, cw, h, "box", [f"tile {row}"], 13, radius=0)
        p.arrow((left + columns * w + 5, top + row * h + h / 2), (cx - 5, top + row * h + h / 2))
    p.text((left + columns * w + cx) / 2, top + h / 2 - 8, "2 parts", 12, "s")
    p.text((left + columns * w + cx) / 2, top + h * 1.5 - 8, "3 parts", 12, "s")
    p.text((left + columns * w + cx) / 2, top + h * 2.5 - 8, "2 parts", 12, "s")
    y = 408
    for g in range(workgroups):
        x = 30 + g * 126
        p.box(x, y - 12, 16, 16, kinds[g], radius=2)
        p.text(x + 22, y + 1, f"workgroup {g}", 12, "t", "start")
        p.text(x + 22, y + 18, f"steps {first[g]} to {first[g + 1] - 1}", 11, "s", "start")
    p.text(664, y + 1, "Workgroup 1 crosses a tile's end: two segments.", 12, "s", "start")
    p.text(664, y + 18, "Parts of a tile meet in the workspace.", 12, "s", "start")
    p.text(30, 456, "24 steps on 5 workgroups: everyone gets 4 or 5, whatever n and k are. Tiles as the unit would leave 2 of 5 idle.", 13, "t", "start")
    p.write()


def ring():
    p = Picture("ring", 980, 356, "A ring of four slots: a slot is used and reloaded at once, so three loads stay in flight")
    slots, left, top, h, unit, turns = 4, 120, 70, 44, 62, 3
    p.text(left, 28, "One wave, stages = 4. A slot is used, then reloaded at once: a load has the time of three other steps to arrive.", 13, "t", "start")
    for s in range(slots):
        y = top + s * (h + 8)
        p.text(left - 14, y + h / 2 + 5, f"slot {s}", 13, "t", "end")
        p.box(left + 2 + s * 7, y, unit * (s + 1) - 2 - s * 7, h, "a", [f"load {s}"] if s else ["load 0"], 12, radius=3)
        for turn in range(turns):
            step = turn * slots + s
            use = left + unit * (step + 1)
            p.box(use, y, unit * 0.45, h, "b", [str(step)], 12, radius=3)
            if turn + 1 < turns:
                p.box(use + unit * 0.45, y, unit * (slots - 0.45), h, "a", [f"load {step + slots}, in flight"], 12, radius=3)
    bottom = top + slots * (h + 8)
    for turn in range(turns):
        x1, x2 = left + unit * (1 + turn * slots), left + unit * (1 + (turn + 1) * slots) - 6
        p.line(x1, bottom + 8, x2, bottom + 8)
        p.line(x1, bottom + 3, x1, bottom + 13)
        p.line(x2, bottom + 3, x2, bottom + 13)
        p.text((x1 + x2) / 2, bottom + 26, ["turn 0", "turn 1", "the last turn loads nothing"][turn], 12, "s")
    p.line(left + unit * 5, top - 12, left + unit * 5, top + h, dashed=True)
    p.text(left + unit * 5, top - 18, "s_waitcnt vmcnt(3 loads): the oldest load has come, three stay in flight", 12, "s")
    p.box(left, bottom + 46, 16, 16, "a", radius=2)
    p.text(left + 22, bottom + 59, "load in flight", 12, "t", "start")
    p.box(left + 140, bottom + 46, 16, 16, "b", radius=2)
    p.text(left + 162, bottom + 59, "multiply; the number is the step", 12, "t", "start")
    p.arrow((left + unit * 11, bottom + 54), (left + unit * 13, bottom + 54))
    p.text(left + unit * 11 - 8, bottom + 59, "time", 12, "s", "end")
    p.write()


def caches():
    p = Picture("caches", 980, 330, "The layers of the kernel cache, in the order in which they are asked")
    stages = [("memory", ["of this process", "30 ns"], "e"), ("KILN_CACHE_DIR", ["writable folder", "0.2 ms"], "c"),
              ("KILN_CACHE_LAYERS", ["read-only folders,", "shipped by kiln aot"], "c"), ("KILN_CACHE_URL", ["HTTP server,", "checked byte by byte"], "d"),
              ("compile", ["worker processes,", "0.1 s and more"], "b")]
    w, gap, y, h = 156, 38, 110, 78
    x = [24 + i * (w + gap) for i in range(5)]
    p.text(24, 28, "Jit::compile(spec) asks from left to right; what is found is put into everything before it.", 13, "t", "start")
    for i, (name, lines, kind) in enumerate(stages):
        p.box(x[i], y, w, h, kind, [name] + lines, 12)
        if i:
            p.arrow((x[i - 1] + w + 3, y + h / 2), (x[i] - 3, y + h / 2))
            p.text(x[i] - gap / 2, y + h / 2 - 8, "miss", 11, "s")
    p.arrow((x[4] + w / 2, y - 3), (x[4] + w / 2, 72), (x[0] + w / 2, 72), (x[0] + w / 2, y - 3))
    p.arrow((x[1] + w / 2, 72), (x[1] + w / 2, y - 3))
    p.arrow((x[3] + w / 2, 72), (x[3] + w / 2, y - 3), dashed=True)
    p.text((x[3] + x[2] + w) / 2 - 60, 62, "put", 12, "s")
    p.text(x[3] + w / 2 + 8, 94, "if it may be written to", 11, "s", "start")
    by = 250
    p.box(x[1], by, w, 46, "box", ["kiln cache", "ls, verify, prune, diff"], 13)
    p.arrow((x[1] + w / 2, by - 3), (x[1] + w / 2, y + h + 3))
    p.box(x[2], by, w, 46, "box", ["kiln aot", "fills them offline"], 13)
    p.arrow((x[2] + w / 2, by - 3), (x[2] + w / 2, y + h + 3))
    p.box(x[4], by, w, 46, "box", ["manifest of misses", "policy record"], 13)
    p.arrow((x[4] + w / 2, y + h + 3), (x[4] + w / 2, by - 3))
    p.arrow((x[4] - 3, by + 23), (x[2] + w + 3, by + 23))
    p.text((x[4] + x[2] + w) / 2, by + 16, "compiled before the next start", 12, "s")
    p.write()


if __name__ == "__main__":
    for draw in (flow, tiles, ring, caches):
        draw()
