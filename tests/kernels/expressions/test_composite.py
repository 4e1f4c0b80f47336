"""Sums and products of kernels, given as expressions."""

from __future__ import annotations

import re

import numpy as np
import pytest
from ConfigSpace import Categorical, ConfigurationSpace, Constant, Float
from testing_kernels import Learned, graphs_only_space, random_points, random_theta
from testing_spaces import mixed_space, plain_space

import slayr_py as sl
from slayr_py.inference import Model
from slayr_py.kernels import Composite, Hierarchical, Matern, from_name
from slayr_py.kernels.expressions import LEAVES
from slayr_py.kernels.expressions.composite import MOST_LEAVES
from slayr_py.kernels.priors import LogNormal, lengthscale_prior
from slayr_py.space import Encoder

LINE = Encoder(ConfigurationSpace({"x": (0.0, 10.0)}))


def odd_names() -> ConfigurationSpace:
    space = ConfigurationSpace()
    space.add(Float("learning rate", (0, 1)), Float("a,b", (0, 1)), Float("c[0]", (0, 1)), Float(' "q" ', (0, 1)))
    return space


def mixed() -> ConfigurationSpace:
    space = ConfigurationSpace()
    space.add(Float("x", (0, 1)), Float("a,b", (0, 1)), Categorical("act", ["relu", "tanh"]), Constant("k", 3))
    return space


@pytest.mark.parametrize(
    ("expression", "space", "words"),
    [
        ("SEE + LIN", mixed, "character 1 of the expression: unknown kernel 'SEE'; did you mean 'SE'?"),
        ("SE + RQQ", mixed, "character 6 of the expression: unknown kernel 'RQQ'; did you mean 'RQ'?"),
        ("SE + (LIN", mixed, "character 6 of the expression: unclosed '('"),
        ("SE[x", mixed, "character 3 of the expression: unclosed '['"),
        ("SE + 3", mixed, "character 6 of the expression: unknown character '3'"),
        ("SE[y]", mixed, "SE[y]: no parameter 'y'; known: \"a,b\", act, x"),
        ("SE[acct]", mixed, "SE[acct]: no parameter 'acct'; did you mean 'act'?"),
        ("SE[k]", mixed, "SE[k]: no parameter 'k'"),  # a constant
        ("SE[a,b]", odd_names, 'SE[a,b]: no parameter \'a\'; known: " \\"q\\" ", "a,b", "c[0]", learning rate'),
        ("SE[c[0]]", odd_names, "put the whole name in double quotes"),
        ("SE[learning_rate]", odd_names, "did you mean 'learning rate'?"),
        (
            "SE + PER",
            mixed,
            "PER needs real or ordinal parameters, and 'act' is categorical; name the others: PER[\"a,b\",",
        ),
        ("LIN[act]", mixed, "LIN[act]: LIN needs real or ordinal parameters"),
        ("LIN[colour]", graphs_only_space, "name the others: LIN[size]"),
        ("+".join(["SE"] * 17), plain_space, "the expression has 17 leaves, more than max_leaves=16"),
        ("sE", plain_space, "unknown kernel 'sE'; did you mean 'SE'?"),
        ("composite", plain_space, "kernel 'composite' needs an expression"),
    ],
)
def test_an_expression_that_does_not_fit_is_named(expression, space, words):
    with pytest.raises(sl.DataError, match=re.escape(words)):
        sl.GaussianProcess(space(), expression)


@pytest.mark.parametrize(
    ("make", "error", "words"),
    [
        (lambda: Composite("SE", max_leaves=MOST_LEAVES + 1), sl.DataError, "must be an integer from 1 to 64"),
        (lambda: Composite("SE + LIN", max_leaves=1), sl.DataError, "2 leaves, more than max_leaves=1"),
        (lambda: Composite("SE + F", {"F": Matern()}), sl.DataError, "given['F'] is"),
        (lambda: from_name("SE + LIN", max_leves=3), sl.DataError, "no option 'max_leves'; did you mean 'max_leaves'?"),
        (lambda: from_name("SE + LIN", expression="SE"), sl.DataError, "takes no option 'expression'"),
        (lambda: Hierarchical() + Composite("SE"), sl.DataError, "'hierarchical' cannot be part of a sum or product"),
        (lambda: Composite("SE") * Hierarchical(), sl.DataError, "'hierarchical' cannot be part of a sum or product"),
        (lambda: Matern(p=3) + Composite("SE"), sl.DataError, "with p = 3 cannot be part"),
        (lambda: Composite("SE") + 3, TypeError, "3 is not a kernel"),
        (lambda: 2.0 * Composite("SE"), TypeError, "2.0 is not a kernel"),
        (lambda: Composite("SE") + "LIN", TypeError, "'LIN' is not a kernel"),
    ],
)
def test_parts_that_cannot_be_used_are_named(make, error, words):
    with pytest.raises(error, match=re.escape(words)):
        make()


