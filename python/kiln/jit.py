"""Jit, Kernel and Bound: spec texts to kernels, and kernels to launches."""

import ctypes
import json
import os
import re
from ctypes import POINTER, byref, c_char_p, c_size_t, c_uint32

from . import _library, _rocm, arrays
from .device import Device
from .errors import ArgumentTypeError, UserError


def check_spec(text):
    """Parses a spec and returns its canonical text. Raises UserError with line and column."""
    return _library.text("kiln_spec_check", text.encode())


class Jit:
    """Compiles specs, each once, through memory, the kernel cache and worker processes.

    device    a Device or its name; None: what KILN_DEVICE names
    arch      instead of a device, to compile for one that is not here: "gfx950"
    settings  variables of docs/environment.md for this Jit alone: {"KILN_CACHE_DIR": "/path"}
    log       called with each line that would go to stderr, by any thread
    """

    def __init__(self, device=None, *, arch=None, settings=None, log=None):
        self._handle = None
        self.device = None if arch else device if isinstance(device, Device) else Device(device)
        pairs = {**_rocm.settings(), **(settings or {})}.items()
        list_of_pairs = (_library.Setting * len(pairs))(*[(name.encode(), str(value).encode()) for name, value in pairs])
        self._log = _library.LOG(lambda _, line: log(line.decode())) if log else _library.LOG()
        options = _library.JitOptions(ctypes.sizeof(_library.JitOptions), list_of_pairs, len(pairs), self._log, None)
        if arch:
            self._handle = _library.make("kiln_jit_create_for", arch.encode(), byref(options))
        else:
            self._handle = _library.make("kiln_jit_create", self.device._handle, byref(options))
        self.arch = _library.get("kiln_jit_arch", self._handle)

    def compile(self, spec, fields=()):
        """The kernel of a spec's text. `fields` of the schedule to fix: ["vec=4"]."""
        return Kernel(_library.make("kiln_jit_compile", self._handle, *_compile_arguments(spec, fields)), self.device)

    def compile_async(self, spec, fields=()):
        """The same in the background: a Pending."""
        return Pending(_library.make("kiln_jit_compile_async", self._handle, *_compile_arguments(spec, fields)), self)

    def stats(self):
        """Counts of where kernels came from, by name."""
        return json.loads(_library.text("kiln_jit_stats", self._handle))

    def __del__(self):
        if self._handle is not None:
            _library.get("kiln_jit_free", self._handle)


def _compile_arguments(spec, fields):
    if not isinstance(spec, str):
        raise TypeError(f"a spec is a text, not {type(spec).__name__}; kiln.kernel makes one of a function")
    texts = [field.encode() for field in fields]
    return spec.encode(), (c_char_p * len(texts))(*texts), len(texts)


class Pending:
    """A compile in the background."""

    def __init__(self, handle, jit):
        self._handle, self._jit = handle, jit

    def result(self, timeout=None):
        """The Kernel. Raises what the compile raised, and TimeoutError after `timeout` seconds."""
        kernel = ctypes.c_void_p()
        limit = -1 if timeout is None else max(0, int(timeout * 1000))
        if _library.call("kiln_pending_wait", self._handle, limit, byref(kernel)) == _library.NOT_READY:
            raise TimeoutError("the compile goes on")
        return Kernel(kernel.value, self._jit.device)

    def done(self):
        try:
            self.result(0)
        except TimeoutError:
            return False
        except Exception:  # it has failed: result() says how
            return True
        return True

    def __del__(self):
        _library.get("kiln_pending_free", self._handle)


class Declared:
    """A tensor as the spec declares it. `shape` has numbers, and names of run-time sizes."""

    def __init__(self, kind, name, dtype, shape, in_place_of=None):
        self.kind, self.name, self.dtype, self.in_place_of = kind, name, dtype, in_place_of
        self.shape = tuple(int(extent) if extent.isdigit() else extent for extent in re.findall(r"\w+", shape))


def _declarations(spec):
    """The tensors of a canonical text, which has each on a line of its own."""
    found = [Declared(*match) for match in re.findall(r"^(input) (\w+): (\w+)\[(.*?)\]", spec, re.M)]
    for name, dtype, shape, rest in re.findall(r"^output (\w+): (\w+)\[(.*?)\] = (.*)$", spec, re.M):
        in_place = re.search(r" in_place_of (\w+)", rest)
        found.append(Declared("output", name, dtype, shape, in_place and in_place.group(1)))
    return {tensor.name: tensor for tensor in found}


