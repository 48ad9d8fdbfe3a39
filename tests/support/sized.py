"""Inferred dims held against the shapes of runs, with symbols bound to sizes."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from op_case import constant, run_all, value
from xdsl.dialects.builtin import TensorType

from sardonyx.dialects.attributes import type_dims
from sardonyx.dialects.base import SxOp
from sardonyx.dialects.dims import Dim
from sardonyx.dialects.sx import BY_NAME


def op(name: str) -> Any:
    """The class of an op by its name without the dialect's."""
    return BY_NAME[f"sx.{name}"]


def sizes(built: SxOp, bindings: Mapping[str, int], result: int = 0) -> tuple[int, ...]:
    """A result's inferred dims with the symbols bound; all of them have to be bound."""
    ty = built.results[result].type
    assert isinstance(ty, TensorType), f"{ty} has no rank"
    return tuple(d.evaluate(bindings) for d in type_dims(ty))


def every(**ranges: Sequence[int]) -> Iterator[dict[str, int]]:
    """All bindings of the symbols to the sizes."""
    for values in itertools.product(*ranges.values()):
        yield dict(zip(ranges, values, strict=True))


def follows(
    name: str, dims: Sequence[int | str | Dim], bindings: Mapping[str, int], *rest: Any, **properties: Any
) -> None:
    """An op on float32 zeros of these dims and on constants: the run's shapes are what the inferred dims say."""
    results = properties.pop("results", None)
    fixed = [None if r is None else constant(r) for r in rest]
    built = op(name).make(value("float32", dims), *fixed, results=results, **properties)
    shape = [Dim.of(d).evaluate(bindings) for d in dims]
    found = run_all(op(name), np.zeros(shape, np.float32), *rest, results=results, **properties)
    for i, array in enumerate(found):
        assert array.shape == sizes(built, bindings, i), f"{built.results[i].type} at {dict(bindings)}: {array.shape}"
