from __future__ import annotations

import json
from types import SimpleNamespace

import numpy as np
import optuna
import pytest
from ConfigSpace import ConfigurationSpace
from optuna.trial import TrialState
from testing_studies import NUTS, advance, bowl, suggestion

import slayr_py as sl
from slayr_py.acquisition import ExpectedImprovement, Suggestion, criterion_values, suggest
from slayr_py.errors import DataError, InferenceError
from slayr_py.space import Encoder
from slayr_py.study import ask, config_of, create_study, fit_notes, posterior_of, space_to_distributions, tell
from slayr_py.study.model import proposal, proposer
from slayr_py.study.storage.attributes import LOCK_KEY, SUGGESTION_KEY, store_treatment_of_failures
from slayr_py.study.storage.distributions import to_params
from slayr_py.study.storage.trials import observations

FAILED = TrialState.FAIL


def test_record_of_a_model_suggestion(plane, quick):
    study = create_study(plane, n_initial=3, seed=5, acquisition="lcb", **{**quick, "method": "nuts", "chains": 2})
    for _ in range(3):
        trial = ask(study)
        study.tell(trial, bowl(config_of(trial)))
    study.tell(ask(study), 1.0)
    record = suggestion(study.trials[3])
    assert json.loads(json.dumps(record, allow_nan=False)) == record
    assert record["phase"] == "model" and record["kernel"] == "matern" and record["method"] == "nuts"
    assert record["config"] == study.trials[3].params and record["observations"] == 3
    assert {"rhat_max", "ess_bulk_min", "divergences", "ok"} <= record["diagnostics"].keys()
    assert record["acquisition"]["name"] == "lcb" and np.isfinite(record["acquisition"]["value"])
    assert record["predicted"]["sd"] > 0 and record["seconds"]["fit"] > 0


@pytest.mark.parametrize("direction", ["minimize", "maximize"])
def test_an_improvement_below_the_tolerance_is_sought_further_away(direction, plane, quick):
    """The value to improve on moves by the tolerance if less is expected, and not otherwise."""
    sign = 1.0 if direction == "minimize" else -1.0
    records = []
    for tolerance in (None, 1e-9, 5.0):
        study = create_study(plane, direction=direction, n_initial=4, seed=2, tolerance=tolerance, **quick)
        for _ in range(5):
            trial = ask(study)
            study.tell(trial, sign * bowl(config_of(trial)))
        record = suggestion(study.trials[-1])
        records.append((record["config"], record["acquisition"]))
    plain, small, large = records
    assert small == plain and "beyond" not in plain[1]
    assert large[1]["beyond"] == large[1]["best"] - sign * 5.0
    assert large[0] != plain[0] and large[1]["value"] < plain[1]["value"]


@pytest.mark.parametrize(
    ("options", "known"),
    [({"noisy": True}, "best"), ({"tolerance": 5.0}, "beyond"), ({"noisy": True, "tolerance": 5.0}, "beyond")],
)
def test_a_record_has_the_best_value_with_which_the_criterion_is_that_of_the_search(options, known, plane, quick):
    study = create_study(plane, n_initial=4, seed=2, **options, **quick)
    for _ in range(6):
        trial = ask(study)
        study.tell(trial, bowl(config_of(trial)))
    used = suggestion(study.trials[-1])["acquisition"]
    posterior = posterior_of(study, 5)
    assert known in used
    assert ("recommended" in used) == ("noisy" in options)
    values = criterion_values(
        posterior,
        [study.trials[-1].params],
        used["name"],
        best=used.get("beyond", used["best"]),
        recommended=used.get("recommended", ()),
    )
    assert values == pytest.approx([used["value"]], rel=1e-6)


def test_a_lucky_value_of_a_noisy_objective_is_checked(quick):
    """Nothing else tells whether the recommended level is as good as its only value."""
    space = ConfigurationSpace({"level": ["worst", "good", "fair"]})
    design = [{"level": level} for level in ("worst", "good", "fair", "good", "fair", "good", "fair")]
    study = create_study(space, noisy=True, seed=2, initial_configs=design, **quick)
    values = {"worst": [-1.6], "good": [0.6, -0.5, 0.1], "fair": [0.1, 1.2, 0.7]}
    for config in design:
        study.tell(ask(study), values[config["level"]].pop(0))
    trial = ask(study)
    used = suggestion(study.trials[-1])
    assert used["acquisition"]["recommended"] == [{"level": "worst"}, {"level": "good"}]
    assert trial.params == {"level": "worst"} and "note" not in used


