"""Covariance functions: hyperparameters, NumPy twins of the Stan functions, and contracts of the Stan programs."""

from slayr_py.kernels import free_kernels as free
from slayr_py.kernels.base import Hyperparameters, Kernel
from slayr_py.kernels.base_kernels import checked_order as checked_order, matern_correlation as matern_correlation
from slayr_py.kernels.composite import (
    MOST_LEAVES as MOST_LEAVES,
    Composite,
    Planned as Planned,
    as_composite as as_composite,
)
from slayr_py.kernels.contracts import CONTRACTS as CONTRACTS, StanValue as StanValue
from slayr_py.kernels.expression import (
    CONSTANT as CONSTANT,
    LEAVES as LEAVES,
    Leaf as Leaf,
    Node as Node,
    Product as Product,
    Sum as Sum,
    add as add,
    canonical as canonical,
    leaves as leaves,
    multiply as multiply,
    parse as parse,
    spell as spell,
)
from slayr_py.kernels.free_kernels import (
    FreeKernel as FreeKernel,
    SquaredExponential as SquaredExponential,
    checked_lengthscale as checked_lengthscale,
    from_family as from_family,
)
from slayr_py.kernels.frequency_modulated import FrequencyModulated
from slayr_py.kernels.hierarchical import Hierarchical
from slayr_py.kernels.hyperparameters import (
    LATENT_SIGNAL as LATENT_SIGNAL,
    MEAN as MEAN,
    NOISE as NOISE,
    SIGNAL as SIGNAL,
    UNIT_NOISE as UNIT_NOISE,
    WARP as WARP,
    Draws as Draws,
    Hyperparameter,
)
from slayr_py.kernels.leaves import STATIONARY as STATIONARY, Pairs as Pairs
from slayr_py.kernels.matern import Matern
from slayr_py.kernels.mixture import Mixture
from slayr_py.kernels.moments import Moments as Moments, moments as moments
from slayr_py.kernels.origins import (
    Origin as Origin,
    binary_of as binary_of,
    origin_of as origin_of,
    radius_of as radius_of,
)
from slayr_py.kernels.periodogram import highest_peaks as highest_peaks
from slayr_py.kernels.power_series import PowerSeries as PowerSeries
from slayr_py.kernels.pretrained import Pretrained, ranges_of as ranges_of
from slayr_py.kernels.priors import (
    Beta,
    Dirichlet,
    Gamma,
    HalfNormal,
    InverseGamma,
    LogNormal,
    Normal,
    Prior,
    families as families,
    fixed as fixed,
    prior_from_dict as prior_from_dict,
)
from slayr_py.kernels.registry import auto_reason, from_name, names
from slayr_py.kernels.separable import Separable
from slayr_py.kernels.stacked import Stack, digest as digest, label as label, stack

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
