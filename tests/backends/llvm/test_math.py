"""Vector math against wider oracles: ULP_BOUNDS, special values, the same bits for any number of lanes, no calls."""

from __future__ import annotations

import math
from collections.abc import Callable

import math_harness as h
import mpmath
import numpy as np
import pytest

from sardonyx.backends.llvm.codegen import conversions
from sardonyx.backends.llvm.codegen.math import MATH, ULP_BOUNDS
from sardonyx.backends.llvm.codegen.text import FunctionBuilder, LType, Target

UNARY = sorted(set(MATH) - h.BINARY)
SCALARS = ("float", "double")
UNSIGNED = {"float": np.uint32, "double": np.uint64}
WIDE = {"float": np.float64, "double": np.longdouble}
LANES = {"float": 8, "double": 4}
on_each_target = pytest.mark.parametrize("target", h.RUNNABLE.values(), ids=h.RUNNABLE.keys())
on_each_scalar = pytest.mark.parametrize("scalar", SCALARS)
# The oracles' own errors, in units in the last place of the result's type.
SLACK = {"float": 2.0**-24, "double": 2.0**-8}

# Where a function does something; the samples are denser there.
RANGES: dict[str, tuple[float, float]] = {
    "exp": (-750, 715),
    "exp2": (-1080, 1030),
    "expm1": (-45, 715),
    "sigmoid": (-750, 40),
    "tanh": (-22, 22),
    "sinh": (-715, 715),
    "cosh": (-715, 715),
    "erf": (-6, 6),
    "log": (0.3, 3),
    "log2": (0.3, 3),
    "log1p": (-1, 3),
    "softplus": (-750, 50),
    "asinh": (-9, 9),
    "acosh": (1, 9),
    "atanh": (-1, 1),
    "asin": (-1, 1),
    "acos": (-1, 1),
}


def emitter(name: str, scalar: str) -> h.Body:
    return lambda b, lanes, operands: [MATH[name](b, LType(scalar, lanes), *operands)]


def compiled(name: str, scalar: str, target: Target, lanes: int | None = None) -> h.Compiled:
    arity = 2 if name in h.BINARY else 1
    return h.Compiled(
        target, emitter(name, scalar), [scalar] * arity, [scalar], LANES[scalar] if lanes is None else lanes
    )


# ---- arguments


def boundaries(scalar: str) -> np.ndarray:
    """Every power of two with two neighbours on each side, both signs, zeros, infinities, NaN, subnormals."""
    mantissa, least, greatest = h.FORMATS[scalar]
    unsigned = UNSIGNED[scalar]
    powers = np.arange(1, 2 * (greatest + 1), dtype=unsigned) << unsigned(mantissa)
    near = (powers[:, None] + np.arange(-2, 3).astype(unsigned)).ravel()
    subnormal = np.concatenate([[unsigned(0)], unsigned(1) << np.arange(mantissa, dtype=unsigned)])
    quiet = unsigned(3 << (mantissa - 1)) | powers[-1]
    patterns = np.concatenate(
        [near, subnormal, subnormal + unsigned(1), [powers[-1] + (unsigned(1) << unsigned(mantissa)), quiet]]
    )
    sign = unsigned(1) << unsigned(8 * patterns.itemsize - 1)
    return np.concatenate([patterns, patterns | sign]).astype(unsigned).view(h.NUMPY[scalar])


