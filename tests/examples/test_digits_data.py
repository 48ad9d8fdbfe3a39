"""The digits example's files are the ones that were described, and the committed weights do what is claimed of them."""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np
import pytest

from sardonyx.examples.digits import train
from sardonyx.examples.digits.model import (
    DATA_PATH,
    HELD_OUT,
    HERE,
    WEIGHT_SHAPES,
    load_data,
    load_weights,
)

# Of the bytes of each array: those of the file depend on the zlib that packed it.
SHA256 = {
    "images": "8f26b2bd9d135c256808f68f14fdabddde6d9c7f869ae419704b051f0f14b3b3",
    "labels": "8ba4f891220f5e4c9c819638d1602d74b83618f167043c6da52a2a247841ddf0",
    "order": "72fbedd9deab66618afb7abf2b8e8279d881d683d332cb9c1343f582b51c90a8",
}
SHAPES = {
    "images": (np.dtype(np.uint8), (1797, 8, 8)),
    "labels": (np.dtype(np.uint8), (1797,)),
    "order": (np.dtype(np.uint16), (1797,)),
}


@pytest.fixture(scope="module")
def arrays():
    with np.load(DATA_PATH, allow_pickle=False) as file:
        return {name: file[name] for name in file.files}


def test_arrays_are_the_described_ones(arrays):
    assert {name: (array.dtype, array.shape) for name, array in arrays.items()} == SHAPES
    assert {name: hashlib.sha256(array.tobytes()).hexdigest() for name, array in arrays.items()} == SHA256


def test_pixels_and_labels_are_in_range(arrays):
    assert (arrays["images"].min(), arrays["images"].max()) == (0, 16)
    # The counts that UCI gives for the test set.
    assert np.bincount(arrays["labels"]).tolist() == [178, 182, 177, 183, 181, 182, 181, 179, 174, 180]


def test_licence_stands_beside_the_data():
    text = (HERE / "LICENSE-DATA.md").read_text(encoding="utf-8")
    for needed in ("Alpaydin", "Kaynak", "1998", "UCI Machine Learning", "10.24432/C50P49", "CC BY 4.0", "was changed"):
        assert needed in text


def test_everything_is_under_one_megabyte():
    assert sum(path.stat().st_size for path in HERE.iterdir() if path.is_file()) < 1_000_000


def test_split_is_disjoint_and_complete(arrays):
    order = arrays["order"]
    assert np.array_equal(np.sort(order), np.arange(1797))
    data = load_data()
    assert (len(data.train_images), len(data.held_out_images)) == (1797 - HELD_OUT, HELD_OUT)
    assert (data.train_images.dtype, data.train_labels.dtype) == (np.float32, np.int64)
    assert np.array_equal(data.held_out_images, arrays["images"][order[-HELD_OUT:]])
    assert np.array_equal(data.held_out_labels, arrays["labels"][order[-HELD_OUT:]])
    # Not the same place in the file is one thing, not the same picture another.
    seen = {image.tobytes() for image in data.train_images}
    assert not [index for index, image in enumerate(data.held_out_images) if image.tobytes() in seen]


def test_every_digit_is_held_out():
    assert np.bincount(load_data().held_out_labels, minlength=10).min() >= 20


def test_weights_have_their_names_shapes_and_dtype():
    weights = load_weights()
    assert {name: array.shape for name, array in weights.items()} == WEIGHT_SHAPES
    assert {array.dtype for array in weights.values()} == {np.dtype(np.float32)}
    assert all(np.isfinite(array).all() for array in weights.values())
    assert all((weights[name] > 0).all() for name in ("bn1.var", "bn2.var"))


@pytest.mark.parametrize("damage", ["missing", "shape", "dtype"])
def test_other_weights_are_refused(tmp_path, damage):
    weights: dict[str, Any] = dict(load_weights())
    if damage == "missing":
        del weights["gain"]
    elif damage == "shape":
        weights["gain"] = weights["gain"][:8]
    else:
        weights["gain"] = weights["gain"].astype(np.float64)
    np.savez(tmp_path / "w.npz", **weights)
    with pytest.raises(ValueError, match="gain"):
        load_weights(tmp_path / "w.npz")


def test_held_out_accuracy():
    data = load_data()
    assert train.accuracy(load_weights(), data.held_out_images, data.held_out_labels) >= 0.975


def test_accuracy_is_chance_without_the_weights():
    """The measure can fail: with weights that learned nothing it gives about one in ten."""
    data = load_data()
    weights = train.initial_weights(np.random.default_rng(0))
    assert train.accuracy(weights, data.held_out_images, data.held_out_labels) < 0.4


def test_forward_gives_logits_and_probabilities():
    images = load_data().held_out_images[:7]
    logits, probabilities = train.forward(load_weights(), images)
    assert logits.shape == probabilities.shape == (7, 10)
    np.testing.assert_allclose(probabilities.sum(-1), 1, rtol=1e-12)
    np.testing.assert_allclose(np.log(probabilities[:, :1] / probabilities), logits[:, :1] - logits, atol=1e-9)
    for index in range(7):  # an image's answer doesn't depend on its neighbours
        np.testing.assert_allclose(train.forward(load_weights(), images[index : index + 1])[0][0], logits[index])
    assert train.forward(load_weights(), images[:0])[0].shape == (0, 10)
