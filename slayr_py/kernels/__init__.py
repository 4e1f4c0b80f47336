"""Covariance functions: hyperparameters, NumPy twins of the Stan functions, and the data their programs take."""

from slayr_py.kernels.base import Hyperparameters, Kernel
from slayr_py.kernels.matern import Matern
from slayr_py.kernels.priors import Beta, LogNormal, Normal, Prior
from slayr_py.kernels.registry import from_name, names

__all__ = ["Beta", "Hyperparameters", "Kernel", "LogNormal", "Matern", "Normal", "Prior", "from_name", "names"]
