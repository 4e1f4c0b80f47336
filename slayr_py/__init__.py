"""Bayesian optimisation with fully Bayesian Gaussian processes in Stan.

``help(slayr_py.minimize)`` describes the optimisation loop, ``slayr --help`` the command line.
Submodules load on first use, so that the import of the package is fast.
"""

from __future__ import annotations

import importlib
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
    from slayr_py.study import Regret, Result, minimize

_MODULES = ("acquisition", "errors", "inference", "kernels", "search", "sklearn", "space", "study", "svm", "toolchain")
_NAMES = {
    "CompileError": "errors",
    "DataError": "errors",
    "EnqueuedError": "errors",
    "InferenceError": "errors",
    "NotFiniteError": "errors",
    "ObjectiveError": "errors",
    "SlayrError": "errors",
    "SpaceError": "errors",
    "StorageError": "errors",
    "ToolchainError": "errors",
    "Beta": "kernels",
    "Dirichlet": "kernels",
    "Gamma": "kernels",
    "HalfNormal": "kernels",
    "InverseGamma": "kernels",
    "LogNormal": "kernels",
    "Normal": "kernels",
    "stack": "kernels",
    "Diagnostics": "inference",
    "GaussianProcess": "inference",
    "Posterior": "inference",
    "Prediction": "inference",
    "Regret": "study",
    "Result": "study",
    "minimize": "study",
}

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
    if name in _MODULES:
        return importlib.import_module(f"slayr_py.{name}")
    if name in _NAMES:
        return getattr(importlib.import_module(f"slayr_py.{_NAMES[name]}"), name)
    raise AttributeError(f"module 'slayr_py' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
