from __future__ import annotations

import re
import shlex

import optuna
import pytest

from slayr_py import progress_bar
from slayr_py.study.model import kernel_searches
from slayr_py.study.storage.fit_records import with_stored_once


@pytest.mark.stan
def test_optimize_stores_resumes_and_reports_a_study(slayr, folder):
    code, out, err = slayr("optimize", "bowl.toml", "--quiet")
    assert code == 0 and err == ""
    study = optuna.load_study(study_name="bowl", storage="sqlite:///bowl.db")
    assert len(study.trials) == 4
    assert f"best value {study.best_value:.6g} in 4 trials" in out
    assert "kernel      frequency-modulated kernel (laplacian), chosen because" in out
    assert "bowl_convergence.png" in out and "slayr inspect bowl.db --study-name bowl" in out
    assert (folder / "bowl_convergence.png").stat().st_size > 10_000

    code, out, _ = slayr(
        "optimize", "bowl.toml", "-q", "--budget", "6", "--output", "out", "--storage", "sqlite:///bowl.db"
    )
    assert code == 0 and "6 trials" in out and "--budget 12" in out
    assert (folder / "out" / "bowl_convergence.png").exists()
    assert len(optuna.load_study(study_name="bowl", storage="sqlite:///bowl.db").trials) == 6

    code, out, _ = slayr("optimize", "bowl.toml", "-q", "--study-name", "b $x", "--output", "my out")
    assert (
        code == 0 and "resume      slayr optimize bowl.toml --study-name 'b $x' --output 'my out' --budget 8\n" in out
    )
    inspect = next(line for line in out.splitlines() if line.startswith("inspect "))
    assert inspect == "inspect     slayr inspect 'my out/b $x.db' --study-name 'b $x'"
    assert slayr(*shlex.split(inspect)[2:])[0] == 0


@pytest.mark.stan
def test_optimize_with_an_expression_and_priors_of_its_hyperparameters(slayr, folder):
    section = """
    [gp]
    kernel = "LIN[x]*PER[x] + SE"
    chains = 1
    warmup = 40
    draws = 20
    [gp.priors]
    period = { family = "LogNormal", mu = -1.0, sigma = 0.3 }
    split = { family = "Beta", a = 2.0, b = 1.0 }
    centre = { family = "Normal", mu = 0.2, sigma = 0.1 }
    lengthscale = { k = { family = "LogNormal", mu = 0.5, sigma = 1.0 } }
    """
    (folder / "sum.toml").write_text((folder / "bowl.toml").read_text().replace("budget = 4", "budget = 5") + section)
    code, out, err = slayr("optimize", "sum.toml", "-q")
    assert code == 0 and "kernel      composite kernel LIN[x] * PER[x] + SE" in out, err
    code, out, _ = slayr("inspect", "sum.db")
    assert code == 0 and "kernel: composite kernel LIN[x] * PER[x] + SE" in out
    study = optuna.load_study(study_name="sum", storage="sqlite:///sum.db")
    priors = with_stored_once(study, study.trials[-1].user_attrs["slayr:fit"])["priors"]
    assert priors["period"]["mu"] == -1.0 and priors["split"]["a"] == 2.0 and priors["centre"]["mu"] == 0.2
    assert priors["lengthscale"]["mu"][2:4] == [0.5, 0.5]
    assert slayr("replay", "sum.db")[0] == 0


