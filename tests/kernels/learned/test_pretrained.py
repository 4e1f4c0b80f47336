from __future__ import annotations

import copy
import itertools
import json
import math
import pickle
import re

import numpy as np
import pytest
from ConfigSpace import ConfigurationSpace, OrdinalHyperparameter
from testing_kernels import pretrained, random_points, random_theta
from testing_spaces import conditional_space, mixed_space, plain_space

import slayr_py as sl
from slayr_py import DataError, StorageError, svm
from slayr_py.inference import replay
from slayr_py.inference.model import Model
from slayr_py.kernels import Composite, Matern, Pretrained, from_name
from slayr_py.space import Encoder

SUPPORT = np.array([[0.1, 0.9], [0.4, 0.2], [0.8, 0.7], [0.6, 0.5], [0.3, 0.3]])
ALPHA = np.array([1.0, -2.0, 0.5, 0.75, -0.25])
COLUMNS = ("x", "z")


def kernel(lengthscale=0.6, **options) -> Pretrained:
    options = {"support": SUPPORT, "alpha": ALPHA, "columns": COLUMNS} | options
    return Pretrained(lengthscale=lengthscale, **options)


def gram(one: Pretrained, points) -> np.ndarray:
    theta = {"sigma_f": 1.0}
    if 2 in one.layers:
        theta["feature_lengthscale"] = [1.0]
    return one.gram(points, points, theta)


def k4_sum(u, v, origin: float, lengthscale: float) -> float:
    """The double sum over K_4 of four points, written out with loops."""
    total = 0.0
    sigma = lengthscale**2
    for (p, a), (q, b) in itertools.product(zip(SUPPORT - origin, ALPHA, strict=True), repeat=2):
        chi = sum(p[c] * q[c] * u[c] * v[c] for c in range(2))
        norms = sum(w[c] ** 2 for w in (p, q, u, v) for c in range(2))
        total += a * b * math.exp((2 * chi - norms) / (2 * sigma))
    return total


def test_a_kernel_that_was_used_in_a_space_with_a_lambda_is_pickled():
    one = kernel(layers=2, base=None)
    encoder = Encoder(plain_space(), within=[lambda config: config["x"] <= config["z"]])
    points = encoder.sobol(6, 1)
    before = gram(one, encoder.encode(points))
    after = gram(pickle.loads(pickle.dumps(one)), encoder.encode(points))
    np.testing.assert_array_equal(after, before)


@pytest.mark.parametrize(("origin", "o"), [("centre", 0.5), ("corner", 0.0)])
def test_both_layers_are_those_of_the_quadruple_sum(origin, o):
    encoder = Encoder(plain_space())
    points = encoder.encode(encoder.sobol(6, 1))
    u = points.columns - o
    k = np.array([[k4_sum(a, b, o, 0.6) for b in u] for a in u])
    one, two = (kernel(origin=origin, layers=layer, base=None, distance_scale=0.01) for layer in (1, 2))
    np.testing.assert_allclose(gram(one, points), k / np.sqrt(np.outer(np.diag(k), np.diag(k))), rtol=1e-9)
    distance = (np.add.outer(np.diag(k), np.diag(k)) - 2 * k) / 0.01
    np.testing.assert_allclose(gram(two, points), np.exp(-distance / 2), rtol=1e-9)


@pytest.mark.parametrize("layer", [1, 2])
def test_the_covariance_of_two_sets_does_not_depend_on_the_sets_before(layer):
    encoder = Encoder(plain_space())
    first, second, third = (random_points(encoder, 5, seed) for seed in range(3))
    theta = {"sigma_f": 1.0} | ({"feature_lengthscale": [1.0]} if layer == 2 else {})
    used = kernel(layers=layer, base=None)
    for a, b in ((first, second), (first, third), (second, third), (third, second)):
        np.testing.assert_array_equal(used.gram(a, b, theta), kernel(layers=layer, base=None).gram(a, b, theta))


