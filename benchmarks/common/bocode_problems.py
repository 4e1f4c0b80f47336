"""Design problems, laboratory data and tuning problems from the package `bocode`, with and without constraints.

Lists of values are categories in the synthetic and combinatorial problems. Elsewhere they are grids, such as the gauges
of sheet metal, and become integers that count the grid. The package maximises; here its values have the other sign.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from ConfigSpace import Categorical, ConfigurationSpace, Float, Integer

from benchmarks.common.problems import Problem

UNCONSTRAINED = (
    *("Ackley5Mixed", "BraninCategorical", "BraninLVGP", "GoldsteinLVGP", "GoldsteinMixed", "HartmannCat"),
    *("MixedAckley", "Rosenbrock5Mixed", "ShekelMixed", "StyblinskiTangMixed", "StyblinskiTangCat"),
    *("AckleyCat", "RastriginCat", "SchwefelCat", "PestControl"),
    *("Allison", "Borehole", "ColumnBuckling", "EulerBeamMixed", "GearTrain", "MiniAeroWing", "Wing"),
    *("AgNP", "AutoAM", "CrossedBarrel", "P3HT", "Perovskite"),
    *("LCBenchAdult", "LCBenchKc1", "HPOB_5970_49", "HPOB_5971_10093", "HPOB_6767_31", "HPOB_7609_9967"),
)
CONSTRAINED = (
    *("PressureVessel", "CompressionSpring", "SpeedReducer", "HelicalSpring", "ReinforcedConcreteBeam", "ThreeTruss"),
    *("SteppedCantileverBeam", "WeldedBeamSO", "WeldedBeamCategorical", "Car", "SatelliteDesign", "Sellar"),
    *("ConstrainedAckley2D", "GKXWC1", "GKXWC2", "JLH1", "JLH2"),
)
"""Problems with one objective, constraints and at most 11 parameters; near duplicates are left out."""

_WITH_CATEGORIES = ("synthetic_mixed", "combinatorial")  # subpackages


@lru_cache(maxsize=8)
def _open(name: str) -> Any:
    import bocode

    return bocode.get_problem(name)()


@dataclass(frozen=True)
class Design:
    """A problem of the package, which is opened where it is evaluated."""

    name: str

    def __call__(self, config: Mapping[str, Any]) -> float:
        return -float(self._evaluate(config)[0][0, 0])

    def constraints(self, config: Mapping[str, Any]) -> dict[str, float]:
        """Return the values of the constraints by name; they hold where they are not positive."""
        values = self._evaluate(config)[1][0]
        return {f"c{i}": float(value) for i, value in enumerate(values, start=1)}

    def _evaluate(self, config: Mapping[str, Any]) -> Any:
        import torch

        return _open(self.name).evaluate(torch.tensor([self.row(config)], dtype=torch.float64))

    def row(self, config: Mapping[str, Any]) -> list[float]:
        """Return the values of all parameters of the package's problem."""
        row = []
        for i, kind in enumerate(self._kinds(), start=1):
            listed = not isinstance(kind, str)
            row.append(float(kind[config.get(f"x{i}", 0)] if listed else config[f"x{i}"]))
        return row

    def space(self) -> ConfigurationSpace:
        """Return the space; parameters with a single value are left out."""
        categories = any(part in type(_open(self.name)).__module__ for part in _WITH_CATEGORIES)
        space = ConfigurationSpace()
        bounds = [sorted(pair) for pair in _open(self.name).bounds]  # one of SpeedReducer is the wrong way round
        for i, (kind, (lower, upper)) in enumerate(zip(self._kinds(), bounds, strict=True), start=1):
            if kind == "continuous":
                space.add(Float(f"x{i}", (float(lower), float(upper))))
            elif kind == "integer":
                space.add(Integer(f"x{i}", (int(np.ceil(lower)), int(np.floor(upper)))))
            elif len(kind) > 1:
                levels = range(len(kind))
                space.add(Categorical(f"x{i}", [*levels]) if categories else Integer(f"x{i}", (0, len(kind) - 1)))
        return space

    def _kinds(self) -> list[Any]:
        """Return "continuous", "integer" or the sorted values of each parameter."""
        return [kind if isinstance(kind, str) else sorted(kind) for kind in _open(self.name).resolved_variable_types()]

    def minimum(self) -> float:
        """Return the known minimum; NaN if the package has none."""
        optimum = _open(self.name).optimum
        return float("nan") if optimum is None else float(np.ravel(np.asarray(optimum))[0])


def designs(names: Iterable[str]) -> dict[str, Problem]:
    """Return problems by name."""
    problems = {}
    for name in names:
        design = Design(name)
        constraints = design.constraints if _open(name).num_constraints else None
        problems[name] = Problem(design.space(), design, design.minimum(), constraints=constraints)
    return problems