def test_levels_that_are_known_well_are_evaluated_where_a_mistake_is_likeliest(quick):
    """Improvements are tiny then; a search that explored would evaluate the worst levels too."""
    space = ConfigurationSpace({"level": ["good", "fair", "bad", "worse"]})
    means = {"good": 0.0, "fair": 0.3, "bad": 4.0, "worse": 8.0}
    design = [{"level": level} for level in means] * 4
    study = create_study(space, noisy=True, seed=2, initial_configs=design, priors={"sigma_n": 0.05}, **quick)
    for i in range(len(design)):
        trial = ask(study)
        study.tell(trial, means[trial.params["level"]] + 0.1 * (-1) ** (i // 4))
    suggested = set()
    for _ in range(4):
        trial = ask(study)
        record = suggestion(study.trials[-1])
        assert record["acquisition"]["value"] < 1e-8 and "note" not in record
        suggested.add(trial.params["level"])
        study.tell(trial, means[trial.params["level"]])
    assert suggested <= {"good", "fair"}


@pytest.mark.stan
@pytest.mark.parametrize("several", [False, True])
def test_a_noisy_batch_repeats_good_levels_rather_than_evaluate_the_worst_ones(several):
    means = {"good": 0.0, "fair": 0.1, "bad": 9.0, "worse": 12.0}
    design = [{"level": level} for level in means] * 3
    goals = {"directions": ["minimize", "minimize"]} if several else {}
    study = create_study({"level": list(means)}, noisy=True, seed=2, method="map", initial_configs=design, **goals)
    rng = np.random.default_rng(3)
    for config in design:
        values = means[config["level"]] + 0.5 * rng.normal(size=2)
        tell(study, ask(study), list(values) if several else values[0])
    assert {trial.params["level"] for trial in sl.study.ask_batch(study, 4)} <= {"good", "fair"}


@pytest.mark.filterwarnings("error::RuntimeWarning")
@pytest.mark.parametrize("warp", ["none", "log", "best"])
def test_a_tolerance_far_beyond_the_values_leaves_a_finite_criterion(warp, plane, quick):
    """As of values in other units: the search explores."""
    study = create_study(plane, n_initial=4, seed=2, tolerance=1e9, warp=warp, **quick)
    for _ in range(6):
        trial = ask(study)
        study.tell(trial, bowl(config_of(trial)))
    record = suggestion(study.trials[-1])["acquisition"]
    assert record["beyond"] == record["best"] - 1e9
    assert np.isfinite(record["value"])


def test_an_optimum_inside_the_ranges_is_a_belief_and_not_a_limit(plane, quick):
    """A linear objective has its minimum in a corner, which the study finds nevertheless, in more evaluations."""
    corner = {name: plane[name].upper for name in plane}
    found = {}
    for interior, budget in ((False, 10), (True, 25)):
        study = create_study(plane, n_initial=4, seed=3, interior=interior, **quick)
        for _ in range(budget):
            trial = ask(study)
            study.tell(trial, -sum(config_of(trial).values()))
        logs = [suggestion(trial)["acquisition"].get("interior") for trial in study.trials[4:]]
        assert any(logs) == interior and all(log is None or log < 0 for log in logs)
        assert study.best_params == corner
        found[interior] = study.best_trial.number
    assert found[False] < found[True]


def test_an_optimum_inside_the_ranges_of_several_objectives_has_to_be_asked_for(plane, quick):
    logs = {}
    for interior in (None, True):
        study = create_study(plane, directions=["minimize"] * 2, n_initial=4, seed=3, interior=interior, **quick)
        for _ in range(8):
            trial = ask(study)
            x, y = config_of(trial).values()
            study.tell(trial, [(x - 1.0) ** 2 + (y + 1.0) ** 2, (x - 1.5) ** 2 + y])
        logs[interior] = [suggestion(trial)["acquisition"].get("interior", 0.0) for trial in study.trials[4:]]
    assert not any(logs[None])
    assert min(logs[True]) < 0 and max(logs[True]) <= 0


def test_an_optimum_inside_the_ranges_needs_one_improvement_and_no_other_belief(plane):
    with pytest.raises(DataError, match="acquisition 'lcb' is not supported with interior=True.*use acquisition='ei'"):
        create_study(plane, acquisition="lcb", interior=True)
    with pytest.raises(DataError, match="interior=True and prior= are both beliefs .*leave one of them out"):
        create_study(plane, interior=True, prior={next(iter(plane)): sl.Normal(0.0, 0.1)})
    with pytest.raises(DataError, match="interior must be True or False, got 1"):
        create_study(plane, interior=1)


def test_a_tolerance_needs_an_expected_improvement(plane):
    with pytest.raises(DataError, match="acquisition 'lcb' is not supported with tolerance=.*use acquisition='ei'"):
        create_study(plane, acquisition="lcb", tolerance=0.1)
    with pytest.raises(DataError, match="tolerance must be positive and finite, got 0"):
        create_study(plane, tolerance=0)
    with pytest.raises(DataError, match="tolerance is not supported with several objectives; leave it out"):
        create_study(plane, directions=["minimize", "minimize"], tolerance=0.1)


def test_only_complete_finite_trials_are_fitted_and_all_running_ones_are_pending(plane, monkeypatch, quick):
    study = create_study(plane, n_initial=5, seed=2, **quick)
    trials = [ask(study) for _ in range(5)]
    study.tell(trials[0], 1.0)
    study.tell(trials[1], state=TrialState.FAIL)
    study.tell(trials[2], state=TrialState.PRUNED)
    study.tell(trials[3], float("inf"))
    seen = {}

    def spy(post, acquisition, **options):
        seen.update(options, n=len(post.train))
        raise InferenceError("enough")

    monkeypatch.setattr("slayr_py.study.model.proposal.suggest", spy)
    with pytest.warns(RuntimeWarning, match="enough"):
        ask(study)
    assert seen["n"] == 1 and seen["best"] == 1.0 and seen["t"] == 1
    assert [to_params(config) for config in seen["pending"]] == [config_of(trials[4])]
    assert len(seen["exclude"]) == 4


@pytest.mark.parametrize("declared", [True, False], ids=["noisy", "known errors"])
def test_noisy_values_are_improved_on_from_the_best_mean_and_only_failures_excluded(
    plane, monkeypatch, quick, declared
):
    study = create_study(plane, direction="maximize", n_initial=3, seed=2, noisy=declared, **quick)
    for value in (1.0, 3.0, None):
        trial = ask(study)
        if value is None:
            study.tell(trial, None, TrialState.FAIL)
        else:
            tell(study, trial, value, sd=None if declared else 1.0)
    seen = {}

    def spy(post, acquisition, **options):
        seen.update(options, best_mean=post.predict(post.train).centre_and_spread()[0].max())
        return suggest(post, acquisition, **options)

    monkeypatch.setattr("slayr_py.study.model.proposal.suggest", spy)
    ask(study)
    assert seen["best"] == seen["best_mean"] < 3.0  # the means are shrunk together
    assert [to_params(config) for config in seen["exclude"]] == [study.trials[2].params]
    assert suggestion(study.trials[3])["acquisition"]["best"] == seen["best"]


def test_the_third_improbable_suggestion_in_a_row_has_to_be_probably_feasible(plane, monkeypatch, quick, tmp_path):
    asked = []

    def spy(post, acquisition, *, least_feasible, **options):
        asked.append(least_feasible)
        found = suggest(post, acquisition, **options)
        if least_feasible:
            return found._replace(feasible=0.5, note="not at the maximum")
        return found._replace(feasible=0.1)

    monkeypatch.setattr("slayr_py.study.model.proposal.suggest", spy)
    for _ in range(2):  # the second half of the study is another session
        options = {"storage": f"sqlite:///{tmp_path / 's.db'}", "study_name": "s", "n_initial": 3, "seed": 2} | quick
        study = create_study(plane, **options)
        for _ in range(4):
            trial = ask(study)
            study.tell(trial, bowl(config_of(trial)) if trial.number else None, None if trial.number else FAILED)
    assert asked == [0.0, 0.0, 0.3, 0.0, 0.0]
    assert ["note" in suggestion(trial) for trial in study.trials[3:]] == [False, False, True, False, False]
    assert fit_notes(suggestion(study.trials[5]))[-1] == "not at the maximum"


def test_entries_of_other_programs_that_are_no_probabilities_count_as_feasible(plane, quick):
    study = create_study(plane, n_initial=3, seed=2, **quick)
    for x, feasible in ((1.0, 0.1), (2.0, "low"), (3.0, [0.1])):
        params = {"x": x, "y": 2.0}
        record = {"phase": "model", "config": params, "feasible": feasible}
        given = {"params": params, "distributions": space_to_distributions(plane)}
        study.add_trial(optuna.trial.create_trial(value=x, user_attrs={SUGGESTION_KEY: record}, **given))
    ask(study)
    assert suggestion(study.trials[-1])["phase"] == "model"


@pytest.mark.stan
@pytest.mark.usefixtures("any_monte_carlo_error")
def test_more_draws_if_the_monte_carlo_error_is_large(plane, monkeypatch):
    monkeypatch.setattr(proposal, "LARGEST_ERROR", 1e-6)
    study = advance(create_study(plane, **NUTS), 5)
    record = study.trials[-1].user_attrs[SUGGESTION_KEY]["fit"]
    assert record["start"] == "warm" and record["draws"] >= 80
    assert "Monte Carlo error" in record["abandoned"][-1]["why"][0] and record["abandoned"][-1]["start"] == "cold"
    # Without a required effective sample size the number of draws is fixed.
    study = advance(create_study(plane, **NUTS | {"ess": None}), 5)
    record = study.trials[-1].user_attrs[SUGGESTION_KEY]["fit"]
    assert record["start"] == "cold" and record["draws"] == 80


@pytest.mark.stan
@pytest.mark.usefixtures("any_monte_carlo_error")
def test_no_second_fit_if_the_acquisition_is_negligible(plane, monkeypatch):
    monkeypatch.setattr(proposal, "LARGEST_ERROR", 1e-6)
    monkeypatch.setattr(ExpectedImprovement, "negligible", np.inf)
    study = advance(create_study(plane, **NUTS), 5)
    record = study.trials[-1].user_attrs[SUGGESTION_KEY]["fit"]
    assert record["start"] == "cold" and not any("Monte Carlo" in str(each["why"]) for each in record["abandoned"])


@pytest.mark.parametrize(("scale", "extended"), [(1.0, 0), (1e-6, 1)])
def test_an_acquisition_is_negligible_in_units_of_the_warp(scale, extended):
    reasons = []
    fit = SimpleNamespace(extended=lambda draws, why: reasons.append(why))
    options = SimpleNamespace(criterion=ExpectedImprovement(), fit=SimpleNamespace(draws=100))
    loop = SimpleNamespace(options=options, session=SimpleNamespace(report=lambda phase: None))
    made = proposal.Proposal(loop, None, SimpleNamespace(number=9), [], set(), [], np.random.SeedSequence(1))
    suggested = Suggestion(None, 1e-7, ((0.0, 1.0),), error=0.5, scale=scale)
    assert made.fit_more_draws(proposer.FittedModels((fit,), []), suggested) is None
    assert len(reasons) == extended


@pytest.mark.stan
@pytest.mark.usefixtures("any_monte_carlo_error")
def test_the_mode_is_fitted_above_the_nuts_limit_with_a_warning(plane, monkeypatch):
    monkeypatch.setattr(proposer, "NUTS_LIMIT", 5)
    study = advance(create_study(plane, **NUTS), 6)
    with pytest.warns(UserWarning, match="6 observations are more than the 5") as warned:
        advance(study, 2)
    assert len(warned) == 1
    assert [t.user_attrs[SUGGESTION_KEY].get("method") for t in study.trials[4:]] == ["nuts", "nuts", "map", "map"]


def test_processes_search_side_by_side_and_again_if_another_one_has_chosen_meanwhile(
    plane, quick, tmp_path, monkeypatch
):
    url = f"sqlite:///{tmp_path / 'study.db'}"
    study = create_study(plane, n_initial=3, seed=5, storage=url, study_name="s", **quick)
    advance(study, 3)
    searches = []

    def spy(posterior, acquisition, **options):
        holders = study._storage.get_study_system_attrs(study._study_id).get(LOCK_KEY, [])
        searches.append((len(holders), [to_params(config) for config in options["pending"]]))
        found = suggest(posterior, acquisition, **options)
        if len(searches) == 1:  # another process stores the same suggestion
            config = to_params(posterior.encoder.configuration(found.config))
            other = optuna.load_study(study_name="s", storage=url).ask()
            other.set_user_attr(SUGGESTION_KEY, {"phase": "model", "config": config})
        return found

    monkeypatch.setattr("slayr_py.study.model.proposal.suggest", spy)
    first = ask(study).params
    stored = study.trials[4].user_attrs[SUGGESTION_KEY]["config"]
    assert searches == [(0, []), (1, [stored])] and first != stored
    ask(study)
    assert [holders for holders, _ in searches] == [0, 1, 0]


@pytest.mark.parametrize("state", [TrialState.COMPLETE, TrialState.FAIL])
@pytest.mark.parametrize("declared", [True, False], ids=["declared space", "inferred space"])
def test_a_trial_that_ends_during_the_fit_is_pending_because_the_model_has_not_seen_it(
    plane, quick, monkeypatch, declared, state
):
    """Otherwise another process evaluates nearly the same configuration."""
    sampler = sl.study.StanGPSampler(plane if declared else None, n_initial=3, seed=5, **quick)
    study = optuna.create_study(sampler=sampler)
    ranges = space_to_distributions(plane)
    for value in (1.0, 3.0, 2.0):
        study.tell(study.ask(ranges), value)
    running = study.ask(ranges)
    fit, seen = proposal.Proposal.fit, {}

    def fit_while_it_ends(self, gp, seed):
        fitted = fit(self, gp, seed)
        study.tell(running, 0.5 if state == TrialState.COMPLETE else None, state)
        return fitted

    def spy(post, acquisition, **options):
        seen.update(options, n=len(post.train))
        return suggest(post, acquisition, **options)

    monkeypatch.setattr(proposal.Proposal, "fit", fit_while_it_ends)
    monkeypatch.setattr("slayr_py.study.model.proposal.suggest", spy)
    study.ask(ranges)
    assert seen["n"] == 3
    assert [to_params(config) for config in seen["pending"]] == [running.params]


@pytest.mark.stan
@pytest.mark.filterwarnings("ignore:trial 5 repeats:UserWarning")
@pytest.mark.parametrize(("failures", "n"), [("ignore", 4), ("learn", 0)])
def test_the_only_configuration_that_failed_during_the_fit_is_repeated_if_failures_are_ignored(
    monkeypatch, failures, n
):
    """Otherwise the best one of the evaluated configurations is."""
    start = [{"n": n} for n in range(5)]
    study = create_study({"n": (0, 4)}, initial_configs=start, seed=1, method="map", failures=failures)
    for value in range(4):
        sl.study.tell(study, sl.study.ask(study), float(value))
    running = sl.study.ask(study)
    fit = proposal.Proposal.fit

    def fit_while_it_fails(self, gp, seed):
        fitted = fit(self, gp, seed)
        study.tell(running, state=TrialState.FAIL)
        return fitted

    monkeypatch.setattr(proposal.Proposal, "fit", fit_while_it_fails)
    assert sl.study.ask(study).params == {"n": n}


def test_a_study_leaves_the_plateau_that_it_has_found(quick):
    """Of the nearest rows of a table. If plateaus were not left, most trials up to 15 would have the value 1."""
    rows = np.array([[0.25, 0.25], [0.25, 0.75], [0.75, 0.4], [0.9, 0.95]])
    start = [{"x": x, "y": y} for x, y in ((0.1, 0.3), (0.2, 0.8), (0.6, 0.3), (0.3, 0.2))]
    space = ConfigurationSpace({"x": (0.0, 1.0), "y": (0.0, 1.0)})
    study = create_study(space, n_initial=4, initial_configs=start, seed=2, **quick)

    def nearest(trial):
        point = [trial.suggest_float(name, 0.0, 1.0) for name in ("x", "y")]
        return (1.0, 2.0, 3.0, 0.0)[np.argmin(np.sum((rows - point) ** 2, axis=1))]

    study.optimize(nearest, 10)
    assert study.best_value == 0.0
    notes = [note for trial in study.trials[4:] for note in fit_notes(suggestion(trial))]
    assert any("the probability of a new value is a factor" in note for note in notes)
    values = [trial.value for trial in study.trials]
    last_new = [max(values.index(value) for value in values[:n]) for n in range(4, 10)]
    exponents = [n - last for n, last in zip(range(4, 10), last_new, strict=True)]  # 1 + repetitions in a row
    factors = [suggestion(trial)["acquisition"].get("new", 0.0) for trial in study.trials[4:]]
    assert -5 < min(factor / exponent for factor, exponent in zip(factors, exponents, strict=True)) < 0


def test_far_values_that_differ_are_no_plateau(plane):
    study = create_study(plane, n_initial=6, seed=1)
    for value in (0.1, 0.2, 0.3, 1e24, 2e24, 3e24):
        tell(study, ask(study), value)
    store_treatment_of_failures(study, ignores=True)
    observed = observations(study, plane)
    assert len(set(observed.y)) == 4
    made = proposal.Proposal(None, study, None, [observed], set(), (), None)
    outcomes = made._outcomes(Encoder(plane).encode(observed.configs))
    assert outcomes.rows[:, 0].tolist() == [0.1, 0.2, 0.3, 1e24, 2e24, 3e24]
    assert outcomes.leading.tolist() == [True, *[False] * 5]


def test_evaluations_of_another_context_do_not_end_a_row_of_repetitions(plane):
    study = create_study(plane, n_initial=6, seed=1)
    for context, value in zip([2.0, 3.0] * 3, (0.2, 0.1, 0.3, 0.4, 0.2, 0.5), strict=True):
        tell(study, ask(study, context={"x": context}), value)
    observed = observations(study, plane)
    encoder = Encoder(plane)
    made = proposal.Proposal(None, study, None, [observed], set(), (), None, encoder.fix({"x": 2.0}))
    outcomes = made._outcomes(encoder.encode(observed.configs))
    assert outcomes.leading.tolist() == [True, False, False, False, True, False]
    assert outcomes.compared.tolist() == [True, False] * 3


@pytest.mark.parametrize(
    "options",
    [
        {"direction": "maximize"},
        {"fixed": {"x": 0.1}},
        {"within": ["x + y <= 1"]},
        {"tolerance": 0.1},
        {"acquisition": "lcb"},
        {"constraints": ["m <= 0"]},
        {"cost": "euros"},
        {"failures": "learn"},
        {"directions": {"steps": "minimize", "size": "maximize"}},
    ],
    ids=lambda options: next(iter(options)),
)
def test_plateaus_are_left_with_every_option(plane, quick, options):
    """The initial design has two groups of equal values at neighbouring points."""

    def steps(config):
        value = float(np.floor(5 * config["x"]) + np.floor(2 * config["y"]))
        if "failures" in options:
            return value if config["y"] < 0.95 else None
        if "directions" in options:
            return {"steps": value, "size": -value}
        extra = {"m": config["x"] - 0.5} if "constraints" in options else {"euros": 1 + abs(config["x"])}
        return (value, extra) if {"constraints", "cost"} & options.keys() else value

    start = [{"x": 0.1, "y": y} for y in (0.8, 0.10, 0.82, 0.12, 0.84, 0.14)]
    design = {"n_initial": 6, "initial_configs": start}
    study = sl.minimize(steps, plane, budget=8, seed=1, progress=False, **design, **options, **quick).study
    assert any("a new value is a factor" in note for note in fit_notes(suggestion(study.trials[6])))
    x, y = (study.trials[6].params[name] for name in ("x", "y"))
    assert abs(x - 0.1) > 0.02 or not 0.08 <= y <= 0.16
    assert "interior" not in suggestion(study.trials[6])["acquisition"]
