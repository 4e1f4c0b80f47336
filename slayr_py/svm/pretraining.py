"""Pre-training of a covariance function: a machine fitted to related data.

Covariance Function Pre-Training with m-Kernels (Shilton et al., arXiv 1802.05370), section 3.1: the weights alpha of a
support vector machine on related data re-weight the features of its kernel, and the re-weighted kernel is a covariance
function for a new problem (theorem 3). Its regularisation C and length-scale minimise the leave-one-out mean squared
error.

Symbols
-------
N : related observations; C : encoded columns in shapes, regularisation elsewhere.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
from ConfigSpace import ConfigurationSpace
from numpy.typing import ArrayLike, NDArray

from slayr_py.arguments import check_integer, check_number
from slayr_py.errors import DataError, did_you_mean
from slayr_py.kernels import (
    FreeKernel,
    Matern,
    Origin,
    Pretrained,
    binary_of,
    checked_lengthscale,
    from_family,
    origin_of,
    radius_of,
    ranges_of,
)
from slayr_py.space import Encoded, Encoder, FloatArray, rows_of
from slayr_py.svm.leave_one_out import MACHINES, Fit

_COSTS = (0.1, 1.0, 10.0, 100.0, 1000.0)
_LENGTHSCALES = (0.1, 0.15, 0.2, 0.3, 0.5, 0.8, 1.2)  # times sqrt(C / 2) for C columns
_MOST_SUPPORT = 60  # points of a kernel that has to be summed over pairs of them
_LEAST_CONCENTRATION = 0.1
_USELESS = 0.8  # leave-one-out error, relative to that without a machine, above which a message says so
_WIDER = 1.3  # factor of epsilon

Lengthscale = float | tuple[float, ...] | None
"""One for all columns, one for each, or None for families without."""


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
        Regularisation, that of scikit-learn; 1/C is the penalty of "ridge".
    lengthscale : float, tuple of float or None
        In unit coordinates; None if the family has none.
    epsilon : float or None
        In standard deviations of y; None unless the machine is "svr".
    loo_mse : float
        Leave-one-out mean squared error in variances of y; for labels the share of wrong ones.
    baseline : float
        The error without a machine: 1, or the share of the smaller class.
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
        Every setting that was tried: lengthscale, C, epsilon, loo_mse (NaN if a solver did not converge), n_support.
    messages : list of str
        What a user should know about the fit.
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
        """Share of the variance that the machine explains when a point is left out; for labels of the smaller class.

        At most 1; 0 or less if the machine predicts no better than the mean, or than the larger class.
        """
        return 1 - self.loo_mse / self.baseline

    @property
    def free_kernel(self) -> FreeKernel:
        """The machine's kernel."""
        return _free_kernel(self.family, self.lengthscale, self.family_options)

    def kernel(
        self,
        layers: int | Sequence[int] = (1, 2),
        base: Matern | None = Matern(p=2),  # noqa: B008  (a kernel is immutable)
    ) -> Pretrained:
        """Return the covariance function for the new problem.

        In the prior of ``share`` the learned parts have the concentration 1 if the machine explains at least half of
        the variance of its own data (:attr:`skill`), and a smaller one, at least 0.1, if it explains less: it then has
        little to say about other data.

        Parameters
        ----------
        layers : int or sequence of int
            Uses of the re-weighted kernel: 1 (normalised), 2 (distance of its features), or both.
        base : Matern or None
            Kernel for what the related data do not tell.

        Raises
        ------
        DataError
            For unknown layers, another base, or one layer of a family other than "se".
        """
        learned = Pretrained(
            self.support,
            self.alpha,
            self.lengthscale,
            family=self.family,
            origin=self.origin,
            layers=2,
            base=None,
            columns=self.columns,
            family_options=self.family_options,
            ranges=ranges_of(self.encoder),
            concentration=float(np.clip(2 * self.skill, _LEAST_CONCENTRATION, 1.0)),
        )
        learned.distance_scale = learned.features(self.encoder).median_squared_distance(self.encoder, self.seed)
        return learned.with_parts(layers, base)

    def predict(self, configs: Any) -> NDArray[Any]:
        """Predict values in the units of y, or labels, (n,).

        Raises
        ------
        SpaceError
            If an element is not a configuration of the space.
        """
        origin = origin_of(self.origin, self.encoder)
        u = self.encoder.encode(configs).columns - origin
        g = self.free_kernel.evaluate(u, self.support - origin) @ self.alpha + self.intercept
        if self.classes:
            return np.asarray(self.classes)[(g > 0).astype(np.intp)]
        return self.y_mean + self.y_sd * g


