"""Fits of the loop: studies whose kernel is a stack."""

from __future__ import annotations

import itertools
import json
import pickle

import numpy as np
import optuna
import pytest
from ConfigSpace import Configuration, ConfigurationSpace
from testing_studies import NUTS, advance, suggestion

import slayr_py as sl
from slayr_py.errors import DataError, InferenceError, StorageError
from slayr_py.inference import FitOptions, GaussianProcess, WarmStart
from slayr_py.study import StanGPSampler, ask, create_study, minimize, posterior_of, replay, suggestion_table
from slayr_py.study.model import loop_fits, proposal
from slayr_py.study.model.fit_cache import FitCache
from slayr_py.study.model.loop_fits import LoopFits, PlannedFit
from slayr_py.study.storage.attributes import FIT_KEY, START_KEY, SUGGESTION_KEY
from slayr_py.study.storage.fit_records import LastStart
from slayr_py.study.storage.trials import Observations

SMALL = {"n_initial": 4, "seed": 3, "chains": 2, "warmup": 100, "draws": 50, "ess": 20, "progress": False}
KERNELS = ["matern", "SE + LIN"]
NAMES = ["Matérn kernel (p = 2)", "SE + LIN"]


def objective(config):
    return (config["x"] - 2) ** 2 + abs(config["y"] - 3)


def configurations(x) -> list[Configuration]:
    space = ConfigurationSpace({"x": (0.0, 1.0)})
    return [Configuration(space, {"x": float(v)}) for v in x]


def exact(x, y) -> Observations:
    """Feasible observations without errors, none of them far, of an objective to minimise."""
    n = len(x)
    feasible = np.ones(n, dtype=bool)
    return Observations(
        list(range(n)), configurations(x), y, False, np.zeros(n), 0.0, feasible, feasible, ~feasible, y, []
    )


def plane() -> ConfigurationSpace:
    return ConfigurationSpace({"x": (-5.0, 10.0), "y": (0.0, 15.0)})


@pytest.fixture(scope="module")
def url(tmp_path_factory) -> str:
    """A study of seven trials with a stack, of which the first four are the design, interrupted once."""
    url = f"sqlite:///{tmp_path_factory.mktemp('stack') / 'study.db'}"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(proposal, "LARGEST_ERROR", np.inf)
        for budget in (5, 7):
            minimize(objective, plane(), budget, kernel=sl.stack(KERNELS), storage=url, study_name="s", **SMALL)
    return url


@pytest.fixture
def study(url) -> optuna.Study:
    return optuna.load_study(study_name="s", storage=url)


@pytest.mark.stan
@pytest.mark.slow
def test_a_resumed_study_proposes_the_same(study, monkeypatch):
    monkeypatch.setattr(proposal, "LARGEST_ERROR", np.inf)
    whole = minimize(objective, plane(), 7, kernel=sl.stack(KERNELS), **SMALL)
    assert [trial.params for trial in whole.study.trials] == [trial.params for trial in study.trials]
    assert "kernel=stack([Matern(p=2), Composite(expression='SE + LIN')])" in repr(whole)


@pytest.mark.stan
def test_every_part_is_recorded(study):
    record = study.trials[6].user_attrs[SUGGESTION_KEY]
    assert json.loads(json.dumps(record, allow_nan=False)) == record
    parts = record["stack"]["parts"]
    assert record["kernel"] == "stack" and [part["kernel"] for part in parts] == NAMES
    assert sum(part["weight"] for part in parts) == pytest.approx(1)
    assert parts[0]["seed"] != parts[1]["seed"] and all(part["diagnostics"]["ok"] for part in parts)
    assert {part["fit"]["start"] for part in parts} <= {"carried", "warm"}
    assert study.user_attrs["slayr:study"]["kernel"]["name"] == "stack"
    attributes = study.trials[6].user_attrs
    assert attributes[FIT_KEY]["trials"] == [[0, 5]] and FIT_KEY + ":success" not in attributes
    for part in attributes[FIT_KEY]["stack"]["parts"]:
        assert f"{FIT_KEY}:{part['fit']}" in attributes and f"{START_KEY}:{part['fit']}" in attributes
    assert suggestion_table(study)["kernel"].tolist()[4:] == ["stack"] * 3


