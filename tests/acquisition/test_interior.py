from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from ConfigSpace import ConfigurationSpace, EqualsCondition, Float, Integer
from scipy.integrate import quad
from testing_spaces import conditional_space

import slayr_py as sl
from slayr_py.acquisition import from_name, suggest
from slayr_py.acquisition.candidates import Candidates
from slayr_py.acquisition.criteria import State
from slayr_py.acquisition.effort import Effort
from slayr_py.acquisition.interior import Interior
from slayr_py.acquisition.landscape import Landscape
from slayr_py.acquisition.maximisation import Maximisation
from slayr_py.acquisition.merit import OneObjective
from slayr_py.acquisition.plateaus import Outcomes
from slayr_py.acquisition.search import SearchTerms
from slayr_py.space import Encoder


def mixed() -> Encoder:
    space = ConfigurationSpace({"x": (0.0, 10.0), "z": (-1.0, 1.0), "kind": ["a", "b"]})
    space.add(Integer("n", (1, 9)))
    return Encoder(space)


def at(encoder, **values):
    return encoder.encode([{**encoder.space.get_default_configuration(), **values}])


def weight(u):
    return 4 * u * (1 - u) + 0.05


def anywhere(*points):
    """Probability that the optimum is anywhere, given unit values of the best observations, by quadrature of w."""
    inside = 0.95 * np.mean([np.prod([weight(u) / quad(weight, 0.0, 1.0)[0] for u in point]) for point in points])
    return 0.05 / (0.05 + inside)


def test_only_floats_nearer_to_a_bound_than_the_best_one_have_a_factor():
    encoder = mixed()
    interior = Interior.of(encoder, at(encoder, x=2.0, z=0.0, n=5))
    for x in (2.0, 5.0, 8.0):  # as near to the other bound as the best one is to its own
        np.testing.assert_allclose(interior.values(at(encoder, x=x, z=0.0, n=9, kind="b")), 0.0, atol=1e-12)
    product = weight(0.1) / weight(0.2) * weight(0.0) / weight(0.5)
    r = anywhere((0.2, 0.5))
    np.testing.assert_allclose(interior.values(at(encoder, x=9.0, z=1.0)), np.log(r + (1 - r) * product))
    at_bound = Interior.of(encoder, at(encoder, x=10.0, z=-1.0))
    assert at_bound.values(at(encoder, x=0.0, z=1.0)) == 0


def test_a_best_observation_at_bounds_of_several_parameters_ends_the_belief_for_the_others():
    encoder = Encoder(ConfigurationSpace({f"x{i}": (0.0, 1.0) for i in range(5)}))
    rest = {f"x{i}": 0.4 for i in range(5)}
    corner = at(encoder, **dict.fromkeys(rest, 1.0))
    cost = []
    for at_bounds in range(4):
        best = rest | {f"x{i}": 0.0 for i in range(at_bounds)}
        cost.append(-float(Interior.of(encoder, at(encoder, **best)).values(corner)[0]))
        np.testing.assert_allclose(cost[-1], -np.log(anywhere(best.values())), rtol=0.02)  # the product is small
    assert cost[0] > cost[1] > cost[2] > cost[3] > 0
    assert cost[3] < 0.1 < 3 < cost[0]


def test_a_front_may_end_at_the_bounds_of_some_parameters():
    encoder = mixed()
    ends = at(encoder, x=0.0, z=0.0).concatenate(at(encoder, x=5.0, z=0.2))
    interior = Interior.of(encoder, ends)
    assert interior.values(at(encoder, x=10.0, z=0.2)) == 0
    r = anywhere((0.0, 0.5), (0.5, 0.6))
    nearer = interior.values(at(encoder, x=10.0, z=1.0))
    np.testing.assert_allclose(nearer, np.log(r + (1 - r) * weight(1.0) / weight(0.6)))


def test_points_of_a_front_count_one_by_one_as_places_of_the_optimum():
    encoder = Encoder(ConfigurationSpace({"x": (0.0, 1.0), "y": (0.0, 1.0)}))
    ends = at(encoder, x=0.0, y=0.3).concatenate(at(encoder, x=0.3, y=0.0))
    np.testing.assert_allclose(np.exp(Interior.of(encoder, ends).log_anywhere), anywhere((0.0, 0.3)))


def test_fixed_values_are_no_evidence_and_have_no_factor():
    values = {"x0": 0.3, "x1": 0.4, "x2": 0.6}
    free = Encoder(ConfigurationSpace({name: (0.0, 1.0) for name in values}))
    whole = Encoder(ConfigurationSpace({f"x{i}": (0.0, 1.0) for i in range(5)}))
    given = {"x3": 0.0, "x4": 1.0}
    interior = Interior.of(whole, at(whole, **values, **given), whole.fix(given, ""))
    near = values | {"x0": 0.01}
    np.testing.assert_allclose(
        interior.values(at(whole, **near, **given)), Interior.of(free, at(free, **values)).values(at(free, **near))
    )
    assert interior.values(at(whole, **values, x3=0.0, x4=0.5)) == 0


