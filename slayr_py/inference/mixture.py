"""Combine the draws of one or more fits: all draws of a single fit, or a weighted mixture of several fits.

The number of draws of a part is proportional to its weight. All draws of the mixture therefore have equal weights, and
predictions and acquisitions treat them like draws of a single fit.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from scipy.special import logsumexp

from slayr_py.arguments import check_integer
from slayr_py.display import Summary
from slayr_py.errors import DataError, StorageError
from slayr_py.inference.diagnostics.arviz_bridge import LeaveOneOut
from slayr_py.inference.diagnostics.checks import CHECKS, Diagnostics
from slayr_py.inference.part import FEWEST_DRAWS, Part
from slayr_py.inference.prediction.distribution import common_pivot
from slayr_py.inference.prediction.draws import Chains, counts, evenly, thinned
from slayr_py.inference.prediction.mixture_predictor import MixturePredictor
from slayr_py.inference.prediction.predictor import Predictor
from slayr_py.inference.records.saved import PART, STACK_FILE, Format, check_form, replacement
from slayr_py.inference.stacking.weights import stacking_weights
from slayr_py.space import FloatArray

_FORMAT = 1  # of the file; other formats are refused
_FEWEST = 100  # draws of a mixture, so that weights of point estimates are represented to a percent
_FEWEST_OF_CHAIN = 4  # draws of a chain that are needed for a Monte Carlo error
_SUM = 1e-9  # accepted rounding error of the sum of weights


class Alone:
    """All draws of a single fit, with the same attributes and methods as `Weighted`."""

    messages: tuple[str, ...] = ()

    def __init__(self, part: Part) -> None:
        self.part = part
        self.parts = (part,)
        self.weights = np.ones(1)
        self.seed = int(part.record["arguments"]["seed"])
        self.n_draws = part.n_draws
        self.n_chains = part.n_chains

    def rows(self, n_draws: int) -> list[NDArray[np.intp]]:
        """Return the rows of at most ``n_draws`` draws, the same number from every chain."""
        return [thinned(self.n_draws, self.n_chains, n_draws)]

    def predictor(self, n_draws: int) -> Predictor:
        """Return a predictor from at most ``n_draws`` draws."""
        return self.part.predictor(self.rows(n_draws)[0])

    def chains(self, n_draws: int) -> list[Chains]:
        """Return the chains of the draws of a predictor that has ``n_draws`` of them."""
        return [Chains(1.0, np.arange(n_draws).reshape(self.n_chains, -1))]

    def check(self) -> Diagnostics:
        """Return the diagnostics of the fit."""
        return self.part.diagnostics

    def leave_one_out(self) -> LeaveOneOut:
        """Return the leave-one-out densities of the observations, in the user's units."""
        return self.part.psis()

    def summary(self) -> Summary:
        """Return a short description with a table of the hyperparameters."""
        return self.part.summary()

    def save(self, path: Path, form: Format) -> None:
        """Write the fit into a folder."""
        self.part.save(path, form)


