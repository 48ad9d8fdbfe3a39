"""Trains the classifier of handwritten digits in plain NumPy, and holds the forward pass that checks it.

    export OPENBLAS_NUM_THREADS=1
    python -m sardonyx.examples.digits.train                   trains, prints the accuracy, writes weights.npz here
    python -m sardonyx.examples.digits.train --output w.npz    the same, written elsewhere
    python -m sardonyx.examples.digits.train --validate        trains on four fifths of the training images, prints the
                                                               accuracy on the last fifth, writes nothing

A run takes half a minute. One thread is faster than several at these sizes, and makes the run reproducible: the same
seed then gives the same bytes on the same machine with the same NumPy. A BLAS that sums in another order changes last
bits, and those grow while training goes on. The constants below were settled with `--validate`; the held-out images
took no part.

Nothing of Sardonyx computes here: `forward` is an independent answer to what `model.classifier` should give.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from sardonyx.examples.digits.model import EPSILON, WEIGHT_SHAPES, WEIGHTS_PATH, load_data, load_weights

SEED = 7
EPOCHS = 60
BATCH = 48
LEARNING_RATE = 3e-3
WEIGHT_DECAY = 1e-3
AUXILIARY_SHARE = 0.3
"""The weight of the auxiliary head's loss beside the classifier's own."""

Array = npt.NDArray[Any]
Weights = dict[str, Array]

STATISTICS = ("bn1.mean", "bn1.var", "bn2.mean", "bn2.var")
"""Weights that are measured, not learned."""


# Layers. Images are [n, channels, height, width]; each backward function takes what its forward function got, or kept.


def _columns(x: Array) -> Array:
    """Gather the 3x3 neighbourhoods of x [n, c, h, w], padded by one zero: [n, h, w, c * 9]."""
    n, c, h, w = x.shape
    padded = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), axis=(2, 3))
    return windows.transpose(0, 2, 3, 1, 4, 5).reshape(n, h, w, c * 9)


def _convolve(columns: Array, weight: Array) -> Array:
    """Apply weight [o, c, 3, 3] to the columns of an image: [n, o, h, w]."""
    return (columns @ weight.reshape(len(weight), -1).T).transpose(0, 3, 1, 2)


def _convolve_backward(columns: Array, weight: Array, grad: Array) -> tuple[Array, Array]:
    """Return the gradients of the image [n, c, h, w] and of the weight from grad [n, o, h, w]."""
    n, o, h, w = grad.shape
    c = weight.shape[1]
    rows = grad.transpose(0, 2, 3, 1).reshape(-1, o)
    grad_weight = (rows.T @ columns.reshape(len(rows), -1)).reshape(weight.shape)
    grad_columns = (rows @ weight.reshape(o, -1)).reshape(n, h, w, c, 3, 3)
    padded = np.zeros((n, c, h + 2, w + 2), grad.dtype)
    for i in range(3):
        for j in range(3):
            padded[:, :, i : i + h, j : j + w] += grad_columns[..., i, j].transpose(0, 3, 1, 2)
    return padded[:, :, 1:-1, 1:-1], grad_weight


def _channels(vector: Array) -> Array:
    """Shape a vector [c] to broadcast against [n, c, h, w]."""
    return vector[:, None, None]


def _normalize_backward(normal: Array, scale: Array, var: Array, grad: Array) -> tuple[Array, Array, Array]:
    """Return the gradients of the input, the scale and the bias of a batch normalisation over its own batch.

    `normal` is the normalised input before scale and bias, `var` the batch's variance [c].
    """
    axes = (0, 2, 3)
    grad_scale = (grad * normal).sum(axes)
    grad_bias = grad.sum(axes)
    count = grad.size // len(scale)
    centred = grad - _channels(grad_bias / count) - normal * _channels(grad_scale / count)
    return centred * _channels(scale / np.sqrt(var + EPSILON)), grad_scale, grad_bias


def _pool_windows(x: Array) -> Array:
    """Gather the 2x2 windows of x [n, c, h, w]: [n, c, h / 2, w / 2, 4]."""
    n, c, h, w = x.shape
    return x.reshape(n, c, h // 2, 2, w // 2, 2).transpose(0, 1, 2, 4, 3, 5).reshape(n, c, h // 2, w // 2, 4)


def _pool_backward(x: Array, grad: Array) -> Array:
    """Send grad [n, c, h / 2, w / 2] to the largest element of each window of x, the first of equal ones."""
    n, c, h, w = x.shape
    spread = np.zeros((*grad.shape, 4), grad.dtype)
    np.put_along_axis(spread, _pool_windows(x).argmax(-1)[..., None], grad[..., None], -1)
    return spread.reshape(n, c, h // 2, w // 2, 2, 2).transpose(0, 1, 2, 4, 3, 5).reshape(x.shape)


def _softmax(logits: Array) -> Array:
    shifted = np.exp(logits - logits.max(-1, keepdims=True))
    return shifted / shifted.sum(-1, keepdims=True)


def _cross_entropy(logits: Array, labels: Array) -> tuple[float, Array]:
    """Return the mean cross entropy and its gradient by the logits [n, 10]; labels are int64 [n]."""
    rows = np.arange(len(labels))
    grad = _softmax(logits)
    shifted = logits - logits.max(-1, keepdims=True)
    loss = np.log(np.exp(shifted).sum(-1)) - shifted[rows, labels]
    grad[rows, labels] -= 1
    return float(loss.mean()), grad / len(labels)


# The network.


def forward(weights: Weights, images: Array) -> tuple[Array, Array]:
    """Classify images [n, 8, 8] with values 0 to 16, of any real dtype, with weights as `load_weights` gives them.

    Returns the logits and the probabilities, both float64 [n, 10]: everything is computed in float64.
    """
    w = {name: np.asarray(array, np.float64) for name, array in weights.items()}
    x = np.asarray(images, np.float64)[:, None] / 16
    for stage in ("1", "2"):
        x = _convolve(_columns(x), w[f"conv{stage}.weight"])
        normal = (x - _channels(w[f"bn{stage}.mean"])) / np.sqrt(_channels(w[f"bn{stage}.var"]) + EPSILON)
        x = np.maximum(normal * _channels(w[f"bn{stage}.scale"]) + _channels(w[f"bn{stage}.bias"]), 0)
        if stage == "1":
            x = x * _channels(w["gain"])
        x = _pool_windows(x).max(-1)
    x = np.maximum(x.reshape(len(x), 128) @ w["fc1.weight"].T + w["fc1.bias"], 0)
    logits = x @ w["fc2.weight"].T + w["fc2.bias"]
    return logits, _softmax(logits)


def accuracy(weights: Weights, images: Array, labels: Array) -> float:
    """Return the share of images whose largest logit is the label's."""
    return float((forward(weights, images)[0].argmax(-1) == labels).mean())


