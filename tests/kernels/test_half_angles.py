"""Products of sines and cosines."""

from __future__ import annotations

import mpmath
import numpy as np

from slayr_py.kernels.half_angles import sine_products


def test_products_are_accurate_for_small_and_large_angles_and_near_the_poles():
    near = np.pi / 2 + np.array([-1e-3, -1e-9, 0.0, 1e-9])
    angles = np.concatenate([[0.0, 1e-200, 1e-9, -1e-3, 0.7, np.pi], near, -near, np.linspace(-40, 40, 501)])
    square, product = sine_products(angles)
    sines = [mpmath.sin(mpmath.mpf(a)) for a in angles]
    cosines = [mpmath.cos(mpmath.mpf(a)) for a in angles]
    np.testing.assert_allclose(square, [float(s * s) for s in sines], rtol=1e-14, atol=1e-200)
    np.testing.assert_allclose(product, [float(s * c) for s, c in zip(sines, cosines, strict=True)], rtol=1e-14)
    assert square[0] == product[0] == 0.0
