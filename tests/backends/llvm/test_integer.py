"""Integer arithmetic with defined results: no trap, no undefined behaviour, whatever the operands."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import math_harness as h
import numpy as np
import pytest

from sardonyx.backends.llvm.codegen.integer import INTEGER, float_to_int, to_bool
from sardonyx.backends.llvm.codegen.text import LType, Target

WIDTHS = {"i8": 8, "i16": 16, "i32": 32, "i64": 64}
UNSIGNED = {"udiv", "urem", "lshr", "upow"}
on_each_target = pytest.mark.parametrize("target", h.RUNNABLE.values(), ids=h.RUNNABLE.keys())
on_each_scalar = pytest.mark.parametrize("scalar", sorted(WIDTHS))


def emitter(name: str, scalar: str) -> h.Body:
    return lambda b, lanes, operands: [INTEGER[name](b, LType(scalar, lanes), *operands)]


def truncated(a: int, b: int) -> tuple[int, int]:
    """Quotient towards zero and remainder in Python's unbounded integers; both 0 for b = 0."""
    if b == 0:
        return 0, 0
    quotient = abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)
    return quotient, a - quotient * b


def integer_power(a: int, b: int, bits: int) -> int:
    if b >= 0:
        return pow(a, b, 1 << bits)
    return {1: 1, -1: -1 if b % 2 else 1}.get(a, 0)


def reference(name: str, bits: int) -> Callable[[int, int], int]:
    """The result in Python integers, before it is wrapped to the width."""
    return {
        "sdiv": lambda a, b: truncated(a, b)[0],
        "udiv": lambda a, b: truncated(a, b)[0],
        "srem": lambda a, b: truncated(a, b)[1],
        "urem": lambda a, b: truncated(a, b)[1],
        "floordiv": lambda a, b: a // b if b else 0,
        "floormod": lambda a, b: a % b if b else 0,
        "shl": lambda a, b: a << b if 0 <= b < bits else 0,
        "lshr": lambda a, b: a >> b if 0 <= b < bits else 0,
        "ashr": lambda a, b: a >> (b if 0 <= b < bits else bits),
        "pow": lambda a, b: integer_power(a, b, bits),
        "upow": lambda a, b: integer_power(a, b, bits),
    }[name]


def operands(scalar: str) -> tuple[np.ndarray, np.ndarray]:
    """All pairs of awkward values, and random ones of all magnitudes; for i8 simply all pairs."""
    dtype = h.NUMPY[scalar]
    info = np.iinfo(dtype)
    if scalar == "i8":
        values = np.arange(-128, 128, dtype=np.int8)
    else:
        edges = [0, 1, 2, 3, 7, 10, 16, WIDTHS[scalar] - 1, WIDTHS[scalar], 100, info.max, info.max - 1, info.max // 2]
        values = np.array([*edges, *(-e for e in edges), info.min, info.min + 1], dtype)
    a, b = (grid.ravel() for grid in np.meshgrid(values, values))
    rng = np.random.default_rng(0)
    wide = [rng.integers(info.min, info.max, 4000, dtype, endpoint=True) for _ in range(2)]
    more = [x >> rng.integers(0, WIDTHS[scalar], 4000).astype(dtype) for x in wide]
    return np.concatenate([a, more[0]]), np.concatenate([b, more[1]])


def wrapped(values: list[int], scalar: str) -> np.ndarray:
    mask = (1 << WIDTHS[scalar]) - 1
    return np.array([v & mask for v in values], f"u{WIDTHS[scalar] // 8}").view(h.NUMPY[scalar])


@on_each_target
@on_each_scalar
@pytest.mark.parametrize("name", sorted(INTEGER))
def test_against_python_integers(name: str, scalar: str, target: Target) -> None:
    a, b = operands(scalar)
    of = a.view(f"u{a.itemsize}"), b.view(f"u{b.itemsize}")
    given = of if name in UNSIGNED else (a, b)
    compute = reference(name, WIDTHS[scalar])
    want = wrapped([compute(x, y) for x, y in zip(given[0].tolist(), given[1].tolist(), strict=True)], scalar)
    for lanes in (0, 4, 16):
        got = h.Compiled(target, emitter(name, scalar), [scalar] * 2, [scalar], lanes)(a, b)[0]
        wrong = np.flatnonzero(got != want)
        assert not len(wrong), f"{name}({a[wrong[0]]}, {b[wrong[0]]}) = {got[wrong[0]]}, not {want[wrong[0]]}"


def test_division_never_traps() -> None:
    """In a process of its own, since a trap would end this one."""
    program = """
import numpy as np, math_harness as h, test_integer as t
for target in h.RUNNABLE.values():
    for name in ("sdiv", "srem", "udiv", "urem", "floordiv", "floormod"):
        for scalar in t.WIDTHS:
            least = np.iinfo(h.NUMPY[scalar]).min
            a, b = np.array([5, least, least, 0] * 4, h.NUMPY[scalar]), np.array([0, -1, 0, 0] * 4, h.NUMPY[scalar])
            for lanes in (0, 4):
                h.Compiled(target, t.emitter(name, scalar), [scalar] * 2, [scalar], lanes)(a, b)
print("survived")
"""
    paths = os.pathsep.join([str(Path(__file__).parent), *sys.path])
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "PYTHONPATH": paths},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout.strip() == "survived", done.stderr