def loss_and_gradients(weights: Weights, images: Array, labels: Array) -> tuple[float, Weights, Weights]:
    """Run a batch forward and backward in the dtype of images and weights, normalising by the batch's own statistics.

    Takes images [n, 8, 8] and labels int64 [n]. Returns the loss (the auxiliary head's share included), the gradients
    of all weights but `STATISTICS`, and those statistics as measured on this batch.
    """
    w, grads, stats = weights, {}, {}
    kept: dict[str, tuple[Array, Array, Array]] = {}
    stages: dict[str, Array] = {}
    x = images[:, None] / 16
    for stage in ("1", "2"):
        columns = _columns(x)
        x = _convolve(columns, w[f"conv{stage}.weight"])
        mean, var = x.mean((0, 2, 3)), x.var((0, 2, 3))
        stats[f"bn{stage}.mean"], stats[f"bn{stage}.var"] = mean, var
        normal = (x - _channels(mean)) / _channels(np.sqrt(var + EPSILON))
        active = np.maximum(normal * _channels(w[f"bn{stage}.scale"]) + _channels(w[f"bn{stage}.bias"]), 0)
        kept[stage] = columns, normal, active
        x = _pool_windows(active * _channels(w["gain"]) if stage == "1" else active).max(-1)
        stages[stage] = x

    flat1, flat2 = (x.reshape(len(x), -1) for x in stages.values())
    hidden = np.maximum(flat2 @ w["fc1.weight"].T + w["fc1.bias"], 0)
    loss, grad_logits = _cross_entropy(hidden @ w["fc2.weight"].T + w["fc2.bias"], labels)
    auxiliary_loss, grad_aux = _cross_entropy(flat1 @ w["aux.weight"].T + w["aux.bias"], labels)
    grad_aux *= AUXILIARY_SHARE

    grad_hidden = (grad_logits @ w["fc2.weight"]) * (hidden > 0)
    heads = {"fc2": (grad_logits, hidden), "fc1": (grad_hidden, flat2), "aux": (grad_aux, flat1)}
    for layer, (grad, given) in heads.items():
        grads[f"{layer}.weight"], grads[f"{layer}.bias"] = grad.T @ given, grad.sum(0)

    grad = (grad_hidden @ w["fc1.weight"]).reshape(stages["2"].shape)
    for stage in ("2", "1"):
        columns, normal, active = kept[stage]
        if stage == "1":
            grad = grad + (grad_aux @ w["aux.weight"]).reshape(stages["1"].shape)
            grad = _pool_backward(active * _channels(w["gain"]), grad)
            grads["gain"] = (grad * active).sum((0, 2, 3))
            grad = grad * _channels(w["gain"])
        else:
            grad = _pool_backward(active, grad)
        grad, grads[f"bn{stage}.scale"], grads[f"bn{stage}.bias"] = _normalize_backward(
            normal, w[f"bn{stage}.scale"], stats[f"bn{stage}.var"], grad * (active > 0)
        )
        grad, grads[f"conv{stage}.weight"] = _convolve_backward(columns, w[f"conv{stage}.weight"], grad)
    return loss + AUXILIARY_SHARE * auxiliary_loss, grads, stats