class Kernel:
    """A compiled kernel. Called with arrays by name, it launches, and returns its outputs by name."""

    def __init__(self, handle, device):
        self._handle, self.device = handle, device
        self.spec = _library.get("kiln_kernel_spec", handle)
        self.name = _library.get("kiln_kernel_name", handle)
        self.arch = _library.get("kiln_kernel_arch", handle)
        self.key = _library.get("kiln_kernel_key", handle)
        self.origin = _library.get("kiln_kernel_origin", handle)
        self.tensors = _declarations(self.spec)

    @property
    def meta(self):
        """Schedule, ISA facts, the verdict of the contract, compiler: meta.json of the cache."""
        return json.loads(_library.get("kiln_kernel_meta", self._handle))

    @property
    def interface(self):
        """Arguments, grid and workspace, for a launcher of one's own."""
        return json.loads(_library.get("kiln_kernel_interface", self._handle))

    @property
    def code_object(self):
        """The ELF file."""
        count = c_size_t()
        address = _library.get("kiln_kernel_code_object", self._handle, byref(count))
        return ctypes.string_at(address, count.value)

    def bind(self, **arguments):
        """Checks arrays in the device's memory, and numbers, and returns a Bound."""
        return Bound(self, arguments)

    def __call__(self, *, stream=None, **arguments):
        """Launches on arrays of any kind. Arrays in host memory are copied to the device and back. Outputs that are not given are made,
        of the kind of the first array; in place of an input is that array. Returns all outputs by name."""
        return _Run(self, arguments, stream).results()

    def __del__(self):
        _library.get("kiln_kernel_free", self._handle)

    def __repr__(self):
        return f"kiln.Kernel({self.name}, {self.arch}, {self.origin})"


class Bound:
    """A kernel with its arguments, all of them checked. Keeps the arrays that it was given."""

    def __init__(self, kernel, arguments):
        self._handle = None
        _require_device(kernel)
        self.kernel, self._keep = kernel, []
        given = (_library.Argument * len(arguments))()
        types = {}
        for slot, (name, value) in zip(given, arguments.items()):
            slot.name = name.encode()
            if arrays.is_array(value) or isinstance(value, arrays.View):
                view = value if isinstance(value, arrays.View) else arrays.view(value, name)
                _check_place(kernel, name, view)
                slot.tensor = ctypes.pointer(self._tensor(view))
                types[name] = view.dtype
            else:
                slot.number = _number(name, value)
        try:
            self._handle = _library.make("kiln_kernel_bind", kernel._handle, kernel.device._handle, given, len(arguments))
        except UserError as error:
            raise _as_python(error, kernel, arguments, types) from None

    def _tensor(self, view):
        rank = len(view.shape)
        shape, strides = _library.sizes(view.shape), None if view.strides is None else _library.sizes(view.strides)
        dtype = view.dtype.encode()
        self._keep.append((view, shape, strides, dtype))
        return _library.Tensor(view.address, dtype, rank, shape, strides)

    @property
    def grid(self):
        """(workgroups, threads of each)"""
        workgroups, threads = c_uint32(), c_uint32()
        _library.get("kiln_bound_grid", self._handle, byref(workgroups), byref(threads))
        return workgroups.value, threads.value

    def launch(self, stream=None):
        """On a hipStream_t as a number; None: the device's default stream."""
        self.kernel.device.launched[self.kernel.key] = self.kernel
        _library.call("kiln_bound_launch", self._handle, stream)

    def __del__(self):
        if self._handle is not None:
            _library.get("kiln_bound_free", self._handle)


def _require_device(kernel):
    if kernel.device is None:
        raise UserError(f"kernel {kernel.name}: it was compiled with no device; make the Jit with one to launch")


