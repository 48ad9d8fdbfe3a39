"""Whether values after a pass are what they were before, as far as the pass's promise allows.

`exact` means the same bits, but for the payload of NaNs. A bound of `reassociates` or `approximates` cannot be had from
the outputs alone: how far a rounding somewhere inside moves an output depends on what lies between. So it is measured:
the function runs several times with every floating-point value that it computes, or is given, off by a unit in its last
place at random (Monte Carlo arithmetic: Parker, 1997). How much an output moves is what one rounding of each value
costs there; what may be off is a multiple of that. The function after the pass is asked as well, where that before does
not explain a difference: what a decomposition adds and takes away again are its own terms.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np
from xdsl.dialects.func import FuncOp

from sardonyx.dialects.evaluate import Array, EvalContext, Value, evaluate_function
from sardonyx.errors import ExecutionError, SardonyxError
from sardonyx.passes.base import Promise
from sardonyx.passes.check_inputs import Inputs

SAMPLES = 6
"""How many times a function runs with perturbed values."""
FACTOR = 64.0
"""The multiple of the greatest deviation seen that counts as within a promise of reassociates(1) or 1 ulp.

A sum of n terms may be off by n·eps·Σ|terms|; random errors of its terms show some eps·sqrt(Σ terms²) of it.
"""
MAX_REGION_RUNS = 10_000
"""How many times bodies of loops may run; more is refused, since inputs are made up."""


@dataclass(frozen=True)
class Difference:
    """The first place where values differ."""

    output: int
    index: tuple[int, ...]
    before: object
    after: object
    what: str

    def __str__(self) -> str:
        return self.what


# ---- evaluation that is watched


class CheckContext(EvalContext):
    """Stops loops that made-up inputs make endless; with `rng`, perturbs every floating-point value by about a unit in
    its last place."""

    def __init__(self, rng: np.random.Generator | None = None) -> None:
        self.rng = rng
        super().__init__(self.fresh_values())
        self.runs = 0

    def fresh_values(self) -> dict[Any, Value]:
        return _Perturbed(self.rng) if self.rng is not None else {}

    def run_block(self, block: Any, arguments: Sequence[Value]) -> list[Value]:
        self.runs += 1
        if self.runs > MAX_REGION_RUNS:
            raise ExecutionError(f"bodies ran more than {MAX_REGION_RUNS} times on inputs that were made up")
        return super().run_block(block, arguments)


class _Perturbed(dict[Any, Any]):
    """Values, each floating-point one off by up to one unit in the last place."""

    def __init__(self, rng: np.random.Generator) -> None:
        super().__init__()
        self.rng = rng

    def __setitem__(self, key: Any, value: Any) -> None:
        super().__setitem__(key, self._moved(value))

    def update(self, *others: Any, **named: Any) -> None:
        for key, value in dict(*others, **named).items():
            self[key] = value

    def _moved(self, value: Any) -> Any:
        if isinstance(value, list):
            return [self._moved(v) for v in value]
        if not isinstance(value, np.ndarray) or not is_float(value):
            return value
        eps = float(ml_dtypes.finfo(value.dtype).eps)
        with np.errstate(all="ignore"):
            if value.dtype == np.float64:
                return value * (1.0 + eps * self.rng.choice([-1.0, 1.0, 0.0], value.shape))
            wide = value.astype(np.float64)
            return np.asarray(wide * (1.0 + eps * self.rng.uniform(-1, 1, value.shape))).astype(value.dtype)


def run_function(function: FuncOp, inputs: Inputs, rng: np.random.Generator | None = None) -> list[Value]:
    """The function's outputs, then what its buffers hold afterwards, in the order of their names.

    Raises:
        SardonyxError: The reference refuses these inputs, or fails on them.
    """
    ctx = CheckContext(rng)
    ctx.states = dict(inputs.states)
    try:
        outputs = evaluate_function(function, list(inputs.values), ctx=ctx)
    except SardonyxError:
        raise
    except Exception as error:  # a defect of the reference, or of an evaluator that a user registered
        raise ExecutionError(f"the reference failed: {type(error).__name__}: {error}") from error
    return [*outputs, *(ctx.updates[name] for name in sorted(ctx.updates))]


def is_float(array: Array) -> bool:
    return array.dtype.kind == "f" or (array.dtype.kind == "V" and array.dtype.name.startswith(("bfloat", "float")))


# ---- comparison


def compare(
    before: Sequence[Value],
    after: Sequence[Value],
    promise: Promise,
    *perturbed: Callable[[np.random.Generator], Sequence[Value]],
) -> Difference | None:
    """The first difference beyond the promise, or None.

    Args:
        before: The outputs before the pass.
        after: The outputs after it.
        promise: How much may differ.
        perturbed: Evaluate what was before, and after, with perturbed values; called only if the bits differ and the
            promise is not `exact`, and one only where those before it do not explain the difference.
    """
    if len(before) != len(after):
        return Difference(0, (), len(before), len(after), f"{len(before)} outputs before, {len(after)} after")
    suspects: list[int] = []
    for number, (a, b) in enumerate(zip(before, after, strict=True)):
        found = _structural(number, a, b)
        if found is not None:
            return found
        if not _same(a, b):
            suspects.append(number)
    if not suspects:
        return None
    if promise.is_exact:
        return next((d for i in suspects if (d := _exact(i, before[i], after[i])) is not None), None)
    found: Difference | None = None
    for function, center in zip(perturbed, (before, after), strict=False):
        samples = _samples(function)
        remaining: list[int] = []
        found = None
        for i in suspects:
            difference = _bounded(i, before[i], after[i], promise, _deviations(center[i], [s[i] for s in samples]))
            if difference is not None:
                remaining.append(i)
                found = found or difference
        suspects = remaining
    return found


def _samples(perturbed: Callable[[np.random.Generator], Sequence[Value]]) -> list[Sequence[Value]]:
    out: list[Sequence[Value]] = []
    for seed in range(SAMPLES):
        try:
            out.append(perturbed(np.random.default_rng(seed)))
        except SardonyxError:  # a perturbed scale may make a size that is refused: then it says nothing
            continue
    return out


def _structural(number: int, a: Value, b: Value) -> Difference | None:
    if isinstance(a, np.ndarray) and isinstance(b, np.ndarray):
        if a.dtype != b.dtype:
            return Difference(number, (), a.dtype, b.dtype, f"dtype {a.dtype} before, {b.dtype} after")
        if a.shape != b.shape:
            return Difference(number, (), a.shape, b.shape, f"shape {list(a.shape)} before, {list(b.shape)} after")
        return None
    if isinstance(a, list) and isinstance(b, list):
        if len(a) != len(b):
            return Difference(number, (), len(a), len(b), f"{len(a)} elements before, {len(b)} after")
        return next((d for x, y in zip(a, b, strict=True) if (d := _structural(number, x, y)) is not None), None)
    if type(a) is not type(b):
        return Difference(number, (), a, b, f"a {type(a).__name__} before, a {type(b).__name__} after")
    return None


def _same(a: Value, b: Value) -> bool:
    if isinstance(a, list):
        return all(_same(x, y) for x, y in zip(a, b, strict=True))
    if isinstance(a, np.ndarray):
        return bool(_equal_bits(a, b).all())
    return bool(a == b)


def _equal_bits(a: Array, b: Array) -> Any:
    """Per element, whether the bits are the same; all NaNs are one."""
    if not is_float(a):
        return a == b
    kind = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64}[a.dtype.itemsize]
    bits = np.ascontiguousarray(a).reshape(a.shape).view(kind) == np.ascontiguousarray(b).reshape(b.shape).view(kind)
    return bits | (np.isnan(a) & np.isnan(b))


def _exact(number: int, a: Value, b: Value) -> Difference | None:
    if isinstance(a, list):
        return next((d for x, y in zip(a, b, strict=True) if (d := _exact(number, x, y)) is not None), None)
    if not isinstance(a, np.ndarray):
        return None if a == b else Difference(number, (), a, b, f"{a!r} before, {b!r} after")
    return _first(number, a, b, ~_equal_bits(a, b), "")


def _first(number: int, a: Array, b: Array, wrong: Array, note: str) -> Difference | None:
    places = np.flatnonzero(wrong)
    if not places.size:
        return None
    at = np.unravel_index(int(places[0]), a.shape) if a.shape else ()
    x, y = a[at], b[at]
    index = tuple(int(i) for i in at)
    where = f"at {list(index)}: " if index else ""
    more = f" ({places.size} of {a.size} elements differ{note})" if a.size > 1 or note else ""
    return Difference(number, index, x, y, f"{where}{_shown(x)} before, {_shown(y)} after{more}")


def _shown(x: Any) -> str:
    return repr(x.item() if hasattr(x, "item") and not isinstance(x, ml_dtypes.bfloat16) else x)


@dataclass(frozen=True)
class _Deviation:
    """How far each element moved, and where it became finite or was no longer."""

    by: Array
    loose: Array


def _deviations(center: Value, samples: Sequence[Value]) -> Any:
    """How far the perturbed values are from the plain ones; a list of that for a list."""
    if isinstance(center, list):
        parts = ([s[i] for s in samples if isinstance(s, list) and len(s) == len(center)] for i in range(len(center)))
        return [_deviations(c, part) for c, part in zip(center, parts, strict=True)]
    if not isinstance(center, np.ndarray) or center.dtype.kind == "O":
        return None
    x = center.astype(np.float64)
    by, loose = np.zeros(x.shape), np.zeros(x.shape, np.bool_)
    with np.errstate(all="ignore"):
        for sample in samples:
            if isinstance(sample, np.ndarray) and sample.shape == x.shape:
                s = sample.astype(np.float64)
                loose |= np.isfinite(s) != np.isfinite(x)
                by = np.fmax(by, np.where(np.isfinite(s) & np.isfinite(x), np.abs(s - x), 0.0))
    return _Deviation(by, loose)


def _bounded(number: int, a: Value, b: Value, promise: Promise, deviation: Any) -> Difference | None:
    if isinstance(a, list):
        found = (_bounded(number, x, y, promise, d) for x, y, d in zip(a, b, deviation, strict=True))
        return next((d for d in found if d is not None), None)
    if not isinstance(a, np.ndarray) or not isinstance(deviation, _Deviation):
        return _exact(number, a, b)
    x, y = a.astype(np.float64), b.astype(np.float64)
    with np.errstate(all="ignore"):
        c = max(1.0, promise.reassociation + promise.ulp)
        if is_float(a):
            info = ml_dtypes.finfo(a.dtype)
            slack = FACTOR * c * deviation.by + 4 * c * float(info.eps) * np.abs(np.where(np.isfinite(x), x, 0.0))
            slack += 16 * float(info.smallest_subnormal)
            special = ~np.isfinite(x) | ~np.isfinite(y)
            same = (x == y) | (np.isnan(x) & np.isnan(y))
            wrong = np.where(special, ~same & ~deviation.loose, np.abs(x - y) > slack)
        else:  # an integer that a rounding decides may be another one altogether
            wrong = (x != y) & (deviation.by == 0) & ~deviation.loose
    return _first(number, a, b, wrong, f" by more than {promise} allows")