# Training.


def initial_weights(rng: np.random.Generator) -> Weights:
    """Draw He-normal matrices and filters, float32; scales, gains and variances are 1, biases and means 0."""
    weights: Weights = {}
    for name, shape in WEIGHT_SHAPES.items():
        if len(shape) > 1:
            fan_in = int(np.prod(shape[1:]))
            weights[name] = (rng.standard_normal(shape) * np.sqrt(2 / fan_in)).astype(np.float32)
        else:
            ones = name.endswith((".scale", ".var")) or name == "gain"
            weights[name] = (np.ones if ones else np.zeros)(shape, np.float32)
    return weights


def shift(images: Array, rng: np.random.Generator) -> Array:
    """Move each image [n, 8, 8] by at most one pixel along one axis, at random; three in five stay."""
    padded = np.pad(images, ((0, 0), (1, 1), (1, 1)))
    offsets = np.array([(1, 1)] * 6 + [(0, 1), (2, 1), (1, 0), (1, 2)])[rng.integers(0, 10, len(images))]
    rows = offsets[:, :1] + np.arange(8)
    columns = offsets[:, 1:] + np.arange(8)
    return padded[np.arange(len(images))[:, None, None], rows[:, :, None], columns[:, None, :]]


def train(images: Array, labels: Array, *, seed: int = SEED, epochs: int = EPOCHS, verbose: bool = False) -> Weights:
    """Train on float32 images [n, 8, 8] and int64 labels [n] with Adam; returns weights as in weights.npz."""
    rng = np.random.default_rng(seed)
    weights = initial_weights(rng)
    learned = [name for name in weights if name not in STATISTICS]
    first = {name: np.zeros_like(weights[name]) for name in learned}
    second = {name: np.zeros_like(weights[name]) for name in learned}
    steps = epochs * (len(images) // BATCH)
    step = 0
    for epoch in range(epochs):
        order = rng.permutation(len(images))
        total = 0.0
        # The last, incomplete batch of an epoch is left out: its statistics would be poor.
        for start in range(0, len(images) - BATCH + 1, BATCH):
            batch = order[start : start + BATCH]
            loss, grads, _ = loss_and_gradients(weights, shift(images[batch], rng), labels[batch])
            total += loss
            rate = LEARNING_RATE * 0.5 * (1 + np.cos(np.pi * step / steps))
            step += 1
            for name in learned:
                first[name] += 0.1 * (grads[name] - first[name])
                second[name] += 0.001 * (grads[name] ** 2 - second[name])
                update = (first[name] / (1 - 0.9**step)) / (np.sqrt(second[name] / (1 - 0.999**step)) + 1e-8)
                if weights[name].ndim > 1:
                    update = update + WEIGHT_DECAY * weights[name]
                weights[name] = (weights[name] - rate * update).astype(np.float32)
        if verbose and (epoch + 1) % 10 == 0:
            print(f"epoch {epoch + 1:3d}  loss {total / (len(images) // BATCH):.4f}")
    # One pass over everything measures the statistics that inference uses, instead of running averages.
    weights.update(loss_and_gradients(weights, images, labels)[2])
    return weights


def save_weights(path: Path, weights: Weights) -> None:
    """Write weights whole or not at all: to a temporary file in the same folder, which then takes the name."""
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=path.name, suffix=".tmp")
    try:
        with os.fdopen(handle, "wb") as file:
            arrays: dict[str, Any] = {name: weights[name] for name in WEIGHT_SHAPES}
            np.savez(file, **arrays)
        os.chmod(temporary, 0o644)  # mkstemp's files are for their owner alone
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m sardonyx.examples.digits.train")
    parser.add_argument("--output", type=Path, default=WEIGHTS_PATH, help="where to write (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--epochs", type=int, default=EPOCHS)
    parser.add_argument("--validate", action="store_true", help="score on a part of the training images; write nothing")
    options = parser.parse_args(argv)

    data = load_data()
    images, labels = data.train_images, data.train_labels
    begin = time.perf_counter()
    if options.validate:
        cut = len(images) * 4 // 5
        weights = train(images[:cut], labels[:cut], seed=options.seed, epochs=options.epochs, verbose=True)
        print(f"validation accuracy {accuracy(weights, images[cut:], labels[cut:]):.4f} on {len(images) - cut} images")
    else:
        weights = train(images, labels, seed=options.seed, epochs=options.epochs, verbose=True)
        save_weights(options.output, weights)
        weights = load_weights(options.output)
        print(f"training accuracy {accuracy(weights, images, labels):.4f} on {len(images)} images")
        held_out = accuracy(weights, data.held_out_images, data.held_out_labels)
        print(f"held-out accuracy {held_out:.4f} on {len(data.held_out_labels)} images")
        print(f"wrote {options.output}")
    print(f"{time.perf_counter() - begin:.1f} s")


if __name__ == "__main__":
    main()
