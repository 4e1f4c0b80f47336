"""What is tried for a fit until its diagnostics are content: what failed is made again with what it lacked."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from slayr_py.errors import DataError
from slayr_py.inference.sampling.run import Method
from slayr_py.inference.sampling.seeds import retry_seed
from slayr_py.inference.sampling.warm_start import WarmStart

_NAMES = {"warmup": "warm-up", "target_acceptance": "target acceptance", "max_treedepth": "largest tree"}


@dataclass(frozen=True)
class Attempt:
    """One way to fit.

    Attributes
    ----------
    method : {"nuts", "pathfinder", "laplace", "map"}
    options : dict
        Of `slayr_py.inference.sampling.run.run`.
    seed : int
    start : WarmStart, optional
        Where chains of NUTS begin.
    """

    method: Method
    options: dict[str, Any]
    seed: int
    start: WarmStart | None = None

    @property
    def kind(self) -> str | None:
        """Whether the chains begin "warm" or "cold"; None for a method without chains."""
        if self.method != "nuts":
            return None
        return "warm" if self.start else "cold"

    def after(self, other: Attempt) -> str:
        """What is new in this attempt, which follows another: ``a cold start with warm-up 300``."""
        if self.kind == "warm":
            return "NUTS from a warm start"
        if other.kind != "cold":
            return f"{'a cold start' if other.kind else 'NUTS'} with warm-up {self.options['warmup']}"
        changed = (name for name in _NAMES if self.options[name] != other.options[name])
        return "again with " + ", ".join(f"{_NAMES[name]} {self.options[name]:g}" for name in changed)


def planned(method: Method, start: WarmStart | None, seed: int, options: Mapping[str, Any]) -> list[Attempt]:
    """Give what is tried: a draft if one is asked for, a warm start if there is one, and a cold start."""
    cold = Attempt("nuts", dict(options), seed)
    if method == "map":
        return [replace(cold, method=method)]
    sampled = [replace(cold, start=start), cold] if start else [cold]
    return sampled if method == "nuts" else [replace(cold, method=method), *sampled]


def again(failed: Attempt, outside: Iterable[str], seed: int, retry: int) -> Attempt:
    """Give another cold run of NUTS, with what the diagnostics of the failed one ask for.

    Twice the warm-up where the chains disagree, mix badly or move badly between energies; a target acceptance halfway
    to 1, hence smaller steps, where transitions diverged; one more level, hence trajectories of twice the length, where
    the largest tree was reached.

    Parameters
    ----------
    failed : Attempt
    outside : iterable of str
        The names of `Diagnostics.outside`.
    seed : int
        Of the first attempt.
    retry : int
        How often it was made again, with this time.
    """
    objections, options = set(outside), dict(failed.options)
    if objections & {"rhat_max", "ess_bulk_min", "ess_tail_min", "ebfmi_min"}:
        options["warmup"] *= 2
    if "divergences" in objections:
        options["target_acceptance"] = (1 + options["target_acceptance"]) / 2
    if "max_treedepth_hits" in objections:
        options["max_treedepth"] += 1
    return Attempt("nuts", options, retry_seed(seed, retry))


def check_retries(retries: int) -> int:
    """How often a fit may be made again, as a plain number.

    Raises
    ------
    DataError
        If it is not an integer >= 0.
    """
    if isinstance(retries, bool) or not isinstance(retries, int | np.integer) or retries < 0:
        raise DataError(f"retries must be an integer >= 0, got {retries!r}")
    return int(retries)
