"""Kernel and priors of a model."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest
from ConfigSpace import ConfigurationSpace
from testing_fits import QUICK
from testing_spaces import mixed_space, plain_space

import slayr_py as sl
from slayr_py.inference import Model
from slayr_py.kernels import Composite
from slayr_py.space import Encoder


@pytest.mark.stan
def test_priors_change_the_posterior_without_compiling():
    y = [1.0, 3.0, 2.0, 5.0]
    configs = Encoder(plain_space()).sobol(4, 1)
    tight = {"lengthscale": sl.LogNormal([-2.0, 3.0], 0.01), "sigma_n": sl.LogNormal(-6, 0.01)}
    posterior = sl.GaussianProcess(plain_space(), priors=tight).fit(configs, y, **QUICK)
    np.testing.assert_allclose(np.log(posterior.draws["lengthscale"]).mean(axis=0), [-2, 3], atol=0.02)


def test_a_short_description_has_the_priors():
    gp = sl.GaussianProcess(plain_space(), priors={"sigma_n": sl.LogNormal(-6, 1)}, warp="log")
    first, header, *rows = repr(gp).splitlines()
    assert first == "GaussianProcess: Matérn kernel (p = 2), 2 parameters, warp 'log'"
    assert header.split() == ["hyperparameter", "size", "prior"]
    assert [row.split()[0] for row in rows] == ["mu", "sigma_f", "sigma_n", "warp", "lengthscale"]
    assert rows[2].split(maxsplit=2)[1:] == ["1", "LogNormal(mu=-6., sigma=1.)"]
    assert "<td>lengthscale</td><td>2</td>" in gp._repr_html_()


def test_a_model_with_other_priors_or_errors_keeps_the_rest():
    model = Model(plain_space(), warp="auto", noise_floor=0.01).with_pivot(-1.0)
    other = model.with_defaults({"mu": sl.Normal(0, 2)}).with_errors(np.ones(3))
    assert (other.noise_floor, other.pivot, other.warp, other.priors["mu"]) == (0.01, -1.0, "none", sl.Normal(0, 2))
    again = other.with_defaults({"mu": sl.Normal(0, 3)})
    assert again.left_out == other.left_out and len(other.left_out) == 1
    assert Model.fromdict(model.asdict()).noise_floor == 0.01


@pytest.mark.parametrize(
    ("name", "values", "words"),
    [
        ("sigma_n", 3.0, r"sigma_n: .* median 3, is above .* prior LogNormal\(mu=-3\., .*priors=.'sigma_n': "),
        ("sigma_n", 1e-9, None),  # no noise at all, which is no reason for another prior
        ("lengthscale", [0.3, 20.0], r"lengthscale\[z\]: .* median 20, is above the 99% range 0\.0215 to 3\.7"),
        ("lengthscale", [1e-3, 0.3], r"lengthscale\[x\]: .* median 0.001, is below"),
        ("mu", -3.0, r"mu: the posterior, -3\.24 to -2\.76 with median -3, is below the 99% range -2\.58 to 2\.58"),
        ("sigma_f", 9.0, None),  # fixed
        ("mu", -2.7, None),  # a part of the posterior is inside
    ],
)
def test_a_posterior_outside_the_range_of_its_prior_is_noted(name, values, words):
    priors = {"sigma_f": 9.0, "sigma_n": sl.LogNormal(-3.0, 1.0)}
    model = sl.GaussianProcess(plain_space(), sl.kernels.Matern(), priors).model
    inside = {"mu": 0.0, "sigma_f": 9.0, "sigma_n": 0.02, "lengthscale": [0.3, 0.3]}
    spread = np.array([0.9, 1.0, 1.0, 1.0, 1.1])
    draws = {key: spread.reshape(5, *[1] * np.ndim(value)) * value for key, value in (inside | {name: values}).items()}
    notes = model.notes(draws, model.encoder.encode([]))
    assert len(notes) == (words is not None)
    assert all(re.match(words, note) for note in notes)


def test_every_family_of_priors_has_a_range():
    """Weights with a joint prior have none."""
    priors = {"alpha": sl.Gamma(2.0, 1.0), "beta": sl.InverseGamma(3.0, 1.0), "sigma_n": sl.HalfNormal(0.5)}
    model = sl.GaussianProcess(mixed_space(), sl.kernels.FrequencyModulated("power"), priors).model
    draws = {h.name: np.full((3, *h.shape), 1e3) for h in model.hyperparameters}
    noted = {note.partition(":")[0] for note in model.notes(draws, model.encoder.encode([]))}
    expected = {entry for h in model.hyperparameters if h.prior.support != "simplex" for entry in h.entries}
    assert noted == expected


def test_the_range_of_sigma_f_is_that_of_the_function():
    """Kernels on graphs are not normalised: with eight graphs, sigma_f is far above the function's deviation."""
    space = ConfigurationSpace({"x": (0.0, 1.0)} | {f"op{i}": list("abcdefgh") for i in range(8)})
    model = sl.GaussianProcess(space, sl.kernels.FrequencyModulated()).model
    draws = {h.name: np.broadcast_to(h.prior.at_score(np.array(0.0)), (3, *h.shape)) for h in model.hyperparameters}
    likely = 1 / np.sqrt(model.kernel.reference_variance(model.encoder, draws))
    assert likely[0] > 50 and not model.notes(draws | {"sigma_f": likely}, model.encoder.encode([]))
    (note,) = model.notes(draws, model.encoder.encode([]))
    assert note.startswith("sigma_f: the posterior, ") and "is below the 99% range" in note


