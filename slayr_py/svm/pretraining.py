"""Pre-training of a covariance function: a machine fitted to related data.

Covariance Function Pre-Training with m-Kernels (Shilton et al., arXiv 1802.05370), section 3.1: the weights alpha of a
support vector machine on related data re-weight the features of its kernel, and the re-weighted kernel is a covariance
function for a new problem (theorem 3). The regularisation C and length-scale minimise the leave-one-out mean squared
error.

Symbols
-------
N : related observations; C : encoded columns in shapes, regularisation elsewhere.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from ConfigSpace import Configuration
from numpy.typing import ArrayLike, NDArray

from slayr_py.arguments import check_flag, check_integer, check_number
from slayr_py.errors import DataError, did_you_mean
from slayr_py.kernels import (
    FreeKernel,
    Matern,
    Origin,
    Pretrained,
    binary_of,
    checked_lengthscale,
    from_family,
    levels_of,
    origin_of,
    radius_of,
    ranges_of,
)
from slayr_py.space import Encoded, Encoder, FloatArray, Space, as_encoder
from slayr_py.svm.best_prediction import least
from slayr_py.svm.leave_one_out import MachineFit
from slayr_py.svm.related_data import RelatedTargets, clip_to_space
from slayr_py.svm.tuning import Lengthscale, Tuning

_EPSILON = 0.05
_COSTS = (0.1, 1.0, 10.0, 100.0, 1000.0)  # values of C that are tried
_LENGTHSCALES = (0.1, 0.15, 0.2, 0.3, 0.5, 0.8, 1.2)  # times sqrt(C / 2) for C columns
_LEAST_CONCENTRATION = 0.1  # of the prior of a machine without skill; with 0 it would be no distribution
_USELESS = 0.8  # ratio of the leave-one-out error to the baseline above which there is a message


@dataclass(frozen=True, eq=False, repr=False)
class Pretraining:
    """A machine fitted to related data.

    Attributes
    ----------
    encoder : Encoder
    family : str
        Family of the free kernel, see :mod:`slayr_py.kernels.free`.
    family_options : dict
        Arguments of the free kernel besides the length-scale.
    machine : {"svr", "ridge", "svc"}
    origin : str or mapping
    seed : int
        As passed to :func:`pretrain`.
    C : float
        Regularisation as in scikit-learn; 1/C is the penalty of "ridge".
    lengthscale : float, tuple of float or None
        In unit coordinates; None if the family has none.
    epsilon : float or None
        In standard deviations of y; None unless the machine is "svr".
    loo_mse : float
        Leave-one-out mean squared error in variances of y; for labels the share of wrong ones.
    baseline : float
        The error of predicting the mean, 1, or the larger class, the share of the smaller one.
    support : (n_sv, C) float64
        Support vectors, in the encoder's unit coordinates.
    alpha : (n_sv,) float64
        Their signed weights for standardised y; they add up to 0.
    intercept : float
    y_mean, y_sd : float
        Mean and standard deviation (n - 1) of y; 0 and 1 for labels.
    classes : tuple
        The two labels, sorted; empty for numbers.
    table : DataFrame
        Every setting that was tried: lengthscale, C, epsilon, loo_mse (NaN if the fit failed), n_support.
    messages : list of str
        Warnings about the fit for the user.
    """

    encoder: Encoder
    family: str
    family_options: dict[str, Any]
    machine: str
    origin: Origin
    seed: int
    C: float
    lengthscale: Lengthscale
    epsilon: float | None
    loo_mse: float
    baseline: float
    support: FloatArray
    alpha: FloatArray
    intercept: float
    y_mean: float
    y_sd: float
    classes: tuple[Any, ...]
    table: pd.DataFrame
    messages: list[str]

    def __repr__(self) -> str:
        return (
            f"Pretraining(family={self.family!r}, machine={self.machine!r}, C={self.C:.4g}, "
            f"lengthscale={self.lengthscale}, loo_mse={self.loo_mse:.3g}, n_support={self.n_support})"
        )

    @property
    def n_support(self) -> int:
        """Number of support vectors."""
        return len(self.alpha)

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the columns of ``support``."""
        return self.encoder.column_names

    @property
    def skill(self) -> float:
        """Share of the variance that the machine explains when a point is left out.

        For labels, the share of the errors of predicting the larger class that the machine avoids. At most 1; 0 or less
        if the machine predicts no better than the mean, or than the larger class.
        """
        return 1 - self.loo_mse / self.baseline

    @property
    def free_kernel(self) -> FreeKernel:
        """The machine's kernel."""
        return _free_kernel(self.family, self.family_options, self.lengthscale)

    def kernel(
        self,
        layers: int | Sequence[int] = (1, 2),
        base: Matern | None = Matern(p=2),  # noqa: B008  (a kernel is immutable)
    ) -> Pretrained:
        """Return the covariance function for the new problem.

        In the prior of ``share`` the learned parts have the concentration 1 if the machine explains at least half of
        the variance of its own data (:attr:`skill`), and a smaller one, at least 0.1, if it explains less.

        Parameters
        ----------
        layers : int or sequence of int
            One or more of 0, a smooth function of the machine's prediction; 1, the re-weighted kernel (normalised); 2,
            the distance of its features.
        base : Matern or None
            Kernel of the part of the function that the related data do not explain.

        Raises
        ------
        DataError
            For unknown layers, another base, or one layer of a family other than "se".
        """
        kernel = Pretrained(
            self.support,
            self.alpha,
            self.lengthscale,
            family=self.family,
            origin=self.origin,
            layers=layers,
            base=base,
            columns=self.columns,
            family_options=self.family_options,
            ranges=ranges_of(self.encoder),
            concentration=float(np.clip(2 * self.skill, _LEAST_CONCENTRATION, 1.0)),
            levels=levels_of(self.encoder),
        )
        if 2 not in kernel.layers:
            return kernel
        scale = kernel.features(self.encoder).median_squared_distance(self.encoder, self.seed)
        return kernel._with(distance_scale=scale)

    def predict(self, configs: Any) -> NDArray[Any]:
        """Predict values in the units of y, or labels, (n,).

        Raises
        ------
        SpaceError
            If an element is not a configuration of the space.
        """
        g = self._standardised(self.encoder.encode(configs))
        if self.classes:
            return np.asarray(self.classes)[(g > 0).astype(np.intp)]
        return self.y_mean + self.y_sd * g

    def initial_configs(
        self, n: int = 5, seed: int = 1, maximize: bool = False, fixed: Mapping[str, object] | None = None
    ) -> list[Configuration]:
        """Return an initial design that starts where the machine predicts the best value.

        It is for related data whose good configurations may also be good for the new problem. If they are not, one
        evaluation is lost. The best prediction is found approximately, by random search and perturbations.

        Parameters
        ----------
        n : int
            Number of configurations; all but the first are those of the Sobol design with this seed.
        seed : int
        maximize : bool
            Whether large values are the best ones.
        fixed : mapping of str to value, optional
            The fixed values of the study.

        Returns
        -------
        list of Configuration
            For ``slayr_py.minimize(..., initial_configs=...)``, without repetitions. They satisfy the constraints on
            inputs of the encoder that :func:`pretrain` was given.

        Raises
        ------
        DataError
            If the related data are labels, and for illegal arguments.
        SpaceError
            For illegal fixed values, and if no configuration or too few were found that are not forbidden.
        """
        n = check_integer("n", n, minimum=1)
        seed = check_integer("seed", seed, minimum=0)
        maximize = check_flag("maximize", maximize)
        if self.classes:
            raise DataError(f"the related data are the labels {list(self.classes)}, none of which is the best value")
        sign = -1.0 if maximize else 1.0
        kept = None if fixed is None else self.encoder.fix(fixed, "fixed: ")
        first = least(self.encoder, lambda x: sign * self._standardised(x), np.random.default_rng(seed), kept)
        points = [first, *(self.encoder.sobol(n - 1, seed, kept) if n > 1 else [])]
        return list(dict.fromkeys(points))

    def _standardised(self, encoded: Encoded) -> FloatArray:
        """Return predictions in standard deviations of y, (n,)."""
        return self.kernel(layers=0, base=None).features(self.encoder).predictions(encoded) + self.intercept


