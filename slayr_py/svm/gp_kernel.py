"""Covariance functions of Gaussian processes as kernels of support vector machines."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np
from ConfigSpace import ConfigurationSpace
from typing_extensions import override

from slayr_py.arguments import check_integer
from slayr_py.kernels import Hyperparameters, Kernel, from_name
from slayr_py.space import Encoded, Encoder
from slayr_py.space.dimension import FloatArray
from slayr_py.svm.kernel_function import KernelFunction

if TYPE_CHECKING:
    from slayr_py.inference import Posterior


class GPKernel(KernelFunction):
    """A kernel of :mod:`slayr_py.kernels` at one setting of its hyperparameters; points are configurations.

    Parameters
    ----------
    space : ConfigSpace.ConfigurationSpace or Encoder
    kernel : Kernel or str
        A kernel, its name, or "auto".
    theta : mapping of str to array_like
        Hyperparameters by name, as for :meth:`slayr_py.kernels.Kernel.gram`: ``sigma_f`` defaults to 1; the mean and
        the noise are ignored.

    Examples
    --------
    >>> from ConfigSpace import ConfigurationSpace
    >>> kernel = GPKernel(ConfigurationSpace({"x": (0.0, 1.0)}), "matern", {"lengthscale": [0.5]})
    >>> kernel([{"x": 0.0}, {"x": 0.0}]).tolist()
    [[1.0, 1.0], [1.0, 1.0]]
    """

    def __init__(self, space: ConfigurationSpace | Encoder, kernel: Kernel | str, theta: Hyperparameters) -> None:
        self.space, self.kernel, self.theta = space, kernel, theta

    @classmethod
    def from_posterior(cls, posterior: Posterior, draw: int | None = None) -> Self:
        """Make the kernel of a fitted Gaussian process.

        Parameters
        ----------
        posterior : Posterior
        draw : int, optional
            Index of a draw over all chains; by default the hyperparameters are the posterior means.

        Raises
        ------
        DataError
            If ``draw`` is not an integer from 0 to the number of draws minus 1.
        """
        if draw is not None:
            check_integer("draw", draw, 0, posterior.n_draws - 1)
        theta = {k: np.mean(v, axis=0) if draw is None else v[draw] for k, v in posterior.draws.items()}
        return cls(posterior.encoder, posterior.kernel, theta)

    @override
    def check(self) -> None:
        """Do nothing: a kernel checks its hyperparameters when it is evaluated."""

    @override
    def read(self, X: Any) -> Encoded:
        """Encode configurations, mappings, a DataFrame, an (n, D) array or ``Encoded``."""
        encoder = self.space if isinstance(self.space, Encoder) else Encoder(self.space)
        return encoder.encode(X)

    @override
    def between(self, a: Encoded, b: Encoded) -> FloatArray:
        return from_name(self.kernel, a.encoder).gram(a, b, self.theta)
