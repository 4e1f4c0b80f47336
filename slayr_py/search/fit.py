"""Fit one expression and score it.

Scores, larger is better; P is the number of hyperparameters and n the number of observations:

* ``laplace``: Laplace's approximation of the log evidence, at the mode of standard normal coordinates;
* ``bic``: 2 log p(y | theta) - P log n, the negative of Schwarz's criterion (Duvenaud et al. 2013);
* ``loo``: sum of log p(y_i | y_-i, theta) in closed form (Rasmussen & Williams 2006, section 5.4.2);
* ``rmse``: negative root mean squared error of a fit to some observations, on the held-out others;
* ``elbo``: the variational bound of a sparse fit, which also replaces the likelihood in its ``laplace`` and ``bic``.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Literal, get_args

import numpy as np

from slayr_py.errors import SlayrError
from slayr_py.inference import (
    ExactMarginal,
    Marginal,
    Model,
    SparseMarginal,
    find_mode,
    hessian,
    inducing_points,
    laplace_evidence,
)
from slayr_py.kernels import MOST_LEAVES, Composite, Kernel, Prior
from slayr_py.kernels.expressions import Node, parse
from slayr_py.search.inheritance import Parent, starts
from slayr_py.search.task import Candidate, ScoredExpression
from slayr_py.space import Encoded, Encoder, FloatArray
from slayr_py.threads import ignoring_underflow, one_thread

Score = Literal["laplace", "bic", "loo", "rmse", "elbo"]
SCORES: tuple[Score, ...] = get_args(Score)


@dataclass(frozen=True)
class SearchSettings:
    """Data and settings that all fits of a search share.

    Attributes
    ----------
    encoder : Encoder
    train, y
        The n observations; targets are standardised.
    restarts : int
        Starts of every fit.
    inducing : int, optional
        Number of inducing points of sparse fits; None for exact ones.
    seed : int
    validation : Encoded, optional
        Configurations that the score "rmse" holds out.
    validation_y : FloatArray
        Their targets on the scale of `y`.
    peaks : mapping of int to FloatArray
        Periods of each column at the peaks of its periodogram, the highest first.
    given : mapping of str to Kernel
        Given leaves by name.
    priors : mapping of str to Prior
        Priors of ``mu``, ``sigma_f`` and ``sigma_n`` that replace the defaults.
    """

    encoder: Encoder
    train: Encoded
    y: FloatArray
    restarts: int
    inducing: int | None
    seed: int
    validation: Encoded | None = None
    validation_y: FloatArray = field(default_factory=lambda: np.zeros(0))
    peaks: Mapping[int, FloatArray] = field(default_factory=dict)
    given: Mapping[str, Kernel] = field(default_factory=dict)
    priors: Mapping[str, Prior] = field(default_factory=dict)


@dataclass(frozen=True)
class Fit:
    """A fitted expression, or the reason why its fit failed. All values are numbers and text.

    Attributes
    ----------
    expression : str
        Canonical text.
    scores : dict of str to float
        All scores by name; NaN for a score that these settings do not give.
    start : dict
        Hyperparameters at the mode as standard normal coordinates, by name and label. Fits of related expressions
        inherit them.
    theta : dict
        Hyperparameters at the mode by name.
    evaluations : int
        Evaluations of the density.
    seconds : float
        Time of the fit.
    failure : str
        Empty if the fit succeeded.
    """

    expression: str
    scores: dict[str, float]
    start: dict[str, dict[str, float]] = field(default_factory=dict)
    theta: dict[str, list[float]] = field(default_factory=dict)
    evaluations: int = 0
    seconds: float = 0.0
    failure: str = ""

    def score(self, name: Score) -> float:
        """Return a score by its name, -inf if it is not finite."""
        value = self.scores[name]
        return value if np.isfinite(value) else -np.inf

    def evaluation(self, node: Node, score: Score) -> ScoredExpression:
        """Return the score and the hyperparameters that a strategy receives."""
        theta = {name: np.asarray(values) for name, values in self.theta.items()}
        return ScoredExpression(node, self.expression, self.score(score), theta)

    def asdict(self) -> dict[str, Any]:
        """Return a JSON-able description; ``Fit(**values)`` inverts it."""
        return asdict(self)


@ignoring_underflow
def fit(settings: SearchSettings, candidate: Candidate, parent: Fit | None) -> Fit:
    """Fit an expression from the fit of its parent; the result has the reason of a failure."""
    clock = time.perf_counter()
    try:
        # One thread: results do not depend on the number of processes, and processes do not compete.
        with one_thread():
            result = _fit(settings, candidate, parent)
    except (SlayrError, np.linalg.LinAlgError, FloatingPointError) as error:
        result = Fit(candidate.expression, dict.fromkeys(SCORES, -np.inf), failure=str(error))
    return replace(result, seconds=time.perf_counter() - clock)


def _fit(settings: SearchSettings, candidate: Candidate, parent: Fit | None) -> Fit:
    model = Model(settings.encoder, Composite.from_node(candidate.node, settings.given, MOST_LEAVES), settings.priors)
    model = model.informed(settings.train, settings.y)
    marginal: Marginal
    if settings.inducing is None:
        marginal = ExactMarginal(model, settings.train, settings.y)
    else:
        points = inducing_points(settings.train, settings.inducing, settings.seed)
        marginal = SparseMarginal(model, settings.train, settings.y, points)
    inherited = None
    if parent is not None and not parent.failure:
        inherited = Parent(parse(parent.expression, settings.given), parent.start, parent.theta)
    begin = starts(model, marginal.coordinates, settings.restarts, settings.seed, settings.peaks, inherited)
    mode = find_mode(marginal, begin)
    likelihood = mode.density.likelihood
    scores: dict[str, float] = {
        "laplace": laplace_evidence(mode.density, hessian(marginal, mode.z, mode.density.gradient)),
        "bic": 2 * likelihood - marginal.coordinates.size * float(np.log(marginal.n)),
        "loo": marginal.leave_one_out(mode.z),
        "rmse": np.nan,
        "elbo": likelihood if settings.inducing is not None else np.nan,
    }
    if settings.validation is not None:
        mean = marginal.mean(mode.z, settings.validation)
        scores["rmse"] = -float(np.sqrt(np.mean(np.square(mean - settings.validation_y))))
    theta = {name: np.ravel(values).tolist() for name, values in marginal.coordinates.theta(mode.z[None]).items()}
    start: dict[str, dict[str, float]] = defaultdict(dict)
    for (name, label), value in zip(marginal.coordinates.entries, mode.z.tolist(), strict=True):
        start[name][label] = value
    return Fit(candidate.expression, scores, dict(start), theta, mode.evaluations)
