"""Incumbents: the best value of one objective, or the front of several, from which improvement is measured."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from ConfigSpace import Configuration
from optuna import Study

from slayr_py.acquisition import FrontTask, keys, non_dominated
from slayr_py.inference import Posterior
from slayr_py.space import Encoded, Fixed, FloatArray
from slayr_py.study.model.options import SamplerOptions
from slayr_py.study.model.prediction_error import inflation_of
from slayr_py.study.storage.objectives import default_reference, given_reference, goals_of, signs_of
from slayr_py.study.storage.trials import Observations, known_infeasible
from slayr_py.threads import one_thread

_DRAWS = 64  # by which the runner-up is chosen
_MOVED = 256  # random configurations, if none near the observed ones satisfies the constraints on inputs


class Front(NamedTuple):
    """Values of several objectives to improve on, in the user's units."""

    values: FloatArray | None
    """Shape (n, p); None if no feasible configuration is known."""

    reference: FloatArray
    """Shape (p,)."""

    configs: tuple[Configuration, ...] | None = None
    """n configurations, if the values are posterior means."""

    @property
    def size(self) -> int | None:
        """Return the number of its points; None if no feasible configuration is known."""
        return None if self.values is None else len(self.values)


def counts_as_noisy(options: SamplerOptions, observed: Sequence[Observations]) -> bool:
    """Return whether posterior means replace observed values: the study is noisy, or values have known errors."""
    return options.noisy or any(each.uncertain for each in observed)


class Incumbent(NamedTuple):
    """What to improve on.

    Attributes
    ----------
    value : float or None
        None if no feasible value is known.
    recommended : tuple of Configuration
        If the value is a posterior mean: the configuration that is predicted to have it and, if another one was
        observed, the one that is most likely to be better.
    """

    value: float | None
    recommended: tuple[Configuration, ...] = ()


def incumbent(observed: Observations, posterior: Posterior, fixed: Fixed | None, noisy: bool) -> Incumbent:
    """Return what to improve on.

    With fixed values it is the best with these values, or the best prediction there if none was observed.
    """
    known = _known([observed], [posterior], fixed, noisy)
    if known is None:
        return Incumbent(None)
    values = known.values[:, 0]
    best = observed.best_of(values)
    if not noisy or known.configs is None:
        return Incumbent(best)
    rows = [int(np.flatnonzero(values == best)[0])]
    codes = keys(known.configs)
    others = np.array([row for row, code in enumerate(codes) if code != codes[rows[0]]], dtype=np.intp)
    if len(others):
        with one_thread():
            doubts = posterior.predictor(_DRAWS).log_doubts(known.configs[rows], known.configs[others])
        rows.append(int(others[np.argmax(doubts)]))
    return Incumbent(best, tuple(posterior.encoder.decode(known.configs[rows])))


def front_of(
    study: Study,
    observed: Sequence[Observations],
    posteriors: Sequence[Posterior],
    fixed: Fixed | None,
    noisy: bool,
    reference: Mapping[str, float] | Sequence[float] | None,
) -> Front:
    """Return the non-dominated values, those of `incumbent`, and the reference point.

    Without a given reference point it is `default_reference` of the same values or, if there are none, of all values.
    """
    goals = goals_of(study)
    sign = signs_of(goals)
    found = _known(observed, posteriors, fixed, noisy)
    values = None if found is None else found.values
    known = np.column_stack([each.y for each in observed]) if values is None else values
    best = non_dominated(sign * known)
    configs = None
    if found is not None and found.configs is not None:
        configs = tuple(posteriors[0].encoder.decode(found.configs[best]))
    if values is not None:
        values = values[best]
    if reference is not None:
        return Front(values, given_reference(reference, goals), configs)
    return Front(values, sign * default_reference(sign * known, sign * known[best]), configs)


def front_task(
    study: Study,
    observed: Sequence[Observations],
    posteriors: Sequence[Posterior],
    feasibility: Sequence[Posterior],
    fixed: Fixed | None,
    noisy: bool,
    reference: Mapping[str, float] | Sequence[float] | None,
) -> FrontTask | None:
    """Return what fronts are drawn of; None if no feasible configuration with the fixed values was evaluated."""
    rows = np.flatnonzero(observed[0].usable(posteriors[0].train, fixed))
    if not len(rows):
        return None
    point = front_of(study, observed, posteriors, fixed, noisy, reference).reference
    # One thread, as in the draws that follow, so that the last bits do not depend on the machine.
    with one_thread():
        pairs = zip(posteriors, observed, strict=True)
        scales = [inflation_of(study, posterior, each, j) for j, (posterior, each) in enumerate(pairs)]
    space = posteriors[0].encoder.space
    known = [] if noisy else known_infeasible(study, space, observed[0].penalties)
    infeasible = posteriors[0].encoder.encode(known) if known else None
    return FrontTask(posteriors, rows, point, scales, feasibility, fixed, infeasible)


class _Known(NamedTuple):
    """Values (n, p) of configurations, and the configurations if the values are predictions."""

    values: FloatArray
    configs: Encoded | None


def _known(
    observed: Sequence[Observations], posteriors: Sequence[Posterior], fixed: Fixed | None, noisy: bool
) -> _Known | None:
    """Return the values of the feasible configurations with the fixed values.

    If all configurations violate constraints on inputs, they are predictions at the nearest ones that do not.
    """
    first = posteriors[0]
    if not observed[0].feasible.any():
        if observed[0].inside.any():
            return None
        encoded, allowed = first.encoder.resolve(first.train.unit_values, fixed)
        if not allowed.any():
            moved = first.encoder.uniform(_MOVED, np.random.default_rng(0), fixed)
            moved = moved if fixed is None else np.vstack([moved, fixed.example])
            encoded, allowed = first.encoder.resolve(moved, fixed)
        return _predicted(posteriors, encoded[np.flatnonzero(allowed)])
    rows = observed[0].usable(first.train, fixed)
    if rows.any() and not noisy:
        return _Known(np.column_stack([each.y[rows] for each in observed]), None)
    configs = first.train[rows]
    if not rows.any():
        assert fixed is not None
        encoded, allowed = first.encoder.resolve(np.vstack([first.train.unit_values, fixed.example]), fixed)
        configs = encoded[allowed]
    return _predicted(posteriors, configs)


def _predicted(posteriors: Sequence[Posterior], configs: Encoded) -> _Known:
    """Return posterior means, which replace observed values.

    The smallest noisy value is partly measurement error, so improvement must not be measured from it. The best
    posterior mean of the latent function at an observed configuration (under a warp, the best median) replaces it: the
    plug-in incumbent of Vazquez et al. (2008, J. Phys. Conf. Ser. 135) and of Picheny, Wagner & Ginsbourger (2013,
    Struct. Multidiscip. Optim. 48).
    """
    # One thread, as in the search that follows, so that the last bits do not depend on the machine.
    with one_thread():
        means = [posterior.predict(configs).centre_and_spread()[0] for posterior in posteriors]
    return _Known(np.column_stack(means), configs)
