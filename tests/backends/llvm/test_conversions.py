"""Conversions between float32 and 16-bit floats: every pattern one way, many the other, and no calls of the runtime."""

from __future__ import annotations

import math_harness as h
import ml_dtypes
import numpy as np
import pytest

from sardonyx.backends.llvm.codegen import conversions
from sardonyx.backends.llvm.codegen.text import LType, Target

NARROW = {"half": np.dtype(np.float16), "bfloat": np.dtype(ml_dtypes.bfloat16)}
WIDEN = {"half": conversions.f16_to_f32, "bfloat": conversions.bf16_to_f32}
NARROWED = {"half": conversions.f16_from_f32, "bfloat": conversions.bf16_from_f32}
on_each_target = pytest.mark.parametrize("target", h.RUNNABLE.values(), ids=h.RUNNABLE.keys())
on_each_kind = pytest.mark.parametrize("scalar", ["half", "bfloat"])


def widening(scalar: str) -> h.Body:
    return lambda b, lanes, operands: [WIDEN[scalar](b, LType(scalar, lanes), operands[0])]


def narrowing(scalar: str) -> h.Body:
    return lambda b, lanes, operands: [NARROWED[scalar](b, LType("float", lanes), operands[0])]


@on_each_target
@on_each_kind
@pytest.mark.parametrize("lanes", [0, 8])
def test_widening_every_pattern(scalar: str, lanes: int, target: Target) -> None:
    patterns = np.arange(1 << 16, dtype=np.uint16)
    got = h.Compiled(target, widening(scalar), [scalar], ["float"], lanes)(patterns)[0]
    with np.errstate(all="ignore"):
        want = patterns.view(NARROW[scalar]).astype(np.float32)
    nan = np.isnan(want)
    assert (got.view(np.uint32)[~nan] == want.view(np.uint32)[~nan]).all()
    assert np.isnan(got[nan]).all()


@on_each_target
@on_each_kind
@pytest.mark.parametrize("lanes", [0, 8])
def test_narrowing_rounds_to_nearest_even(scalar: str, lanes: int, target: Target) -> None:
    """Every float whose lower bits are those around a tie, and a stride over all of them."""
    shift = {"half": 13, "bfloat": 16}[scalar]
    upper = np.arange(0, 1 << 32, 1 << shift, dtype=np.uint32)
    half = np.uint32(1 << (shift - 1))
    patterns = [upper, upper + half - np.uint32(1), upper + half, upper + half + np.uint32(1)]
    if scalar == "half":
        # Subnormal halves have their ties further up.
        patterns.append(np.arange(0x33000000 - 64, 0x38800000, 512, dtype=np.uint32))
    patterns.append(np.arange(0, 1 << 32, 8191, dtype=np.uint32))
    x = np.concatenate(patterns).view(np.float32)
    got = h.Compiled(target, narrowing(scalar), ["float"], [scalar], lanes)(x)[0].view(np.uint16)
    with np.errstate(all="ignore"):
        want = x.astype(NARROW[scalar])
    nan = np.isnan(x)
    assert (got[~nan] == want.view(np.uint16)[~nan]).all()
    assert np.isnan(got[nan].view(NARROW[scalar])).all()
    quiet = {"half": 0x200, "bfloat": 0x40}[scalar]
    assert (got[nan] & quiet != 0).all()


@pytest.mark.skipif(len(h.RUNNABLE) < 2 or not conversions.has_half_conversion(h.HOST), reason="one way only here")
def test_emulation_equals_the_instruction() -> None:
    """NaN payloads included."""
    x = np.concatenate(
        [np.arange(0, 1 << 32, 4093, dtype=np.uint32), 0x7F800000 + np.arange(0, 1 << 23, 511, dtype=np.uint32)]
    )
    one, two = (h.Compiled(t, narrowing("half"), ["float"], ["half"], 8)(x)[0] for t in h.RUNNABLE.values())
    assert (one.view(np.uint16) == two.view(np.uint16)).all()
    patterns = np.arange(1 << 16, dtype=np.uint16)
    one, two = (h.Compiled(t, widening("half"), ["half"], ["float"], 8)(patterns)[0] for t in h.RUNNABLE.values())
    assert (one.view(np.uint32) == two.view(np.uint32)).all()


@pytest.mark.parametrize("target", [h.HOST, h.BASELINE, h.AVX512, h.AARCH64], ids=["host", "v2", "v4", "aarch64"])
@on_each_kind
def test_nothing_is_called(scalar: str, target: Target) -> None:
    for lanes in (0, 1, 4, 8, 16):
        for body, inputs, outputs in ((widening, [scalar], ["float"]), (narrowing, ["float"], [scalar])):
            listing = h.assembly(target, h.build(target, body(scalar), inputs, outputs, lanes))
            assert h.calls_in(listing) == []
