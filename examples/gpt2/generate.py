"""Generates tokens natively and with onnxruntime, and compares: `python -m sardonyx.examples.gpt2.generate --tiny`.

The native graph has its cache inside (`attach_kv_cache`); onnxruntime runs the exported step, whose cache goes in and
comes out at each run.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import sardonyx as sx
from sardonyx.examples.gpt2.model import GPT2, SMALL, TINY, Config, step

Array = np.ndarray[Any, Any]
Next = Callable[[Array], Array]
"""Logits [batch, vocabulary] for the tokens [batch, rows] that come next."""


def native(model: GPT2, capacity: int, batch: int = 1) -> tuple[Next, sx.ModelGraph]:
    """The model as native code, with a cache of its own: one graph for the prompt and for each token."""
    graph = step(model, batch=batch)
    graph.attach_kv_cache(capacity)
    graph.optimize()
    graph.finalize()
    return lambda tokens: graph.run([tokens])[0].numpy(), graph


def exported(model: GPT2, path: Path) -> None:
    """Write the step as an ONNX model, the cache as inputs and outputs."""
    graph = step(model)
    graph.optimize()
    graph.export_onnx(path)


class Session:
    """The exported step in onnxruntime, with the cache that goes in and comes out."""

    def __init__(self, session: Any, empty: Array) -> None:
        self.session, self.empty = session, empty
        self.names = [i.name for i in session.get_inputs()][1:]
        self.reset()

    def reset(self) -> None:
        """Begin with an empty cache."""
        self.held: list[Any] = [self.empty] * len(self.names)

    def __call__(self, tokens: Array) -> Array:
        logits, *self.held = self.session.run(None, {"tokens": tokens, **dict(zip(self.names, self.held, strict=True))})
        return np.asarray(logits)


def onnxruntime_next(path: Path, config: Config, threads: int, batch: int = 1) -> Session:
    """The exported step in onnxruntime."""
    try:
        import onnxruntime
    except ModuleNotFoundError:
        raise SystemExit("the comparison needs onnxruntime: pip install onnxruntime") from None

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    return Session(session, np.zeros((batch, config.heads, 0, config.head_size), np.float32))


def generate(run: Next, prompt: Array, count: int) -> tuple[Array, list[Array], float, float]:
    """The most probable tokens after a prompt [batch, rows]: tokens, logits of each step, and the seconds that the
    prompt and all further tokens took."""
    start = time.perf_counter()
    logits = [run(prompt).copy()]
    middle = time.perf_counter()
    tokens = [logits[0].argmax(-1)[:, None]]
    for _ in range(count - 1):
        logits.append(run(tokens[-1]).copy())
        tokens.append(logits[-1].argmax(-1)[:, None])
    end = time.perf_counter()
    return np.concatenate(tokens, 1), logits, middle - start, end - middle


def compare(config: Config, prompt_rows: int, count: int, threads: int, out: Callable[[str], object] = print) -> float:
    """Generate with both and print how fast; returns the largest difference of a logit.

    Raises:
        ValueError: The two generate other tokens.
    """
    os.environ.setdefault("SARDONYX_NUM_THREADS", str(threads))
    model = GPT2(config)
    prompt = np.random.default_rng(1).integers(0, config.vocabulary, (1, prompt_rows))
    run, graph = native(model, prompt_rows + count)
    graph.compiled.use_threads(threads)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "gpt2.onnx"
        exported(model, path)
        theirs = onnxruntime_next(path, config, threads)
        results = {"native": generate(run, prompt, count), "onnxruntime": generate(theirs, prompt, count)}
    out(f"{model.num_parameters() / 1e6:.1f} million parameters, {prompt_rows} tokens of prompt, {count} generated, "
        f"{threads} thread{'s' if threads > 1 else ''}")  # fmt: skip
    for name, (_, _, first, rest) in results.items():
        out(f"{name:12} prompt {prompt_rows / first:8.1f} tokens/s   generation {(count - 1) / rest:8.1f} tokens/s")
    mine, other = results["native"], results["onnxruntime"]
    if not np.array_equal(mine[0], other[0]):
        raise ValueError("native code and onnxruntime generate other tokens")
    largest = max(float(np.abs(a - b).max()) for a, b in zip(mine[1], other[1], strict=True))
    scale = max(float(np.abs(a).max()) for a in mine[1])
    out(f"the same {count} tokens; the logits (up to {scale:.1f}) differ by {largest:.1e} at most")
    return largest


def main(arguments: Sequence[str] | None = None) -> None:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tiny", action="store_true", help="a model of a few thousand parameters")
    parser.add_argument("--prompt", type=int, default=0, help="how many tokens the prompt has (128; tiny: 8)")
    parser.add_argument("--tokens", type=int, default=0, help="how many tokens to generate (64; tiny: 16)")
    parser.add_argument("--threads", type=int, default=1, help="how many threads each has (1)")
    chosen = parser.parse_args(arguments)
    config = TINY if chosen.tiny else SMALL
    rows, count = chosen.prompt or (8 if chosen.tiny else 128), chosen.tokens or (16 if chosen.tiny else 64)
    compare(config, rows, count, chosen.threads)


if __name__ == "__main__":
    main()