class Weighted:
    """Draws of several fits to the same observations; each contributes in proportion to its weight.

    Parameters
    ----------
    parts : sequence of Part
    weights : (k,) array_like or None
        None computes stacking weights.
    seed : int
        Fixes the systematic resampling of the draws.
    messages : sequence of str
        Kernels that were left out or fitted again, with reasons.
    """

    n_chains = 1  # the parts do not share chains; `chains` returns the chains of each part

    def __init__(self, parts: Sequence[Part], weights: ArrayLike | None, seed: int, messages: Sequence[str]) -> None:
        self.parts = tuple(parts)
        _check_same_data(self.parts)
        self.seed = check_integer("seed", seed, minimum=0)
        self.messages = tuple(messages)
        if weights is None:
            weights = stacking_weights(np.column_stack([part.leave_one_out.elpd for part in self.parts]))
        self.weights = _check_weights(weights, len(self.parts))
        self._offset = float(np.random.default_rng(self.seed).random())
        used = self.weights > 0
        available = np.array([part.n_draws for part in self.parts])
        # The largest number for which no draw is used twice.
        self.n_draws = max(_FEWEST, int(np.min(available[used] / self.weights[used])))

    def rows(self, n_draws: int) -> list[NDArray[np.intp]]:
        """Return the draws of each part among at most ``n_draws`` of the mixture."""
        numbers = counts(self.weights, min(n_draws, self.n_draws), self._offset)
        return [evenly(part.n_draws, k) for part, k in zip(self.parts, numbers, strict=True)]

    def predictor(self, n_draws: int) -> Predictor:
        """Return a predictor from at most ``n_draws`` draws, in proportion to the weights."""
        return MixturePredictor.of([part.predictor for part in self.parts], self.rows(n_draws))

    def chains(self, n_draws: int) -> list[Chains]:
        """Return the chains of each part among the draws of a predictor that has ``n_draws`` of them.

        Repeated draws count once. All chains of a part are cut to the length of its shortest chain; they are joined if
        the shortest chain has fewer than four draws.
        """
        chains = []
        first = 0
        for part, rows in zip(self.parts, self.rows(n_draws), strict=True):
            distinct, position = np.unique(rows, return_index=True)
            chain_numbers = distinct // (part.n_draws // part.n_chains)
            groups = [first + position[chain_numbers == chain] for chain in range(part.n_chains)]
            if (shortest := min(map(len, groups))) < _FEWEST_OF_CHAIN:
                groups = [first + position]
                shortest = len(position)
            if len(rows):
                chains.append(Chains(len(rows) / n_draws, np.stack([group[:shortest] for group in groups])))
            first += len(rows)
        return chains

    def check(self) -> Diagnostics:
        """Return the worst diagnostics of the parts with a positive weight; each message names its kernel."""
        used = {
            name: part.diagnostics
            for name, part, w in zip(names_of(self.parts), self.parts, self.weights, strict=True)
            if w
        }
        points = len(self.parts) > 1 and any(part.n_draws < FEWEST_DRAWS for part in self.parts)
        notes = ("weights from point estimates, whose hyperparameters have seen each observation",) * points
        worst = worst_of(used)
        return replace(worst, kernel_notes=(*notes, *worst.kernel_notes))

    def leave_one_out(self) -> LeaveOneOut:
        """Return the leave-one-out densities of the mixture, in the user's units."""
        used = self.weights > 0
        parts = [part.leave_one_out for part, w in zip(self.parts, used, strict=True) if w]
        elpd = logsumexp([loo.elpd for loo in parts], axis=0, b=self.weights[used, None])
        shapes = np.max(np.stack([loo.pareto_k for loo in parts]), axis=0)
        return LeaveOneOut(np.asarray(elpd), shapes, float(np.min([loo.pareto_k_limit for loo in parts])))

    def summary(self) -> Summary:
        """Return a short description with a table of the kernels."""
        checks = self.check()
        k = len(self.parts)
        lines = [
            f"Stack of posteriors of Gaussian processes: {k} kernel{'s' * (k > 1)}, "
            f"{len(self.parts[0].train)} observations",
            f"{self.n_draws} draws: {checks} {'ok' if checks.ok else 'NOT OK'}",
            *checks.messages,
            *self.messages,
        ]
        methods = [part.record["arguments"]["method"] for part in self.parts]
        elpd = [_elpd(part) for part in self.parts]
        table = pd.DataFrame({"kernel": names_of(self.parts), "weight": self.weights, "elpd": elpd, "method": methods})
        return Summary("\n".join(lines), table)

    def save(self, path: Path, form: Format) -> None:
        """Write ``stack.json`` with weights and messages, and a folder for each part."""
        check_form(form)
        parts = {f"{PART}{k}": part for k, part in enumerate(self.parts)}
        content: dict[str, Any] = {
            "format": _FORMAT,
            "weights": self.weights.tolist(),
            "seed": self.seed,
            "messages": self.messages,
            "parts": [],
        }
        try:
            with replacement(path, (STACK_FILE, *parts)) as temporary:
                for (folder, part), name in zip(parts.items(), names_of(self.parts), strict=True):
                    part.save(temporary / folder, form)
                    entry = {"folder": folder, "kernel": name, "draws_sha256": part.record["draws_sha256"]}
                    content["parts"].append(entry)
                (temporary / STACK_FILE).write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")
        except OSError as error:
            raise StorageError(
                f"cannot save the stack to {path}: {error}; make room there, or choose another folder"
            ) from error

    @classmethod
    def load(cls, path: Path) -> Weighted:
        """Load what :meth:`save` wrote."""
        try:
            content = json.loads((path / STACK_FILE).read_text(encoding="utf-8"))
            if content["format"] != _FORMAT:
                raise ValueError(f"its format is {content['format']!r:.80}, this version reads {_FORMAT}")
            parts = []
            for k, entry in enumerate(content["parts"]):
                part = Part.load(path / f"{PART}{k}")
                if part.record["draws_sha256"] != entry["draws_sha256"]:
                    raise ValueError(f"{PART}{k} belongs to another stack")
                parts.append(part)
            messages = [str(message) for message in content["messages"]]
            return cls(parts, content["weights"], content["seed"], messages)
        except StorageError:
            raise
        except Exception as error:  # a damaged file can cause any of them: KeyError, TypeError, RecursionError, ...
            raise StorageError(
                f"{path} is not a readable saved stack: {type(error).__name__}: {error}; save it again, or restore a "
                "copy of the folder"
            ) from error


