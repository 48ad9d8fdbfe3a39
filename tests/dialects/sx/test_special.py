"""erf and erfc in float64 against mpmath."""

import mpmath
import numpy as np
from exact import worst_ulp

from sardonyx.dialects.sx.special import erf, erfc

EDGES = [0.46875, np.nextafter(0.46875, 1), 4.0, np.nextafter(4.0, 5), 1e-300, 5e-324, 5.9, 6.5]


def samples(limit):
    rng = np.random.default_rng(1)
    return np.concatenate([rng.uniform(-limit, limit, 1500), EDGES, -np.array(EDGES), rng.normal(0, 1e-3, 50)])


def test_erf_is_right_to_3_ulp():
    x = samples(6.5)
    assert worst_ulp(mpmath.erf, x, erf(x)) < 3


def test_erfc_is_right_to_5_ulp_in_the_tail_too():
    x = np.concatenate([samples(6.5), np.linspace(6.5, 26, 300)])
    assert worst_ulp(mpmath.erfc, x, erfc(x)) < 5


def test_special_values():
    x = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 40.0, -40.0])
    np.testing.assert_array_equal(erf(x), [np.nan, 1, -1, 0, -0.0, 1, -1])
    assert np.signbit(erf(x))[4]
    np.testing.assert_array_equal(erfc(x), [np.nan, 0, 2, 1, 1, 0, 2])


def test_shapes_are_kept():
    assert erf(np.array(0.5)).shape == ()
    assert erfc(np.zeros((2, 0, 3))).shape == (2, 0, 3)
    view = np.linspace(-3, 3, 24).reshape(4, 6).T[::2]
    np.testing.assert_array_equal(erf(view), erf(view.copy()))
