"""Studies that search for kernels as they grow."""

from __future__ import annotations

import json
import pickle
from contextlib import contextmanager
from typing import Any

import numpy as np
import optuna
import pytest
from ConfigSpace import ConfigurationSpace
from optuna.trial import TrialState, create_trial
from testing_kernels import pretrained
from testing_studies import suggestion

import slayr_py as sl
from slayr_py.errors import DataError, InferenceError, StorageError
from slayr_py.inference import GaussianProcess
from slayr_py.processes import this_process
from slayr_py.search import KernelSearch, kernel_search
from slayr_py.space import Encoder, encoder_to_json
from slayr_py.study import StanGPSampler, create_study, minimize, replay
from slayr_py.study.model import kernel_searches
from slayr_py.study.model.kernel_searches import LoopSearch, default_search, due
from slayr_py.study.storage.attributes import FIT_KEY, LOCK_KEY, SEARCH_KEY, SEARCHING_KEY, model_difference
from slayr_py.study.storage.integrity import check_integrity
from slayr_py.study.storage.search_records import store_search
from slayr_py.study.storage.trials import observations

PLANE = ConfigurationSpace({"x": (-5.0, 10.0), "y": (0.0, 15.0)})
QUICK: dict[str, Any] = {"base": ["SE", "LIN"], "budget": 4, "max_leaves": 2, "restarts": 1, "single": False, "jobs": 1}
SMALL: dict[str, Any] = {"n_initial": 5, "seed": 3, "method": "map", "chains": 1, "warmup": 50, "draws": 50}


@pytest.fixture(autouse=True)
def early(monkeypatch):
    """Search from 10 observations on, the fewest that a search accepts."""
    monkeypatch.setattr(kernel_searches, "FEWEST", 10)


def objective(config):
    return (config["x"] - 2) ** 2 + abs(config["y"] - 3)


def searching(**options) -> optuna.Study:
    """A study whose searches are quick."""
    return create_study(PLANE, **{"kernel": KernelSearch(PLANE, **QUICK)} | SMALL | options)


def grown(study: optuna.Study, n: int, value=objective) -> optuna.Study:
    """Add evaluated trials until there are n."""
    for number in range(len(study.trials), n):
        x, y = np.random.default_rng(number).uniform([-5, 0], [10, 15])
        params = {"x": float(x), "y": float(y)}
        study.add_trial(
            create_trial(params=params, distributions=study.sampler.strategy.distributions, value=value(params))
        )
    return study


def model(study: optuna.Study) -> GaussianProcess:
    """The model for a suggestion of a new trial, which then fails."""
    trial = study.ask()
    search = study.sampler.strategy.surrogate
    observed = observations(study, PLANE)
    found = search.model(study, study.trials[trial.number], observed, SMALL["seed"])
    study.tell(trial, state=TrialState.FAIL)
    return found


def records(study: optuna.Study) -> dict[int, dict[str, Any]]:
    """The searches of a study by trial, without their times."""
    found = {trial.number: trial.user_attrs.get(SEARCH_KEY) for trial in study.trials}
    return {number: {**one, "seconds": None} for number, one in found.items() if one}


@pytest.fixture
def first_guesses(monkeypatch) -> list[list[str]]:
    """The expressions that each search fits first; the fits are those of the real search."""
    seen: list[list[str]] = []
    run = KernelSearch.run

    def noted(self, *arguments, first=(), **options):
        seen.append(list(first))
        return run(self, *arguments, first=first, **options)

    monkeypatch.setattr(KernelSearch, "run", noted)
    return seen


def test_when_searches_are_due(monkeypatch):
    assert [due(n, 5) for n in (9, 10, 19, 20, 39, 40)] == [None, 10, 10, 20, 20, 40]
    monkeypatch.setattr(kernel_searches, "FEWEST", 30)
    assert [due(n, 5) for n in (10, 39, 40, 80)] == [None, None, 40, 80]
    assert [due(n, 16) for n in (31, 32, 63, 64)] == [None, 32, 32, 64]
    assert due(100, 0) == 64


