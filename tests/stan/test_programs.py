"""Every program as a whole, over the registry of kernels: covariance, density, gradient, generated quantities."""

from __future__ import annotations

import functools

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit, softmax
from scipy.stats import gamma, halfnorm, invgamma, multivariate_normal, norm
from testing_kernels import CASES, random_points
from testing_programs import readable

import slayr_py as sl
from slayr_py.errors import InferenceError
from slayr_py.inference.sampling.programs import compiled
from slayr_py.inference.sampling.run import generate
from slayr_py.inference.warp import log_slope, warped
from slayr_py.space import Encoded, Encoder

pytestmark = pytest.mark.stan

NOISE = {"mu": sl.Normal(0.2, 0.7), "sigma_f": sl.LogNormal(0.1, 0.4), "sigma_n": sl.LogNormal(-1.0, 0.5)}


# These also have priors of other families. All other Gaussian models have known errors of the targets.
WARPED = [f"{name}, warp" for name in ("matern-plain", "additive-plain", "hierarchical-se-product", "fm-laplacian")]
WARPED += ["composite-plain, warp"]
FAMILIES = NOISE | {"sigma_f": sl.Gamma(2.0, 1.5), "sigma_n": sl.HalfNormal(0.5), "lengthscale": sl.InverseGamma(3, 2)}
PROBIT = ["matern-plain, probit", "additive-plain, probit", "hierarchical-se-product, probit", "fm-laplacian, probit"]
NAMES = sorted([*CASES, *WARPED])


DISTRIBUTIONS = {
    sl.Gamma: lambda prior: gamma(prior.shape, scale=1 / prior.rate),
    sl.HalfNormal: lambda prior: halfnorm(scale=prior.sigma),
    sl.InverseGamma: lambda prior: invgamma(prior.shape, scale=prior.scale),
}


def probit_marginal(y, covariance, mu):
    """Return the Laplace approximation of the log probability of signs y, by Newton steps for whitened values."""
    root = np.linalg.cholesky(covariance + 1e-13 * np.eye(len(y)))  # the covariance of points that coincide is singular
    v = np.zeros(len(y))
    for _ in range(40):
        z = y * (mu + root @ v)
        ratio = np.exp(norm.logpdf(z) - norm.logcdf(z))
        curvature = np.eye(len(y)) + root.T @ np.diag(ratio * (ratio + z)) @ root
        step = np.linalg.solve(curvature, v - root.T @ (y * ratio))
        v -= step
        if np.abs(step).max() < 1e-13:
            break
    return norm.logcdf(y * (mu + root @ v)).sum() - 0.5 * v @ v - 0.5 * np.linalg.slogdet(curvature)[1]


