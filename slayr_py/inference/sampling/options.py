"""Options of a fit, validated in one place."""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace
from typing import Literal, TypedDict, get_args

import numpy as np
from typing_extensions import Unpack

from slayr_py.arguments import check_flag, check_integer
from slayr_py.errors import DataError, did_you_mean

Method = Literal["nuts", "carried", "pathfinder", "laplace", "map"]

METHOD_NAMES: tuple[Method, ...] = get_args(Method)


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
    """Options of a fit; `GaussianProcess.fit` documents their effects.

    Attributes
    ----------
    method : {"nuts", "carried", "pathfinder", "laplace", "map"}
        NUTS, importance sampling from an earlier posterior or one of two approximations, or the posterior mode.
    chains : int
        Number of chains.
    warmup, draws : int
        Warm-up iterations and draws of each chain.
    target_acceptance : float
        Target of the acceptance statistic to which the step size is adapted, in (0, 1).
    max_treedepth : int
        A trajectory has at most 2**max_treedepth leapfrog steps.
    ess : int or None
        Continue sampling until the effective sample size reaches this number.
    retries : int
        Number of retries if the diagnostics fail.
    pointwise : bool
        Whether to compute the leave-one-out density and a replicate of every observation for every draw.

    Raises
    ------
    DataError
        For an unknown method or a number outside its range.
    """

    method: Method = field(default="nuts", metadata={"help": f"{', '.join(METHOD_NAMES[:-1])} or {METHOD_NAMES[-1]}."})
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
        if self.method not in METHOD_NAMES:
            raise DataError(f"unknown method {self.method!r}{did_you_mean(self.method, METHOD_NAMES)}")
        for name in ("chains", "warmup", "draws", "max_treedepth", "ess"):
            if name != "ess" or self.ess is not None:
                object.__setattr__(self, name, check_integer(name, getattr(self, name)))
        target = self.target_acceptance
        if not isinstance(target, int | float | np.number) or not 0 < target < 1:
            raise DataError(f"target_acceptance must lie in (0, 1), got {target!r}")
        object.__setattr__(self, "target_acceptance", float(target))
        object.__setattr__(self, "retries", check_integer("retries", self.retries, minimum=0))
        check_flag("pointwise", self.pointwise)

    def updated(self, **changes: Unpack[FitKeywords]) -> FitOptions:
        """Return these options with some of them replaced.

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
        return replace(self, **changes)

    def changed(self) -> list[str]:
        """Return the names of the options that differ from their defaults."""
        return [option.name for option in fields(self) if getattr(self, option.name) != option.default]
