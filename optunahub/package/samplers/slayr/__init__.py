"""Bayesian optimisation with a fully Bayesian Gaussian process, fitted with Stan: pip install slayr-py."""

from slayr_py.study import StanGPSampler

__all__ = ["StanGPSampler"]
