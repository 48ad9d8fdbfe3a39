"""Random numbers: known answers of the generator, distributions, seeds, and what passes leave alone."""

import numpy as np
import pytest
from op_case import round_trip, run, run_all, shape, value
from sized import op

from sardonyx.dialects import dtypes
from sardonyx.dialects.evaluate import EvalContext
from sardonyx.dialects.sx import philox
from sardonyx.errors import ExecutionError, InferenceError
from sardonyx.passes.effects import is_deterministic

NORMAL, UNIFORM = op("random_normal"), op("random_uniform")
NORMAL_LIKE, UNIFORM_LIKE = op("random_normal_like"), op("random_uniform_like")
BERNOULLI, MULTINOMIAL, DROPOUT = op("bernoulli"), op("multinomial"), op("dropout")
COUNT = 20000


def refuses(cls, constraint, *slots, **properties):
    with pytest.raises(InferenceError, match=rf"\({constraint}\)"):
        cls.make(*slots, **properties)


def test_known_answer_of_the_generator():
    """The first of the vectors that come with Random123: counter 0, key 0."""
    assert [hex(w) for w in philox.words(0, 1)[0]] == ["0x6627e8d5", "0xe169c58d", "0xbc57ac4c", "0x9b00dbd8"]
    assert philox.words(5, 3)[2].tolist() != philox.words(5, 3)[1].tolist() != philox.words(6, 3)[1].tolist()


def test_uniform_numbers_fill_their_range():
    x = run(UNIFORM, shape=(COUNT,), low=-1.0, high=3.0, seed=1.0)
    assert x.dtype == np.float32 and -1 <= x.min() < -0.99 and 2.99 < x.max() < 3
    counts = np.histogram(x, 16, (-1, 3))[0]
    assert abs(counts - COUNT / 16).max() < 6 * np.sqrt(COUNT / 16)
    assert abs(np.corrcoef(x[:-1], x[1:])[0, 1]) < 0.05


def test_normal_numbers_have_mean_and_deviation():
    x = run(NORMAL, shape=(COUNT,), mean=2.0, scale=3.0, seed=2.0, dtype=dtypes.float64)
    z = (x - 2) / 3
    assert x.dtype == np.float64 and abs(z.mean()) < 0.04 and abs(z.std() - 1) < 0.03
    assert abs((z**3).mean()) < 0.1 and abs((z**4).mean() - 3) < 0.3
    assert abs((np.abs(z) < 1).mean() - 0.6827) < 0.02


@pytest.mark.parametrize("dtype", [t.name for t in dtypes.FLOATS])
def test_rounding_does_not_reach_the_bound(dtype):
    x = run(UNIFORM, shape=(COUNT,), seed=3.0, dtype=dtypes.DTYPES[dtype]).astype(np.float64)
    assert 0 <= x.min() and x.max() < 1 and abs(x.mean() - 0.5) < 0.02


def test_seeds():
    assert run(NORMAL, shape=(9,), seed=1.5).tolist() == run(NORMAL, shape=(9,), seed=1.5).tolist()
    assert run(NORMAL, shape=(9,), seed=1.5).tolist() != run(NORMAL, shape=(9,), seed=2.5).tolist()
    unseeded = NORMAL.make(shape=(9,))
    assert unseeded.evaluate(EvalContext())[0].tolist() != unseeded.evaluate(EvalContext())[0].tolist()
    assert run(UNIFORM, shape=(3, 2), seed=1.0).reshape(-1).tolist() == run(UNIFORM, shape=(9,), seed=1.0)[:6].tolist()
    assert not is_deterministic(unseeded) and not is_deterministic(DROPOUT.make(value("float32", [2])))


def test_like_another_tensor():
    x = np.zeros((2, 3), np.float16)
    assert run(NORMAL_LIKE, x, seed=1.0).dtype == np.float16
    assert run(UNIFORM_LIKE, np.zeros((2, 0), bool), dtype=dtypes.float64, seed=1.0).shape == (2, 0)
    assert run(UNIFORM, shape=(), seed=1.0).shape == () and run(NORMAL, shape=(0, 2), seed=1.0).shape == (0, 2)
    made = NORMAL_LIKE.make(value("float32", ["b", "n"]), mean=1.0)
    assert shape(made) == ["b", "n"] and "mean = 1.000000e+00" in round_trip(made)
    assert shape(UNIFORM.make(shape=(2, 3))) == ["2", "3"]  # its text is in tests/lit/dialects/sampling.mlir
    refuses(NORMAL, "C1", shape=(2,), dtype=dtypes.int32)
    refuses(UNIFORM_LIKE, "C1", value("int32", [2]))
    refuses(UNIFORM, "C2", shape=(2, -1))
    refuses(NORMAL, "C2", shape=(2**40, 2**20))