def pretrain(
    space: ConfigurationSpace | Encoder,
    configs: Encoded | pd.DataFrame | Iterable[Mapping[str, object]] | NDArray[Any],
    y: ArrayLike,
    family: str = "se",
    machine: str = "svr",
    C: float | None = None,
    lengthscale: ArrayLike | None = None,
    epsilon: float = 0.05,
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
    space : ConfigSpace.ConfigurationSpace or Encoder
        Space of the new problem.
    configs : N configurations
        Configurations of the related problem, as :meth:`slayr_py.space.Encoder.encode` takes them.
    y : (N,) array_like
        Their values, or labels of two classes (booleans or strings), which are fitted by support vector
        classification.
    family : {"se", "exponential", "polynomial", "linear"}
    machine : {"svr", "ridge"}
        Support vector regression as in the document, or the least-squares machine. Tuning fits about 45 N machines of
        the former kind, which takes seconds for N = 100; use "ridge" for more than a few hundred observations.
    C : float, optional
    lengthscale : float or (C,) array_like, optional
        Of unit coordinates.
    epsilon : float
        Errors up to this size cost nothing, in standard deviations of y.
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
        that teach nothing: y is constant, or no point has a weight.

    Examples
    --------
    >>> x = np.linspace(0, 1, 9)
    >>> pretrain(ConfigurationSpace({"x": (0.0, 1.0)}), x[:, None], np.sin(6 * x), C=1.0, lengthscale=0.25)
    Pretraining(family='se', machine='svr', C=1, lengthscale=0.25, loo_mse=0.127, n_support=8)
    """
    encoder = space if isinstance(space, Encoder) else Encoder(space)
    seed = check_integer("seed", seed, minimum=0)
    messages: list[str] = []
    train = encoder.encode(_clipped(configs, encoder, messages) if clip else configs)
    targets = _Targets.of(y, len(train))
    machine = _checked_machine(machine, bool(targets.classes))
    epsilon = check_number("epsilon", epsilon, least=0.0)
    costs = _COSTS if C is None else (check_number("C", C),)
    lengthscales = _lengthscales(family, lengthscale, len(encoder.column_names), family_options)

    o = origin_of(origin, encoder)
    search = _Search(train.columns - o, targets.values, family, family_options, machine)
    setting = search.best(lengthscales, costs, epsilon)
    messages += search.messages(lengthscales, costs, setting)
    fit = search.fits[setting]
    _check_weights(fit, epsilon, targets.sd)
    reweighted = search.kernel(setting.lengthscale).reweighted(
        search.u, fit.alpha, radius_of(o), binary=binary_of(o, encoder)
    )
    if reweighted.engine == "pairs" and fit.n_support > _MOST_SUPPORT:
        setting, message = search.thinned(setting)
        fit = search.fits[setting]
        messages.append(message)
    baseline = float(np.minimum(*np.mean(targets.values[:, None] == (-1, 1), axis=0))) if targets.classes else 1.0
    if fit.loo_mse > _USELESS * baseline:
        messages.append(
            f"the machine hardly predicts the related data (leave-one-out error {fit.loo_mse:.2f}, {baseline:.2f} "
            "without it): it can teach little"
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
        baseline=baseline,
        support=train.columns[used],
        alpha=fit.alpha[used],
        intercept=fit.intercept,
        y_mean=targets.mean,
        y_sd=targets.sd,
        classes=targets.classes,
        table=search.table(),
        messages=messages,
    )


@dataclass(frozen=True)
class _Setting:
    lengthscale: Lengthscale
    C: float
    epsilon: float


class _Search:
    """Machines at several settings."""

    def __init__(self, u: FloatArray, y: FloatArray, family: str, options: dict[str, Any], machine: str) -> None:
        self.u = u
        self.y = y
        self.family = family
        self.options = options
        self.machine = machine
        self.fits: dict[_Setting, Fit] = {}
        self.failed: list[_Setting] = []

    def kernel(self, lengthscale: Lengthscale) -> FreeKernel:
        """Return the free kernel with a length-scale."""
        return _free_kernel(self.family, lengthscale, self.options)

    def best(self, lengthscales: Sequence[Lengthscale], costs: Sequence[float], epsilon: float) -> _Setting:
        """Return the setting with the smallest error on the grid and its refinement."""
        self._fit(product(lengthscales, costs), epsilon)
        first = self._smallest()
        self._fit(product(_midpoints(lengthscales, first.lengthscale), _midpoints(costs, first.C)), epsilon)
        return self._smallest()

    def thinned(self, setting: _Setting) -> tuple[_Setting, str]:
        """Raise epsilon until few points have a weight, as long as the error does not double; return a message too."""
        before = self.fits[setting]
        reason = f"{before.n_support} of {len(self.y)} points have a weight, and the kernel is a sum over their pairs"
        if self.machine != "svr":
            return setting, f"{reason}; it will be slow: use machine='svr' or a longer lengthscale"
        thin = setting
        for _ in range(20):
            wider = _Setting(thin.lengthscale, thin.C, max(_WIDER * thin.epsilon, 0.01))
            self._fit([(wider.lengthscale, wider.C)], wider.epsilon)
            fit = self.fits.get(wider)
            if fit is None or fit.loo_mse > 2 * before.loo_mse or not fit.n_support:
                break
            thin = wider
            if fit.n_support <= _MOST_SUPPORT:
                break
        return thin, (
            f"{reason}; epsilon was raised from {setting.epsilon:g} to {thin.epsilon:g}, which leaves "
            f"{self.fits[thin].n_support} points and changes loo_mse from {before.loo_mse:.3g} to "
            f"{self.fits[thin].loo_mse:.3g}"
        )

    def messages(self, lengthscales: Sequence[Lengthscale], costs: Sequence[float], chosen: _Setting) -> Iterator[str]:
        """Describe a best setting at the edge of the grid, and fits that failed."""
        for name, values, value in (("C", costs, chosen.C), ("lengthscale", lengthscales, chosen.lengthscale)):
            if len(values) > 1 and value in (values[0], values[-1]):
                which = "smallest" if value == values[0] else "largest"
                yield f"the best {name}, {value:g}, is the {which} that was tried; give {name} to try others"
        if self.failed:
            yield f"{len(self.failed)} of {len(self.failed) + len(self.fits)} settings did not converge; see table"

    def table(self) -> pd.DataFrame:
        """Return every setting that was tried."""
        rows = [(s.lengthscale, s.C, s.epsilon, f.loo_mse, f.n_support) for s, f in self.fits.items()]
        rows += [(s.lengthscale, s.C, s.epsilon, np.nan, 0) for s in self.failed]
        return pd.DataFrame(rows, columns=["lengthscale", "C", "epsilon", "loo_mse", "n_support"])

    def _fit(self, settings: Iterable[tuple[Lengthscale, float]], epsilon: float) -> None:
        for lengthscale, cost in settings:
            setting = _Setting(lengthscale, cost, epsilon)
            if setting in self.fits or setting in self.failed:
                continue
            gram = self.kernel(lengthscale).evaluate(self.u, self.u)
            fit = MACHINES[self.machine](gram, self.y, cost, epsilon)
            if fit is None:
                self.failed.append(setting)
            else:
                self.fits[setting] = fit

    def _smallest(self) -> _Setting:
        if not self.fits:
            raise DataError(
                f"no fit converged at any of {len(self.failed)} settings; use a smaller C, a larger epsilon, or "
                "machine='ridge'"
            )
        return min(self.fits, key=lambda setting: self.fits[setting].loo_mse)


@dataclass(frozen=True)
class _Targets:
    """Standardised values (N,), or labels as -1 and 1."""

    values: FloatArray
    mean: float
    sd: float
    classes: tuple[Any, ...] = ()

    @classmethod
    def of(cls, y: ArrayLike, n: int) -> _Targets:
        """Check and standardise values.

        Raises
        ------
        DataError
            As :func:`pretrain`.
        """
        given = np.asarray(y)
        if given.shape != (n,):
            raise DataError(f"y has shape {given.shape} for {n} configurations; one value each is needed")
        if n < 3:
            raise DataError(f"pre-training needs at least 3 observations, got {n}")
        if given.dtype.kind in "bUS" or (given.dtype.kind == "O" and all(isinstance(v, str | bool) for v in given)):
            classes = tuple(sorted(set(given.tolist()), key=str))
            if len(classes) != 2:
                raise DataError(f"labels need two classes, got {len(classes)}: {list(classes)[:10]}")
            return cls(np.where(given == classes[1], 1.0, -1.0), 0.0, 1.0, classes)
        try:
            if given.dtype.kind not in "iufO":  # NumPy would convert dates and complex numbers
                raise TypeError(f"y is of type {given.dtype}")
            values = given.astype(np.float64)
        except (TypeError, ValueError) as error:
            raise DataError(f"y must be numbers, or labels of two classes; got {y!r:.200}") from error
        if not np.isfinite(values).all():
            bad = int(np.argmin(np.isfinite(values)))
            raise DataError(f"y[{bad}] is {values[bad]}; drop failed evaluations before pre-training")
        unit = float(np.max(np.abs(values))) or 1.0  # the square of 1e200 is infinite
        mean = unit * float(np.mean(values / unit))
        sd = unit * float(np.std(values / unit, ddof=1))
        if sd <= 4 * np.finfo(float).eps * unit:
            raise DataError(f"y is constant, {values[0]:g}: the related data teach nothing")
        return cls((values - mean) / sd, mean, sd)


def _free_kernel(family: str, lengthscale: Lengthscale, options: dict[str, Any]) -> FreeKernel:
    return from_family(family, **({} if lengthscale is None else {"lengthscale": lengthscale}), **options)


def _lengthscales(
    family: str, given: ArrayLike | None, n_columns: int, options: dict[str, Any]
) -> tuple[Lengthscale, ...]:
    """Return the length-scales to try."""
    if "lengthscale" not in from_family(family, **options).options():
        if given is not None:
            raise DataError(f"the {family} kernel takes no lengthscale, got {given!r}")
        return (None,)
    if given is None:
        return tuple(float(np.sqrt(n_columns / 2) * factor) for factor in _LENGTHSCALES)
    lengthscale = checked_lengthscale(given)
    if lengthscale.ndim and len(lengthscale) != n_columns:
        raise DataError(f"lengthscale has {len(lengthscale)} entries for {n_columns} encoded columns")
    return (tuple(lengthscale.tolist()) if lengthscale.ndim else float(lengthscale),)


def _midpoints(values: Sequence[Any], best: Any) -> list[Any]:
    """Return a value with the geometric means of it and its neighbours."""
    i = values.index(best)
    return [float(np.sqrt(best * v)) for v in values[max(i - 1, 0) : i]] + [
        best,
        *(float(np.sqrt(best * v)) for v in values[i + 1 : i + 2]),
    ]


def _clipped(configs: Any, encoder: Encoder, messages: list[str]) -> Any:
    """Return configurations with real values moved to the bounds, and add a message about their number."""
    if isinstance(configs, Encoded):
        return configs
    real = {d.name: d for d in encoder.dimensions if d.is_real}
    moved = 0
    rows: list[Any] = []
    for row in rows_of(configs, encoder.dimensions, encoder.space):
        if not isinstance(row, Mapping):
            return configs
        values = dict(row)
        for name in real.keys() & values.keys():
            if isinstance(values[name], int | float | np.number) and np.isfinite(values[name]):
                low = real[name].lower
                high = real[name].upper
                if not low <= values[name] <= high:
                    values[name] = low if values[name] < low else high
                    moved += 1
        rows.append(values)
    if moved:
        messages.append(f"{moved} value{'s' * (moved > 1)} outside the ranges of the space moved to the bounds")
    return rows


def _check_weights(fit: Fit, epsilon: float, sd: float) -> None:
    if not fit.n_support:
        raise DataError(
            f"no point has a weight: the related data teach nothing with epsilon = {epsilon:g} standard deviations "
            f"(sd(y) = {sd:g}); use a smaller epsilon or a larger C"
        )


def _checked_machine(machine: str, labels: bool) -> str:
    known = ("svr", "ridge")
    if not isinstance(machine, str) or machine not in known:
        raise DataError(f"unknown machine {machine!r}{did_you_mean(machine, known)}")
    if labels and machine == "ridge":
        raise DataError("machine='ridge' needs numbers as y; labels need the support vector machine")
    return "svc" if labels else machine
