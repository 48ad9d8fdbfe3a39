"""Einstein's convention: every kind of equation, all dtypes, what is refused."""

import numpy as np
import pytest
from op_case import round_trip, run, shape, value
from ort_oracle import run_node
from sized import op

from sardonyx.dialects import dtypes
from sardonyx.dialects.evaluate import EvalContext
from sardonyx.errors import ExecutionError, InferenceError

EINSUM = op("einsum")
SIZES = {"i": 2, "j": 3, "k": 4, "b": 2, "I": 3}
RNG = np.random.default_rng(5)


def operand(term, dtype="float32"):
    return RNG.integers(0, 5, [SIZES[c] for c in term]).astype(dtypes.DTYPES[dtype].numpy)


EXPLICIT = [
    "ij->ji", "ij->", "ij->i", "ij,jk->ik", "bij,bjk->bik", "i,j->ij", "ij,ij->", "ij,j", "ii->i", "ii", "bii->b",
    "ij,jk,ki->", "ij,kj", "ba", "ii,ij->j", " i j , j k -> i k ", "ij,jk,ik->ijk", "Ij,jI->I", "i,->i",
]  # fmt: skip


@pytest.mark.parametrize("equation", EXPLICIT)
def test_against_numpy(equation):
    terms = equation.replace(" ", "").split("->")[0].split(",")
    arrays = [operand(t.replace("a", "i")) for t in terms]
    want = np.einsum(equation.replace(" ", ""), *[a.astype(np.float64) for a in arrays])
    assert run(EINSUM, arrays, equation=equation).tolist() == want.tolist()


@pytest.mark.parametrize("equation", ["ij,jk->ik", "bij,bjk->bik", "ii->i", "ij,ij->", "ij->ji", "i,j->ij", "ij,jk"])
def test_against_onnxruntime(equation):
    arrays = [RNG.random([SIZES[c] for c in t], np.float32) for t in equation.split("->")[0].split(",")]
    ours = run(EINSUM, arrays, equation=equation)
    np.testing.assert_allclose(ours, run_node("Einsum", arrays, equation=equation)[0], rtol=1e-5)


@pytest.mark.parametrize(
    ("equation", "shapes", "result"),
    [
        ("...ij,...jk->...ik", [(5, 2, 3), (5, 3, 4)], (5, 2, 4)),
        ("...ij,...jk->...ik", [(5, 2, 3), (6, 1, 3, 4)], (6, 5, 2, 4)),
        ("...ij,jk", [(5, 2, 3), (3, 4)], (5, 2, 4)),
        ("i...->...i", [(2, 3, 4)], (3, 4, 2)),
        ("...->...", [(2, 3)], (2, 3)),
        ("...", [(2, 3)], (2, 3)),
        ("b...,b...->b...", [(2, 3), (2, 3)], (2, 3)),
        ("i...j->j", [(2, 3)], (3,)),
        ("ij,ij->ij", [(2, 1), (1, 3)], (2, 3)),
    ],
)
def test_ellipses_and_broadcasting(equation, shapes, result):
    arrays = [RNG.integers(0, 5, s).astype(np.float32) for s in shapes]
    out = run(EINSUM, arrays, equation=equation)
    assert out.shape == result
    assert out.tolist() == np.einsum(equation, *[a.astype(np.float64) for a in arrays]).tolist()


def test_the_axes_of_an_ellipsis_are_summed_where_the_output_lacks_it():
    a, b = operand("ij"), operand("j")
    assert run(EINSUM, [a, b], equation="...,...->").item() == (a * b).sum()
    assert run(EINSUM, [a], equation="...j->j").tolist() == a.sum(0).tolist()


@pytest.mark.parametrize("dtype", [t.name for t in dtypes.NUMERIC])
def test_all_dtypes(dtype):
    a, b = operand("ij", dtype), operand("jk", dtype)
    want = a.astype(np.float64) @ b.astype(np.float64)
    assert run(EINSUM, [a, b], equation="ij,jk->ik").tolist() == want.tolist()


def test_integers_wrap_and_halves_round_once():
    x = np.array([100, 100], np.int8)
    assert run(EINSUM, [x, x], equation="i,i->").item() == (20000 + 128) % 256 - 128
    half = np.full(3000, 1, np.float16)
    assert run(EINSUM, [half], equation="i->").item() == 3000


def test_no_elements():
    assert run(EINSUM, [np.zeros((2, 0), "f4"), np.zeros((0, 3), "f4")], equation="ij,jk->ik").tolist() == [[0] * 3] * 2
    assert run(EINSUM, [np.zeros((0, 3), "f4")], equation="ij->ji").shape == (3, 0)


def test_symbols_and_text():
    a, b = value("float32", ["b", "n", 4]), value("float32", ["b", 4, "m"])
    made = EINSUM.make([a, b], equation="bij,bjk->bik")
    assert shape(made) == ["b", "n", "m"] and 'equation = "bij,bjk->bik"' in round_trip(made)
    assert shape(EINSUM.make([a, b], equation="...ij,...jk")) == ["b", "n", "m"]
    assert shape(EINSUM.make([value("float32", ["n", "n"])], equation="ii->i")) == ["n"]
    unranked = value("float32", None)
    assert shape(EINSUM.make([unranked, b], equation="ij,bjk->ik")) == ["?", "m"]
    assert shape(EINSUM.make([unranked], equation="...i->...")) is None


@pytest.mark.parametrize(
    ("dims", "equation", "constraint"),
    [
        ([], "", "C1"),
        ([[2], [2]], "i->", "C2"),
        ([[2]], "i,j->", "C2"),
        ([[2]], "i->ij", "C2"),
        ([[2]], "i->ii", "C2"),
        ([[2]], "i->...i", "C2"),
        ([[2]], "i.->i", "C2"),
        ([[2]], "1->1", "C2"),
        ([[2]], "i->i->i", "C2"),
        ([[2]], "......i", "C2"),
        ([[2]], "ij->i", "C3"),
        ([[2, 3]], "i->i", "C3"),
        ([[2, 3]], "ijk...->i", "C3"),
        ([[2, 3], [4]], "ij,j->i", "C4"),
        ([[2, 3]], "ii->i", "C4"),
        ([[2, 3], [2, 4]], "...,...", "C4"),
    ],
)
def test_constraints(dims, equation, constraint):
    with pytest.raises(InferenceError, match=rf"\({constraint}\)"):
        EINSUM.make([value("float32", d) for d in dims], equation=equation)


def test_dtypes_are_one_numeric_dtype():
    for pair in (("float32", "float64"), ("bool", "bool")):
        with pytest.raises(InferenceError, match=r"\(C1\)"):
            EINSUM.make([value(d, [2]) for d in pair], equation="i,i->")


def test_runs_are_refused():
    built = EINSUM.make([value("float32", None), value("float32", ["n"])], equation="ij,j->i")
    for a, b in (((2, 3), (4,)), ((2, 3, 4), (4,))):
        with pytest.raises(ExecutionError, match="extents 3 and 4|does not fit"):
            built.evaluate(EvalContext(), np.zeros(a, "f4"), np.zeros(b, "f4"))