def test_a_fit_notes_noise_that_its_prior_excludes():
    rng = np.random.default_rng(0)
    x = np.linspace(0, 1, 60)
    configs = [{"x": value} for value in x]
    y = np.sin(5 * x) + rng.normal(0, 0.5, 60)
    space = ConfigurationSpace({"x": (0.0, 1.0)})
    certain = {"sigma_n": sl.LogNormal(-3.0, 0.2)}
    for priors, n_notes in ((None, 0), (certain, 1)):
        check = sl.GaussianProcess(space, priors=priors, inducing=10).fit(configs, y, method="map").check()
        assert check.ok and sum("sigma_n" in note for note in check.notes) == n_notes


def test_observations_inform_the_priors_that_the_user_leaves_open():
    x = np.linspace(0, 1, 40)
    noise = sl.HalfNormal(0.2)
    period = sl.LogNormal(0.0, 2.0)
    for priors in ({"sigma_n": noise}, {"sigma_n": noise, "period": period}):
        model = Model({"x": (0.0, 1.0)}, Composite("PER"), priors)
        train = model.encoder.encode([{"x": value} for value in x])
        found = model.informed(train, np.sin(20 * np.pi * x)).priors
        assert found["sigma_n"] == noise
        assert found["period"].mu == pytest.approx(0.0 if "period" in priors else np.log(0.1), abs=0.05)


def test_other_priors_keep_the_rest_of_a_model():
    model = Model(plain_space(), warp="best").with_pivot(-0.5)
    model.noise_floor = 1e-3
    changed = model.with_defaults({"mu": sl.Normal(0, 2)})
    assert (changed.warp, changed.pivot, changed.noise_floor) == ("best", -0.5, 1e-3)
    known = Model(plain_space(), warp="auto").with_errors(np.ones(2))
    assert known.with_defaults({"mu": sl.Normal(0, 2)}).left_out == known.left_out != ()


def test_a_model_is_the_same_after_json():
    within = ["x + z <= 1"]
    model = Model(Encoder({"x": (0.0, 1.0), "z": (0.0, 1.0)}, within=within), Composite("SE[x] + LIN"), {"mu": 1.0})
    model.noise_floor = 1e-3
    again = Model.fromdict(json.loads(json.dumps(model.asdict())), within)
    assert again.asdict() == model.asdict()
    assert again.encoder.constrained == model.encoder.constrained != set()


@pytest.mark.parametrize(
    ("y", "pivot", "expected"), [([-1.0, 2.0], None, -1.0), ([1.0, 2.0], None, 0.0), ([-1.0], -3.0, -3.0)]
)
def test_the_pivot_is_that_of_the_model_or_the_best_target_below_the_mean(y, pivot, expected):
    model = Model(plain_space(), warp="best")
    model = model if pivot is None else model.with_pivot(pivot)
    points = model.encoder.encode(model.encoder.sobol(len(y), 1))
    assert model.stan_data(points, np.array(y), points)["warp_pivot"].tolist() == [expected]


@pytest.mark.parametrize(("priors", "words"), [({"lengthscale": sl.LogNormal([0.0, 0.0, 0.0], 1.0)}, "lengthscale")])
def test_a_prior_of_the_wrong_length_is_refused(priors, words):
    with pytest.raises(sl.DataError, match=words):
        Model(plain_space(), priors=priors)


@pytest.mark.parametrize("warp", ["auto", "log", "best"])
def test_binary_observations_have_neither_a_warp_nor_known_errors(warp):
    with pytest.raises(sl.DataError, match=f"warp='{warp}' is not supported with likelihood='probit'"):
        Model(plain_space(), warp=warp, likelihood="probit")
    with pytest.raises(sl.DataError, match="binary observations cannot have known errors"):
        Model(plain_space(), likelihood="probit").with_errors(np.ones(2))
