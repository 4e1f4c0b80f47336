"""Average posteriors of several kernels: weights from leave-one-out, the mixture, and its fit."""

from slayr_py.inference.stacking.gaussian_process import StackedGaussianProcess, stack_posteriors
from slayr_py.inference.stacking.posterior import StackedPosterior
from slayr_py.inference.stacking.predictor import StackedPredictor
from slayr_py.inference.stacking.weights import stacking_weights

__all__ = ["StackedGaussianProcess", "StackedPosterior", "StackedPredictor", "stack_posteriors", "stacking_weights"]
