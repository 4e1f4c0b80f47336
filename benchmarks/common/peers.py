"""One Gaussian process in slayr_py, NumPyro and PyMC with nutpie, and the measurements that compare them.

All samplers draw from the same posterior: Matérn-5/2 with one length-scale per dimension, constant mean, Gaussian noise
and slayr_py's default priors, except `PRIORS`. NumPyro and PyMC sample standard-normal scores of the logarithms, as
their users would write it. The draws are mu, log sigma_f, log sigma_n and log lengthscale, (chains, draws, 3 + D).
Install the peers with ``pip install numpyro pymc nutpie``.

A sampler has two methods: ``cold(n, seed)`` fits n observations without a warm start; ``next(n, seed)`` fits n
observations in a loop in which n grows.
"""

from __future__ import annotations

import os
import resource
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from typing import Any

import numpy as np

import slayr_py as sl
from benchmarks.common.problems import PROBLEMS
from slayr_py.inference import standard_error, standardised
from slayr_py.inference.diagnostics.arviz_bridge import arviz
from slayr_py.space import Encoder

CHAINS = 4
PRIORS = {"sigma_n": sl.LogNormal(-4.0, 1.0)}
"""A log-normal prior of the noise, so that all positive hyperparameters have the same family."""

WARMUP = 500
DRAWS = 500


