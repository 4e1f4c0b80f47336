"""Covariance functions: hyperparameters, NumPy twins of the Stan functions, and contracts of the Stan programs."""

from slayr_py.kernels import expressions
from slayr_py.kernels.additive import Additive
from slayr_py.kernels.base import Hyperparameters, Kernel
from slayr_py.kernels.base_kernels import (
    BASES,
    SMALLEST_FACTOR,
    Base,
    by_rq_alpha,
    checked_order,
    correlation,
    matern_correlation,
    matern_with_slope,
    slope,
)
from slayr_py.kernels.contracts import StanValue
from slayr_py.kernels.expressions.composite import MOST_LEAVES, Composable, Composite, Planned
from slayr_py.kernels.expressions.pairs import Pairs
from slayr_py.kernels.expressions.periodogram import explained_share, highest_peaks
from slayr_py.kernels.expressions.plan import Plan
from slayr_py.kernels.half_angles import sine_products
from slayr_py.kernels.hierarchical import Hierarchical
from slayr_py.kernels.hyperparameters import (
    LATENT_SIGNAL,
    MEAN,
    NOISE,
    PIVOT_WARP,
    SIGNAL,
    UNIT_NOISE,
    WARP,
    Draws,
    Hyperparameter,
)
from slayr_py.kernels.learned import free_kernels as free
from slayr_py.kernels.learned.enumeration import MOST_FEATURES, moment_features
from slayr_py.kernels.learned.free_kernels import FreeKernel, SquaredExponential, checked_lengthscale, from_family
from slayr_py.kernels.learned.moments import MomentFeatures
from slayr_py.kernels.learned.origins import Origin, binary_of, origin_of, radius_of
from slayr_py.kernels.learned.power_series import PowerSeries
from slayr_py.kernels.learned.pretrained import Pretrained
from slayr_py.kernels.learned.pretrained_arguments import levels_of, ranges_of
from slayr_py.kernels.matern import Matern
from slayr_py.kernels.mixed.contract import COMBINATIONS, MODULATORS
from slayr_py.kernels.mixed.frequency_modulated import FrequencyModulated
from slayr_py.kernels.mixed.responses import Exponential, Inverse, Powers, Response
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
    fixed_prior,
    prior_families,
    prior_from_dict,
)
from slayr_py.kernels.registry import auto_reason, from_name, names, own_program, program_contracts
from slayr_py.kernels.stacked import Stack, stack
from slayr_py.kernels.stan_kernel import StanKernel

__all__ = [
    "Additive",
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
    "StanKernel",
    "Separable",
    "auto_reason",
    "free",
    "from_name",
    "names",
    "stack",
]
