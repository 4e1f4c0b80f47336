"""What the model proposes for a trial: a fit, a search under its posterior, and what the trial keeps of both."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from ConfigSpace import Configuration
from optuna import Study
from optuna.study import StudyDirection
from optuna.trial import FrozenTrial
from threadpoolctl import threadpool_limits

from slayr_py.acquisition import Acquisition, Suggestion, suggest
from slayr_py.inference import GaussianProcess, Posterior
from slayr_py.inference.sampling.nuts import MOST
from slayr_py.space import jsonable
from slayr_py.study.distributions import to_params
from slayr_py.study.storage.attributes import leave_suggestion
from slayr_py.study.storage.fit_records import last_start, leave_fit
from slayr_py.study.storage.trials import Observations, excluded, pending
from slayr_py.study.storage.workers import turn

LARGEST_ERROR = 0.1
"""Monte Carlo standard error of the acquisition at its maximum, above which more draws are made: a tenth of an
improvement, or of a standard deviation of the targets for the bound."""


NUTS_LIMIT = 1000
"""Observations above which the loop fits the mode instead of sampling: a NUTS fit takes minutes there and grows with
the cube of their number, and so many leave little of the hyperparameters' uncertainty."""


class Phase(NamedTuple):
    """What the sampler is doing, for a progress display."""

    name: str
    """"compiling", "fitting" or "maximising"; `minimize` adds "evaluating"."""

    trial: int | None
    """Number of the trial it is done for; None before the first."""

    diagnostics: Mapping[str, Any] | None = None
    """Of the fit just made, while maximising; else None."""

    detail: str = ""
    """What the toolchain says of a step that takes long."""


@dataclass(frozen=True)
class Proposer:
    """Fits, searches, and leaves in the trial how its configuration came about.

    Attributes
    ----------
    gp : GaussianProcess
    acquisition : Acquisition
    fit_options : dict
        Of `GaussianProcess.fit`.
    warm_starts, noisy : bool
        As of `StanGPSampler`.
    tell, warn : callable
        Told of phases, and of what the user should know.
    """

    gp: GaussianProcess
    acquisition: Acquisition
    fit_options: dict[str, Any]
    warm_starts: bool
    noisy: bool
    tell: Callable[[Phase], None]
    warn: Callable[[str], None]

    def __call__(
        self,
        study: Study,
        trial: FrozenTrial,
        observed: Observations,
        design: Sequence[Configuration],
        streams: tuple[np.random.SeedSequence, np.random.SeedSequence],
    ) -> dict[str, Any]:
        """Fit and maximise; once more with four times the draws where these leave too much to chance."""
        (of_fit, of_acquisition), options, seconds = streams, dict(self.fit_options), {"fit": 0.0, "acquisition": 0.0}
        abandoned: list[dict[str, Any]] = []
        if len(observed.y) > NUTS_LIMIT and options["method"] != "map":
            options["method"] = "map"
            self.warn(
                f"{len(observed.y)} observations are more than the {NUTS_LIMIT} up to which hyperparameters are "
                "sampled: from here on their mode is fitted, in seconds instead of minutes"
            )
        start = last_start(study, trial, self.gp, options["chains"]) if self.warm_starts else None
        for seed in (of_fit, *of_fit.spawn(1)):
            self.tell(Phase("fitting", trial.number))
            begun = time.perf_counter()
            post = self.gp.fit(observed.configs, observed.y, seed=as_stan_seed(seed), start=start, **options)
            seconds["fit"] += time.perf_counter() - begun
            abandoned += post.record["abandoned"]
            arguments = post.record["arguments"]
            self.tell(Phase("maximising", trial.number, jsonable(post.check().asdict())))
            best = self._to_beat(post, observed)
            # Other processes may fit meanwhile, but not search: each has to see what the others have been given.
            with turn(study):
                begun = time.perf_counter()
                found = suggest(
                    post,
                    self.acquisition,
                    best=best,
                    t=trial.number + 1 - len(design),
                    rng=np.random.default_rng(of_acquisition),
                    pending=pending(study, self.gp.encoder.space, trial, design),
                    # The model never learns of a failure: it would ask for the same configuration for ever.
                    exclude=excluded(study, self.gp.encoder.space, observed.configs if self.noisy else ()),
                )
                seconds["acquisition"] += time.perf_counter() - begun
                more = self._more_draws(post) if seed is of_fit and found.error > LARGEST_ERROR else 0
                if not more:
                    leave_fit(study, trial, post, observed.numbers, self.warm_starts)
                    record = self._describe(study, post, found, best, abandoned, seconds)
                    return leave_suggestion(study, trial, record)
            start, options["draws"] = post.warm_start(), more
            why = f"Monte Carlo error {found.error:.3g} > {LARGEST_ERROR} of the acquisition at its maximum"
            then = {"then": f"from there with {more} draws a chain", "seconds": post.record["seconds"]}
            abandoned.append({"method": arguments["method"], "start": arguments["start"], "why": [why], **then})
        raise AssertionError("the second fit is the last")

    def _more_draws(self, post: Posterior) -> int:
        """Give how many draws a chain a second fit should have, or 0 where it would not help.

        What a draft leaves to chance is of its kind, and where the diagnostics object, the draws have been spent.
        """
        arguments, first = post.record["arguments"], self.fit_options["draws"]
        if arguments["method"] != "nuts" or arguments["ess"] is None or not post.check().ok:
            return 0
        drawn = sum(arguments["rounds"])
        return min(4 * drawn, MOST * first) if drawn < MOST * first else 0

    def _describe(
        self,
        study: Study,
        post: Posterior,
        found: Suggestion,
        best: float,
        abandoned: list[dict[str, Any]],
        seconds: dict[str, float],
    ) -> dict[str, Any]:
        sign = -1.0 if study.direction == StudyDirection.MAXIMIZE else 1.0
        return {
            "phase": "model",
            "config": to_params(self.gp.encoder.configuration(found.config)),
            "kernel": self.gp.kernel.name,
            "method": post.record["arguments"]["method"],
            "fit": {
                "start": post.record["arguments"].get("start"),
                "draws": post.n_draws,
                "abandoned": abandoned,
            },
            "acquisition": {
                "name": self.acquisition.name,
                **self.acquisition.options(),
                "best": sign * best,
                "value": float(found.value),
                "error": found.error if np.isfinite(found.error) else None,
            },
            "predicted": {"mean": sign * float(found.mean), "sd": float(found.sd)},
            "diagnostics": post.check().asdict(),
            "observations": len(post.train),
            "seconds": seconds,
        }

    def _to_beat(self, post: Posterior, observed: Observations) -> float:
        """Give the value that an improvement improves on."""
        if not self.noisy:
            return float(observed.y.min())
        # The smallest of noisy values belongs to a lucky configuration rather than to the best one, and to beat it
        # would be to beat an error of measurement. The smallest mean of the latent function at an observed
        # configuration is put in its place: the plug-in incumbent of Vazquez et al. (2008, J. Phys. Conf. Ser. 135) and
        # of Picheny, Wagner & Ginsbourger (2013, Struct. Multidiscip. Optim. 48).
        # One thread, so that the last bits do not depend on the machine, as in the search that follows.
        with threadpool_limits(limits=1, user_api="blas"):
            return float(post.predict(observed.configs).mean.min())


def as_stan_seed(stream: np.random.SeedSequence) -> int:
    """Draw a seed that CmdStan takes: a positive 31-bit integer."""
    return 1 + int(stream.generate_state(1)[0]) % (2**31 - 2)
