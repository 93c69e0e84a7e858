"""torch's streams and memory on a GPU: results and workspaces come from its caching allocator. Loaded when a tensor on a GPU comes."""

import functools

import torch

from . import dtypes


def stream_of(device):
    """torch's current stream of a device as a number; None for the default stream."""
    return torch.cuda.current_stream(device).cuda_stream or None


def is_capturing():
    return torch.cuda.is_current_stream_capturing()


def result_maker(like, shape, dtype):
    """What makes a tensor for a result, on the device of the tensor `like`."""
    if dtype == "e2m1":
        shape = (*shape[:-1], shape[-1] // 2)
    return functools.partial(torch.empty, shape, dtype=dtypes.torch_dtype(dtype), device=like.device)


def record(stream, tensors):
    """Tells the allocator that a stream uses the tensors which is not the one that they were made on."""
    if not isinstance(stream, torch.cuda.Stream):
        stream = torch.cuda.ExternalStream(stream)
    for tensor in tensors:
        tensor.record_stream(stream)


class Workspaces:
    """A kernel's workspaces, zero before their first launch: one for each stream, whose launches follow one another. While a graph is
    captured each launch has one of its own, which the graph keeps and zeroes when it is replayed."""

    def __init__(self, count, device):
        self._make = functools.partial(torch.zeros, count, dtype=torch.uint8, device=device)
        self._of_streams = {}

    def address(self, stream):
        if is_capturing():
            return self._make().data_ptr()
        if stream not in self._of_streams:
            self._of_streams[stream] = self._make()
        return self._of_streams[stream].data_ptr()
