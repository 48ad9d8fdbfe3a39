"""The error function and its complement in float64.

Source: W. J. Cody, Rational Chebyshev approximations for the error function, Math. Comp. 23 (1969), with the
coefficients of netlib's specfun/calerf. The error is at most 3 (erf) and 5 (erfc) units in the last place.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from sardonyx.dialects.evaluate import Array

# |x| <= 0.46875: erf(x) = x * P(x²) / Q(x²); coefficients from the highest power down, Q's leading one is 1.
_NEAR = 0.46875
_NEAR_P = (1.85777706184603153e-1, 3.16112374387056560e0, 1.13864154151050156e2, 3.77485237685302021e2,
           3.20937758913846947e3)  # fmt: skip
_NEAR_Q = (1.0, 2.36012909523441209e1, 2.44024637934444173e2, 1.28261652607737228e3, 2.84423683343917062e3)
# |x| <= 4: erfc(x) = exp(-x²) * P(x) / Q(x).
_MIDDLE = 4.0
_MIDDLE_P = (2.15311535474403846e-8, 5.64188496988670089e-1, 8.88314979438837594e0, 6.61191906371416295e1,
             2.98635138197400131e2, 8.81952221241769090e2, 1.71204761263407058e3, 2.05107837782607147e3,
             1.23033935479799725e3)  # fmt: skip
_MIDDLE_Q = (1.0, 1.57449261107098347e1, 1.17693950891312499e2, 5.37181101862009858e2, 1.62138957456669019e3,
             3.29079923573345963e3, 4.36261909014324716e3, 3.43936767414372164e3, 1.23033935480374942e3)  # fmt: skip
# beyond: erfc(x) = exp(-x²) / x * (1/sqrt(pi) - y * P(y) / Q(y)) with y = 1/x².
_FAR_P = (1.63153871373020978e-2, 3.05326634961232344e-1, 3.60344899949804439e-1, 1.25781726111229246e-1,
          1.60837851487422766e-2, 6.58749161529837803e-4)  # fmt: skip
_FAR_Q = (1.0, 2.56852019228982242e0, 1.87295284992346725e0, 5.27905102951428412e-1, 6.05183413124413191e-2,
          2.33520497626869185e-3)  # fmt: skip
_INVERSE_SQRT_PI = 5.6418958354775628695e-1
_UNDERFLOW = 28.0  # erfc is 0 beyond 26.6


def _ratio(x: Array, above: Sequence[float], below: Sequence[float]) -> Array:
    p, q = np.full_like(x, above[0]), np.full_like(x, below[0])
    for a in above[1:]:
        p = p * x + a
    for b in below[1:]:
        q = q * x + b
    return p / q


def _gauss(x: Array) -> Array:
    """exp(-x²); x² is split in an exact part and a remainder, since exp magnifies its rounding error."""
    coarse = np.trunc(x * 16.0) / 16.0
    return np.exp(-coarse * coarse) * np.exp(-(x - coarse) * (x + coarse))


def _tail(x: Array) -> Array:
    """erfc of elements beyond `_NEAR`."""
    out = np.empty_like(x)
    middle = x <= _MIDDLE
    at = x[middle]
    out[middle] = _gauss(at) * _ratio(at, _MIDDLE_P, _MIDDLE_Q)
    at = np.minimum(x[~middle], _UNDERFLOW)  # infinity too
    inverse = 1.0 / (at * at)
    out[~middle] = _gauss(at) / at * (_INVERSE_SQRT_PI - inverse * _ratio(inverse, _FAR_P, _FAR_Q))
    return out


def _parts(x: Array) -> tuple[Array, Array, Array]:
    """Flat float64 elements, which of them are near zero, and which are not (NaN is neither)."""
    flat = np.ascontiguousarray(x, np.float64).reshape(-1)
    size = np.abs(flat)
    return flat, size <= _NEAR, size > _NEAR


def erf(x: Array) -> Array:
    """The error function, float64, any shape."""
    flat, near, far = _parts(x)
    out = flat.copy()
    at = flat[near]
    out[near] = at * _ratio(at * at, _NEAR_P, _NEAR_Q)
    at = flat[far]
    out[far] = np.copysign(1.0 - _tail(np.abs(at)), at)
    return out.reshape(np.shape(x))


def erfc(x: Array) -> Array:
    """The complement `1 - erf(x)`, exact in the tail too; float64, any shape."""
    flat, near, far = _parts(x)
    out = flat.copy()
    at = flat[near]
    out[near] = 1.0 - at * _ratio(at * at, _NEAR_P, _NEAR_Q)
    at = flat[far]
    tail = _tail(np.abs(at))
    out[far] = np.where(at < 0, 2.0 - tail, tail)
    return out.reshape(np.shape(x))