@pytest.mark.parametrize("space", [plain_space, mixed_space, conditional_space])
def test_covariance_is_the_weighted_sum_of_its_parts(space):
    encoder = Encoder(space())
    whole = pretrained(space(), base=Matern(p=1))
    points = random_points(encoder, 12, 0)
    theta = random_theta(whole, encoder, np.random.default_rng(1))
    share = next(h for h in whole.hyperparameters(encoder) if h.name == "share")
    assert share.labels == whole.component_names(encoder) == ("one layer", "two layers", "base")
    parts = [
        pretrained(space(), 1, None).gram(points, points, {"sigma_f": 1.0}),
        pretrained(space(), 2, None).gram(
            points, points, {"sigma_f": 1.0, "feature_lengthscale": theta["feature_lengthscale"]}
        ),
        Matern(p=1).gram(points, points, {"sigma_f": 1.0, "lengthscale": theta["lengthscale"]}),
    ]
    wanted = theta["sigma_f"] ** 2 * np.tensordot(theta["share"], parts, 1)
    np.testing.assert_allclose(whole.gram(points, points, theta), wanted, rtol=1e-12)
    for part in parts:
        np.testing.assert_allclose(np.diag(part), 1.0, rtol=1e-12)
        assert np.linalg.eigvalsh(part).min() > -1e-12


@pytest.mark.parametrize("space", [plain_space, mixed_space, conditional_space])
@pytest.mark.parametrize("family", ["polynomial", "linear", "exponential"])
def test_other_families_have_two_layers(space, family):
    encoder = Encoder(space())
    base = pretrained(space())
    options = {"degree": 3, "coef0": 0.5} if family == "polynomial" else {}
    lengthscale = 0.8 if family == "exponential" else None
    arguments = {"family": family, "columns": base.columns, "base": None, "family_options": options}
    two = Pretrained(base.support, base.alpha, lengthscale, layers=2, **arguments)
    k = gram(two, random_points(encoder, 30, 0))
    np.testing.assert_allclose(np.diag(k), 1.0, rtol=1e-12)
    assert np.linalg.eigvalsh(k).min() > -1e-12 * len(k)
    with pytest.raises(DataError, match=f"one layer of the family '{family}' is 0/0 at the origin"):
        Pretrained(base.support, base.alpha, lengthscale, **arguments)


@pytest.mark.parametrize("family", ["se", "polynomial", "linear", "exponential"])
def test_the_prediction_is_that_of_the_machine(family):
    encoder = Encoder(plain_space())
    configs = encoder.sobol(20, 1)
    y = [c["x"] ** 2 + c["z"] for c in configs]
    pre = svm.pretrain(encoder, configs, y, family=family, machine="ridge", C=10.0)
    predicted = pre.predict(configs)  # every point of a ridge machine has a weight
    distance = np.square(np.subtract.outer(predicted, predicted) / predicted.std())
    prediction = pre.kernel(layers=0, base=None)
    k = prediction.gram(
        encoder.encode(configs), encoder.encode(configs), {"sigma_f": 1.0, "feature_lengthscale": [0.3]}
    )
    np.testing.assert_allclose(k, np.exp(-distance / (2 * 0.3**2)), rtol=1e-9)


def test_unit_of_the_feature_distance_is_its_median_over_the_space():
    encoder = Encoder(plain_space())
    configs = encoder.sobol(10, 1)
    pre = svm.pretrain(encoder, configs, [c["x"] ** 2 + c["z"] for c in configs], C=10.0, lengthscale=0.5, seed=7)
    two = pre.kernel(layers=2, base=None)
    sobol = encoder.encode(encoder.sobol(256, 7))
    distance = -2 * np.log(gram(two, sobol))
    assert np.median(distance[np.triu_indices(256, 1)]) == pytest.approx(1.0, rel=1e-12)
    assert two.options()["distance_scale"] == two.distance_scale == pre.kernel().distance_scale
    # A kernel that was made by hand measures it when it is used.
    by_hand = Pretrained(pre.support, pre.alpha, pre.lengthscale, layers=2, base=None, columns=pre.columns)
    other = -2 * np.log(gram(by_hand, encoder.encode(encoder.sobol(256, 1))))
    assert np.median(other[np.triu_indices(256, 1)]) == pytest.approx(1.0, rel=1e-12)


def test_the_unit_of_the_feature_distance_does_not_depend_on_the_spaces_seen_before():
    space = ConfigurationSpace({"x": (0.0, 1.0), "z": (0.0, 1.0)})
    coarse = ConfigurationSpace({"x": (0, 1), "z": (0, 1)})
    encoders = [Encoder(space), Encoder(coarse), Encoder(space, within=["x + z <= 0.3"])]
    used = kernel(layers=2, base=None)
    scales = [used.features(encoder).distance_scale(encoder) for encoder in encoders]
    for encoder, scale in zip(encoders, scales, strict=True):
        fresh = kernel(layers=2, base=None)
        assert fresh.features(encoder).distance_scale(encoder) == scale
    # Configurations of encoders that match can be compared.
    assert scales[0] == scales[2] != scales[1]