@pytest.mark.stan
def test_fits_are_replayed_part_by_part(study):
    for number in (4, 6):
        assert all(again.identical for again in replay(study, number))
    assert [again.record["kernel"]["name"] for again in replay(study, 4)] == ["matern", "composite"]


@pytest.mark.stan
def test_posterior_of_a_suggestion(study):
    posterior = posterior_of(study, 6)
    record = suggestion(study.trials[6])
    assert posterior.is_stack
    assert posterior.weights.tolist() == [part["weight"] for part in record["stack"]["parts"]]
    centre, _ = posterior.predict([study.trials[6].params]).centre_and_spread()
    assert float(centre[0]) == pytest.approx(record["predicted"]["mean"], rel=1e-6)
    assert list(posterior.messages) == record["stack"]["messages"]


@pytest.mark.stan
def test_the_command_line_shows_and_replays_every_part(study, url, slayr):
    code, shown, _ = slayr("inspect", url)
    assert code == 0 and "kernel: stack of Matérn kernel (p = 2), SE + LIN" in shown
    assert " ".join(shown.split()).count("stack: ") == 3
    code, shown, _ = slayr("replay", url)
    assert code == 0 and shown.count("identical, bit for bit") == 2 and "kernel       SE + LIN" in shown


@pytest.mark.stan
def test_damaged_records_of_a_stack(study, monkeypatch):
    trials = study.get_trials(deepcopy=False)
    monkeypatch.setattr(study, "get_trials", lambda **_: trials)
    attributes = trials[6].user_attrs
    part = attributes[FIT_KEY]["stack"]["parts"][0]["fit"]
    for stack in ({"parts": []}, {"parts": [{"fit": "kernel x", "weight": 1}]}, {"parts": [{"fit": part}]}, "x"):
        monkeypatch.setitem(attributes, FIT_KEY, {"stack": stack, "trials": [[0, 5]]})
        with pytest.raises(StorageError, match="the record of the fit of trial 6"):
            posterior_of(study, 6)


@pytest.fixture
def failing(monkeypatch):
    """Let the fits of kernels with these names fail."""
    names: set[str] = set()
    fit = GaussianProcess.fit

    def fail(self, *arguments, **options):
        if self.kernel.name in names:
            raise InferenceError("no way")
        return fit(self, *arguments, **options)

    monkeypatch.setattr(GaussianProcess, "fit", fail)
    return names


@pytest.mark.stan
def test_a_part_that_fails_is_dropped_with_a_warning(plane, quick, failing):
    failing.add("composite")
    study = advance(create_study(plane, kernel=sl.stack(KERNELS), n_initial=4, seed=3, **quick), 4)
    with pytest.warns(UserWarning, match=r"kernel SE \+ LIN is left out of the stack because its fit failed: no way"):
        advance(study, 1)
    advance(study, 1)  # once
    record = suggestion(study.trials[5])
    assert [part["kernel"] for part in record["stack"]["parts"]] == NAMES[:1] and record["method"] == "map"
    failing.add("matern")
    with pytest.warns(RuntimeWarning, match="a space-filling point is suggested"):
        trial = ask(study)
    assert "no way" in suggestion(study.trials[trial.number])["error"]


@pytest.mark.stan
def test_parts_whose_diagnostics_fail_are_used_only_if_all_do(plane, quick, monkeypatch):
    bad = {"composite"}
    kernels = itertools.cycle(["matern", "composite"])  # each suggestion checks them in this order
    monkeypatch.setattr(loop_fits, "failure", lambda check, loo: "no luck" if next(kernels) in bad else None)
    study = advance(create_study(plane, kernel=sl.stack(KERNELS), n_initial=4, seed=3, **quick), 5)
    stack = suggestion(study.trials[4])["stack"]
    assert [part["kernel"] for part in stack["parts"]] == NAMES[:1]
    assert stack["messages"] == ["left out: SE + LIN: no luck"]
    bad.add("matern")
    advance(study, 1)
    stack = suggestion(study.trials[5])["stack"]
    assert [part["kernel"] for part in stack["parts"]] == NAMES
    assert stack["messages"] == [f"used although all fail: {name}: no luck" for name in NAMES]