@pytest.mark.stan
def test_a_study_that_searches_for_kernels(slayr, folder, monkeypatch):
    monkeypatch.setattr(kernel_searches, "FEWEST", 10)
    monkeypatch.setattr(progress_bar, "_SECONDS", -1.0)  # every phase counts as long and has a line
    text = (folder / "bowl.toml").read_text().replace("n_initial = 4", 'n_initial = 5\nhistory = "runs.csv"')
    (folder / "bowl.toml").write_text(f'{text}[gp]\nkernel = "search"\nmethod = "map"\n')
    rows = [f"{'ab'[i % 2]},{i / 11},{(i / 11 - 0.3) ** 2 + i % 2 / 2}" for i in range(11)]
    (folder / "runs.csv").write_text("\n".join(["k,x,value", *rows]))
    code, out, err = slayr("optimize", "bowl.toml", "--budget", "1")
    assert code == 0 and "searching kernels" in err
    assert "kernel      kernel search, 20 fits each; frequency-modulated kernel (laplacian) until the first\n" in out
    trial = optuna.load_study(study_name="bowl", storage="sqlite:///bowl.db").trials[11]
    record = trial.user_attrs["slayr:search"]
    suggestion = trial.user_attrs["slayr:suggestion"]
    assert (record["due"], record["fits"], len(record["expressions"])) == (10, 20, 3)
    best = max(suggestion["stack"]["parts"], key=lambda part: part["weight"])
    assert f"found       {best['weight']:.2f} {best['kernel']}" in out


def test_optimize_draws_a_bar_unless_it_is_quiet(slayr, folder):
    assert "4/4" in slayr("optimize", "bowl.toml")[2]


def test_a_study_of_a_noisy_objective(slayr, folder):
    text = (folder / "bowl.toml").read_text()
    (folder / "noisy.toml").write_text(text.replace("seed = 1", "seed = 1\nnoisy = true"))
    for arguments, noisy in (
        (("bowl.toml", "--study-name", "a"), False),
        (("bowl.toml", "--study-name", "b", "--noisy"), True),
        (("noisy.toml", "--study-name", "c"), True),
        (("noisy.toml", "--study-name", "d", "--no-noisy"), False),
    ):
        assert slayr("optimize", *arguments, "-q", "--storage", "sqlite:///s.db")[0] == 0
        assert ("noisy objective" in slayr("inspect", "s.db", "--study-name", arguments[2])[1]) == noisy


def test_a_broken_objective_is_exit_code_1_and_its_trials_are_kept(slayr, folder):
    path = folder / "broken.toml"
    path.write_text((folder / "bowl.toml").read_text().replace("bowls:bowl", "bowls:broken"))
    code, _, err = slayr("optimize", path, "-q")
    assert code == 1 and "no data" in err and "3 trials in a row" in err and "slayr optimize" in err
    assert "Traceback" not in err
    code, out, _ = slayr("inspect", "broken.db")
    assert code == 0 and "no best trial" in out and "trial 2 failed: the objective raised RuntimeError: no data" in out
    path.write_text((folder / "bowl.toml").read_text().replace("bowls:bowl", "bowls:nothing"))
    assert slayr("optimize", path, "-q", "--study-name", "nothing")[0] == 1


def test_an_interrupt_says_how_to_resume(slayr, folder):
    (folder / "bowls.py").write_text("def bowl(config):\n    raise KeyboardInterrupt\n")
    code, _, err = slayr("optimize", "bowl.toml", "-q")
    assert code == 130 and "slayr optimize bowl.toml" in err and "sqlite:///bowl.db" in err
    (trial,) = optuna.load_study(study_name="bowl", storage="sqlite:///bowl.db").trials
    assert trial.state.name == "RUNNING"  # the next run resumes it


PAST = "k,x,value\na,0.25,0.0025\nb,0.5,0.54\na,0.75,\n"


@pytest.mark.parametrize("where", ["option", "file"])
def test_past_experiments_are_trials_outside_the_budget_and_added_once(slayr, folder, where):
    (folder / "past").mkdir()
    (folder / "past" / "runs.csv").write_text(PAST)
    arguments = ["--history", "past/runs.csv"]
    if where == "file":
        text = (folder / "bowl.toml").read_text()
        (folder / "bowl.toml").write_text(text.replace("seed = 1", 'seed = 1\nhistory = "past/runs.csv"'))
        arguments = []
    code, out, err = slayr("optimize", "bowl.toml", "-q", "--budget", "1", *arguments)
    assert code == 0 and "in 4 trials (3 past experiments, 1 failed), at" in out and "--budget 2" in out, err
    assert slayr("optimize", "bowl.toml", "-q", "--budget", "1", *arguments)[0] == 0
    trials = optuna.load_study(study_name="bowl", storage="sqlite:///bowl.db").trials
    assert [trial.value for trial in trials[:3]] == [0.0025, 0.54, None] and len(trials) == 4
    assert [trial.params["k"] for trial in trials[:3]] == ["a", "b", "a"]


