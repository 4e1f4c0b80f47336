"""The interface of fit methods."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, Literal

import cmdstanpy

from slayr_py.errors import DataError
from slayr_py.inference.diagnostics.checks import APPROXIMATION_CHECKS, Check
from slayr_py.inference.sampling.command import DIGITS, CommonArguments
from slayr_py.inference.sampling.options import POINT_ESTIMATES, FitOptions
from slayr_py.inference.sampling.output import Run
from slayr_py.inference.sampling.run_folder import run_folder
from slayr_py.inference.sampling.seeds import stan_seed
from slayr_py.inference.sampling.warm_start import WarmStart
from slayr_py.space import FloatArray

Kind = Literal["carried", "warm", "cold"]
"""Whether the chains of a fit start "warm" or "cold", or its posterior is "carried" from an earlier one."""

METHODS: dict[str, FitMethod] = {}
"""Fit methods by name."""


@dataclass(frozen=True)
class Job:
    """One run of a program.

    Attributes
    ----------
    model : CmdStanModel
    data : mapping
        Data of the program.
    options : FitOptions
    seed : int
        Seed of the fit.
    start : WarmStart, optional
    closing : ExitStack
        Removes the files of the run at its end.
    """

    model: cmdstanpy.CmdStanModel
    data: Mapping[str, Any]
    options: FitOptions
    seed: int
    start: WarmStart | None
    closing: ExitStack

    @cached_property
    def folder(self) -> Path:
        """Temporary folder of the run; a method that starts no process makes none."""
        return self.closing.enter_context(run_folder())

    @cached_property
    def common(self) -> CommonArguments:
        """Arguments of all CmdStan calls; the program's data are written on first use."""
        return self._arguments("data", {"want_density": self._corrects}, self.folder)

    @property
    def _corrects(self) -> int:
        """1 if draws are resampled by `log_density`, which for a binary model is more accurate than what is sampled."""
        return int(self.data["binary"] and not self.data["prior_only"])

    def for_proposals(self, folder: str, *, corrects: bool) -> CommonArguments:
        """Return the arguments of a call whose draws are proposals: without the pointwise quantities of the program.

        Parameters
        ----------
        folder : str
            Name of the folder of its output, since CmdStanPy names files by the second and overwrites them.
        corrects : bool
            Whether the program computes `log_density`, if the common arguments do.
        """
        changes = {"want_density": self._corrects if corrects else 0, "want_pointwise": 0}
        return self._arguments(f"{folder}-data", changes, self.folder / folder)

    def _arguments(self, name: str, changes: Mapping[str, Any], output: Path) -> CommonArguments:
        file = self.folder / f"{name}.json"
        cmdstanpy.write_stan_json(str(file), {**self.data, **changes})
        return {"data": str(file), "seed": stan_seed(self.seed), "output_dir": str(output), "sig_figs": DIGITS}

    @property
    def total_draws(self) -> int:
        """Number of draws of a method without chains."""
        return self.options.chains * self.options.draws


class FitMethod(ABC):
    """Method that computes a posterior. Its instances have no state.

    Attributes
    ----------
    name : str
        Value of `FitOptions.method`; a subclass that declares one is registered under it.
    checks : tuple of Check
        Checks of its draws; empty for a point estimate.
    has_chains : bool
        Whether its draws are Markov chains, which can be extended.
    carries : bool
        Whether it needs draws near the posterior, from an earlier fit or from chains that fail their checks.
    point_estimate : bool
        Whether it returns the mode as a single draw, which no check can reject.
    """

    name: ClassVar[str]
    checks: ClassVar[tuple[Check, ...]] = APPROXIMATION_CHECKS
    has_chains: ClassVar[bool] = False
    carries: ClassVar[bool] = False
    point_estimate: ClassVar[bool] = False

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if "name" in vars(cls):
            METHODS[cls.name] = cls()
            POINT_ESTIMATES[cls.name] = cls.point_estimate

    @property
    def warm_starts(self) -> bool:
        """Whether a later fit can start from one by this method."""
        return self.has_chains or self.carries or self.point_estimate

    def chains_of_start(self, options: FitOptions) -> int | None:
        """Return the number of chains that a start must have; None for a mode, which begins without chains."""
        return None if self.point_estimate else options.chains

    @abstractmethod
    def sample(self, job: Job) -> Run:
        """Run the program.

        Raises
        ------
        RuntimeError, ValueError
            If Stan fails, or its output cannot be used.
        """

    def record(self, options: FitOptions) -> dict[str, Any]:
        """Return the options that the method uses, for the record."""
        return {"draws": options.chains * options.draws}

    def kind(self, start: WarmStart | None) -> Kind | None:
        """Return the kind of start; None for a method without chains."""
        return None

    def warm_start(
        self, draws: Mapping[str, FloatArray], record: Mapping[str, Any], acceptance_rate: float
    ) -> WarmStart:
        """Return a start for a later fit.

        Parameters
        ----------
        draws : mapping of str to (c, s, ...) float64
            Draws of the program's parameters in its order.
        record : mapping
            Record of the fit.
        acceptance_rate : float
            Mean acceptance statistic of the chains; NaN without chains.

        Raises
        ------
        DataError
            If this method has no draws to start from.
        """
        raise DataError(f"a {self.name} fit has no chains to start from; use method='nuts'")
