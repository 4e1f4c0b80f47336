"""A space, a kernel and priors, and the data of the Stan program that follow from them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property
from typing import Any, Literal, Self, get_args

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from slayr_py.display import Summary
from slayr_py.errors import DataError, did_you_mean, listed
from slayr_py.inference.named_priors import Priors, given_priors, vector_prior
from slayr_py.inference.sampling.warm_start import WarmStart
from slayr_py.kernels import (
    LATENT_SIGNAL,
    MEAN,
    NOISE,
    PIVOT_WARP,
    SIGNAL,
    UNIT_NOISE,
    WARP,
    Draws,
    Hyperparameter,
    Kernel,
    Normal,
    Prior,
    StanValue,
    fixed_prior,
    from_name,
    prior_families,
    prior_from_dict,
)
from slayr_py.space import Encoded, Encoder, FloatArray, Space, Within, as_encoder, encoder_from_json, encoder_to_json

Warp = Literal["auto", "none", "log", "best"]
"""Transformations of the targets: "log" compresses large values, "best" values above the best one, see
`slayr_py.inference.warp`; "auto" is "log", in a study also "best", and "none" if errors of observations are known."""

AutoWarp = Literal["log", "best"]
"""Warps that "auto" may stand for, besides none."""

_WARPS = {"none": (), "log": (WARP,), "best": (PIVOT_WARP,)}

Likelihood = Literal["gaussian", "probit"]
"""Observations of the function: numbers with Gaussian noise, or binary ones, P(success) = Phi(f)."""

NOISE_FLOOR = 1e-4
"""Noise standard deviation of every observation besides ``sigma_n``, in standard deviations of the targets. Without it,
``sigma_n`` becomes so small for noise-free observations at nearly equal configurations that the covariance is singular
up to rounding. With it, the condition number of the covariance is at most n (sigma_f / 1e-4)^2."""

WIDEST = 1000.0
"""Largest standard deviation of a normal prior, in standard deviations of the targets. Up to 1000, starts of
"map" on 20 tables end at a mode within 0.002 nats; from 10,000 on they stop on the way to it."""


class Model:
    """A space, a kernel and priors; :class:`~slayr_py.inference.GaussianProcess` documents the arguments.

    Attributes
    ----------
    encoder : Encoder
    kernel : Kernel
    hyperparameters : tuple of Hyperparameter
        Mean, signal, noise and the kernel's hyperparameters with the priors of this model, in the program's order.
    priors : dict of str to Prior
        Priors by name.
    warp : {"none", "log", "best"}
        Transformation of the targets.
    pivot : float, optional
        Pivot of the warp "best", on the standardised scale; None for the best target.
    given_warp : {"none", "log", "best", "auto"}
        The argument; "auto" allows :meth:`with_errors` to leave out the warp, and :meth:`with_warp` to choose another.
    auto_warp : {"log", "best"}
        The warp that "auto" stands for.
    left_out : tuple of str
        Notes for the diagnostics of a fit.
    likelihood : {"gaussian", "probit"}
    noise_floor : float
        Noise standard deviation that observations have besides ``sigma_n``, in standard deviations of the targets.
    """

    def __init__(
        self,
        space: Space,
        kernel: Kernel | str = "auto",
        priors: Priors | None = None,
        warp: Warp = "none",
        likelihood: Likelihood = "gaussian",
        *,
        noise_floor: float = NOISE_FLOOR,
        pivot: float | None = None,
        left_out: tuple[str, ...] = (),
        auto_warp: AutoWarp = "log",
    ) -> None:
        if warp not in get_args(Warp):
            raise DataError(f"unknown warp {warp!r}{did_you_mean(warp, get_args(Warp))}")
        if likelihood not in get_args(Likelihood):
            raise DataError(f"unknown likelihood {likelihood!r}{did_you_mean(likelihood, get_args(Likelihood))}")
        self.likelihood: Likelihood = likelihood
        if likelihood == "probit" and warp != "none":
            raise DataError(
                f"warp={warp!r} is not supported with likelihood='probit'; use warp='none', or likelihood='gaussian'"
            )
        self.given_warp: Warp = warp
        self.auto_warp: AutoWarp = auto_warp
        self.warp: Literal["none", "log", "best"] = auto_warp if warp == "auto" else warp
        self.pivot = pivot
        self.left_out = left_out
        self.noise_floor = noise_floor
        self.encoder = as_encoder(space)
        self.kernel = from_name(kernel, self.encoder)
        declared = self.kernel.contract.ordered(
            (*self._target_hyperparameters(), *self.kernel.hyperparameters(self.encoder))
        )
        defaults = {h.name: h for h in declared}
        self._given = given_priors(priors)
        chosen: dict[str, Prior] = {}
        for name, given in self._given.items():
            if name not in defaults:
                raise DataError(
                    f"a prior is given for {name!r}, which is not a hyperparameter; known: {', '.join(defaults)}"
                )
            prior = vector_prior(defaults[name], given, self.encoder) if isinstance(given, Mapping) else given
            support = defaults[name].prior.support
            if isinstance(prior, Prior) and prior.support != support:
                known = " or ".join(prior_families(support))
                raise DataError(f"the prior of {name!r} is {prior!r}; use {known} (support: {support})")
            chosen[name] = prior if isinstance(prior, Prior) else fixed_prior(prior, support)
        self._chosen = chosen
        self.priors: dict[str, Prior] = {h.name: chosen.get(h.name, h.prior) for h in declared}
        self.hyperparameters: tuple[Hyperparameter, ...] = tuple(
            replace(h, prior=self.priors[h.name]) for h in declared
        )
        for h in self.hyperparameters:
            h.prior.stan_data(h.name, h.labels)  # raises for a prior of the wrong length
            if isinstance(h.prior, Normal) and np.any(np.asarray(h.prior.sigma) > WIDEST):
                raise DataError(
                    f"the prior of {h.name!r} is {h.prior!r}, wider than {WIDEST:g} standard deviations of the targets "
                    "(or ranges of a parameter), where optimisers and chains fail; Normal(0, 100) is as good as flat"
                )

    def informed(self, train: Encoded, y: FloatArray) -> Self:
        """Return the model with the kernel's priors for these observations; y (n,) is standardised.

        Priors of the user are not changed. The same model is returned if the kernel's priors do not depend on
        observations.
        """
        informed = self.kernel.informed_priors(train, y)
        if not informed.keys() - self._chosen.keys():
            return self
        return self._updated(informed | self._chosen)

    def with_defaults(self, defaults: Priors) -> Self:
        """Return the model with other default priors by hyperparameter; those that the user gave take precedence.

        The user's priors of some entries of a vector leave the other entries the new default.
        """
        by_name = {h.name: h for h in self.hyperparameters}
        priors = dict(defaults) | self._chosen
        for name, default in defaults.items():
            given = self._given.get(name)
            if isinstance(default, Prior) and isinstance(given, Mapping):
                priors[name] = vector_prior(replace(by_name[name], prior=default), given, self.encoder)
        return self._updated(priors) if defaults else self

    def with_errors(self, errors: FloatArray | None) -> Self:
        """Return the model for observations whose errors have known standard deviations (n,), or None.

        A warp would make the variance of a known error depend on the observation: the likelihood would not integrate to
        one, and would favour large warps. The warp is left out if it is "auto", and :attr:`left_out` says so.

        Raises
        ------
        DataError
            If an error is positive, and the warp is "log" or "best", or the likelihood is probit.
        """
        if errors is None or not np.any(errors > 0):
            return self
        if self.likelihood == "probit":
            raise DataError("binary observations cannot have known errors (y_sd); leave y_sd out")
        if self.warp == "none":
            return self
        if self.given_warp != "auto":
            raise DataError(
                f"warp={self.given_warp!r} cannot be combined with known errors (y_sd); use warp='none', or "
                "warp='auto', which leaves the warp out; or transform y yourself, and y_sd with it"
            )
        return self.without_warp("no warp, since errors of observations are known (y_sd): warp='auto'")

    def without_warp(self, note: str) -> Self:
        """Return the model without a warp, and the reason as a note on its fits."""
        priors = {name: prior for name, prior in self._chosen.items() if name != WARP.name}
        return self._updated(priors, warp="none", left_out=(note,))

    @property
    def chooses_warp(self) -> bool:
        """Whether :meth:`with_warp` may choose the warp: it is "auto", with the default prior."""
        return self.given_warp == "auto" and self.priors[WARP.name] == _WARPS[self.warp][0].prior

    def with_warp(self, warp: AutoWarp, note: str = "") -> Self:
        """Return the model with this warp for "auto", and the reason, if there is one, as a note on its fits."""
        priors = {name: prior for name, prior in self._chosen.items() if name != WARP.name}
        return self._updated(priors, auto_warp=warp, left_out=(note,) if note else ())

    def on(self, encoder: Encoder) -> Self:
        """Return the model of the same space with other scales, see `Encoder.rescaled`."""
        return self._updated(self._chosen, space=encoder)

    def with_pivot(self, pivot: float) -> Self:
        """Return the model with this pivot of the warp "best", which is not positive, for all observations."""
        return self._updated(self._chosen, pivot=pivot)

    def _updated(self, priors: Priors, **changes: Any) -> Self:
        """Return the model with other priors, and other options of the constructor."""
        options: dict[str, Any] = {
            "space": self.encoder,
            "kernel": self.kernel,
            "warp": self.given_warp,
            "likelihood": self.likelihood,
            "noise_floor": self.noise_floor,
            "pivot": self.pivot,
            "left_out": self.left_out,
            "auto_warp": self.auto_warp,
        }
        return type(self)(priors=priors, **(options | changes))

    def __repr__(self) -> str:
        return self.summary("Model").text()

    def _repr_html_(self) -> str:
        return self.summary("Model").html()

    def summary(self, name: str) -> Summary:
        """Return a table of the hyperparameters under a heading that starts with ``name``."""
        rows = [(h.name, int(np.prod(h.shape)), str(h.prior)) for h in self.hyperparameters]
        heading = f"{name}: {self.kernel.description}, {len(self.encoder.names)} parameters"
        if self.warp != "none":
            heading += f", warp {self.warp!r}"
        return Summary(heading, pd.DataFrame(rows, columns=["hyperparameter", "size", "prior"]))

    def notes(self, draws: Draws, train: Encoded) -> tuple[str, ...]:
        """Return notes on the kernel, and on hyperparameters whose draws are outside the range of their priors.

        ``train`` has the observed configurations. The prior of ``sigma_f`` describes the function's standard deviation,
        see `Kernel.reference_variance`.
        """
        function_sd = draws["sigma_f"] * np.sqrt(self.kernel.reference_variance(self.encoder, draws))
        in_priors = {**draws, "sigma_f": function_sd}
        # The prior of a warp that the values have chosen is not the user's to change: another one leaves "log".
        chosen = {WARP.name} if self.given_warp == "auto" and self.warp == "best" else set()
        outside = (h.outside_prior(in_priors[h.name]) for h in self.hyperparameters if h.name not in chosen)
        scales = [f"logarithmic scale of {listed(self.encoder.logarithmic)}"] if self.encoder.logarithmic else []
        of_kernel = self.kernel.notes(draws, train)
        return (*self.left_out, *scales, *of_kernel, *(note for notes in outside for note in notes))

    def _target_hyperparameters(self) -> tuple[Hyperparameter, ...]:
        """Return the hyperparameters that do not belong to the kernel."""
        if self.likelihood == "probit":
            return MEAN, LATENT_SIGNAL, UNIT_NOISE
        return (MEAN, SIGNAL, NOISE, *_WARPS[self.warp])

    @cached_property
    def fixed(self) -> dict[str, NDArray[np.bool_]]:
        """Which entries of each hyperparameter have a single value, by name."""
        return {h.name: h.prior.is_fixed(h.shape) for h in self.hyperparameters}

    def asdict(self) -> dict[str, Any]:
        """Return a JSON-able description for :meth:`fromdict`."""
        return {
            "kernel": {"name": self.kernel.name, "options": self.kernel.options()},
            "priors": {name: prior.asdict() for name, prior in self.priors.items()},
            "warp": self.given_warp,
            "auto_warp": self.auto_warp,
            "left_out": list(self.left_out),
            "likelihood": self.likelihood,
            "noise_floor": self.noise_floor,
            "space": encoder_to_json(self.encoder),
        }

    @classmethod
    def fromdict(cls, values: Mapping[str, Any], within: Within | None = None) -> Self:
        """Construct a model from :meth:`asdict`; ``within`` replaces the recorded constraints on inputs."""
        priors = {name: prior_from_dict(prior) for name, prior in values["priors"].items()}
        encoder = encoder_from_json(values["space"], within)
        kernel = from_name(values["kernel"]["name"], encoder, **values["kernel"]["options"])
        floor = float(values["noise_floor"])
        options = {"auto_warp": values["auto_warp"], "left_out": tuple(values["left_out"])}
        return cls(encoder, kernel, priors, values["warp"], values["likelihood"], noise_floor=floor, **options)

    def stan_data(
        self,
        train: Encoded,
        y: FloatArray,
        new: Encoded,
        prior_only: bool = False,
        omit_jacobian: bool = False,
        pointwise: bool = True,
        y_sd: FloatArray | None = None,
    ) -> dict[str, StanValue]:
        """Return the data of the Stan program: standardised observations, new configurations, priors.

        With ``omit_jacobian`` the density omits the Jacobian of the coordinates that the program samples, and its
        optimum is the mode on the log scale. Without ``pointwise`` the program computes no ``log_lik`` and no
        ``y_rep``. ``y_sd`` (n,) are known standard deviations of the errors of y.
        """
        entries = self.kernel.stan_data(train, new)
        entries |= {"y": y, "prior_only": int(prior_only), "omit_jacobian": int(omit_jacobian)}
        entries |= {"want_pointwise": int(pointwise), "n_warp": int(self.warp != "none")}
        if self.warp == "best":
            pivot = np.min(y, initial=0.0) if self.pivot is None else self.pivot
            entries |= {"n_pivot": 1, "warp_pivot": np.array([pivot])}
        entries |= {"noise_floor": self.noise_floor, "binary": int(self.likelihood == "probit")}
        if y_sd is not None:
            entries["y_sd"] = y_sd
        return self.kernel.contract.data(entries, self.hyperparameters)

    def check_start(self, start: WarmStart, chains: int | None) -> None:
        """Check that a warm start fits this model and number of chains; None for any number, also without chains.

        Raises
        ------
        DataError
            If the start comes from a fit with another kernel, space or number of chains.
        """
        shapes = {name: values.shape for name, values in start.points.items()}
        if chains is None and start.chains == 0:  # a mode
            needed = {name: (1, *shape) for name, shape in self.parameter_shapes.items()}
            if shapes != needed:
                raise DataError(
                    f"the warm start is a mode of shapes {shapes}; this model needs {needed}; use a start from a fit "
                    "with the same kernel"
                )
            return
        chains = start.chains if chains is None else chains
        needed = {name: (chains, *shape) for name, shape in self.parameter_shapes.items()}
        n = sum(int(np.prod(shape)) for shape in self.parameter_shapes.values())
        sizes = start.inverse_metric.shape in ((n,), (n, n)) and start.draws.shape[1] in (0, n)
        if shapes != needed or start.step_size.shape != (chains,) or not sizes:
            raise DataError(
                f"the warm start has states of shapes {shapes} for {start.chains} chains; this model with "
                f"{chains} chains needs {needed}; use a start from a fit with the same kernel and number of chains"
            )

    @cached_property
    def parameter_shapes(self) -> dict[str, tuple[int, ...]]:
        """Shapes of the program's parameters in its order; parameters of length 0 are omitted."""
        return self.kernel.contract.coordinate_shapes(self.hyperparameters)
