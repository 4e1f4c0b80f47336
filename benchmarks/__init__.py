"""Benchmarks of slayr_py; run one with ``python -m benchmarks.<folder>.<name>`` from the top of the repository."""
