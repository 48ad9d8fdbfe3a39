"""The script that trained the digits example: its gradients, its determinism, and how it writes."""

from __future__ import annotations

import numpy as np
import pytest

from sardonyx.examples.digits import train
from sardonyx.examples.digits.model import WEIGHT_SHAPES, load_data, load_weights

LEARNED = [name for name in WEIGHT_SHAPES if name not in train.STATISTICS]


@pytest.fixture(scope="module")
def case():
    """Weights off their starting values (so that no gradient is zero by symmetry), and a small batch, in float64."""
    rng = np.random.default_rng(0)
    weights = {name: w + 0.1 * rng.standard_normal(w.shape) for name, w in train.initial_weights(rng).items()}
    data = load_data()
    images, labels = data.train_images[:12].astype(np.float64), data.train_labels[:12]
    return weights, images, labels, train.loss_and_gradients(weights, images, labels)[1]


@pytest.mark.parametrize("name", LEARNED)
def test_gradient_is_the_slope_of_the_loss(case, name):
    weights, images, labels, gradients = case
    direction = np.random.default_rng(1).standard_normal(WEIGHT_SHAPES[name])
    step = 1e-6
    above, below = (
        train.loss_and_gradients({**weights, name: weights[name] + sign * step * direction}, images, labels)[0]
        for sign in (1, -1)
    )
    assert (above - below) / (2 * step) == pytest.approx((gradients[name] * direction).sum(), rel=1e-6, abs=1e-8)


def test_every_learned_weight_has_a_gradient(case):
    assert sorted(case[3]) == sorted(LEARNED)


@pytest.mark.slow
def test_training_learns_and_repeats_itself():
    data = load_data()
    images, labels = data.train_images[:384], data.train_labels[:384]
    once, again = (train.train(images, labels, epochs=3) for _ in range(2))
    assert train.accuracy(once, images, labels) > 0.6
    assert {name: array.tobytes() for name, array in once.items()} == {
        name: array.tobytes() for name, array in again.items()
    }


def test_saved_weights_read_back(tmp_path):
    weights = train.initial_weights(np.random.default_rng(0))
    train.save_weights(tmp_path / "w.npz", weights)
    read = load_weights(tmp_path / "w.npz")
    assert all(np.array_equal(read[name], weights[name]) for name in WEIGHT_SHAPES)
    assert [path.name for path in tmp_path.iterdir()] == ["w.npz"]


def test_a_failed_write_leaves_the_old_file(tmp_path):
    path = tmp_path / "w.npz"
    path.write_bytes(b"old")
    with pytest.raises(KeyError, match="conv1.weight"):
        train.save_weights(path, {})
    assert [(entry.name, entry.read_bytes()) for entry in tmp_path.iterdir()] == [("w.npz", b"old")]
