"""Importance of parameters: Sobol indices of functions drawn from a posterior."""

from slayr_py.inference.sensitivity.importance import importance

__all__ = ["importance"]
