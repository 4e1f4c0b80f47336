"""Fit Gaussian processes with Stan: models, runs, posteriors, predictions, diagnostics, records."""

from slayr_py.inference.diagnostics.arviz_bridge import save_plot, standard_error
from slayr_py.inference.diagnostics.checks import CHECKS, INFLUENTIAL, Check, Diagnostics, reason
from slayr_py.inference.functions import DrawnFunctions as DrawnFunctions, Exact as Exact, draw_functions
from slayr_py.inference.gaussian_process import GaussianProcess
from slayr_py.inference.log_sum_exp import log_sum_exp
from slayr_py.inference.mixture import worst_of
from slayr_py.inference.model import NOISE_FLOOR, AutoWarp, Model, Warp
from slayr_py.inference.modes.laplace import find_mode, hessian, laplace_draws, laplace_evidence
from slayr_py.inference.modes.likelihood import Targets, recent_error
from slayr_py.inference.modes.marginal import ExactMarginal, Marginal
from slayr_py.inference.modes.normal_coordinates import NormalCoordinates
from slayr_py.inference.modes.sparse_bound import SparseMarginal, inducing_points
from slayr_py.inference.named_priors import Priors as Priors, given_priors as given_priors
from slayr_py.inference.normal import (
    SQRT_2PI,
    TAIL,
    bracket_series,
    expected_positive_part,
    hazard,
    log_cdf,
    log_h,
    log_h_over_phi,
    log_interval,
    log_mills,
    log_phi,
    mills,
    scaled,
)
from slayr_py.inference.observed import Observed, check_targets, observe, standardised
from slayr_py.inference.posterior import Posterior
from slayr_py.inference.prediction.blocks import BLOCK
from slayr_py.inference.prediction.comparison import FrontGradient
from slayr_py.inference.prediction.components import Components, split_into_components
from slayr_py.inference.prediction.distribution import Prediction, mixture_moments
from slayr_py.inference.prediction.draws import Chains
from slayr_py.inference.prediction.kernel_predictor import KernelPredictor
from slayr_py.inference.prediction.predictor import Moments, Predictor
from slayr_py.inference.records.record import array_digest
from slayr_py.inference.replaying import Replay, posterior_again, recorded_model, replay
from slayr_py.inference.sampling.cold_starts import LITTLE_NOISE, quarter_of_period
from slayr_py.inference.sampling.ladder import AbandonedAttempt, Attempt, Outcome
from slayr_py.inference.sampling.methods import METHODS
from slayr_py.inference.sampling.nuts import LARGEST_GROWTH
from slayr_py.inference.sampling.options import FitKeywords, FitOptions, Method
from slayr_py.inference.sampling.programs import build, check_programs, likelihood_in_use
from slayr_py.inference.sampling.seeds import as_stan_seed
from slayr_py.inference.sampling.stan_export import export_stan
from slayr_py.inference.sampling.warm_start import WarmStart
from slayr_py.inference.sensitivity.sobol_indices import importance
from slayr_py.inference.stack_fit import part_stream
from slayr_py.inference.stacking.reasons import failure, unreliability
from slayr_py.inference.validation.calibration import Calibration, calibrate
from slayr_py.inference.validation.kernel_check import check_kernel
from slayr_py.inference.warp import HalfLine, normal_form, unwarped, warp_range, warped

__all__ = [
    "Calibration",
    "Diagnostics",
    "FitOptions",
    "GaussianProcess",
    "Posterior",
    "Prediction",
    "Replay",
    "WarmStart",
    "calibrate",
    "check_kernel",
    "export_stan",
    "importance",
    "inducing_points",
    "replay",
]
