"""Searches for kernels: recovery of known structure, regression, and their speed."""
