"""Jit, Kernel and Bound: spec texts to kernels, and kernels to launches."""

import ctypes
import json
import os
from ctypes import byref, c_char_p, c_size_t, c_uint32

from . import _library, _rocm, arrays
from .arguments import Arguments, as_python, number, require_device, require_place, require_writable
from .calls import Call, kind_of, remember
from .device import Device
from .errors import UserError, with_cited_line


def check_spec(text):
    """Parses a spec and returns its canonical text. Raises UserError with line, column, and the line itself."""
    try:
        return _library.text("kiln_spec_check", text.encode())
    except UserError as error:
        raise with_cited_line(error, text) from None


class Jit(_library.Owned):
    """Compiles specs, each once, through memory, the kernel cache and worker processes.

    device    a Device or its name; None: what KILN_DEVICE names
    arch      instead of a device, to compile for one that is not here: "gfx950"
    settings  variables of docs/environment.md for this Jit alone: {"KILN_CACHE_DIR": "/path"}
    log       called with each line that would go to stderr, by any thread
    batch_invariant  the bits of a row depend on its own inputs alone; None: as KILN_BATCH_INVARIANT says
    """

    _free = "kiln_jit_free"

    def __init__(self, device=None, *, arch=None, settings=None, log=None, batch_invariant=None):
        self.device = None if arch else device if isinstance(device, Device) else Device(device)
        invariant = {} if batch_invariant is None else {"KILN_BATCH_INVARIANT": int(batch_invariant)}
        pairs = {**_rocm.settings(), **(settings or {}), **invariant}.items()
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
        return Kernel(self._compile("kiln_jit_compile", spec, fields), self.device)

    def compile_async(self, spec, fields=()):
        """The same in the background: a Pending."""
        return Pending(self._compile("kiln_jit_compile_async", spec, fields), self)

    def _compile(self, function, spec, fields):
        arguments = _compile_arguments(spec, fields)
        try:
            return _library.make(function, self._handle, *arguments)
        except UserError as error:
            raise with_cited_line(error, spec) from None

    @property
    def fp8(self):
        """The native e4m3 of its architecture: "e4m3fnuz" or "e4m3fn"."""
        if self.device is not None:
            return self.device.fp8
        return "e4m3fnuz" if self.arch == "gfx942" else "e4m3fn"

    def stats(self):
        """Counts of where kernels came from, by name."""
        return json.loads(_library.text("kiln_jit_stats", self._handle))

    def __repr__(self):
        return f"kiln.Jit({self.arch if self.device is None else self.device.description})"


def _compile_arguments(spec, fields):
    if not isinstance(spec, str):
        raise TypeError(f"a spec is a text, not {type(spec).__name__}; kiln.kernel makes one of a function")
    texts = [field.encode() for field in fields]
    return spec.encode(), (c_char_p * len(texts))(*texts), len(texts)


class Pending(_library.Owned):
    """A compile in the background."""

    _free = "kiln_pending_free"

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


class Declared:
    """A tensor as the spec declares it. `shape` has numbers, and names of run-time sizes."""

    def __init__(self, kind, entry):
        self.kind, self.name, self.dtype = kind, entry["name"], entry["dtype"]
        self.shape, self.in_place_of = tuple(entry["shape"]), entry.get("in_place_of") or None

    def __repr__(self):
        return f"{self.name}: {self.dtype}[{', '.join(str(extent) for extent in self.shape)}]"


