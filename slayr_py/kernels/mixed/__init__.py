"""Kernels of mixed and conditional spaces: graphs of discrete parameters, and trees of conditions."""