@pytest.mark.stan
@pytest.mark.parametrize("options", [{"direction": "maximize", "noisy": True, "acquisition": "lcb"}, {"warp": "none"}])
def test_other_directions_failures_and_batches(plane, quick, options):
    study = create_study(plane, kernel=sl.stack(KERNELS), n_initial=4, seed=3, **quick, **options)
    for number in range(4):
        trial = ask(study)
        failed = number == 1
        study.tell(trial, None if failed else objective(trial.params), optuna.trial.TrialState.FAIL if failed else None)
    batch = study.sampler.ask_batch(study, 2)
    assert batch[0].params != batch[1].params
    record = suggestion(study.trials[4])
    assert "success" in record["conditions"] and 0 < record["feasible"] < 1
    copied = pickle.loads(pickle.dumps(study.sampler)).strategy.surrogate.kernel
    assert copied.options() == study.sampler.strategy.surrogate.kernel.options()


@pytest.mark.stan
def test_weights_of_modes(plane, quick):
    study = advance(create_study(plane, kernel=sl.stack(KERNELS), n_initial=4, seed=3, **quick), 6)
    record = suggestion(study.trials[5])
    assert record["method"] == "map" and record["acquisition"]["error"] is None
    assert "weights from point estimates" in record["diagnostics"]["kernel_notes"][0]
    starts = [value for key, value in study.trials[5].user_attrs.items() if key.startswith(START_KEY)]
    assert len(starts) == 2 and all(start["searched"] == 5 for start in starts)


@pytest.mark.stan
def test_only_parts_with_a_weight_are_continued_if_the_error_is_large(plane, monkeypatch):
    monkeypatch.setattr(proposal, "LARGEST_ERROR", 1e-6)
    monkeypatch.setattr(loop_fits, "failure", lambda *_: None)
    monkeypatch.setattr("slayr_py.inference.mixture.stacking_weights", lambda elpd: np.array([0.0, 1.0]))
    study = advance(create_study(plane, kernel=sl.stack(KERNELS), **NUTS), 5)
    first, second = suggestion(study.trials[4])["stack"]["parts"]
    assert not any("Monte Carlo" in str(one["why"]) for one in first["fit"]["abandoned"])
    assert "Monte Carlo error" in second["fit"]["abandoned"][-1]["why"][0]
    assert second["fit"]["draws"] > first["fit"]["draws"]


def test_models_of_feasibility_have_the_first_kernel_and_options_apply_to_all(plane):
    sampler = StanGPSampler(plane, kernel=sl.stack(["matern", "RQ"]), priors={"rq_alpha": sl.LogNormal(1, 1)})
    assert sampler.strategy.proposer.feasibility.kernel.name == "matern"
    assert [part.priors["sigma_n"] for part in sampler.strategy.surrogate.gp.parts] == [sl.LogNormal(-4.0, 0.5)] * 2
    assert sampler.strategy.surrogate.gp.parts[1].priors["rq_alpha"] == sl.LogNormal(1, 1)
    with pytest.raises(DataError, match="needs a declared space"):
        StanGPSampler(kernel=sl.stack(["matern"]))


@pytest.mark.stan
@pytest.mark.parametrize(("last", "n", "due"), [(14, 15, False), (15, 16, True), (14, 17, True), (16, 17, False)])
def test_chains_from_a_warm_start_are_audited(last, n, due):
    gp = GaussianProcess(ConfigurationSpace({"x": (0.0, 1.0)}))
    x = (np.arange(n) + 0.5) / n
    y = np.sin(6 * x)
    options = FitOptions(method="nuts", chains=2, warmup=100, draws=100, ess=20)
    start = gp.fit(x[:last, None], y[:last], seed=1, options=options).warm_start()
    fits = LoopFits(gp, optuna.create_study(), exact(x, y), FitCache(), lambda *_: None)
    (fit,) = fits.fit_all([PlannedFit(gp, "", options, LastStart(start, last))], np.random.SeedSequence(1))
    assert fit.posterior.record["arguments"]["start"] == ("cold" if due else "warm")
    audits = [entry for entry in fit.abandoned if entry["why"][0].startswith("audit: ")]
    assert [entry["start"] for entry in audits] == (["warm"] if due else [])
    (again,) = fits.fit_all([fit.extend(200, "a test")], np.random.SeedSequence(2))  # of the same data: no other audit
    assert again.posterior.record["arguments"]["start"] == "warm"


