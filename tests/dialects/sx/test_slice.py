"""Strided parts: ONNX's clamping, exact extents for symbols, contents, errors."""

import itertools

import numpy as np
import pytest
from op_case import constant, extents, known, round_trip, run, shape, value
from ort_oracle import run_node
from sized import every, op, sizes

from sardonyx.dialects import dtypes
from sardonyx.dialects.dims import Dim
from sardonyx.dialects.evaluate import EvalContext
from sardonyx.dialects.sx.slice import slice_extent, slice_positions
from sardonyx.errors import ExecutionError, InferenceError

SLICE = op("slice")
MOST, LEAST = 2**63 - 1, -(2**63)
N = Dim.symbol("n")


def cut(x, starts, ends, axes=None, steps=None, dtype="int64"):
    rest = [None if v is None else np.array(v, dtype) for v in (starts, ends, axes, steps)]
    return run(SLICE, x, *rest)


@pytest.mark.parametrize("dtype", [t.name for t in dtypes.ALL])
def test_parts(dtype):
    x = np.arange(24).reshape(4, 6).astype(dtypes.DTYPES[dtype].numpy)
    assert cut(x, [1, 0], [3, MOST], [0, 1], [1, 2]).tolist() == x[1:3, ::2].tolist()
    assert cut(x, [1], [-1], [-1]).tolist() == x[:, 1:-1].tolist()
    assert cut(x, [-1], [LEAST], [0], [-1]).tolist() == x[::-1].tolist()
    assert cut(x, [0, 1], [2, 3], dtype="int32").tolist() == x[:2, 1:3].tolist()
    assert cut(x, [], []).tolist() == x.tolist()


def test_no_elements():
    assert cut(np.zeros((0, 3), np.float32), [0], [MOST], [0], [-1]).shape == (0, 3)
    assert cut(np.zeros((2, 3), np.float32), [2], [1], [1]).shape == (2, 0)


def test_positions_are_those_of_onnxruntime():
    for size, step in ((4, -2), (4, 2), (1, -1)):
        x = np.arange(size, dtype=np.float32)
        for start, end in itertools.product((LEAST, -6, -1, 0, 3, MOST), repeat=2):
            if step < 0 and end == MOST:
                continue  # onnxruntime goes to the front then; the specification clamps to the last position
            arrays = [np.array([v]) for v in (start, end, 0, step)]
            want = run_node("Slice", [x, *arrays])[0].tolist()
            first, count = slice_positions(size, start, end, step)
            assert [first + i * step for i in range(count)] == want, (size, start, end, step)
            assert run(SLICE, x, *arrays).tolist() == want


def test_extents_of_symbols_are_exact():
    bounds = (LEAST, -7, -4, -2, -1, 0, 1, 3, 6, MOST)
    for start, end, step in itertools.product(bounds, bounds, (1, 2, 3, -1, -2)):
        extent = slice_extent(N, Dim.of(start), Dim.of(end), step)
        assert extent is not None
        for n in range(9):
            want = slice_positions(n, start, end, step)[1]
            assert extent.evaluate({"n": n}) == want, (start, end, step, n, str(extent))


def test_extents_of_symbolic_bounds_are_exact():
    bounds = [
        Dim.of(0),
        Dim.of(2),
        Dim.of(-2),
        Dim.of(MOST),
        Dim.of(LEAST),
        N,
        N - 1,
        N - 2,
        N + 1,
        Dim.symbol("p"),
        N * 2,
    ]
    for start, end, step in itertools.product(bounds, bounds, (1, 2, -1, -2)):
        extent = slice_extent(N, start, end, step)
        if extent is None:
            # Only a backward slice to a bound of unknown sign is given up.
            assert step < 0 and end in (N - 1, N - 2)
            continue
        for at in every(n=range(6), p=range(4)):
            want = slice_positions(at["n"], start.evaluate(at), end.evaluate(at), step)[1]
            assert extent.evaluate(at) == want, (str(start), str(end), step, at, str(extent))


def test_a_bound_of_unknown_sign_is_not_guessed():
    assert slice_extent(N, Dim.of(0), N - 3, 1) is None
    assert slice_extent(N, Dim.symbol("p") - 1, Dim.of(MOST), 1) is None
    assert slice_extent(N, None, Dim.of(3), 1) is None


