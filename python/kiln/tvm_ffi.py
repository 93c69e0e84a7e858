"""Kiln's kernels as modules of tvm-ffi, which has to be installed beside Kiln (docs/tvm_ffi.md)."""

import os
from functools import cache
from pathlib import Path

import tvm_ffi

from . import _library


@cache
def _loader():
    return tvm_ffi.load_module(str(Path(_library.path).with_name("libkiln_tvm_ffi.so")))["load_module"]


def load_module(path, device=""):
    """The module of a cache folder that `kiln aot` made, a manifest for it, or a .kiln file with the text of one kernel.

    `device`: "hip:0" or "emulated:gfx942"; without it what KILN_DEVICE says. Functions take tensors and numbers in the order that
    get_function_doc(name) shows, outputs last.
    """
    return _loader()(os.fspath(path), device)
