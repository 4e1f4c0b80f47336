"""The model: a space, a kernel and priors, and what they make of data for the Stan program."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any, Self

import numpy as np
from ConfigSpace import ConfigurationSpace

from slayr_py.errors import DataError
from slayr_py.kernels import Kernel, Prior, from_name
from slayr_py.kernels.priors import prior_from_dict
from slayr_py.space import Encoded, Encoder, encoder_from_json, encoder_to_json
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
            "space": encoder_to_json(self.encoder),
        }

    @classmethod
    def fromdict(cls, values: Mapping[str, Any]) -> Self:
        """Read what :meth:`asdict` wrote."""
        priors = {name: prior_from_dict(prior) for name, prior in values["priors"].items()}
        encoder = encoder_from_json(values["space"])
        return cls(encoder, from_name(values["kernel"]["name"], encoder, **values["kernel"]["options"]), priors)

    def stan_data(
        self, train: Encoded, y: FloatArray, new: Encoded, prior_only: bool = False, omit_jacobian: bool = False
    ) -> dict[str, Any]:
        """Data of the Stan program: observations on the standardised scale, new configurations, priors.

        ``omit_jacobian`` omits the Jacobian of the coordinates that the program samples: the optimum is then the mode
        on the log scale.
        """
        return {
            **self.kernel.stan_data(train, new),
            "y": y,
            "want_cov": 0,
            "prior_only": int(prior_only),
            "omit_jacobian": int(omit_jacobian),
            **self._prior_data,
        }

    @cached_property
    def parameter_shapes(self) -> dict[str, tuple[int, ...]]:
        """Shapes of the program's parameters, in its order; those without entries are left out."""
        shapes: dict[str, tuple[int, ...]] = {}
        labels = self.kernel.labels(self.encoder)
        for name in ("mu", "sigma_f", "sigma_n", *labels):
            label = labels.get(name)
            if label is not None:
                shapes[f"z_{name}"] = (len(label),)
            else:
                shapes[f"z_{name}"] = (1,) if name in self.kernel.optional else ()
        return {name: shape for name, shape in shapes.items() if shape != (0,)}

    def _spread_priors(self) -> dict[str, float | FloatArray]:
        labels = self.kernel.labels(self.encoder)
        entries: dict[str, float | FloatArray] = {}
        for name, prior in self.priors.items():
            values = prior.stan_data(name, labels.get(name))
            # What not every kernel of a program has is a vector of length 0 or 1 there.
            entries |= {k: np.atleast_1d(v) for k, v in values.items()} if name in self.kernel.optional else values
        return entries
