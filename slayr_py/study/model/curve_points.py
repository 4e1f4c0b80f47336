"""Points of learning curves as inputs of a kernel: configurations with a step."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from ConfigSpace import Configuration, ConfigurationSpace, Float
from numpy.typing import NDArray
from optuna import Study
from optuna.distributions import BaseDistribution

from slayr_py.errors import SpaceError
from slayr_py.inference import Model
from slayr_py.kernels import NOISE, Composite, LogNormal
from slayr_py.kernels.expressions import CONSTANT, Leaf, add, multiply
from slayr_py.space import Encoded, Encoder, Fixed, FloatArray
from slayr_py.study.storage.curves import MOST_POINTS, Curve, thinned
from slayr_py.study.storage.flat_space import encode_partly, to_space, widest
from slayr_py.study.storage.trials import trial_configuration

STEP = "step"
"""Name of the column of steps, followed by underscores if the space has a parameter of that name."""

CURVE_NOISE = LogNormal(-2.5, 1.0)
"""Prior of the noise: curves are rarely smooth, and `GaussianProcess` has a wider one."""


class NoForecast(Exception):
    """Reason why there is no forecast; ``kind`` names a reason that the user should know of."""

    def __init__(self, reason: str, kind: str = "") -> None:
        super().__init__(reason)
        self.kind = kind


class Points(NamedTuple):
    """Points of curves."""

    rows: Encoded
    """n points, of the joint space."""

    values: FloatArray
    """Shape (n,), minimised."""

    u: FloatArray
    """Shape (n,): steps on the unit interval, 1 for a final value."""

    trials: NDArray[np.int64]
    """Shape (n,): numbers of the trials."""

    @classmethod
    def together(cls, parts: Sequence[Points]) -> Points:
        """Return the points of all parts, at least one."""
        rows = parts[0].rows
        unit_values = np.vstack([part.rows.unit_values for part in parts])
        active = np.vstack([part.rows.active for part in parts])
        joined = (np.concatenate([part[i] for part in parts]) for i in range(1, 4))
        return cls(Encoded(unit_values, active, rows.encoder), *joined)


class JointSpace:
    """Configurations of a space with a step, and the Gaussian process of both.

    Parameters
    ----------
    encoder : Encoder
        Of the configurations.

    Attributes
    ----------
    joint : Encoder
        Of a space without conditions that has the column of steps too. Inactive parameters stay inactive in the arrays.
    model : Model
        With the kernel ``MAT52[x] * (MAT52[step] + C)``.
    """

    def __init__(self, encoder: Encoder) -> None:
        self.encoder = encoder
        step = STEP
        while step in encoder.space:
            step += "_"
        space = ConfigurationSpace()
        for name in encoder.names:
            space.add(encoder.space[name])
        space.add(Float(step, (0.0, 1.0)))
        self.joint = Encoder(space, encoder.requested_graphs)
        over_steps = add(Leaf("MAT52", (step,)), CONSTANT)
        kernel = Composite.from_node(multiply(Leaf("MAT52", encoder.names), over_steps))
        self.model = Model(self.joint, kernel, {NOISE.name: CURVE_NOISE})
        self._places = [self.joint.names.index(name) for name in encoder.names]
        self._step = self.joint.names.index(step)

    def points(self, config: Encoded, u: FloatArray, values: FloatArray, trial: int = 0) -> Points:
        """Return points of the curve of one trial at steps (m,) on the unit interval."""
        return Points(self.rows(config, u), values, u, np.full(len(u), trial))

    def rows(self, configs: Encoded, u: FloatArray) -> Encoded:
        """Return one configuration or m configurations at steps (m,) on the unit interval."""
        values = np.zeros((len(u), len(self.joint.names)))
        active = np.ones(values.shape, dtype=np.bool_)
        values[:, self._places] = configs.unit_values
        active[:, self._places] = configs.active
        values[:, self._step] = u
        return Encoded(values, active, self.joint)


@dataclass
class EncodedTrials:
    """Encoded configurations of the trials of a study; None for a trial that cannot be modelled.

    Attributes
    ----------
    space : JointSpace
    configs : dict of int to Encoded or None
        By the number of the trial.
    key : str
        Distributions of the parameters, if no space is declared.
    open : set of int
        Without a declared space, the numbers of the trials that may still ask for parameters.
    """

    space: JointSpace
    configs: dict[int, Encoded | None] = field(default_factory=dict)
    key: str = ""
    open: set[int] = field(default_factory=set)

    @classmethod
    def declared(cls, known: EncodedTrials | None, encoder: Encoder, study: Study) -> EncodedTrials:
        """Return the trials of a study with a declared space, those that are ``known`` already among them."""
        encoded = known or cls(JointSpace(encoder))
        new: dict[int, Configuration] = {}
        for trial in study.get_trials(deepcopy=False):
            if trial.number in encoded.configs:
                continue
            if (config := trial_configuration(trial, encoder.space)) is not None:
                new[trial.number] = config
            elif trial.state.is_finished():
                encoded.configs[trial.number] = None
        rows = encoder.encode(list(new.values()))
        encoded.configs.update((number, rows[[row]]) for row, number in enumerate(new))
        return encoded

    @classmethod
    def inferred(cls, known: EncodedTrials | None, curves: Sequence[Curve]) -> EncodedTrials:
        """Return trials without a declared space: it has all parameters of the trials, with their widest ranges.

        A parameter is inactive in a trial that lacks it.

        Raises
        ------
        NoForecast
            If no parameter can be modelled.
        """
        joined: dict[str, BaseDistribution] = {}
        for curve in curves:
            for name, distribution in curve.distributions.items():
                if distribution != (wide := joined.setdefault(name, distribution)):
                    joined[name] = widest(wide, distribution)
        varying = {name: distribution for name, distribution in joined.items() if not distribution.single()}
        encoded = known
        key = repr(sorted(varying.items()))
        if encoded is None or encoded.key != key:
            try:
                encoded = cls(JointSpace(Encoder(to_space(varying))), key=key)
            except SpaceError as error:
                raise NoForecast(str(error), "space") from error
        new = [curve for curve in curves if curve.number not in encoded.configs or curve.number in encoded.open]
        rows = encode_partly(encoded.space.encoder, [curve.params for curve in new])
        encoded.configs.update(zip((curve.number for curve in new), rows, strict=True))
        encoded.open = {curve.number for curve in curves if not curve.state.is_finished()}
        return encoded

    def config(self, curve: Curve) -> Encoded | None:
        """Return the configuration of a trial; None if it cannot be modelled."""
        return self.configs.get(curve.number)

    def has(self, curve: Curve, fixed: Fixed | None) -> bool:
        """Return whether a trial has the fixed values."""
        if fixed is None:
            return True
        config = self.config(curve)
        return config is not None and bool(fixed.hold(config)[0])

    def has_new_level(self, curve: Curve, others: Sequence[Curve]) -> bool:
        """Return whether a trial has a level of a categorical parameter that none of some others has."""
        config = self.config(curve)
        known = [each for each in map(self.config, others) if each is not None]
        if config is None or not known:
            return False
        categorical = np.array([d.kind == "categorical" for d in config.encoder.dimensions])
        same = [each.active[0] & (each.unit_values[0] == config.unit_values[0]) for each in known]
        return bool((categorical & config.active[0] & ~np.any(same, axis=0)).any())


class Rows(NamedTuple):
    """Size of a model of curves."""

    points: int
    """Most points of all trials, at least two of each trial."""

    trials: int
    """Most trials: the latest."""


class PointsOfCurves(NamedTuple):
    """Points of the curves of a study."""

    trials: EncodedTrials

    sign: float
    """1 if smaller values are better, else -1."""

    last: float
    """Last step of a complete trial."""

    def known(self, curves: Sequence[Curve]) -> list[Curve]:
        """Return the curves that have a point and can be modelled."""
        return [c for c in curves if self.trials.config(c) is not None and (len(c.steps) or c.final is not None)]

    def of(self, curve: Curve, most: int = MOST_POINTS) -> Points | None:
        """Return at most ``most`` points of a curve; None if it has none or cannot be modelled."""
        return self._together([curve], most) if self.known([curve]) else None

    def of_all(self, curves: Sequence[Curve], rows: Rows) -> Points:
        """Return points of the latest of some `known` curves."""
        latest = curves[-rows.trials :]
        return self._together(latest, min(max(rows.points // len(latest), 2), MOST_POINTS))

    def _together(self, curves: Sequence[Curve], most: int) -> Points:
        """Return at most ``most`` points of each curve.

        The value of a complete trial stands at the last step, in place of what the trial has reported there.
        """
        configs: list[Encoded] = []
        steps: list[FloatArray] = []
        values: list[FloatArray] = []
        for curve in curves:
            config = self.trials.config(curve)
            assert config is not None
            known = self._steps_and_values(curve)
            kept = thinned(known[0], most)
            configs.append(config)
            steps.append(known[0][kept])
            values.append(known[1][kept])
        counts = [len(each) for each in steps]
        unit_values = np.repeat(np.vstack([config.unit_values for config in configs]), counts, axis=0)
        active = np.repeat(np.vstack([config.active for config in configs]), counts, axis=0)
        u = np.log1p(np.concatenate(steps)) / math.log1p(self.last)
        rows = self.trials.space.rows(Encoded(unit_values, active, configs[0].encoder), u)
        numbers = np.repeat([curve.number for curve in curves], counts)
        return Points(rows, self.sign * np.concatenate(values), u, numbers)

    def _steps_and_values(self, curve: Curve) -> tuple[FloatArray, FloatArray]:
        if curve.final is None:
            return curve.steps, curve.values
        end = self.last if curve.last_step is None else min(self.last, curve.last_step)
        before = curve.steps < end
        return np.append(curve.steps[before], self.last), np.append(curve.values[before], curve.final)