class Case:
    """A model on a few points, two of which coincide, and its coordinates by name."""

    def __init__(self, name, n=7, m=0, seed=0, likelihood=None):
        kernel, space = CASES[name.partition(", ")[0]]
        self.encoder = Encoder(space)
        if name.endswith(", probit"):
            self.gp = sl.GaussianProcess(self.encoder, kernel, likelihood="probit")
        elif name in WARPED:
            self.gp = sl.GaussianProcess(self.encoder, kernel, FAMILIES, "log")
        else:
            self.gp = sl.GaussianProcess(self.encoder, kernel, NOISE)
        points = random_points(self.encoder, max(n - 2, 1), seed)
        self.train = points.concatenate(points[:2])[:n]
        self.new = random_points(self.encoder, m, seed + 1)
        self.y = np.random.default_rng(seed).normal(size=n)
        self.errors = np.random.default_rng(seed).uniform(0.1, 0.4, n) if name in CASES else np.zeros(n)
        if name.endswith(", probit"):
            self.y = np.where(self.y < 0, -1.0, 1.0)
        self.data = self.gp.model.stan_data(self.train, self.y, self.new, y_sd=self.errors)
        self.program = readable(kernel.program) if likelihood == "readable" else compiled(kernel.program)
        self.shapes = {h.name: h.shape for h in self.gp.hyperparameters}
        self.sizes = {name: int(np.prod(shape)) for name, shape in self.shapes.items()}
        declared = kernel.contract.parameters
        self.scalars = {parameter.name for parameter in declared if not parameter.shape}
        # Parameters of the program that this kernel has none of.
        self.absent = [parameter.coordinate for parameter in declared if not self.sizes.get(parameter.name)]

    @functools.cached_property
    def model(self):
        return self.program.model()

    @property
    def n_coordinates(self):
        return sum(self.sizes.values())

    def coordinates(self, z):
        """Return a flat vector of coordinates by the program's names."""
        ends = np.cumsum(list(self.sizes.values()))
        parts = np.split(z, ends[:-1])
        return {
            f"z_{name}": part[0] if name in self.scalars else part for name, part in zip(self.sizes, parts, strict=True)
        }

    def frame(self, points):
        """Return rows of coordinates as CmdStan's columns."""
        columns = []
        for name, size in self.sizes.items():
            columns += [f"z_{name}"] if name in self.scalars else [f"z_{name}.{i + 1}" for i in range(size)]
        return pd.DataFrame(points, columns=columns)

    def standard_score(self, name, z):
        """Return the standard-normal score of a coordinate and its slope, from docs/decisions/coordinates.md."""
        n = len(self.y)
        if name in ("lengthscale", "sigma_n"):
            mu, sigma = self.location_and_scale(name)
        if name == "sigma_n" and not sigma:
            return -z, np.ones(np.shape(z))
        if name == "lengthscale":
            side = 1
            ratio = np.sqrt(1 + 0.13 * n * sigma**2)
            origin = -mu / sigma
        elif name == "sigma_n":
            side = -1
            ratio = np.sqrt(1 + 0.5 * n * sigma**2)
            origin = (np.log(0.3) - mu) / sigma
        else:
            return z, np.ones(np.shape(z))
        score = origin + z / ratio + side * (1 - 1 / ratio) * np.logaddexp(0, 2 * side * z) / 2
        return score, 1 / ratio + (1 - 1 / ratio) * expit(2 * side * z)

    def location_and_scale(self, name):
        """Return the log-normal distribution of whose scores the coordinates are."""
        return tuple(np.asarray(self.data[f"{name}_{suffix}"]) for suffix in ("location", "scale"))

    def family_correction(self, name, theta):
        """Return the log density ratio of the prior of a positive hyperparameter and its log-normal distribution."""
        if type(prior := self.gp.priors[name]) not in DISTRIBUTIONS:
            return 0.0
        location, scale = self.location_and_scale(name)
        distribution = DISTRIBUTIONS[type(prior)](prior)
        return np.sum(distribution.logpdf(theta) + np.log(theta) - norm.logpdf(np.log(theta), location, scale))

    def theta(self, z):
        """Return the hyperparameters of coordinates, from the definition of each prior."""
        theta = {}
        for name, coordinate in self.coordinates(z).items():
            name = name.removeprefix("z_")
            prior = self.gp.priors[name]
            score, _ = self.standard_score(name, coordinate)
            if isinstance(prior, sl.Beta):
                theta[name] = expit(score)
            elif isinstance(prior, sl.Dirichlet):
                theta[name] = softmax(score)
            else:
                location, scale = self.location_and_scale(name)
                value = location + scale * score
                theta[name] = value if isinstance(prior, sl.Normal) else np.exp(value)
            if not self.shapes[name]:
                theta[name] = float(np.squeeze(theta[name]))
        single = {name: np.asarray(value)[None] for name, value in theta.items()}
        theta["sigma_f"] /= np.sqrt(self.gp.kernel.reference_variance(self.encoder, single)[0])
        return theta

    def log_density(self, z, jacobian=1):
        theta = self.theta(z)
        single = {name: np.asarray(value)[None] for name, value in theta.items()}
        undivided = theta["sigma_f"] * np.sqrt(self.gp.kernel.reference_variance(self.encoder, single)[0])
        value = sum(self.family_correction(name, v) for name, v in (theta | {"sigma_f": undivided}).items())
        for name, score in self.coordinates(z).items():
            prior = self.gp.priors[name.removeprefix("z_")]
            if isinstance(prior, sl.Beta):
                value += np.sum(
                    np.asarray(prior.a) * np.log(expit(score)) + np.asarray(prior.b) * np.log(expit(-score))
                )
            elif isinstance(prior, sl.Dirichlet):
                value += np.sum(np.asarray(prior.concentration) * score - np.exp(score))
            else:
                standard, slope = self.standard_score(name.removeprefix("z_"), score)
                value += np.sum(np.log(slope)) * jacobian - 0.5 * np.sum(np.square(standard))
        return value + self.log_likelihood(theta)

    def log_likelihood(self, theta):
        if self.gp.model.likelihood == "probit":
            return probit_marginal(self.y, self.gram(self.train, self.train, theta), theta["mu"])
        normal = multivariate_normal(np.full(len(self.y), theta["mu"]), self.covariance(theta))
        return normal.logpdf(self.targets(theta)) + self.log_slope(theta).sum()

    def log_orthant(self, theta):
        """Return the log probability of signs y of a function plus standard normal noise."""
        covariance = self.y[:, None] * self.gram(self.train, self.train, theta) * self.y + np.eye(len(self.y))
        exact = multivariate_normal(-self.y * theta["mu"], covariance, abseps=1e-6, maxpts=10**5, seed=1)
        return np.log(exact.cdf(np.zeros(len(self.y))))

    def targets(self, theta):
        return warped(self.y, np.array(theta["warp"])) if "warp" in theta else self.y

    def log_slope(self, theta):
        return log_slope(self.y, np.array(theta["warp"])) if "warp" in theta else np.zeros(len(self.y))

    def gram(self, a: Encoded, b: Encoded, theta):
        return self.gp.kernel.gram(a, b, theta)

    def covariance(self, theta):
        noise = theta["sigma_n"] ** 2 + self.gp.model.noise_floor**2 + self.errors**2
        return self.gram(self.train, self.train, theta) + np.diag(noise * np.ones(len(self.y)))

    def stan_log_density(self, points, **data):
        """Return value and gradient by CmdStan's log_prob."""
        rows = []
        for z in points:
            values = {name: value for name, value in self.coordinates(z).items() if np.size(value)}
            values |= {name: [] for name in self.absent}
            frame = self.model.log_prob(values, data=self.data | data, sig_figs=18)
            rows.append(frame.iloc[0].to_numpy())
        table = np.array(rows)
        return table[:, 0], table[:, 1:]


