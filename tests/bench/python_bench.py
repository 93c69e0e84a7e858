"""What a launch costs the host from Python, in processor time of the thread: bound launches and decorated calls on seen shapes, beside a
bare call by ctypes. With a HIP that does nothing (KILN_HIP_PATH), so that host time is all there is.

    ./dev bench python            # --short: few rounds, and no goals, for the tests
"""

import argparse
import ctypes
import os
import statistics
import sys
import time

import kiln
from kiln import _library

GOALS_US = {"bound.launch()": 0.5, "decorated(x, residual, weight)": 10.0}


def microseconds(call, count, rounds):
    """The median of `rounds` means of `count` calls."""
    means = []
    for _ in range(rounds):
        start = time.thread_time()
        for _ in range(count):
            call()
        means.append((time.thread_time() - start) / count * 1e6)
    return statistics.median(means)


@kiln.kernel(device="hip:0")
def add_norm(x, residual, weight, *, eps=1e-6):
    h = kiln.cast("f16", x + residual)
    return h, kiln.cast("f16", h * kiln.rsqrt(kiln.row_mean(h * h) + eps) * weight)


def cases():
    """(what, call) in the order of the table."""
    device = kiln.default_jit("hip:0").device
    x, residual, weight = device.empty((4, 4096), "f16"), device.empty((4, 4096), "f16"), device.empty((4096,), "f16")
    kernel = add_norm.kernel(x, residual, weight)
    out_0, out_1 = device.empty((4, 4096), "f16"), device.empty((4, 4096), "f16")
    arguments = {"x": x, "residual": residual, "weight": weight, "out_0": out_0, "out_1": out_1}
    bound = kernel.bind(**arguments)

    bare = ctypes.CDLL(os.environ["KILN_C_LIBRARY"]).kiln_bound_launch
    bare.argtypes, bare.restype = [ctypes.c_void_p, ctypes.c_void_p], ctypes.c_int
    handle = bound._handle
    yield "ctypes: kiln_bound_launch, bare", lambda: bare(handle, None)
    yield "bound.launch()", bound.launch
    yield "decorated(x, residual, weight)", lambda: add_norm(x, residual, weight)
    yield "  of it two results allocated", lambda: (device.empty((4, 4096), "f16"), device.empty((4, 4096), "f16"))
    yield "kernel(x=..., out_0=...)", lambda: kernel(**arguments)
    yield "kernel.bind(...)", lambda: kernel.bind(**arguments)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--short", action="store_true", help="few rounds, and no goals")
    short = parser.parse_args().short
    _library.call("kiln_c_check", _library.MAJOR, _library.MINOR)
    missed = False
    print(f"{'':36}{'us':>8}{'goal':>8}")
    for what, call in cases():
        call()
        us = microseconds(call, 20 if short else 2000, 3 if short else 15)
        goal = GOALS_US.get(what)
        print(f"{what:36}{us:8.2f}{goal or '':>8}")
        missed |= goal is not None and us > goal and not short
    if missed:
        sys.exit("a goal was missed")


if __name__ == "__main__":
    main()