@pytest.mark.stan
@pytest.mark.parametrize("cold", ["the fit", "an abandoned attempt"])
def test_no_audit_follows_a_cold_start(cold, monkeypatch):
    space = ConfigurationSpace({"x": (0.0, 1.0)})
    x = (np.arange(16) + 0.5) / 16
    gp = GaussianProcess(space)
    fitted = gp.fit(x[:, None], np.sin(6 * x), seed=1, chains=2, warmup=100, draws=40)
    first = fitted.warm_start()
    fitted.record["arguments"] |= {"method": "carried", "start": "carried"}
    starts = {"the fit": ["carried"], "an abandoned attempt": ["warm", "cold"]}[cold]
    fitted.record["abandoned"] = [{"method": "nuts", "start": start} for start in starts]
    calls = []

    def fit(*arguments, start, **options):
        calls.append(start)
        return fitted

    monkeypatch.setattr(GaussianProcess, "fit", fit)
    fits = LoopFits(gp, optuna.create_study(), exact(x, x), FitCache(), lambda *_: None)
    last = None if cold == "the fit" else LastStart(first, 15)
    fits.fit_all([PlannedFit(gp, "", FitOptions(method="carried"), last)], np.random.SeedSequence(1))
    assert len(calls) == 1


@pytest.mark.stan
def test_a_failed_audit_leaves_the_record_of_the_fit_as_it_was(monkeypatch):
    x = (np.arange(16) + 0.5) / 16
    gp = GaussianProcess(ConfigurationSpace({"x": (0.0, 1.0)}))
    fitted = gp.fit(x[:, None], np.sin(6 * x), seed=1, chains=2, warmup=100, draws=40)
    fitted.record["arguments"]["start"] = "warm"

    def fit(*arguments, start, **options):
        if start is None:
            raise InferenceError("a test")
        return fitted

    monkeypatch.setattr(GaussianProcess, "fit", fit)
    fits = LoopFits(gp, optuna.create_study(), exact(x, x), FitCache(), lambda *_: None)
    plan = PlannedFit(gp, "", FitOptions(method="nuts"), LastStart(fitted.warm_start(), 15))
    (kept,) = fits.fit_all([plan], np.random.SeedSequence(1))
    assert [entry["why"] for entry in kept.abandoned] == [["audit: a test"]]
    assert fitted.record["abandoned"] == []


@pytest.mark.stan
def test_an_audit_finds_a_mode_that_no_carried_draw_has_visited():
    """A sine with alternating errors: noise, or a short length-scale with some 45% of the posterior's mass."""
    x = (np.arange(16) + 0.5) / 16
    y = np.sin(2 * np.pi * x) + 1.2 * np.cos(np.pi * np.arange(16))
    priors = {"sigma_n": sl.LogNormal(-3.0, 1.0), "lengthscale": sl.LogNormal(-1.0, 1.0)}
    gp = GaussianProcess(ConfigurationSpace({"x": (0.0, 1.0)}), priors=priors)
    # Draws near the long length-scales alone.
    draws = np.random.default_rng(1).normal([-0.1, -0.3, 3.1, -1.1], [0.6, 0.8, 0.5, 0.7], (128, 4))
    names = ("z_mu", "z_sigma_f", "z_sigma_n")
    points = {name: draws[:4, i] for i, name in enumerate(names)} | {"z_lengthscale": draws[:4, 3:]}
    start = WarmStart(points, np.full(4, 0.5), np.cov(draws.T), draws)
    options = FitOptions(method="carried", chains=4, warmup=100, draws=50, pointwise=False)
    carried = gp.fit(x[:, None], y, seed=1, start=start, options=options)
    assert carried.check().ok and carried.record["arguments"]["method"] == "carried"
    assert np.mean(carried.draws["lengthscale"] < 0.07) < 0.1
    fits = LoopFits(gp, optuna.create_study(), exact(x, y), FitCache(), lambda *_: None)
    for seed in range(5):
        (audited,) = fits.fit_all([PlannedFit(gp, "", options, LastStart(start, 15))], np.random.SeedSequence(seed))
        arguments = audited.posterior.record["arguments"]
        assert (arguments["method"], arguments["start"]) == ("carried", "cold")
        # At least 100 effective draws: the standard error of the share is at most 0.05.
        assert 0.25 < np.mean(audited.posterior.draws["lengthscale"] < 0.07) < 0.65
        (entry,) = audited.abandoned
        assert entry["why"][0].startswith("audit: ") and entry["then"] == "importance sampling from the prior"
