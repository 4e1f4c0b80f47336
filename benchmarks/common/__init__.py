"""Test problems, peer packages and study runs that the benchmarks share."""
