"""BoTorch with several objectives: its model and acquisition, with the defaults of its package."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np
from ConfigSpace import ConfigurationSpace

from slayr_py.space import Encoder
from slayr_py.study.storage.distributions import to_params


class BoTorchTradeoff:
    """A GP for each objective and constraint, and qLogNEHVI, on the unit cube.

    Integers and categories are relaxed to [0, 1] and rounded. The reference point is that of BoTorch's
    `infer_reference_point` for the feasible front, or a given one.
    """

    def __init__(self, space: ConfigurationSpace, seed: int, reference: tuple[float, ...] | None) -> None:
        self.encoder = Encoder(space)
        self.seed = seed
        self.reference = reference
        self.scale = np.array([max(len(d.levels) - 1, 1) if d.levels else 1 for d in self.encoder.dimensions])
        self.rows: list[np.ndarray] = []
        self.values: list[tuple[float, ...]] = []
        self.excess: list[tuple[float, ...]] = []

    def tell(self, params: Mapping[str, Any], values: tuple[float, ...], constraints: Mapping[str, float]) -> None:
        """Report the values and the constraints of an evaluation."""
        self.rows.append(self.encoder.encode([params]).unit_values[0] / self.scale)
        self.values.append(values)
        self.excess.append(tuple(constraints.values()))

    def ask(self) -> dict[str, Any]:
        """Return the parameters to evaluate next."""
        import torch
        from botorch.acquisition.multi_objective.logei import qLogNoisyExpectedHypervolumeImprovement
        from botorch.acquisition.multi_objective.objective import IdentityMCMultiOutputObjective
        from botorch.fit import fit_gpytorch_mll
        from botorch.models import ModelListGP, SingleTaskGP
        from botorch.optim import optimize_acqf
        from gpytorch.mlls import SumMarginalLogLikelihood

        torch.manual_seed(int(np.random.SeedSequence([self.seed, len(self.values)]).generate_state(1)[0]))
        X = torch.tensor(np.array(self.rows), dtype=torch.double)
        Y = torch.tensor(np.column_stack([-np.array(self.values), np.array(self.excess)]), dtype=torch.double)
        model = ModelListGP(*(SingleTaskGP(X, Y[:, [j]]) for j in range(Y.shape[1])))
        fit_gpytorch_mll(SumMarginalLogLikelihood(model.likelihood, model))
        p = len(self.values[0])
        constraints = [partial(_column, column=j) for j in range(p, Y.shape[1])]
        acquisition = qLogNoisyExpectedHypervolumeImprovement(
            model,
            self._reference(Y[:, :p], Y[:, p:]),
            X,
            objective=IdentityMCMultiOutputObjective(outcomes=list(range(p)), num_outcomes=Y.shape[1]),
            constraints=constraints or None,
            prune_baseline=True,
        )
        bounds = torch.tensor([[0.0] * X.shape[1], [1.0] * X.shape[1]], dtype=torch.double)
        found, _ = optimize_acqf(acquisition, bounds, q=1, num_restarts=10, raw_samples=512)
        encoded, _ = self.encoder.resolve((found.detach().numpy()[0] * self.scale)[None, :])
        return to_params(self.encoder.decode(encoded)[0])

    def _reference(self, gains: Any, excess: Any) -> list[float]:
        from botorch.utils.multi_objective.hypervolume import infer_reference_point
        from botorch.utils.multi_objective.pareto import is_non_dominated

        if self.reference is not None:
            return [-value for value in self.reference]
        feasible = (excess <= 0).all(dim=1)
        known = gains[feasible] if feasible.any() else gains
        return infer_reference_point(known[is_non_dominated(known)]).tolist()


def _column(samples: Any, column: int) -> Any:
    """Return the samples of a constraint, which holds where they are not positive."""
    return samples[..., column]
