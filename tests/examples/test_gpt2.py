"""The GPT-2-like example: prompt and steps natively, by the reference and in onnxruntime."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import numpy as np

from sardonyx.examples.gpt2.generate import compare, exported, generate, native, onnxruntime_next
from sardonyx.examples.gpt2.model import GPT2, TINY, step


def test_native_code_and_onnxruntime_generate_the_same(tmp_path: Path):
    model = GPT2(TINY)
    prompt = np.random.default_rng(0).integers(0, TINY.vocabulary, (2, 5))
    run, graph = native(model, 16, batch=2)
    assert graph.input_names() == ["tokens"] and graph.output_names() == ["logits"]
    assert not [n for n in graph.compiled.sizes.launches if n.startswith("gather_rows")], "nobody copies the cache"
    exported(model, tmp_path / "gpt2.onnx")
    theirs = onnxruntime_next(tmp_path / "gpt2.onnx", TINY, 1, batch=2)
    mine, other = generate(run, prompt, 8), generate(theirs, prompt, 8)
    assert mine[0].tolist() == other[0].tolist()
    for a, b in zip(mine[1], other[1], strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-4)
    # ... and all at once, by the reference.
    whole = np.concatenate([prompt, mine[0][:, :-1]], 1)
    empty = [np.zeros((2, TINY.heads, 0, TINY.head_size), np.float32)] * (2 * TINY.layers)
    logits = step(model).evaluate([whole, *empty])[0]
    np.testing.assert_allclose(logits, mine[1][-1], rtol=1e-4, atol=1e-4)


def test_the_command():
    lines: list[str] = []
    assert compare(replace(TINY, layers=1), 4, 3, 1, lines.append) < 1e-3
    assert re.match(r"native +prompt +[\d.]+ tokens/s +generation +[\d.]+ tokens/s", lines[1]), lines
