"""The recipes of ``docs/recipes.md`` run, each as a script after the example of the page, and do what the page says."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any
from uuid import uuid4

import matplotlib.pyplot as plt
import numpy as np
import optuna
import pytest
from optuna.trial import TrialState
from testing_databases import new_database
from testing_pages import DOCS, python_blocks, run_script

import slayr_py as sl

pytestmark = pytest.mark.stan

POSTGRESQL = "postgresql+psycopg://user:password@host/name"
MODE = 'seed=1, method="map"'
CHECKED: list[tuple[str, int]] = []

Names = dict[str, Any]


BLOCKS = python_blocks("recipes.md")
EXAMPLE = BLOCKS.pop(("The example", 0))


def recipe(heading: str, position: int = 0, seed: str = "seed=1") -> Callable[[Any], Any]:
    """Give a test the fixture ``names`` of one block; `MODE` as ``seed`` fits modes where chains do not matter."""
    CHECKED.append((heading, position))
    return pytest.mark.parametrize("names", [(heading, position, seed)], indirect=True, ids=[f"{heading}-{position}"])


def recipes(*blocks: tuple[str, int]) -> Callable[[Any], Any]:
    """Give a test the fixture ``names`` of each block."""
    CHECKED.extend(blocks)
    return pytest.mark.parametrize("names", [(*block, MODE) for block in blocks], indirect=True, ids=map(str, blocks))


@pytest.fixture
def names(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Names:
    """Run a block as a script in an empty folder; return the names that it defines."""
    heading, position, seed = request.param
    block = BLOCKS[heading, position].replace("seed=1", seed)
    if POSTGRESQL in block:
        block = block.replace(POSTGRESQL, new_database(request.getfixturevalue("postgresql")))
    monkeypatch.chdir(tmp_path)
    return run_script(f"{EXAMPLE}\n\n{block}", tmp_path)


def layers(result: sl.Result) -> list[int]:
    return result.trials["params_layers"].tolist()


def test_every_recipe_is_checked():
    assert sorted(CHECKED) == sorted(BLOCKS)


@recipe("Maximise", seed=MODE)
def test_maximise(names):
    result = names["result"]
    values = names["result"].trials["value"]
    assert result.best_value == values.max() == names["accuracy"](result.best_config)
    assert len(values) == 8 and result.best_value > values[:4].max()


@recipe("Several objectives", seed=MODE)
def test_several_objectives(names):
    result = names["result"]
    front = result.front[["values_error", "values_size"]].to_numpy()
    assert len(result.trials) == 8 and (front[:, 1] % 1000 == 0).all()
    assert (np.diff(front[:, 0]) > 0).all() and (np.diff(front[:, 1]) < 0).all()
    assert result.hypervolume({"error": 1.0, "size": 7000}) > 0


@recipe("Noisy objective")
def test_noisy_objective(names):
    result = names["result"]
    best = names["best"]
    assert result.best_value == result.trials["value"].min() < best.mean + best.sd
    assert result.study.trials[best.number].params == best.config
    means = result.posterior().predict([trial.params for trial in result.study.trials]).centre_and_spread()[0]
    assert abs(means.min() - best.mean) < 0.5 * best.sd  # another fit to the same trials


@recipe("Constraints", 0, seed=MODE)
def test_constraints(names):
    result = names["result"]
    assert result.best_config["layers"] == 2 and 6 in layers(result)
    assert sum(number <= 2 for number in layers(result)[4:]) >= 3
    assert result.study.trials[0].constraints == {"memory": 3.0 * layers(result)[0] - 8}


@recipe("Constraints", 1, seed=MODE)
def test_constraints_of_optuna(names):
    study = names["study"]
    assert study.best_params["layers"] == 2
    assert sum(trial.params["layers"] <= 2 for trial in study.trials[4:]) >= 3


@recipe("Hold a target", 0, seed=MODE)
def test_a_target(names):
    result = names["result"]
    assert abs(names["viscosity"](result.best_config) - 7) < 0.05
    model = result.study.trials[-1].user_attrs["slayr:suggestion"]["conditions"]
    assert [*model] == ["constraint viscosity <= and viscosity >="]


@recipe("Failures", 0, seed=MODE)
def test_failures(names):
    result = names["result"]
    for trial in result.study.trials:
        wrong = trial.params["layers"] == 6 or trial.params["lr"] > 0.3
        assert (trial.state == TrialState.FAIL) == wrong == ("slayr:failure" in trial.user_attrs)
    reasons = [trial.user_attrs.get("slayr:failure") for trial in result.study.trials]
    assert "the objective raised MemoryError: out of memory" in reasons
    assert "the objective returned nan, which is not a finite number" in reasons
    assert (result.trials["state"][4:] == "COMPLETE").sum() >= 3
    assert any("success" in trial.user_attrs["slayr:suggestion"].get("conditions", ()) for trial in result.study.trials)


@recipe("Failures", 1, seed=MODE)
def test_consecutive_failures(names):
    stopped = str(names["stopped"])
    assert stopped.startswith("2 trials in a row failed.")
    assert "the objective raised KeyError: 'learning_rate'" in stopped


@recipe("Known errors of the values", 0)
def test_known_errors_of_a_fit(names):
    posterior = names["posterior"]
    errors = np.array(names["errors"])
    sd = posterior.predict(names["configs"]).sd
    assert sd[errors == 0.1].mean() > 2 * sd[errors == 0.01].mean()


@recipe("Known errors of the values", 1, seed=MODE)
def test_known_errors_of_told_values(names):
    trials = names["study"].trials
    assert [trial.user_attrs["y_sd"] for trial in trials] == [0.05] * 6
    posterior = sl.study.posterior_of(names["study"], 5)
    assert posterior.targets.errors * posterior.y_sd == pytest.approx(np.full(5, 0.05))


@recipe("Known errors of the values", 2, seed=MODE)
def test_known_errors_of_an_objective_of_optuna(names):
    posterior = sl.study.posterior_of(names["study"], 5)
    assert posterior.targets.errors * posterior.y_sd == pytest.approx(np.full(5, 0.05))


@recipe("Past experiments", seed=MODE)
def test_past_experiments(names, slayr):
    result = names["result"]
    assert len(result.trials) == 8 and (result.trials["state"] == "COMPLETE").sum() == 7
    phases = [trial.user_attrs["slayr:suggestion"]["phase"] for trial in result.study.trials]
    assert phases == ["history"] * 3 + ["initial"] + ["model"] * 4
    Path("space.json").write_text(json.dumps(names["space"].to_serialized_dict()))
    toml = '[study]\nbudget = 1\nseed = 1\n[objective]\nfunction = "script:objective"\n'
    toml += '[gp]\nmethod = "map"\n[space]\nfile = "space.json"\n'
    Path("net.toml").write_text(toml)
    code, out, err = slayr("optimize", "net.toml", "--history", "runs.csv")
    assert code == 0 and "in 4 trials (3 past experiments, 1 failed), at" in out, err


@recipe("Experiments of a related task", seed=MODE)
def test_experiments_of_a_related_task(names):
    trials = names["result"].trials
    assert trials["params_data"].tolist() == ["old"] * 12 + ["new"] * 6
    assert names["result"].best_value == trials["value"][12:].min() < 0.12


@recipe("Widen the space of a study", seed=MODE)
def test_a_wider_space(names):
    result = names["result"]
    phases = [trial.user_attrs["slayr:suggestion"]["phase"] for trial in result.study.trials]
    assert phases == ["history"] * 6 + ["model"] * 2
    assert result.trials["value"][:6].tolist() == names["past"]["value"].tolist()
    space = {**names["wider"], "dropout": (0.0, 0.5)}
    study = sl.study.create_study(space, history=names["past"].assign(params_dropout=0.0))
    assert [trial.params["dropout"] for trial in study.trials] == [0.0] * 6


@recipe("Ask and tell", seed=MODE)
def test_ask_and_tell(names):
    result = names["result"]
    assert len(result.trials) == 6 and result.trials["value"].iloc[-1] == 0.12
    assert result.best_value == result.trials["value"].min()
    pair = [sl.study.config_of(sl.study.ask(names["study"])) for _ in range(2)]
    assert pair[0] != pair[1]


@recipe("Ask and tell", 1, seed=MODE)
def test_constraints_of_asked_trials(names):
    assert all("memory" in trial.constraints for trial in names["study"].trials)
    assert names["study"].best_trial.params["layers"] <= 2


@recipe("Choose from a list")
def test_choose_from_a_list(names):
    stock, result = names["stock"], names["result"]
    rows = set(stock[names["descriptors"]].itertuples(index=False, name=None))
    assert {(trial.params["logp"], trial.params["mass"]) for trial in result.study.trials} <= rows
    least = min((logp - 2.5) ** 2 + ((mass - 320) / 60) ** 2 for logp, mass in rows)
    assert least <= result.best_value < least + 0.05
    assert len(names["chosen"]) == 1


@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")  # of fork, since Python 3.12
@recipes(*(("Several evaluations at a time", i) for i in (0, 1)), ("Evaluations that take too long", 0), ("Dask", 0))
def test_evaluations_elsewhere(names):
    assert set(names["result"].trials["state"]) == {"COMPLETE"} and len(names["result"].trials) >= 6


@recipe("Several evaluations at a time", 2)
def test_batches(names):
    states = [trial.state.name for trial in names["study"].trials]
    hashes = {trial.user_attrs["slayr:fit"]["draws_sha256"] for trial in names["study"].trials[4:]}
    # One fit, and one with more draws if a suggestion needs it.
    assert states == ["COMPLETE"] * 8 and len(hashes) <= 2


def test_dask_evaluates_a_repeated_configuration_again_if_told_so():
    distributed = pytest.importorskip("distributed")
    options = {"n_workers": 1, "threads_per_worker": 1, "processes": False, "dashboard_address": ":0"}
    with distributed.LocalCluster(**options) as cluster, distributed.Client(cluster) as client:
        for kwargs, different in (({}, 1), ({"pure": False}, 2)):
            executor = client.get_executor(**kwargs)
            futures = [executor.submit(uuid4) for _ in range(2)]
            assert len({future.result() for future in futures}) == different


@recipe("PostgreSQL", seed=MODE)
def test_postgresql(names, slayr):
    study = {"storage": names["storage"], "study_name": "net", "n_initial": 4, "seed": 1, "method": "map"}
    again = sl.minimize(names["objective"], names["space"], budget=6, **study)
    assert (again.trials["state"] == "COMPLETE").sum() == len(again.trials) == 6
    assert again.best_value == names["result"].best_value
    assert slayr("inspect", names["storage"], "--study-name", "net")[0] == 0


@recipe("Prior knowledge", seed=MODE)
def test_prior_knowledge(names):
    trials = names["result"].study.trials
    assert trials[0].params == pytest.approx(dict(names["space"].get_default_configuration()))
    assert all(abs(np.log(trial.params["lr"]) + 5) < 3 for trial in (trials[1], trials[4]))


@recipe("Fixed values and contexts", 0, seed=MODE)
def test_fixed_values(names):
    found = layers(names["result"])
    assert len(found) == 8 and found[6:] == [2] * 2 and set(found[:6]) != {2}
    assert names["result"].study.trials[-1].user_attrs["slayr:suggestion"]["observations"] == 7


@recipe("Fixed values and contexts", 1, seed=MODE)
def test_contexts(names):
    assert [trial.params["layers"] for trial in names["study"].trials] == [2, 5, 3, 2, 5, 3]


@recipe("Similarity of levels", seed=MODE)
def test_similarity_of_levels(names):
    graph = names["result"].posterior().encoder.graphs["act"]
    assert graph.number_of_edges() == 3
    assert len(names["result"].trials) == 7


@recipe("Priors")
def test_priors(names):
    posterior = names["result"].posterior()
    assert posterior.draws["sigma_n"] == pytest.approx(1e-3)
    assert posterior.model.priors["lengthscale"].mu[posterior.encoder.names.index("lr")] == -1.5
    assert names["gp"].priors["lengthscale"] == sl.Gamma(3.0, 6.0)


@recipe("Write a kernel as an expression")
def test_write_a_kernel_as_an_expression(names):
    prior = dict(zip(names["gp"].hyperparameters[3].labels, names["gp"].priors["lengthscale"].mu, strict=True))
    assert prior["2:SE[lr]"] == prior["3:SE[lr]"] == -1.0 != prior["3:SE[layers]"]
    parts = names["parts"]
    posterior = names["posterior"]
    assert parts.names == ("LIN[layers]", "SE[lr]", "SE") and parts.mean.shape == (3, 6)
    mean = posterior.predict(parts.configs).mean
    np.testing.assert_allclose(parts.offset + parts.mean.sum(axis=0), mean, rtol=1e-6)
    assert repr(names["same"]) == repr(names["gp"].kernel) == repr(names["result"].posterior().kernel)


@recipe("Angles and other periodic parameters", seed=MODE)
def test_angles(names):
    """The function has the same value at 0 and 360 degrees, which the kernel knows."""
    result = names["result"]
    ends = [{"yaw": yaw, "gain": 1.0, "stages": 4} for yaw in (0.0, 360.0)]
    mean = result.posterior().predict(ends).mean
    assert mean[0] == pytest.approx(mean[1], abs=1e-9)
    assert result.best_value < result.trials["value"][:5].min()


@recipe("Find a kernel for a table")
def test_find_a_kernel_for_a_table(names, slayr):
    found = names["found"]
    table = names["table"]
    assert len(found.unique) == 15 and len(names["more"].unique) == 20
    plain = found.unique.set_index("expression")["laplace"]["SE"]
    assert found.unique["laplace"].iloc[0] > plain
    assert names["posterior"].kernel.expression == found.best.expression
    table.to_csv("table.csv", index=False)
    code, out, err = slayr("search", "table.csv", "--target", "error", "--base", "SE,LIN", "--budget", "15", "--quiet")
    assert code == 0 and "best expressions of 15 fits" in out, err


@recipe("Average several kernels")
def test_average_several_kernels(names):
    weights = names["stack"].weights
    assert len(weights) == 3 and weights.sum() == pytest.approx(1)
    assert names["prediction"].mean == pytest.approx(0.109, abs=0.02)
    assert len(names["result"].posterior().weights) == 3


@recipe("Model outcomes that are yes or no")
def test_model_outcomes(names):
    likely, unlikely = names["posterior"].probability([{"lr": 0.001, "layers": 3}, {"lr": 0.5, "layers": 3}])
    assert unlikely < 0.2 < 0.8 < likely


@recipe("Fit 40,000 rows")
def test_fit_many_rows(names):
    truth = 0.1 + (np.arange(1, 7) - 4) ** 2 / 50
    assert names["prediction"].mean == pytest.approx(truth, abs=0.005)
    assert len(names["posterior"].support) == 25


@recipe("Learn a kernel from related data")
def test_a_kernel_learned_from_related_data(names):
    assert names["pre"].skill > 0.9 and names["pre"].messages is not None
    assert names["result"].posterior().kernel.options() == names["kernel"].options()
    assert names["result"].best_value < 0.12


@pytest.mark.filterwarnings("ignore:only some trials have momentum:UserWarning")
@recipe("Optuna without a space", seed=MODE)
def test_optuna_without_a_space(names):
    trials = names["study"].trials
    assert len(trials) == 12 and all(trial.state == TrialState.COMPLETE for trial in trials)
    assert all(("momentum" in trial.params) == (trial.params["optimizer"] == "sgd") for trial in trials)
    assert "slayr:suggestion" in trials[-1].user_attrs


@recipe("Examine a posterior")
def test_examine_a_posterior(names):
    prediction = names["prediction"]
    assert np.all(prediction.observation_sd > prediction.sd)
    assert np.all(names["lowest"] < names["low"]) and np.all(names["highest"] > names["high"])
    assert names["functions"].shape == (200, 6) and np.bincount(names["best"]).argmax() == 4
    assert names["posterior"].check().ok
    plt.close("all")


@recipe("Which parameters matter")
def test_which_parameters_matter(names):
    table = names["table"]
    # lr has 79% of the variance; ten trials do not determine how much of it layers share.
    assert table.index[0] == "lr" and table.loc["lr", "total"] > 0.5
    assert Path("importance.png").stat().st_size > 5000


@recipe("Stop when the remaining gain is small", seed=MODE)
def test_stop_when_little_is_left_to_be_gained(names):
    result = names["result"]
    table = sl.study.regret_table(result.study)
    assert len(result.trials) < 40 and table["stop"].iloc[-1] and table["probability"].iloc[-1] >= 0.95
    assert result.best_value < 0.12


@recipe("Stop bad trials early", seed=MODE)
def test_stop_bad_trials_early(names):
    trials = names["result"].trials
    assert (trials["state"] == "PRUNED").any() and names["result"].best_value == trials["value"].min()


@recipe("Evaluations that cost different amounts", seed=MODE)
def test_evaluations_that_cost_different_amounts(names):
    costs = names["result"].trials["euros"]
    assert costs.tolist() == [0.5 * number for number in layers(names["result"])]
    assert costs.sum() >= 12 > costs[:-1].sum() and len(costs) < 50


@recipe("Dashboard", 0, seed=MODE)
def test_dashboard(names):
    assert len(optuna.load_study(study_name="net", storage="sqlite:///net.db").trials) == 6
    pytest.importorskip("optuna_dashboard")
    exec(BLOCKS["Dashboard", 1], {"sl": sl, "result": names["result"]})
    study = names["result"].study
    attributes = study._storage.get_study_system_attrs(study._study_id)
    assert any(key.startswith("dashboard:plot_data:slayr:convergence") for key in attributes)


CHECKED.append(("Dashboard", 1))


def test_the_arguments_for_special_problems_in_the_readme(tmp_path, monkeypatch):
    blocks = python_blocks(DOCS.parent / "README.md")
    example = blocks["Example", 0].partition("result =")[0]
    monkeypatch.chdir(tmp_path)
    result = run_script(example + blocks["Example", 1].replace("seed=1,", f"{MODE},"), tmp_path)["result"]
    trials = result.trials
    assert (trials["params_x1"] + 2 * trials["params_x2"] <= 30 + 1e-9).all()
    assert result.recommended.mean < 5
