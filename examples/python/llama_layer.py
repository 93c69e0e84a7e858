"""One layer of a Llama while it decodes, written with torch and then with kiln.torch's operators: the same results, fewer operators.

    ./dev exec env KILN_C_LIBRARY=$PWD/build/lib/libkiln_c.so.1 PYTHONPATH=python python3 examples/python/llama_layer.py

after a `./dev --with torch test`, which adds python3-torch.
Without a GPU the CPU model computes, so sizes are small. On one, put the tensors on "cuda".
"""

import argparse
import collections

import torch
import torch.nn.functional as F
from torch.utils._python_dispatch import TorchDispatchMode

import kiln
import kiln.torch

HEADS, KV_HEADS, D, HIDDEN, WIDE, LENGTH, SEQUENCES = 4, 2, 128, 512, 1024, 64, 2
OP = torch.ops.kiln


@kiln.torch.operator(namespace="llama")
@kiln.kernel
def gated(a, b, *, n: int = WIDE):
    """silu(gate) * up of one product's halves, in one launch."""
    product = a @ b.T
    return kiln.cast("f16", kiln.silu(product[..., :n]) * product[..., n:])


class Layer(torch.nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(1)
        matrix = lambda rows, cols: torch.nn.Parameter((torch.randn(rows, cols) * cols**-0.5).half(), requires_grad=False)
        self.qkv, self.o = matrix((HEADS + 2 * KV_HEADS) * D, HIDDEN), matrix(HIDDEN, HEADS * D)
        self.gate_up, self.down = matrix(2 * WIDE, HIDDEN), matrix(HIDDEN, WIDE)
        self.norm_1, self.norm_2 = (torch.nn.Parameter(torch.ones(HIDDEN).half(), requires_grad=False) for _ in range(2))
        angle = torch.outer(torch.arange(LENGTH), 10000.0 ** (-torch.arange(D // 2) / (D // 2)))
        self.register_buffer("cos", angle.cos().half())
        self.register_buffer("sin", angle.sin().half())

    def split(self, qkv):
        return (part.unflatten(-1, (-1, D)) for part in qkv.split((HEADS * D, KV_HEADS * D, KV_HEADS * D), -1))


class TorchLayer(Layer):
    def rope(self, x, positions):
        c, s = self.cos[positions][:, None], self.sin[positions][:, None]
        first, second = x.chunk(2, -1)
        return torch.cat((first * c - second * s, second * c + first * s), -1)

    def forward(self, x, k_cache, v_cache, positions):
        y = F.rms_norm(x, (HIDDEN,), self.norm_1, 1e-6)
        q, k, v = self.split(F.linear(y, self.qkv))
        q, k = self.rope(q, positions), self.rope(k, positions)
        rows = torch.arange(SEQUENCES)
        k_cache[rows, positions], v_cache[rows, positions] = k, v
        mask = (torch.arange(LENGTH) <= positions[:, None])[:, None, None]
        keys, values = (cache.transpose(1, 2).repeat_interleave(HEADS // KV_HEADS, 1) for cache in (k_cache, v_cache))
        o = F.scaled_dot_product_attention(q[:, :, None], keys, values, mask)
        h = x + F.linear(o.flatten(1), self.o)
        gate, up = F.linear(F.rms_norm(h, (HIDDEN,), self.norm_2, 1e-6), self.gate_up).chunk(2, -1)
        return h + F.linear(F.silu(gate) * up, self.down)


class KilnLayer(Layer):
    def forward(self, x, k_cache, v_cache, positions):
        q, k, v = self.split(OP.gemm(OP.rmsnorm(x, self.norm_1), self.qkv))
        where = positions.view(-1, 1, 1)
        slots = where + torch.arange(0, SEQUENCES * LENGTH, LENGTH).view(-1, 1, 1)  # the same for all layers of a model
        OP.rope_kv_write(k_cache.flatten(0, 1), slots, k, self.cos, where, self.sin, v_cache.flatten(0, 1), v)
        lengths = (where + 1).int()
        o = OP.attention_decode(OP.rope(q, self.cos, where, self.sin), k_cache, v_cache, lengths)
        h = OP.gemm_residual(o.flatten(1), self.o, x)
        return OP.gemm_residual(torch.ops.llama.gated(OP.rmsnorm(h, self.norm_2), self.gate_up), self.down, h)


class Operators(TorchDispatchMode):
    """Counts operators that compute; views cost nothing."""

    def __init__(self):
        super().__init__()
        self.counts = collections.Counter()

    def __torch_dispatch__(self, operator, types, arguments=(), options=None):
        if not any(result.alias_info and not result.alias_info.is_write for result in operator._schema.returns):
            self.counts[operator.overloadpacket.__name__] += 1
        return operator(*arguments, **(options or {}))


@torch.no_grad()
def run(layer, x, steps):
    k_cache, v_cache = (torch.zeros(SEQUENCES, LENGTH, KV_HEADS, D).half() for _ in range(2))
    for step in range(steps):
        positions = torch.tensor([step, step + 3])
        with Operators() as operators:
            x = layer(x, k_cache, v_cache, positions)
    return x, operators.counts


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--device", default="emulated:gfx942")
    kiln.torch.use(parser.parse_args().device)
    x = torch.randn(SEQUENCES, HIDDEN, generator=torch.Generator().manual_seed(2)).half()
    wanted, before = run(TorchLayer(), x, 3)
    got, after = run(KilnLayer(), x, 3)
    print(f"before: {sum(before.values())} operators: {', '.join(before)}")
    print(f"after:  {sum(after.values())} operators: {', '.join(after)}")
    print(f"of these {sum(count for name, count in after.items() if hasattr(OP, name) or hasattr(torch.ops.llama, name))} are Kiln's")
    print(f"the results differ by at most {(got.float() - wanted.float()).abs().max().item():.4f}, and are up to {wanted.abs().max().item():.1f}")


if __name__ == "__main__":
    main()
