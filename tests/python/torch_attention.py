"""Proves that attention gives what torch's scaled_dot_product_attention gives on the CPU: groups of heads, lengths, causal, windows, ALiBi, pages."""

import unittest

import torch
import torch.nn.functional as F
from support import KernelTest, jit

KEYS = 96
NAMES = {torch.float16: "f16", torch.bfloat16: "bf16"}


def tensor(*shape, seed, dtype):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed)).to(dtype)


class Attention(KernelTest):
    def compare(self, score="s", allowed=None, bias=None, *, d=128, heads=8, kv_heads=2, tokens=1, dtype=torch.float16, page=0, more="", **given):
        """`score` is the text of the score in terms of s, key and query; `allowed` and `bias` are the same for torch, of positions."""
        lengths = torch.tensor([tokens, 33, 64, KEYS], dtype=torch.int32)
        sequences, name = len(lengths), NAMES[dtype]
        q = tensor(sequences, tokens, heads, d, seed=1, dtype=dtype)
        k, v = (tensor(sequences, KEYS, kv_heads, d, seed=seed, dtype=dtype) for seed in (2, 3))
        cache = f"[pages_of_all, {page}, {kv_heads}, {d}]" if page else f"[sequences, {KEYS}, {kv_heads}, {d}]"
        text = f"""kernel attention_of_torch
            dim sequences
            {"dim pages_of_all" if page else ""}
            input q: {name}[sequences, {tokens}, {heads}, {d}]
            input k: {name}{cache}
            input v: {name}{cache}
            {f"input pages: i32[sequences, {KEYS // page}]" if page else ""}
            input lengths: i32[sequences, 1, 1, 1]
            {more}
            let s = {"attention_scores_paged(q, k, pages)" if page else "attention_scores(q, k)"} * {d**-0.5}
            let key = iota([{KEYS}])
            let query = lengths - {tokens} + {f"iota([{tokens}, 1, 1])" if tokens > 1 else "0"}
            let score = {score}
            output o: {name}[sequences, {tokens}, {heads}, {d}] = attention(score, v, lengths)"""
        unused = [line for line in ("let key", "let query") if line.split()[1] not in score]
        text = "\n".join(line.strip() for line in text.splitlines() if line.strip() and not line.strip().startswith(tuple(unused) or "#"))
        arrays = {"q": q, "k": k, "v": v, "lengths": lengths.reshape(-1, 1, 1, 1), **given}
        if page:  # in the order of a shuffled table
            table = torch.randperm(sequences * KEYS // page, generator=torch.Generator().manual_seed(4)).int().reshape(sequences, -1)
            for cached in "kv":
                pages = arrays[cached].reshape(-1, page, kv_heads, d)
                arrays[cached] = torch.empty_like(pages).index_copy_(0, table.flatten().long(), pages)
            arrays["pages"] = table
        got = jit.compile(text)(**arrays)["o"]
        key = torch.arange(KEYS)
        for sequence, length in enumerate(lengths.tolist()):
            query = (length - tokens + torch.arange(tokens))[:, None]
            mask = (key < length).expand(tokens, KEYS)
            if allowed:
                mask = mask & allowed(key, query)
            added = torch.zeros(heads, tokens, KEYS).masked_fill(~mask, -torch.inf)
            if bias is not None:
                added = added + bias(key, query)
            wanted = F.scaled_dot_product_attention(
                *(x[sequence].float().transpose(0, 1) for x in (q, k, v)), attn_mask=added, enable_gqa=heads != kv_heads
            )
            bound = {torch.float16: 2e-3, torch.bfloat16: 1.6e-2}[dtype]
            self.close(got[sequence].float(), wanted.transpose(0, 1).float(), relative=bound, absolute=bound)

    def test_heads_and_types(self):
        self.compare()
        self.compare(d=64, heads=4, kv_heads=4, dtype=torch.bfloat16)
        self.compare(d=80, heads=16, kv_heads=1)

    def test_causal_and_window(self):
        self.compare("select(le(key, query), s, -inf)", lambda key, query: key <= query, tokens=3)
        self.compare(
            "select(logical_and(le(key, query), lt(query - key, 20)), s, -inf)", lambda key, query: (key <= query) & (query - key < 20), tokens=2
        )

    def test_alibi(self):
        slopes = 2.0 ** -torch.arange(1.0, 9.0)
        self.compare(
            "s + slopes * (key - query)",
            bias=lambda key, query: slopes[:, None, None] * (key - query),
            more="input slopes: f32[8, 1]",
            slopes=slopes[:, None],
        )

    def test_pages(self):
        self.compare(page=16)


if __name__ == "__main__":
    unittest.main()