def test_searches_run_at_the_due_numbers_from_the_last_expressions(first_guesses):
    phases = []
    study = searching(on_progress=lambda phase: phases.append((phase.name, phase.trial)))
    models = [model(grown(study, n)) for n in (9, 12, 13, 23, 24)]
    assert [gp.is_stack for gp in models] == [False, True, True, True, True]
    assert list(records(study)) == [12, 23]
    assert phases == [("searching kernels", 12), ("searching kernels", 23)]
    first, second = records(study).values()
    assert first_guesses == [[], first["expressions"]]
    assert (first["due"], second["due"]) == (10, 20) and first["seed"] != second["seed"]
    # Trial 9 is the one that asked at nine observations.
    assert first["trials"] == [[0, 8], [10, 11]]
    assert (first["fits"], first["score"], first["error"]) == (4, "laplace", None)
    assert len(first["expressions"]) == 3 and first["scores"] == sorted(first["scores"], reverse=True)
    assert json.loads(json.dumps(first, allow_nan=False)) == first
    names = [part.kernel.name for part in models[1].parts]
    assert names == ["matern", "composite", "composite", "composite"]
    assert [part.kernel.expression for part in models[2].parts[1:]] == first["expressions"]
    assert [part.kernel.expression for part in models[4].parts[1:]] == second["expressions"]


def test_another_process_uses_the_stored_expressions(first_guesses):
    study = grown(searching(), 12)
    one = model(study)
    study.sampler = pickle.loads(pickle.dumps(StanGPSampler(PLANE, kernel=KernelSearch(PLANE, **QUICK), **SMALL)))
    study.sampler.strategy.bind(study)
    assert model(study).kernel.options() == one.kernel.options() and len(first_guesses) == 1
    latest = study.sampler.strategy.surrogate.latest(study, observations(study, PLANE))
    assert latest.kernel.options() == one.kernel.options()


def test_a_resumed_trial_uses_its_own_search(first_guesses):
    study = grown(searching(), 12)
    number = study.ask().number
    arguments = study, study.trials[number], observations(study, PLANE), 3
    one = study.sampler.strategy.surrogate.model(*arguments)
    two = study.sampler.strategy.surrogate.model(*arguments)
    assert one.kernel.options() == two.kernel.options() and len(first_guesses) == 1


def test_the_search_of_another_process_is_read_if_it_is_stored_before_the_lock_is_taken(monkeypatch, first_guesses):
    study = grown(searching(), 12)
    other = study.ask().number

    @contextmanager
    def waited(_):
        store_search(study, study.trials[other], {"due": 10, "expressions": ["LIN"]})
        yield

    monkeypatch.setattr(kernel_searches, "search_lock", waited)
    assert [part.kernel.name for part in model(study).parts] == ["matern", "composite"] and not first_guesses


def test_other_processes_go_on_while_one_searches(monkeypatch, tmp_path):
    """The search lock is free meanwhile; a search of a killed process does not count."""
    study = grown(searching(storage=f"sqlite:///{tmp_path / 's.db'}"), 12)
    found = []
    run = KernelSearch.run

    def interrupted(self, *arguments, **options):
        monkeypatch.setattr(KernelSearch, "run", run)
        found.append(model(study).is_stack)
        found.append(study._storage.get_study_system_attrs(study._study_id)[LOCK_KEY])
        return run(self, *arguments, **options)

    monkeypatch.setattr(KernelSearch, "run", interrupted)
    assert model(study).is_stack and found == [False, []]
    assert list(records(study)) == [12]
    killed = grown(searching(), 12)
    trial = killed.ask()
    trial.set_user_attr(SEARCHING_KEY, {"due": 10, "process": f"{this_process()._replace(started=1)} a"})
    assert model(killed).is_stack and list(records(killed)) == [13]


