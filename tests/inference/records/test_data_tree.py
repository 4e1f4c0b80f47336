"""Groups of the data tree compared with their model."""

from __future__ import annotations

import numpy as np
import pytest
import xarray as xr
from ConfigSpace import ConfigurationSpace
from scipy.linalg import solve_triangular
from scipy.stats import beta, dirichlet, halfnorm, kstest, lognorm, multivariate_normal, norm
from testing_arviz import loo_pit
from testing_spaces import conditional_space, mixed_space, plain_space

import slayr_py as sl
from slayr_py.inference.diagnostics.arviz_bridge import standard_error
from slayr_py.inference.model import NOISE_FLOOR, Model
from slayr_py.inference.observed import Observed
from slayr_py.inference.part import Part
from slayr_py.inference.posterior import Posterior
from slayr_py.inference.sampling.options import FitOptions
from slayr_py.inference.sampling.programs import compiled
from slayr_py.inference.sampling.run import run
from slayr_py.inference.validation.calibration import draw_from_prior, draw_values
from slayr_py.inference.validation.uniformity import ecdf_p_value
from slayr_py.kernels import FrequencyModulated, Hierarchical
from slayr_py.space import Encoder

pytestmark = pytest.mark.stan

GROUPS = {
    "posterior",
    "unconstrained_posterior",
    "sample_stats",
    "log_prior",
    "log_likelihood",
    "posterior_predictive",
    "observed_data",
    "constant_data",
}
KERNELS = pytest.mark.parametrize(
    ("kernel", "space"),
    [
        ("matern", plain_space()),
        (Hierarchical("rq", "sum"), conditional_space()),
        (FrequencyModulated("power", orders=3), mixed_space()),
    ],
    ids=["matern", "hierarchical", "fm-power"],
)
LIMIT = 0.001  # of p-values of right results
DATA_SETS = 24
RANKS = 19


def test_the_tree_has_its_groups_and_labels(mixed_posterior):
    idata = mixed_posterior.idata
    assert isinstance(idata, xr.DataTree) and set(idata.children) == GROUPS
    posterior = idata["posterior"].to_dataset()
    assert set(posterior.data_vars) == {"mu", "sigma_f", "sigma_n", "lengthscale", "alpha", "beta"}
    assert posterior["lengthscale"].dims == ("chain", "draw", "real")
    assert posterior["alpha"].dims == posterior["beta"].dims == ("chain", "draw", "graph")
    assert tuple(posterior["real"].values) == Encoder(mixed_space()).ranked.real_names
    assert tuple(posterior["graph"].values) == Encoder(mixed_space()).ranked.graph_names
    assert posterior["mu"].shape == (2, 100)
    assert idata["log_likelihood"]["y"].shape == (2, 100, 12)
    assert float(idata["observed_data"]["y"].mean()) == pytest.approx(0, abs=1e-12)
    assert set(idata["sample_stats"].to_dataset().data_vars) >= {"lp", "energy", "diverging", "tree_depth"}
    assert mixed_posterior.y_sd > 0


def test_named_values_follow_from_their_coordinates(mixed_posterior):
    coordinates = mixed_posterior.idata["unconstrained_posterior"].to_dataset()
    draws = mixed_posterior.idata["posterior"].to_dataset()
    prior = mixed_posterior.model.priors["alpha"]
    np.testing.assert_allclose(draws["alpha"], np.exp(prior.mu + prior.sigma * coordinates["z_alpha"]))


def test_log_lik_is_the_density_of_each_point_given_the_others(branin_posterior):
    y = branin_posterior.idata["observed_data"]["y"].values
    theta = {name: value[11] for name, value in branin_posterior.draws.items()}
    train = branin_posterior.train
    k = branin_posterior.kernel.gram(train, train, theta) + (theta["sigma_n"] ** 2 + NOISE_FLOOR**2) * np.eye(20)
    joint = multivariate_normal(np.full(20, theta["mu"]), k).logpdf(y)
    for i in (0, 7, 19):
        rest = np.arange(20) != i
        others = multivariate_normal(np.full(19, theta["mu"]), k[np.ix_(rest, rest)]).logpdf(y[rest])
        log_lik = branin_posterior.idata["log_likelihood"]["y"].values[0, 11, i]
        assert log_lik == pytest.approx(joint - others, abs=1e-7)


