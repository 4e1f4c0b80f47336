from __future__ import annotations

import re

import optuna
import pytest
from ConfigSpace import ConfigurationSpace
from optuna.distributions import FloatDistribution
from optuna.trial import TrialState

import slayr_py
from slayr_py.errors import InferenceError
from slayr_py.study.storage.attributes import REGRET_KEY, SUGGESTION_KEY
from slayr_py.study.storage.curves import PRUNE_KEY


def test_inspect_shows_decisions_of_a_pruner(slayr, folder):
    study = optuna.create_study(storage="sqlite:///p.db", study_name="p")
    for number, state in enumerate((TrialState.COMPLETE, TrialState.PRUNED, TrialState.RUNNING)):
        trial = study.ask({"z": FloatDistribution(0.0, 1.0)})
        trial.report(1.5, 3)
        decision = {"step": 3, "probability": 0.0123, "mean": 2.5, "sd": 0.25, "best": 1.5}
        trial.set_user_attr(PRUNE_KEY, [{}, {"decisions": [decision]}, {"why": "of the units"}][number])
        if state.is_finished():
            study.tell(trial, 1.5 if state == TrialState.COMPLETE else None, state)
    out = slayr("inspect", "p.db")[1]
    assert "pruning: 1 of 3 trials with a curve were pruned, after 3 of 3 steps" in out
    assert "no decision: of the units" in out
    (row,) = [line.split() for line in out.splitlines() if "0.0123" in line]
    assert row[:7] == ["1", "PRUNED", "3", "0.0123", "1.5", "2.5", "0.25"]
    assert "0.0123" not in slayr("inspect", "p.db", "--trials", "0")[1]


def test_inspect_shows_what_the_regret_is_about(slayr, folder):
    study = optuna.create_study(storage="sqlite:///r.db", study_name="r", directions=["minimize"] * 2)
    about = {"fixed": {"x": 1}, "reference_point": [0.6, 0.0]}
    study.set_user_attr(f"{REGRET_KEY}:3:3", {"observations": 3, "target": 0.95, "upper": 0.25, "about": about})
    wanted = "P(regret < 0.25) = 0.95; within the reference point (0.6, 0) with the fixed values x=1\n"
    assert wanted in slayr("inspect", "r.db")[1]


@pytest.mark.stan
def test_inspect_shows_trials_and_settings_of_a_study(slayr, folder):
    prior = 'prior = { x = { family = "Normal", mu = 0.3, sigma = 0.2 }, k = { a = 3, b = 1 } }'
    text = (folder / "bowl.toml").read_text().replace("budget = 4", f"budget = 5\n{prior}")
    (folder / "bowl.toml").write_text(text + '[gp]\nmethod = "map"\nchains = 1\nwarmup = 50\ndraws = 50\nretries = 1\n')
    assert slayr("optimize", "bowl.toml", "-q")[0] == 0
    for study in ("bowl.db", "sqlite:///bowl.db"):
        code, out, err = slayr("inspect", study, "--figure", "f.png")
        assert code == 0 and err == ""
        for words in (
            "study bowl: 5 trials, minimize",
            "kernel: frequency-modulated kernel (laplacian), chosen because the space has categorical",
            "acquisition ei, seed 1\nprior of the optimum: x: Normal(mu=0.3, sigma=0.2); k: a 0.75, b 0.25\n",
            "best value",
            "COMPLETE",
            "map",
            "f.png",
        ):
            assert words in out
    assert (folder / "f.png").exists()
    for name, wanted in (("none/f.png", 4), ("f.unknown", 2)):
        code, _, err = slayr("inspect", "bowl.db", "--figure", name)
        assert code == wanted and f"the figure {name} cannot be written" in err
    assert "(the last 2 of 5)" in slayr("inspect", "bowl.db", "--trials", "2")[1]
    assert "COMPLETE" not in slayr("inspect", "bowl.db", "--trials", "0")[1]


