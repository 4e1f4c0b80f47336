"""Kernels learned from related data, and the free kernels that they are made of."""