def _check_place(kernel, name, view):
    subject, here = f"kernel {kernel.name}, argument {name}", kernel.device
    if view.place == "host":
        raise TypeError(f"{subject}: it lies in host memory; bind takes arrays of the device: use upload()")
    if view.place == "device" and not view.owner.device.shares_memory_with(here):
        there = view.owner.device.description
        raise UserError(f"{subject}: it lies on {there}, and the kernel runs on {here.description}; upload it there, or use its Jit")
    if view.place == "gpu" and here.is_emulated:
        raise UserError(
            f"{subject}: it lies on GPU {view.ordinal}, and the kernel runs on {here.description}; make the Jit for hip:{view.ordinal}"
        )


def _number(name, value):
    try:
        return float(value)
    except (TypeError, ValueError):
        raise TypeError(f"argument {name}: {type(value).__name__} is neither an array nor a number") from None


def _as_python(error, kernel, arguments, types):
    """Kiln's words in Python's kind of error: types, and arguments that are missing or too many, are a TypeError."""
    named = re.match(rf"kernel {kernel.name}, argument (\w+): ", str(error))
    name = named and named.group(1)
    declared = kernel.tensors.get(name)
    wrong_type = declared is not None and name in types and types[name] != declared.dtype
    if name and (wrong_type or name not in arguments or "no such argument" in str(error)):
        return ArgumentTypeError(str(error))
    return error


class _Run:
    """One call of a kernel: which arrays are copied to the device, which are made, and what comes back."""

    def __init__(self, kernel, arguments, stream):
        _require_device(kernel)
        self.kernel, self.given, self.first, self.back = kernel, {}, None, []
        self.made, self.stream = {}, stream
        for name, value in arguments.items():
            is_array = arrays.is_array(value)
            if is_array and self.first is None:
                self.first, self.stream = value, stream or arrays.current_stream(value)
            self.given[name] = self._on_device(name, value) if is_array else value
        self._make_outputs(arguments)
        Bound(kernel, self.given).launch(self.stream)

    def _on_device(self, name, value):
        given = arrays.view(value, name, self.stream)
        if given.place != "host":
            return given
        copy = self.kernel.device.upload(value, name)
        declared = self.kernel.tensors.get(name)
        in_place = [t.name for t in self.kernel.tensors.values() if t.in_place_of == name]
        if in_place or (declared is not None and declared.kind == "output"):
            self.back.append((copy, value))
            self.made[in_place[0] if in_place else name] = value
        return copy

    def _sizes(self):
        """Run-time sizes by name; bind has the last word on them."""
        sizes = {}
        for name, value in self.given.items():
            declared = self.kernel.tensors.get(name)
            if declared is not None and hasattr(value, "shape"):
                sizes.update((extent, size) for extent, size in zip(declared.shape, value.shape) if isinstance(extent, str))
        return sizes

    def _make_outputs(self, arguments):
        sizes, device = self._sizes(), self.kernel.device
        for output in self.kernel.tensors.values():
            if output.kind != "output" or output.name in self.made:
                continue
            if output.name in arguments or output.in_place_of in arguments:
                self.made[output.name] = arguments.get(output.name, arguments.get(output.in_place_of))
                continue
            if output.in_place_of or any(isinstance(extent, str) and extent not in sizes for extent in output.shape):
                continue  # an input is missing: bind says which
            shape = tuple(sizes.get(extent, extent) for extent in output.shape)
            on_host = self.first is not None and arrays.view(self.first).place == "host"
            if not on_host and arrays.is_torch(self.first):
                self.given[output.name] = self.made[output.name] = arrays.like(self.first, shape, output.dtype)
                continue
            self.given[output.name] = self.made[output.name] = device.empty(shape, output.dtype, output.name)
            if on_host:
                self.made[output.name] = arrays.like(self.first, shape, output.dtype)
                self.back.append((self.given[output.name], self.made[output.name]))

    def results(self):
        for copy, host in self.back:
            target = arrays.view(host)
            if not target.is_contiguous:
                arrays.storage(host)[...] = arrays.storage(copy.numpy(self.stream))
            else:
                copy.read_into(target.address, self.stream)
        order = [tensor.name for tensor in self.kernel.tensors.values() if tensor.kind == "output"]
        return {name: self.made[name] for name in order}


_jits = {}


def default_jit(device=None):
    """One Jit for each device of this process: of a Device, a name, or (None) what KILN_DEVICE names."""
    key = (device, os.getpid())  # a child of fork() makes its own
    if key not in _jits:
        _jits[key] = Jit(device)
    return _jits[key]
