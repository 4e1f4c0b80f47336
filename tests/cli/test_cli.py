from __future__ import annotations

import json
import subprocess
import sys
from types import SimpleNamespace

import numpy as np
import optuna
import pandas as pd
import pytest
from ConfigSpace import ConfigurationSpace

import slayr_py
from slayr_py.cli.fit import infer_space
from slayr_py.errors import DataError, InferenceError
from slayr_py.study.storage.attributes import STUDY_KEY, SUGGESTION_KEY


def test_help_teaches(slayr):
    for command in ([], ["doctor"], ["toolchain"], ["toolchain", "build"], ["optimize"], ["inspect"], ["fit"]):
        code, out, _ = slayr(*command, "--help")
        assert code == 0 and "slayr" in out and "\b" not in out
    code, out, _ = slayr("--help")
    assert "Exit codes:\n" in out and "  3    no usable compiler" in out  # line breaks are kept
    assert slayr("--version") == (0, f"slayr {slayr_py.__version__}\n", "")


@pytest.mark.stan
def test_the_toolchain_is_built_once(slayr, monkeypatch):
    from slayr_py.inference.sampling import programs

    asked = []
    monkeypatch.setattr(programs, "compiled", asked.append)
    code, out, _ = slayr("toolchain", "build", "--jobs", "2")
    assert code == 0 and sorted(asked) == ["fm_gp", "hierarchical_gp", "matern_gp"]
    assert all(f"{name:<16}  already compiled" in out for name in asked)


@pytest.mark.stan
def test_what_does_not_compile_is_said(slayr, monkeypatch):
    from slayr_py.errors import CompileError
    from slayr_py.inference.sampling import programs

    def fails(name):
        raise CompileError(f"{name}: no such instruction")

    monkeypatch.setattr(programs, "compiled", fails)
    code, _, err = slayr("toolchain", "build")
    assert code == 3 and "no such instruction" in err


@pytest.mark.parametrize(
    "arguments", [[], ["frobnicate"], ["optimize"], ["fit", "x.csv"], ["inspect", "a", "--trials", "-1"]]
)
def test_wrong_usage_is_exit_code_2(slayr, folder, arguments):
    assert slayr(*arguments)[0] == 2


@pytest.mark.stan
def test_optimize_keeps_resumes_and_explains_a_study(slayr, folder):
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

    assert slayr("optimize", "bowl.toml", "-q", "--study-name", "b", "--output", "out")[0] == 0
    assert len(optuna.load_study(study_name="b", storage="sqlite:///out/b.db").trials) == 4


def test_optimize_draws_a_bar_unless_it_is_quiet(slayr, folder):
    assert "4/4" in slayr("optimize", "bowl.toml")[2]


@pytest.mark.stan
def test_inspect_shows_what_a_study_knows(slayr, folder):
    text = (folder / "bowl.toml").read_text().replace("budget = 4", "budget = 5")
    (folder / "bowl.toml").write_text(text + '[gp]\nmethod = "map"\nchains = 1\nwarmup = 50\ndraws = 50\nretries = 1\n')
    assert slayr("optimize", "bowl.toml", "-q")[0] == 0
    for study in ("bowl.db", "sqlite:///bowl.db"):
        code, out, err = slayr("inspect", study, "--figure", "f.png")
        assert code == 0 and err == ""
        for words in (
            "study bowl: 5 trials, minimize",
            "kernel: frequency-modulated kernel (laplacian), chosen because the space has ordinal or categorical",
            "acquisition ei, seed 1\n",
            "best value",
            "COMPLETE",
            "map",
            "f.png",
        ):
            assert words in out
    assert (folder / "f.png").exists()
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


def test_inspect_shows_every_diagnostic_and_marks_what_is_not_to_be_trusted(inspect_fits):
    influential = GOOD | {"loo_pareto_k_max": 0.8, "loo_influential": 2}
    out = inspect_fits(
        fit_of(start="warm"), fit_of(WARM, diagnostics=influential), fit_of(WARM, COLD, diagnostics=FAILED)
    )
    rows = [line.split() for line in out.partition("\nfits\n")[2].splitlines()[:4]]
    wanted = "number phase kernel method n rhat ess_bulk ess_tail div treedepth ebfmi k_loo start attempts ok"
    assert rows[0][:15] == wanted.split()
    assert rows[1][:15] == "0 model - nuts 5 1.012 181 93 0 0 0.83 0.41 warm 1 True".split()
    assert rows[2][11:15] == "0.80 cold 2 True".split()
    assert rows[3][0] == "2*" and rows[3][5] == "1.250" and rows[3][11:15] == "0.41 cold 3 False".split()
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
    assert "trial 2 has no fit: Stan's nuts run failed: no memory" in words
    lines = out[out.index("trial 1: ") :].splitlines()
    assert max(map(len, lines)) <= 80 and len(lines) > 4


