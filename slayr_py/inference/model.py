"""The model: a space, a kernel and priors, and what they make of data for the Stan program."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ConfigSpace import ConfigurationSpace

from slayr_py.errors import DataError
from slayr_py.kernels import Kernel, Prior, from_name
from slayr_py.kernels.priors import prior_from_dict
from slayr_py.space import Encoded, Encoder, space_from_json, space_to_json
from slayr_py.space.dimension import FloatArray


class Model:
    """What is fitted: see :class:`~slayr_py.inference.GaussianProcess`, which adds the fitting."""

    def __init__(
        self,
        space: ConfigurationSpace | Encoder,
        kernel: Kernel | str = "auto",
        priors: Mapping[str, Prior] | None = None,
    ) -> None:
        self.encoder = space if isinstance(space, Encoder) else Encoder(space)
        self.kernel = from_name(kernel, self.encoder)
        defaults = self.kernel.default_priors(self.encoder)
        for name, prior in (priors or {}).items():
            if name not in defaults:
                raise DataError(f"no hyperparameter {name!r} to put a prior on; known: {', '.join(defaults)}")
            if not isinstance(prior, Prior) or prior.support != defaults[name].support:
                raise DataError(
                    f"the prior of {name!r} must be {type(defaults[name]).__name__} "
                    f"(support: {defaults[name].support}), got {prior!r}"
                )
        self.priors: dict[str, Prior] = {**defaults, **(priors or {})}
        self._prior_data = self._spread_priors()

    def asdict(self) -> dict[str, Any]:
        """JSON-able description, read back by :meth:`fromdict`."""
        return {
            "kernel": {"name": self.kernel.name, "options": self.kernel.options()},
            "priors": {name: prior.asdict() for name, prior in self.priors.items()},
            "space": space_to_json(self.encoder.space),
        }

    @classmethod
    def fromdict(cls, values: Mapping[str, Any]) -> Model:
        """Read what :meth:`asdict` wrote."""
        priors = {name: prior_from_dict(prior) for name, prior in values["priors"].items()}
        return cls(
            space_from_json(values["space"]), from_name(values["kernel"]["name"], **values["kernel"]["options"]), priors
        )

    def stan_data(self, train: Encoded, y: FloatArray, new: Encoded, prior_only: bool = False) -> dict[str, Any]:
        """Data of the Stan program: observations on the standardised scale, new configurations, priors."""
        return {
            **self.kernel.stan_data(train, new),
            "y": y,
            "want_cov": 0,
            "prior_only": int(prior_only),
            **self._prior_data,
        }

    def _spread_priors(self) -> dict[str, float | FloatArray]:
        labels = self.kernel.labels(self.encoder)
        entries: dict[str, float | FloatArray] = {}
        for name, prior in self.priors.items():
            entries |= prior.stan_data(name, labels.get(name))
        return entries
