"""Models of feasibility: of failures, and of the constraints that trials report."""

from __future__ import annotations

from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass
from typing import Literal

import numpy as np
from ConfigSpace import ConfigurationSpace
from optuna import Study

from slayr_py.inference import FitOptions, GaussianProcess, Priors
from slayr_py.kernels import Kernel
from slayr_py.space import Encoder, FloatArray
from slayr_py.study.model.output_fits import OutputFit, OutputFits
from slayr_py.study.storage.trials import Results, constraint_results, outcomes

Failures = Literal["learn", "ignore"]
"""Treatment of failed trials: model where the objective fails, or only avoid their configurations."""

SUCCESS = "success"
"""Name of the model of failures; it predicts the probability of success."""

_CONSTRAINT = "constraint "

_SCALED_BY = 10  # trials that scale the values of a constraint: about an initial design


@dataclass(frozen=True)
class FeasibilityModels:
    """Fit the models of feasibility of a study.

    Attributes
    ----------
    encoder : Encoder
    kernel : Kernel
        Kernel of all models.
    priors : mapping
        Priors of the models of constraints, whose values are observed with the noise of the objective.
    failures : {"learn", "ignore"}
    """

    encoder: Encoder
    kernel: Kernel
    priors: Priors
    failures: Failures

    def fit_all(self, fits: OutputFits, options: FitOptions, penalties: Sequence[int]) -> list[OutputFit]:
        """Fit the models of feasibility; complete trials with the numbers ``penalties`` count as failures.

        Failures are modelled once the study has a success and a failure.

        Raises
        ------
        InferenceError
            If Stan fails.
        """
        return [fits.fit(name, gp, results, options) for name, gp, results in self._models(fits.study, penalties)]

    def _models(self, study: Study, penalties: Sequence[int]) -> Iterator[tuple[str, GaussianProcess, Results]]:
        if self.failures == "learn":
            results = outcomes(study, self.encoder.space, penalties)
            if 0 < results.values.sum() < len(results.values):
                yield SUCCESS, GaussianProcess(self.encoder, self.kernel, likelihood="probit"), results
        for name, results in constraint_results(study, self.encoder.space).items():
            compressed = results._replace(values=compress(results.values))
            yield f"{_CONSTRAINT}{name}", GaussianProcess(self.encoder, self.kernel, self.priors), compressed


def feasibility_results(
    study: Study, space: ConfigurationSpace, name: str, penalties: Sequence[int], numbers: Set[int]
) -> Results:
    """Return what a model of feasibility was fitted to, restricted to the trials with these numbers.

    ``penalties`` are the numbers of complete trials that counted as failures.

    Raises
    ------
    KeyError
        If the study has no constraint of that name.
    """
    if name != SUCCESS:
        results = constraint_results(study, space, numbers)[name[len(_CONSTRAINT) :]]
        return results._replace(values=compress(results.values))
    results = outcomes(study, space, penalties)
    rows = [row for row, number in enumerate(results.numbers) if number in numbers]
    return Results([results.numbers[row] for row in rows], [results.configs[row] for row in rows], results.values[rows])


def compress(values: FloatArray) -> FloatArray:
    """Compress the tails of constraint values (n,), in the order of the trials: asinh(c / s), s from the first trials.

    One violation that is a thousand times larger than the others would otherwise decide the scale, and small violations
    would be invisible. Unlike the sign(c) log(1 + |c| / s) of Eriksson & Poloczek (2021, "Scalable constrained Bayesian
    optimization") the function is smooth at 0, where the model decides.

    s is the median of the first `_SCALED_BY` |c| that are not 0. The median over all trials shrinks when the loop
    converges to a border, until the compressed values are a step there.

    A value of 0 is feasible, but the model gives it a probability of 1/2. Among values of both signs it counts as half
    of the smallest |c| inside the border. If no value is negative, 0 may be anywhere inside, and stays the border:
    with a step there the model would expect the border among the violations. If all values are 0, there is neither a
    violation nor a border, and the constraint counts like any other negative constant.
    """
    sizes = np.abs(values[values != 0])
    if not len(sizes):
        return np.full(len(values), np.arcsinh(-1.0))
    scale = float(np.median(sizes[:_SCALED_BY]))
    margin = 0.5 * sizes.min() if (values < 0).any() else 0.0
    return np.arcsinh(np.where(values == 0, -margin, values) / scale)
