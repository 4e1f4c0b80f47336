"""Fitting Gaussian processes with Stan: runs, posteriors, predictions, diagnostics, records."""

from slayr_py.inference import temporary as temporary  # before anything imports cmdstanpy
from slayr_py.inference.calibration import Calibration, calibrate
from slayr_py.inference.diagnostics import Diagnostics
from slayr_py.inference.gaussian_process import GaussianProcess
from slayr_py.inference.posterior import Posterior
from slayr_py.inference.prediction import Prediction
from slayr_py.inference.replay import Replay, replay, replay_folder
from slayr_py.inference.start import WarmStart

__all__ = [
    "Calibration",
    "Diagnostics",
    "GaussianProcess",
    "Posterior",
    "Prediction",
    "Replay",
    "WarmStart",
    "calibrate",
    "replay",
    "replay_folder",
]
