"""Native einsum against the reference."""

from __future__ import annotations

import pytest
from three_ways import Case, both_refuse, case, check_all, sample

from sardonyx.dialects.sx.einsum import EinsumOp

EXTENTS = {"a": 2, "b": 3, "c": 4, "d": 5, "i": 3, "j": 4, "k": 5, "l": 2, "h": 2, "n": 1}


def summed(equation: str, *shapes: tuple[int, ...], dtype: str = "float32") -> Case:
    """A case whose letters have the table's extents, or these shapes."""
    terms = equation.replace(" ", "").split("->")[0].split(",")
    chosen = shapes or [tuple(EXTENTS[letter] for letter in term) for term in terms]
    return case(EinsumOp, [sample(dtype, *s, seed=n) for n, s in enumerate(chosen)], equation=equation)


EQUATIONS = [
    ("ij->ji",), ("ij->i",), ("ij->",), ("i,i",), ("bij,bjk->bik",), ("ii->i",), ("ii",), ("ij,jk",), ("ij,kj->ki",),
    ("i,j->ij",), ("ijk,jil->kl",), ("ij,jk,kl->il",), ("iij,j->i",), ("ij,j->",), ("ijk,kl->l",), ("ab,cd->abcd",),
    ("bihd,bjhd->bhij", (2, 3, 4, 5), (2, 6, 4, 5)), ("bhij,bhjd->bihd", (2, 3, 4, 6), (2, 3, 6, 5)),
    ("i,i,i->i",), ("...i->...", (2, 3)), ("i...->...", (2, 3)), ("...,...->...", (2, 3), (3,)), ("->", ()),
    ("...ij,...jk->...ik", (2, 3, 4), (4, 5)), ("...ij,...jk->...ik", (2, 1, 3, 4), (7, 4, 5)), ("a b , b c -> a c",),
    ("ij,i->j", (3, 4), (1,)), ("i->", (0,)), ("ij,jk->ik", (3, 0), (0, 2)), ("ij,jk->ik", (0, 3), (3, 2)),
    ("ii->i", (1, 5)), ("bij,bkj->bik", (4, 30, 20), (1, 50, 20)), ("ij,jk->ki", (60, 40), (40, 33)),
]  # fmt: skip


@pytest.mark.parametrize("mode", ["static", "shared"])
def test_equations(mode: str) -> None:
    check_all([summed(*one) for one in EQUATIONS], (mode,))


def test_extents_that_only_the_run_knows() -> None:
    check_all([summed(*one) for one in EQUATIONS[::3]], ("dynamic",))


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float64", "int32", "uint8", "int64"])
def test_dtypes(dtype: str) -> None:
    equations = ["ij,jk->ki", "ij,jk,kl->il", "ii->i", "bij->b", "i,j->ji"]
    check_all([summed(equation, dtype=dtype) for equation in equations], ("mixed",))


def test_extents_that_differ_end_the_run() -> None:
    operands = [sample("float32", 2, 3), sample("float32", 4, 5)]
    for message in both_refuse(EinsumOp, operands, equation="ij,jk->ik"):
        assert "3 and 4" in message
