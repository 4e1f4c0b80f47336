"""Fits of several kernels: refits, kernels that are left out, seeds and options."""

from __future__ import annotations

import numpy as np
import pytest

import slayr_py as sl
from slayr_py.errors import DataError, InferenceError
from slayr_py.inference import FitOptions, stack_posteriors
from slayr_py.inference.stacking import gaussian_process

QUICK = {"chains": 2, "warmup": 150, "draws": 100}


@pytest.fixture
def accepted(monkeypatch):
    for name in ("failure", "unreliability"):
        monkeypatch.setattr(gaussian_process, name, lambda *_: None)


@pytest.fixture
def modes(monkeypatch):
    """Fit modes, and return the arguments of every fit."""
    asked = []
    fit = sl.GaussianProcess.fit

    def spy(self, *arguments, options, **rest):
        asked.append((self.kernel, options, rest["seed"]))
        return fit(self, *arguments, options=options.updated(method="map"), **rest)

    monkeypatch.setattr(sl.GaussianProcess, "fit", spy)
    return asked


@pytest.mark.stan
def test_stacked_posterior_of_a_fit(plane_data, accepted):
    encoder, configs, y = plane_data
    gp = sl.StackedGaussianProcess(encoder, sl.stack(["matern", "SE * LIN"]))
    stack = gp.fit(configs, y, seed=2, options=FitOptions(**QUICK, pointwise=False))
    assert isinstance(stack, sl.StackedPosterior) and stack.messages == ()
    assert len(stack.loo()) == len(y) and stack.weights.sum() == pytest.approx(1)
    # The fit of a kernel does not depend on the others.
    alone = sl.StackedGaussianProcess(encoder, ["SE * LIN"]).fit(configs, y, seed=2, **QUICK)
    hashes = [one.posteriors[-1].record["draws_sha256"] for one in (stack, alone)]
    assert hashes[0] == hashes[1]
    assert stack.posteriors[0].record["arguments"]["seed"] != stack.posteriors[1].record["arguments"]["seed"]


@pytest.mark.stan
def test_a_doubtful_fit_is_repeated_once_with_more_draws(plane_data, modes, monkeypatch):
    encoder, configs, y = plane_data
    reasons = iter(["too few draws", None, None])
    monkeypatch.setattr(gaussian_process, "failure", lambda *_: next(reasons))
    stack = sl.StackedGaussianProcess(encoder, ["SE", "matern"]).fit(configs, y, draws=70, warmup=60)
    assert stack.messages == ("SE: fitted again: too few draws",)
    assert [(options.draws, options.warmup) for _, options, _ in modes] == [(70, 60), (140, 120), (70, 60)]
    assert len({seed for *_, seed in modes}) == 3


@pytest.mark.stan
def test_a_kernel_that_fails_is_left_out_and_named(plane_data, modes, monkeypatch):
    encoder, configs, y = plane_data
    fit = sl.GaussianProcess.fit

    def failing(self, *arguments, **options):
        if self.kernel.name == "composite":
            raise InferenceError("no way")
        return fit(self, *arguments, **options)

    monkeypatch.setattr(sl.GaussianProcess, "fit", failing)
    stack = stack_posteriors(["SE"], encoder, configs, y)
    assert stack.weights.index.tolist() == ["Matérn kernel (p = 2)"]
    assert stack.messages == ("SE: left out: no way; with 2 times the draws: no way",)
    with pytest.raises(InferenceError, match=r"none of the 1 kernels can be used. SE: left out: no way"):
        stack_posteriors(["SE"], encoder, configs, y, plain=False)


@pytest.mark.stan
def test_influential_observations_make_a_weight_unreliable_if_they_are_many(two_posteriors):
    from slayr_py.inference.stacking import scores

    found = scores.score(two_posteriors[0])
    assert scores.failure(two_posteriors[0], found) is None
    nothing = found._replace(elpd=np.append(found.elpd[1:], -np.inf))
    assert scores.failure(two_posteriors[0], nothing) == "1 leave-one-out densities are not finite"
    for above, objects in ((0, False), (1, False), (2, True)):
        shapes = np.where(np.arange(12) < above, found.limit + 0.1, 0.0)
        assert bool(text := scores.unreliability(found._replace(pareto_k=shapes))) == objects
    assert "unreliable at 2 of 12 observations" in str(text)


def test_priors_are_those_of_the_kernels_that_have_them(plane_data):
    priors = {"sigma_n": sl.LogNormal(-5, 1), "rq_alpha": sl.LogNormal(1, 1)}
    first, second = sl.StackedGaussianProcess(plane_data[0], ["matern", "RQ"], priors=priors).parts
    assert first.priors["sigma_n"] == second.priors["sigma_n"] == priors["sigma_n"]
    assert second.priors["rq_alpha"] == priors["rq_alpha"] and "rq_alpha" not in first.priors
    with pytest.raises(DataError, match="no kernel of the stack has a hyperparameter 'sigma_m'; did you mean"):
        sl.StackedGaussianProcess(plane_data[0], ["matern"], priors={"sigma_m": sl.LogNormal(0, 1)})


def test_illegal_arguments(plane_data):
    encoder, configs, y = plane_data
    with pytest.raises(DataError, match="one kernel, got stack"):
        sl.GaussianProcess(encoder, sl.stack(["matern"]))
    gp = sl.StackedGaussianProcess(encoder, ["matern"])
    with pytest.raises(DataError, match="options= replaces the single fit options; remove draws"):
        gp.fit(configs, y, options=FitOptions(), draws=10)
    with pytest.raises(DataError, match="seed must be an integer"):
        gp.fit(configs, y, seed=-1)
    assert "stack of Matérn" in repr(gp)
