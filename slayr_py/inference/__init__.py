"""Fit Gaussian processes with Stan: models, runs, posteriors, predictions, diagnostics, records."""

from slayr_py.inference.diagnostics.checks import Diagnostics
from slayr_py.inference.gaussian_process import GaussianProcess
from slayr_py.inference.posterior import Posterior
from slayr_py.inference.prediction import Prediction
from slayr_py.inference.replay import Replay, replay, replay_folder
from slayr_py.inference.sampling.options import FitOptions
from slayr_py.inference.sampling.warm_start import WarmStart
from slayr_py.inference.sensitivity import importance
from slayr_py.inference.stacking import StackedGaussianProcess, StackedPosterior, stack_posteriors
from slayr_py.inference.validation.calibration import Calibration, calibrate

__all__ = [
    "Calibration",
    "Diagnostics",
    "FitOptions",
    "GaussianProcess",
    "Posterior",
    "Prediction",
    "Replay",
    "StackedGaussianProcess",
    "StackedPosterior",
    "WarmStart",
    "calibrate",
    "importance",
    "replay",
    "replay_folder",
    "stack_posteriors",
]
