"""Fit Gaussian processes with Stan: models, runs, posteriors, predictions, diagnostics, records."""

from slayr_py.inference.diagnostics.arviz_bridge import save_plot as save_plot, standard_error as standard_error
from slayr_py.inference.diagnostics.checks import (
    CHECKS as CHECKS,
    INFLUENTIAL as INFLUENTIAL,
    Check as Check,
    Diagnostics,
    reason as reason,
)
from slayr_py.inference.functions import draw_functions as draw_functions
from slayr_py.inference.gaussian_process import GaussianProcess
from slayr_py.inference.model import NOISE_FLOOR as NOISE_FLOOR, Model as Model, Warp as Warp
from slayr_py.inference.modes.laplace import (
    find_mode as find_mode,
    hessian as hessian,
    laplace_evidence as laplace_evidence,
)
from slayr_py.inference.modes.likelihood import Targets as Targets
from slayr_py.inference.modes.marginal import ExactMarginal as ExactMarginal, Marginal as Marginal
from slayr_py.inference.modes.normal_coordinates import NormalCoordinates as NormalCoordinates
from slayr_py.inference.modes.sparse_bound import SparseMarginal as SparseMarginal
from slayr_py.inference.named_priors import Priors as Priors
from slayr_py.inference.observed import (
    Observed as Observed,
    check_targets as check_targets,
    observe as observe,
    standardisation as standardisation,
)
from slayr_py.inference.posterior import Posterior
from slayr_py.inference.prediction.blocks import BLOCK as BLOCK
from slayr_py.inference.prediction.components import (
    Components as Components,
    split_into_components as split_into_components,
)
from slayr_py.inference.prediction.distribution import Prediction, mixture_moments as mixture_moments
from slayr_py.inference.prediction.draws import Chains as Chains
from slayr_py.inference.prediction.predictor import Moments as Moments, Predictor as Predictor
from slayr_py.inference.records.record import array_digest as array_digest
from slayr_py.inference.replaying import (
    Replay,
    posterior_again as posterior_again,
    recorded_model as recorded_model,
    replay,
)
from slayr_py.inference.sampling.ladder import Attempt as Attempt, Outcome as Outcome
from slayr_py.inference.sampling.methods import METHODS as METHODS
from slayr_py.inference.sampling.nuts import MOST as MOST
from slayr_py.inference.sampling.options import FitKeywords as FitKeywords, FitOptions, Method as Method
from slayr_py.inference.sampling.programs import (
    build as build,
    likelihood_in_use as likelihood_in_use,
    program_names as program_names,
)
from slayr_py.inference.sampling.seeds import as_stan_seed as as_stan_seed
from slayr_py.inference.sampling.warm_start import WarmStart
from slayr_py.inference.sensitivity.sobol_indices import importance
from slayr_py.inference.stack_fit import part_stream as part_stream
from slayr_py.inference.stacking.reasons import failure as failure, unreliability as unreliability
from slayr_py.inference.validation.calibration import Calibration, calibrate
from slayr_py.inference.warp import warped as warped

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
    "importance",
    "replay",
]
