"""Fitting Gaussian processes with Stan: runs, posteriors, predictions, diagnostics, records."""

from slayr_py.inference.diagnostics import Diagnostics
from slayr_py.inference.gaussian_process import GaussianProcess
from slayr_py.inference.posterior import Posterior
from slayr_py.inference.prediction import Prediction
from slayr_py.inference.start import WarmStart

__all__ = ["Diagnostics", "GaussianProcess", "Posterior", "Prediction", "WarmStart"]