def test_bernoulli_draws_ones_with_the_stated_probability():
    p = np.repeat(np.array([0, 0.2, 0.7, 1], np.float32), COUNT // 4)
    x = run(BERNOULLI, p, seed=5.0).reshape(4, -1)
    assert x.dtype == np.float32 and set(x.reshape(-1).tolist()) == {0, 1}
    assert np.abs(x.mean(1) - [0, 0.2, 0.7, 1]).max() < 0.03
    assert run(BERNOULLI, p, seed=5.0, dtype=dtypes.bool_).tolist() == (x.reshape(-1) == 1).tolist()
    assert run(BERNOULLI, np.zeros((0, 2), "f2"), dtype=dtypes.int8).shape == (0, 2)
    made = BERNOULLI.make(value("float32", ["b", 4]), dtype=dtypes.int64)
    assert shape(made) == ["b", "4"] and "dtype = i64" in round_trip(made)
    refuses(BERNOULLI, "C1", value("int32", [2]))


def test_multinomial_draws_by_weight():
    weights = np.array([[0, np.log(2), 0], [-np.inf, -np.inf, 5]], np.float32)
    x = run(MULTINOMIAL, weights, sample_size=COUNT, seed=4.0)
    assert x.dtype == np.int32 and x.shape == (2, COUNT) and (x[1] == 2).all()
    assert np.abs(np.bincount(x[0]) / COUNT - [0.25, 0.5, 0.25]).max() < 0.02
    shifted = run(MULTINOMIAL, weights - 700, sample_size=COUNT, seed=4.0, dtype=dtypes.int64)
    assert shifted.dtype == np.int64 and (shifted == x).mean() > 0.999
    assert run(MULTINOMIAL, weights[:0], sample_size=3).shape == (0, 3)
    made = MULTINOMIAL.make(value("float32", ["b", 4]), sample_size=7)
    assert shape(made) == ["b", "7"] and "sample_size = 7" in round_trip(made)
    refuses(MULTINOMIAL, "C1", value("int32", [2, 2]))
    refuses(MULTINOMIAL, "C1", value("float32", [2, 2]), dtype=dtypes.float32)
    refuses(MULTINOMIAL, "C2", value("float32", [2]))
    refuses(MULTINOMIAL, "C3", value("float32", [2, 2]), sample_size=0)
    refuses(MULTINOMIAL, "C4", value("float32", [2, 0]))
    for bad in (-np.inf, np.nan, np.inf):
        with pytest.raises(ExecutionError, match="weights of a row"):
            made.evaluate(EvalContext(), np.full((1, 4), bad, np.float32))


@pytest.mark.parametrize("dtype", [t.name for t in dtypes.FLOATS])
def test_dropout_in_training(dtype):
    x = np.full((COUNT,), 3).astype(dtypes.DTYPES[dtype].numpy)
    y, mask = run_all(DROPOUT, x, np.array(0.25, np.float32), np.array(True), seed=7)
    assert abs(mask.mean() - 0.75) < 0.02 and set(y[mask].tolist()) == {4} and not y[~mask].any()
    again = run_all(DROPOUT, x, np.array(0.25, np.float32), np.array(True), seed=7)[1]
    assert (again == mask).all()


def test_dropout_keeps_all():
    x = np.array([1, np.nan, 0], np.float32)
    for ratio, training in ((0.5, False), (0.0, True), (0.5, None), (None, None)):
        given = [None if v is None else np.array(v, t) for v, t in ((ratio, "f4"), (training, bool))]
        y, mask = run_all(DROPOUT, x, *given)
        np.testing.assert_array_equal(y, x)
        assert mask.all()
    assert [a.shape for a in run_all(DROPOUT, np.zeros((0, 2), "f4"), None, np.array(True))] == [(0, 2)] * 2


def test_dropout_constraints():
    x = value("float32", ["b", 4])
    made = DROPOUT.make(x, value("float32", []), value("bool", []), seed=3)
    assert shape(made, 1) == ["b", "4"] and "seed = 3" in round_trip(made)
    refuses(DROPOUT, "C1", value("int32", [2]))
    refuses(DROPOUT, "C1", x, value("float32", [2]))
    refuses(DROPOUT, "C1", x, None, value("int32", []))
    for ratio in (-0.1, 1.0, np.nan):
        with pytest.raises(ExecutionError, match=r"not in \[0, 1\)"):
            made.evaluate(EvalContext(), np.zeros((1, 4), "f4"), np.array(ratio, "f4"), np.array(True))