ROUND_TRIPS = {
    "default": kernel(),
    "origin": kernel(
        [0.3, 0.7], origin={"x": 0.25}, layers=(2, 1), base=Matern(p=0), distance_scale=0.1 + 0.2, concentration=1 / 3
    ),
    "polynomial": kernel(None, family="polynomial", layers=2, family_options={"degree": 3, "coef0": 1 / 3}),
    "linear": kernel(None, family="linear", layers=2, base=None),
    "corner": kernel(origin="corner", layers=1, base=None),
    "prediction": kernel(layers=(0, 2)),
    "a column called name": kernel(columns=("name", "z"), origin={"name": 0.25}),
}


@pytest.mark.parametrize("name", ROUND_TRIPS)
def test_kernels_are_the_same_after_json_and_files(name, tmp_path):
    one = ROUND_TRIPS[name]
    space = ConfigurationSpace({one.columns[0]: (0.0, 1.0), "z": (-5.0, 10.0)})
    points = random_points(Encoder(space), 6, 0)
    theta = random_theta(one, Encoder(space), np.random.default_rng(0))
    stored = json.dumps(one.options(), allow_nan=False)
    model = Model(space, one)
    for again in (
        from_name("pretrained", Encoder(space), **json.loads(stored)),
        Pretrained.load(one.save(tmp_path / "kernel.json"), space),
        Model.fromdict(json.loads(json.dumps(model.asdict()))).kernel,
        pickle.loads(pickle.dumps(one)),
        copy.deepcopy(one),
    ):
        assert json.dumps(again.options()) == stored and repr(again) == repr(one)
        assert np.array_equal(again.gram(points, points, theta), one.gram(points, points, theta))


@pytest.mark.parametrize("name", ["origin", "polynomial"])
def test_a_kernel_with_other_parts_keeps_everything_else(name):
    one = ROUND_TRIPS[name]
    assert one.with_layers(2).options() == one.options() | {"layers": [2], "base": None}


def test_parts_of_expressions_are_the_same_after_json():
    space = plain_space()
    with_origin = kernel(origin={"x": 0.25}, distance_scale=0.1)
    expression = with_origin + kernel(layers=2, base=None, distance_scale=0.1) * Composite("PER")
    assert expression.expression == "PRE1 + PRE2 + MAT52 + PRE22 * PER"
    given = Composite("PRE + MAT52", given={"PRE": with_origin.with_layers(2)})
    for one in (expression, given, Matern(p=2) + with_origin):
        again = Model.fromdict(json.loads(json.dumps(Model(space, one).asdict()))).kernel
        points = random_points(Encoder(space), 6, 0)
        theta = random_theta(one, Encoder(space), np.random.default_rng(0))
        assert repr(again) == repr(one) and len(repr(one)) < 300
        assert np.array_equal(again.gram(points, points, theta), one.gram(points, points, theta))


def test_given_leaf_has_one_part():
    for bad in (kernel(), kernel(layers=2), kernel(base=None), Matern(p=2)):
        with pytest.raises(
            DataError, match=r"given\['PRE'\] is .*; use a pre-trained kernel with one layer and no base"
        ):
            Composite("PRE + SE", given={"PRE": bad})