def test_searches_are_reproducible_and_follow_the_seed_of_the_study(monkeypatch):
    study = grown(searching(), 12)
    model(study)
    again = grown(searching(), 12)
    model(again)
    assert records(again) == records(study)
    seeds = []
    monkeypatch.setattr(KernelSearch, "run", lambda self, *_, **__: seeds.append(self.seed) or _fail())
    with pytest.warns(UserWarning, match="kernel search"):
        for kernel, seed in ((KernelSearch(PLANE, **QUICK), 3), (KernelSearch(PLANE, **QUICK, seed=2), 3)):
            other = grown(searching(kernel=kernel), 12)
            number = other.ask().number
            other.sampler.strategy.surrogate.model(other, other.trials[number], observations(other, PLANE), seed)
    assert seeds[0] == records(study)[12]["seed"] and seeds[1] != seeds[0]


def _fail():
    raise InferenceError("no luck")


@pytest.mark.parametrize("error", [InferenceError("no luck"), DataError("no luck")])
def test_a_search_that_fails_leaves_the_model_as_it_was(monkeypatch, error, recwarn):
    study = grown(searching(), 12)
    before = model(study)

    def fail(*_, **__):
        raise error

    monkeypatch.setattr(KernelSearch, "run", fail)
    with pytest.warns(UserWarning, match="kernel search at 21 observations failed.*no luck"):
        after = model(grown(study, 22))
    assert after.kernel.options() == before.kernel.options()
    record = records(study)[22]
    assert record["error"] == "no luck" and record["due"] == 20 and record["fits"] == 0
    recwarn.clear()
    assert model(study).kernel.options() == before.kernel.options()
    assert not recwarn.list and len(records(study)) == 2


def test_a_search_warns_of_known_errors_that_it_ignores():
    study = grown(searching(), 9)
    params = study.trials[0].params
    distributions = study.sampler.strategy.distributions
    study.add_trial(create_trial(params=params, distributions=distributions, value=3.0, user_attrs={"y_sd": 0.5}))
    with pytest.warns(UserWarning, match=r"the kernel search ignores the known errors of the values \(y_sd\)"):
        model(study)


def test_equal_values_have_no_structure():
    study = grown(searching(), 12, value=lambda _: 1.0)
    assert isinstance(model(study), GaussianProcess)
    record = records(study)[12]
    assert record["expressions"] == [] and "every kernel explains them equally well" in record["messages"][0]


def test_an_interrupted_search_is_not_stored(monkeypatch):
    fits = kernel_search.fits_of
    calls = []

    def interrupted(settings, processes, jobs):
        calls.append(jobs)
        if len(calls) > 1:
            raise KeyboardInterrupt
        return fits(settings, processes, jobs)

    study = grown(searching(), 12)
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(kernel_search, "fits_of", interrupted)
        model(study)
    assert not records(study)
    assert model(study).is_stack


def test_the_targets_of_a_search():
    values = {direction: searching(direction=direction) for direction in ("minimize", "maximize")}
    low, high = (
        study.sampler.strategy.surrogate.targets(
            observations(grown(study, 12, value=lambda c, s=sign: s * objective(c)), PLANE)
        )
        for sign, study in zip((1, -1), values.values(), strict=True)
    )
    np.testing.assert_array_equal(low, high)
    plain = searching(warp="none")
    standard = plain.sampler.strategy.surrogate.targets(observations(grown(plain, 12), PLANE))
    assert abs(standard.mean()) < 1e-12
    a = np.exp(-1.0)  # the median of LogNormal(-1, 1)
    np.testing.assert_allclose(low[standard > 0], np.log1p(a * standard[standard > 0]) / a)


def test_the_kernel_of_the_space_is_not_in_the_stack_twice():
    base = {**QUICK, "base": ["MAT52", "SE"]}
    study = grown(searching(kernel=KernelSearch(PLANE, **base)), 12)
    found = model(study)
    assert "MAT52" not in records(study)[12]["expressions"] and len(found.parts) == 4
    assert found.parts[0].kernel.name == "matern"