@pytest.mark.parametrize("name", NAMES)
def test_covariance_equals_numpy_at_thirty_hyperparameters(name):
    # Without the likelihood the covariance of the latent function at new points is the kernel.
    case = Case(name, m=9)
    points = np.random.default_rng(1).normal(size=(30, case.n_coordinates))
    data = case.data | {"want_cov": 1, "prior_only": 1}
    if "given_new" in data:
        given = case.gp.kernel.plan(case.encoder).given
        columns = [one.between(case.new, case.new).T[np.triu_indices(9, 1)] for one in given]
        data["given_new"] = np.column_stack([*columns, np.zeros((36, 0))])
    output = generate(case.program, data, case.frame(points), seed=3)
    columns = [c for c in output if c.startswith("f_cov.")]
    for z, row in zip(points, output[columns].to_numpy(), strict=True):
        wanted = case.gram(case.new, case.new, case.theta(z))
        np.testing.assert_allclose(row.reshape(9, 9), wanted, rtol=1e-10, atol=1e-10 * wanted.max())


@pytest.mark.parametrize("name", [*NAMES, *PROBIT, "composite-plain, probit"])
def test_log_density_and_gradient(name):
    case = Case(name)
    points = np.random.default_rng(2).normal(size=(2, case.n_coordinates))
    value, gradient = case.stan_log_density(points)
    wanted = np.array([case.log_density(z) for z in points])
    # The search for the mode of latent values ends where rounding hides that their density grows: on some processors
    # they are then known to 1e-7 only, and so is the determinant there.
    tolerance = 1e-6 if "probit" in name else 1e-8
    # Stan drops constants: compare differences.
    np.testing.assert_allclose(np.diff(value), np.diff(wanted), rtol=tolerance, atol=tolerance)
    h = 1e-5
    for z, slope in zip(points, gradient, strict=True):
        for j in range(case.n_coordinates):
            step = h * np.eye(case.n_coordinates)[j]
            finite = (case.log_density(z + step) - case.log_density(z - step)) / (2 * h)
            assert slope[j] == pytest.approx(finite, rel=1e-5, abs=2e-6)


