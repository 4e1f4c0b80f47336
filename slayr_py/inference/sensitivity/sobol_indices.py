"""Importance of parameters with posterior intervals."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd

from slayr_py.arguments import check_integer
from slayr_py.errors import level_outside
from slayr_py.inference.functions import draw_functions
from slayr_py.inference.posterior import Posterior
from slayr_py.inference.sensitivity.inputs import uniform
from slayr_py.inference.sensitivity.pick_freeze import pick_freeze
from slayr_py.inference.sensitivity.product import product_indices
from slayr_py.space import FloatArray
from slayr_py.threads import one_thread

_ANCHORS = (256, 512)  # the second number if functions from the first lack too much variance
_TESTS = 64  # configurations at which the lost variance is measured
_REPEATS = 4  # independent Sobol sequences, whose spread is the Monte Carlo error
_MOST_LOST = 0.05  # variance that the functions may lack between their anchors without a note, as a share of their own
_LARGEST_ERROR = 0.03  # Monte Carlo error of a mean without a note and a warning
_INTERVAL = (0.05, 0.95)  # quantiles: a 90% interval


def importance(posterior: Posterior, draws: int = 48, points: int = 256, seed: int = 1) -> pd.DataFrame:
    """Return Sobol indices of the latent function of a posterior, with their posterior means and 90% intervals.

    The first-order index of a parameter is the share of the function's variance that a main effect of this parameter
    explains; its total index adds all interactions with other parameters (Sobol 1993; Homma & Saltelli 1996). Each of
    ``draws`` functions drawn from the posterior has its own indices, so the intervals include what the observations
    leave uncertain (Le Gratiet, Cannamela & Iooss 2014, SIAM/ASA J. Uncertainty Quantification 2).

    Parameters
    ----------
    posterior : Posterior
    draws : int
        Number of functions, each with a posterior draw of the hyperparameters.
    points : int
        Size of the Monte Carlo designs, a power of 2. It is not used if the kernel is a sum of products over the
        parameters and the model has no warp: the integrals are then computed by quadrature, unless the functions vary
        too fast for it, with more than about 120 cycles over a range.
    seed : int
        Fixes the result.

    Returns
    -------
    pandas.DataFrame
        One row per parameter, in descending order of the total index. Columns: first, first_low, first_high, total,
        total_low, total_high, with 0 <= first <= total <= 1. They are NaN, with a warning, if all functions are
        constant. ``attrs["notes"]`` is a list of sentences on limits of the result. ``attrs`` also has the ``method``
        ("quadrature" or "monte carlo") and the Monte Carlo ``error`` of the means, of which a warning says if it is
        above 0.03.

    Raises
    ------
    DataError
        If an argument is illegal.
    InferenceError
        If a joint covariance is not positive definite up to rounding errors.

    Notes
    -----
    Parameters vary independently over the whole space: uniformly on the scale of the model, logarithmic or
    linear, with all levels equally likely. In a conditional space the value of an inactive parameter has no effect. Its
    indices therefore depend on how often it is active, and the index of a parent includes the effect of activating its
    children. Forbidden configurations count like others. Under a warp the indices describe the function in the user's
    units. Functions drawn far from the observations may then be orders of magnitude larger than these, and the indices
    are those of such values; a note says so. A fit with ``warp="none"`` gives better ones.
    """
    draws = check_integer("draws", draws)
    points = check_integer("points", points, minimum=2)
    rng = np.random.default_rng(check_integer("seed", seed, minimum=0))
    encoder = posterior.encoder
    with one_thread():
        tests = uniform(encoder, _TESTS, rng)
        for n_anchors in _ANCHORS:
            functions = draw_functions(posterior, uniform(encoder, n_anchors, rng), draws, rng, tests=tests)
            if functions.lost <= _MOST_LOST:
                break
        indices = product_indices(functions.expansions, encoder)
        method = "monte carlo" if indices is None else "quadrature"
        if indices is None:
            indices = pick_freeze(functions, encoder, 2 ** int(np.ceil(np.log2(points))), _REPEATS, rng)
    varies = np.isfinite(indices.total).all(axis=1)
    lost = functions.lost if varies.any() else 0.0
    if not varies.any():
        warnings.warn(
            f"all {len(functions)} functions drawn from the posterior are constant, so that no parameter has an index "
            "and the table has NaN: the kernel has no parameter, or the observations are equal up to rounding",
            UserWarning,
            stacklevel=level_outside(),
        )
    if indices.error > _LARGEST_ERROR:
        warnings.warn(
            f"{_error_text(indices.error)}, now {points}: few values dominate the variance of some functions, or these "
            "vary fast",
            UserWarning,
            stacklevel=level_outside(),
        )
    columns: dict[str, FloatArray] = {}
    pairs = zip(("first", "total"), indices.means, (indices.first[varies], indices.total[varies]), strict=True)
    for name, means, values in pairs:
        if len(values):
            low, high = np.quantile(values, _INTERVAL, axis=0)
            columns |= {name: means, f"{name}_low": low, f"{name}_high": high}
        else:
            columns |= dict.fromkeys((name, f"{name}_low", f"{name}_high"), np.full(len(encoder.names), np.nan))
    table = pd.DataFrame(columns, index=pd.Index(encoder.names, name="parameter"))
    table.attrs = {
        "method": method,
        "error": indices.error,
        "notes": _notes(posterior, len(functions), int((~varies).sum()), lost, indices.error),
    }
    return table.sort_values("total", ascending=False, kind="stable")


def _notes(posterior: Posterior, n_functions: int, constant: int, lost: float, error: float) -> list[str]:
    notes = []
    if not posterior.check().ok:
        notes.append("the fit did not pass its diagnostics, so the intervals may be wrong")
    if any(part.model.warp != "none" for part in posterior.parts):
        notes.append(
            "the model has a warp: far from the observations its functions may be orders of magnitude larger than "
            "these, and the indices those of such values; use a fit with warp='none'"
        )
    if n_functions < 20:
        notes.append(f"only {n_functions} posterior draws: the intervals are too narrow")
    if constant:
        notes.append(f"{constant} of {n_functions} functions are constant and have no indices; they are left out")
    if lost > _MOST_LOST:
        notes.append(
            f"the function varies between the {_ANCHORS[-1]} points at which it was drawn: {lost:.0%} of its variance, "
            "most of it in interactions, is missing from the indices"
        )
    if error > _LARGEST_ERROR:
        notes.append(_error_text(error))
    encoder = posterior.encoder
    if encoder.is_conditional:
        names = ", ".join(encoder.conditional)
        notes.append(
            f"inactive values of {names} have no effect, so their indices also depend on how often they are active"
        )
    if encoder.space.forbidden_clauses:
        notes.append("forbidden configurations count like others")
    return notes


def _error_text(error: float) -> str:
    return f"Monte Carlo error of the mean indices: {error:.2g}; use more points"