def test_gradient():
    encoder = mixed()
    interior = Interior.of(encoder, at(encoder, x=0.3, z=0.95))
    encoded = encoder.encode([*encoder.sobol(8, 1), {"x": 0.1, "z": 0.99, "n": 2, "kind": "a"}])
    _, gradients = interior.values_and_gradients(encoded)
    real = [i for i, d in enumerate(encoder.dimensions) if d.is_real]
    for column, i in enumerate(real):
        step = np.zeros(len(encoder.dimensions))
        step[i] = 1e-6
        moved = [type(encoded)(encoded.unit_values + sign * step, encoded.active, encoder) for sign in (1, -1)]
        difference = (interior.values(moved[0]) - interior.values(moved[1])) / 2e-6
        np.testing.assert_allclose(gradients[:, column], difference, atol=1e-7)
    assert np.all(gradients[-1, [real.index(i) for i, d in enumerate(encoder.dimensions) if d.kind == "float"]])


def test_parameters_that_the_best_observation_does_not_have_keep_their_own_belief():
    # The best one is at all bounds of its branch, which tells nothing about the other.
    space = ConfigurationSpace({"kind": ["a", "b"]})
    names = {kind: [f"{kind}{i}" for i in range(3)] for kind in "ab"}
    for kind, parameters in names.items():
        space.add(floats := [Float(name, (0.0, 1.0)) for name in parameters])
        space.add([EqualsCondition(each, space["kind"], kind) for each in floats])
    encoder = Encoder(space)

    def of(kind, values):
        return encoder.encode([{"kind": kind, **dict(zip(names[kind], values, strict=True))}])

    interior = Interior.of(encoder, of("a", [0.0, 0.0, 1.0]))
    assert interior.values(of("a", [1.0, 1.0, 0.0])) == 0
    product = (weight(0.0) / weight(0.5)) ** 2
    other = of("b", [0.0, 0.5, 1.0])
    values, gradients = interior.values_and_gradients(other)
    np.testing.assert_allclose(values, np.log(0.05 + 0.95 * product))
    step = np.array([d.name == "b0" for d in encoder.dimensions]) * 1e-6
    difference = interior.values(type(other)(other.unit_values + step, other.active, encoder)) - values
    (slope,) = gradients[:, encoder.real_names.index("b0")]
    np.testing.assert_allclose(slope, difference[0] / 1e-6, rtol=1e-3)
    assert slope > 0 and np.count_nonzero(gradients) == 2


def test_inactive_parameters_and_those_in_constraints_have_no_factor():
    encoder = Encoder(conditional_space())
    configs = encoder.sobol(16, 3)
    encoded = encoder.encode(configs)
    interior = Interior.of(encoder, encoded[:1])
    unit = np.where(encoded.active, encoded.unit_values, 0.999)  # an inactive value is arbitrary
    other = type(encoded)(unit, encoded.active, encoder)
    np.testing.assert_array_equal(interior.values(other), interior.values(encoded))
    np.testing.assert_array_equal(Interior.of(encoder, other[:1]).values(encoded), interior.values(encoded))
    inside = Encoder(ConfigurationSpace({"a": (0.0, 1.0), "b": (0.0, 1.0)}), within=["a + b <= 1"])
    none = Interior.of(inside, inside.encode([{"a": 0.4, "b": 0.4}]))
    assert none.values(inside.encode([{"a": 1.0, "b": 0.0}])) == 0


@pytest.fixture(scope="module")
def sloping():
    """A posterior whose expected improvement is largest in a corner, by little."""
    space = ConfigurationSpace({f"x{i}": (0.0, 1.0) for i in range(4)})
    gp = sl.GaussianProcess(space, priors={"sigma_n": sl.LogNormal(-4.0, 0.5)})
    configs = gp.encoder.sobol(6, 1)
    y = [float(np.sin(9 * c["x0"]) + np.cos(7 * c["x1"]) + c["x2"] * c["x3"]) for c in configs]
    return gp.fit(configs, y, method="map", seed=1)