def test_inspect_shows_fits_of_earlier_versions(inspect_fits):
    old = {key: value for key, value in FAILED.items() if not key.startswith(("loo", "limits"))}
    older = {key: old[key] for key in ("rhat_max", "ok")}
    given_up = {"method": "nuts", "start": "warm", "why": ["bulk ESS 31 < 50: more draws"], "seconds": 0.4}
    out = words_of(inspect_fits(fit_of(given_up, diagnostics=old), {"diagnostics": older}))
    assert "0* " in out and "1* " in out and "limits, as of" not in out
    assert "trial 0: warm start: bulk ESS 31 < 50: more draws (0.4 s), then: R-hat 1.250 > 1.114, not" in out
    assert "trial 1: diagnostics failed, not to be trusted" in out


def test_inspect_spells_out_what_a_fit_of_a_stranger_says(inspect_fits):
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
    lines = out[out.index("acq [s]") :]
    assert "\nfits" not in lines and "\ntrial" not in lines and r"trial 4 has no fit: \x1b[2Jgone" in lines


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


def test_inspect_reads_studies_of_earlier_versions(slayr, folder):
    assert slayr("optimize", "bowl.toml", "-q")[0] == 0
    study = optuna.load_study(study_name="bowl", storage="sqlite:///bowl.db")
    old = {key: value for key, value in study.user_attrs[STUDY_KEY].items() if key not in ("graphs", "noisy")}
    study.set_user_attr(STUDY_KEY, {**old, "kernel": "matern"})
    code, out, _ = slayr("inspect", "bowl.db")
    assert code == 0 and "kernel: matern\n" in out


def test_inspect_of_several_foreign_and_absent_studies(slayr, folder):
    for name in ("one", "two"):
        optuna.create_study(storage="sqlite:///s.db", study_name=name).optimize(
            lambda trial: trial.suggest_float("z", 0, 1), n_trials=2
        )
    code, _, err = slayr("inspect", "s.db")
    assert code == 2 and "one, two" in err
    assert slayr("inspect", "s.db", "--study-name", "three")[0] == 2
    code, out, _ = slayr("inspect", "s.db", "--study-name", "two")
    assert code == 0 and "2 trials" in out
    code, _, err = slayr("inspect", "absent.db")
    assert code == 4 and "no study file absent.db" in err and not (folder / "absent.db").exists()
    (folder / "letter.db").write_text("Dear Sir, this is no database, but a letter. " * 40)
    assert slayr("inspect", "letter.db")[0] == 4


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


def test_each_kind_of_error_has_its_code_and_one_message(slayr, folder):
    for arguments, wanted, words in (
        (("optimize", "absent.toml"), 2, "no configuration file absent.toml"),
        (("optimize", "bowl.toml", "--budget", "0"), 2, "budget"),
        (("optimize", "bowl.toml", "--storage", "study.db"), 4, "sqlite:///study.db"),
    ):
        code, out, err = slayr(*arguments)
        assert code == wanted and words in err and out == ""
        assert err.count("\n") == 1 and err.startswith("slayr: ")
    with pytest.raises(DataError):
        slayr("--traceback", "optimize", "absent.toml")


def test_an_interrupt_says_how_to_go_on(slayr, folder):
    (folder / "bowls.py").write_text("def bowl(config):\n    raise KeyboardInterrupt\n")
    code, _, err = slayr("optimize", "bowl.toml", "-q")
    assert code == 130 and "slayr optimize bowl.toml" in err and "sqlite:///bowl.db" in err
    (trial,) = optuna.load_study(study_name="bowl", storage="sqlite:///bowl.db").trials
    assert trial.state.name == "RUNNING"  # the next run resumes it


def test_doctor_names_what_is_missing(slayr, monkeypatch):
    checks = [
        SimpleNamespace(name="compiler", ok=True, detail="g++ 12", remedy=""),
        SimpleNamespace(name="make", ok=False, detail="not found", remedy="apt install make"),
    ]
    monkeypatch.setattr("slayr_py.toolchain.doctor", lambda build: checks, raising=False)
    code, out, _ = slayr("doctor")
    assert code == 3 and "MISSING  make" in out and "apt install make" in out
    checks.pop()
    code, out, _ = slayr("doctor")
    assert code == 0 and "likelihood  accelerated" in out
    checks.pop()
    monkeypatch.setenv("SLAYR_LIKELIHOOD", "readable")
    assert "likelihood  readable" in slayr("doctor")[1]


@pytest.fixture
def table(folder):
    rows = [{"x": i / 12, "n": i % 5, "k": "ab"[i % 2], "loss": (i / 12 - 0.4) ** 2 + 0.1 * (i % 2)} for i in range(12)]
    pd.DataFrame(rows).to_csv(folder / "runs.csv", index=False)
    return folder / "runs.csv"