def test_arrays_of_the_caller_are_copied():
    support = SUPPORT.copy()
    alpha = ALPHA.copy()
    lengthscale = np.array([0.5, 0.5])
    origin = {"x": 0.25}
    one = kernel(lengthscale, support=support, alpha=alpha, origin=origin)
    before = json.dumps(one.options())
    support[:] = 0
    alpha[:] = 0
    lengthscale[:] = 9
    origin["x"] = 0.75
    assert json.dumps(one.options()) == before


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"support": [["a", "b"]]}, "support is .*; give numbers"),
        ({"support": [[0.1, 0.2], [0.3]]}, "support is .*; give numbers"),
        ({"support": SUPPORT[:4]}, r"a row for each of the 5 weights .*, got shape \(4, 2\)"),
        ({"columns": ("x",)}, "a column for each of the 1 names in columns"),
        ({"columns": "xz"}, "columns is 'xz'; give a list"),
        ({"support": SUPPORT * math.nan}, "support or alpha has values that are not finite"),
        ({"support": SUPPORT + 0.5}, r"support has the point \[0.6, 1.4\]"),
        ({"alpha": 0 * ALPHA}, "all weights alpha are 0; use related data"),
        ({"alpha": ALPHA + 0.1}, "weights alpha add up to 0.5"),
        ({"lengthscale": None}, "the se kernel needs a lengthscale"),
        ({"lengthscale": 0.0}, "lengthscale is 0.0; give positive finite"),
        ({"lengthscale": [1.0, 1.0, 1.0]}, "3 length-scales for points with 2 columns"),
        ({"family": "rbf"}, "unknown family 'rbf'"),
        ({"family": "linear"}, "the linear kernel takes no 'lengthscale'"),
        ({"family_options": {"degree": 2}}, "the se kernel takes no 'degree'"),
        ({"family_options": {"lengthscale": 2}}, "family_options has a lengthscale"),
        ({"origin": "center"}, "unknown origin 'center'; did you mean 'centre'?"),
        ({"origin": [0.5]}, r"unknown origin \[0.5\]"),
        ({"origin": {"w": 0.5}}, "origin names the column 'w'"),
        ({"origin": {"x": math.nan}}, r"the origin of 'x' is nan; give a number in \[0, 1\]"),
        *(
            ({"layers": layers}, r"layers is .*; use 0, 1, 2 or several of them")
            for layers in (-1, 3, 1.7, True, "1", (), (1, 3), (2, 2), None)
        ),
        ({"base": "matern"}, "the base is 'matern'"),
        ({"base": Matern(p=3)}, r"the base is Matern\(p=3\)"),
        ({"distance_scale": "a"}, "distance_scale must be positive and finite, got 'a'"),
        ({"concentration": 0.0}, "concentration must be positive and finite, got 0.0"),
        ({"distance_scale": 0.0}, "distance_scale must be positive and finite, got 0.0"),
    ],
)
def test_illegal_arguments_are_named(changed, message):
    with pytest.raises(DataError, match=message):
        kernel(**changed)


def test_kernel_is_refused_for_other_columns(tmp_path):
    other = ConfigurationSpace({"x": (0.0, 1.0), "w": (-5.0, 10.0)})
    points = random_points(Encoder(other), 3, 0)
    for use in (lambda: Model(other, kernel()), lambda: gram(kernel(layers=2, base=None), points)):
        with pytest.raises(DataError, match=r"learned on the columns \['x', 'z'\], and the space has \['w', 'x'\]"):
            use()
    path = kernel().save(tmp_path / "kernel.json")
    assert Pretrained.load(path).columns == COLUMNS
    with pytest.raises(StorageError, match="cannot be read as a pre-trained kernel: .* learned on the columns"):
        Pretrained.load(path, other)


@pytest.mark.parametrize(
    ("entry", "value"),
    [
        ("alpha", None),
        ("alpha", [math.nan] * 5),
        ("lengthscale", math.nan),
        ("distance_scale", math.nan),
        ("distance_scale", "one"),
        ("origin", {"x": math.nan}),
        ("origin", 3),
        ("columns", 5),
        ("layers", None),
        ("base", {"p": 7}),
        ("base", {"name": "se"}),
        ("family", 3),
        ("family_options", 3),
        ("unknown", 1),
    ],
)
def test_damaged_files_are_no_kernels(entry, value, tmp_path):
    path = kernel().save(tmp_path / "kernel.json")
    stored = json.loads(path.read_text())
    stored["kernel"][entry] = value
    path.write_text(json.dumps(stored))
    with pytest.raises(StorageError, match="kernel.json cannot be read as a pre-trained kernel"):
        Pretrained.load(path)


@pytest.mark.parametrize(
    "content", [b"", b"[]", b"{}", b"null", b'{"format": 2, "kernel": {}}', b"\xff\xfe", b"[" * 10**5]
)
def test_other_files_are_no_kernels(content, tmp_path):
    (tmp_path / "kernel.json").write_bytes(content)
    with pytest.raises(StorageError, match="kernel.json cannot be read as a pre-trained kernel"):
        Pretrained.load(tmp_path / "kernel.json")


def test_files_that_cannot_be_read_or_written_are_named(tmp_path):
    with pytest.raises(StorageError, match="none.json"):
        Pretrained.load(tmp_path / "none.json")
    with pytest.raises(StorageError, match="cannot be written: No such file"):
        kernel().save(tmp_path / "none" / "kernel.json")