Mixture = Alone | Weighted
"""Draws of a posterior and their diagnostics."""


def names_of(parts: Sequence[Part]) -> list[str]:
    """Return the names of the kernels; repeated ones are numbered, for example those with and without a warp."""
    names = [part.model.kernel.short_name for part in parts]
    return [f"{name} ({names[: k + 1].count(name)})" if names.count(name) > 1 else name for k, name in enumerate(names)]


def _elpd(part: Part) -> float:
    """Return the sum of the leave-one-out densities; NaN for a fit without them, which needs a weight of the user."""
    try:
        return float(part.leave_one_out.elpd.sum())
    except DataError:
        return float("nan")


def _check_same_data(parts: Sequence[Part]) -> None:
    """Raise `DataError` unless the parts are fits to the same observations, whose transformations agree."""
    if not parts:
        raise DataError("the list of posteriors is empty; a stack needs at least one")
    first = parts[0]
    for k, part in enumerate(parts):
        if part.model.likelihood != "gaussian":
            raise DataError(
                f"posterior {k} has a {part.model.likelihood} likelihood; use fits with a Gaussian likelihood"
            )
        if not first.model.encoder.matches(part.model.encoder):
            raise DataError(f"posterior {k} has another space or other graphs; fit all parts with the same encoder")
        if not first.model.encoder.forbids_as(part.model.encoder):  # suggestions are made in the first one's space
            raise DataError(f"posterior {k} has other forbidden clauses; fit all parts with the same encoder")
        same = (
            np.array_equal(first.train.unit_values, part.train.unit_values)
            and np.array_equal(first.train.active, part.train.active)
            and np.array_equal(first.targets.y, part.targets.y)
            and np.array_equal(first.targets.errors, part.targets.errors)
            and (first.y_mean, first.y_sd) == (part.y_mean, part.y_sd)
        )
        if not same:
            raise DataError(
                f"posterior {k} has other observations than posterior 0 ({len(part.train)} and {len(first.train)}), "
                "another order or another direction; fit all parts to the same configurations and values"
            )
    common_pivot((part.model.warp != "none", part.targets.pivot) for part in parts)


def _check_weights(weights: ArrayLike, k: int) -> FloatArray:
    values = np.array(weights, dtype=np.float64)
    if values.shape != (k,) or not np.all(values >= 0) or not abs(values.sum() - 1) <= _SUM:
        raise DataError(f"weights are {weights!r:.200}; give {k} numbers that are not negative and add up to 1")
    return values


def worst_of(named: Mapping[str, Diagnostics]) -> Diagnostics:
    """Return the worst diagnostics of several fits; each message has the name of its fit."""
    checks = list(named.values())
    numbers: dict[str, Any] = {
        check.name: check.worst([vars(each)[check.name] for each in checks]) for check in CHECKS.values()
    }
    limits = {}
    for name, check in CHECKS.items():
        if limited := [(vars(each)[name], each.limits[name]) for each in checks if name in each.limits]:
            limits[name] = check.limit_of_all(limited)
    return Diagnostics(
        **numbers,
        ok=all(check.ok for check in checks),
        messages=tuple(f"{name}: {message}" for name, check in named.items() for message in check.messages),
        limits=limits,
        loo_influential=max(check.loo_influential for check in checks),
        kernel_notes=tuple(f"{name}: {note}" for name, check in named.items() for note in check.kernel_notes),
    )
