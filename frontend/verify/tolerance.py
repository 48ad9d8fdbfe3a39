"""How far two results may lie apart, and how far they do.

The limits are those that careful exports are held to: `|actual - expected| <= atol * scale + rtol * |expected|`, where
`scale` is 1, or the largest finite expected value of the tensor where that is more (the rounding of a sum follows its
terms, not its result). float32 has rtol 1e-3 and atol 1e-5; 16-bit floats are looser; integers, booleans and strings
are equal or not; what a quantised model computes may be off by steps.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from sardonyx.errors import InvalidArgumentError

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Tolerance:
    """The limits of one dtype.

    Attributes:
        rtol: The share of the expected value.
        atol: The share of the scale (see the module's text).
        steps: For integers: how far apart two values may be.
        mean: A limit on the mean error as a share of the scale; None: no limit of its own.
    """

    rtol: float = 0.0
    atol: float = 0.0
    steps: int = 0
    mean: float | None = None


DEFAULTS: Mapping[str, Tolerance] = {
    "float64": Tolerance(rtol=1e-6, atol=1e-9),
    "float32": Tolerance(rtol=1e-3, atol=1e-5),
    "float16": Tolerance(rtol=1e-2, atol=1e-3),
    "bfloat16": Tolerance(rtol=4e-2, atol=8e-3),
    "float8": Tolerance(rtol=0.25, atol=0.1),
    "quantised": Tolerance(rtol=0.0, atol=0.1, steps=2, mean=0.05),
    "integer": Tolerance(),
}
"""By dtype; `quantised` is for all results of a model that computes with quantised values."""

KIND_ORDER = ("float64", "float32", "bfloat16", "float16", "float8", "quantised")


@dataclass(frozen=True)
class Limits:
    """The tolerances of one verification.

    Attributes:
        table: Tolerances by dtype; what it lacks is in `DEFAULTS`.
        precision: The narrowest kind of arithmetic in the model ('float32', 'float16', 'bfloat16', 'float8',
            'quantised'): results of wider dtypes are no more exact than that.
    """

    table: Mapping[str, Tolerance]
    precision: str = "float64"

    def of(self, dtype: np.dtype[Any]) -> Tolerance:
        """The tolerance of results of a dtype."""
        name = dtype.name
        if dtype.kind in "iub" and not name.startswith("float"):
            key = (
                "quantised"
                if self.precision == "quantised" and dtype.itemsize == 1 and dtype.kind != "b"
                else "integer"
            )
            return self.table.get(name, self._get(key))
        key = name if name in ("float64", "float32", "float16", "bfloat16") else "float8"
        if dtype.kind in "OSU":
            key = "integer"
        elif KIND_ORDER.index(self.precision) > KIND_ORDER.index(key):
            key = self.precision
        return self._get(key)

    def _get(self, key: str) -> Tolerance:
        return self.table.get(key, DEFAULTS[key])

    def with_limits(self, rtol: float | None, atol: float | None) -> Limits:
        """The same with other limits for the floats of the model's precision and wider."""
        if rtol is None and atol is None:
            return self
        table = dict(self.table)
        for key in KIND_ORDER:
            old = self._get(key)
            table[key] = replace(old, rtol=old.rtol if rtol is None else rtol, atol=old.atol if atol is None else atol)
        return Limits(table, self.precision)

    def to_json(self) -> dict[str, Any]:
        kinds = {**DEFAULTS, **self.table}
        return {
            "precision": self.precision,
            "tolerances": {
                k: {"rtol": t.rtol, "atol": t.atol, "steps": t.steps, "mean": t.mean} for k, t in sorted(kinds.items())
            },
        }

    @staticmethod
    def from_json(data: Mapping[str, Any]) -> Limits:
        """The limits that `to_json` wrote.

        Raises:
            InvalidArgumentError: They are malformed.
        """
        try:
            table = {str(k): Tolerance(**v) for k, v in data["tolerances"].items()}
            precision = str(data["precision"])
            KIND_ORDER.index(precision)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise InvalidArgumentError(f"the tolerances are malformed: {error}") from error
        return Limits(table, precision)


@dataclass(frozen=True)
class Difference:
    """How a result differs from the expected one.

    Attributes:
        name: The output's name.
        ok: Whether it is within the limits.
        reason: In words, where it is not.
        max_abs: The largest absolute error over the finite elements.
        max_rel: The largest error as a share of the expected value, over elements that are at least `scale / 1000`.
        use: The largest share of what is allowed that an element uses: 1 is the limit.
        scale: The largest finite expected value.
        flips: How many rows along the last axis have their largest element elsewhere; None for what has no rows.
        rows: How many rows there are.
        worst: The index of the worst element, with the expected and the actual value.
    """

    name: str
    ok: bool
    reason: str = ""
    max_abs: float = 0.0
    max_rel: float = 0.0
    use: float = 0.0
    scale: float = 0.0
    flips: int | None = None
    rows: int = 0
    worst: tuple[tuple[int, ...], str, str] | None = None

    def to_json(self) -> dict[str, Any]:
        found: dict[str, Any] = {
            "output": self.name,
            "ok": self.ok,
            "max_abs": self.max_abs,
            "max_rel": self.max_rel,
            "use": self.use if np.isfinite(self.use) else None,
        }
        if self.reason:
            found["reason"] = self.reason
        if self.flips is not None:
            found |= {"argmax_flips": self.flips, "rows": self.rows}
        if self.worst is not None:
            found["worst"] = {"index": list(self.worst[0]), "expected": self.worst[1], "actual": self.worst[2]}
        return found


def compare_outputs(expected: Mapping[str, Any], actual: Mapping[str, Any], limits: Limits) -> list[Difference]:
    """Hold the outputs of a model against the expected ones, by name."""
    return [
        compare(name, value, actual[name], limits)
        if name in actual
        else Difference(name, False, "the model has no such output", use=np.inf)
        for name, value in expected.items()
    ]


def compare(name: str, expected: Any, actual: Any, limits: Limits) -> Difference:
    """Hold a result against the expected one; sequences and maps entry by entry (the worst is given).

    A NaN is as good as another; infinities must be in the same places with the same signs.
    """
    if expected is None or actual is None:
        same = expected is None and actual is None
        return Difference(name, same, "" if same else "one of the two is an empty optional")
    if isinstance(expected, Mapping):
        if not isinstance(actual, Mapping) or set(map(str, expected)) != set(map(str, actual)):
            return Difference(name, False, "the keys of the maps differ", use=np.inf)
        found = {str(k): v for k, v in actual.items()}
        return _worst(name, [compare(f"{name}[{k}]", v, found[str(k)], limits) for k, v in expected.items()])
    if isinstance(expected, list | tuple):
        if not isinstance(actual, list | tuple) or len(actual) != len(expected):
            got = len(actual) if isinstance(actual, list | tuple) else "a tensor"
            return Difference(name, False, f"a sequence of {len(expected)} was expected, got {got}", use=np.inf)
        return _worst(name, [compare(f"{name}[{i}]", e, a, limits) for i, (e, a) in enumerate(zip(expected, actual))])
    return _compare_arrays(name, np.asarray(expected), np.asarray(actual), limits)


def _worst(name: str, found: list[Difference]) -> Difference:
    if not found:
        return Difference(name, True)
    worst = max(found, key=lambda d: (not d.ok, d.use))
    return replace(worst, name=name if worst.ok else worst.name)


def _compare_arrays(name: str, expected: Array, actual: Array, limits: Limits) -> Difference:
    if expected.shape != actual.shape:
        return Difference(name, False, f"shape {list(actual.shape)}, expected {list(expected.shape)}", use=np.inf)
    text = {expected.dtype.kind, actual.dtype.kind} & set("OSU")
    if expected.dtype != actual.dtype and not text and _family(expected.dtype) != _family(actual.dtype):
        return Difference(name, False, f"dtype {actual.dtype}, expected {expected.dtype}", use=np.inf)
    if expected.size == 0:
        return Difference(name, True)
    if text or _family(expected.dtype) != "float":
        return _compare_exact(name, expected, actual, limits)
    narrower = min((expected.dtype, actual.dtype), key=lambda d: d.itemsize)
    return _compare_floats(name, expected, actual, limits.of(narrower))


def _family(dtype: np.dtype[Any]) -> str:
    if dtype.name.startswith(("float", "bfloat")):
        return "float"
    return "bool" if dtype.kind == "b" else "integer"


def _compare_exact(name: str, expected: Array, actual: Array, limits: Limits) -> Difference:
    unequal = np.asarray(expected != actual)
    count = int(unequal.sum())
    if not count:
        return Difference(name, True)
    index = tuple(int(i) for i in np.argwhere(unequal)[0])
    worst, error, steps = index, 0.0, 0
    if expected.dtype.kind in "iu" or expected.dtype.name.startswith(("int", "uint")):
        steps = limits.of(expected.dtype).steps
        distance = np.abs(expected.astype(np.float64) - actual.astype(np.float64))
        error = float(distance.max())
        worst = tuple(int(i) for i in np.unravel_index(int(distance.argmax()), distance.shape))
    ok = 0 < error <= steps
    reason = "" if ok else f"{count} of {expected.size} elements differ" + (f" by up to {error:g}" if error else "")
    use = error / steps if steps else np.inf
    shown = (worst, str(expected[worst]), str(actual[worst]))
    return Difference(name, ok, reason, max_abs=error, use=use, worst=shown)


def _compare_floats(name: str, expected: Array, actual: Array, limit: Tolerance) -> Difference:
    want, got = expected.astype(np.float64), actual.astype(np.float64)
    finite = np.isfinite(want)
    with np.errstate(invalid="ignore", over="ignore"):
        same = (want == got) | (np.isnan(want) & np.isnan(got))
        odd = ~same & ~(finite & np.isfinite(got))
        scale = float(np.abs(want[finite]).max()) if finite.any() else 0.0
        error = np.where(same | odd, 0.0, np.abs(got - want))
    allowed = limit.atol * max(1.0, scale) + limit.rtol * np.where(finite, np.abs(want), 0.0)
    share = np.divide(error, allowed, out=np.where(error > 0, np.inf, 0.0), where=allowed > 0)
    flips, rows = _argmax_flips(want, got)
    use = float(share.max())
    if odd.any():
        index = tuple(int(i) for i in np.argwhere(odd)[0])
        reason = f"{int(odd.sum())} of {want.size} elements are NaN or infinite in one of the two only"
        use = np.inf
    else:
        index = tuple(int(i) for i in np.unravel_index(int(share.argmax()), share.shape))
        reason = ""
        if use > 1:
            over = int((share > 1).sum())
            reason = f"{over} of {want.size} elements are out of tolerance, by up to {use:.3g} times the limit"
        elif limit.mean is not None and scale and float(error.mean()) > limit.mean * max(1.0, scale):
            reason = f"the mean error {float(error.mean()):.3g} is more than {limit.mean:g} of the scale {scale:.3g}"
    large = finite & (np.abs(want) >= max(scale * 1e-3, np.finfo(np.float64).tiny)) & ~odd
    relative = float((error[large] / np.abs(want[large])).max()) if large.any() else 0.0
    shown = (index, f"{float(want[index]):.9g}", f"{float(got[index]):.9g}") if use > 0 else None
    return Difference(name, not reason, reason, float(error.max()), relative, use, scale, flips, rows, shown)


def _argmax_flips(want: Array, got: Array) -> tuple[int | None, int]:
    """Rows along the last axis whose largest element is another one by value, NaN being the largest."""
    if want.ndim < 1 or want.shape[-1] < 2:
        return None, 0
    a, b = want.argmax(axis=-1), got.argmax(axis=-1)
    best = np.take_along_axis(want, a[..., None], -1)
    chosen = np.take_along_axis(want, b[..., None], -1)
    same = (best == chosen) | (np.isnan(best) & np.isnan(chosen))  # a tie is no flip
    return int((~same).sum()), int(same.size)
