"""The joint Gaussian process of configuration and step."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import optuna
import pytest
from ConfigSpace import Categorical, ConfigurationSpace, EqualsCondition, Float

from slayr_py.inference import Targets
from slayr_py.space import Encoder
from slayr_py.study.model.curve_model import BEST, WORST, CurveFit, CurveScale, FinalMoments
from slayr_py.study.model.curve_points import EncodedTrials, JointSpace, Points, PointsOfCurves
from slayr_py.study.storage.curves import curve_of, thinned

LAST = 20


def branching():
    space = ConfigurationSpace({"x": (0.0, 1.0), "step": (1.0, 10.0)})
    kind = Categorical("kind", ["a", "b"])
    depth = Float("depth", (0.0, 1.0))
    space.add(kind, depth)
    space.add(EqualsCondition(depth, kind, "b"))
    return Encoder(space)


@pytest.fixture(scope="module")
def fitted():
    """Curves of eight configurations of a space with a condition and a parameter named as the column of steps."""
    encoder = branching()
    space = JointSpace(encoder)
    configs = encoder.encode(encoder.sobol(8, 1))
    u = np.log1p(np.array([1, 2, 4, 8, LAST])) / np.log1p(LAST)
    x = configs.unit_values[:, encoder.names.index("x")]
    curves = [space.points(configs[[i]], u, (x[i] - 0.4) ** 2 + 0.5 * np.exp(-3 * u), i) for i in range(8)]
    finals = np.array([curve.values[-1] for curve in curves])
    fit = CurveFit.to(space, Points.together(curves), finals, seed=1)
    return SimpleNamespace(space=space, configs=configs, curves=curves, fit=fit)


def part(points, rows):
    return Points(points.rows[rows], *(each[rows] for each in points[1:]))


def test_the_joint_space_keeps_inactive_parameters_and_adds_the_step(fitted):
    rows = fitted.space.rows(fitted.configs[[0]], np.array([0.0, 0.5]))
    names = fitted.space.joint.names
    assert set(names) == {*fitted.space.encoder.names, "step_"}
    np.testing.assert_array_equal(rows.unit_values[:, names.index("step_")], [0.0, 0.5])
    inactive = ~fitted.configs.active[:, fitted.space.encoder.names.index("depth")]
    assert inactive.any() and not inactive.all()
    for i in range(8):
        row = fitted.space.rows(fitted.configs[[i]], np.zeros(1))
        assert row.active[0, names.index("depth")] != inactive[i]


def test_the_joint_space_keeps_graphs():
    encoder = Encoder({"k": (1, 9), "x": (0.0, 1.0)}, graphs={"k": "path"})
    space = JointSpace(encoder)
    configs = encoder.encode([{"k": k, "x": 0.5} for k in (1, 5, 9)])
    column = space.joint.column_names.index("k")
    np.testing.assert_array_equal(space.rows(configs, np.zeros(3)).columns[:, column], [0.0, 0.5, 1.0])


def test_conditioning_on_a_running_curve_equals_conditioning_on_all_points(fitted):
    finished, running = fitted.curves[:6], [part(c, slice(0, 3)) for c in fitted.curves[6:]]
    there = fitted.fit.condition(Points.together([*finished, *running])).final(fitted.configs[[7]], [])
    here = fitted.fit.condition(Points.together(finished)).final(fitted.configs[[7]], running)
    np.testing.assert_allclose(here.mean, there.mean, rtol=1e-6)
    np.testing.assert_allclose(here.variance, there.variance, rtol=1e-5)


def test_the_evidence_of_a_curve_says_all_that_it_says_about_other_configurations(fitted):
    """The covariance is a product, so that an early curve informs final values elsewhere only by its own final value.

    Draws without noise are exact; the transformed evidence is added as a final value with its error.
    """
    draws = {name: values[:1].copy() for name, values in fitted.fit.draws.items()}
    draws["sigma_n"][:] = 0.0
    fit = CurveFit(fitted.space, fitted.fit.scale, draws)
    without = fit.condition(Points.together(fitted.curves[:5]))
    early = part(fitted.curves[5], slice(0, 2))
    given = without.final(fitted.configs[[5]], [early])
    before = without.final(fitted.configs[[5]], [])
    precision = 1 / given.variance - 1 / before.variance
    value = (given.mean / given.variance - before.mean / before.variance) / precision

    last = fitted.space.rows(fitted.configs[[5]], np.ones(1))
    rows = fitted.curves[0].rows
    for each in (*(c.rows for c in fitted.curves[1:5]), last):
        rows = rows.concatenate(each)
    told = np.append(fit.scale.transform(np.concatenate([c.values for c in fitted.curves[:5]])), value)
    errors = np.append(np.zeros(len(told) - 1), precision[0] ** -0.5)
    replaced = type(without.predictor).factorise(fitted.space.model.kernel, rows, Targets(told, errors, 1e-4), draws)
    elsewhere = fitted.space.rows(fitted.configs[[6]], np.ones(1))
    mean, variance = replaced.moments(elsewhere)
    joint = without.final(fitted.configs[[6]], [early])
    # Without the curve the mean there differs by more than the tolerance.
    assert abs(without.final(fitted.configs[[6]], []).mean[0] - joint.mean[0]) > 1e-3
    np.testing.assert_allclose(mean[:, 0], joint.mean, atol=1e-4)
    np.testing.assert_allclose(variance[:, 0], joint.variance, atol=1e-4)


def test_the_evidence_restores_the_posterior(fitted):
    conditioned = fitted.fit.condition(Points.together(fitted.curves[:7]))
    without = conditioned.final(fitted.configs[[7]], [])
    given = conditioned.final(fitted.configs[[7]], [part(fitted.curves[7], slice(0, 3))])
    value, sd = conditioned.evidence(given, without)
    centre, spread = conditioned.predicted(given)
    assert sd > spread  # the other curves know something, too
    assert abs(value - centre) < 3 * sd
    assert conditioned.evidence(without, without) == conditioned.predicted(without)  # the curve says nothing
    assert conditioned.probability_by_curve(value - 9 * sd, without, without, 1.0, 5) == 1.0
    below, above = (conditioned.probability_by_curve(value + by, given, without, 1.0, 5) for by in (-sd, sd))
    assert below < 0.3 < 0.7 < above


def test_bad_values_are_compressed_and_better_ones_are_in_order():
    scale = CurveScale.of(np.array([0.1, 0.2, 0.3, 0.4]), np.zeros(4), np.zeros(4))
    values = np.array([-0.5, 0.1, 0.25, 0.4, 10.0, 1e30])
    t = scale.transform(values)
    assert np.all(np.diff(t[:5]) > 0) and t[-1] == t[-2]
    np.testing.assert_allclose(scale.invert(t[:4]), values[:4], rtol=1e-12)
    assert scale.transform(np.array([-1e300]))[0] == BEST


@pytest.mark.parametrize("unit", [2.0**-20, 1.0, 2.0**14])
def test_equal_final_values_have_a_scale_in_their_unit(unit):
    scale = CurveScale.of(*np.full((3, 3), 0.1 * unit))
    np.testing.assert_array_equal(scale.transform(unit * np.array([0.1, 0.05])), [0.0, -np.expm1(0.05) / 0.1])


def test_a_value_that_is_far_better_than_nearly_equal_ones_is_within_the_scale():
    values = np.array([2.3, 2.3 + 1e-4, 2.3 - 1e-4, 0.4, 0.3])
    scale = CurveScale.of(values[:3], values, values[:3])
    t = scale.transform(values)
    assert np.all(np.abs(t) < 2 * WORST) and scale.transform(np.array([-20.0]))[0] == BEST


@pytest.mark.parametrize("end", [1e2, 1e11])
def test_diverged_trials_below_half_of_all_do_not_decide_the_scale(end):
    values = np.array([0.9, 1.3, 1.8, end])
    for finals in ([0.5, 0.6, end], [0.5, 0.6, 0.7, end, end]):
        scale = CurveScale.of(np.array(finals), values, values[:3])
        assert 0.5 < scale.centre < 0.8 and 0.05 < scale.spread < 0.5
    equal = CurveScale.of(np.array([0.5, 0.5, end]), values, values[:3])
    assert equal.centre == 0.5 and 0.01 < equal.spread < 0.5


def test_the_better_curves_are_the_scale_of_final_values_that_nearly_repeat(fitted):
    u = np.linspace(0.0, 1.0, 6)
    finals = np.array([0.5, 0.5 + 1e-9, 1e11])
    curves = [
        fitted.space.points(fitted.configs[[i]], u, final + (1 - u) * (2 if final < 1 else -final), i)
        for i, final in enumerate(finals)
    ]
    scale = CurveFit.to(fitted.space, Points.together(curves), finals, seed=1).scale
    values = [points.values for points in curves]
    assert scale == CurveScale.of(finals, np.concatenate(values), np.concatenate(values[:2]))
    assert 0.01 < scale.spread < 0.5


def test_the_value_of_a_trial_that_ends_early_replaces_its_last_report(fitted):
    ended = optuna.trial.create_trial(value=3.0, intermediate_values={1: 5.0, 2: 4.5, 6: 4.0})
    curve = curve_of(ended)
    trials = EncodedTrials(fitted.space, {curve.number: fitted.configs[[0]]})
    points = PointsOfCurves(trials, -1.0, float(LAST)).of(curve)
    np.testing.assert_allclose(points.u, np.log1p([1, 2, LAST]) / np.log1p(LAST), rtol=1e-15)
    assert points.values.tolist() == [-5.0, -4.5, -3.0]


def test_skewed_final_values_and_those_that_nearly_repeat_are_no_divergence():
    values = np.linspace(0.5, 2.5, 24)
    skewed = CurveScale.of(np.array([0.5, 0.6, 3.0]), values, values)
    np.testing.assert_allclose([skewed.centre, skewed.spread], [0.6, (1.8 - 0.55) / 1.349])
    assert CurveScale.of(np.array([0.5, 0.5 + 1e-9, 0.9]), values, values).spread > 0.02


def test_a_curve_is_thinned_evenly_in_the_logarithm_of_the_step():
    steps = np.arange(10_000.0)
    kept = thinned(steps, 8)
    assert len(kept) == 8 and kept[0] == 0 and kept[-1] == 9_999
    ratios = (1 + steps[kept][2:]) / (1 + steps[kept][1:-1])
    np.testing.assert_allclose(ratios[2:], 10_000 ** (1 / 7), rtol=0.1)
    np.testing.assert_array_equal(thinned(np.array([3.0, 5.0]), 8), [0, 1])
    assert len(thinned(np.zeros(0), 8)) == 0


def test_errors_are_those_of_predictions_without_the_rest_of_the_curve(fitted):
    conditioned = fitted.fit.condition(Points.together(fitted.curves))
    cut = float(fitted.curves[0].u[2])
    errors = conditioned.errors(cut)
    others = fitted.fit.condition(
        Points.together([*fitted.curves[:3], part(fitted.curves[3], slice(0, 3)), *fitted.curves[4:]])
    )
    moments = others.final(fitted.configs[[3]], [])
    variance = float((moments.variance + others.noise).mean() + moments.mean.var())
    truth = fitted.fit.scale.transform(fitted.curves[3].values[-1:])[0]
    assert len(errors) == 8
    np.testing.assert_allclose(errors[3], (truth - moments.mean.mean()) / np.sqrt(variance), rtol=1e-5)


def test_evidence_far_outside_the_values_has_an_error(fitted):
    """A curve that diverges says a value that the scale clips; its error is still positive."""
    conditioned = fitted.fit.condition(Points.together(fitted.curves[:7]))
    for mean in (-1e3, 1e3):
        given, without = (FinalMoments(np.array([t]), np.array([v])) for t, v in ((mean, 0.5), (0.0, 1.0)))
        value, sd = conditioned.evidence(given, without)
        assert np.isfinite(value) and 0 < sd < np.inf
