"""The surrogate of a study: one kernel, a stack of kernels, or a search for kernels, with the same methods."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from optuna import Study
from optuna.trial import FrozenTrial

from slayr_py.errors import DataError
from slayr_py.inference import GaussianProcess, Priors
from slayr_py.kernels import Kernel, Stack, from_name as kernel_from_name
from slayr_py.search import KernelSearch
from slayr_py.space import Encoder
from slayr_py.study.model.fit_cache import FitCache
from slayr_py.study.model.kernel_searches import SHARED, LoopSearch, default_search, on_space
from slayr_py.study.model.options import SamplerOptions
from slayr_py.study.model.session import Session
from slayr_py.study.model.warp_choice import with_chosen_warp
from slayr_py.study.storage.attributes import kernel_record
from slayr_py.study.storage.objectives import has_several
from slayr_py.study.storage.trials import Observations


@dataclass(frozen=True)
class GivenKernel:
    """The surrogate of a kernel or a stack that does not change.

    Attributes
    ----------
    gp : GaussianProcess
    first_kernel : Kernel
        Kernel of the models of failures and constraints.
    automatic : bool
        Whether "auto" has chosen the kernel.
    chooses_scales : bool
        Whether the values choose logarithmic scales: those of "auto" do, unless the user's priors or belief about the
        optimum refer to the declared ones.
    chooses_warp : bool
        Whether the values choose the warp, if it is "auto": those of a noisy objective do not.
    fits : FitCache
        Fits that choose the warp.
    """

    gp: GaussianProcess
    first_kernel: Kernel
    automatic: bool = False
    chooses_scales: bool = False
    chooses_warp: bool = True
    fits: FitCache = field(default_factory=FitCache)

    @property
    def kernel(self) -> Kernel | Stack:
        """Return the kernel or the stack."""
        return self.gp.kernel

    def record(self) -> dict[str, Any]:
        """Return the entry "kernel" of the study's record."""
        return kernel_record(self.kernel, self.gp.encoder, self.automatic)

    @property
    def plain(self) -> GaussianProcess:
        """Return the Gaussian process of the first kernel."""
        return self.gp.parts[0]

    def on(self, encoder: Encoder) -> GivenKernel:
        """Return the surrogate of the same space with other scales."""
        return replace(self, gp=self.gp.on(encoder), fits=FitCache())

    def prepare(self, progress: Callable[[str], None] | None = None) -> None:
        """Compile the programs of the kernels."""
        self.gp.prepare(progress)

    def model(self, study: Study, trial: FrozenTrial, observed: Observations, seed: int) -> GaussianProcess:
        """Return the model for a suggestion, that of all observations."""
        return self.latest(study, observed)

    def latest(self, study: Study, observed: Observations) -> GaussianProcess:
        """Return the model for all observations; with one kernel and one exact objective, "auto" chooses the warp."""
        if not self.chooses_warp or self.gp.is_stack or not self.gp.model.chooses_warp:
            return self.gp
        if has_several(study) or observed.errors is not None:
            return self.gp
        return with_chosen_warp(study, self.gp, observed, self.fits)


Surrogate = GivenKernel | LoopSearch
"""The model of the objective of a study; both classes have the same methods."""


def surrogate_of(
    encoder: Encoder, options: SamplerOptions, priors: Priors, n_initial: int, session: Session
) -> Surrogate:
    """Return the surrogate for the kernel that a user has chosen.

    ``priors`` are those of all hyperparameters whose prior is not the kernel's own, also of the noise. ``n_initial`` is
    the size of the initial design, which determines when a kernel search is due.

    Raises
    ------
    DataError
        For an unknown kernel, or one that does not fit the space.
    """
    kernel = options.kernel
    if isinstance(kernel, KernelSearch) or kernel == "search":
        search = default_search(encoder) if isinstance(kernel, str) else on_space(kernel, encoder)
        plain = GaussianProcess(encoder, kernel_from_name("auto", encoder), priors, options.warp)
        return LoopSearch(search, plain, priors, n_initial, session)
    gp = GaussianProcess(encoder, kernel, priors, options.warp)
    automatic = kernel == "auto"
    free = options.prior is None and not (options.priors or {}).keys() - set(SHARED)
    first = gp.models[0].kernel
    return GivenKernel(gp, first, automatic, chooses_scales=automatic and free, chooses_warp=not options.noisy)


def check_inferable(kernel: str | Kernel | Stack | KernelSearch) -> None:
    """Check a kernel for spaces that are not known yet.

    Raises
    ------
    DataError
        If the name is unknown, or a stack or a search needs a declared space.
    """
    if isinstance(kernel, Stack):
        raise DataError("a stack of kernels needs a declared space: StanGPSampler(space, kernel=...)")
    if isinstance(kernel, KernelSearch) or kernel == "search":
        raise DataError("a kernel search needs a declared space: StanGPSampler(space, kernel='search')")
    if kernel != "auto":
        kernel_from_name(kernel)