def test_configurations_at_which_the_kernel_vanishes_are_counted():
    encoder = Encoder(plain_space())
    far = kernel(0.02, support=[[0.0, 0.0], [0.0, 0.05]], alpha=[1.0, -1.0], layers=1, base=None, origin="corner")
    points = encoder.encode([{"x": 0.0, "z": -5.0}, {"x": 0.9, "z": 9.0}, {"x": 1.0, "z": 10.0}])
    k = gram(far, points)
    draws = {"sigma_f": np.ones(1)}
    np.testing.assert_array_equal(k[1:, 1:], np.eye(2))
    assert np.isfinite(far.cross_gradient(points, points, draws)[1]).all()
    assert "vanishes at 2 configurations" in far.messages[0]
    # Notes of a fit are about its observations, whatever was predicted before.
    assert far.notes(draws, points) == tuple(far.messages)
    assert far.notes(draws, points[:1]) == ()
    assert not kernel().messages


def test_notes_are_about_the_share_of_the_base():
    shares = np.column_stack([np.zeros(101), np.linspace(1, 0, 101), np.linspace(0, 1, 101)])
    train = Encoder(plain_space()).encode([{"x": 0.0, "z": 0.0}])
    helpful = kernel().notes({"share": shares[:50]}, train)
    misleading = kernel().notes({"share": shares[50:]}, train)
    assert helpful == ("share of the base kernel 0.24 (90% interval 0.02 to 0.47)",)
    assert misleading[0].endswith("(90% interval 0.53 to 0.97): the related data do not help, or mislead")
    (uncertain,) = kernel().notes({"share": shares[11:]}, train)
    assert uncertain == "share of the base kernel 0.56 (90% interval 0.15 to 0.96)"
    assert kernel().notes({"share": shares[40:41]}, train) == ("share of the base kernel 0.40",)  # of a mode
    assert kernel(base=None).notes({"share": shares[:, :2]}, train) == ()


def test_options_that_the_kernel_needs_are_named():
    with pytest.raises(DataError, match="kernel 'pretrained' needs the options support, alpha, lengthscale"):
        from_name("pretrained")


@pytest.fixture(scope="module")
def fitted() -> sl.Posterior:
    """A short fit to a function of |x| after pre-training on |x|."""
    space = ConfigurationSpace({"x": (-1.0, 1.0), "act": ["a", "b"]})
    configs = Encoder(space).sobol(24, 1)
    pre = svm.pretrain(space, configs, [abs(c["x"]) for c in configs], machine="ridge", C=10.0, lengthscale=0.3)
    y = [math.sin(5 * abs(c["x"])) + 0.1 * (c["act"] == "a") for c in configs]
    return sl.GaussianProcess(space, pre.kernel()).fit(configs[:10], y[:10], chains=2, warmup=100, draws=50, seed=1)


@pytest.mark.stan
def test_draws_have_the_names_of_the_parts(fitted):
    share = fitted.idata["posterior"]["share"]
    assert share.coords["part"].values.tolist() == ["one layer", "two layers", "base"]
    np.testing.assert_allclose(share.sum("part"), 1.0, rtol=1e-9)
    assert fitted.idata["posterior"]["feature_lengthscale"].sizes["feature_part"] == 1
    assert "share[two layers]" in repr(fitted)
    assert fitted.check().notes[0].startswith(f"share of the base kernel {fitted.draws['share'][:, 2].mean():.2f} (90%")


@pytest.mark.stan
def test_engines_and_saved_posteriors_predict_the_same(fitted, tmp_path):
    new = fitted.encoder.sobol(7, 5)
    here, stan = (fitted.predict(new, engine=engine) for engine in ("numpy", "stan"))
    again = sl.Posterior.load(fitted.save(tmp_path))
    np.testing.assert_allclose(stan.mean, here.mean, rtol=1e-8)
    np.testing.assert_allclose(stan.sd, here.sd, rtol=1e-6)
    np.testing.assert_array_equal(again.predict(new).mean, here.mean)
    assert again.check().asdict() == fitted.check().asdict() and again.kernel.options() == fitted.kernel.options()
    assert replay(tmp_path).identical
    summands = fitted.components(new)
    np.testing.assert_allclose(summands.mean.sum(axis=0) + summands.offset, here.mean, rtol=1e-8)


@pytest.mark.stan
def test_posterior_is_carried_to_more_observations(fitted):
    configs = fitted.encoder.sobol(24, 1)[:12]
    y = [math.sin(5 * abs(c["x"])) + 0.1 * (c["act"] == "a") for c in configs]
    gp = sl.GaussianProcess(fitted.encoder, fitted.kernel)
    carried = gp.fit(configs, y, method="carried", start=fitted.warm_start(), chains=2, ess=20, seed=2, pointwise=False)
    assert carried.n_draws > 1 and carried.check().kernel_notes
    np.testing.assert_allclose(carried.draws["share"].sum(axis=1), 1.0, rtol=1e-9)