# The prior


def marginals(model):
    """Yield the prior distribution of every entry; that of ``sigma_f`` is one of the function's standard deviation."""
    labels = {h.name: h.labels for h in model.kernel.hyperparameters(model.encoder)}
    for name, prior in model.priors.items():
        label = labels.get(name)
        entries = prior.stan_data(name, label)
        values = {entry: value for entry, value in entries.items() if not entry.endswith("_gamma")}
        for j in range(1 if label is None else len(label)):
            a, *b = (np.ravel(v)[j] for v in values.values())
            total = np.sum(list(values.values()))
            yield (
                name,
                None if label is None else j,
                {
                    "Normal": lambda a=a, b=b: norm(a, *b),
                    "LogNormal": lambda a=a, b=b: lognorm(*b, scale=np.exp(a)),
                    # The program samples the score of a log-normal; its data have no scale of the half-normal.
                    "HalfNormal": lambda prior=prior: halfnorm(scale=prior.sigma),
                    "Beta": lambda a=a, b=b: beta(a, *b),
                    "Dirichlet": lambda a=a, total=total: beta(a, total - a),
                }[type(prior).__name__](),
            )


def shape_of_signal(model, draws):
    """Return the standard deviation of the function divided by ``sigma_f``, of draws (c, s, ...)."""
    flat = {name: values.reshape(-1, *values.shape[2:]) for name, values in draws.items()}
    return np.sqrt(model.kernel.reference_variance(model.encoder, flat)).reshape(draws["mu"].shape)


def test_log_prior_of_a_fixed_value_is_0():
    encoder = Encoder(conditional_space())
    gp = sl.GaussianProcess(encoder, Hierarchical("rq", "sum"), priors={"sigma_f": 2.0})
    fit = gp.fit(encoder.sobol(6, 3), np.arange(6.0), method="laplace", pointwise=False)
    assert np.all(fit.idata["log_prior"]["sigma_f"] == 0)


@pytest.mark.parametrize("method", ["nuts", "laplace", "pathfinder", "map"])
@KERNELS
def test_log_prior_is_the_density_of_each_hyperparameter(kernel, space, method):
    encoder = Encoder(space)
    options = {"warmup": 100, "chains": 2, "draws": 20} if method == "nuts" else {}
    gp = sl.GaussianProcess(encoder, kernel, warp="log")
    fit = gp.fit(encoder.sobol(6, 3), np.arange(6.0), method=method, pointwise=False, **options)
    draws = {str(name): np.asarray(values) for name, values in fit.idata["posterior"].to_dataset().items()}
    stored = fit.idata["log_prior"].to_dataset()
    assert set(stored.data_vars) == set(fit.model.priors)
    for name, values in stored.items():
        labels = () if isinstance(fit.model.priors[name], sl.Dirichlet) else fit.idata["posterior"][name].dims[2:]
        assert values.dims == ("chain", "draw", *labels)
    signal = shape_of_signal(fit.model, draws)
    for name, j, distribution in marginals(fit.model):
        if isinstance(fit.model.priors[name], sl.Dirichlet):
            concentration = list(fit.model.priors[name].stan_data(name, draws[name][0, 0]).values())[0]
            expected = [[dirichlet.logpdf(x / x.sum(), concentration) for x in chain] for chain in draws[name]]
            np.testing.assert_allclose(stored[name], expected, rtol=1e-6)
            continue
        values, density = (a if j is None else a[..., j] for a in (draws[name], stored[name].to_numpy()))
        scale = signal if name == "sigma_f" else 1.0
        np.testing.assert_allclose(density, distribution.logpdf(values * scale) + np.log(scale), rtol=1e-9, atol=1e-9)
    if method == "nuts":  # the program's own coordinate, whose prior is standard normal
        score = fit.idata["unconstrained_posterior"]["z_sigma_f"]
        slope = fit.model.priors["sigma_f"].sigma * draws["sigma_f"]
        np.testing.assert_allclose(stored["sigma_f"], norm.logpdf(score) - np.log(slope), rtol=1e-9, atol=1e-9)