def samples(name: str, scalar: str, count: int, seed: int = 0) -> np.ndarray:
    """Boundaries and random arguments: in the function's range, of all magnitudes, and near multiples of pi/2."""
    rng = np.random.default_rng([seed, *name.encode()])
    dtype = h.NUMPY[scalar]
    _, least, greatest = h.FORMATS[scalar]
    low, high = RANGES.get(name, (-10.0, 10.0))
    inside = rng.uniform(low, high, count // 2)
    if low == -high or low < 0:
        inside[::4] = rng.uniform(-2, 2, len(inside[::4]))
    small = np.ldexp(rng.uniform(1, 2, count // 8), rng.integers(-60, 8, count // 8)) * rng.choice([-1, 1], count // 8)
    any_bits = rng.integers(0, np.iinfo(UNSIGNED[scalar]).max, count // 4, UNSIGNED[scalar], endpoint=True).view(dtype)
    multiples = np.concatenate([np.arange(count // 16), rng.integers(0, 2**31, count // 16)]) * (np.pi / 2)
    with np.errstate(all="ignore"):
        return np.concatenate([x.astype(dtype) for x in (inside, small, any_bits, multiples, boundaries(scalar))])


def pairs(name: str, scalar: str, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Two arguments; for pow such that the results spread over the format and beyond."""
    rng = np.random.default_rng(1)
    dtype = h.NUMPY[scalar]
    _, least, greatest = h.FORMATS[scalar]
    x = rng.permutation(samples("", scalar, count))[:count]
    y = rng.permutation(samples("", scalar, count, seed=1))[:count]
    if name == "pow":
        with np.errstate(all="ignore"):
            spread = rng.uniform(least - 60, greatest + 8, count // 2)
            x[: count // 2] = np.abs(x[: count // 2])
            x[: count // 8] = (
                1 + rng.normal(0, 1, count // 8) * np.ldexp(1.0, rng.integers(-50, -2, count // 8))
            ).astype(dtype)
            y[: count // 2] = (spread / np.log2(x[: count // 2].astype(np.float64))).astype(dtype)
        y[-count // 4 :] = np.rint(rng.uniform(-40, 40, count // 4)).astype(dtype)
    else:
        y[: count // 2] = rng.integers(-60, 60, count // 2).astype(dtype)
        x[: count // 4] = rng.integers(-500, 500, count // 4).astype(dtype)
        near = rng.integers(-300, 300, count // 8)
        x[: count // 8] = (near * rng.normal(0, 1, count // 8)).astype(dtype)
        y[: count // 8] = rng.normal(0, 1, count // 8).astype(dtype)
    return x, y


def worst(name: str, scalar: str, run: h.Compiled, arguments: tuple[np.ndarray, ...], want: np.ndarray) -> float:
    """The largest error, which must keep the bound; a failure names the argument."""
    got = run(*arguments)[0]
    errors = h.ulp_errors(got, want, scalar)
    at = int(errors.argmax())
    given = ", ".join(repr(a[at]) for a in arguments)
    bound = ULP_BOUNDS[name, scalar] + SLACK[scalar]
    assert errors[at] <= bound, f"{name}({given}) = {got[at]!r}, exactly {want[at]!r}: {errors[at]:.3f} ulp > {bound}"
    return float(errors[at])


def wide_exact(name: str, scalar: str, *arguments: np.ndarray) -> np.ndarray:
    if scalar == "double" and h.LONG_LLVM is None:
        pytest.skip("no long double wider than double here")
    return h.exact(name, *arguments, dtype=WIDE[scalar])


# ---- accuracy


@on_each_scalar
@pytest.mark.parametrize("name", sorted(MATH))
def test_bound_on_samples(name: str, scalar: str, record_property: Callable[[str, object], None]) -> None:
    arguments = pairs(name, scalar, 100_000) if name in h.BINARY else (samples(name, scalar, 100_000),)
    want = wide_exact(name, scalar, *arguments)
    for label, target in h.RUNNABLE.items():
        record_property(label, worst(name, scalar, compiled(name, scalar, target), arguments, want))


@pytest.mark.slow
@pytest.mark.parametrize("name", UNARY)
def test_bound_on_every_256th_float(name: str, record_property: Callable[[str, object], None]) -> None:
    """2^24 of the 2^32 floats; the offset moves so that all low bits of the significand occur."""
    runs = {label: compiled(name, "float", target) for label, target in h.RUNNABLE.items()}
    largest = dict.fromkeys(runs, 0.0)
    size = 1 << 20
    for start in range(0, 1 << 32, 256 * size):
        index = np.arange(start, start + 256 * size, 256, dtype=np.uint32)
        x = (index + (index >> np.uint32(8)) * np.uint32(113) % np.uint32(256)).view(np.float32)
        want = h.exact(name, x)
        for label, run in runs.items():
            largest[label] = max(largest[label], worst(name, "float", run, (x,), want))
    for label, error in largest.items():
        record_property(label, error)


@pytest.mark.slow
@on_each_target
def test_pow_bound_on_many_pairs(target: Target) -> None:
    run = compiled("pow", "float", target)
    rng = np.random.default_rng(2)
    for _ in range(4):
        x = rng.integers(0, 1 << 32, 1 << 20, np.uint32).view(np.float32)
        y = rng.integers(0, 1 << 32, 1 << 20, np.uint32).view(np.float32)
        worst("pow", "float", run, (x, y), h.exact("pow", x, y))


@pytest.mark.parametrize("name", sorted(set(UNARY) - {"floor", "ceil", "trunc", "round_half_even"}))
def test_oracle_is_more_exact(name: str) -> None:
    """float64 and long double references against mpmath, so that a bound means something."""
    functions: dict[str, Callable] = {
        "sigmoid": lambda x: 1 / (1 + mpmath.exp(-x)),
        "softplus": lambda x: mpmath.log1p(mpmath.exp(x)),
        "rsqrt": lambda x: 1 / mpmath.sqrt(x),
        "exp2": lambda x: mpmath.mpf(2) ** x,
        "log2": lambda x: mpmath.log(x, 2),
    }
    function = functions.get(name, getattr(mpmath, name, None))
    assert function is not None
    with mpmath.workprec(400):
        for scalar in SCALARS:
            x = samples(name, scalar, 256)[:240]
            want = wide_exact(name, scalar, x)
            for argument, value in zip(x, want, strict=True):
                if not np.isfinite(argument) or not abs(value) < np.finfo(argument).max:
                    continue
                true = function(mpmath.mpf(float(argument)))
                mantissa, least, _ = h.FORMATS[scalar]
                unit = mpmath.ldexp(1, max(mpmath.frexp(true)[1] - 1, least) - mantissa)
                fraction, exponent = np.frexp(value)
                rest = fraction - type(fraction)(float(fraction))
                stated = mpmath.ldexp(mpmath.mpf(float(fraction)) + mpmath.mpf(float(rest)), int(exponent))
                assert abs(stated - true) / unit < SLACK[scalar], f"{name}({argument!r})"


# ---- 16-bit floats, through float and one rounding


def narrow_body(name: str, scalar: str) -> h.Body:
    widen = {"half": conversions.f16_to_f32, "bfloat": conversions.bf16_to_f32}[scalar]
    narrow = {"half": conversions.f16_from_f32, "bfloat": conversions.bf16_from_f32}[scalar]

    def body(b: FunctionBuilder, lanes: int, operands: list[str]) -> list[str]:
        wide = [widen(b, LType(scalar, lanes), operand) for operand in operands]
        return [narrow(b, LType("float", lanes), MATH[name](b, LType("float", lanes), *wide))]

    return body


def as_float(patterns: np.ndarray, scalar: str) -> np.ndarray:
    """The values that 16-bit patterns represent, as float32."""
    if scalar == "half":
        return patterns.view(np.float16).astype(np.float32)
    return (patterns.view(np.uint16).astype(np.uint32) << np.uint32(16)).view(np.float32)


@pytest.mark.parametrize("scalar", ["half", "bfloat"])
@pytest.mark.parametrize("name", sorted(MATH))
def test_all_16_bit_patterns(name: str, scalar: str) -> None:
    """Within half a unit and the little that the float before the rounding was off."""
    patterns = np.arange(1 << 16, dtype=np.uint16)
    others = np.array([0, 1, -1, 2, -2, 3, 0.5, -0.25, 7, 10.5, -1e-3, 200, np.inf, -np.inf, np.nan], np.float32)
    bound = 0.5 + ULP_BOUNDS[name, "float"] * 2.0 ** (h.FORMATS[scalar][0] - 23) * 1.01
    arity = 2 if name in h.BINARY else 1
    for target in h.RUNNABLE.values():
        run = h.Compiled(target, narrow_body(name, scalar), [scalar] * arity, [scalar], 8)
        for other in others if arity == 2 else others[:1]:
            second = np.full_like(
                patterns, (np.float16(other).view(np.uint16) if scalar == "half" else other.view(np.uint32) >> 16)
            )
            arguments = (patterns, second)[:arity]
            got = as_float(run(*arguments)[0], scalar)
            want = h.exact(name, *(as_float(a, scalar) for a in arguments))
            errors = h.ulp_errors(got, want, scalar)
            at = int(errors.argmax())
            assert errors[at] <= bound, f"{name} at {as_float(patterns, scalar)[at]}, {other}: {got[at]} for {want[at]}"


# ---- special values, signs of zeros included

INF, NAN = math.inf, math.nan
SPECIAL: dict[str, list[tuple[float, float]]] = {
    "exp": [(0.0, 1), (-0.0, 1), (INF, INF), (-INF, 0), (NAN, NAN), (1e4, INF), (-1e4, 0)],
    "exp2": [(0.0, 1), (3.0, 8), (-3.0, 0.125), (INF, INF), (-INF, 0), (NAN, NAN), (1e5, INF), (-1e5, 0)],
    "expm1": [(0.0, 0.0), (-0.0, -0.0), (INF, INF), (-INF, -1), (NAN, NAN), (1e4, INF), (-1e4, -1)],
    "sigmoid": [(0.0, 0.5), (-0.0, 0.5), (INF, 1), (-INF, 0), (NAN, NAN), (-1e4, 0)],
    "tanh": [(0.0, 0.0), (-0.0, -0.0), (INF, 1), (-INF, -1), (NAN, NAN)],
    "sinh": [(0.0, 0.0), (-0.0, -0.0), (INF, INF), (-INF, -INF), (NAN, NAN), (1e4, INF)],
    "cosh": [(0.0, 1), (-0.0, 1), (INF, INF), (-INF, INF), (NAN, NAN), (-1e4, INF)],
    "erf": [(0.0, 0.0), (-0.0, -0.0), (INF, 1), (-INF, -1), (NAN, NAN), (7.0, 1)],
    "log": [(0.0, -INF), (-0.0, -INF), (1.0, 0.0), (INF, INF), (-1.0, NAN), (-INF, NAN), (NAN, NAN)],
    "log2": [(0.0, -INF), (-0.0, -INF), (1.0, 0.0), (8.0, 3), (INF, INF), (-1.0, NAN), (-INF, NAN), (NAN, NAN)],
    "log1p": [(0.0, 0.0), (-0.0, -0.0), (-1.0, -INF), (INF, INF), (-2.0, NAN), (-INF, NAN), (NAN, NAN)],
    "softplus": [(INF, INF), (-INF, 0.0), (NAN, NAN), (1e4, 1e4), (-1e4, 0.0)],
    "asinh": [(0.0, 0.0), (-0.0, -0.0), (INF, INF), (-INF, -INF), (NAN, NAN)],
    "acosh": [(1.0, 0.0), (INF, INF), (0.5, NAN), (-1.0, NAN), (-INF, NAN), (NAN, NAN)],
    "atanh": [(0.0, 0.0), (-0.0, -0.0), (1.0, INF), (-1.0, -INF), (2.0, NAN), (INF, NAN), (NAN, NAN)],
    "sin": [(0.0, 0.0), (-0.0, -0.0), (INF, NAN), (-INF, NAN), (NAN, NAN)],
    "cos": [(0.0, 1), (-0.0, 1), (INF, NAN), (-INF, NAN), (NAN, NAN)],
    "tan": [(0.0, 0.0), (-0.0, -0.0), (INF, NAN), (-INF, NAN), (NAN, NAN)],
    "asin": [(0.0, 0.0), (-0.0, -0.0), (2.0, NAN), (-2.0, NAN), (INF, NAN), (NAN, NAN)],
    "acos": [(1.0, 0.0), (2.0, NAN), (-2.0, NAN), (INF, NAN), (NAN, NAN)],
    "atan": [(0.0, 0.0), (-0.0, -0.0), (NAN, NAN)],
    "sqrt": [(0.0, 0.0), (-0.0, -0.0), (INF, INF), (-1.0, NAN), (NAN, NAN)],
    "rsqrt": [(0.0, INF), (-0.0, -INF), (INF, 0.0), (-1.0, NAN), (NAN, NAN)],
    "floor": [(-0.0, -0.0), (-0.5, -1), (0.5, 0.0), (INF, INF), (NAN, NAN)],
    "ceil": [(-0.0, -0.0), (-0.5, -0.0), (0.5, 1), (-INF, -INF), (NAN, NAN)],
    "trunc": [(-0.0, -0.0), (-0.5, -0.0), (1.5, 1), (INF, INF), (NAN, NAN)],
    "round_half_even": [(-0.0, -0.0), (0.5, 0.0), (-0.5, -0.0), (1.5, 2), (2.5, 2), (-2.5, -2), (INF, INF), (NAN, NAN)],
}


def assert_same(got: np.ndarray, want: np.ndarray, what: str) -> None:
    """Equal values and signs; NaN equals NaN."""
    same = (np.isnan(got) & np.isnan(want)) | ((got == want) & (np.signbit(got) == np.signbit(want)))
    assert same.all(), f"{what}: {got[~same][:4]} for {want[~same][:4]} at {np.flatnonzero(~same)[:4]}"


def test_every_function_has_special_values() -> None:
    assert set(SPECIAL) == set(UNARY)
    assert set(ULP_BOUNDS) == {(name, scalar) for name in MATH for scalar in SCALARS}


@on_each_target
@on_each_scalar
@pytest.mark.parametrize("name", UNARY)
def test_special_values(name: str, scalar: str, target: Target) -> None:
    dtype = h.NUMPY[scalar]
    x, want = np.array(SPECIAL[name], dtype).T
    for lanes in (0, 4):
        assert_same(compiled(name, scalar, target, lanes)(x)[0], want, name)


@on_each_target
@on_each_scalar
@pytest.mark.parametrize("name", sorted(h.BINARY))
def test_special_values_of_two(name: str, scalar: str, target: Target) -> None:
    """All pairs of awkward values against C's pow and fmod, and Python's %."""
    dtype = h.NUMPY[scalar]
    info = np.finfo(dtype)
    values = [0.0, 0.5, 1, 1.5, 2, 3, 2.0**24 - 1, 2.0**53 - 1, 2.0**60, info.max, info.tiny, info.smallest_subnormal]
    values = np.array([*values, *(-v for v in values), INF, -INF, NAN], dtype)
    x, y = (grid.ravel() for grid in np.meshgrid(values, values))
    with np.errstate(all="ignore"):
        want = h.exact(name, x, y).astype(dtype)
    for lanes in (0, 4):
        got = compiled(name, scalar, target, lanes)(x, y)[0]
        ordinary = h.ulp_errors(got, want.astype(WIDE[scalar]), scalar) <= ULP_BOUNDS[name, scalar] + 0.5
        got = np.where(ordinary & (np.signbit(got) == np.signbit(want)), want, got)
        assert_same(got, want, name)


@on_each_target
@on_each_scalar
def test_fmod_is_exact(scalar: str, target: Target) -> None:
    """The quotient may be as large as the format allows."""
    x, y = pairs("fmod", scalar, 50_000)
    with np.errstate(all="ignore"):
        assert_same(compiled("fmod", scalar, target)(x, y)[0], np.fmod(x, y), "fmod")


@on_each_target
@on_each_scalar
def test_sine_and_cosine_next_to_multiples_of_half_pi(scalar: str, target: Target) -> None:
    """Those that come nearest (found by continued fractions), where a reduction too short has no digit right."""
    cases = {
        "float": [16367173.0 * 2.0**72, 10741887.0 * 2.0**11, 16367173.0 * 2.0**73, 16573937.0 * 2.0**-16],
        "double": [6381956970095103.0 * 2.0**797, 6411027962775774.0 * 2.0**-47, 7763785107565477.0 * 2.0**-29],
    }
    x = np.array(cases[scalar], h.NUMPY[scalar])
    with mpmath.workprec(1500):
        for name in ("sin", "cos", "tan"):
            got = compiled(name, scalar, target)(x)[0]
            for value, result in zip(x, got, strict=True):
                true = getattr(mpmath, name)(mpmath.mpf(float(value)))
                relative = abs((mpmath.mpf(float(result)) - true) / true)
                assert relative < 3 * mpmath.mpf(float(np.finfo(x.dtype).eps)), f"{name}({value!r}) = {result!r}"


# ---- the code


@on_each_target
@on_each_scalar
@pytest.mark.parametrize("name", sorted(MATH))
def test_lanes_do_not_change_bits(name: str, scalar: str, target: Target) -> None:
    """A scalar remainder and vectors of any width give the same results."""
    count = 3 * 16 * 40
    arguments = pairs(name, scalar, count) if name in h.BINARY else (samples(name, scalar, count)[:count],)
    widths = (0, 1, 3, 2 * LANES[scalar])
    first, *others = (compiled(name, scalar, target, lanes)(*arguments)[0] for lanes in widths)
    for other in others:
        assert (
            np.isnan(first) & np.isnan(other) | (first.view(UNSIGNED[scalar]) == other.view(UNSIGNED[scalar]))
        ).all()


@pytest.mark.parametrize("target", [h.HOST, h.BASELINE, h.AVX512, h.AARCH64], ids=["host", "v2", "v4", "aarch64"])
@pytest.mark.parametrize("name", sorted(MATH))
def test_nothing_is_called(name: str, target: Target) -> None:
    for scalar in SCALARS:
        arity = 2 if name in h.BINARY else 1
        for lanes in (0, target.lanes(32 if scalar == "float" else 64)):
            text = h.build(target, emitter(name, scalar), [scalar] * arity, [scalar], lanes)
            assert h.calls_in(h.assembly(target, text)) == []


def test_wide_registers_are_used() -> None:
    """On AVX-512 sixteen floats stay in one register; no machine is needed to see it."""
    listing = h.assembly(h.AVX512, h.build(h.AVX512, emitter("exp", "float"), ["float"], ["float"], 16))
    assert "zmm" in listing and "ymm" not in listing


def test_calls_are_found() -> None:
    """The check above sees a call of libm."""

    def body(b: FunctionBuilder, lanes: int, operands: list[str]) -> list[str]:
        return [b.intrinsic("llvm.sin", LType("float", lanes), [(LType("float", lanes), operands[0])])]

    assert h.calls_in(h.assembly(h.HOST, h.build(h.HOST, body, ["float"], ["float"], 4)))
