"""The covariance functions of the Gaussian processes as kernels of a support vector machine."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol, Self

import numpy as np
from typing_extensions import override

from slayr_py.arguments import check_integer
from slayr_py.kernels import Hyperparameters, Kernel, from_name
from slayr_py.space import Encoded, Encoder, FloatArray, Space, as_encoder
from slayr_py.svm.kernel_function import KernelFunction


class FittedProcess(Protocol):
    """A fitted Gaussian process: its kernel, and s draws of the hyperparameters."""

    @property
    def encoder(self) -> Encoder:
        """The encoder of the space."""

    @property
    def kernel(self) -> Kernel:
        """The kernel."""

    @property
    def draws(self) -> Mapping[str, FloatArray]:
        """Hyperparameters by name, (s, ...)."""

    @property
    def n_draws(self) -> int:
        """Number of draws s."""


@dataclass(eq=False, repr=False)
class GPKernel(KernelFunction):
    """A kernel of :mod:`slayr_py.kernels` at one setting of its hyperparameters; points are configurations.

    Parameters
    ----------
    space : ConfigSpace.ConfigurationSpace, Encoder or mapping
    kernel : Kernel or str
        A kernel, its name, or "auto".
    theta : mapping of str to array_like
        Hyperparameters by name, as :meth:`slayr_py.kernels.Kernel.gram` takes them: ``sigma_f`` is 1 when absent;
        the mean and the noise are ignored.

    Examples
    --------
    >>> from ConfigSpace import ConfigurationSpace
    >>> kernel = GPKernel(ConfigurationSpace({"x": (0.0, 1.0)}), "matern", {"lengthscale": [0.5]})
    >>> kernel([{"x": 0.0}, {"x": 0.0}]).tolist()
    [[1.0, 1.0], [1.0, 1.0]]
    """

    space: Space
    kernel: Kernel | str
    theta: Hyperparameters

    @classmethod
    def from_posterior(cls, posterior: FittedProcess, draw: int | None = None) -> Self:
        """Return the kernel of a fitted Gaussian process.

        Parameters
        ----------
        posterior : Posterior
        draw : int, optional
            Number of a draw, counted over all chains; by default the hyperparameters are the posterior's means.

        Raises
        ------
        DataError
            If there is no such draw.
        """
        if draw is not None:
            draw = check_integer("draw", draw, minimum=0, maximum=posterior.n_draws - 1)
        theta = {k: np.mean(v, axis=0) if draw is None else v[draw] for k, v in posterior.draws.items()}
        return cls(posterior.encoder, posterior.kernel, theta)

    @override
    def read(self, X: Any) -> Encoded:
        """Encode configurations, mappings, a DataFrame, an (n, D) array or ``Encoded``."""
        return as_encoder(self.space).encode(X)

    @override
    def between(self, a: Encoded, b: Encoded) -> FloatArray:
        return from_name(self.kernel, a.encoder).gram(a, b, self.theta)