GOOD = {
    "rhat_max": 1.0123,
    "ess_bulk_min": 181.2,
    "ess_tail_min": 93.0,
    "divergences": 0,
    "max_treedepth_hits": 0,
    "ebfmi_min": 0.83,
    "pareto_k": None,
    "ok": True,
    "messages": [],
    "limits": {"rhat_max": 1.114, "ess_bulk_min": 50, "divergences": 3.0, "loo_pareto_k_max": 0.565},
    "loo_pareto_k_max": 0.41,
    "loo_influential": 0,
}
FAILED = GOOD | {"ok": False, "rhat_max": 1.25, "messages": ["R-hat 1.250 > 1.114: the chains disagree; more warm-up"]}
WARM = {
    "method": "nuts",
    "start": "warm",
    "why": ["bulk ESS 31 < 50"],
    "then": "a cold start with warm-up 300",
    "seconds": 0.4,
}
COLD = WARM | {"start": "cold", "why": ["R-hat 1.310 > 1.114"], "then": "again with warm-up 600", "seconds": 1.4}


@pytest.fixture
def inspect_fits(slayr, folder):
    """What ``slayr inspect`` says, in one line of words, of a study with these suggestions."""

    def call(*records, arguments=()):
        space = slayr_py.study.create_study(
            ConfigurationSpace({"x": (0.0, 1.0)}), storage="sqlite:///f.db", study_name="f", n_initial=1, seed=1
        )
        for record in records:
            record = {"phase": "model", "config": {"x": 0.5}, "method": "nuts", "observations": 5, **record}
            space.add_trial(
                optuna.trial.create_trial(
                    params={"x": 0.5},
                    distributions={"x": optuna.distributions.FloatDistribution(0, 1)},
                    value=1.0,
                    user_attrs={SUGGESTION_KEY: record},
                )
            )
        code, out, err = slayr("inspect", "f.db", *arguments)
        assert code == 0 and err == ""
        return out

    return call


def words_of(text):
    return " ".join(text.split())


def fit_of(*abandoned, start="cold", diagnostics=GOOD):
    return {"fit": {"start": start, "draws": 200, "abandoned": list(abandoned)}, "diagnostics": diagnostics}


def test_inspect_shows_every_diagnostic_and_marks_untrusted_fits(inspect_fits):
    influential = GOOD | {"loo_pareto_k_max": 0.8, "loo_influential": 2}
    out = inspect_fits(
        fit_of(start="warm"), fit_of(WARM, diagnostics=influential), fit_of(WARM, COLD, diagnostics=FAILED)
    )
    rows = [line.split() for line in out.partition("\nfits\n")[2].splitlines()[:4]]
    wanted = "trial phase method n rhat ess_bulk ess_tail div treedepth ebfmi k_loo start since_cold attempts ok"
    assert rows[0][:15] == wanted.split()
    assert rows[1][:15] == "0 model nuts 5 1.012 181 93 0 0 0.83 0.41 warm - 1 True".split()
    assert rows[2][10:15] == "0.80 cold 0 2 True".split()
    assert rows[3][0] == "2*" and rows[3][4] == "1.250" and rows[3][10:15] == "0.41 cold 0 3 False".split()
    words = words_of(out)
    assert "* this suggestion does not come from a fit that passed its diagnostics" in words
    assert "trial 0:" not in words
    assert "trial 1: warm start: bulk ESS 31 < 50 (0.4 s), so a cold start with warm-up 300: ok trial 2" in words
    assert (
        "trial 2: warm start: bulk ESS 31 < 50 (0.4 s), so a cold start with warm-up 300: R-hat 1.310 > 1.114 (1.4 s), "
        "so again with warm-up 600: R-hat 1.250 > 1.114, not to be trusted limits" in words
    )
    assert "limits, as of trial 2: rhat <= 1.114, ess_bulk >= 50, div <= 3.0, k_loo <= 0.56 (a note only)" in words
    assert "influential observations (k_loo above its limit) in trial 1: leave-one-out is unreliable there" in words