def test_priors_of_targets_hold_for_expressions():
    priors = {"sigma_f": sl.LogNormal(0.5, 0.2), "lengthscale": sl.LogNormal(1.0, 0.3)}
    found = model(grown(searching(priors=priors), 12))
    assert [part.priors["sigma_f"] for part in found.parts] == [priors["sigma_f"]] * 4
    assert [part.priors["sigma_n"] for part in found.parts] == [sl.LogNormal(-4.0, 0.5)] * 4
    assert found.parts[0].priors["lengthscale"] == priors["lengthscale"] != found.parts[1].priors["lengthscale"]


def test_priors_of_the_search_hold_for_expressions():
    priors = {"sigma_n": sl.LogNormal(-2.0, 0.3)}
    kernel = KernelSearch(PLANE, **QUICK, priors=priors)
    found = model(grown(searching(kernel=kernel, priors={"sigma_n": sl.LogNormal(-5.0, 0.3)}), 12))
    assert [part.priors["sigma_n"] for part in found.parts[1:]] == [priors["sigma_n"]] * 3
    assert found.parts[0].priors["sigma_n"] == sl.LogNormal(-5.0, 0.3)


def test_another_given_kernel_is_another_model():
    def record(**given):
        sampler = StanGPSampler(PLANE, kernel=KernelSearch(PLANE, **QUICK, given=given))
        return sampler.strategy.kernel_record

    one, two, absent = record(PRE=pretrained(PLANE, 1, None)), record(PRE=pretrained(PLANE, 2, None)), record()
    stored = {"kernel": one, "graphs": encoder_to_json(Encoder(PLANE))["graphs"]}
    assert model_difference(stored, one, Encoder(PLANE)) is None
    for other in (two, absent):
        assert model_difference(stored, other, Encoder(PLANE)) == "the study was started with other given kernels"
    plain = {**stored, "kernel": absent}
    assert model_difference(plain, one, Encoder(PLANE)) == "the study was started with other given kernels"
    assert model_difference(plain, absent, Encoder(PLANE)) is None


def test_default_settings():
    search = default_search(Encoder(PLANE))
    assert search.base == ("SE", "LIN", "MAT52", "RQ") and (search.budget, search.max_leaves) == (20, 4)
    assert (search.score, search.restarts, search.jobs, search.single) == ("laplace", 3, 1, False)
    assert default_search(Encoder(PLANE), budget=24).single and not default_search(Encoder(PLANE), budget=23).single
    assert default_search(Encoder(PLANE), single=True).single
    sampler = StanGPSampler(PLANE, kernel="search")
    assert (
        isinstance(sampler.strategy.surrogate, LoopSearch)
        and sampler.strategy.surrogate.kernel.asdict() == search.asdict()
    )
    assert (
        StanGPSampler(ConfigurationSpace({"c": ["a", "b"]}), kernel="search").strategy.surrogate.plain.kernel.name
        == "fm"
    )


def test_a_search_of_another_space_or_without_a_space_is_refused():
    line = ConfigurationSpace({"x": (-5.0, 10.0)})
    with pytest.raises(DataError, match="made for another space: the search's space has no y"):
        StanGPSampler(PLANE, kernel=KernelSearch(line))
    reordered = ConfigurationSpace({"y": (0.0, 15.0), "x": (-5.0, 10.0)})
    sampler = StanGPSampler(PLANE, kernel=KernelSearch(reordered, **QUICK))
    assert sampler.strategy.surrogate.search.encoder is sampler.strategy.encoder
    for kernel in ("search", KernelSearch(line)):
        with pytest.raises(DataError, match="a kernel search needs a declared space"):
            StanGPSampler(kernel=kernel)


def test_damaged_records(monkeypatch):
    study = grown(searching(), 12)
    model(study)
    trials = study.get_trials(deepcopy=False)
    monkeypatch.setattr(study, "get_trials", lambda **_: trials)
    observed = observations(study, PLANE)
    for damaged in ("x", {"due": "10", "expressions": []}, {"due": 10, "expressions": [1]}):
        monkeypatch.setitem(trials[12].user_attrs, SEARCH_KEY, damaged)
        with pytest.raises(StorageError, match="trial 12 has the kernel search"):
            check_integrity(study)
    monkeypatch.setitem(trials[12].user_attrs, SEARCH_KEY, {"due": 10, "expressions": ["SE[z]"]})
    with pytest.raises(StorageError, match="expressions of the kernel search in trial 12 cannot be used: .*'z'"):
        study.sampler.strategy.surrogate.latest(study, observed)