@pytest.mark.parametrize(
    ("kernel", "text"),
    [
        (Composite("SE") + Composite("LIN"), "SE + LIN"),
        (Matern(p=2) + Composite("LIN*PER"), "MAT52 + LIN * PER"),
        ((Matern(p=0) + Matern(p=1)) * Composite("SE[x] + C"), "(MAT12 + MAT32) * (SE[x] + C)"),
    ],
)
def test_kernels_are_added_and_multiplied_as_their_expressions(kernel, text):
    parsed = Composite(text)
    encoder = Encoder(plain_space())
    rng = np.random.default_rng(1)
    assert repr(kernel) == repr(parsed) and from_name("composite", encoder, **kernel.options()).node == parsed.node
    points = random_points(encoder, 5, 2)
    theta = random_theta(parsed, encoder, rng)
    np.testing.assert_array_equal(kernel.gram(points, points, theta), parsed.gram(points, points, theta))


def test_operators_allow_more_leaves_than_an_expression_does_by_default():
    many = Composite("+".join(["SE"] * 16))
    assert (many + many).max_leaves == 32 == from_name("composite", **(many + many).options()).max_leaves
    with pytest.raises(sl.DataError, match="the expression has 80 leaves, more than max_leaves=64"):
        (many + many + many + many) + many


def test_given_leaves_of_equal_names_are_renamed_unless_they_are_one_kernel():
    first = Learned()
    second = Learned()
    third = Learned()
    assert (first + first).expression == "PRE + PRE"
    both = first * second
    assert both.expression == "PRE * PRE2" and both.given == {"PRE": first, "PRE2": second}
    # On the right, PRE and PRE2 are other kernels.
    all_of_them = both + Composite("PRE + PRE2", given={"PRE": third, "PRE2": first})
    assert all_of_them.expression == "PRE * PRE2 + PRE3 + PRE22"
    assert all_of_them.given == {"PRE": first, "PRE2": second, "PRE3": third, "PRE22": first}
    alone = Composite("PRE", given={"PRE": first}) + Composite("PRE + PRE2", given={"PRE": second, "PRE2": third})
    assert alone.given == {"PRE": first, "PRE3": second, "PRE2": third}
    pair = Composite("MAT1", given={"MAT1": first}) + Composite("MAT1", given={"MAT1": second})
    assert pair.expression == "MAT1 + MAT13"  # MAT12 is a leaf of the language