@pytest.mark.parametrize(
    ("name", "likelihood"),
    [*((name, "accelerated") for name in [*NAMES, *PROBIT]), *((name, "readable") for name in [*WARPED, *PROBIT])],
)
def test_density_in_generated_quantities_is_that_of_the_model_and_exact_if_binary(name, likelihood):
    case = Case(name, likelihood=likelihood)
    points = np.random.default_rng(3).normal(size=(2, case.n_coordinates))
    value, _ = case.stan_log_density(points)
    tolerance = 1e-9
    if name in PROBIT:
        thetas = [case.theta(z) for z in points]
        value += [case.log_orthant(theta) - case.log_likelihood(theta) for theta in thetas]
        tolerance = 0.02  # of expectation propagation; the approximation that chains follow is 0.1 to 1 away
    output = generate(case.program, case.data | {"want_density": 1}, case.frame(points), seed=1)
    np.testing.assert_allclose(np.diff(output["log_density.1"]), np.diff(value), rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("name", ["matern-plain", "hierarchical-se-sum", "fm-laplacian"])
def test_density_without_the_jacobian(name):
    case = Case(name)
    points = np.random.default_rng(2).normal(size=(3, case.n_coordinates))
    value, _ = case.stan_log_density(points, omit_jacobian=1)
    wanted = np.array([case.log_density(z, jacobian=0) for z in points])
    np.testing.assert_allclose(np.diff(value), np.diff(wanted), rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("name", [name for name in sorted(CASES) if "hierarchical" in name])
@pytest.mark.parametrize("end", [-30.0, 30.0])
def test_gradient_at_the_ends_of_the_weights(name, end):
    case = Case(name)
    z = np.random.default_rng(4).normal(size=case.n_coordinates)
    start = 0
    for label, size in case.sizes.items():
        if label in ("gamma", "rho"):
            z[start : start + size : 2] = end
        start += size
    value, gradient = case.stan_log_density([z, z + 1e-6])
    assert np.all(np.isfinite(gradient))
    # Compare the change along a line with the gradient.
    assert np.diff(value)[0] == pytest.approx(1e-6 * gradient.mean(axis=0).sum(), rel=1e-3, abs=1e-8)


@pytest.mark.parametrize("name", NAMES)
def test_prior_alone(name):
    case = Case(name)
    points = np.random.default_rng(5).normal(size=(2, case.n_coordinates))
    value, _ = case.stan_log_density(points, prior_only=1)
    likelihood = [case.log_likelihood(theta) for theta in map(case.theta, points)]
    wanted = np.array([case.log_density(z) for z in points]) - likelihood
    np.testing.assert_allclose(np.diff(value), np.diff(wanted), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("likelihood", ["accelerated", "readable"])
@pytest.mark.parametrize(
    "name", ["matern-plain", "matern-plain, probit", "hierarchical-se-sum", "fm-laplacian", "composite-plain"]
)
def test_density_in_generated_quantities_is_that_of_the_prior_without_the_likelihood(name, likelihood):
    case = Case(name, likelihood=likelihood)
    points = np.random.default_rng(5).normal(size=(2, case.n_coordinates))
    value, _ = case.stan_log_density(points, prior_only=1)
    output = generate(case.program, case.data | {"want_density": 1, "prior_only": 1}, case.frame(points), seed=1)
    np.testing.assert_allclose(np.diff(output["log_density.1"]), np.diff(value), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("name", NAMES)
def test_generated_quantities_against_inverses(name):
    case = Case(name, m=4)
    points = 0.7 * np.random.default_rng(6).normal(size=(10, case.n_coordinates))
    output = generate(case.program, case.data, case.frame(points), seed=3)
    for z, (_, row) in zip(points, output.iterrows(), strict=True):
        theta = case.theta(z)
        inverse = np.linalg.inv(case.covariance(theta))
        cross = case.gram(case.train, case.new, theta)
        targets = case.targets(theta)
        residual = targets - theta["mu"]
        mean = theta["mu"] + cross.T @ inverse @ residual
        variance = np.diag(case.gram(case.new, case.new, theta) - cross.T @ inverse @ cross)
        np.testing.assert_allclose(row[[f"f_mean.{j + 1}" for j in range(4)]], mean, rtol=1e-7, atol=1e-8)
        # The root doubles the relative error of a variance that is a difference of nearly equal numbers.
        np.testing.assert_allclose(np.square(row[[f"f_sd.{j + 1}" for j in range(4)]]), variance, rtol=1e-7, atol=1e-8)
        precision = np.diag(inverse)
        wanted = norm(targets - (inverse @ residual) / precision, 1 / np.sqrt(precision)).logpdf(targets)
        wanted += case.log_slope(theta)
        np.testing.assert_allclose(row[[f"log_lik.{j + 1}" for j in range(7)]], wanted, rtol=1e-7, atol=1e-7)


@pytest.mark.parametrize("name", ["matern-plain", "matern-plain, warp", "hierarchical-se-sum", "fm-neural"])
@pytest.mark.parametrize("prior_only", [False, True])
def test_replicates_are_draws_from_the_prior_or_given_all_other_observations(name, prior_only):
    case = Case(name, n=4)
    z = 0.5 * np.random.default_rng(7).normal(size=case.n_coordinates)
    n = 5_000
    data = case.data | {"prior_only": int(prior_only)}
    output = generate(case.program, data, case.frame(np.tile(z, (n, 1))), seed=11)
    replicates = output[[f"y_rep.{j + 1}" for j in range(4)]].to_numpy()
    theta = case.theta(z)
    if "warp" in theta:
        replicates = warped(replicates, np.array(theta["warp"]))
    mean = np.full(4, theta["mu"])
    cov = case.covariance(theta)
    if not prior_only:
        inverse = np.linalg.inv(cov)
        targets = case.targets(theta)
        variance = 1 / np.diag(inverse)
        mean = targets - variance * (inverse @ (targets - mean))
        cov = np.diag(variance)
    deviations = replicates - mean
    error = deviations.std(axis=0) / np.sqrt(n)
    assert np.all(np.abs(deviations.mean(axis=0)) < 4.5 * error)
    products = deviations[:, :, None] * deviations[:, None, :]
    error = products.std(axis=0) / np.sqrt(n)
    assert np.all(np.abs(products.mean(axis=0) - cov) < 4.5 * error)


def test_replicates_of_binary_targets_are_joint_draws_from_the_prior_whatever_was_observed():
    case = Case("matern-plain, probit", n=4)  # the points 1 and 3 coincide, as do 2 and 4
    z = np.zeros(case.n_coordinates)
    z[list(case.sizes).index("sigma_f")] = 2.0
    theta = case.theta(z)
    cov = case.gram(case.train, case.train, theta) + np.eye(4)
    above = norm.cdf(theta["mu"] / np.sqrt(np.diag(cov)))
    for y in ([1.0, 1.0, 1.0, -1.0], [-1.0, 1.0, 1.0, 1.0]):
        data = case.data | {"prior_only": 1, "y": np.array(y)}
        output = generate(case.program, data, case.frame(np.tile(z, (5_000, 1))), seed=11)
        replicates = output[[f"y_rep.{j + 1}" for j in range(4)]].to_numpy() > 0
        np.testing.assert_allclose(replicates.mean(axis=0), above, atol=4.5 * 0.5 / np.sqrt(5_000))
        for i, j in ((0, 1), (0, 2), (1, 3)):
            pair = np.ix_([i, j], [i, j])
            both = multivariate_normal(np.full(2, theta["mu"]), cov[pair]).cdf([np.inf, np.inf], lower_limit=[0, 0])
            found = np.mean(replicates[:, i] & replicates[:, j])
            assert found == pytest.approx(both, abs=4.5 * 0.5 / np.sqrt(5_000))


@pytest.mark.parametrize("likelihood", ["accelerated", "readable"])
@pytest.mark.parametrize("name", ["matern-plain", "matern-plain, probit"])
def test_without_observations_there_are_predictions(name, likelihood):
    case = Case(name, n=0, m=2, likelihood=likelihood)
    z = np.random.default_rng(6).normal(size=case.n_coordinates)
    output = generate(case.program, case.data, case.frame(z[None]), seed=1)
    assert case.data["want_pointwise"]
    theta = case.theta(z)
    np.testing.assert_allclose(output[["f_mean.1", "f_mean.2"]].to_numpy()[0], theta["mu"])
    np.testing.assert_allclose(output[["f_sd.1", "f_sd.2"]].to_numpy()[0], theta["sigma_f"])


ONE = {f"{name}_{suffix}": [1.0] for name, suffix in (("warp", "location"), ("warp", "scale"))}
NO_COLUMNS = {"D": 0, "X": np.zeros((7, 0)), "X_new": np.zeros((0, 0)), "lengthscale_gamma": np.zeros((0, 3))}
NO_COLUMNS |= {f"lengthscale_{suffix}": [] for suffix in ("location", "scale")}
NO_DIMENSIONS = NO_COLUMNS | {"active": np.zeros((7, 0)), "active_new": np.zeros((0, 0)), "levels": []}
NO_DIMENSIONS |= {"lineage": np.zeros((0, 0)), "gamma_a": [], "gamma_b": [], "rho_a": [], "rho_b": []}
# The leaves of LIN * PER + (RQ[x] + C) * SE have 2, 2, 1, 0 and 2 columns.
REFUSED = {
    "signs of 0 and 1": ("matern-plain, probit", {"y": np.array([0.0, 1, 1, 0, 1, 1, 0])}, "y is 0 .* use 1 or -1"),
    "signs with errors": ("matern-plain, probit", {"y_sd": np.full(7, 0.1)}, "y_sd is above 0 .* and binary is 1"),
    "signs with a warp": (
        "matern-plain, probit",
        {"n_warp": 1, **ONE, "warp_gamma": np.zeros((1, 3))},
        "n_warp is 1, and binary is 1",
    ),
    "no columns": ("additive-plain", NO_COLUMNS, "additive is 1, and D is 0"),
    "no dimensions": ("hierarchical-se-sum", NO_DIMENSIONS, "add is 1, and D is 0"),
    "rational quadratic": ("separable-laplacian-sum", {"base": 2}, "combine is 2, and base is 2"),
    "power": ("fm-power-tau", {"combine": 1}, "combine is 1, and modulator is 2; use modulator = 1 or 4"),
    "neural": ("fm-neural", {"combine": 2}, "combine is 2, and modulator is 3; use modulator = 1 or 4"),
    "orders": ("fm-laplacian", {"orders": 3}, "orders is 3, and modulator is 1; use orders = 1"),
    "gamma": (
        "fm-laplacian",
        {"H": 1, "lineage": None, "gamma_a": [1.0], "gamma_b": [1.0]},
        "H is 1, and modulator is 1; use H = 0",
    ),
    "tau": ("fm-power", {"tau": 0.0}, "tau is 0; use a number above 0"),
    "graphs": ("fm-laplacian", {"graph_of": None}, "graph_of is not ascending"),
    "few values": ("composite-plain", {"steps": [1, 0, 2, 3, 4, -1, 5, 0, -2]}, "fewer than two values before"),
    "many values": ("composite-plain", {"steps": [1, 2, 0, 3, 4, -1, 5, 0, 5]}, "steps leaves 3 values"),
    "depth": ("composite-plain", {"depth": 2}, "depth is 2, and steps has 3 values"),
    "length-scales": ("composite-plain", {"first_lengthscale": [1, 3, 5, 1, 9]}, "of leaf 5 is 9; use at most 6"),
    "period": ("composite-plain", {"period_of": [0, 0, 0, 0, 0]}, "period_of of leaf 2 is 0"),
    "shape": ("composite-plain", {"rq_alpha_of": [0, 0, 0, 0, 0]}, "rq_alpha_of of leaf 3 is 0"),
    "no centre": ("composite-plain", {"first_centre": [0, 0, 0, 0, 0]}, "first_centre of leaf 1 is 0"),
    "centre": ("composite-plain", {"first_centre": [2, 0, 0, 0, 0]}, "first_centre of leaf 1 is 2; use at most 1"),
    "feature": ("pretrained-plain", {"feature_of": None}, "feature_of of leaf . is 0"),
    "given": ("composite-given", {"given_of": None}, "given_of of leaf 1 is 0"),
}


@pytest.mark.parametrize("key", REFUSED)
def test_data_that_a_program_cannot_use_are_refused(key):
    name, changes, message = REFUSED[key]
    case = Case(name)
    values = {
        "lineage": np.ones((case.data["D"], 1)),
        "graph_of": np.array(case.data.get("graph_of", []))[::-1],
        "feature_of": np.zeros(case.data.get("L", 0), dtype=int),
        "given_of": np.zeros(case.data.get("L", 0), dtype=int),
    }
    changes = {entry: values[entry] if value is None else value for entry, value in changes.items()}
    with pytest.raises(InferenceError, match=message):
        generate(case.program, case.data | changes, case.frame(np.zeros((1, case.n_coordinates))), seed=1)


def test_leaves_may_share_an_entry():
    """The derivative by a shared period, or by a weight of two sums, is the sum of both."""
    case = Case("composite-plain")
    data = case.data | {"steps": [1, 2, 0, 3, 4, -1, 5, 0, -1]}
    data |= {"kind": [4, 3, 2, 8, 3], "period_of": [0, 1, 0, 0, 1]}
    case.data = data
    readable_case = Case("composite-plain", likelihood="readable")
    readable_case.data = data
    z = np.random.default_rng(3).normal(size=(1, case.n_coordinates))
    _, gradient = case.stan_log_density(z)
    _, wanted = readable_case.stan_log_density(z)
    np.testing.assert_allclose(gradient, wanted, rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("name", WARPED)
def test_a_covariance_that_is_not_positive_definite_has_density_0(name):
    """One such point must not end a call that evaluates many."""
    case = Case(name)
    case.train = case.train[np.zeros(7, dtype=int)]  # all points coincide, and the noise vanishes
    case.data = case.gp.model.stan_data(case.train, case.y, case.new) | {"noise_floor": 0.0}
    z = np.zeros(case.n_coordinates)
    z[list(case.sizes).index("sigma_n")] = -1e4
    points = np.stack([z, np.zeros(case.n_coordinates)])
    output = generate(case.program, case.data | {"want_density": 1, "want_pointwise": 0}, case.frame(points), seed=1)
    assert output["log_density.1"][0] == -np.inf and np.isfinite(output["log_density.1"][1])


def log_densities(likelihood, name, n, points, change=lambda data: data):
    case = Case(name, n=n, likelihood=likelihood)
    case.data = change(case.data)
    return case.stan_log_density(points(case))


def nearly_singular(data):
    """Reduce the noise at coinciding points, for a condition number of about 1e9."""
    return data | {"sigma_n_location": -10.0, "sigma_n_scale": 0.1, "noise_floor": 0.0, "y_sd": 0 * data["y_sd"]}


def with_pivot(data):
    """Give the warp a pivot, which several targets equal."""
    y = np.array(data["y"])
    y[[2, 3, 6]] = y.min()
    return data | {"y": y, "n_pivot": 1, "warp_pivot": [y.min()]}


SITUATIONS = {
    "random": (7, 1.0, dict),
    "one point": (1, 1.0, dict),
    "blocks": (40, 1.0, dict),
    "several blocks": (90, 0.5, dict),
    "far out": (7, 3.0, dict),
    "nearly singular": (12, 0.5, nearly_singular),
}
# Every kernel in one situation, and one model of each program and likelihood in all of them.
COMPARED = [(name, "far out") for name in NAMES]
COMPARED += [(name, key) for name in (*WARPED, *PROBIT) for key in SITUATIONS if (name, key) not in COMPARED]
SITUATIONS["ties at a pivot"] = (9, 1.0, with_pivot)
COMPARED += [(name, "ties at a pivot") for name in WARPED]


@pytest.mark.parametrize(("name", "situation"), COMPARED)
def test_accelerated_likelihood_equals_the_readable_one(name, situation):
    n, size, change = SITUATIONS[situation]

    def points(case):
        return size * np.random.default_rng(8).normal(size=(1, case.n_coordinates))

    value, gradient = log_densities("accelerated", name, n, points, change)
    wanted, wanted_gradient = log_densities("readable", name, n, points, change)
    # Both lose digits to the condition number of the covariance.
    tolerance = 1e-5 if change is nearly_singular else 1e-8
    np.testing.assert_allclose(value, wanted, rtol=tolerance)
    scale = np.abs(wanted_gradient).max(axis=1, keepdims=True)
    if name in PROBIT:
        # The derivative of Newton's iterations, which the readable program computes, is one step less accurate than
        # the mode; test_log_density_and_gradient compares the accelerated one with finite differences.
        tolerance = max(tolerance, 1e-5)
    np.testing.assert_allclose(gradient / scale, wanted_gradient / scale, atol=tolerance)


@pytest.mark.parametrize("name", [name for name in sorted(CASES) if "conditional" in name or "hierarchical" in name])
def test_accelerated_likelihood_with_all_inactive(name):
    def silent(data):
        return data | {"active": np.zeros_like(data["active"])} if "active" in data else data

    def points(case):
        return np.random.default_rng(9).normal(size=(2, case.n_coordinates))

    value, gradient = log_densities("accelerated", name, 6, points, silent)
    wanted, wanted_gradient = log_densities("readable", name, 6, points, silent)
    np.testing.assert_allclose(value, wanted, rtol=1e-9)
    np.testing.assert_allclose(gradient, wanted_gradient, rtol=1e-8, atol=1e-8)
