"""Products of sines and cosines from tangents, which NumPy computes for many numbers at once where it can."""

from __future__ import annotations

import numpy as np

from slayr_py.space import FloatArray


def sine_products(angles: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return sin(a)^2 and sin(a) cos(a) of angles.

    With t = tan(a) they are t^2 / (1 + t^2) and t / (1 + t^2), accurate for every angle, small ones too. One tangent
    takes the place of a sine and a cosine, and NumPy has vector instructions for tangents in double precision, but not
    for sines.
    """
    tangent = np.tan(angles)
    product = tangent / (1 + np.square(tangent))
    return tangent * product, product
