"""Covariance functions: hyperparameters, NumPy twins of the Stan functions, and contracts of the Stan programs."""

from slayr_py.kernels import expressions as expressions
from slayr_py.kernels.base import Hyperparameters, Kernel
from slayr_py.kernels.base_kernels import checked_order as checked_order, matern_correlation as matern_correlation
from slayr_py.kernels.contracts import StanValue as StanValue
from slayr_py.kernels.expressions.composite import (
    MOST_LEAVES as MOST_LEAVES,
    Composite,
    Planned as Planned,
    as_composite as as_composite,
)
from slayr_py.kernels.expressions.pairs import Pairs as Pairs
from slayr_py.kernels.expressions.periodogram import highest_peaks as highest_peaks
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
from slayr_py.kernels.learned import free_kernels as free
from slayr_py.kernels.learned.enumeration import moment_features as moment_features
from slayr_py.kernels.learned.free_kernels import (
    FreeKernel as FreeKernel,
    SquaredExponential as SquaredExponential,
    checked_lengthscale as checked_lengthscale,
    from_family as from_family,
)
from slayr_py.kernels.learned.moments import MomentFeatures as MomentFeatures
from slayr_py.kernels.learned.origins import (
    Origin as Origin,
    binary_of as binary_of,
    origin_of as origin_of,
    radius_of as radius_of,
)
from slayr_py.kernels.learned.power_series import PowerSeries as PowerSeries
from slayr_py.kernels.learned.pretrained import Pretrained
from slayr_py.kernels.learned.pretrained_arguments import ranges_of as ranges_of
from slayr_py.kernels.matern import Matern
from slayr_py.kernels.mixed.frequency_modulated import FrequencyModulated
from slayr_py.kernels.mixed.separable import Separable
from slayr_py.kernels.prior import Prior
from slayr_py.kernels.priors import (
    Beta,
    Dirichlet,
    Gamma,
    HalfNormal,
    InverseGamma,
    LogNormal,
    Normal,
    fixed_prior as fixed_prior,
    prior_families as prior_families,
    prior_from_dict as prior_from_dict,
)
from slayr_py.kernels.registry import auto_reason, from_name, names, program_contracts as program_contracts
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
