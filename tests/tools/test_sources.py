"""Sources of other frameworks behind a function over arrays: exported from Sardonyx, held against them, frozen."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from sardonyx.tools import cli

HEAD = """
import numpy as np
import sardonyx as sx

rng = np.random.default_rng(0)
w, v = rng.standard_normal((8, 16), np.float32), rng.standard_normal((16, 4), np.float32)
"""
NET = """

@sx.signature("x: f32[batch, 8]")
def graph(x):
    return sx.log_softmax(sx.matmul(sx.tanh(sx.matmul(x, w)), v), axis=-1)
"""
SOURCES = {
    "numpy": """
def forward(x):
    y = np.tanh(x @ w) @ v
    return y - np.log(np.exp(y).sum(-1, keepdims=True))
""",
    "jax": """
import jax

@jax.jit
def forward(x):
    return jax.nn.log_softmax(jax.numpy.tanh(x @ w) @ v, axis=-1)
""",
    "tensorflow": """
import tensorflow as tf

@tf.function
def forward(x):
    return tf.nn.log_softmax(tf.tanh(x @ w) @ v)
""",
    "sklearn": """
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import FunctionTransformer

hidden = FunctionTransformer(lambda x: np.tanh(x @ w))
samples = rng.standard_normal((64, 8), np.float32)
model = LogisticRegression(max_iter=1000).fit(hidden.transform(samples), rng.integers(0, 4, 64))
v = model.coef_.T.astype(np.float32)

def forward(x):
    return model.predict_log_proba(hidden.transform(x)) - 0.0

@sx.signature("x: f32[batch, 8]")
def graph(x):
    y = sx.matmul(sx.tanh(sx.matmul(x, w)), v) + model.intercept_.astype(np.float32)
    return sx.cast(sx.log_softmax(y, axis=-1), sx.float64)
""",
    "torch": """
import torch

class Forward(torch.nn.Module):
    def forward(self, x):
        return torch.log_softmax(torch.tanh(x @ torch.from_numpy(w)) @ torch.from_numpy(v), -1)

forward = Forward()
""",
}


def call(*args: str | Path) -> str:
    out, err = io.StringIO(), io.StringIO()
    assert cli.run([str(a) for a in args], out, err) == 0, err.getvalue() + out.getvalue()
    return out.getvalue()


@pytest.mark.parametrize("framework", SOURCES)
@pytest.mark.filterwarnings("ignore")  # of the frameworks' own
def test_a_function_of_another_framework_is_a_source(framework: str, tmp_path: Path) -> None:
    pytest.importorskip(framework)
    source = SOURCES[framework]
    (tmp_path / "net.py").write_text(HEAD + source + ("" if "def graph" in source else NET))
    model, sizes = tmp_path / "net.onnx", ("--dim", "batch=1,3,8")
    call("export", tmp_path / "net.py:graph", "-o", model, "--only", "reference", *sizes)
    said = call("verify", f"{tmp_path}/net.py:forward", model, *sizes)
    assert "verified: 9 passed" in said and f"against {tmp_path}/net.py:forward" in said
    golden = tmp_path / "net.golden.npz"
    call("golden", "freeze", f"{tmp_path}/net.py:forward", model, "-o", golden, "--only", "reference", *sizes)
    assert "the golden outputs hold" in call("golden", "check", golden, model, "--only", "native")
