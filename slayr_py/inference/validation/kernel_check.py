"""Compare the Stan program of a kernel with its NumPy twin."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from slayr_py.arguments import check_integer
from slayr_py.errors import DataError
from slayr_py.inference.model import Model
from slayr_py.inference.prediction.stan_engine import coordinate_table
from slayr_py.inference.sampling.programs import compiled
from slayr_py.inference.sampling.run import generate
from slayr_py.kernels import Kernel
from slayr_py.space import Encoded, FloatArray, Space

_TOLERANCE = 1e-10  # of sigma_f^2
_SMALLEST_EIGENVALUE = -1e-8  # of the largest one


def check_kernel(kernel: Kernel | str, space: Space, *, points: int = 6, draws: int = 5, seed: int = 1) -> float:
    """Compare a kernel in Stan and in NumPy at random configurations and hyperparameters.

    Parameters
    ----------
    kernel : Kernel or str
    space : ConfigurationSpace, Encoder or mapping
    points : int
        Number of configurations. Each of them occurs twice, so that some coincide.
    draws : int
        Number of draws of the hyperparameters from their priors.
    seed : int

    Returns
    -------
    float
        Largest difference of a covariance, divided by ``sigma_f**2``; at most 1e-10.

    Raises
    ------
    DataError
        If a covariance differs by more, with the first one; if the kernel is not symmetric or not positive
        semidefinite; or if the derivative of the log density is not finite where configurations coincide. For an
        illegal seed.
    CompileError
        If the program does not compile.
    InferenceError
        If Stan fails.
    """
    seed = check_integer("seed", seed, minimum=0)
    model = Model(space, kernel)
    once = model.encoder.encode(model.encoder.sobol(points, seed))
    encoded = once.concatenate(once[np.arange(len(once))[::-1]])
    program = compiled(model.kernel.program)
    rng = np.random.default_rng(seed)
    coordinates = {name: rng.normal(size=(1, draws, *shape)) for name, shape in model.parameter_shapes.items()}
    data = model.stan_data(encoded[:1], np.zeros(1), encoded, prior_only=True, pointwise=False) | {"want_cov": 1}
    output = generate(program, data, coordinate_table(coordinates), seed)

    sizes = {h.name: int(np.prod(h.shape)) for h in model.hyperparameters if h.shape != (0,)}
    values = output[[name for name in map(str, output) if name.startswith("theta.")]].to_numpy()
    split = model.kernel.contract.split(values, sizes)
    theta = {h.name: split[h.name].reshape(draws, *h.shape) for h in model.hyperparameters if h.name in split}
    order = range(1, len(encoded) + 1)
    in_stan = output[[f"f_cov.{i}.{j}" for i in order for j in order]].to_numpy().reshape(draws, len(order), len(order))
    in_numpy = model.kernel.cross(encoded, encoded, theta)
    difference = np.abs(in_stan - in_numpy) / np.square(theta["sigma_f"])[:, None, None]
    if wrong := np.argwhere(~(difference <= _TOLERANCE)).tolist():
        raise DataError(_disagreement(model, encoded, theta, in_stan, in_numpy, wrong))
    for matrix in in_numpy:
        eigenvalues = np.linalg.eigvalsh(matrix)
        if eigenvalues[0] < _SMALLEST_EIGENVALUE * eigenvalues[-1]:
            raise DataError(
                f"the kernel {model.kernel.name!r} is not positive semidefinite: a covariance matrix of {len(matrix)} "
                f"configurations has the eigenvalue {eigenvalues[0]:.3g}; correct the covariance function"
            )
    observed = model.stan_data(encoded, rng.normal(size=len(encoded)), encoded[:0], pointwise=False)
    first = {name: values[0, 0].tolist() for name, values in coordinates.items()}
    absent: dict[str, list[float]] = {
        parameter.coordinate: [] for parameter in model.kernel.contract.parameters if parameter.coordinate not in first
    }
    gradient = program.model().log_prob({**first, **absent}, data=observed)
    if not np.all(np.isfinite(gradient.to_numpy())):
        raise DataError(
            f"the derivative of the log density of the kernel {model.kernel.name!r} is not finite where "
            "configurations coincide; avoid sqrt(0) in the Stan function, as in sqrt(h + 1e-300)"
        )
    return float(difference.max())


def _disagreement(
    model: Model,
    encoded: Encoded,
    theta: Mapping[str, FloatArray],
    in_stan: FloatArray,
    in_numpy: FloatArray,
    wrong: list[list[int]],
) -> str:
    draw, i, j = wrong[0]
    a, b = ({**config} for config in model.encoder.decode(encoded[np.array([i, j])]))
    values: dict[str, Any] = {name: np.round(draws[draw], 4).tolist() for name, draws in theta.items()}
    return (
        f"the kernel {model.kernel.name!r} differs between Stan and NumPy in {len(wrong)} of {in_stan.size} "
        f"covariances; the first is {in_stan[draw, i, j]:.12g} in Stan and {in_numpy[draw, i, j]:.12g} in NumPy, of "
        f"{a} and {b} with {values}; correct one of the two functions"
    )