def pretrain(
    space: Space,
    configs: Encoded | pd.DataFrame | Iterable[Mapping[str, object]] | NDArray[Any],
    y: ArrayLike,
    family: str = "se",
    machine: str = "svr",
    C: float | None = None,
    lengthscale: ArrayLike | None = None,
    epsilon: float = _EPSILON,
    origin: Origin = "centre",
    seed: int = 1,
    clip: bool = False,
    **family_options: Any,
) -> Pretraining:
    """Fit a machine to related data.

    C and the length-scale minimise the leave-one-out mean squared error unless they are given: on a grid first, then on
    a refinement between the best setting and its neighbours.

    Parameters
    ----------
    space : ConfigSpace.ConfigurationSpace, Encoder or mapping
        Space of the new problem.
    configs : N configurations
        Configurations of the related problem, as :meth:`slayr_py.space.Encoder.encode` takes them.
    y : (N,) array_like
        Their values, or labels of two classes (booleans or strings), which are fitted by support vector
        classification.
    family : {"se", "exponential", "polynomial", "linear"}
    machine : {"svr", "ridge"}
        Support vector regression as in the document, or the least-squares machine. Tuning fits about 45 N support
        vector machines, which takes seconds for N = 100; use "ridge" for more than a few hundred observations.
    C : float, optional
    lengthscale : float or (C,) array_like, optional
        Of unit coordinates.
    epsilon : float
        Errors up to this size cost nothing, in standard deviations of y: of "svr" only.
    origin : {"centre", "corner"} or mapping of str to float
        Where the monomial features of the kernel are centred: at 1/2 in every column (0 for the columns of a
        categorical parameter), at 0, or at given numbers for some columns and 1/2 for the others. The document's origin
        is "corner".
    seed : int
        Fixes the points of the space whose median distance is the unit of ``feature_lengthscale``; the fit itself has
        no random numbers.
    clip : bool
        Move real values outside the space's range to its bounds, instead of raising an error.
    **family_options
        ``degree`` and ``coef0`` of the polynomial family.

    Raises
    ------
    SpaceError
        If an element is not a configuration of the space.
    DataError
        For illegal arguments, fewer than three observations, values that are not finite, more than two classes, or data
        from which no kernel can be learned: y is constant, or no point has a weight.

    Examples
    --------
    >>> x = np.linspace(0, 1, 9)
    >>> pretrain({"x": (0.0, 1.0)}, x[:, None], np.sin(6 * x), C=1.0, lengthscale=0.25)
    Pretraining(family='se', machine='svr', C=1, lengthscale=0.25, loo_mse=0.127, n_support=8)
    """
    encoder = as_encoder(space)
    seed = check_integer("seed", seed, minimum=0)
    messages: list[str] = []
    train = encoder.encode(clip_to_space(configs, encoder, messages) if clip else configs)
    targets = RelatedTargets.of(y, len(train))
    machine = _check_machine(machine, bool(targets.classes))
    epsilon = check_number("epsilon", epsilon, least=0.0)
    if epsilon != _EPSILON and machine != "svr":
        messages.append(f"epsilon={epsilon:g} has no effect on the machine {machine!r}")
    costs = _COSTS if C is None else (check_number("C", C),)
    lengthscales = _lengthscales(family, lengthscale, len(encoder.column_names), family_options)

    o = origin_of(origin, encoder)
    tuning = Tuning(train.columns - o, targets.values, partial(_free_kernel, family, family_options), machine)
    setting = tuning.best(lengthscales, costs, epsilon)
    messages += tuning.messages(lengthscales, costs, setting)
    fit = tuning.fits[setting]
    _check_weights(fit, epsilon, targets.sd)
    reweighted = tuning.kernel(setting.lengthscale).reweighted(
        tuning.u, fit.alpha, radius_of(o), binary=binary_of(o, encoder)
    )
    if reweighted.engine == "pairs" and tuning.is_dense(setting):
        setting, message = tuning.thin(setting)
        fit = tuning.fits[setting]
        messages.append(message)
    if fit.loo_mse > _USELESS * targets.baseline:
        without = "larger class" if targets.classes else "mean"
        messages.append(
            f"the machine explains little of the related data (leave-one-out error {fit.loo_mse:.2f}; predicting the "
            f"{without} has {targets.baseline:.2f}): the learned kernel is unlikely to help"
        )
    used = fit.alpha != 0
    return Pretraining(
        encoder=encoder,
        family=family,
        family_options=family_options,
        machine=machine,
        origin=origin,
        seed=seed,
        C=setting.C,
        lengthscale=setting.lengthscale,
        epsilon=setting.epsilon if machine == "svr" else None,
        loo_mse=fit.loo_mse,
        baseline=targets.baseline,
        support=train.columns[used],
        alpha=fit.alpha[used],
        intercept=fit.intercept,
        y_mean=targets.mean,
        y_sd=targets.sd,
        classes=targets.classes,
        table=tuning.table(),
        messages=messages,
    )