@pytest.mark.stan
def test_fit_prints_and_saves_a_posterior(slayr, folder, table):
    code, out, err = slayr("fit", table, "--target", "loss", "--chains", "2", "--warmup", "150", "--draws", "150")
    assert code in (0, 1) and (code == 1) == ("NOT OK" in out), err
    for words in (
        "12 observations of loss, 3 parameters",
        "kernel: frequency-modulated kernel (laplacian), chosen because",
        "sigma_n",
        "lengthscale[x]",
        "beta[k]",
        "rhat",
    ):
        assert words in out
    folder = folder / "runs_posterior"
    assert {p.name for p in folder.iterdir()} == {"record.json", "data.json", "posterior.nc", "trace.png", "pair.png"}
    post = slayr_py.Posterior.load(folder)
    assert post.predict([{"x": 0.5, "n": 2, "k": "a"}]).mean.shape == (1,)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("scale", [1.0, 1e-7, 1e9])
def test_a_table_s_own_ranges_hold_all_its_values(seed, scale):
    columns = pd.DataFrame({"a": scale * np.random.default_rng(seed).normal(size=40) + 3 * scale})
    (parameter,) = infer_space(columns).values()
    assert parameter.lower <= columns["a"].min() and columns["a"].max() <= parameter.upper
    spread = float(np.ptp(columns["a"]))
    assert parameter.upper - parameter.lower <= spread * (1 + 1e-4)


@pytest.mark.stan
def test_fit_says_what_it_gave_up_and_which_limits_it_had(slayr, table, monkeypatch):
    from slayr_py.inference.diagnostics import checks as diagnostics

    monkeypatch.setattr(diagnostics, "EBFMI_LIMIT", 5.0)
    options = ("--chains", "2", "--warmup", "100", "--draws", "60", "--ess", "10", "--retries", "1")
    code, out, _ = slayr("fit", table, "--target", "loss", *options)
    words = words_of(out)
    assert code == 1 and "NOT OK" in words and "more warm-up, or a tighter prior" in words
    assert "cold start: E-BFMI" in words and "so again with warm-up 200" in words and "not to be trusted" in words
    assert "limits: rhat <= 1.265, ess_bulk >= 10, ess_tail >= 5, div <=" in words and "ebfmi >= 5, k_loo <=" in words


@pytest.mark.stan
def test_fit_with_a_space_and_inactive_cells(slayr, folder):
    from ConfigSpace import Categorical, ConfigurationSpace, EqualsCondition, Float

    space = ConfigurationSpace()
    kind, width = Categorical("kind", ["p", "q"]), Float("width", (0.0, 1.0))
    space.add(kind, width, EqualsCondition(width, kind, "q"))
    space.to_json(folder / "space.json")
    (folder / "runs.csv").write_text("note,kind,width,y\na,p,,1\nb,q,0.5,2\nc,q,1,2.5\nd,p,,1.1\n")
    code, out, err = slayr(
        "fit",
        "runs.csv",
        "--target",
        "y",
        "--space",
        "space.json",
        "--method",
        "map",
        "--chains",
        "1",
        "--output",
        "post",
    )
    assert code == 0, err
    assert "chosen because the space has conditions" in out and "gamma[width]" in out
    assert "4 observations of y, 2 parameters" in out and (folder / "post" / "record.json").exists()
    assert json.loads((folder / "post" / "record.json").read_text())


@pytest.mark.parametrize(
    ("text", "arguments", "words"),
    [
        ("x,y\n1,2\n3,4\n", ("--target", "z"), "no column 'z'"),
        ("x,y\n1,2\n3,four\n", ("--target", "y"), "row 2 .* 'four'"),
        ("x,y\n1,2\n3,\n", ("--target", "y"), "row 2"),
        ("x,y\n1,2\n1,3\n", ("--target", "y"), "'x' does not vary"),
        ("y\n1\n2\n", ("--target", "y"), "no column but the target"),
        ("x,y\n", ("--target", "y"), "no rows"),
        ("", ("--target", "y"), "cannot be read"),
        ("x,y\n1,2\n3,4\n", ("--target", "y", "--kernel", "mattern"), "did you mean 'matern'"),
        ("x,y\n1,2\n3,4\n", ("--target", "y", "--space", "no.json"), "no space file"),
    ],
)
def test_tables_that_cannot_be_fitted_are_named(slayr, folder, text, arguments, words):
    import re

    (folder / "t.csv").write_text(text)
    code, _, err = slayr("fit", "t.csv", *arguments)
    assert code == 2 and re.search(words, err), err


@pytest.mark.stan
def test_a_fit_that_fails_is_exit_code_1(slayr, table, monkeypatch):
    def broken(self, *arguments, **options):
        raise InferenceError("chain 1 died")

    monkeypatch.setattr("slayr_py.inference.GaussianProcess.fit", broken)
    code, _, err = slayr("fit", table, "--target", "loss")
    assert code == 1 and "chain 1 died" in err


def test_the_installed_command_is_main():
    done = subprocess.run(
        [sys.executable, "-c", "from slayr_py.cli import main; main()", "--version"], capture_output=True, text=True
    )
    assert done.returncode == 0 and done.stdout.startswith("slayr ")
