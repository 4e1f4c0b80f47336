"""Mixtures of posteriors: predictions, leave-one-out, diagnostics, and saved folders."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace

import numpy as np
import pytest
from ConfigSpace import ForbiddenEqualsClause
from scipy.special import logsumexp
from testing_spaces import plain_space

import slayr_py as sl
from slayr_py.errors import DataError, StorageError
from slayr_py.inference.stacking.weights import stacking_weights

pytestmark = pytest.mark.stan
QUICK = {"chains": 2, "warmup": 150, "draws": 100}


@pytest.fixture
def new(plane_data):
    return plane_data[0].sobol(6, 9)


def test_the_prediction_is_the_weighted_mixture(stacked, new):
    n = stacked.n_draws
    n_one = len(stacked.rows_of(n)[0][1])
    assert abs(n_one - 0.37 * n) < 1 and n == int(800 / 0.63)
    prediction = stacked.predict(new)
    assert prediction.draw_mean.shape == (n, 6)
    parts = [one.predict(new) for one in stacked.posteriors]
    wanted = 0.37 * parts[0].mean + 0.63 * parts[1].mean
    spread = np.max([one.sd for one in parts], axis=0)
    np.testing.assert_array_less(np.abs(prediction.mean - wanted), 0.1 * spread)
    assert set(prediction.draw_mean[n_one:, 0]) <= set(parts[1].draw_mean[:, 0])
    np.testing.assert_allclose(prediction.mean, prediction.draw_mean.mean(axis=0))
    low, high = prediction.interval(0.9)
    assert (low < high).all()


def test_a_stack_of_one_is_its_part(two_posteriors, new):
    one = two_posteriors[0]
    assert one.posteriors == (one,) and one.weights.tolist() == [1.0] and one.messages == ()
    alone = sl.Posterior.stack([one])
    assert alone.weights.tolist() == [1.0] and alone.n_draws == one.n_draws
    np.testing.assert_array_equal(alone.predict(new).mean, one.predict(new).mean)
    np.testing.assert_array_equal(alone.loo(), one.loo())
    assert alone.check().rhat_max == one.check().rhat_max
    assert (alone.y_mean, alone.y_sd, alone.maximize) == (one.y_mean, one.y_sd, one.maximize)


def test_weights_and_leave_one_out(two_posteriors):
    stack = sl.Posterior.stack(two_posteriors)
    elpd = np.column_stack([one.loo().values for one in two_posteriors])
    np.testing.assert_array_equal(stack.weights, stacking_weights(elpd))
    assert stack.weights.index.tolist() == ["Matérn kernel (p = 2)", "SE * LIN"]
    with np.errstate(divide="ignore"):
        wanted = logsumexp(elpd + np.log(stack.weights.values), axis=1)
    np.testing.assert_allclose(stack.loo(), wanted)
    assert stack.loo().attrs["elpd"] >= max(one.loo().attrs["elpd"] for one in two_posteriors) - 1e-6
    assert {"elpd", "se", "pareto_k_limit"} <= stack.loo().attrs.keys()


def test_samples_come_from_all_parts(stacked, new):
    values = stacked.sample(new, 4000, seed=2)
    prediction = stacked.predict(new)
    np.testing.assert_array_less(np.abs(values.mean(axis=0) - prediction.mean), 0.15 * prediction.sd)
    # Quantiles: few draws with much noise dominate the standard deviation.
    low, high = prediction.interval(0.8)
    np.testing.assert_allclose(np.mean(values < low, axis=0), 0.1, atol=0.02)
    np.testing.assert_allclose(np.mean(values > high, axis=0), 0.1, atol=0.02)
    np.testing.assert_array_equal(values, stacked.sample(new, 4000, seed=2))


def test_parts_with_and_without_a_warp_are_compared_in_the_units_of_the_user(plane_data, two_posteriors, new):
    encoder, configs, y = plane_data
    warped = sl.GaussianProcess(encoder, warp="log").fit(configs, y, seed=3, **QUICK)
    stack = sl.Posterior.stack([two_posteriors[0], warped], [0.5, 0.5])
    assert stack.weights.index.tolist() == ["Matérn kernel (p = 2) (1)", "Matérn kernel (p = 2) (2)"]
    prediction = stack.predict(new)
    (_, plain), (_, bent) = stack.rows_of(400)
    # Moments of draws without a warp come from the quadrature of a warp near 0.
    np.testing.assert_allclose(prediction.draw_mean[:200], two_posteriors[0].predict(new).draw_mean[plain], rtol=1e-6)
    np.testing.assert_allclose(prediction.draw_sd[200:], warped.predict(new).draw_sd[bent], rtol=1e-12)


def test_fits_without_leave_one_out_densities_are_shown(plane_data, new):
    encoder, configs, y = plane_data
    few = sl.GaussianProcess(encoder).fit(configs, y, method="laplace", draws=20, pointwise=False)
    sparse = sl.GaussianProcess(encoder, "SE", inducing=5).fit(configs, y, draws=5)
    stack = sl.Posterior.stack([few, sparse], [0.5, 0.5])
    assert repr(stack).count(" -  laplace") == 2 and np.all(np.isfinite(stack.predict(new).mean))


def test_one_stack_has_one_kind_of_warp(plane_data):
    encoder, configs, y = plane_data
    log, best = (sl.GaussianProcess(encoder, warp=warp).fit(configs, y, method="map") for warp in ("log", "best"))
    with pytest.raises(DataError, match="a stack cannot have fits with warp='log' and warp='best' together"):
        sl.Posterior.stack([log, best], [1.0, 0.0])


def test_a_mixture_of_modes_repeats_them(plane_data, new):
    encoder, configs, y = plane_data
    modes = [sl.GaussianProcess(encoder, k).fit(configs, y, method="map") for k in ("matern", "SE * LIN")]
    stack = sl.Posterior.stack(modes, [0.25, 0.75])
    wanted = 0.25 * modes[0].predict(new).mean + 0.75 * modes[1].predict(new).mean
    assert stack.n_draws == 100
    np.testing.assert_allclose(stack.predict(new).mean, wanted)
    assert len(stack.predictor().parts[1].factor) == 1
    given = modes[0].idata["log_likelihood"]["y"].values.ravel() - np.log(modes[0].y_sd)
    np.testing.assert_allclose(sl.Posterior.stack(modes[:1]).loo(), given)
    assert "weights from point estimates" in stack.check().notes[0]
    assert str(stack.check()) == "point estimate" and all(np.isnan(stack.loo()["pareto_k"]))


def test_the_check_names_the_parts_that_fail(two_posteriors):
    bad = replace(two_posteriors[1].check(), ok=False, messages=("R-hat 2 > 1: more",), rhat_max=2.0)
    failing = sl.Posterior.of(replace(two_posteriors[1].parts[0], diagnostics=bad))
    both = [two_posteriors[0], failing]
    check = sl.Posterior.stack(both, [0.5, 0.5]).check()
    assert not check.ok and check.rhat_max == 2.0 and check.messages == ("SE * LIN: R-hat 2 > 1: more",)
    assert json.dumps(check.asdict(), allow_nan=False)
    assert sl.Posterior.stack(both, [1.0, 0.0]).check().ok


@pytest.mark.parametrize("name", ["idata", "record", "data", "draws", "model", "kernel"])
def test_a_stack_says_where_the_properties_of_a_fit_are(stacked, name):
    with pytest.raises(DataError, match=r"a stack of 2 fits has no .*; use one of its posteriors"):
        getattr(stacked, name)


@pytest.mark.parametrize("name", ["warm_start", "with_prior", "with_pointwise", "to_arviz"])
def test_a_stack_says_where_the_methods_of_a_fit_are(stacked, name):
    with pytest.raises(DataError, match="a stack of 2 fits has no"):
        getattr(stacked, name)()
    with pytest.raises(DataError, match="a stack of 2 fits has no place in another stack"):
        sl.Posterior.stack([stacked])


def test_other_observations_and_illegal_weights_are_rejected(plane_data, two_posteriors):
    encoder, configs, y = plane_data
    gp = sl.GaussianProcess(encoder)
    space = plain_space()
    space.add(ForbiddenEqualsClause(space["x"], space["x"].upper))
    others = {
        "posterior 1 has other forbidden clauses": sl.GaussianProcess(space).fit(configs, y, method="map"),
        "other observations": gp.fit(configs[:-1], y[:-1], method="map"),
        "another order": gp.fit(configs[::-1], y, method="map"),
        "direction": gp.fit(configs, y, method="map", maximize=True),
        "probit": sl.GaussianProcess(encoder, likelihood="probit").fit(configs, y > 0, method="map"),
    }
    for message, other in others.items():
        with pytest.raises(DataError, match=message):
            sl.Posterior.stack([two_posteriors[0], other])
    with pytest.raises(DataError, match="the list of posteriors is empty"):
        sl.Posterior.stack([])
    for weights in ([0.5, 0.6], [1.5, -0.5], [1.0], [np.nan, 1.0]):
        with pytest.raises(DataError, match="give 2 numbers that are not negative"):
            sl.Posterior.stack(two_posteriors, weights)


def test_a_saved_stack_is_the_same_again(stacked, new, tmp_path):
    folder = stacked.save(tmp_path / "stack")
    again = sl.Posterior.load(folder)
    np.testing.assert_array_equal(again.predict(new).mean, stacked.predict(new).mean)
    assert again.weights.equals(stacked.weights) and repr(again) == repr(stacked)
    shutil.rmtree(folder / "part_1")
    shutil.copytree(folder / "part_0", folder / "part_1")
    with pytest.raises(StorageError, match="part_1 belongs to another stack"):
        sl.Posterior.load(folder)
    (folder / "stack.json").write_text("[]")
    with pytest.raises(StorageError, match="not a readable saved stack"):
        sl.Posterior.load(folder)


def test_a_single_posterior_replaces_a_saved_stack(stacked, tmp_path):
    stacked.save(tmp_path)
    with pytest.raises(sl.DataError, match="is a saved stack; replay each of its parts, such as .*part_0"):
        sl.inference.replay(tmp_path)
    single = stacked.posteriors[0]
    single.save(tmp_path)
    again = sl.Posterior.load(tmp_path)
    assert not again.is_stack and again.record["draws_sha256"] == single.record["draws_sha256"]


def test_the_representation_has_a_row_for_each_kernel(stacked):
    text = repr(stacked)
    assert "2 kernels, 12 observations" in text and "SE * LIN" in text and "0.63" in text
    assert "<table>" in stacked._repr_html_()
