"""Priors by the names of parameters."""

from __future__ import annotations

import numpy as np
import pytest
from ConfigSpace import ConfigurationSpace
from testing_spaces import conditional_space, mixed_space

import slayr_py as sl
from slayr_py.inference import Model
from slayr_py.kernels import Matern
from slayr_py.space import Encoder

COLUMNS = Encoder(mixed_space()).column_names
DEFAULT = np.log(0.2 * np.sqrt(7))


def lengthscales(**named):
    prior = sl.GaussianProcess(mixed_space(), Matern(), {"lengthscale": named}).priors["lengthscale"]
    return dict(zip(COLUMNS, zip(prior.mu, prior.sigma, strict=True), strict=True))


def test_entries_that_are_not_named_keep_their_default():
    found = lengthscales(lr=sl.LogNormal(0.5, 2.0), size=sl.LogNormal(-1, 0.1))
    assert found["lr"] == (0.5, 2.0) and found["size"] == (-1.0, 0.1)
    assert {found[name] for name in COLUMNS if name not in ("lr", "size")} == {(DEFAULT, 1.0)}
    assert sl.GaussianProcess(mixed_space(), Matern(), {"lengthscale": {}}).priors["lengthscale"].mu == DEFAULT


def test_other_defaults_are_those_of_entries_without_a_prior_of_the_user():
    wide = sl.LogNormal(1.0, 2.0)
    model = Model(mixed_space(), Matern(), {"lengthscale": {"lr": sl.LogNormal(0.5, 3.0)}, "mu": 0.0})
    found = model.with_defaults({"lengthscale": wide, "sigma_f": wide, "mu": sl.Normal(0, 2)}).priors
    assert found["sigma_f"] == wide and found["mu"] == sl.Normal(0.0, 0.0) and found["sigma_n"] == sl.HalfNormal(1.0)
    assert found["lengthscale"].mu == tuple(0.5 if name == "lr" else 1.0 for name in COLUMNS)
    assert found["lengthscale"].sigma == tuple(3.0 if name == "lr" else 2.0 for name in COLUMNS)
    sparse = sl.GaussianProcess({"x": (0.0, 1.0)}, inducing=5)
    assert sparse.with_defaults(lambda model: {"sigma_f": wide}).inducing == 5


def test_a_categorical_stands_for_its_columns_and_a_column_takes_precedence():
    prior = sl.LogNormal(0.5, 2.0)
    assert [name for name, numbers in lengthscales(act=prior).items() if numbers == (0.5, 2.0)] == [
        name for name in COLUMNS if name.startswith("act[")
    ]
    for named in ({"act": prior, "act[tanh]": sl.LogNormal(1, 1)}, {"act[tanh]": sl.LogNormal(1, 1), "act": prior}):
        found = lengthscales(**named)
        assert found["act[tanh]"] == (1.0, 1.0) and found["act[relu]"] == found["act[gelu]"] == (0.5, 2.0)


def test_parameters_and_columns_stand_for_their_entries_in_every_leaf_of_an_expression():
    prior = sl.LogNormal(0.5, 2.0)
    other = sl.LogNormal(1, 1)
    third = sl.LogNormal(2, 1)
    named = {"3:PER[lr]": third, "act[tanh]": other, "act": prior, "lr": prior}
    gp = sl.GaussianProcess(mixed_space(), "SE[lr,act] + MAT52[act] + PER[lr]", {"lengthscale": named})
    (h,) = (h for h in gp.hyperparameters if h.name == "lengthscale")
    assert dict(zip(h.labels, zip(h.prior.mu, h.prior.sigma, strict=True), strict=True)) == {
        **{f"{leaf}[act[{level}]]": (0.5, 2.0) for leaf in ("1:SE", "2:MAT52") for level in ("relu", "gelu")},
        **{"1:SE[act[tanh]]": (1.0, 1.0), "2:MAT52[act[tanh]]": (1.0, 1.0), "1:SE[lr]": (0.5, 2.0)},
        "3:PER[lr]": (2.0, 1.0),
    }
    priors = {"centre": {"lr": sl.Normal(0, 1)}, "split": {"1:LIN[lr,layers]": sl.Beta(2, 3)}, "period": {"2:PER": 0.1}}
    found = sl.GaussianProcess(mixed_space(), "LIN[lr,layers] + PER[layers]", priors).priors
    assert found["centre"] == sl.Normal([0.0, 0.5], [1.0, 0.5])
    assert found["split"] == sl.Beta([2], [3]) and found["period"] == sl.LogNormal([np.log(0.1)], [0.0])