@pytest.mark.stan
@pytest.mark.parametrize("y", [[3.0], [1e8, 2e8, 1.5e8], [1e8, 1e8 + 1, 1e8 + 2]])
@pytest.mark.parametrize("method", ["map", "laplace", "nuts"])
def test_few_and_large_values(y, method):
    space = ConfigurationSpace({"x": (0.0, 1.0)})
    configs = Encoder(space).sobol(8, 1)
    pre = svm.pretrain(space, configs, [c["x"] ** 2 for c in configs], machine="ridge", C=10.0, lengthscale=0.5)
    gp = sl.GaussianProcess(space, pre.kernel())
    posterior = gp.fit(configs[: len(y)], y, method=method, chains=1, warmup=50, draws=20, seed=1, pointwise=False)
    new = Encoder(space).sobol(4, 5)
    here, stan = (posterior.predict(new, engine=engine) for engine in ("numpy", "stan"))
    np.testing.assert_allclose(stan.mean, here.mean, rtol=1e-8)
    assert np.all(here.sd > 0)


@pytest.mark.stan
@pytest.mark.parametrize("layers", [1, 2])
def test_kernel_without_base_is_fitted(fitted, layers):
    kernel = fitted.kernel.with_layers(layers)
    configs = fitted.encoder.sobol(5, 1)
    posterior = sl.GaussianProcess(fitted.encoder, kernel).fit(configs, [1.0, 2.0, 0.0, 3.0, 1.0], method="map")
    assert "share" not in posterior.draws and posterior.check().kernel_notes == ()
    here, stan = (posterior.predict(configs, engine=engine) for engine in ("numpy", "stan"))
    np.testing.assert_allclose(stan.mean, here.mean, rtol=1e-8)


def test_other_ranges_are_refused():
    space = ConfigurationSpace({"x": (0.0, 1.0), "z": (1.0, 10.0)})
    configs = [{"x": 0.1 * i, "z": 1.0 + 0.8 * i} for i in range(10)]
    kernel = sl.svm.pretrain(space, configs, np.arange(10.0), machine="ridge").kernel()
    assert kernel.ranges == {"x": (0.0, 1.0, False), "z": (1.0, 10.0, False)}
    wider = ConfigurationSpace({"x": (0.0, 1.0), "z": (1.0, 20.0)})
    with pytest.raises(sl.DataError, match="learned on 'z' from 1 to 10, and the space has it from 1 to 20"):
        sl.GaussianProcess(wider, kernel)
    for wrong in ([0, 1], [1, 0, False], ["a", 1, False], 3):
        options = kernel.options() | {"ranges": {"x": wrong}}
        with pytest.raises(sl.DataError, match=re.escape("ranges['x'] is")):
            from_name("pretrained", **options)


def test_other_levels_of_an_ordinal_parameter_are_refused(tmp_path):
    def space(levels):
        return ConfigurationSpace(space={"x": (0.0, 1.0), "size": OrdinalHyperparameter("size", levels)})

    configs = [{"x": 0.1 * i, "size": ("s", "m", "l")[i % 3]} for i in range(10)]
    kernel = sl.svm.pretrain(space(["s", "m", "l"]), configs, np.arange(10.0), machine="ridge").kernel()
    file = kernel.save(tmp_path / "kernel.json")
    for other in (["l", "m", "s"], ["s", "m", "l", "xl"], ["s", "m"]):
        with pytest.raises(sl.DataError, match=r"'size' with the levels \['s', 'm', 'l'\], and the space has it with"):
            sl.GaussianProcess(space(other), kernel)
        with pytest.raises(sl.StorageError, match="with the levels"):
            sl.kernels.Pretrained.load(file, space(other))
    assert sl.kernels.Pretrained.load(file, space(["s", "m", "l"])).options() == kernel.options()
    stored = json.loads(file.read_text())
    del stored["kernel"]["levels"]  # as in older files
    file.write_text(json.dumps(stored))
    sl.kernels.Pretrained.load(file, space(["l", "m", "s"]))
    with pytest.raises(sl.DataError, match=re.escape("levels['size'] is 'sml'; give a list")):
        from_name("pretrained", **kernel.options() | {"levels": {"size": "sml"}})
