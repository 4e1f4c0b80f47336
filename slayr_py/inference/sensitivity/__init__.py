"""Importance of parameters: Sobol indices of functions drawn from a posterior."""
