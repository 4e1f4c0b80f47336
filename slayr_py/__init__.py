"""Bayesian optimisation with fully Bayesian Gaussian processes in Stan.

``help(slayr_py.minimize)`` describes the optimisation loop, ``slayr --help`` the command line.
Submodules load on first use, so that the import of the package is fast.
"""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from slayr_py.version import __version__ as __version__

if TYPE_CHECKING:
    from slayr_py import acquisition, errors, inference, kernels, search, sklearn, space, study, svm, toolchain
    from slayr_py.errors import (
        CompileError,
        DataError,
        EnqueuedError,
        InferenceError,
        NotFiniteError,
        ObjectiveError,
        SlayrError,
        SpaceError,
        StorageError,
        ToolchainError,
    )
    from slayr_py.inference import (
        Diagnostics,
        GaussianProcess,
        Posterior,
        Prediction,
    )
    from slayr_py.kernels import Beta, Dirichlet, Gamma, HalfNormal, InverseGamma, LogNormal, Normal, stack
    from slayr_py.study import Prune, Regret, Result, maximize, minimize

__all__ = [
    "Beta",
    "CompileError",
    "DataError",
    "EnqueuedError",
    "Diagnostics",
    "Dirichlet",
    "GaussianProcess",
    "InferenceError",
    "Gamma",
    "HalfNormal",
    "InverseGamma",
    "LogNormal",
    "Normal",
    "NotFiniteError",
    "ObjectiveError",
    "Posterior",
    "Prediction",
    "Prune",
    "Regret",
    "Result",
    "SlayrError",
    "SpaceError",
    "StorageError",
    "ToolchainError",
    "acquisition",
    "errors",
    "inference",
    "kernels",
    "maximize",
    "minimize",
    "search",
    "sklearn",
    "space",
    "stack",
    "study",
    "svm",
    "toolchain",
]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'slayr_py' has no attribute {name!r}")
    if find_spec(f"slayr_py.{name}") is not None:
        return import_module(f"slayr_py.{name}")
    # From the bottom to the top: a room imports those below it, so the order imports nothing that is not needed.
    rooms = map(import_module, ("slayr_py.errors", "slayr_py.kernels", "slayr_py.inference", "slayr_py.study"))
    value = next(getattr(room, name) for room in rooms if hasattr(room, name))
    globals()[name] = value  # Python looks here first the next time
    return value


def __dir__() -> list[str]:
    return __all__