@KERNELS
def test_the_prior_group_is_the_priors_own_distribution(kernel, space):
    encoder = Encoder(space)
    configs = encoder.sobol(6, 3)
    fit = sl.GaussianProcess(encoder, kernel).fit(configs, np.arange(6.0), method="map")
    posterior = fit.with_prior(draws=500, chains=4, warmup=300, seed=4)
    assert "prior" not in fit.idata.children and posterior.record["prior"]["seed"] == 4
    prior = {name: np.asarray(values) for name, values in posterior.idata["prior"].to_dataset().items()}
    assert set(prior) == set(posterior.model.priors)
    flat = {name: values.reshape(-1, *values.shape[2:]) for name, values in prior.items()}
    reference = shape_of_signal(posterior.model, prior)
    z = []
    for name, j, distribution in marginals(posterior.model):
        values = prior[name] if j is None else prior[name][..., j]
        for p in (0.1, 0.5, 0.9):
            below = (values * (reference if name == "sigma_f" else 1) < distribution.ppf(p)).astype(float)
            z.append((below.mean() - p) / standard_error(below))
    assert np.max(np.abs(z)) < 4.5, z
    # Given its hyperparameters, each draw of the observations is one from their joint distribution.
    covariance = posterior.kernel.cross(posterior.train, posterior.train, flat)
    covariance += np.square(flat["sigma_n"])[:, None, None] * np.eye(6)
    residual = posterior.idata["prior_predictive"]["y"].values.reshape(-1, 6) - flat["mu"][:, None]
    factors = zip(np.linalg.cholesky(covariance), residual, strict=True)
    white = np.concatenate([solve_triangular(factor, row, lower=True) for factor, row in factors])
    assert kstest(white, "norm").pvalue > LIMIT


def test_the_prior_does_not_depend_on_the_values(mixed_posterior):
    one = mixed_posterior.with_prior(draws=20, chains=1, warmup=20, seed=1)
    again = one.with_prior(draws=20, chains=1, warmup=20, seed=1)
    assert again.idata.identical(one.idata)
    other = sl.GaussianProcess(mixed_posterior.encoder).fit(mixed_posterior.train, np.arange(12.0) ** 2, method="map")
    for group in ("prior", "prior_predictive"):
        assert other.with_prior(draws=20, chains=1, warmup=20, seed=1).idata[group].identical(one.idata[group])
    with pytest.raises(sl.DataError, match="draws"):
        mixed_posterior.with_prior(draws=0)


# Leave-one-out probability integral transforms


@pytest.fixture(scope="module")
def simulated():
    """Posteriors of data drawn from the model, without standardisation; the tests use one observation of each.

    The noise is much smaller than the uncertainty of an observation given the others. Replicates that are conditioned
    on the observation are then close to it.
    """
    priors = {"sigma_n": sl.LogNormal(-3.0, 0.3), "lengthscale": sl.LogNormal(-1.2, 0.4)}
    model = Model(ConfigurationSpace({"x": (0.0, 1.0)}), priors=priors)
    program = compiled(model.kernel.program)
    points = model.encoder.encode(model.encoder.sobol(7, 1))
    train = points[:6]
    new = points[6:]
    options = FitOptions(chains=2, warmup=150, draws=200)
    posteriors = []
    for i in range(DATA_SETS):
        rng = np.random.default_rng([7, i])
        y = draw_values(model, train, new, draw_from_prior(model, rng), rng)[:6]
        data = model.stan_data(train, y, train[:0])
        result = run(program, data, options, seed=i)
        posteriors.append(Posterior.of(Part.from_run(program, Observed(model, train, data, 0.0, 1.0), result)))
    return posteriors


def rank(pit):
    """Return a uniform number as a uniform rank from 0 to RANKS."""
    return min(int(pit * (RANKS + 1)), RANKS)


@pytest.mark.slow
def test_the_loo_pit_of_arviz_is_uniform_for_data_from_the_model(simulated, az):
    # Observations of one data set depend on each other; those of different ones do not.
    ranks = [rank(loo_pit(posterior.idata)[i % 6]) for i, posterior in enumerate(simulated)]
    assert ecdf_p_value(ranks, RANKS) > LIMIT, ranks
