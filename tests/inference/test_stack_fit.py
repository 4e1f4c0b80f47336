"""Fits of several kernels: refits, kernels that are left out, seeds and options."""

from __future__ import annotations

import numpy as np
import pytest

import slayr_py as sl
from slayr_py.errors import DataError, InferenceError
from slayr_py.inference import FitOptions, stack_fit
from slayr_py.inference.stacking import reasons

QUICK = {"chains": 2, "warmup": 150, "draws": 100}


@pytest.fixture
def accepted(monkeypatch):
    for name in ("failure", "unreliability"):
        monkeypatch.setattr(stack_fit, name, lambda *_: None)


@pytest.fixture
def modes(monkeypatch):
    """Fit modes, and return the arguments of every fit."""
    asked = []
    fit = sl.GaussianProcess.fit

    def spy(self, *arguments, options=None, **rest):
        if self.is_stack:
            return fit(self, *arguments, options=options, **rest)
        asked.append((self.kernel, options, rest["seed"]))
        return fit(self, *arguments, options=options.updated(method="map"), **rest)

    monkeypatch.setattr(sl.GaussianProcess, "fit", spy)
    return asked


@pytest.mark.stan
def test_stacked_posterior_of_a_fit(plane_data, accepted):
    encoder, configs, y = plane_data
    gp = sl.GaussianProcess(encoder, sl.stack(["matern", "SE * LIN"]))
    stack = gp.fit(configs, y, seed=2, options=FitOptions(**QUICK, pointwise=False))
    assert stack.is_stack and stack.messages == ()
    assert len(stack.loo()) == len(y) and stack.weights.sum() == pytest.approx(1)
    # The fit of a kernel does not depend on the others.
    alone = sl.GaussianProcess(encoder, sl.stack(["SE * LIN"])).fit(configs, y, seed=2, **QUICK)
    hashes = [one.posteriors[-1].record["draws_sha256"] for one in (stack, alone)]
    assert hashes[0] == hashes[1]
    assert stack.posteriors[0].record["arguments"]["seed"] != stack.posteriors[1].record["arguments"]["seed"]


@pytest.mark.stan
def test_a_doubtful_fit_is_repeated_once_with_more_draws(plane_data, modes, monkeypatch):
    encoder, configs, y = plane_data
    reasons = iter(["too few draws", None, None])
    monkeypatch.setattr(stack_fit, "failure", lambda *_: next(reasons))
    stack = sl.GaussianProcess(encoder, sl.stack(["SE", "matern"])).fit(configs, y, draws=70, warmup=60)
    assert stack.messages == ("SE: fitted again: too few draws",)
    assert [(options.draws, options.warmup) for _, options, _ in modes] == [(70, 60), (140, 120), (70, 60)]
    assert len({seed for *_, seed in modes}) == 3


@pytest.mark.stan
def test_a_kernel_that_fails_is_left_out_and_named(plane_data, modes, monkeypatch):
    encoder, configs, y = plane_data
    fit = sl.GaussianProcess.fit

    def failing(self, *arguments, **options):
        if not self.is_stack and self.kernel.name == "composite":
            raise InferenceError("no way")
        return fit(self, *arguments, **options)

    monkeypatch.setattr(sl.GaussianProcess, "fit", failing)
    stack = sl.GaussianProcess(encoder, sl.stack(["SE", "matern"])).fit(configs, y)
    assert stack.weights.index.tolist() == ["Matérn kernel (p = 2)"]
    assert stack.messages == ("SE: left out: no way; with 2 times the draws: no way",)
    with pytest.raises(InferenceError, match=r"none of the 1 kernels .* SE: left out: no way.* Use a single kernel"):
        sl.GaussianProcess(encoder, sl.stack(["SE"])).fit(configs, y)