def test_names_with_brackets_and_line_breaks():
    space = ConfigurationSpace({"a[0]": (0.0, 1.0), "b\nc": (0.0, 1.0)})
    priors = {"lengthscale": {"a[0]": sl.LogNormal(3, 1), "b\nc": sl.LogNormal(4, 1)}}
    assert sl.GaussianProcess(space, "SE + LIN", priors).priors["lengthscale"].mu == (3.0, 4.0, 3.0, 4.0)


def test_vector_defaults_and_other_families():
    gp = sl.GaussianProcess(mixed_space(), "fm")
    default = gp.priors["beta"]
    changed = sl.GaussianProcess(mixed_space(), "fm", {"beta": {"size": sl.LogNormal(1, 2)}}).priors["beta"]
    assert changed.mu == (default.mu[0], 1.0) and changed.sigma == (1.5, 2.0)
    priors = {"rho": {"degree": sl.Beta(5, 1)}, "sigma_n": sl.LogNormal(-6, 1)}
    tree = sl.GaussianProcess(conditional_space(), "hierarchical", priors)
    names = next(h.labels for h in tree.hyperparameters if h.name == "rho")
    assert tree.priors["rho"].a == tuple(5.0 if name == "degree" else 2.0 for name in names)
    assert Model.fromdict(tree.model.asdict()).priors == tree.priors


def test_entries_of_an_expression_that_do_not_exist_are_named():
    for name, words in (
        ("z", "'lengthscale' has no entry 'z' to put a prior on; known: x, 1:PER.x., 2:SE.x."),
        ("2:LIN[x]", "has no entry '2:LIN.x.' to put a prior on; did you mean '2:SE.x.'"),
    ):
        with pytest.raises(sl.DataError, match=words):
            sl.GaussianProcess(
                ConfigurationSpace({"x": (0.0, 1.0)}), "PER * SE", {"lengthscale": {name: sl.LogNormal(0, 1)}}
            )


@pytest.mark.parametrize(
    ("priors", "words"),
    [
        ({"lengthscale": {"laers": sl.LogNormal(0, 1)}}, "no entry 'laers' to put a prior on; did you mean 'layers'"),
        ({"lengthscale": {"dataset": sl.LogNormal(0, 1)}}, "has no entry 'dataset'"),
        ({"lengthscale": {"lr": sl.Beta(1, 1)}}, "of several families, LogNormal for 'act.relu.', Beta for 'lr'"),
        (
            {"lengthscale": {name: sl.Beta(1, 1) for name in COLUMNS}},
            r"is Beta.*; use LogNormal or HalfNormal or Gamma or InverseGamma \(support: positive\)",
        ),
        (
            {"lengthscale": {"act": sl.LogNormal([0, 1, 2], 1)}},
            "of 'act' in 'lengthscale' is LogNormal.*; use a prior whose parameters are single",
        ),
        ({"lengthscale": {"lr": -0.5}}, "a positive hyperparameter cannot be fixed to -0.5"),
        ({"sigma_n": {"lr": sl.LogNormal(0, 1)}}, "the prior of the scalar 'sigma_n' is the mapping"),
        ({"mu": sl.Normal(0, 1e6)}, r"of 'mu' is Normal.*, wider than 1000 .*; Normal\(0, 100\) is as good as flat"),
        ({"lengthscales": {"lr": sl.LogNormal(0, 1)}}, "for 'lengthscales', which is not a hyperparameter"),
    ],
)
def test_what_does_not_fit_is_named(priors, words):
    with pytest.raises(sl.DataError, match=words):
        sl.GaussianProcess(mixed_space(), Matern(), priors)
