from __future__ import annotations

import mpmath
import numpy as np

from slayr_py.inference.normal import hazard, log_h, log_h_over_phi, log_interval, log_mills


def test_log_h_agrees_with_fifty_digits():
    z = np.concatenate([-np.geomspace(1e8, 1e-3, 60), [0.0], np.geomspace(1e-3, 30, 20)])

    def exact(x):
        # 1 + z Phi(z)/phi(z) loses 2 log10 |z| digits: use more.
        with mpmath.workdps(80):
            x = mpmath.mpf(float(x))
            if x < -1e4:
                u = 1 / x**2
                return float(-(x**2) / 2 - mpmath.log(2 * mpmath.pi) / 2 + mpmath.log(u * (1 - 3 * u + 15 * u**2)))
            density = mpmath.exp(-(x**2) / 2) / mpmath.sqrt(2 * mpmath.pi)
            return float(mpmath.log(density + x * mpmath.erfc(-x / mpmath.sqrt(2)) / 2))

    np.testing.assert_allclose(log_h(z), [exact(x) for x in z], rtol=1e-11)


def test_ratios_to_the_density_agree_with_fifty_digits():
    def exact(x):
        with mpmath.workdps(80):
            x = mpmath.mpf(float(x))
            if x < -1e3:
                u = 1 / x**2
                return -mpmath.log(-x) + mpmath.log(1 - u + 3 * u**2), mpmath.log(u * (1 - 3 * u + 15 * u**2))
            mills = mpmath.ncdf(x) / mpmath.npdf(x)
            return mpmath.log(mills), mpmath.log(1 + x * mills)

    z = np.concatenate([-np.geomspace(1e12, 1e-3, 60), [0.0], np.geomspace(1e-3, 30, 20)])
    wanted = np.array([[float(value) for value in exact(x)] for x in z]).T
    # Near 1 the relative error of a logarithm grows; its absolute error is that of the argument.
    np.testing.assert_allclose(log_mills(z), wanted[0], rtol=1e-11, atol=1e-12)
    np.testing.assert_allclose(np.log(hazard(z)), -wanted[0], rtol=1e-11, atol=1e-12)
    np.testing.assert_allclose(log_h_over_phi(z), wanted[1], rtol=1e-11, atol=1e-12)


def test_probabilities_of_intervals_agree_with_fifty_digits():
    def exact(low, high):
        with mpmath.workdps(60):
            low, high = (mpmath.mpf(float(limit)) for limit in ((-high, -low) if low > 0 else (low, high)))
            return float(mpmath.log(mpmath.erfc(-high / mpmath.sqrt(2)) / 2 - mpmath.erfc(-low / mpmath.sqrt(2)) / 2))

    start, width = np.meshgrid([-300.0, -40.0, -3.0, -0.3, -1e-4, 0.0, 0.2, 5.0, 60.0], np.geomspace(1e-12, 100, 40))
    low = start.ravel()
    high = low + width.ravel()
    wanted = [exact(a, b) for a, b in zip(low, high, strict=True)]
    np.testing.assert_allclose(log_interval(low, high), wanted, rtol=1e-11)