def test_matern_leaf_is_the_matern_kernel():
    encoder = Encoder(mixed_space())
    rng = np.random.default_rng(1)
    a = random_points(encoder, 6, 1)
    b = random_points(encoder, 4, 2)
    for kernel, other in ((Composite("MAT52"), Matern(p=2)), (Composite("MAT12"), Matern(p=0))):
        (h,) = other.hyperparameters(encoder)
        (same,) = kernel.hyperparameters(encoder)
        np.testing.assert_array_equal(np.broadcast_to(h.prior.mu, h.shape), same.prior.mu)
        np.testing.assert_array_equal(np.broadcast_to(h.prior.sigma, h.shape), same.prior.sigma)
        theta = random_theta(other, encoder, rng)
        np.testing.assert_allclose(kernel.gram(a, b, theta), other.gram(a, b, theta), rtol=1e-13)
        draws = {name: np.asarray(value)[None] for name, value in theta.items()}
        for ours, theirs in zip(kernel.cross_gradient(a, b, draws), other.cross_gradient(a, b, draws), strict=True):
            np.testing.assert_allclose(ours, theirs, rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize(
    ("text", "wanted", "mapped"),
    [
        ("SE * SE", "SE", lambda t: {"lengthscale": (t["lengthscale"] ** -2).reshape(2, -1).sum(axis=0) ** -0.5}),
        ("C * SE", "SE", lambda t: t),
        ("C + C", "C", lambda t: {}),
        (
            "SE + LIN",
            "LIN + SE",
            lambda t: {
                "lengthscale": np.roll(t["lengthscale"], 2),
                "centre": t["centre"],
                "split": 1 - t["split"],
            },
        ),
    ],
)
def test_expressions_with_the_same_canonical_form_are_the_same_kernel(text, wanted, mapped):
    kernel = Composite(text)
    encoder = Encoder(plain_space())
    assert kernel.canonical == wanted
    theta = random_theta(kernel, encoder, np.random.default_rng(3))
    points = random_points(encoder, 5, 4)
    other = mapped(theta) | {"sigma_f": theta["sigma_f"]}
    np.testing.assert_allclose(
        kernel.gram(points, points, theta), Composite(wanted).gram(points, points, other), rtol=1e-12
    )


def test_hyperparameters_have_labels_and_priors_of_their_leaves():
    kernel = Composite("LIN[x] * PER[x] + (SE + RQ[act]) * MAT32[x]")
    found = {h.name: h for h in kernel.hyperparameters(Encoder(mixed()))}
    lengthscales = dict(zip(found["lengthscale"].labels, found["lengthscale"].prior.mu, strict=True))
    unit, one, two, four = 0.0, *(lengthscale_prior(n).mu for n in (1, 2, 4))
    assert lengthscales == {
        **{"1:LIN[x]": unit, "2:PER[x]": unit},
        **{"3:SE[a,b]": four, "3:SE[act[relu]]": four, "3:SE[act[tanh]]": four, "3:SE[x]": four},
        **{"4:RQ[act[relu]]": two, "4:RQ[act[tanh]]": two, "5:MAT32[x]": one},
    }
    assert set(found["lengthscale"].prior.sigma) == {1.0}
    assert found["period"].labels == ("2:PER",) and found["period"].prior == LogNormal([np.log(0.2)], [1.0])
    assert found["rq_alpha"].labels == ("4:RQ",) and found["rq_alpha"].prior == LogNormal([0.0], [1.0])
    assert found["centre"].labels == ("1:LIN[x]",) and found["centre"].prior == sl.Normal([0.5], [0.5])
    assert found["split"].labels == ("1:SE", "2:LIN[x] * PER[x]") and found["split"].prior == sl.Beta([1, 1], [1, 1])


def test_shares_of_a_flat_sum_are_uniform_on_the_simplex():
    (split,) = (h for h in Composite("SE + RQ + C").hyperparameters(LINE) if h.name == "split")
    draws = np.stack([split.prior.draw(split.labels, np.random.default_rng(i)) for i in range(4000)])
    shares = np.column_stack([draws[:, 0] * draws[:, 1], (1 - draws[:, 0]) * draws[:, 1], 1 - draws[:, 1]])
    np.testing.assert_allclose(shares.mean(axis=0), 1 / 3, atol=0.02)
    np.testing.assert_allclose(shares.var(axis=0), 1 / 18, atol=0.005)  # of Dirichlet(1, 1, 1)


@pytest.mark.parametrize("leaf", LEAVES)
def test_leaves_have_mean_variance_one(leaf):
    encoder = Encoder(plain_space())
    kernel = Composite(leaf)
    axis = (np.arange(50) + 0.5) / 50
    points = encoder.encode([{"x": x, "z": -5 + 15 * z} for x in axis for z in axis])
    theta = random_theta(kernel, encoder, np.random.default_rng(5)) | {"sigma_f": np.asarray(1.0)}
    variances = kernel.diagonal(points, {name: value[None] for name, value in theta.items()})
    assert variances.mean() == pytest.approx(1.0, rel=1e-3)


def test_names_with_blanks_commas_brackets_and_quotes():
    text = 'SE[learning rate] + LIN["a,b"] * PER["c[0]"] + RQ[" \\"q\\" "]'
    gp = sl.GaussianProcess(odd_names(), text)
    assert repr(gp.kernel) == f"Composite(expression={text!r})"
    labels = next(h.labels for h in gp.hyperparameters if h.name == "lengthscale")
    assert labels == ("1:SE[learning rate]", "2:LIN[a,b]", "3:PER[c[0]]", '4:RQ[ "q" ]')
    assert Model.fromdict(gp.model.asdict()).kernel.expression == text
    assert gp.kernel.component_names(gp.encoder)[1] == 'LIN["a,b"] * PER["c[0]"]'


def test_columns_are_found_by_position_if_names_coincide():
    space = ConfigurationSpace()
    space.add(Categorical("act", ["relu", "tanh"]), Float("act[relu]", (0, 1)))
    encoder = Encoder(space)
    kernel = Composite('LIN["act[relu]"]')
    (leaf,) = kernel.plan(encoder).leaves
    assert encoder.column_names[leaf.columns[0]] == "act[relu]" and leaf.columns == (2,)


def test_data_of_a_leaf_without_lengthscales_point_into_the_vector():
    points = LINE.encode([{"x": 1.0}])
    for text in ("SE + C", "C + SE", "C * SE * C"):
        data = Composite(text).stan_data(points, points)
        assert (data["first_lengthscale"] == 1).all() and data["n_lengthscale"] == 1


X = np.random.default_rng(1).uniform(0, 10, 40)
WAVES = np.sin(2 * np.pi * X / 2.5) + 0.1 * np.random.default_rng(2).normal(size=40)


def informed(kernel, n=40, space=LINE, **priors):
    encoded = space.encode([dict.fromkeys(space.names, 0.5) | {space.names[0]: x} for x in X[:n]])
    model = Model(space, kernel, priors)
    return model, model.informed(encoded, WAVES[:n])


def test_the_prior_of_a_period_moves_to_the_peak_of_the_periodogram():
    model, found = informed("SE + PER * PER")
    prior = found.priors["period"]
    assert np.exp(prior.mu) == pytest.approx(0.25, rel=0.02) and prior.sigma == 0.5
    assert model.priors["period"].mu == pytest.approx(np.log([0.2, 0.2]))
    assert Model.fromdict(found.asdict()).priors == found.priors
    assert {name: p for name, p in found.priors.items() if name != "period"} == {
        name: p for name, p in model.priors.items() if name != "period"
    }


def test_the_prior_of_a_period_stays_where_nothing_is_known_about_it():
    wide = Encoder(ConfigurationSpace({"x": (0.0, 10.0), "z": (0.0, 1.0)}))
    for arguments in (
        {"kernel": "SE + PER", "n": 30},
        {"kernel": "SE + LIN"},
        {"kernel": "SE + PER[x]", "space": wide},
        {"kernel": "SE + PER", "period": sl.LogNormal(0, 1)},
        {"kernel": "SE + PER", "period": 0.3},
        {"kernel": "SE + PER + PER", "period": {"2:PER": sl.LogNormal(0, 1)}},
    ):
        model, found = informed(**arguments)
        assert found is model
    assert not Composite("PER").informed_priors(LINE.encode([{"x": x} for x in X]), np.zeros(40))


def fitted(kernel, y, x=None, method="map", **options):
    x = np.linspace(0, 10, len(y)) if x is None else x
    return sl.GaussianProcess(LINE, kernel).fit([{"x": value} for value in x], y, method=method, **options)


@pytest.mark.stan
@pytest.mark.parametrize(
    "y",
    [[3.0], [3.0] * 12, [3.0] * 40, 1e8 + np.arange(12.0) ** 2, 1e8 * np.sin(np.arange(12.0))],
    ids=["one", "constant", "constant, informed", "a large offset", "large"],
)
def test_observations_that_say_little_or_are_large(y):
    post = fitted("LIN * PER + SE", y)
    prediction = post.predict([{"x": 0.0}, {"x": 5.0}])
    assert np.isfinite(prediction.mean).all() and np.isfinite(prediction.sd).all()
    assert prediction.mean[0] == pytest.approx(y[0], rel=1e-3, abs=0.1 * np.ptp(y) + 1e-3)
    assert list(post.idata["posterior"]["lengthscale"].indexes["leaf_column"]) == ["1:LIN[x]", "2:PER[x]", "3:SE[x]"]


@pytest.mark.stan
@pytest.mark.parametrize("text", ["SE + C", "C * SE * C"])
def test_a_constant_may_be_the_last_leaf(text):
    assert np.isfinite(fitted(text, np.arange(6.0)).idata["log_likelihood"]["y"]).all()


@pytest.mark.stan
@pytest.mark.parametrize("method", ["map", "nuts"])
def test_a_fit_is_saved_loaded_and_replayed(method, tmp_path):
    options = {} if method == "map" else {"chains": 1, "warmup": 30, "draws": 20}
    post = fitted("SE + PER", WAVES[:31], X[:31], method, **options)
    assert post.model.priors["period"].sigma == 0.5 and "prior" in repr(post.model)
    post.save(tmp_path / "post")
    again = sl.Posterior.load(tmp_path / "post")
    assert again.kernel.expression == "SE + PER" and again.model.priors == post.model.priors
    points = [{"x": x} for x in (0.0, 3.0)]
    np.testing.assert_array_equal(again.predict(points).mean, post.predict(points).mean)
    assert sl.inference.replay(post.record, post.data).identical
    # The record has the initial values themselves, not the temporary files that CmdStan read them from.
    assert "in the calls" in post.record["inits"] and "tmp" not in str(post.record["calls"])
    assert "z_period" in str(post.record["calls"][0]["init"])


@pytest.mark.stan
def test_expressions_without_lengthscales():
    space = ConfigurationSpace({"x": (0.0, 1.0)})
    configs = [{"x": 0.1}, {"x": 0.5}, {"x": 0.9}]
    y = [1.0, 2.0, 2.5]
    for text in ("C", "C + C"):
        post = sl.GaussianProcess(space, text).fit(configs, y, method="map")
        numpy = post.predict(configs)
        stan = post.predict(configs, engine="stan")
        np.testing.assert_allclose(numpy.mean, stan.mean, rtol=1e-8)
        assert np.ptp(numpy.mean) < 1e-9  # the function is constant