def one_core() -> None:
    """Pin this process and its children to one core and one thread."""
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"):
        os.environ[name] = "1"
    os.environ["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"


def fit_saas(X: Any, Y: Any, seed: int) -> Any:
    """Fit BoTorch's fully Bayesian model with a sparse prior: 16 draws of one chain of NUTS, 512 + 256 steps.

    ``X`` is a tensor on the unit cube, ``Y`` one with a column. Install it with ``pip install botorch jax numpyro``.
    """
    from botorch.fit import fit_fully_bayesian_model_nuts
    from botorch.models.fully_bayesian import SaasFullyBayesianSingleTaskGP
    from botorch.models.transforms import Standardize

    model = SaasFullyBayesianSingleTaskGP(X, Y, outcome_transform=Standardize(1))
    fit_fully_bayesian_model_nuts(model, disable_progbar=True, seed=seed)
    return model


def cpu_seconds() -> float:
    """Return the processor time of this process and of its finished children."""
    usages = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(usage.ru_utime + usage.ru_stime for usage in usages)


def hartmann6(n: int, seed: int = 0) -> tuple[list[Any], np.ndarray]:
    """Return the first n points of a Sobol design on Hartmann6 and their values."""
    space, objective, *_ = PROBLEMS["hartmann6"]
    configs = Encoder(space).sobol(n, seed)
    return configs, np.array([objective(config) for config in configs])


def problem_of(n: int) -> tuple[np.ndarray, np.ndarray, dict[str, Any]]:
    """Return inputs in the unit cube (n, D), standardised targets (n,) and the Stan data with the prior parameters."""
    configs, y = hartmann6(n)
    gp = sl.GaussianProcess(PROBLEMS["hartmann6"][0], priors=PRIORS)
    train = gp.encoder.encode(configs)
    targets = standardised(y)[0]
    return train.columns, targets, gp.model.stan_data(train, targets, train[:0])


def effective(draws: np.ndarray) -> float:
    """Return the smallest rank-normalised bulk ESS (Vehtari et al. 2021) of the hyperparameters."""
    return min(float(arviz().ess(draws[..., j], method="bulk")) for j in range(draws.shape[-1]))


def distance(draws: np.ndarray, reference: np.ndarray) -> float:
    """Return the largest difference of a mean or a variance from the reference, in Monte Carlo standard errors."""
    worst = 0.0
    for j in range(draws.shape[-1]):
        centre = reference[..., j].mean()
        for moment in (lambda x: x, lambda x, c=centre: np.square(x - c)):
            a = moment(draws[..., j])
            b = moment(reference[..., j])
            error = np.hypot(standard_error(a), standard_error(b))
            worst = max(worst, abs(a.mean() - b.mean()) / error)
    return worst


class Slayr:
    """slayr_py with its own warm starts."""

    def __init__(self) -> None:
        self.gp = sl.GaussianProcess(PROBLEMS["hartmann6"][0], priors=PRIORS)
        self.gp.prepare()
        self.last: sl.Posterior | None = None

    def fit(self, n: int, seed: int, **options: Any) -> sl.Posterior:
        configs, y = hartmann6(n)
        return self.gp.fit(configs, y, seed=seed, **{"chains": CHAINS, "warmup": WARMUP, "draws": DRAWS} | options)

    def cold(self, n: int, seed: int) -> np.ndarray:
        return logarithms(self.fit(n, seed))

    def next(self, n: int, seed: int) -> np.ndarray:
        """Fit as in the optimisation loop: start warm from the previous fit and stop at 50 effective draws."""
        start = self.last.warm_start() if self.last else None
        self.last = self.fit(n, seed, warmup=300, draws=50, ess=50, start=start)
        return logarithms(self.last)

    def reference(self, n: int, seed: int) -> np.ndarray:
        return logarithms(self.fit(n, seed, warmup=1000, draws=5000))


def logarithms(posterior: sl.Posterior) -> np.ndarray:
    tree = posterior.idata["posterior"].to_dataset()
    scalars = [tree["mu"].values, np.log(tree["sigma_f"].values), np.log(tree["sigma_n"].values)]
    return np.concatenate([np.stack(scalars, axis=-1), np.log(tree["lengthscale"].values)], axis=-1)


class NumPyro:
    """NumPyro's NUTS with sequential chains, compiled once for each n."""

    def __init__(self) -> None:
        import jax

        jax.config.update("jax_enable_x64", True)
        self.compiled: dict[int, Any] = {}

    def cold(self, n: int, seed: int) -> np.ndarray:
        import jax

        if n not in self.compiled:
            self.compiled[n] = self._sampler(n)
        self.compiled[n].run(jax.random.key(seed))
        scores = self.compiled[n].get_samples(group_by_chain=True)
        return scores_to_logarithms({name: np.asarray(value) for name, value in scores.items()}, n)

    def next(self, n: int, seed: int) -> np.ndarray:
        self.compiled.clear()
        return self.cold(n, seed)

    @staticmethod
    def _sampler(n: int) -> Any:
        import jax.numpy as jnp
        import numpyro
        import numpyro.distributions as dist
        from numpyro.infer import MCMC, NUTS

        x, y, prior = problem_of(n)
        squares = jnp.square(x[:, None] - x[None])
        targets = jnp.asarray(y)
        dimensions = x.shape[1]

        def model() -> None:
            z = {name: numpyro.sample(name, dist.Normal()) for name in ("mu", "sigma_f", "sigma_n")}
            z["lengthscale"] = numpyro.sample("lengthscale", dist.Normal().expand([dimensions]))
            sigma_f, sigma_n, lengthscale = (
                jnp.exp(prior[f"{name}_location"] + prior[f"{name}_scale"] * z[name])
                for name in ("sigma_f", "sigma_n", "lengthscale")
            )
            d = jnp.sqrt(5 * (squares @ lengthscale**-2.0) + 1e-300)
            covariance = sigma_f**2 * (1 + d + d**2 / 3) * jnp.exp(-d) + sigma_n**2 * jnp.eye(n)
            factor = jnp.linalg.cholesky(covariance)
            numpyro.sample("y", dist.MultivariateNormal(z["mu"], scale_tril=factor), obs=targets)

        return MCMC(
            NUTS(model),
            num_warmup=WARMUP,
            num_samples=DRAWS,
            num_chains=CHAINS,
            chain_method="sequential",
            progress_bar=False,
        )


class Nutpie:
    """PyMC's Gaussian process, sampled by nutpie; compiled once and updated with new data."""

    def __init__(self) -> None:
        self.compiled: Any = None

    def cold(self, n: int, seed: int) -> np.ndarray:
        import nutpie

        x, y, _ = problem_of(n)
        if self.compiled is None:
            self.compiled = self._model(n)
        trace = nutpie.sample(
            self.compiled.with_data(X=x, Y=y),
            draws=DRAWS,
            tune=WARMUP,
            chains=CHAINS,
            cores=1,
            seed=seed,
            progress_bar=False,
        )
        names = ("mu", "sigma_f", "sigma_n", "lengthscale")
        return scores_to_logarithms({name: trace.posterior[name].values for name in names}, n)

    next = cold

    @staticmethod
    def _model(n: int) -> Any:
        import nutpie
        import pymc as pm
        import pytensor.tensor as pt

        x, y, prior = problem_of(n)
        with pm.Model() as model:
            inputs = pm.Data("X", x)
            targets = pm.Data("Y", y)
            z = {name: pm.Normal(name) for name in ("mu", "sigma_f", "sigma_n")}
            z["lengthscale"] = pm.Normal("lengthscale", shape=x.shape[1])
            sigma_f, sigma_n, lengthscale = (
                pt.exp(prior[f"{name}_location"] + prior[f"{name}_scale"] * z[name])
                for name in ("sigma_f", "sigma_n", "lengthscale")
            )
            kernel = sigma_f**2 * pm.gp.cov.Matern52(x.shape[1], ls=lengthscale)
            gp = pm.gp.Marginal(mean_func=pm.gp.mean.Constant(z["mu"]), cov_func=kernel)
            gp.marginal_likelihood("y", X=inputs, y=targets, sigma=sigma_n, jitter=0.0)
        return nutpie.compile_pymc_model(model)


def scores_to_logarithms(z: dict[str, np.ndarray], n: int) -> np.ndarray:
    _, _, prior = problem_of(n)
    logs = [z["mu"][..., None]]
    for name in ("sigma_f", "sigma_n", "lengthscale"):
        score = z[name] if z[name].ndim == 3 else z[name][..., None]
        logs.append(prior[f"{name}_location"] + prior[f"{name}_scale"] * score)
    return np.concatenate(logs, axis=-1)


SAMPLERS: dict[str, Callable[[], Any]] = {"slayr": Slayr, "NumPyro": NumPyro, "PyMC + nutpie": Nutpie}

_worker: Any = None


def _start_worker(name: str) -> None:
    global _worker
    one_core()
    _worker = SAMPLERS[name]()


def _call(method: str, n: int, seed: int) -> tuple[np.ndarray, float]:
    started = cpu_seconds()
    draws = getattr(_worker, method)(n, seed)
    return draws, cpu_seconds() - started


class Process:
    """A sampler in a separate process, so that its imports and compilations do not slow down the others."""

    def __init__(self, name: str) -> None:
        self.pool = ProcessPoolExecutor(1, get_context("spawn"), _start_worker, (name,))

    def __call__(self, method: str, n: int, seed: int) -> tuple[np.ndarray, float]:
        """Return draws and processor seconds."""
        return self.pool.submit(_call, method, n, seed).result()
