from __future__ import annotations

import copy
import json
import threading

import networkx as nx
import numpy as np
import optuna
import pytest
from ConfigSpace import ConfigurationSpace
from optuna.trial import TrialState

from slayr_py.acquisition import suggest
from slayr_py.errors import DataError, InferenceError, SpaceError
from slayr_py.kernels import Hierarchical, Matern
from slayr_py.space import Encoder, space_from_json
from slayr_py.study import StanGPSampler, ask, config_of, create_study
from slayr_py.study.distributions import to_params
from slayr_py.study.storage.attributes import STUDY_KEY, SUGGESTION_KEY, describe_kernel, model_difference
from slayr_py.study.storage.trials import pending


def suggestion(trial):
    return trial.user_attrs.get(SUGGESTION_KEY)


def bowl(config):
    return (config["x"] - 2) ** 2 + (config["y"] - 7) ** 2


def test_the_tth_point_of_the_design_belongs_to_trial_t(plane):
    study = create_study(plane, n_initial=6, seed=3)
    design = [to_params(config) for config in study.sampler.encoder.sobol(6, 3)]
    trials = [ask(study) for _ in range(6)]  # none is finished, as with six workers
    assert [config_of(trial) for trial in trials] == design
    assert [suggestion(trial)["phase"] for trial in study.trials] == ["initial"] * 6


def test_a_small_discrete_design_is_not_evaluated_twice():
    space = ConfigurationSpace({"a": ["p", "q"], "b": [1, 2]})
    design = create_study(space, n_initial=16, seed=0).sampler.design(0)
    assert len(design) == 4 == len({repr(to_params(config)) for config in design})


def test_users_configurations_replace_the_design(plane):
    mine = [{"x": 1.0, "y": 2.0}, {"x": 3.0, "y": 4.0}]
    study = create_study(plane, initial_configs=mine, seed=1)
    assert [config_of(ask(study)) for _ in range(2)] == mine
    with pytest.raises(SpaceError, match="99"):
        StanGPSampler(plane, initial_configs=[{"x": 99.0, "y": 0.0}])


def test_suggestions_follow_from_seed_and_number_alone(plane, quick):
    def run(stop_after: int) -> list[dict[str, float]]:
        storage = optuna.storages.InMemoryStorage()
        for count in (stop_after, 7 - stop_after):
            study = create_study(plane, storage=storage, study_name="s", n_initial=4, seed=5, **quick)
            for _ in range(count):
                trial = ask(study)
                study.tell(trial, bowl(config_of(trial)))
        assert [suggestion(trial)["phase"] for trial in study.trials] == ["initial"] * 4 + ["model"] * 3
        return [trial.params for trial in study.trials]

    whole = run(0)
    assert run(2) == whole and run(5) == whole


def test_a_model_suggestion_says_how_it_came_about(plane, quick):
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


def test_maximising_is_minimising_the_negative(plane, quick):
    configs, means = [], []
    for direction, sign in (("minimize", 1.0), ("maximize", -1.0)):
        study = create_study(plane, direction=direction, n_initial=4, seed=2, **quick)
        for _ in range(6):
            trial = ask(study)
            study.tell(trial, sign * bowl(config_of(trial)))
        configs.append([trial.params for trial in study.trials])
        means.append(suggestion(study.trials[-1])["predicted"]["mean"])
    assert configs[0] == configs[1]
    assert means[0] == pytest.approx(-means[1])


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

    monkeypatch.setattr("slayr_py.study.proposal.suggest", spy)
    with pytest.warns(RuntimeWarning, match="enough"):
        ask(study)
    assert seen["n"] == 1 and seen["best"] == 1.0 and seen["t"] == 1
    assert [to_params(config) for config in seen["pending"]] == [config_of(trials[4])]
    assert len(seen["exclude"]) == 4


def test_a_noisy_study_improves_on_the_mean_and_repeats_all_but_failures(plane, monkeypatch, quick):
    study = create_study(plane, direction="maximize", n_initial=3, seed=2, noisy=True, **quick)
    for value in (1.0, 3.0, None):
        trial = ask(study)
        study.tell(trial, value, TrialState.FAIL if value is None else None)
    seen = {}

    def spy(post, acquisition, **options):
        seen.update(options, smallest_mean=post.predict(post.train).mean.min())
        return suggest(post, acquisition, **options)

    monkeypatch.setattr("slayr_py.study.proposal.suggest", spy)
    ask(study)
    assert seen["best"] == seen["smallest_mean"] > -3.0  # the values are negated, and their means shrunk together
    assert [to_params(config) for config in seen["exclude"]] == [study.trials[2].params]
    assert suggestion(study.trials[3])["acquisition"]["best"] == -seen["best"]


