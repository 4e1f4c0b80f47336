"""Weighted mixture of posteriors of the same observations under different kernels."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pandas as pd
import xarray as xr
from numpy.typing import ArrayLike, NDArray
from scipy.special import logsumexp

from slayr_py.arguments import check_integer
from slayr_py.display import Summary
from slayr_py.errors import DataError, StorageError
from slayr_py.inference.diagnostics.checks import Diagnostics
from slayr_py.inference.likelihood import Targets
from slayr_py.inference.posterior import Posterior
from slayr_py.inference.prediction import Chains, Prediction
from slayr_py.inference.records.saved import Format
from slayr_py.inference.stacking.predictor import StackedPredictor, joined
from slayr_py.inference.stacking.scores import FEWEST_DRAWS, LeaveOneOutScore, score
from slayr_py.inference.stacking.weights import counts, evenly, stacking_weights
from slayr_py.space import Encoded, Encoder, FloatArray

_FEWEST = 100  # draws of a mixture, so that the weights of point estimates are kept to a percent
_FEWEST_OF_CHAIN = 4  # draws of a chain from which a Monte Carlo error is known
_FILE = "stack.json"
_FORMAT = 1
_SUM = 1e-9  # accepted rounding error of the sum of weights


class StackedPosterior:
    """Weighted mixture of posteriors of the same observations, from :class:`StackedGaussianProcess`.

    The draws of each part are used in number proportional to its weight, so that all draws of the mixture have equal
    weights: predictions and acquisitions treat them like those of a :class:`Posterior`.

    Parameters
    ----------
    posteriors : sequence of Posterior
        Of the same observations in the same order, with Gaussian likelihood.
    weights : (k,) array_like, optional
        Not negative, with sum 1. By default those of stacking (Yao et al. 2018), from the leave-one-out densities.
    seed : int
        Fixes the systematic resampling of the draws.
    messages : sequence of str
        What was left out or fitted again.

    Attributes
    ----------
    posteriors : tuple of Posterior
        The k parts.
    weights : pandas.Series
        Weights by the names of the kernels: expressions, or descriptions.
    seed : int
    messages : tuple of str

    Raises
    ------
    DataError
        If there is no posterior, or they differ in observations, standardisation or direction; for a probit
        likelihood; for illegal weights. Without weights also if a posterior has no leave-one-out densities.
    """

    def __init__(
        self,
        posteriors: Sequence[Posterior],
        weights: ArrayLike | None = None,
        seed: int = 1,
        messages: Sequence[str] = (),
    ) -> None:
        self.posteriors = tuple(posteriors)
        _check_same_data(self.posteriors)
        self.seed = check_integer("seed", seed, minimum=0)
        self.messages = tuple(messages)
        if weights is None:
            weights = stacking_weights(np.column_stack([one.elpd for one in self._scores]))
        self._weights = _checked(weights, len(self.posteriors))
        self.weights = pd.Series(self._weights, index=_labels(self.posteriors), name="weight")
        self._offset = float(np.random.default_rng(self.seed).random())

    def __repr__(self) -> str:
        return self._summary().text()

    def _repr_html_(self) -> str:
        return self._summary().html()

    def _summary(self) -> Summary:
        checks = self.check()
        k = len(self.posteriors)
        parts = f"{k} kernel{'s' * (k > 1)}, {len(self.train)} observations"
        lines = [
            f"Stack of posteriors of Gaussian processes: {parts}",
            f"{self.n_draws} draws: {checks} {'ok' if checks.ok else 'NOT OK'}",
            *checks.messages,
            *self.messages,
        ]
        methods = [one.record["arguments"]["method"] for one in self.posteriors]
        elpd = [float(one.elpd.sum()) for one in self._scores]
        table = pd.DataFrame({"kernel": self.weights.index, "weight": self._weights, "elpd": elpd, "method": methods})
        return Summary("\n".join(lines), table)

    @cached_property
    def _scores(self) -> list[LeaveOneOutScore]:
        return [score(one) for one in self.posteriors]

    @property
    def used(self) -> list[Posterior]:
        """The parts with a positive weight."""
        return [one for one, weight in zip(self.posteriors, self._weights, strict=True) if weight > 0]

    @property
    def train(self) -> Encoded:
        """The n observed configurations."""
        return self.posteriors[0].train

    @property
    def encoder(self) -> Encoder:
        """Encoder of the space."""
        return self.posteriors[0].encoder

    @property
    def targets(self) -> Targets:
        """The observations as the programs saw them."""
        return self.posteriors[0].targets

    @property
    def y_mean(self) -> float:
        """Mean that standardisation subtracted from the observed values, in the user's units."""
        return self.posteriors[0].y_mean

    @property
    def y_sd(self) -> float:
        """Standard deviation by which standardisation divided the observed values; negative if `maximize`."""
        return self.posteriors[0].y_sd

    @property
    def maximize(self) -> bool:
        """Whether larger values are better."""
        return self.posteriors[0].maximize

    @cached_property
    def n_draws(self) -> int:
        """Number of draws of the mixture: as many as the weights allow without using a draw twice, at least 100."""
        used = self._weights > 0
        available = np.array([one.n_draws for one in self.posteriors])
        return max(_FEWEST, int(np.min(available[used] / self._weights[used])))

    @property
    def n_chains(self) -> int:
        """1, since the parts have no chains in common; :meth:`chains` has those of each."""
        return 1

    def predict(
        self, configs: Encoded | Iterable[Mapping[str, Any]] | Any, engine: Literal["numpy", "stan"] = "numpy"
    ) -> Prediction:
        """Predict the latent function at m configurations: see :meth:`Posterior.predict`."""
        new = self.encoder.encode(configs, other_columns=True)
        used = [(one, rows) for one, rows in zip(self.posteriors, self._rows(self.n_draws), strict=True) if len(rows)]
        latents = [one.predict(new, engine).latent for one, _ in used]
        return Prediction.from_latent(joined(latents, [rows for _, rows in used]))

    def sample(self, configs: Encoded | Iterable[Mapping[str, Any]] | Any, n: int = 100, seed: int = 1) -> FloatArray:
        """Draw the latent function jointly at m configurations, (n, m): see :meth:`Posterior.sample`.

        Every draw takes a random draw of the mixture, hence its kernel and its hyperparameters.
        """
        n = check_integer("n", n)
        seed = check_integer("seed", seed, minimum=0)
        rng = np.random.default_rng(seed)
        new = self.encoder.encode(configs, other_columns=True)
        rows = self._rows(self.n_draws)
        part = np.repeat(np.arange(len(rows)), [len(some) for some in rows])
        drawn = rng.integers(self.n_draws, size=n)
        values = np.empty((n, len(new)))
        for k, posterior in enumerate(self.posteriors):
            mine = part[drawn] == k
            if mine.any():
                values[mine] = posterior.sample_of_rows(new, np.concatenate(rows)[drawn[mine]], rng)
        return values

    def parts_of(self, n_draws: int) -> list[tuple[Posterior, NDArray[np.intp]]]:
        """Return the parts with the rows of their draws among at most ``n_draws`` of the mixture."""
        rows = self._rows(self._at_most(n_draws))
        return [(one, some) for one, some in zip(self.posteriors, rows, strict=True) if len(some)]

    def predictor(self, n_draws: int | None = None) -> StackedPredictor:
        """Return a predictor from at most ``n_draws`` draws (all by default), in proportion to the weights."""
        rows = self._rows(self._at_most(n_draws))
        return StackedPredictor.of([one.predictor_of_rows for one in self.posteriors], rows)

    def chains(self, n_draws: int) -> list[Chains]:
        """Return the chains of each part among the draws of a predictor that has ``n_draws`` of them.

        A draw that occurs several times counts once; chains are cut to the length of the shortest of a part, or joined
        if that has fewer than four draws.
        """
        found = []
        first = 0
        for posterior, rows in zip(self.posteriors, self._rows(n_draws), strict=True):
            different, position = np.unique(rows, return_index=True)
            of_chain = different // (posterior.n_draws // posterior.n_chains)
            groups = [first + position[of_chain == chain] for chain in range(posterior.n_chains)]
            if (shortest := min(map(len, groups))) < _FEWEST_OF_CHAIN:
                groups = [first + position]
                shortest = len(position)
            if len(rows):
                found.append(Chains(len(rows) / n_draws, np.stack([group[:shortest] for group in groups])))
            first += len(rows)
        return found

    def check(self) -> Diagnostics:
        """Return the worst diagnostics of the parts with a positive weight.

        ``ok`` needs all of them to pass; each message names its kernel.
        """
        used = [(name, one.check()) for (name, w), one in zip(self.weights.items(), self.posteriors, strict=True) if w]
        checks = [check for _, check in used]
        points = len(self.posteriors) > 1 and any(one.n_draws < FEWEST_DRAWS for one in self.posteriors)
        notes = ("weights from point estimates, whose hyperparameters have seen each observation",) * points
        shape_limits = [check.limits["loo_pareto_k_max"] for check in checks if "loo_pareto_k_max" in check.limits]
        return Diagnostics(
            rhat_max=_worst(max, (check.rhat_max for check in checks)),
            ess_bulk_min=_worst(min, (check.ess_bulk_min for check in checks)),
            ess_tail_min=_worst(min, (check.ess_tail_min for check in checks)),
            divergences=sum(check.divergences for check in checks),
            max_treedepth_hits=sum(check.max_treedepth_hits for check in checks),
            ebfmi_min=_worst(min, (check.ebfmi_min for check in checks)),
            pareto_k=_worst(max, (check.pareto_k for check in checks)),
            ok=all(check.ok for check in checks),
            messages=tuple(f"{name}: {message}" for name, check in used for message in check.messages),
            limits={"loo_pareto_k_max": min(shape_limits)} if shape_limits else {},
            loo_pareto_k_max=_worst(max, (check.loo_pareto_k_max for check in checks)),
            loo_influential=max(check.loo_influential for check in checks),
            kernel_notes=(*notes, *(f"{name}: {note}" for name, check in used for note in check.kernel_notes)),
        )

    def loo(self) -> xr.DataArray:
        """Return the leave-one-out log predictive densities of the mixture, in the user's units.

        The density of an observation is the weighted mean of those of the parts. The weights were chosen with all
        observations, so the sum is too large by a little: by about half a unit for each weight beyond the first.

        Returns
        -------
        (n,) DataArray
            As of :meth:`Posterior.loo`; ``pareto_k`` and its limit are the worst of the parts with a positive weight,
            NaN for point estimates.
        """
        used = self._weights > 0
        scores = [one for one, w in zip(self._scores, used, strict=True) if w]
        elpd = logsumexp([one.elpd for one in scores], axis=0, b=self._weights[used, None])
        return xr.DataArray(
            elpd,
            dims="observation",
            coords={"pareto_k": ("observation", np.max([one.pareto_k for one in scores], axis=0))},
            name="elpd_loo",
            attrs={
                "elpd": float(elpd.sum()),
                "se": float(np.sqrt(len(elpd) * np.var(elpd))),
                "pareto_k_limit": float(np.min([one.limit for one in scores])),
            },
        )

    def save(self, folder: str | Path, format: Format = "netcdf") -> Path:
        """Write ``stack.json`` with weights and messages, and a folder for each part as by :meth:`Posterior.save`.

        Raises
        ------
        DataError, StorageError
            As of :meth:`Posterior.save`.
        """
        path = Path(folder)
        parts = []
        for k, (name, posterior) in enumerate(zip(self.weights.index, self.posteriors, strict=True)):
            posterior.save(path / f"part_{k}", format)
            parts.append({"folder": f"part_{k}", "kernel": name, "draws_sha256": posterior.record["draws_sha256"]})
        weights = self._weights.tolist()
        about = {"format": _FORMAT, "weights": weights, "seed": self.seed, "messages": self.messages, "parts": parts}
        try:
            beside = path / f".{_FILE}.new"
            beside.write_text(json.dumps(about, indent=2) + "\n", encoding="utf-8")
            os.replace(beside, path / _FILE)
        except OSError as error:
            raise StorageError(
                f"cannot save the stack to {path}: {error}; make room there, or choose another folder"
            ) from error
        return path

    @classmethod
    def load(cls, folder: str | Path) -> StackedPosterior:
        """Load what :meth:`save` wrote.

        Raises
        ------
        StorageError
            If the folder is not a saved stack or cannot be read.
        """
        path = Path(folder)
        try:
            about = json.loads((path / _FILE).read_text(encoding="utf-8"))
            if about["format"] != _FORMAT:
                raise ValueError(f"its format is {about['format']!r:.80}, this version reads {_FORMAT}")
            posteriors = []
            for k, part in enumerate(about["parts"]):
                posterior = Posterior.load(path / f"part_{k}")
                if posterior.record["draws_sha256"] != part["draws_sha256"]:
                    raise ValueError(f"part_{k} belongs to another stack")
                posteriors.append(posterior)
            return cls(posteriors, about["weights"], about["seed"], [str(message) for message in about["messages"]])
        except StorageError:
            raise
        except Exception as error:  # a damaged file can cause any of them: KeyError, TypeError, RecursionError, ...
            raise StorageError(
                f"{path} is not a readable saved stack: {type(error).__name__}: {error}; save it again, or restore a "
                "copy of the folder"
            ) from error

    def _at_most(self, n_draws: int | None) -> int:
        return self.n_draws if n_draws is None else min(n_draws, self.n_draws)

    def _rows(self, n_draws: int) -> list[NDArray[np.intp]]:
        """Return the draws of each part among ``n_draws`` of the mixture."""
        numbers = counts(self._weights, n_draws, self._offset)
        return [evenly(one.n_draws, k) for one, k in zip(self.posteriors, numbers, strict=True)]


