"""The classifier of handwritten digits: its data, its weights, and its forward function in Sardonyx's functions.

`classifier` is what a user would write. It is laid out as exported TensorFlow models are (channels last, with
transposes around what wants channels first) and carries an auxiliary head that only training reads, so that the passes
have real work: the transposes around the per-channel scale cancel, and the auxiliary head is dropped.

Where the data comes from, its licence and its citation: LICENSE-DATA.md. What trained the weights, and a NumPy forward
pass that shares nothing with this one: train.py. This module knows neither passes nor backends.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

import sardonyx as sx

HERE = Path(__file__).resolve().parent
DATA_PATH = HERE / "digits.npz"
WEIGHTS_PATH = HERE / "weights.npz"

HELD_OUT = 360
"""How many images, the last ones of the stored permutation, training never sees."""

EPSILON = 1e-5
"""The constant under the root of both batch normalisations."""

WEIGHT_SHAPES: dict[str, tuple[int, ...]] = {
    "conv1.weight": (16, 1, 3, 3),
    "bn1.scale": (16,),
    "bn1.bias": (16,),
    "bn1.mean": (16,),
    "bn1.var": (16,),
    "gain": (16,),
    "conv2.weight": (32, 16, 3, 3),
    "bn2.scale": (32,),
    "bn2.bias": (32,),
    "bn2.mean": (32,),
    "bn2.var": (32,),
    "fc1.weight": (64, 128),
    "fc1.bias": (64,),
    "fc2.weight": (10, 64),
    "fc2.bias": (10,),
    "aux.weight": (10, 256),
    "aux.bias": (10,),
}
"""The arrays of weights.npz, all float32. Convolutions are OIHW, dense layers [out, in]."""


class Digits(NamedTuple):
    """Images are float32 [n, 8, 8] with whole values 0 to 16; labels are int64 [n], 0 to 9."""

    train_images: npt.NDArray[np.float32]
    train_labels: npt.NDArray[np.int64]
    held_out_images: npt.NDArray[np.float32]
    held_out_labels: npt.NDArray[np.int64]


def load_data() -> Digits:
    """Read digits.npz and split it: 1,437 images to train on, 360 held out, the same ones every time.

    The permutation is stored with the data, because NumPy doesn't promise the same random numbers in every version.
    """
    with np.load(DATA_PATH, allow_pickle=False) as file:
        order = file["order"]
        images = file["images"][order].astype(np.float32)
        labels = file["labels"][order].astype(np.int64)
    return Digits(images[:-HELD_OUT], labels[:-HELD_OUT], images[-HELD_OUT:], labels[-HELD_OUT:])


def load_weights(path: str | Path = WEIGHTS_PATH) -> dict[str, npt.NDArray[np.float32]]:
    """Read the trained weights: the names and shapes of `WEIGHT_SHAPES`, float32.

    Raises ValueError when the file holds other names, shapes or dtypes.
    """
    with np.load(path, allow_pickle=False) as file:
        weights = {name: file[name] for name in file.files}
    if weights.keys() != WEIGHT_SHAPES.keys():
        raise ValueError(f"{path}: weights {sorted(weights)}, expected {sorted(WEIGHT_SHAPES)}")
    for name, array in weights.items():
        if array.shape != WEIGHT_SHAPES[name] or array.dtype != np.float32:
            raise ValueError(f"{path}: {name} is {array.dtype}{array.shape}, expected float32{WEIGHT_SHAPES[name]}")
    return weights


def classifier(images: sx.Tensor) -> tuple[sx.Tensor, sx.Tensor]:
    """Classify images, float32 [batch, 8, 8] with values 0 to 16.

    Returns the logits, float32 [batch, 10], and their softmax. The signature on the command line of sardonyx-opt is
    `images: f32[batch,8,8]`.
    """
    w = {name: sx.asarray(array) for name, array in load_weights().items()}

    x = sx.reshape(images, (-1, 8, 8, 1))  # channels last, as the data would come
    x = x * (1.0 / 16.0)
    x = sx.transpose(x, (0, 3, 1, 2))
    x = sx.conv(x, w["conv1.weight"], pads=(1, 1, 1, 1))
    x = sx.batch_norm(x, w["bn1.scale"], w["bn1.bias"], w["bn1.mean"], w["bn1.var"], epsilon=EPSILON)
    x = sx.relu(x)
    x = sx.transpose(x, (0, 2, 3, 1))
    x = x * w["gain"]  # [16] against [batch, 8, 8, 16]: one factor a channel
    x = sx.transpose(x, (0, 3, 1, 2))
    x = sx.max_pool(x, kernel_shape=(2, 2), strides=(2, 2))

    # The auxiliary head helped to train the first stage; nobody reads it here.
    auxiliary = sx.gemm(sx.flatten(x, axis=1), w["aux.weight"], w["aux.bias"], trans_b=True)
    sx.softmax(auxiliary, axis=-1)

    x = sx.conv(x, w["conv2.weight"], pads=(1, 1, 1, 1))
    x = sx.batch_norm(x, w["bn2.scale"], w["bn2.bias"], w["bn2.mean"], w["bn2.var"], epsilon=EPSILON)
    x = sx.relu(x)
    x = sx.max_pool(x, kernel_shape=(2, 2), strides=(2, 2))
    x = sx.flatten(x, axis=1)
    x = sx.relu(sx.gemm(x, w["fc1.weight"], w["fc1.bias"], trans_b=True))
    logits = sx.gemm(x, w["fc2.weight"], w["fc2.bias"], trans_b=True)
    return logits, sx.softmax(logits, axis=-1)