class Kernel(_library.Owned):
    """A compiled kernel. Called with arrays by name, it launches, and returns its outputs by name."""

    _free = "kiln_kernel_free"

    def __init__(self, handle, device):
        self._handle, self.device = handle, device
        self.spec = _library.get("kiln_kernel_spec", handle)
        self.name = _library.get("kiln_kernel_name", handle)
        self.arch = _library.get("kiln_kernel_arch", handle)
        self.key = _library.get("kiln_kernel_key", handle)
        self.origin = _library.get("kiln_kernel_origin", handle)
        declared = json.loads(_library.text("kiln_spec_describe", self.spec.encode()))
        self.outputs = [Declared("output", entry) for entry in declared["outputs"]]
        self.tensors = {each.name: each for each in [Declared("input", entry) for entry in declared["inputs"]] + self.outputs}
        self.scalars = {entry["name"]: entry["dtype"] for entry in declared["scalars"]}
        self.workspace_bytes = _library.get("kiln_kernel_workspace_bytes", handle)
        self._calls = {}

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
        of the kind of the first array; in place of an input is that array. Returns all outputs by name.

        stream: a hipStream_t as a number, or a torch.cuda.Stream; None: torch's current stream beside torch's GPU tensors, else the
        device's default stream.
        """
        values = list(arguments.values())
        key = tuple((name, kind_of(value)) for name, value in arguments.items())
        call = self._calls.get(key)
        if call is None:
            call = Call(self, arguments, values)
            if all(kind is not None for _, kind in key):
                remember(self._calls, key, call)
        return dict(zip([output.name for output in self.outputs], call(values, stream)))

    def __repr__(self):
        arguments = [repr(tensor) for tensor in self.tensors.values() if tensor.kind == "input"]
        arguments += [f"{name}: {dtype}" for name, dtype in self.scalars.items()]
        results = ", ".join(repr(output) for output in self.outputs)
        return f"kiln.Kernel({self.name}({', '.join(arguments)}) -> {results}; {self.arch}, {self.origin})"


class Bound(_library.Owned):
    """A kernel with its arguments, all of them checked. Keeps the arrays that it was given."""

    _free = "kiln_bound_free"

    def __init__(self, kernel, arguments):
        require_device(kernel)
        self.kernel, self._given = kernel, dict(arguments)
        views = {name: self._view(name, value) for name, value in arguments.items() if arrays.is_array(value)}
        list_of_arguments = [(name, views.get(name), 0.0 if name in views else number(name, value)) for name, value in arguments.items()]
        self._arguments = Arguments(list_of_arguments)
        try:
            self._handle = _library.make(
                "kiln_kernel_bind", kernel._handle, kernel.device._handle, self._arguments.list, len(list_of_arguments)
            )
        except UserError as error:
            raise as_python(error, kernel, arguments, {name: view.dtype for name, view in views.items()}) from None
        kernel.device.launched[kernel.key] = kernel

    def _view(self, name, value):
        declared = self.kernel.tensors.get(name)
        view = arrays.as_declared(arrays.view(value, name), declared and declared.dtype)
        if view.place == "host":
            raise TypeError(f"kernel {self.kernel.name}, argument {name}: it lies in host memory; bind takes arrays of the device: use upload()")
        require_place(self.kernel, name, view)
        require_writable(self.kernel, name, view)
        return view

    @property
    def grid(self):
        """(workgroups, threads of each)"""
        workgroups, threads = c_uint32(), c_uint32()
        _library.get("kiln_bound_grid", self._handle, byref(workgroups), byref(threads))
        return workgroups.value, threads.value

    def launch(self, stream=None, _launch=_library.bound_launch):
        """On a hipStream_t as a number, or a torch.cuda.Stream; None: the device's default stream."""
        if stream is not None:
            stream = arrays.stream_address(stream)
        status = _launch(self._handle, stream)
        if status:
            _library.raise_error(status)

    def __repr__(self):
        workgroups, threads = self.grid
        given = ", ".join(f"{name}={value!r}" if not arrays.is_array(value) else name for name, value in self._given.items())
        return f"kiln.Bound({self.kernel.name}({given}), {workgroups} workgroups of {threads} threads)"


_jits = {}


def default_jit(device=None):
    """One Jit for each device of this process: of a Device, a name, or (None) what KILN_DEVICE names."""
    key = (device, os.getpid())  # a child of fork() makes its own
    if key not in _jits:
        _jits[key] = Jit(device)
    return _jits[key]