def test_a_running_trial_is_pending_before_it_suggested_anything(plane):
    study = create_study(plane, n_initial=5, seed=2)
    trial = study.ask()
    suggested = trial.relative_params
    assert trial.params == {}
    other = study.ask()
    frozen = study.trials[other.number]
    assert [to_params(c) for c in pending(study, plane, frozen)] == [suggested]


def test_a_failing_fit_is_said_aloud_and_filled_in(plane, monkeypatch, quick):
    study = create_study(plane, n_initial=2, seed=2, **quick)
    for _ in range(2):
        study.tell(ask(study), 1.0)

    def broken(*args, **options):
        raise InferenceError("chain 1 died")

    monkeypatch.setattr(study.sampler.gp, "fit", broken)
    monkeypatch.setattr(study.sampler.gp, "prepare", lambda progress: None)
    with pytest.warns(RuntimeWarning, match="trial 2: the fit failed.*chain 1 died"):
        trial = ask(study)
    record = suggestion(study.trials[2])
    assert record["phase"] == "random" and record["error"] == "chain 1 died" and record["config"] == config_of(trial)


def test_without_observations_the_space_is_filled(plane):
    study = create_study(plane, n_initial=1, seed=2)
    configs = [config_of(ask(study)) for _ in range(3)]
    assert [suggestion(trial)["phase"] for trial in study.trials] == ["initial", "random", "random"]
    assert len({repr(config) for config in configs}) == 3


def test_conditional_parameters_are_suggested_when_active_and_only_then(mixed, quick):
    study = create_study(mixed, n_initial=8, seed=0, **quick)
    for _ in range(11):
        trial = ask(study)
        config = config_of(trial)
        assert ("degree" in config) == (config["kernel"] == "poly")
        assert not (config["size"] == "l" and config["flag"] is False)
        study.tell(trial, config["rate"] + config.get("degree", 0))
    assert suggestion(study.trials[-1])["phase"] == "model"


def test_enqueued_trials_are_kept_and_cost_no_fit(plane, quick):
    study = create_study(plane, n_initial=1, seed=0, **quick)
    study.tell(ask(study), 3.0)
    study.enqueue_trial({"x": 0.5, "y": 0.25})
    study.enqueue_trial({"x": 0.5})
    trial = ask(study)
    assert config_of(trial) == {"x": 0.5, "y": 0.25}
    assert suggestion(study.trials[1])["phase"] == "enqueued"
    partly = ask(study)
    assert config_of(partly)["x"] == 0.5 and suggestion(study.trials[2])["phase"] == "model"


def test_a_study_remembers_its_space_and_seed(plane, mixed):
    study = create_study(plane, n_initial=3)
    record = study.user_attrs[STUDY_KEY]
    assert space_from_json(record["space"]) == plane and record["acquisition"] == "ei" and record["noisy"] is False
    assert record["kernel"] == {
        "name": "matern",
        "options": {"p": 2},
        "description": "Matérn kernel (p = 2)",
        "chosen": "auto",
        "reason": "all parameters are real",
    }
    again = optuna.create_study(
        storage=study._storage, study_name=study.study_name, load_if_exists=True, sampler=StanGPSampler(plane)
    )
    assert again.sampler.bind(again) == record["seed"]
    with pytest.raises(DataError, match=f"was started with seed {record['seed']}, not 4"):
        StanGPSampler(plane, seed=4).bind(study)
    with pytest.raises(SpaceError, match="also has x, y"):
        StanGPSampler(mixed).bind(study)
    with pytest.raises(SpaceError, match="parameter 'x' differs in upper"):
        StanGPSampler(ConfigurationSpace({"x": (-5.0, 11.0), "y": (0.0, 15.0)})).bind(study)


def test_kernel_and_graphs_may_change_and_the_record_tells(mixed):
    star = nx.star_graph(["m", "s", "l"])
    study = create_study(Encoder(mixed, graphs={"size": star}), n_initial=3)
    record = study.user_attrs[STUDY_KEY]
    assert model_difference(record, study.sampler.kernel_record, study.sampler.encoder) is None
    for space, kernel, words in (
        (mixed, "auto", "other graphs"),
        (Encoder(mixed, graphs={"size": star}), Hierarchical(base="rq"), "chosen because the space has conditions"),
    ):
        sampler = StanGPSampler(space, kernel=kernel)
        assert sampler.bind(study) == record["seed"]
        assert words in model_difference(record, sampler.kernel_record, sampler.encoder)
    assert study.user_attrs[STUDY_KEY] == record


