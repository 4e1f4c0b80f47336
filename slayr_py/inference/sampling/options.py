"""Options of a fit, validated in one place."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any, Literal, TypedDict, get_args

from typing_extensions import Unpack

from slayr_py.arguments import check_flag, check_integer, check_probability
from slayr_py.errors import DataError, did_you_mean

Method = Literal["nuts", "carried", "pathfinder", "laplace", "map"]
"""The fit methods of the package."""

_NAMES = get_args(Method)

LARGEST_DRAWS = 1_000_000
"""Largest number of iterations of all chains."""

POINT_ESTIMATES: dict[str, bool] = dict.fromkeys(_NAMES, False)
"""Whether each fit method returns one point; subclasses of `FitMethod`, in the module ``method``, add theirs."""


class FitKeywords(TypedDict, total=False):
    """The fields of `FitOptions` as keyword arguments, all of them optional."""

    method: Method
    chains: int
    warmup: int
    draws: int
    target_acceptance: float
    max_treedepth: int
    ess: int | None
    retries: int
    pointwise: bool


@dataclass(frozen=True)
class FitOptions:
    """Options of a fit.

    The metadata of each field has a one-line description under "help", for command lines and tables.

    Attributes
    ----------
    method : {"nuts", "carried", "pathfinder", "laplace", "map"}
        "nuts" is Hamiltonian Monte Carlo. "carried" is importance sampling from a mixture fitted to the draws of a warm
        start or, without one, of the prior, for programs of at most 15 parameters. Where that fails, and for more
        parameters, the draws are tempered. Where that fails too, NUTS follows. A kernel from a Stan file of your own
        needs the warm start and is not tempered.
        "pathfinder" and "laplace" are approximations whose draws are importance-resampled. If the Pareto k of the
        importance ratios exceeds 0.7, or their effective number of draws is too small, the fit falls back to NUTS.
        "map" is the mode (of the hyperparameters on the logarithmic scale) as a single draw.
    chains, warmup, draws : int
        Number of chains, and iterations of each; methods without chains return ``chains * draws`` draws.
    target_acceptance : float
        Target of the acceptance statistic to which the step size is adapted, in (0, 1).
    max_treedepth : int
        A trajectory has at most 2**max_treedepth leapfrog steps.
    ess : int or None
        Continue sampling, up to 16 times ``draws``, until the smallest bulk effective sample size of a hyperparameter
        reaches this number and R-hat is within its limit. "carried", "pathfinder" and "laplace" do so where they fall
        back to NUTS. An error for "map", which returns one point.
    retries : int
        Number of retries of a NUTS fit whose diagnostics fail. Each has another seed and settings that address the
        failure: twice the warm-up, a target acceptance halfway to 1, or one more tree level.
    pointwise : bool
        Compute ``log_likelihood`` and ``posterior_predictive`` of ``idata``, which `Posterior.loo` and plots of the fit
        need. A fit without them is a little faster; `Posterior.with_pointwise` adds them.

    Raises
    ------
    DataError
        For an unknown method, a number outside its range, or an effective sample size of a point.
    """

    method: Method = field(default="nuts", metadata={"help": f"{', '.join(_NAMES[:-1])} or {_NAMES[-1]}."})
    chains: int = field(default=4, metadata={"help": "Number of chains."})
    warmup: int = field(default=500, metadata={"help": "Warm-up iterations per chain."})
    draws: int = field(default=500, metadata={"help": "Draws per chain."})
    target_acceptance: float = field(
        default=0.8, metadata={"help": "Target acceptance statistic, in (0, 1). Larger: fewer divergences."}
    )
    max_treedepth: int = field(default=10, metadata={"help": "A trajectory has at most 2^max_treedepth steps."})
    ess: int | None = field(default=None, metadata={"help": "Sample until the ESS is this large, at most 16 x draws."})
    retries: int = field(default=0, metadata={"help": "Number of retries if the diagnostics fail."})
    pointwise: bool = field(default=True, metadata={"help": "Compute leave-one-out of every observation."})

    def __post_init__(self) -> None:
        if self.method not in list(POINT_ESTIMATES):
            raise DataError(f"unknown method {self.method!r}{did_you_mean(self.method, POINT_ESTIMATES)}")
        for name in ("chains", "warmup", "draws", "max_treedepth", "ess"):
            if name != "ess" or self.ess is not None:
                object.__setattr__(self, name, check_integer(name, getattr(self, name)))
        for name in ("chains", "warmup", "draws"):
            _check_cost(name, getattr(self, name))
        _check_cost("chains * warmup", self.chains * self.warmup)
        _check_cost("chains * draws", self.chains * self.draws)
        target = check_probability("target_acceptance", self.target_acceptance)
        object.__setattr__(self, "target_acceptance", target)
        object.__setattr__(self, "retries", check_integer("retries", self.retries, minimum=0))
        object.__setattr__(self, "pointwise", check_flag("pointwise", self.pointwise))
        if self.ess is not None and POINT_ESTIMATES[self.method]:
            raise DataError(
                f"ess is {self.ess}, but method={self.method!r} returns one point; leave ess out, or use method='nuts'"
            )

    @classmethod
    def recorded(cls, arguments: Mapping[str, Any]) -> FitOptions:
        """Return the options of a run from its recorded arguments, which are the options that its method uses.

        A run without chains records its total number of draws, and is repeated with the same number in one chain.

        Raises
        ------
        KeyError
            If the method is missing.
        DataError
            For an illegal value.
        """
        names = {option.name for option in fields(cls)}
        given = {name: value for name, value in arguments.items() if name in names}
        return cls(**{"chains": 1, "method": arguments["method"]} | given)

    def updated(self, **changes: Unpack[FitKeywords]) -> FitOptions:
        """Return a copy with some options replaced; a method that returns one point replaces ``ess`` too.

        Raises
        ------
        TypeError
            For an unknown name.
        DataError
            For an illegal value.
        """
        known = [option.name for option in fields(self)]
        for name in changes:
            if name not in known:
                raise TypeError(f"unknown fit option {name!r}{did_you_mean(name, known)}")
        if POINT_ESTIMATES.get(changes.get("method", self.method), False):
            changes = {"ess": None, **changes}
        return replace(self, **changes)

    @classmethod
    def given(cls, options: FitOptions | None, single: FitKeywords) -> FitOptions:
        """Return ``options``, or the defaults with the single options replaced if ``options`` is None.

        Raises
        ------
        TypeError
            For an unknown name.
        DataError
            For an illegal value, or if both are given.
        """
        if options is None:
            return cls().updated(**single)
        if single:
            raise DataError(f"options= replaces the single fit options; remove {', '.join(single)}, or options=")
        return options


def _check_cost(name: str, value: int) -> None:
    """Raise `DataError` for more iterations than memory and time allow."""
    if value > LARGEST_DRAWS:
        raise DataError(
            f"{name} is {value}; all chains together have at most {LARGEST_DRAWS:,} iterations: a million draws "
            "of 125 numbers need 1 GB of memory and, at 1 ms each, 17 minutes; reduce it"
        )