def test_past_experiments_keep_their_costs(slayr, folder):
    (folder / "runs.csv").write_text("k,x,value,seconds\na,0.25,0.0025,12.5\nb,0.5,0.54,\n")
    text = (folder / "bowl.toml").read_text()
    (folder / "bowl.toml").write_text(text.replace("seed = 1", 'seed = 1\ncost = "seconds"'))
    code, _, err = slayr("optimize", "bowl.toml", "-q", "--budget", "1", "--history", "runs.csv")
    assert code == 0 and "left out" not in err, err
    trials = optuna.load_study(study_name="bowl", storage="sqlite:///bowl.db").trials
    assert [trial.user_attrs.get("seconds") for trial in trials[:2]] == [12.5, None]


def test_invalid_past_experiments_are_named(slayr, folder):
    (folder / "runs.csv").write_text("k,x,value\na,0.25,1\nc,0.5,2\n")
    code, _, err = slayr("optimize", "bowl.toml", "-q", "--history", "runs.csv")
    assert code == 2 and "row 2, column 'k': 'c' is not a level of the parameter" in err
    assert slayr("optimize", "bowl.toml", "-q", "--history", "none.csv")[2] == "slayr: there is no table none.csv\n"


@pytest.mark.stan
def test_a_stopping_rule_ends_the_study_and_is_shown(slayr, folder):
    text = (folder / "bowl.toml").read_text().replace("budget = 4", "budget = 9\nstop = { epsilon = 1e6 }")
    (folder / "short.toml").write_text(f"{text}[gp]\nchains = 2\nwarmup = 100\ndraws = 50\ness = 20\n")
    code, out, err = slayr("optimize", "short.toml", "-q")
    assert code == 0 and "stopped     P(regret < 1e+06) = 1.00 >= 0.95" in out, err
    assert "resume      after lowering epsilon in stop: slayr optimize short.toml --budget " in out
    assert len(optuna.load_study(study_name="short", storage="sqlite:///short.db").trials) < 9
    code, out, _ = slayr("inspect", "short.db")
    assert code == 0 and "observations P(regret < 1e+06) = 1.000, 0.95 is needed; mean regret " in out


@pytest.mark.stan
def test_a_study_with_several_objectives(slayr, folder):
    (folder / "both.toml").write_text(
        """
        [study]
        budget = 4
        n_initial = 3
        seed = 1
        directions = { loss = "minimize", gain = "maximize" }
        reference_point = { loss = 1.0, gain = -1.0 }
        [objective]
        command = ["{python}", "-c", "print((({x}) - 0.2) ** 2, -(({x}) - 0.7) ** 2)"]
        [space]
        x = { type = "float", lower = 0.0, upper = 1.0 }
        [gp]
        method = "map"
        """
    )
    code, out, err = slayr("optimize", "both.toml", "-q")
    assert code == 0 and err == "", err
    assert "minimize loss, maximize gain in 4 trials" in out
    assert re.search(r"front of \d trials, hypervolume \S+ within \(1, -1\)", out)
    assert (folder / "both_front.png").stat().st_size > 10_000
    code, out, _ = slayr("inspect", "both.db", "--figure", "front.png")
    assert code == 0 and "4 trials, minimize loss, maximize gain" in out and "front of" in out
    assert (folder / "front.png").exists() and "probability" not in out  # the objectives have no noise
    code, out, _ = slayr("replay", "both.db")
    assert code == 0 and out.count("identical, bit for bit") == 2
    code, _, err = slayr("optimize", "both.toml", "-q", "--noisy", "--budget", "5")
    assert code == 0, err
    code, out, _ = slayr("inspect", "both.db")
    assert code == 0 and "probability" in out.partition("\ntrials\n")[0]