def test_studies_of_earlier_versions_have_the_name_of_their_kernel(plane):
    study = create_study(plane, n_initial=3, kernel=Matern(p=1), seed=1)
    record = {**study.user_attrs[STUDY_KEY], "kernel": "matern"}
    del record["graphs"]
    study.set_user_attr(STUDY_KEY, record)
    assert model_difference(record, study.sampler.kernel_record, study.sampler.encoder) is None
    assert describe_kernel(record["kernel"]) == "matern"
    assert config_of(ask(study)) == to_params(study.sampler.design(1)[0])


def test_new_studies_without_a_seed_differ(plane):
    first, second = (config_of(ask(create_study(plane))) for _ in range(2))
    assert first != second


def test_parameters_outside_the_space_are_drawn_from_the_seed(plane):
    def run() -> list[float]:
        study = create_study(plane, n_initial=3, seed=1)
        return [study.ask().suggest_float("extra", 0, 1) for _ in range(3)]

    assert run() == run() and len(set(run())) == 3


def test_a_declared_parameter_asked_for_with_another_range_is_warned_about_once(plane):
    study = create_study(plane, n_initial=3, seed=1)
    with pytest.warns(UserWarning, match="'x' was declared as"):
        assert 50 <= study.ask().suggest_float("x", 50, 60) <= 60
    study.ask().suggest_float("x", 50, 60)


def test_threads_take_turns_and_see_each_other(plane, quick):
    study = create_study(plane, n_initial=1, seed=1, **quick)
    study.tell(ask(study), 1.0)
    configs = []
    threads = [threading.Thread(target=lambda: configs.append(config_of(ask(study)))) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    (a, b) = configs
    assert abs(a["x"] - b["x"]) + abs(a["y"] - b["y"]) > 1e-6


def test_a_sampler_can_be_copied(plane):
    sampler = copy.deepcopy(StanGPSampler(plane, seed=3))  # by the protocol that sends it to another process
    study = optuna.create_study(sampler=sampler)
    assert set(config_of(ask(study))) == {"x", "y"}


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"kernel": "mattern"}, "matern"),
        ({"acquisition": "eii"}, "ei"),
        ({"method": "gibbs"}, "unknown method 'gibbs'"),
        ({"noisy": "very"}, "noisy"),
        ({"seed": -1}, "seed"),
        ({"seed": 1.5}, "seed"),
        ({"n_initial": 0}, "n_initial"),
        ({"chains": 0}, "chains"),
        ({"draws": True}, "draws"),
        ({"target_acceptance": 1}, "target_acceptance"),
        ({"max_treedepth": 0}, "max_treedepth"),
    ],
)
def test_illegal_options_are_named_at_once(plane, options, words):
    with pytest.raises(DataError, match=words):
        StanGPSampler(plane, **options)


SMALL = {"a": ["p", "q", "r"], "b": ["u", "v", "w"]}


def test_space_filling_points_are_not_repeated():
    study = create_study(ConfigurationSpace(SMALL), n_initial=2, seed=1)
    for _ in range(9):
        study.tell(ask(study), state=TrialState.FAIL)
    assert len({tuple(trial.params.items()) for trial in study.trials}) == 9
    assert [suggestion(trial)["phase"] for trial in study.trials[2:]] == ["random"] * 7


def test_a_point_of_the_design_that_was_enqueued_is_not_repeated(quick):
    space = ConfigurationSpace(SMALL)
    study = create_study(space, n_initial=5, seed=1, **quick)
    study.enqueue_trial(to_params(study.sampler.design(1)[2]))
    for value in range(6):
        study.tell(study.ask() if value == 0 else ask(study), float(value))
    tried = [suggestion(trial)["config"] for trial in study.trials]
    assert len({tuple(config.items()) for config in tried}) == 6


def test_a_trial_without_a_record_yet_stands_for_its_point_of_the_design(plane):
    study = create_study(plane, n_initial=3, seed=2)
    study._storage.create_new_trial(study._study_id)  # by a process that has not suggested anything yet
    design = study.sampler.design(2)
    current = study.ask()._trial_id
    assert pending(study, plane, study._storage.get_trial(current), design) == [design[0]]
