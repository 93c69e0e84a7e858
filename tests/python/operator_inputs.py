"""Inputs for the operators of kiln.torch, of small sizes, whose indices, lengths, tables and orders mean something; and what torch computes
of them on the CPU."""

import math

import torch
import torch.nn.functional as F
from support import ARCH, FP8, FP8_MAX

from kiln import catalog, dtypes

TORCH_FP8 = {"e4m3fnuz": torch.float8_e4m3fnuz, "e4m3fn": torch.float8_e4m3fn}[FP8]
SIZES = {"rows": 3, "m": 3, "tokens": 5, "batch": 2, "sequences": 2, "vocabulary": 11, "positions": 13, "slots": 9, "pages_of_all": 8}


class Inputs:
    def __init__(self, name, **options):
        facts = catalog.operators()[name]
        self.random = torch.Generator().manual_seed(len(name))
        self.options = options
        spec = {facts["options"][option]: _text(value) for option, value in options.items()}
        given = {**catalog.base_of(facts["entry"], facts["fixed"]), **spec}
        described = catalog.described(facts["entry"], ARCH, given)
        self.tensors = {}
        self.experts = torch.stack([torch.randperm(given.get("experts", 16), generator=self.random)[: 1 if name.startswith("lora") else given.get("top", 4)] for _ in range(SIZES["tokens"])])
        for entry in described["inputs"]:
            shape = [SIZES.get(size, size) for size in entry["shape"]]
            self.tensors[entry["name"]] = self._tensor(name, entry["name"], entry["dtype"], shape)
        taken = [parameter for _, parameter, _ in facts["parameters"]]
        self.values = [self.tensors.get(each, 0.5 if each == "alpha" else None) for each in taken if each not in facts["options"]]

    def _tensor(self, operator, name, dtype, shape):
        special = self._index(operator, name, shape)
        if special is not None:
            return special.to(dtypes.torch_dtype(dtype)).reshape(shape)
        if dtype == "e2m1":
            return torch.randint(0, 256, (*shape[:-1], shape[-1] // 2), generator=self.random, dtype=torch.uint8)
        if dtype == "e8m0":
            return torch.randint(120, 130, shape, generator=self.random, dtype=torch.uint8).view(torch.float8_e8m0fnu)
        if dtype in ("u8", "i8"):
            return torch.randint(0, 16 if name == "zero" else 100, shape, generator=self.random).to(dtypes.torch_dtype(dtype))
        numbers = torch.randn(shape, generator=self.random)
        if name.endswith("scale") or name in ("temperature", "weights"):
            numbers = numbers.abs() * 0.05 + 0.05
        return (numbers * (0.3 if name == "b" else 1)).to(dtypes.torch_dtype(dtype))

    def _index(self, operator, name, shape):
        pick = lambda most, count: torch.randperm(most, generator=self.random)[:count]
        if name == "ids":
            return torch.tensor([7, -1, 0])
        if name == "position":
            return pick(SIZES["positions"], SIZES["rows"])
        if name == "slot":
            return pick(SIZES["slots"], math.prod(shape))
        if name == "lengths":
            return torch.tensor([5, 64])
        if name == "pages":
            return pick(SIZES["pages_of_all"], 8)
        if name == "experts":
            return self.experts
        if name in ("order", "offsets"):
            experts = self.experts[: SIZES["m"]].flatten()
            if name == "order":
                return torch.argsort(experts, stable=True)
            return torch.cat([torch.zeros(1, dtype=torch.int64), torch.bincount(experts, minlength=shape[0] - 1).cumsum(0)])
        return None


def _text(value):
    return dtypes.type_name(value) if isinstance(value, torch.dtype) else value


# ---- what torch says. Each gets the inputs in f32, and gives the results in the order of the operator.


def wide(tensor):
    if tensor.dtype == torch.float8_e8m0fnu:
        return torch.exp2(tensor.view(torch.uint8).float() - 127)
    return tensor if tensor.dtype in (torch.int32, torch.int64, torch.uint8) else tensor.float()


E2M1 = torch.tensor([0, 0.5, 1, 1.5, 2, 3, 4, 6, -0.0, -0.5, -1, -1.5, -2, -3, -4, -6])


def of_e2m1(q):
    """The numbers of bytes with two elements each, the first in the low half."""
    return torch.stack((E2M1[(q & 15).long()], E2M1[(q >> 4).long()]), -1).flatten(-2)


def norm(x, weight=1.0):
    return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6) * weight


def quantised(y, scale):
    return (y / scale).clamp(-FP8_MAX, FP8_MAX).to(TORCH_FP8)


def token_scale(y):
    return y.abs().amax(-1, keepdim=True).clamp(min=1e-10) / FP8_MAX


def row_quant(a, b, bias, residual):
    h = F.gelu(F.linear(a, b, bias), approximate="tanh") + residual
    return token_scale(h), quantised(h, token_scale(h))


def add_rmsnorm(x, residual, weight):
    h = (x + residual).half()
    return h, norm(h.float(), weight)


def add_rmsnorm_quant(x, residual, weight, scale):
    h, y = add_rmsnorm(x, residual, weight)
    return h, quantised(y, scale)


def add_rmsnorm_dynamic_quant(x, residual, weight):
    h, y = add_rmsnorm(x, residual, weight)
    return h, token_scale(y), quantised(y, token_scale(y))


def rope(x, cos_table, position, sin_table):
    c, s = (table[position.flatten()][:, None, :] for table in (cos_table, sin_table))
    first, second = x.chunk(2, -1)
    return torch.cat((first * c - second * s, second * c + first * s), -1)


def rope_kv_write(k_cache, slot, k, cos_table, position, sin_table, v_cache, v):
    k_cache, v_cache = k_cache.clone(), v_cache.clone()
    k_cache[slot.flatten()], v_cache[slot.flatten()] = rope(k, cos_table, position, sin_table), v
    return k_cache, v_cache


def group_scale(x):
    return x.unflatten(-1, (-1, 128)).abs().amax(-1).clamp(min=1e-10) / FP8_MAX


def group_quant(x):
    return group_scale(x), quantised(x, group_scale(x).repeat_interleave(128, -1))


def routed(logits, top=8):
    values, columns = logits.topk(top, -1)
    return values.softmax(-1), columns.int()


def lse_merge(a, a_lse, b_lse, b):
    lse = torch.logaddexp(a_lse, b_lse)
    return a * (a_lse - lse).exp() + b * (b_lse - lse).exp(), lse


def attention(q, k, v, lengths):
    group = q.shape[1] // k.shape[2]
    results = []
    for i, length in enumerate(lengths.flatten().tolist()):
        keys, values = (cache[i, :length].repeat_interleave(group, 1).transpose(0, 1) for cache in (k, v))
        results.append(F.scaled_dot_product_attention(q[i][:, None], keys, values)[:, 0])
    return torch.stack(results)


def attention_paged(q, k, pages, v, lengths):
    return attention(q, *(cache[pages].flatten(1, 2) for cache in (k, v)), lengths)


def by_expert(a, b, order, offsets):
    """The products of each pair, [tokens, top, n]; a is [tokens, k] or [tokens, top, k]."""
    tokens, top = order.shape
    rows = a.unsqueeze(1).expand(-1, top, -1) if a.ndim == 2 else a
    result = torch.empty(tokens * top, b.shape[1])
    for expert in range(b.shape[0]):
        pairs = order.flatten()[offsets[expert] : offsets[expert + 1]].long()
        result[pairs] = rows.flatten(0, 1)[pairs] @ b[expert].T
    return result.unflatten(0, (tokens, top))


def swiglu(product):
    gate, up = product.chunk(2, -1)
    return F.silu(gate) * up


def moe_sort(experts, num_experts=64):
    return torch.argsort(experts.flatten(), stable=True).reshape(experts.shape).int(), torch.cat(
        [torch.zeros(1, dtype=torch.int64), torch.bincount(experts.flatten(), minlength=num_experts).cumsum(0)]
    ).int()


def hadamard(x, group=128):
    matrix = torch.ones(1, 1)
    while len(matrix) < group:
        matrix = torch.cat((torch.cat((matrix, matrix), 1), torch.cat((matrix, -matrix), 1)))
    return (x.unflatten(-1, (-1, group)) @ matrix / group**0.5).flatten(-2)


def sinkhorn(x, side=4, times=20):
    y = x.exp().unflatten(-1, (-1, side, side))
    for _ in range(times):
        y = y / y.sum(-1, keepdim=True)
        y = y / y.sum(-2, keepdim=True)
    return y.flatten(-3)


def w4(a, b, scale, zero, group=128):
    numbers = torch.stack((b & 15, b >> 4), -1).flatten(-2).float()
    weights = (numbers - zero.float().repeat_interleave(group, -1)) * scale.repeat_interleave(group, -1)
    return a @ weights.half().float().T


def to_e2m1(x):
    """Bytes with two elements each: the nearest numbers, of two the one with an even code, and 6 for what is larger."""
    between = (E2M1[:7] + E2M1[1:8]) / 2
    below, above = (torch.bucketize(x.abs(), between, right=right) for right in (False, True))  # they differ right between two numbers
    codes = (torch.where(below % 2 == 0, below, above) + 8 * torch.signbit(x)).byte().unflatten(-1, (-1, 2))
    return codes[..., 0] | codes[..., 1] << 4


def mx_quant(x):
    """OCP MX: the power of two at or below the largest of 32, over that of e2m1's largest, 4; and the elements over it."""
    absmax = x.unflatten(-1, (-1, 32)).abs().amax(-1)
    scale = torch.ldexp(torch.ones_like(absmax), torch.frexp(absmax).exponent - 1 - 2)
    return scale, to_e2m1(x / scale.repeat_interleave(32, -1))


def add_rmsnorm_mx_quant(x, residual, weight):
    h, y = add_rmsnorm(x, residual, weight)
    return h, *mx_quant(y)


def router_sorted(a, b):
    weights, experts = routed(a @ b.T)
    return weights, experts, *moe_sort(experts, b.shape[0])


def block_scaled(a, b, a_scale, b_scale):
    blocks = lambda scale, rows, cols: scale.repeat_interleave(128, -1)[:, :cols].repeat_interleave(rows, 0)
    return (a * blocks(a_scale, 1, a.shape[1])) @ (b * blocks(b_scale, 128, b.shape[1])).T


def dynamic_product(a, b, b_scale):
    largest = a.abs().amax(-1, keepdim=True)
    return (quantised(a, largest / FP8_MAX).float() @ b.T) * (largest / FP8_MAX) * b_scale


def argmax(x):
    return x.argmax(-1, keepdim=True).int(), x.amax(-1, keepdim=True)


def philox(counter, key):
    """Philox 4x32-10 of four counters and two keys, in int64."""
    low = 0xFFFFFFFF
    for turn in range(10):
        first, second = 0xD2511F53 * counter[0], 0xCD9E8D57 * counter[2]
        keys = [(key[i] + turn * step) & low for i, step in enumerate((0x9E3779B9, 0xBB67AE85))]
        counter = [_high(0xCD9E8D57, counter[2]) ^ counter[1] ^ keys[0], second & low, _high(0xD2511F53, counter[0]) ^ counter[3] ^ keys[1], first & low]
    return counter


def _high(a, b):
    """The upper 32 bits of a product of two numbers of 32 bits, which int64 does not hold."""
    low = (a & 0xFFFF) * b
    return ((a >> 16) * b + (low >> 16)) >> 16


def gumbel(position, offset, seed):
    position, offset, seed = (x.long() & 0xFFFFFFFF for x in (position, offset, seed))
    words = torch.stack(torch.broadcast_tensors(*philox([position >> 2, offset, position * 0, position * 0], [seed, seed * 0])), -1)
    bits = words.gather(-1, (position & 3).expand(words.shape[:-1])[..., None])[..., 0]
    return -torch.log(-torch.log(((bits >> 9).double() + 0.5) * 2**-23))


def sample_gumbel(logits, temperature, seed, offset):
    noisy = logits / temperature.clamp(min=1e-5) + gumbel(torch.arange(logits.shape[-1]), offset, seed)
    return noisy.argmax(-1, keepdim=True).int()


def sample_top_k_top_p(logits, temperature, k, p, min_p, seed, offset):
    z, columns = torch.sort(logits, dim=-1, descending=True, stable=True)
    z, columns, rank = z[:, :256] / temperature.clamp(min=1e-5), columns[:, :256], torch.arange(min(256, logits.shape[-1]))
    share = torch.exp(z - z[:, :1]) * (rank < k)
    before = share.cumsum(-1) - share
    stays = (rank < 1) | ((before < p * share.sum(-1, keepdim=True)) & (share >= min_p) & (share > 0))
    best = torch.where(stays, z + gumbel(columns, offset, seed), -math.inf).argmax(-1, keepdim=True)
    return columns.gather(-1, best).int()


def conv1d_update(state, slot, x, bias, weight):
    window = torch.cat((state[slot.flatten()], x[:, None]), 1)
    return F.silu(bias + (window * weight).sum(1))


def gated_delta_update(state, slot, a_log, a, dt_bias, v, k, b, q):
    unit = lambda x: x * torch.rsqrt(x.pow(2).sum(-1, keepdim=True) + 1e-6)
    old = state[slot.flatten()] * torch.exp(-a_log.exp() * F.softplus(a + dt_bias))
    delta = (v - (old * unit(k)).sum(-1, keepdim=True)) * b.sigmoid()
    return ((old + delta * unit(k)) * unit(q)).sum(-1, keepdim=True) * q.shape[-1] ** -0.5


def ssm_update(state, slot, a_log, dt, dt_bias, x, b, c, skip):
    step = F.softplus(dt + dt_bias)
    s = state[slot.flatten()] * torch.exp(-a_log.exp() * step) + step * x * b
    return (s * c).sum(-1, keepdim=True) + skip * x


REFERENCES = {
    "conv1d_update": conv1d_update,
    "gated_delta_update": gated_delta_update,
    "ssm_update": ssm_update,
    "gated_norm": lambda x, weight, gate: norm(x, weight) * F.silu(gate),
    "clamped_swiglu": lambda up, gate: (up.clamp(-7, 7) + 1) * gate.clamp(max=7) * torch.sigmoid(1.702 * gate.clamp(max=7)),
    "add_rmsnorm_quant": add_rmsnorm_quant,
    "add_rmsnorm_quant_dynamic_scale": add_rmsnorm_dynamic_quant,
    "add_rmsnorm_dynamic_quant": add_rmsnorm_dynamic_quant,
    "rmsnorm": lambda x, weight: F.rms_norm(x, x.shape[-1:], weight, 1e-6),
    "layernorm": lambda x, weight, bias: F.layer_norm(x, x.shape[-1:], weight, bias, 1e-6),
    "softmax": lambda x: x.softmax(-1),
    "softmax_temperature": lambda x, temperature: (x / temperature).softmax(-1),
    "argmax_rows": argmax,
    "sample_gumbel": sample_gumbel,
    "sample_top_k_top_p": sample_top_k_top_p,
    "hadamard": hadamard,
    "sinkhorn": sinkhorn,
    "layernorm_modulate": lambda x, scale, shift: F.layer_norm(x, x.shape[-1:], None, None, 1e-6) * (1 + scale) + shift,
    "lse_merge": lse_merge,
    "topk_softmax": routed,
    "moe_sort": moe_sort,
    "embedding": lambda table, ids: torch.where(ids < 0, 0, table[ids.flatten()]),
    "rope": rope,
    "qk_norm": lambda q, q_weight, k, k_weight: (norm(q, q_weight), norm(k, k_weight)),
    "rope_kv_write": rope_kv_write,
    "swiglu_quant": lambda gate, up, scale: quantised(F.silu(gate) * up, scale),
    "gelu_mul": lambda gate, up: F.gelu(gate) * up,
    "silu_mul": lambda gate, up: F.silu(gate) * up,
    "add_bias_gelu": lambda x, bias: F.gelu(x + bias, approximate="tanh"),
    "per_token_quant": lambda x: (token_scale(x), quantised(x, token_scale(x))),
    "group_quant": group_quant,
    "dequant": lambda q, scale: q * scale,
    "group_dequant": lambda q, scale: q * scale.repeat_interleave(128, -1),
    "mx_quant": mx_quant,
    "silu_mul_mx_quant": lambda gate, up: mx_quant(F.silu(gate) * up),
    "add_rmsnorm_mx_quant": add_rmsnorm_mx_quant,
    "mx_dequant": lambda q, scale: of_e2m1(q) * scale.repeat_interleave(32, -1),
    "scaled_add": lambda x, y, alpha: x + alpha * y,
    "cast": lambda x: quantised(x, 1.0),
    "gemm": lambda a, b: a @ b.T,
    "gemm_quant": lambda a, b, scale: quantised(a @ b.T, scale),
    "router": lambda a, b: routed(a @ b.T),
    "router_sorted": router_sorted,
    "gemm_bias": lambda a, b, bias: F.linear(a, b, bias),
    "gemm_residual": lambda a, b, residual: a @ b.T + residual,
    "gemm_gelu_residual_row_quant": row_quant,
    "gemm_swiglu_quant": lambda a, b, scale: quantised(swiglu(a @ b.T), scale),
    "gemm_w8a16": lambda a, b, b_scale: a @ b.T * b_scale,
    "gemm_w4a16": w4,
    "gemm_w_mxfp4": lambda a, b, scale: a @ (of_e2m1(b) * scale.repeat_interleave(32, -1)).T,
    "gemm_mx": lambda a, b, a_scale, b_scale: (of_e2m1(a) * a_scale.repeat_interleave(32, -1)) @ (of_e2m1(b) * b_scale.repeat_interleave(32, -1)).T,
    "gemm_dynamic_quant": dynamic_product,
    "gemm_block_scaled": block_scaled,
    "attention_decode": attention,
    "attention_paged": attention_paged,
    "lora_shrink": by_expert,
    "lora_expand_add": lambda shrunk, b, order, offsets, base: by_expert(shrunk, b, order, offsets) + base,
    "gemm_lora": lambda x, w, a: (x @ w.T, x @ a.T),
    "gemm_lora_add": lambda x, w, a, b: x @ w.T + (x @ a.T) @ b.T,
    "grouped_gemm": by_expert,
    "grouped_gemm_swiglu": lambda a, b, order, offsets: swiglu(by_expert(a, b, order, offsets)),
    "grouped_gemm_sum": lambda a, b, order, offsets, weights: (by_expert(a, b, order, offsets) * weights[..., None]).sum(1),
}