@pytest.mark.stan
def test_kernels_are_used_if_leave_one_out_is_unreliable_under_all(plane_data, modes, monkeypatch):
    """A kernel whose diagnostics fail is left out all the same, and so is a doubtful one beside a reliable one."""
    encoder, configs, y = plane_data
    gp = sl.GaussianProcess(encoder, sl.stack(["SE", "matern"]))
    monkeypatch.setattr(stack_fit, "unreliability", lambda _: "Pareto k")
    stack = gp.fit(configs, y)
    text = "uncertain weight: Pareto k; with 2 times the draws: Pareto k"
    assert stack.messages == (f"SE: {text}", f"Matérn kernel (p = 2): {text}") and len(stack.weights) == 2
    modes.clear()
    monkeypatch.setattr(stack_fit, "failure", lambda *_: "bad" if len(modes) > 2 else None)
    stack = gp.fit(configs, y)
    assert stack.weights.index.tolist() == ["SE"] and "Matérn kernel (p = 2): left out: bad;" in stack.messages[1]
    reliable = iter(["Pareto k", "Pareto k", None])
    monkeypatch.setattr(stack_fit, "failure", lambda *_: None)
    monkeypatch.setattr(stack_fit, "unreliability", lambda _: next(reliable))
    stack = gp.fit(configs, y)
    assert stack.weights.index.tolist() == ["Matérn kernel (p = 2)"] and "SE: left out: Pareto k" in stack.messages[0]


@pytest.mark.stan
def test_influential_observations_make_a_weight_unreliable_if_they_are_many(two_posteriors):
    loo = two_posteriors[0].parts[0].leave_one_out
    assert reasons.failure(two_posteriors[0].check(), loo) is None
    nothing = loo._replace(elpd=np.append(loo.elpd[1:], -np.inf))
    assert reasons.failure(two_posteriors[0].check(), nothing) == "1 leave-one-out densities are not finite"
    for above, objects in ((0, False), (1, False), (2, True)):
        shapes = np.where(np.arange(12) < above, loo.pareto_k_limit + 0.1, 0.0)
        assert bool(text := reasons.unreliability(loo._replace(pareto_k=shapes))) == objects
    assert "unreliable at 2 of 12 observations" in str(text)


def test_priors_are_those_of_the_kernels_that_have_them(plane_data):
    priors = {"sigma_n": sl.LogNormal(-5, 1), "rq_alpha": sl.LogNormal(1, 1)}
    first, second = sl.GaussianProcess(plane_data[0], sl.stack(["matern", "RQ"]), priors=priors).parts
    assert first.priors["sigma_n"] == second.priors["sigma_n"] == priors["sigma_n"]
    assert second.priors["rq_alpha"] == priors["rq_alpha"] and "rq_alpha" not in first.priors
    with pytest.raises(DataError, match="no kernel of the stack has a hyperparameter 'sigma_m'; did you mean"):
        sl.GaussianProcess(plane_data[0], sl.stack(["matern"]), priors={"sigma_m": sl.LogNormal(0, 1)})


def test_illegal_arguments(plane_data):
    encoder, configs, y = plane_data
    for options in ({"likelihood": "probit"}, {"inducing": 4}):
        with pytest.raises(DataError, match="a stack is not supported with .*; use a single kernel"):
            sl.GaussianProcess(encoder, sl.stack(["matern"]), **options)
    gp = sl.GaussianProcess(encoder, sl.stack(["matern"]))
    with pytest.raises(DataError, match="options= replaces the single fit options; remove draws"):
        gp.fit(configs, y, options=FitOptions(), draws=10)
    with pytest.raises(DataError, match="seed must be an integer"):
        gp.fit(configs, y, seed=-1)
    with pytest.raises(DataError, match="a stack has no single warm start"):
        gp.fit(configs, y, start=object())
    with pytest.raises(DataError, match="stack of Matérn kernel .* has no single model; use one of its 1 gp.models"):
        gp.model.summary("")
    assert "stack of Matérn" in repr(gp) and "<table>" in gp._repr_html_()
