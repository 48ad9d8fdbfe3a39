"""A small net over arrays: what the export pipeline of this folder ships."""

from collections.abc import Mapping

import numpy as np

import sardonyx as sx

generator = np.random.default_rng(0)
embedding = generator.standard_normal((50, 16), np.float32)
query, key, value = (generator.standard_normal((16, 16), np.float32) / 4 for _ in range(3))
head = generator.standard_normal((16, 5), np.float32) / 4


@sx.signature("tokens: i64[batch, seq], mask: bool[batch, seq]")
def forward(tokens: sx.Tensor, mask: sx.Tensor) -> sx.Tensor:
    """Scores of five classes for each token; tokens that are masked out are not looked at."""
    x = sx.take(embedding, tokens, axis=0)
    scores = sx.matmul(sx.matmul(x, query), sx.matrix_transpose(sx.matmul(x, key))) * np.float32(0.25)
    scores = sx.where(sx.expand_dims(mask, 1), scores, np.float32(-1e9))
    x = x + sx.matmul(sx.softmax(scores, axis=-1), sx.matmul(x, value))
    return sx.matmul(sx.tanh(x), head)


def reference(tokens: np.ndarray, mask: np.ndarray) -> np.ndarray:
    """The same in NumPy: the source that the export is held against."""
    x = embedding[tokens]
    scores = (x @ query) @ np.swapaxes(x @ key, -1, -2) * np.float32(0.25)
    scores = np.where(mask[:, None, :], scores, np.float32(-1e9))
    scores = np.exp(scores - scores.max(-1, keepdims=True))
    x = x + scores / scores.sum(-1, keepdims=True) @ (x @ value)
    return np.tanh(x) @ head


def requests(batch: int, seq: int, seed: int) -> dict[str, np.ndarray]:
    """Inputs as production sends them: the first token of a row is always there."""
    random = np.random.default_rng([seed, batch, seq])
    mask = np.arange(seq) < random.integers(1, seq + 1, (batch, 1))
    return {"tokens": random.integers(0, 50, (batch, seq)), "mask": mask}


def same_labels(expected: Mapping[str, np.ndarray], actual: Mapping[str, np.ndarray]) -> float:
    """The task's metric: how many tokens keep their label."""
    (a,), (b,) = expected.values(), actual.values()
    return float((np.argmax(a, -1) == np.argmax(b, -1)).mean())
