"""Validate models: simulation-based calibration, tests of uniformity, cross-validation."""
