"""Measures generation with the GPT-2-like example: tokens per second natively, in onnxruntime and in torch.

    python3 benchmarks/gpt2.py                            124 million parameters, 128 tokens of prompt, 32 generated
    python3 benchmarks/gpt2.py --layers 4 --threads 1,2
    python3 benchmarks/gpt2.py --threads 1 --peers sardonyx --folder /tmp/gpt2     one peer at a time

All have the same weights and generate the same tokens, which is checked. Native code has its cache inside; onnxruntime
and torch take and give it, torch as `torch.cat` of past and new rows. They are measured in turns; a figure is the best
round's.
"""

from __future__ import annotations

import argparse
import importlib.util
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from sardonyx.examples.gpt2.generate import Next, exported, generate, native, onnxruntime_next
from sardonyx.examples.gpt2.model import GPT2, SMALL

Peer = Callable[[], Next]
"""Begins a new generation."""


def torch_next(model: GPT2, threads: int) -> Next:
    """The model in torch, with the same weights, without a copy."""
    import torch
    from torch.nn import functional

    torch.set_num_threads(threads)
    w = {name: torch.from_numpy(np.array(tensor)) for name, tensor in model.named_tensors()}
    config = model.config
    held: list[Any] = []

    def layer(x: Any, name: str) -> Any:
        return functional.linear(x, w[f"{name}.weight"], w[f"{name}.bias"])

    def norm(x: Any, name: str) -> Any:
        return functional.layer_norm(x, (config.size,), w[f"{name}.weight"], w[f"{name}.bias"])

    @torch.inference_mode()
    def run(tokens: Any) -> Any:
        batch, rows = tokens.shape
        before = held[0][0].shape[2] if held else 0
        x = w["wte.weight"][torch.from_numpy(tokens)] + w["wpe.weight"][before : before + rows]
        for n in range(config.layers):
            y = norm(x, f"h.{n}.ln_1")
            q, k, v = (
                layer(y, f"h.{n}.attn.{p}").view(batch, rows, config.heads, -1).transpose(1, 2) for p in ("q", "k", "v")
            )
            if len(held) > n:
                k, v = torch.cat([held[n][0], k], 2), torch.cat([held[n][1], v], 2)
                held[n] = (k, v)
            else:
                held.append((k, v))
            y = functional.scaled_dot_product_attention(q, k, v, is_causal=rows > 1 and not before)
            x = x + layer(y.transpose(1, 2).reshape(batch, rows, -1), f"h.{n}.attn.out")
            y = functional.gelu(layer(norm(x, f"h.{n}.ln_2"), f"h.{n}.mlp.0"), approximate="tanh")
            x = x + layer(y, f"h.{n}.mlp.2")
        return (norm(x[:, -1], "ln_f") @ w["wte.weight"].T).numpy()

    return run


def measure(
    model: GPT2, peers: dict[str, Peer], prompt: Any, count: int, rounds: int
) -> dict[str, tuple[float, float]]:
    """The best tokens per second of prompt and generation, by peer.

    Raises:
        SystemExit: A peer generates other tokens.
    """
    best: dict[str, tuple[float, float]] = {}
    first: Any = None
    for _ in range(rounds):
        for name, peer in peers.items():
            tokens, _, prompt_seconds, seconds = generate(peer(), prompt, count)
            first = tokens if first is None else first
            if not np.array_equal(first, tokens):
                raise SystemExit(f"{name} generates other tokens")
            speeds = prompt.shape[1] / prompt_seconds, (count - 1) / seconds
            known = best.get(name, (0.0, 0.0))
            best[name] = max(known[0], speeds[0]), max(known[1], speeds[1])
    return best


def prepare(model: GPT2, threads: int, rows: int, folder: Path, names: Sequence[str]) -> dict[str, Peer]:
    """The peers of these names that are installed, ready to run."""
    peers: dict[str, Peer] = {}
    if "sardonyx" in names:
        run, graph = native(model, rows)
        graph.compiled.use_threads(threads)

        def ours() -> Next:
            assert graph.kv_cache is not None
            graph.kv_cache.reset()
            return run

        peers["sardonyx"] = ours
    if "onnxruntime" in names:
        path = folder / "gpt2.onnx"
        if not path.exists():
            exported(model, path)
        session = onnxruntime_next(path, model.config, threads)

        def theirs() -> Next:
            session.reset()
            return session

        peers["onnxruntime"] = theirs
    if "torch" in names and importlib.util.find_spec("torch") is not None:
        peers["torch"] = lambda: torch_next(model, threads)
    return peers


def main(arguments: Sequence[str] | None = None) -> None:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--layers", type=int, default=SMALL.layers)
    parser.add_argument("--prompt", type=int, default=128)
    parser.add_argument("--tokens", type=int, default=32)
    parser.add_argument("--threads", default="1,2")
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--peers", default="sardonyx,onnxruntime,torch")
    parser.add_argument("--folder", type=Path, help="keep the exported model here, and take it where it is there")
    options = parser.parse_args(arguments)
    model = GPT2(replace(SMALL, layers=options.layers))
    prompt = np.random.default_rng(1).integers(0, model.config.vocabulary, (1, options.prompt))
    print(f"{model.num_parameters() / 1e6:.0f} million parameters, {options.prompt} tokens of prompt")
    with tempfile.TemporaryDirectory() as empty:
        folder = options.folder or Path(empty)
        folder.mkdir(parents=True, exist_ok=True)
        for threads in map(int, options.threads.split(",")):
            peers = prepare(model, threads, options.prompt + options.tokens, folder, options.peers.split(","))
            found = measure(model, peers, prompt, options.tokens, options.rounds)
            for name, (reading, writing) in found.items():
                print(
                    f"{threads} threads  {name:12} prompt {reading:8.1f} tokens/s  generation {writing:7.1f} tokens/s",
                    flush=True,
                )


if __name__ == "__main__":
    main()