def test_inspect_shows_approximations_and_failed_fits(inspect_fits):
    approximation = dict.fromkeys(GOOD) | {
        "ok": True,
        "pareto_k": 0.55,
        "limits": {"pareto_k": 0.7, "ess_bulk_min": 25.0},
    }
    given_up = {"method": "pathfinder", "start": None, "why": ["Pareto k 0.91 > 0.7"], "then": "NUTS with warm-up 300"}
    out = inspect_fits(
        {"method": "pathfinder"} | fit_of(start=None, diagnostics=approximation),
        fit_of(given_up),
        {"phase": "random", "error": "Stan's nuts run failed: " + "no memory " * 20},
    )
    words = words_of(out)
    assert "k_loo pareto_k start" in words and " 0.55 " in words and "2*" in words
    assert "trial 1: pathfinder approximation: Pareto k 0.91 > 0.7, so NUTS with warm-up 300: ok" in words
    assert "trial 2: no fit: Stan's nuts run failed: no memory" in words
    lines = out[out.index("trial 1: ") :].splitlines()
    assert max(map(len, lines)) <= 80 and len(lines) > 4


def test_inspect_escapes_text_of_untrusted_records(inspect_fits):
    bad = "\x1b[2Jgone\x07\nfits\ntrial 0: ok"
    strange = {"rhat_max": bad, "ok": bad, "messages": [bad], "limits": {"rhat_max": bad}, "loo_influential": bad}
    records = [
        fit_of(WARM | {"why": [bad, 3], "then": bad, "seconds": bad, "method": bad}, diagnostics=strange),
        fit_of("nothing", {"why": bad}, diagnostics={"messages": 4, "limits": 3}),
        fit_of({"seconds": 10**400}, diagnostics={"limits": {"ess_bulk_min": 10**400}, "divergences": 10**400}),
        {"fit": {"abandoned": 7}, "diagnostics": {"ok": 1}},
        {"phase": "random", "error": bad},
    ]
    out = inspect_fits(*records)
    assert "\x1b" not in out and "\x07" not in out and r"\x1b[2Jgone\x07" in out
    lines = out[out.index("attempts") :]
    assert "\nfits" not in lines and "\ntrial" not in lines and r"trial 4: no fit: \x1b[2Jgone" in lines


@pytest.mark.stan
def test_noisy_studies_show_a_recommendation_first(slayr, folder, monkeypatch):
    text = (folder / "bowl.toml").read_text().replace("budget = 4", "budget = 6")
    (folder / "quick.toml").write_text(text + '[gp]\nmethod = "map"\nchains = 1\n')
    assert "recommended" not in slayr("optimize", "quick.toml", "-q", "--study-name", "plain")[1]
    code, out, _ = slayr("optimize", "quick.toml", "-q", "--noisy", "--study-name", "noisy")
    assert code == 0 and out.index("recommended (posterior mean and sd): ") < out.index("best value")
    assert re.search(r"sd\): \S+ ± \S+ at trial \d+\n +k +[ab]\n +x +0\.\d+\n", out) is not None
    code, again, err = slayr("inspect", "noisy.db")
    assert code == 0 and "fitting the model" in err
    assert again.index("recommended (posterior mean and sd): ") < again.index("best value")

    def fail(*arguments, **options):
        raise InferenceError("the chains died")

    monkeypatch.setattr("slayr_py.inference.GaussianProcess.fit", fail)
    code, out, err = slayr("inspect", "plain.db")
    assert code == 0 and "recommended" not in out and err == ""
    code, out, _ = slayr("inspect", "noisy.db")
    assert code == 0 and "no configuration is recommended: the chains died" in out and "best value" in out


@pytest.mark.parametrize("command", ["inspect", "report"])
def test_several_foreign_and_absent_studies(slayr, folder, command):
    for name in ("one", "two"):
        optuna.create_study(storage="sqlite:///s.db", study_name=name).optimize(
            lambda trial: trial.suggest_float("z", 0, 1), n_trials=2
        )
    code, _, err = slayr(command, "s.db")
    assert code == 2 and "one, two" in err and not (folder / "report.html").exists()
    assert slayr(command, "s.db", "--study-name", "three")[0] == 2
    code, out, _ = slayr(command, "s.db", "--study-name", "two")
    assert code == 0 and ("2 trials" in out or command == "report")
    code, _, err = slayr(command, "absent.db")
    assert code == 4 and "no study file absent.db" in err and not (folder / "absent.db").exists()
    (folder / "letter.db").write_text("Dear Sir, this is no database, but a letter. " * 40)
    assert slayr(command, "letter.db")[0] == 4
