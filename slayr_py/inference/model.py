"""A space, a kernel and priors, and the data of the Stan program that follow from them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property
from typing import Any, Self

from ConfigSpace import ConfigurationSpace

from slayr_py.errors import DataError
from slayr_py.kernels import Hyperparameter, Kernel, Prior, from_name
from slayr_py.kernels.contracts import StanValue
from slayr_py.kernels.hyperparameters import MEAN, NOISE, SIGNAL
from slayr_py.kernels.priors import prior_from_dict
from slayr_py.space import Encoded, Encoder, encoder_from_json, encoder_to_json
from slayr_py.space.dimension import FloatArray


class Model:
    """A model to fit; :class:`~slayr_py.inference.GaussianProcess` documents the arguments and adds fitting.

    Attributes
    ----------
    encoder : Encoder
    kernel : Kernel
    hyperparameters : tuple of Hyperparameter
        Mean, signal, noise and the kernel's hyperparameters with the priors of this model, in the program's order.
    priors : dict of str to Prior
        Priors by name.
    """

    def __init__(
        self,
        space: ConfigurationSpace | Encoder,
        kernel: Kernel | str = "auto",
        priors: Mapping[str, Prior] | None = None,
    ) -> None:
        self.encoder = space if isinstance(space, Encoder) else Encoder(space)
        self.kernel = from_name(kernel, self.encoder)
        known = self.kernel.contract.ordered((MEAN, SIGNAL, NOISE, *self.kernel.hyperparameters(self.encoder)))
        defaults = {h.name: h.prior for h in known}
        for name, prior in (priors or {}).items():
            if name not in defaults:
                raise DataError(f"no hyperparameter {name!r} to put a prior on; known: {', '.join(defaults)}")
            if not isinstance(prior, Prior) or prior.support != defaults[name].support:
                raise DataError(
                    f"the prior of {name!r} must be {type(defaults[name]).__name__} "
                    f"(support: {defaults[name].support}), got {prior!r}"
                )
        self.priors: dict[str, Prior] = {**defaults, **(priors or {})}
        self.hyperparameters: tuple[Hyperparameter, ...] = tuple(replace(h, prior=self.priors[h.name]) for h in known)
        for h in self.hyperparameters:
            h.prior.stan_data(h.name, h.labels)  # raises for a prior of the wrong length

    def asdict(self) -> dict[str, Any]:
        """Return a JSON-able description for :meth:`fromdict`."""
        return {
            "kernel": {"name": self.kernel.name, "options": self.kernel.options()},
            "priors": {name: prior.asdict() for name, prior in self.priors.items()},
            "space": encoder_to_json(self.encoder),
        }

    @classmethod
    def fromdict(cls, values: Mapping[str, Any]) -> Self:
        """Construct a model from :meth:`asdict`."""
        priors = {name: prior_from_dict(prior) for name, prior in values["priors"].items()}
        encoder = encoder_from_json(values["space"])
        return cls(encoder, from_name(values["kernel"]["name"], encoder, **values["kernel"]["options"]), priors)

    def stan_data(
        self, train: Encoded, y: FloatArray, new: Encoded, prior_only: bool = False, omit_jacobian: bool = False
    ) -> dict[str, StanValue]:
        """Return the data of the Stan program: standardised observations, new configurations, priors.

        ``omit_jacobian`` omits the Jacobian of the coordinates that the program samples: the optimum is then the mode
        on the log scale.
        """
        entries = self.kernel.stan_data(train, new)
        entries |= {"y": y, "prior_only": int(prior_only), "omit_jacobian": int(omit_jacobian)}
        return self.kernel.contract.data(entries, self.hyperparameters)

    @cached_property
    def parameter_shapes(self) -> dict[str, tuple[int, ...]]:
        """Shapes of the program's parameters in its order, without those of length 0."""
        return self.kernel.contract.coordinate_shapes(self.hyperparameters)
