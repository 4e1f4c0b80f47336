"""Covariance functions: hyperparameters, NumPy twins of the Stan functions, and contracts of the Stan programs."""

from slayr_py.kernels import free_kernels as free
from slayr_py.kernels.base import Hyperparameters, Kernel
from slayr_py.kernels.composite import Composite
from slayr_py.kernels.frequency_modulated import FrequencyModulated
from slayr_py.kernels.hierarchical import Hierarchical
from slayr_py.kernels.hyperparameters import Hyperparameter
from slayr_py.kernels.matern import Matern
from slayr_py.kernels.mixture import Mixture
from slayr_py.kernels.pretrained import Pretrained
from slayr_py.kernels.priors import Beta, Dirichlet, Gamma, HalfNormal, InverseGamma, LogNormal, Normal, Prior
from slayr_py.kernels.registry import auto_reason, from_name, names
from slayr_py.kernels.separable import Separable
from slayr_py.kernels.stacked import Stack, stack

__all__ = [
    "Beta",
    "Composite",
    "Dirichlet",
    "FrequencyModulated",
    "Hierarchical",
    "Hyperparameter",
    "Hyperparameters",
    "Kernel",
    "Gamma",
    "HalfNormal",
    "InverseGamma",
    "LogNormal",
    "Matern",
    "Mixture",
    "Normal",
    "Pretrained",
    "Prior",
    "Stack",
    "Separable",
    "auto_reason",
    "free",
    "from_name",
    "names",
    "stack",
]