def _check_same_data(posteriors: Sequence[Posterior]) -> None:
    """Raise `DataError` unless the posteriors are of the same observations."""
    if not posteriors:
        raise DataError("a stack needs at least one posterior; the list is empty")
    first = posteriors[0]
    for k, one in enumerate(posteriors):
        if one.model.likelihood != "gaussian":
            raise DataError(f"posterior {k} has a {one.model.likelihood} likelihood; stacks are of Gaussian ones")
        if not first.encoder.matches(one.encoder):
            raise DataError(f"posterior {k} is of another space, or has other graphs; fit all parts with one encoder")
        same = (
            np.array_equal(first.train.unit_values, one.train.unit_values)
            and np.array_equal(first.train.active, one.train.active)
            and np.array_equal(first.targets.y, one.targets.y)
            and np.array_equal(first.targets.y_sd, one.targets.y_sd)
            and (first.y_mean, first.y_sd) == (one.y_mean, one.y_sd)
        )
        if not same:
            raise DataError(
                f"posterior {k} is of other observations than posterior 0 ({len(one.train)} and {len(first.train)}), "
                "or in another order or direction; fit all parts to the same configurations and values"
            )


def _checked(weights: ArrayLike, k: int) -> FloatArray:
    values = np.array(weights, dtype=np.float64)
    if values.shape != (k,) or not np.all(values >= 0) or not abs(values.sum() - 1) <= _SUM:
        raise DataError(f"{k} weights must be at least 0 and have the sum 1, got {weights!r:.200}")
    return values


def _labels(posteriors: Sequence[Posterior]) -> list[str]:
    """Return the names of the kernels; repeated ones are numbered, for example those with and without a warp."""
    names = [one.kernel.short_name for one in posteriors]
    return [f"{name} ({names[: k + 1].count(name)})" if names.count(name) > 1 else name for k, name in enumerate(names)]


def _worst(choose: Any, values: Iterable[float]) -> float:
    """Return the largest or smallest value that is not NaN; NaN if all are."""
    known = [value for value in values if not np.isnan(value)]
    return float(choose(known)) if known else float("nan")