@pytest.mark.parametrize("interior", [True, None])
def test_the_belief_is_left_out_with_another_one_or_without_an_improvement(interior):
    given = {"pending": (), "exclude": (), "feasibility": (), "fixed": None, "cost": None, "outcomes": None}
    terms = SearchTerms(**given, prior=None, interior=interior, effort=Effort())
    other = replace(terms, prior=sl.acquisition.OptimumPrior.of({"x": sl.Normal(1.0, 1.0)}, mixed()))
    assert terms.applicable(has_best=True, is_logarithm=True).interior is interior
    for each, known in ((terms, (False, True)), (terms, (True, False)), (other, (True, True))):
        assert each.applicable(has_best=known[0], is_logarithm=known[1]).interior is False


@pytest.mark.stan
def test_a_suggestion_stays_inside_unless_a_bound_promises_more(sloping):
    def distance(config):
        return np.mean([min(value, 1 - value) for value in config.values()])

    found = {}
    for interior in (False, True):
        rng = np.random.default_rng(0)
        best = float(min(sloping.y_mean + sloping.y_sd * sloping.targets.y))
        found[interior] = suggest(sloping, "ei", best=best, t=1, rng=rng, interior=interior)
    assert distance(found[True].config) > distance(found[False].config) + 0.05
    assert found[True].value <= found[False].value and found[True].interior <= 0 == found[False].interior


@pytest.mark.stan
def test_plateaus_end_the_belief_unless_it_was_asked_for():
    """A table's best row may be anywhere, as the bounds are those of its rows."""
    gp = sl.GaussianProcess(ConfigurationSpace({"x0": (0.0, 1.0), "x1": (0.0, 1.0)}))
    configs = [{"x0": x0, "x1": 0.5} for x0 in np.random.default_rng(1).uniform(0, 0.9, 16)]
    posterior = gp.fit(configs, [-float(np.floor(5 * c["x0"])) for c in configs], method="map", seed=1)
    options = {"best": -4.0, "t": 1, "exclude": configs}

    def found_in(posterior):
        outcomes = Outcomes(posterior.targets.y, *np.ones((2, 16), dtype=bool))
        suggestions = {
            i: suggest(posterior, rng=np.random.default_rng(0), interior=i, outcomes=outcomes, **options)
            for i in (False, None, True)
        }
        return {i: suggestion._replace(error=0.0) for i, suggestion in suggestions.items()}  # NaN for a mode

    found = found_in(posterior)
    assert found[None] == found[False] and found[None].interior == 0 > found[None].new
    assert found[True].config != found[None].config and found[True].new < 0
    smooth = gp.fit(configs, [-c["x0"] for c in configs], method="map", seed=1)
    options["best"] = min(-c["x0"] for c in configs)
    found = found_in(smooth)
    assert found[None] == found[True] != found[False] and found[None].new == 0


@pytest.mark.stan
def test_searches_with_and_without_the_belief_share_their_first_screen(sloping):
    encoder = sloping.encoder
    merit = OneObjective(sloping.predictor(4).linearised(-1.0), 1, from_name("ei"), State(-1.0, 1, 4))
    interior = Interior.of(encoder, sloping.train[[0]])
    pool = Candidates.of(encoder, encoder.uniform(300, np.random.default_rng(1)))
    effort = Effort(screens=((4, 20), (4, 10)))
    plain = Maximisation.of(Landscape(encoder, merit), pool, effort)
    alone = Maximisation.of(Landscape(encoder, merit, interior=interior), pool, effort)
    for search in (plain.multiplied_by(interior), plain.changed(lambda each: replace(each, interior=interior))):
        np.testing.assert_allclose(search.values, alone.values, rtol=1e-12)
        assert search.maximum().unit_values.tolist() == alone.maximum().unit_values.tolist()


@pytest.mark.stan
def test_a_maximum_at_which_the_criterion_vanishes_is_not_refined(sloping, monkeypatch):
    encoder = sloping.encoder
    pool = Candidates.of(encoder, encoder.uniform(300, np.random.default_rng(1)))
    refined = []

    def refine(self, climbed, original=Maximisation._refined):
        refined.append(len(climbed.values))
        return original(self, climbed)

    monkeypatch.setattr(Maximisation, "_refined", refine)
    for best, times in ((-1.0, 1), (-1e3, 0)):  # no function falls to -1000 standard deviations
        refined.clear()
        merit = OneObjective(sloping.predictor(4).linearised(best), 1, from_name("ei"), State(best, 1, 4))
        search = Maximisation.of(Landscape(encoder, merit), pool, Effort())
        assert (search.landscape.merit.at(search.maximum()) < merit.least) == (times == 0)
        assert len(refined) == times


def test_a_bound_has_no_factor_where_the_logarithm_is_not_maximised():
    flags = {name: from_name(name).is_logarithm for name in ("ei", "log_ei", "pi", "lcb")}
    assert flags == {"ei": True, "log_ei": True, "pi": True, "lcb": False}
