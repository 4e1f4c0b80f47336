r"""Posterior of the summands of a function whose kernel is a sum.

With f = mu + sum_k f_k and the covariance K = sum_k K_k + noise of the n observations, the posterior of a summand is
(Duvenaud, Nickisch & Rasmussen 2011, section 2.4; Lloyd et al. 2014, section 3)

    mean = K_k(X~, X) K^-1 (y - mu),   var = k_k(x~, x~) - diag(K_k(X~, X) K^-1 K_k(X, X~)).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from slayr_py.display import Summary
from slayr_py.errors import DataError
from slayr_py.inference.modes.likelihood import Targets
from slayr_py.inference.modes.triangular import solve_lower
from slayr_py.inference.prediction.blocks import BLOCK
from slayr_py.inference.prediction.distribution import mixture_moments
from slayr_py.inference.prediction.kernel_predictor import KernelPredictor
from slayr_py.kernels import Kernel
from slayr_py.space import Encoded, FloatArray


@dataclass(frozen=True)
class Components:
    """Posterior of the summands of the latent function at m configurations, in the user's units.

    Attributes
    ----------
    names : tuple of str
        The k summands of the kernel when it is multiplied out.
    mean, sd : (k, m) float64
        Moments of each summand over all draws. The means and ``offset`` add up to the mean of the prediction; the
        standard deviations do not, because the summands are correlated.
    offset : float
        Posterior mean of the constant mean of the function.
    configs : Encoded
        The m configurations.
    """

    names: tuple[str, ...]
    mean: FloatArray
    sd: FloatArray
    offset: float
    configs: Encoded

    def __repr__(self) -> str:
        return self._summary().text()

    def _repr_html_(self) -> str:
        return self._summary().html()

    def _summary(self) -> Summary:
        heading = f"{len(self.names)} summands at {self.mean.shape[1]} configurations, offset {self.offset:.6g}"
        if not self.mean.size:
            return Summary(heading, pd.DataFrame({"summand": self.names}))
        rows = [(n, np.ptp(m), s.mean()) for n, m, s in zip(self.names, self.mean, self.sd, strict=True)]
        return Summary(heading, pd.DataFrame(rows, columns=["summand", "range of the mean", "mean sd"]))

    def frame(self) -> pd.DataFrame:
        """Return one row per configuration and summand: the configuration, ``summand``, ``mean`` and ``sd``.

        A parameter with one of these names is a column with the prefix ``params_``.
        """
        configs = pd.DataFrame([dict(config) for config in self.configs.encoder.decode(self.configs)])  # type: ignore[attr-defined]
        configs = configs.rename(columns={name: f"params_{name}" for name in ("summand", "mean", "sd")})
        parts = [
            configs.assign(summand=name, mean=mean, sd=sd)
            for name, mean, sd in zip(self.names, self.mean, self.sd, strict=True)
        ]
        return pd.concat(parts, ignore_index=True)

    def plot(self, parameter: str | None = None, width: float = 1.6449) -> Any:
        """Draw each summand against a parameter: its mean, and a band of ``width`` standard deviations.

        Parameters
        ----------
        parameter : str, optional
            Real parameter of the horizontal axis; may be omitted if the space has only one.
        width : float
            Half the width of the band; the default gives 90% of a normal distribution.

        Returns
        -------
        matplotlib.figure.Figure

        Raises
        ------
        DataError
            If the parameter is unknown, not real, or ambiguous.
        """
        from matplotlib.figure import Figure  # slow to import

        encoder = self.configs.encoder
        if parameter is None and len(encoder.real_names) == 1:
            parameter = encoder.real_names[0]
        if parameter not in encoder.real_names:
            raise DataError(f"the parameter of the horizontal axis is {parameter!r}; use one of {encoder.real_names}")
        configs = encoder.decode(self.configs)  # type: ignore[attr-defined]
        values = np.array([config.get(parameter, np.nan) for config in configs])
        order = np.argsort(values, kind="stable")
        figure = Figure(figsize=(8, 2 * len(self.names)), layout="constrained")
        panels = figure.subplots(len(self.names), sharex=True, squeeze=False)[:, 0]
        for panel, name, mean, sd in zip(panels, self.names, self.mean, self.sd, strict=True):
            panel.fill_between(values[order], (mean - width * sd)[order], (mean + width * sd)[order], alpha=0.3, lw=0)
            panel.plot(values[order], mean[order])
            panel.set_title(name, loc="left", fontsize="medium", parse_math=False)
        panels[-1].set_xlabel(parameter, parse_math=False)
        return figure


def split_into_components(
    kernel: Kernel,
    train: Encoded,
    targets: Targets,
    draws: Mapping[str, FloatArray],
    new: Encoded,
    y_mean: float,
    y_sd: float,
) -> Components:
    """Split the function at m configurations into summands; ``y_mean`` and ``y_sd`` standardised the targets."""
    names = kernel.component_names(train.encoder)
    s = len(draws["mu"])
    n = len(train)
    m = len(new)
    mean, sd = np.empty((2, s, len(names), m))
    rows = max(1, BLOCK // max(n * n, len(names) * n * m))
    for i in range(0, s, rows):
        block = {name: values[i : i + rows] for name, values in draws.items()}
        predictor = KernelPredictor.factorise(kernel, train, targets, block)
        cross = kernel.component_cross(new, train, block)  # (k, s, m, n)
        mean[i : i + rows] = np.einsum("ksmn,sn->skm", cross, predictor.weights)
        variance = kernel.component_diagonal(new, block).transpose(1, 0, 2)
        for j, factor in enumerate(predictor.factor):
            solved = solve_lower(factor, cross[:, j].reshape(-1, n)).reshape(len(names), m, n)
            sd[i + j] = np.sqrt(np.maximum(variance[j] - np.einsum("kmn,kmn->km", solved, solved), 0))
    centre, spread = mixture_moments(mean, sd)
    offset = y_mean + y_sd * float(draws["mu"].mean())
    return Components(names, y_sd * centre, abs(y_sd) * spread, offset, new)
