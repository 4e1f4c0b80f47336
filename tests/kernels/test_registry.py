from __future__ import annotations

import numpy as np
import pytest
from ConfigSpace import Categorical, ConfigurationSpace, Float
from testing_kernels import CASES, random_points, random_theta
from testing_spaces import mixed_space, plain_space

from slayr_py import DataError
from slayr_py.kernels import FrequencyModulated, Hierarchical, Matern, Separable, auto_reason, from_name
from slayr_py.space import Encoder


def ordered_space() -> ConfigurationSpace:
    space = ConfigurationSpace()
    space.add(Float("x", (0.0, 1.0)), Categorical("size", ["s", "m", "l"], ordered=True))
    return space


def test_the_automatic_kernel_takes_ordinals_by_their_ranks_unless_they_have_a_graph():
    chosen = from_name("auto", Encoder(mixed_space()))
    assert repr(chosen) == repr(FrequencyModulated(ordinals="ranks"))
    labels = {h.name: set(h.labels) for h in chosen.hyperparameters(Encoder(mixed_space()))}
    assert labels["lengthscale"] == {"lr", "layers", "units", "size"} and labels["beta"] == {"act"}
    assert repr(from_name("auto", Encoder(ordered_space()))) == repr(Matern(p=2))
    assert auto_reason(Encoder(ordered_space())) == "all parameters are numbers or ordinals"
    with_graph = Encoder(ordered_space(), graphs={"size": "path"})
    assert repr(from_name("auto", with_graph)) == repr(FrequencyModulated())
    assert auto_reason(with_graph) == "the space has categorical parameters or graphs and no conditions"


def test_kernels_by_name():
    assert repr(from_name("matern", p=1)) == "Matern(p=1)"
    assert from_name("auto", Encoder(plain_space())).name == "matern"
    kernel = Matern(3)
    assert from_name(kernel) is kernel
    with pytest.raises(DataError, match="did you mean 'matern'"):
        from_name("mattern")
    with pytest.raises(DataError, match="q"):
        from_name("matern", q=1)
    with pytest.raises(DataError, match="pass them to it"):
        from_name(kernel, p=1)


@pytest.mark.parametrize("name", sorted(CASES))
def test_options_make_the_kernel_again(name):
    kernel = CASES[name][0]
    encoder = Encoder(CASES[name][1])
    again = from_name(kernel.name, encoder, **kernel.options())
    theta = random_theta(kernel, encoder, np.random.default_rng(12))
    points = random_points(encoder, 5, 13)
    assert repr(again) == repr(kernel)
    assert np.array_equal(again.gram(points, points, theta), kernel.gram(points, points, theta))
    assert kernel.description


@pytest.mark.parametrize(
    ("make", "phrase"),
    [
        (lambda: Hierarchical("sse"), "'se'"),
        (lambda: Hierarchical(combine="plus"), "'plus'"),
        (lambda: Hierarchical("matern", p=-1), "-1"),
        (lambda: FrequencyModulated("laplace"), "'laplacian'"),
        (lambda: FrequencyModulated(Matern()), "Matern"),
        (lambda: FrequencyModulated("laplacian", tau=1.0), "tau"),
        (lambda: FrequencyModulated("power", tau=2.5), "2.5"),
        (lambda: FrequencyModulated("power", orders=0), "0"),
        (lambda: FrequencyModulated(ordinals="rank"), "'rank'; use 'graphs' or 'ranks'"),
        (lambda: from_name("fm", Encoder(ordered_space()), ordinals="ranks"), "use kernel='matern', which has ranks"),
        (lambda: FrequencyModulated(Hierarchical(), tau=1.0), "tau"),
        (lambda: from_name("matern", None, q=1), "known: p"),
        (lambda: from_name("auto", None), "encoder"),
        (lambda: Separable("laplacien"), "'laplacian'"),
        (lambda: Separable(combine="times"), "'times'"),
        (lambda: from_name("fm", Encoder(CASES["matern-plain"][1])), "ordinal or categorical"),
        (lambda: from_name("separable", Encoder(CASES["matern-plain"][1])), "ordinal or categorical"),
        (lambda: from_name("auto", None, p=1), "auto"),
        (lambda: from_name("fm", None, modulator={"base": "se"}), "has no name; add the entry"),
        (lambda: from_name("fm", None, modulator={"name": "hierarchical", "bass": "se"}), "bass"),
    ],
)
def test_bad_kernels_are_refused(make, phrase):
    with pytest.raises(DataError) as error:
        make()
    assert phrase in str(error.value)


def test_the_name_of_a_search_is_explained():
    with pytest.raises(DataError, match="KernelSearch"):
        from_name("search")