@pytest.fixture(scope="module")
def url(tmp_path_factory) -> str:
    """A study of twelve trials, the last two of which have a stack, stopped after nine and eleven."""
    url = f"sqlite:///{tmp_path_factory.mktemp('search') / 'study.db'}"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(kernel_searches, "FEWEST", 10)
        for budget in (9, 11, 12):
            run(budget, storage=url, study_name="s")
    return url


def run(budget: int, **options):
    kernel = KernelSearch(PLANE, **QUICK)
    return minimize(objective, PLANE, budget, kernel=kernel, progress=False, **SMALL, **options)


@pytest.fixture
def study(url) -> optuna.Study:
    return optuna.load_study(study_name="s", storage=url)


@pytest.mark.stan
def test_a_resumed_study_proposes_the_same(study):
    whole = run(12).study
    assert [trial.params for trial in whole.trials] == [trial.params for trial in study.trials]
    assert records(whole) == records(study) and list(records(study)) == [10]
    for number in (10, 11):
        stacks = [suggestion(one.trials[number])["stack"] for one in (whole, study)]
        assert stacks[0] == stacks[1]
        assert [part["kernel"] for part in stacks[0]["parts"]][1:] == records(study)[10]["expressions"]
    assert suggestion(study.trials[9])["kernel"] == "matern"


@pytest.mark.stan
def test_results_and_the_command_line_show_what_was_found(study, url, slayr):
    result = sl.study.Result(study, PLANE)
    parts = suggestion(study.trials[11])["stack"]["parts"]
    best = max(parts, key=lambda part: part["weight"])
    assert f"found=[{best['weight']:.2f} {best['kernel']}" in repr(result)
    assert f"{best['weight']:.2f} {best['kernel']}" in result._repr_html_()
    (row,) = result.searches.to_dict("records")
    assert row["expressions"] == ", ".join(records(study)[10]["expressions"]) and row["fits"] == 4
    assert result.recommended.number in range(12)
    code, shown, _ = slayr("inspect", url)
    shown = " ".join(shown.split())
    assert code == 0 and f"found: {best['weight']:.2f} {best['kernel']}" in shown
    assert f"trial 10, due at 10 observations, 4 fits: {row['expressions']}" in shown
    code, shown, _ = slayr("replay", url, "--trial", "11")
    assert code == 0 and shown.count("identical, bit for bit") == 4


@pytest.mark.stan
def test_fits_are_recorded_part_by_part(study):
    assert all(again.identical for again in replay(study, 10))
    assert FIT_KEY + ":success" not in study.trials[11].user_attrs
    sampler = StanGPSampler(PLANE, kernel=KernelSearch(PLANE, **QUICK), **SMALL)
    study.sampler = sampler
    posterior = sampler.fit(study)
    assert len(posterior.posteriors) == 4 and len(posterior.train) == 12


@pytest.mark.stan
def test_mixed_spaces_and_constraints(mixed):
    kernel = default_search(Encoder(mixed), budget=4, restarts=1, max_leaves=2)
    study = create_study(mixed, kernel=kernel, **SMALL)
    for _ in range(12):
        trial = sl.study.ask(study)
        value = {"rbf": 1.0, "poly": 2.0, "linear": 0.5}[trial.params["kernel"]] + trial.params["rate"]
        trial.set_constraint("size", value - 2)
        study.tell(trial, value)
    (number,) = records(study)
    assert number == 10
    record = suggestion(study.trials[11])
    parts = record["stack"]["parts"]
    assert "ierarchical" in parts[0]["kernel"]
    assert study.trials[11].user_attrs[f"{FIT_KEY}:constraint size"]["kernel"]["name"] == "hierarchical"
