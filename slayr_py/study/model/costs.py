"""The model of the cost of an evaluation: a Gaussian process of its logarithm."""

from __future__ import annotations

from dataclasses import dataclass

from slayr_py.inference import FitOptions, GaussianProcess
from slayr_py.kernels import Kernel
from slayr_py.space import Encoder
from slayr_py.study.model.output_fits import OutputFit, OutputFits
from slayr_py.study.model.session import Session
from slayr_py.study.storage.costs import log_costs, without_cost
from slayr_py.study.storage.trials import trials_text

LEAST_COSTS = 3
"""Number of trials with a cost from which on costs are modelled."""


@dataclass(frozen=True)
class CostModel:
    """Fit the logarithm of the cost of an evaluation.

    The hyperparameters are a posterior mode: a cost only divides the improvement, and does not need their uncertainty.

    Attributes
    ----------
    encoder : Encoder
    kernel : Kernel
    name : str
        Of the cost.
    session : Session
    """

    encoder: Encoder
    kernel: Kernel
    name: str
    session: Session

    def fit(self, fits: OutputFits, options: FitOptions) -> OutputFit | None:
        """Fit the costs; None if too few trials have one. Warn once of complete trials that lack one.

        Raises
        ------
        InferenceError
            If Stan fails.
        """
        if lacking := without_cost(fits.study, self.name):
            verb = "has" if len(lacking) == 1 else "have"
            self.session.warn(
                f"{trials_text(lacking)} {verb} no user attribute {self.name!r} with a finite positive number: "
                "left out of the model of the cost, and of the sum for max_cost",
                f"cost {self.name}",
            )
        results = log_costs(fits.study, self.encoder.space, self.name)
        if len(results.numbers) < LEAST_COSTS:
            return None
        gp = GaussianProcess(self.encoder, self.kernel)
        return fits.fit(fit_name(self.name), gp, results, options.updated(method="map"))


def fit_name(name: str) -> str:
    """Return the name of the fit of a cost in the attributes of trials."""
    return f"cost {name}"