def _free_kernel(family: str, options: dict[str, Any], lengthscale: Lengthscale) -> FreeKernel:
    return from_family(family, **({} if lengthscale is None else {"lengthscale": lengthscale}), **options)


def _lengthscales(
    family: str, given: ArrayLike | None, n_columns: int, options: dict[str, Any]
) -> tuple[Lengthscale, ...]:
    """Return the length-scales to try."""
    if "lengthscale" not in from_family(family, **options).options():
        if given is not None:
            raise DataError(f"the {family} kernel has no lengthscale, got {given!r}; omit it")
        return (None,)
    if given is None:
        return tuple(float(np.sqrt(n_columns / 2) * factor) for factor in _LENGTHSCALES)
    lengthscale = checked_lengthscale(given)
    if lengthscale.ndim and len(lengthscale) != n_columns:
        raise DataError(f"lengthscale has {len(lengthscale)} entries for {n_columns} encoded columns")
    return (tuple(lengthscale.tolist()) if lengthscale.ndim else float(lengthscale),)


def _check_weights(fit: MachineFit, epsilon: float, sd: float) -> None:
    if not fit.n_support:
        raise DataError(
            f"no point has a weight with epsilon = {epsilon:g} standard deviations (sd(y) = {sd:g}); use a smaller "
            "epsilon or a larger C"
        )


def _check_machine(machine: str, labels: bool) -> str:
    known = ("svr", "ridge")
    if not isinstance(machine, str) or machine not in known:
        raise DataError(f"unknown machine {machine!r}{did_you_mean(machine, known)}")
    if labels and machine == "ridge":
        raise DataError("machine='ridge' needs numbers as y; labels need the support vector machine")
    return "svc" if labels else machine
