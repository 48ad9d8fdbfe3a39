"""GPT-2 as a module: a function of tokens and of the keys and values that came before.

The layout follows Radford et al., "Language Models are Unsupervised Multitask Learners" (2019): learnt positions, layer
norms in front, GELU by tanh, the output tied to the embedding. The weights are seeded random numbers, so that nothing
is downloaded: they make no text, but take the same time. Names are those of this tree of modules: `h.0.attn.q.weight`.
"""

from __future__ import annotations

from dataclasses import dataclass

import sardonyx as sx
from sardonyx import nn

Past = list[tuple[sx.Tensor, sx.Tensor]]


@dataclass(frozen=True)
class Config:
    """Sizes; the default is GPT-2 with 124 million parameters."""

    vocabulary: int = 50257
    positions: int = 1024
    size: int = 768
    layers: int = 12
    heads: int = 12

    @property
    def head_size(self) -> int:
        return self.size // self.heads


SMALL = Config()
TINY = Config(vocabulary=97, positions=32, size=24, layers=2, heads=3)
"""For tests."""


class Block(nn.Module):
    """Attention and two linear layers, each behind a layer norm and beside a shortcut."""

    def __init__(self, config: Config) -> None:
        self.ln_1 = nn.LayerNorm(config.size)
        self.attn = nn.MultiheadAttention(config.size, config.heads, causal=True)
        self.ln_2 = nn.LayerNorm(config.size)
        self.mlp = nn.Sequential(
            nn.Linear(config.size, 4 * config.size), nn.GELU("tanh"), nn.Linear(4 * config.size, config.size)
        )

    def forward(self, x: sx.Tensor, past: tuple[sx.Tensor, sx.Tensor]) -> tuple[sx.Tensor, tuple[sx.Tensor, sx.Tensor]]:
        y, present = self.attn(self.ln_1(x), past=past)
        x = x + y
        return x + self.mlp(self.ln_2(x)), present


class GPT2(nn.Module):
    """Tokens int64 [batch, rows] and the past to logits [batch, vocabulary] of the last row, and the present."""

    def __init__(self, config: Config = SMALL, seed: int = 0) -> None:
        nn.manual_seed(seed)
        self.config = config
        self.wte = nn.Embedding(config.vocabulary, config.size)
        self.wpe = nn.Embedding(config.positions, config.size)
        self.h = nn.ModuleList(Block(config) for _ in range(config.layers))
        self.ln_f = nn.LayerNorm(config.size)

    def forward(self, tokens: sx.Tensor, past: Past) -> tuple[sx.Tensor, Past]:
        before = past[0][0].shape[2]
        x = self.wte(tokens) + self.wpe(sx.arange(0, tokens.shape[1]) + before)
        present: Past = []
        for block, held in zip(self.h, past, strict=True):
            x, kept = block(x, held)
            present.append(kept)
        last = self.ln_f(x)[:, -1]
        return last @ self.wte.weight.T, present


def signature(config: Config, batch: str | int = "batch", rows: str | int = "rows") -> dict[str, sx.TensorSpec]:
    """The inputs of `step`: the tokens, then keys and values of each layer, of `past` rows."""
    specs = {"tokens": sx.TensorSpec("tokens", sx.int64, [batch, rows])}
    for layer in range(config.layers):
        for kind in ("key", "value"):
            name = f"past_{layer}_{kind}"
            specs[name] = sx.TensorSpec(name, sx.float32, [batch, config.heads, "past", config.head_size])
    return specs


def step(model: GPT2, batch: str | int = "batch", rows: str | int = "rows") -> sx.ModelGraph:
    """The graph of one step, for a prompt or for the next token: `logits`, and the present of each layer."""
    config = model.config

    def run(tokens: sx.Tensor, **held: sx.Tensor) -> dict[str, sx.Tensor]:
        past = [(held[f"past_{n}_key"], held[f"past_{n}_value"]) for n in range(config.layers)]
        logits, present = model(tokens, past)
        outputs = {"logits": logits}
        for layer, (key, value) in enumerate(present):
            outputs[f"present_{layer}_key"], outputs[f"present_{layer}_value"] = key, value
        return outputs

    return sx.trace(run, signature(config, batch, rows), name="gpt2").graph
