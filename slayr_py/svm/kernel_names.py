"""Kernel functions by name."""

from __future__ import annotations

from typing import Any

from slayr_py.errors import DataError, did_you_mean
from slayr_py.svm.gp_kernel import GPKernel
from slayr_py.svm.graph_kernels import Diffusion, InverseCosine, RandomWalk, RegularizedLaplacian
from slayr_py.svm.kernel_function import KernelFunction
from slayr_py.svm.precomputed import Precomputed
from slayr_py.svm.vector_kernels import RBF, Laplacian, Linear, Matern, Polynomial

_KERNELS: dict[str, type[KernelFunction]] = {
    "linear": Linear,
    "polynomial": Polynomial,
    "rbf": RBF,
    "laplacian": Laplacian,
    "matern": Matern,
    "precomputed": Precomputed,
    "gp": GPKernel,
    "diffusion": Diffusion,
    "regularized_laplacian": RegularizedLaplacian,
    "random_walk": RandomWalk,
    "inverse_cosine": InverseCosine,
}


def names() -> tuple[str, ...]:
    """Return the names that :func:`from_name` accepts."""
    return tuple(_KERNELS)


def from_name(name: str | KernelFunction, **options: Any) -> KernelFunction:
    """Return a kernel function by name.

    Parameters
    ----------
    name : str or KernelFunction
        One of :func:`names`, or a kernel function, which is returned unchanged.
    **options
        Arguments of the kernel function, such as ``gamma=0.1``.

    Raises
    ------
    DataError
        For an unknown name, or an unknown or missing option. "sigmoid" is refused, since it is not a Mercer kernel.
    """
    if isinstance(name, KernelFunction):
        if options:
            raise DataError(f"options {sorted(options)} cannot be added to {name!r}; pass them to it")
        return name
    if name == "sigmoid":
        raise DataError(
            "'sigmoid' is not a Mercer kernel: Gram matrices of tanh(gamma x'y + coef0) have negative eigenvalues; "
            "use 'rbf' or 'polynomial'"
        )
    if not isinstance(name, str) or name not in _KERNELS:
        raise DataError(f"unknown kernel {name!r}{did_you_mean(name, _KERNELS)}")
    try:
        return _KERNELS[name](**options)
    except TypeError as error:
        raise DataError(f"the kernel {name!r} cannot be made from {options}: {error}") from error