@on_each_target
@pytest.mark.parametrize("signed", [True, False], ids=["signed", "unsigned"])
@on_each_scalar
@pytest.mark.parametrize("source", ["float", "double"])
def test_float_to_int_saturates(source: str, scalar: str, signed: bool, target: Target) -> None:
    bits = WIDTHS[scalar]
    least, most = (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) if signed else (0, (1 << bits) - 1)
    dtype = h.NUMPY[source]
    rng = np.random.default_rng(3)
    edges = [0.0, -0.0, 0.5, -0.5, 0.999, -0.999, 1.0, -1.0, np.inf, -np.inf, np.nan, 1e30, -1e30, 5e-324]
    edges += [float(sign * 2**k + d) for k in range(66) for d in (-1, 0, 0.5, 1) for sign in (1, -1)]
    around = np.array(edges, dtype)
    with np.errstate(all="ignore"):
        spread = np.ldexp(rng.uniform(-2, 2, 4000), rng.integers(-3, 66, 4000)).astype(dtype)
        x = np.concatenate([around, np.nextafter(around, dtype(np.inf)), np.nextafter(around, dtype(-np.inf)), spread])
    finite = np.clip(np.nan_to_num(x.astype(np.float64), nan=0.0, posinf=1e300, neginf=-1e300), -1e300, 1e300)
    want = wrapped([min(max(int(v), least), most) for v in finite.tolist()], scalar)
    for lanes in (0, 4, 8):

        def body(b, width, given):
            return [float_to_int(b, LType(source, width), given[0], LType(scalar, width), signed)]

        got = h.Compiled(target, body, [source], [scalar], lanes)(x)[0]
        wrong = np.flatnonzero(got != want)
        assert not len(wrong), f"{x[wrong[0]]!r} becomes {got[wrong[0]]}, not {want[wrong[0]]}"
        assert h.calls_in(h.assembly(target, h.build(target, body, [source], [scalar], lanes))) == []


@on_each_target
@pytest.mark.parametrize("source", ["float", "double", "i8", "i64"])
def test_to_bool(source: str, target: Target) -> None:
    """NaN is true, both zeros are false."""
    values = [0.0, -0.0, 1, -1, np.nan, np.inf, 5e-324] if source in ("float", "double") else [0, 1, -1, 64]
    x = np.array(values, h.NUMPY[source])
    for lanes in (0, 4):

        def body(b, width, given):
            flag = LType("i1", width)
            return [b.cast("zext", flag, to_bool(b, LType(source, width), given[0]), flag.with_scalar("i8"))]

        got = h.Compiled(target, body, [source], ["i8"], lanes)(x)[0]
        assert got.tolist() == (x != 0).astype(int).tolist()


@pytest.mark.parametrize("target", [h.HOST, h.BASELINE, h.AVX512, h.AARCH64], ids=["host", "v2", "v4", "aarch64"])
@pytest.mark.parametrize("name", sorted(INTEGER))
def test_nothing_is_called(name: str, target: Target) -> None:
    for scalar, bits in WIDTHS.items():
        for lanes in (0, target.lanes(bits)):
            text = h.build(target, emitter(name, scalar), [scalar] * 2, [scalar], lanes)
            assert h.calls_in(h.assembly(target, text)) == []
