"""Results and initial designs of Oh et al. (2021), supplement, sections 5.1 to 5.5.

The rows are methods: GPs with point estimates whose kernels modulate frequencies (Mod), or multiply (Prod) or add (Add)
an RBF kernel and a graph kernel, regularised Laplacian (Lap) or diffusion (Dif); and other samplers.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from ConfigSpace import ConfigurationSpace
from ConfigSpace.hyperparameters import FloatHyperparameter, OrdinalHyperparameter

PUBLISHED = {
    "func2c": {
        "ModLap": (-0.2063, 0.0000),
        "ProdLap": (-0.2060, 0.0001),
        "AddLap": (-0.1669, 0.0127),
        "ModDif": (-0.0662, 0.0463),
        "ProdDif": (-0.2060, 0.0002),
        "AddDif": (-0.1167, 0.0472),
        "CoCaBO-0.0": (-0.1594, 0.0130),
        "CoCaBO-0.5": (-0.2025, 0.0018),
        "CoCaBO-1.0": (-0.1861, 0.0090),
        "TPE": (-0.1917, 0.0053),
        "SMAC": (0.0060, 0.0387),
    },
    "func3c": {
        "ModLap": (-0.7215, 0.0004),
        "ProdLap": (-0.7213, 0.0005),
        "AddLap": (-0.3156, 0.1125),
        "ModDif": (-0.0977, 0.0742),
        "ProdDif": (-0.7100, 0.0106),
        "AddDif": (-0.3979, 0.1555),
        "CoCaBO-0.0": (-0.6730, 0.0274),
        "CoCaBO-0.5": (-0.7202, 0.0016),
        "CoCaBO-1.0": (-0.7139, 0.0051),
        "TPE": (-0.4068, 0.1204),
        "SMAC": (0.1194, 0.0723),
    },
    "ackley5c": {
        "ModLap": (0.0186, 0.0057),
        "ProdLap": (0.0177, 0.0038),
        "AddLap": (0.0042, 0.0018),
        "ModDif": (0.0008, 0.0003),
        "ProdDif": (0.0152, 0.0044),
        "AddDif": (0.0040, 0.0015),
        "CoCaBO-0.0": (1.4986, 0.2012),
        "CoCaBO-0.5": (1.3720, 0.2110),
        "CoCaBO-1.0": (1.8114, 0.2168),
        "TPE": (1.8601, 0.1248),
        "SMAC": (2.3809, 0.1648),
    },
    "nusvr": {
        "ModLap": (4.1864, 0.0015),
        "ProdLap": (4.1856, 0.0012),
        "AddLap": (4.5600, 0.2014),
        "ModDif": (4.1876, 0.0012),
        "ProdDif": (4.1857, 0.0017),
        "AddDif": (4.9463, 0.4960),
        "CoCaBO-0.0": (4.4122, 0.1703),
        "CoCaBO-0.5": (4.1957, 0.0040),
        "CoCaBO-1.0": (4.1958, 0.0037),
        "TPE": (4.3986, 0.1632),
        "SMAC": (4.7588, 0.1414),
    },
    "xgboost": {
        "ModLap": (0.1038, 0.0003),
        "ProdLap": (0.1044, 0.0001),
        "AddLap": (0.1048, 0.0007),
        "ModDif": (0.1071, 0.0013),
        "ProdDif": (0.1045, 0.0003),
        "AddDif": (0.1046, 0.0001),
        "CoCaBO-0.0": (0.1184, 0.0062),
        "CoCaBO-0.5": (0.1079, 0.0010),
        "CoCaBO-1.0": (0.1086, 0.0008),
        "TPE": (0.1084, 0.0007),
        "SMAC": (0.1215, 0.0045),
    },
}
"""Mean and standard error of the best value after 200 evaluations, over five runs.

The values of "xgboost" are errors on Fashion-MNIST, those of the suite are errors on small images of digits.
"""

N_RUNS = 5
N_DESIGN = 10

_ORDER = {
    "func2c": ("x1", "x2", "h1", "h2"),
    "func3c": ("x1", "x2", "h1", "h2", "h3"),
    "ackley5c": ("x1", "h1", "h2", "h3", "h4", "h5"),
    "nusvr": ("C", "tol", "nu", "kernel", "gamma", "shrinking"),
    "xgboost": ("eta", "gamma", "subsample", "lambda", "max_depth", "booster", "grow_policy", "objective"),
}
"""Parameters in the order of the authors' program, on which their designs depend."""


def published_design(problem: str, space: ConfigurationSpace, run: int) -> list[dict[str, Any]]:
    """Return the ten initial configurations of run 0, ..., 4, as the authors' public program draws them.

    A generator that is seeded by the run draws one seed for each parameter, and a generator of this seed draws the ten
    values. Numbers are rounded to single precision; logarithmic ones are drawn as decimal logarithms.

    Raises
    ------
    KeyError
        The paper has no results for the problem.
    """
    names = _ORDER[problem]
    seeds = np.random.RandomState(run).randint(0, 2**31 - 2, len(names))  # noqa: NPY002 (the paper's designs)
    columns = [_values(space[name], seed) for name, seed in zip(names, seeds, strict=True)]
    return [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]


def _values(parameter: Any, seed: int) -> list[Any]:
    generator = np.random.RandomState(seed)  # noqa: NPY002 (the paper's designs)
    if not isinstance(parameter, FloatHyperparameter):
        levels = parameter.sequence if isinstance(parameter, OrdinalHyperparameter) else parameter.choices
        return [levels[index] for index in generator.randint(0, len(levels), N_DESIGN)]
    bounds = np.array([parameter.lower, parameter.upper])
    low, high = np.log10(bounds) if parameter.log else bounds
    drawn = generator.uniform(low, high, N_DESIGN).astype(np.float32).astype(np.float64)
    values = 10**drawn if parameter.log else drawn
    return [float(value) for value in np.clip(values, *bounds)]