@pytest.mark.parametrize(
    ("start", "end", "step", "want"),
    [
        (0, MOST, 1, "n"), (0, -1, 1, "max(0, n - 1)"), (1, MOST, 1, "max(0, n - 1)"), (-3, MOST, 1, "min(3, n)"),
        (0, 4, 1, "min(4, n)"), (-1, LEAST, -1, "n"), (MOST, LEAST, -1, "n"), (0, MOST, 2, "(n + 1) floordiv 2"),
        (0, 2**31 - 1, 1, "n"), (0, N, 1, "n"), (0, N - 1, 1, "max(0, n - 1)"), (N - 1, MOST, 1, "min(1, n)"),
        ("p", MOST, 1, "max(0, n - p)"), (0, "p", 1, "min(n, p)"),
    ],
)  # fmt: skip
def test_symbols(start, end, step, want):
    x = value("float32", ["b", "n"])
    assert shape(SLICE.make(x, extents([start]), extents([end]), constant([1]), constant([step]))) == ["b", want]


def test_what_is_known_of_the_length():
    x = value("float32", [Dim.parse("n + 3"), 8])
    assert shape(SLICE.make(x, constant([0]), constant([-2]))) == ["n + 1", "8"]
    assert shape(SLICE.make(x, constant([-2]), constant([MOST]))) == ["2", "8"]


def test_unknown_operands():
    x, one = value("float32", ["b", "n", 4]), value("int64", [1])
    assert shape(SLICE.make(x, one, one, constant([1]))) == ["b", "?", "4"]
    assert shape(SLICE.make(x, one, one)) == ["?", "n", "4"]
    assert shape(SLICE.make(x, one, one, one)) == ["?", "?", "?"]
    assert shape(SLICE.make(x, constant([0]), constant([1]), constant([2]), one)) == ["b", "n", "?"]
    some = value("int64", ["k"])
    assert shape(SLICE.make(x, some, some, some)) == ["?", "?", "?"]
    assert shape(SLICE.make(value("float32", None), one, one)) is None


def test_contents():
    x = extents(["a", "b", "c", "d"])
    assert known(SLICE.make(x, constant([1]), constant([MOST]))) == ["b", "c", "d"]
    assert known(SLICE.make(x, constant([-1]), constant([LEAST]), constant([0]), constant([-2]))) == ["d", "b"]
    assert known(SLICE.make(x, value("int64", [1]), constant([2]))) is None
    grid = op("reshape").make(x, constant([2, 2])).output
    assert known(SLICE.make(grid, constant([1]), constant([2]), constant([1]))) == ["b", "d"]


def test_text():
    x, one = value("float32", ["n"]), value("int64", [1])
    assert "sx.slice %x0, %x1, %x2, _, %x3" in round_trip(
        SLICE.make(x, one, value("int64", [1]), None, value("int64", [1]))
    )


@pytest.mark.parametrize(
    ("slots", "constraint"),
    [
        (([0], [1], None, None, "float32"), "C1"),
        (([0, 0], [1]), "C2"),
        (([0, 0, 0], [1, 1, 1]), "C2"),
        (([0], [1], [2]), "C3"),
        (([0, 0], [1, 1], [1, -1]), "C3"),
        (([0], [1], [0], [0]), "C4"),
    ],
)
def test_constraints(slots, constraint):
    starts, ends, axes, steps, dtype = (*slots, *[None] * (5 - len(slots)))
    operands = [None if v is None else constant(v, dtype or "int64") for v in (starts, ends, axes, steps)]
    with pytest.raises(InferenceError, match=rf"\({constraint}\)"):
        SLICE.make(value("float32", [2, "n"]), *operands)


def test_c1_mixed_dtypes():
    with pytest.raises(InferenceError, match=r"\(C1\)"):
        SLICE.make(value("float32", [2]), constant([0], "int32"), constant([1], "int64"))


def test_runs_that_are_refused():
    x, v = np.zeros((2, 3), np.float32), value("int64", [1])
    built = SLICE.make(value("float32", [2, 3]), v, v, v, v)
    for axes, steps in (([2], [1]), ([0], [0])):
        with pytest.raises(ExecutionError):
            built.evaluate(EvalContext(), x, np.array([0]), np.array([1]), np.array(axes), np.array(steps))
    some = value("int64", ["k"])
    with pytest.raises(ExecutionError, match="lengths"):
        SLICE.make(value("float32", [2, 3]), some, some).evaluate(
            EvalContext(), x, np.array([0]), np.array([1, 2]), None, None
        )


def test_sizes_of_a_run_follow():
    built = SLICE.make(value("float32", ["n"]), constant([-3]), constant([-1]))
    for n in range(6):
        assert sizes(built, {"n": n}) == (len(range(n)[-3:-1]),)
