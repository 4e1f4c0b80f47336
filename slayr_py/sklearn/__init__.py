"""Estimators with scikit-learn's interface."""

from slayr_py.sklearn.estimator import BayesianGPRegressor

__all__ = ["BayesianGPRegressor"]
