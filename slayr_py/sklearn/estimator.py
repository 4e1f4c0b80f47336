"""A scikit-learn regressor: a Gaussian process with posterior draws of its hyperparameters."""

from __future__ import annotations

import warnings
from dataclasses import KW_ONLY, dataclass, field, fields
from typing import Any, Self

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_array, check_consistent_length, check_random_state, column_or_1d
from sklearn.utils.validation import check_is_fitted, validate_data

from slayr_py.errors import DataError, level_outside
from slayr_py.inference import BLOCK, METHODS, Diagnostics, FitOptions, GaussianProcess, Method, Posterior, Priors, Warp
from slayr_py.kernels import Kernel, Stack
from slayr_py.sklearn.default_priors import default_priors
from slayr_py.sklearn.features import Features, categorical_positions, first_time, refuse_text
from slayr_py.sklearn.times import Times
from slayr_py.space import Encoded, FloatArray

_LARGEST_SEED = np.iinfo(np.int32).max
_ESS = 50  # the default of ess, which is left out where the number of draws is fixed
_FIT_OPTIONS = [option.name for option in fields(FitOptions)]


@dataclass(eq=False, repr=False)
class BayesianGPRegressor(RegressorMixin, BaseEstimator):  # type: ignore[misc]  # scikit-learn has no type hints
    """Gaussian process regression that averages over the posterior of the hyperparameters.

    The columns of X are the parameters of a search space with the ranges of the training data. Rows outside these
    ranges are extrapolated.

    Parameters
    ----------
    kernel : Kernel, str or Stack, default "auto"
        As in :class:`slayr_py.GaussianProcess`: a kernel, its name, an expression such as "LIN[bmi] + SE", or a
        `slayr_py.stack`. Columns have the names of the DataFrame, or "x0", "x1", and so on.
    priors : mapping of str to Prior, optional
        As in :class:`slayr_py.GaussianProcess`; on standardised targets and columns scaled to [0, 1]. Defaults of a
        Matérn kernel are wider here: LogNormal(sqrt(2) + log(D)/2, sqrt(3)) for the ``lengthscale`` of D encoded
        columns, and LogNormal(1, 1) for ``sigma_f``.
    warp : {"none", "log", "best", "auto"}
        As in :class:`slayr_py.GaussianProcess`.
    inducing : int, optional
        Number of inducing points of a sparse fit, for thousands of rows: see :class:`slayr_py.GaussianProcess`.
    categorical_features : "from_dtype", None, or array_like of int, str or bool
        Columns of categories: by their positions, their names or a mask. "from_dtype" are the columns of a DataFrame
        with categories, strings, objects or truth values; an array has none. Ordered categories of pandas are ordinal.
    method : {"pathfinder", "laplace", "nuts", "map"}
        Fit method: see :meth:`slayr_py.GaussianProcess.fit`. An approximation whose importance ratios fail their checks
        is replaced by a NUTS fit, with a warning. "map" is a point estimate.
    chains, warmup, draws, target_acceptance, max_treedepth, ess, retries
        Options of :meth:`slayr_py.GaussianProcess.fit`. The optimisation loop has the same defaults. Another ``ess``
        than the default is an error with "map" and with ``inducing``, whose numbers of draws are fixed.
    random_state : int, RandomState or None
        Determines all random numbers of a fit.

    Attributes
    ----------
    posterior_ : Posterior
        The fit. Its methods take rows as :meth:`encode` returns them.
    diagnostics_ : Diagnostics
        Checks of the fit; a :class:`sklearn.exceptions.ConvergenceWarning` lists the checks that fail.
    n_features_in_ : int
        Number p of columns.
    feature_names_in_ : (p,) array of str
        Names of the columns; only after a fit to a DataFrame whose names are strings.

    See Also
    --------
    sklearn.gaussian_process.GaussianProcessRegressor : The same interface with a point estimate.

    Notes
    -----
    A fit has 4 times 50 draws by default, whose Monte Carlo error in a prediction is a small share of the posterior
    standard deviation. Every draw costs a Cholesky factorisation in each call of :meth:`predict`.
    Pathfinder takes a tenth of the time of NUTS for 100 rows, and NUTS replaces it where it is inaccurate.

    Examples
    --------
    >>> from slayr_py.sklearn import BayesianGPRegressor
    >>> BayesianGPRegressor(kernel="matern", method="map")
    BayesianGPRegressor(kernel='matern', method='map')
    """

    kernel: Kernel | Stack | str = "auto"
    _: KW_ONLY
    priors: Priors | None = None
    warp: Warp = "none"
    inducing: int | None = None
    categorical_features: ArrayLike | str | None = "from_dtype"
    method: Method = "pathfinder"
    chains: int = 4
    warmup: int = 300
    draws: int = 50
    target_acceptance: float = FitOptions.target_acceptance
    max_treedepth: int = FitOptions.max_treedepth
    ess: int | None = _ESS
    retries: int = 1
    random_state: int | np.random.RandomState | None = None
    posterior_: Posterior = field(init=False)
    diagnostics_: Diagnostics = field(init=False)

    def fit(self, X: Any, y: ArrayLike) -> Self:
        """Fit to n rows.

        Parameters
        ----------
        X : DataFrame or array_like, (n, p)
            Numbers and, where ``categorical_features`` says so, categories. No cell may be empty. Columns of dates of a
            DataFrame (datetime64, or texts such as 2024-03-01 12:30) become the time since the first date. Durations
            (timedelta64) and arrays of dates become seconds.
        y : (n,) array_like
            Finite numbers.

        Warns
        -----
        UserWarning
            For columns of dates: their unit and origin.
        ConvergenceWarning
            If NUTS has replaced an inaccurate approximation, kernels of a stack are left out or have uncertain weights,
            or the diagnostics of the fit fail; the message has advice.

        Raises
        ------
        DataError, ValueError
            If a column, the targets or a parameter of this estimator is illegal. :class:`~slayr_py.DataError` is a
            ValueError.
        InferenceError
            If Stan fails.
        """
        self.__dict__.pop("posterior_", None)  # with new columns it would give wrong predictions, if this fit fails
        X = self._read_dates(X)
        table, targets = self._training_data(X, y)
        names = [str(name) for name in getattr(self, "feature_names_in_", ())]
        if len(set(names)) != self.n_features_in_:
            names = [f"x{j}" for j in range(self.n_features_in_)]
        self._features = Features(table, names, self._categorical(table))
        process = GaussianProcess(self._features.encoder, self.kernel, self.priors, self.warp, inducing=self.inducing)
        process = process.with_defaults(default_priors)
        parameters = self.get_params(deep=False)
        chosen = {name: value for name, value in parameters.items() if name in _FIT_OPTIONS}
        fixed = self.inducing is not None or (self.method in METHODS and METHODS[self.method].point_estimate)
        if fixed and self.ess == _ESS:
            chosen["ess"] = None
        options = FitOptions(**chosen, pointwise=False)
        seed = int(check_random_state(self.random_state).randint(_LARGEST_SEED))
        self.posterior_ = process.fit(self._features.encode(table), targets, seed=seed, options=options)
        self._warn_of_refusal()
        self._warn_of_left_out(len(process.models))
        self.diagnostics_ = self.posterior_.check()
        if not self.diagnostics_.ok:
            failed = "; ".join(self.diagnostics_.messages)
            warnings.warn(f"the diagnostics of the fit fail: {failed}", ConvergenceWarning, stacklevel=level_outside())
        return self

    def _warn_of_refusal(self) -> None:
        """Warn if NUTS has replaced the approximation that was asked for, which can take much longer."""
        records = [posterior.record for posterior in self.posterior_.posteriors]
        replaced = [record for record in records if record["arguments"]["method"] != self.method]
        abandoned = [entry for record in replaced for entry in record.get("abandoned", ())]
        refused = [entry for entry in abandoned if entry["method"] == self.method]
        if not refused:
            return
        warnings.warn(
            f"the {self.method} approximation is inaccurate ({'; '.join(refused[0]['why'])}), so NUTS has replaced it: "
            "method='nuts' omits the attempt, and method='map', a point estimate, or inducing= takes less time",
            ConvergenceWarning,
            stacklevel=level_outside(),
        )

    def _warn_of_left_out(self, n_kernels: int) -> None:
        """Warn if not all kernels of a stack are used, or if leave-one-out gives them uncertain weights."""
        for sign, what in (("left out", "of the stack are left out"), ("uncertain weight", "have uncertain weights")):
            texts = [text for text in self.posterior_.messages if f": {sign}: " in text]
            if texts:
                warnings.warn(
                    f"{len(texts)} of {n_kernels} kernels {what} ({'. '.join(texts)}): method='nuts', more rows or a "
                    "single kernel are more reliable",
                    ConvergenceWarning,
                    stacklevel=level_outside(),
                )

    def predict(self, X: Any, return_std: bool = False, return_cov: bool = False) -> Any:
        """Predict the latent function, without the noise of an observation.

        Parameters
        ----------
        X : DataFrame or array_like, (m, p)
        return_std, return_cov : bool
            Whether to return standard deviations or the covariance too; not both. They include the uncertainty of the
            hyperparameters, not the noise: ``posterior_.predict(encode(X)).observation_sd`` does, and has quantiles.

        Returns
        -------
        mean : (m,) float64
            Posterior mean.
        std : (m,) float64
            Posterior standard deviation, if ``return_std``.
        cov : (m, m) float64
            Joint posterior covariance, if ``return_cov``: the mean covariance of the draws plus the covariance of their
            means.

        Raises
        ------
        DataError, ValueError
            For illegal rows, a category that the training data lack, or a covariance under a warp.
        """
        if return_std and return_cov:
            raise DataError("predict returns either the standard deviation or the covariance: return_std or return_cov")
        new = self.encode(X)
        if return_cov and any(part.model.warp != "none" for part in self.posterior_.parts):
            raise DataError("the covariance under a warp has no closed form; estimate it from draws: sample_y")
        prediction = self.posterior_.predict(new)
        if return_std:
            return prediction.mean, prediction.sd
        return (prediction.mean, _joint_covariance(self.posterior_, new)) if return_cov else prediction.mean

    def sample_y(
        self, X: Any, n_samples: int = 1, random_state: int | np.random.RandomState | None = 0
    ) -> NDArray[np.float64]:
        """Draw the latent function jointly at m rows; see :meth:`slayr_py.Posterior.sample`.

        Parameters
        ----------
        X : DataFrame or array_like, (m, p)
        n_samples : int
            Number of draws.
        random_state : int, RandomState or None
            Determines the draws.

        Returns
        -------
        (m, n_samples) float64
        """
        new = self.encode(X)
        seed = int(check_random_state(random_state).randint(_LARGEST_SEED))
        return np.ascontiguousarray(self.posterior_.sample(new, n_samples, seed).T)

    def encode(self, X: Any) -> Encoded:
        """Return m rows in the form that the methods of ``posterior_`` take.

        Parameters
        ----------
        X : DataFrame or array_like, (m, p)

        Raises
        ------
        DataError, ValueError
            For illegal rows or a category that the training data lack.
        """
        check_is_fitted(self, "posterior_")
        X = self._times.numbers(X)
        if self._features.categorical:
            return self._features.encode(_two_dimensional(validate_data(self, X, reset=False, skip_check_array=True)))
        refuse_text(X)
        return self._features.encode(validate_data(self, X, reset=False, dtype=np.float64))

    def _read_dates(self, X: Any) -> Any:
        """Return a table with numbers instead of dates and durations; warn which unit and origin dates have."""
        self._times = Times(self.categorical_features, X)
        for name, scale in self._times.scales.items():
            warnings.warn(f"the dates of column {name!r} are read as {scale}", UserWarning, stacklevel=level_outside())
        return self._times.numbers(X)

    def _training_data(self, X: Any, y: ArrayLike) -> tuple[Any, FloatArray]:
        """Check X and y and set the attributes about the columns; X keeps its columns of categories."""
        if (time := first_time(np.asarray(y))) is not None:  # scikit-learn would take the number of its own unit
            raise DataError(f"y has {time!r}; give numbers, such as y.dt.total_seconds()")
        if self.categorical_features is None or not self._may_have_categories(X):
            refuse_text(X)
            X, y = validate_data(self, X, y, dtype=np.float64, y_numeric=True)
            return X, np.asarray(y, dtype=np.float64)
        X, y = validate_data(self, _two_dimensional(X), y, skip_check_array=True)
        targets = check_array(column_or_1d(y, warn=True), ensure_2d=False, dtype=np.float64, input_name="y")
        check_consistent_length(X, targets)
        return X, targets

    def _may_have_categories(self, X: Any) -> bool:
        by_dtype = isinstance(self.categorical_features, str) and self.categorical_features == "from_dtype"
        return not by_dtype or bool(categorical_positions("from_dtype", X, None))

    def _categorical(self, table: Any) -> list[int]:
        names = getattr(self, "feature_names_in_", None)
        return categorical_positions(self.categorical_features, table, None if names is None else names.tolist())


def _two_dimensional(X: Any) -> Any:
    """Return a DataFrame as it is, and anything else as an array of objects with two dimensions."""
    if isinstance(X, pd.DataFrame):
        return X
    return check_array(X, dtype=object, ensure_all_finite=False)


def _joint_covariance(posterior: Posterior, new: Encoded) -> FloatArray:
    """Return the covariance (m, m) of the mixture over s draws, in blocks of draws of limited memory."""
    s = posterior.n_draws
    m = len(new)
    means = np.empty((s, m))
    total = np.zeros((m, m))
    first = 0
    for part, rows in posterior.rows_of(s):
        block = max(1, BLOCK // max(m, len(part.factorisation.support)) ** 2)
        for i in range(0, len(rows), block):
            some = rows[i : i + block]
            means[first : first + len(some)], covariance = part.predictor(some).joint_moments(new)
            total += covariance.sum(axis=0)
            first += len(some)
    means -= means.mean(axis=0)
    joint = (total + means.T @ means) * (posterior.y_sd**2 / s)
    return np.asarray((joint + joint.T) / 2)
