from __future__ import annotations

from importlib.util import find_spec

import pytest

import slayr_py as sl
from benchmarks.common.problems import PROBLEMS
from benchmarks.optimisation.peers import PEERS, initial_design, keywords, peer
from benchmarks.optimisation.turbo_peer import region_after
from slayr_py.study import StanGPSampler
from slayr_py.study.storage.distributions import to_configuration, to_params

PACKAGES = {
    "optuna-gp": "torch",
    "botorch": "botorch",
    "turbo": "botorch",
    "ax": "ax",
    "hebo": "hebo",
    "smac": "smac",
    "baybe": "baybe",
    "saasbo": "numpyro",
}
CASES = [
    (name, problem)
    for name in PEERS
    for problem in ("branin, noisy", "func2c", "jenatton")
    if find_spec(PACKAGES.get(name, "optuna"))
    and (problem != "jenatton" or peer(name).kind.conditional)
    and (problem == "branin, noisy" or name not in ("baybe", "turbo", "saasbo"))  # no categories
]


@pytest.mark.parametrize(("name", "problem"), CASES)
@pytest.mark.filterwarnings("ignore")
def test_suggestions_belong_to_the_space(name, problem):
    space, objective, *_ = PROBLEMS[problem]
    kind, start = peer(name)
    optimiser = start(PROBLEMS[problem], 0)
    for params in [] if kind.own_design else initial_design(space, 0):
        optimiser.tell(params, objective(params))
    for _ in range(3):
        params = optimiser.ask()
        assert to_configuration(space, params) is not None
        optimiser.tell(params, objective(params))


@pytest.mark.parametrize("problem", ["hartmann6", "deeper tree"])
def test_the_initial_design_is_that_of_slayr(problem):
    space = PROBLEMS[problem].space
    own = StanGPSampler(space, kernel="matern").strategy.design.points(3)
    assert [to_params(config) for config in own] == initial_design(space, 3)


def test_a_trust_region_follows_improvements():
    design = [5.0, 4.0, 6.0]
    assert region_after(design, 3, 2) == (0, 0.8)
    assert region_after([*design, 3.0, 2.0, 1.0], 3, 2) == (0, 1.6)
    assert region_after([*design, 3.0, 2.9999, 2.9998], 3, 2) == (0, 0.4)
    failures = [*design, *[7.0] * 14]  # each two of them halve it, the seventh time below 1 / 128
    assert region_after(failures[:-1], 3, 2) == (0, 0.8 / 2**6)
    assert region_after(failures, 3, 2) == (17, 0.8)
    assert region_after([*failures, *[9.0] * 4, 10.0, 10.0], 3, 2) == (17, 0.4)


def test_keywords_of_a_variant():
    assert keywords("") == {}
    assert keywords("kernel=auto,warp=none,noisy=true,n_initial=5,lengthscale=-0.5/0.7,ess=none") == {
        "kernel": "auto",
        "warp": "none",
        "noisy": True,
        "n_initial": 5,
        "ess": None,
        "priors": {"lengthscale": sl.LogNormal(-0.5, 0.7)},
    }
    assert repr(keywords("kernel=fm")["kernel"]).startswith("FrequencyModulated")
    with pytest.raises(ValueError, match="'kernel' is not of the form key=value"):
        keywords("kernel")
