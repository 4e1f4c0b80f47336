from __future__ import annotations

import json
from dataclasses import fields

import numpy as np
import pandas as pd
import pytest
from ConfigSpace import Categorical, ConfigurationSpace, EqualsCondition, Float

import slayr_py
from slayr_py.cli.columns import logarithmic, quantities
from slayr_py.cli.observations import Source, infer_space, read_observations
from slayr_py.errors import InferenceError
from slayr_py.inference import FitOptions


@pytest.fixture
def table(folder):
    rows = [{"x": i / 12, "n": i % 5, "k": "ab"[i % 2], "loss": (i / 12 - 0.4) ** 2 + 0.1 * (i % 2)} for i in range(12)]
    pd.DataFrame(rows).to_csv(folder / "runs.csv", index=False)
    return folder / "runs.csv"


def test_the_options_of_a_fit_are_those_of_fit_options(slayr):
    out = " ".join(slayr("fit", "--help")[1].split())
    for option in fields(FitOptions):
        assert f"--{option.name.replace('_', '-')}" in out and option.metadata["help"] in out
    assert "[default: 0.8]" in out


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--method", "nutz"), "unknown method 'nutz'; did you mean 'nuts'?"),
        (("--chains", "0"), "chains must be an integer >= 1, got 0"),
        (("--target-acceptance", "1"), "target_acceptance must be a single number in (0, 1), got 1.0"),
        (("--no-pointwise", "--retries", "-1"), "retries must be an integer >= 0, got -1"),
    ],
)
def test_illegal_options_are_named(slayr, table, arguments, words):
    code, out, err = slayr("fit", table, "--target", "loss", *arguments)
    assert (code, out) == (2, "") and words in err


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
def test_inferred_ranges_contain_all_values(seed, scale):
    columns = pd.DataFrame({"a": scale * np.random.default_rng(seed).normal(size=40) + 3 * scale})
    (parameter,) = infer_space(columns).values()
    assert parameter.lower <= columns["a"].min() and columns["a"].max() <= parameter.upper
    spread = float(np.ptp(columns["a"]))
    assert parameter.upper - parameter.lower <= spread * (1 + 1e-4)


def test_columns_that_seem_to_be_logarithmic_are_named():
    rng = np.random.default_rng(0)
    columns = pd.DataFrame(
        {
            "gain": 10 ** rng.uniform(-2, 2, 30),
            "steps": (10 ** rng.uniform(0, 4, 30)).astype(int),
            "linear": rng.uniform(1e-3, 1e3, 30),
            "negative": -(10 ** rng.uniform(-2, 2, 30)),
            "short": 10 ** rng.uniform(0, 2, 30),
            "flag": rng.random(30) < 0.5,
            "level": ["1", "1000"] * 15,
        }
    )
    notes = logarithmic(columns)
    assert [note.split("'")[1] for note in notes] == ["gain", "steps"]
    span = np.log10(columns["gain"].max() / columns["gain"].min())
    assert f"spans {span:.1f} decades" in notes[0] and "--space" in notes[0]


def test_categories_that_may_be_quantities_are_named():
    columns = pd.DataFrame(
        {
            "oven": ["180 °C", "200.5 °C", None],
            "volume": ["5 ml", "1,5 l", "2 l"],
            "solvent": ["a", "b", "a"],
            "kernel": ["3x3", "5x5", "7x7"],
            "x": [0.1, 0.2, 0.3],
        }
    )
    (note,) = quantities(columns)
    assert note.startswith("column 'oven' has 2 categories such as '180 °C'")


def test_levels_of_a_table_are_categories_also_none_and_na_and_declared_numbers(folder):
    (folder / "t.csv").write_text("k,n,x,y\nNone,3,.1,1\nNA,5,.2,2\na,full,.3,3\n")
    space = read_observations(Source(folder / "t.csv", "y", ignore=["n"])).space
    assert set(space["k"].choices) == {"None", "NA", "a"}
    ConfigurationSpace({"n": ["3", "5", "full"], "x": (0.0, 1.0)}).to_json(folder / "s.json")
    configs = read_observations(Source(folder / "t.csv", "y", folder / "s.json")).configs
    assert [config["n"] for config in configs] == ["3", "5", "full"]


@pytest.mark.stan
def test_fit_reports_abandoned_attempts_and_limits(slayr, table, monkeypatch):
    from slayr_py.inference.diagnostics import checks as diagnostics

    monkeypatch.setattr(diagnostics, "EBFMI_LIMIT", 5.0)
    options = ("--chains", "2", "--warmup", "100", "--draws", "60", "--ess", "10", "--retries", "1")
    code, out, _ = slayr("fit", table, "--target", "loss", *options)
    words = " ".join(out.split())
    assert code == 1 and "NOT OK" in words and "more warm-up, or a tighter prior" in words
    assert "cold start: E-BFMI" in words and "so again with warm-up 200" in words and "not to be trusted" in words
    assert "limits: rhat <= 1.265, ess_bulk >= 10, ess_tail >= 5, div <=" in words and "ebfmi >= 5, k_loo <=" in words


@pytest.mark.stan
def test_fit_with_a_space_and_inactive_cells(slayr, folder):
    space = ConfigurationSpace()
    kind = Categorical("kind", ["p", "q"])
    width = Float("width", (0.0, 1.0))
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


@pytest.mark.stan
@pytest.mark.parametrize(
    ("options", "parameters"),
    [((), "1 parameters"), (("--parameter", "run", "--parameter", "day"), "3 parameters")],
    ids=["left out", "in"],
)
def test_fit_leaves_out_row_numbers_and_dates_with_a_note(slayr, folder, options, parameters):
    rows = "".join(f"{i},2024-01-0{i},{i / 7},{(i - 3) ** 2}\n" for i in range(1, 6))
    (folder / "t.csv").write_text(f"run,day,x,y\n{rows}")
    code, out, err = slayr("fit", "t.csv", "--target", "y", "--method", "map", "--chains", "1", *options)
    assert code == 0, err
    assert ("left out: column 'day' has dates or times; include it with --parameter day" in out) == (not options)
    assert ("column 'day' has dates, which are read as days since 2024-01-01" in out) == bool(options)
    assert f"5 observations of y, {parameters}" in out
    assert ("left out: column 'run'" in out) == (not options)


@pytest.mark.stan
def test_fit_of_an_expression(slayr, folder):
    (folder / "t.csv").write_text("x,y\n0.1,1\n0.15,2\n0.6,3\n0.7,5\n0.9,4\n")
    arguments = ("--target", "y", "--method", "map", "--chains", "1", "--kernel", "LIN*PER + SE")
    code, out, err = slayr("fit", "t.csv", *arguments)
    assert code == 0, err
    for words in ("kernel: composite kernel LIN * PER + SE\n", "lengthscale[3:SE[x]]", "split[1:LIN * PER]"):
        assert words in out
    assert slayr("replay", "t_posterior")[0] == 0


@pytest.mark.stan
def test_fit_drops_rows_with_an_empty_target_on_demand(slayr, folder):
    # The run numbers are recognised although the remaining ones have a gap.
    (folder / "t.csv").write_text("step,x,y\n1,0.1,1\n2,5,\n3,0.6,3\n4,0.7,4\n")
    code, out, err = slayr("fit", "t.csv", "--target", "y", "--method", "map", "--chains", "1", "--drop-empty")
    assert code == 0, err
    assert "left out: row 2 with an empty y" in out and "3 observations of y, 1 parameters" in out
    assert slayr_py.Posterior.load(folder / "t_posterior").encoder.space["x"].upper < 1


@pytest.mark.parametrize(
    ("text", "arguments", "words"),
    [
        ("x,y\n1,2\n3,4\n", ("--target", "z"), "no column 'z'"),
        ("x,y\n1,2\n3,four\n", ("--target", "y"), "row 2 .* 'four'"),
        ("x,y\n1,2\n3,NA\n", ("--target", "y"), "the y of row 2 of t.csv is empty or NaN"),
        ("x,y\n1,2\n3,\n", ("--target", "y"), "the y of row 2 of t.csv is empty or NaN: fill it in, or .*--drop-empty"),
        ("x,y\n0,2\n1,\n5,\n7,nan\n", ("--target", "y"), r"the y of 3 rows \(2, 3, 4\) of t.csv is empty or NaN"),
        ("x,y\n1,\n3,\n", ("--target", "y", "--drop-empty"), "t.csv has no value of y: all its cells are empty"),
        ("x,y\n1,\n3,four\n", ("--target", "y", "--drop-empty"), "row 2 of t.csv has the y 'four', which is not"),
        ("x,y\n1,\n3,inf\n", ("--target", "y", "--drop-empty"), "row 2 of t.csv has the y inf; leave it empty"),
        (
            "x,z,y\n.1,1.5,1\n.2,.5,\n.3,,3\n.5,2.5,2\n",
            ("--target", "y", "--drop-empty"),
            "row 3 of t.csv: parameter 'z' has no value: fill in empty cells",
        ),
        (
            "x,y\n.1,1\n.2 mm,2\n.4,3\n",
            ("--target", "y"),
            "row 2 of t.csv has '.2 mm' in column 'x' of numbers: correct",
        ),
        ("x;y\n0,1;1\n0.2;2\n0,4;3\n", ("--target", "y"), "row 2 of t.csv has '0.2' in column 'x' .* with --ignore x"),
        ("x;y\n1;0,1\n2;0.2\n4;0,4\n", ("--target", "y"), "row 2 of t.csv has the y '0.2', which is not a number"),
        ('x,y\n"0,1",1\n"0,2",2\n', ("--target", "y"), "row 1 of t.csv has '0,1' in column 'x' of numbers"),
        (
            "k,x,y\na,.1,1\nb,.2 mm,2\na,.4,3\n",
            ("--target", "y", "--space", "s.json"),
            "row 2 of t.csv has '.2 mm' in column 'x' of numbers",
        ),
        (
            "k,x,y\na,.1,1\nb,.2,\na,-inf,3\n",
            ("--target", "y", "--space", "s.json", "--drop-empty"),
            "row 3 of t.csv has -inf in column 'x' of numbers",
        ),
        ("x,y\n1,2\n1,3\n", ("--target", "y"), "'x' does not vary.*--ignore x"),
        ("x,y\n1,2\n2,3\n", ("--target", "y"), "no parameter: left out: column 'x' .* include it with --parameter x"),
        ("x,y\n2,2\n1,3\n", ("--target", "y", "--space", "s.json", "--ignore", "x"), "--space names the parameters"),
        ("y\n1\n2\n", ("--target", "y"), "no column but the target"),
        ("x,y\n", ("--target", "y"), "no rows"),
        ("y,x,y\n1,2,1\n3,4,3\n", ("--target", "y"), "two columns 'y'; rename or drop one of them"),
        ("", ("--target", "y"), "t.csv is empty; the first line must have the names of the columns"),
        ("x,y\n1,2\n3,4\n", ("--target", "y", "--kernel", "mattern"), "did you mean 'matern'"),
        ("x,y\n1,2\n3,4\n", ("--target", "y", "--kernel", "SE[z]"), r"SE\[z\]: no parameter 'z'; known: x"),
        ("x,y\n1,2\n3,4\n", ("--target", "y", "--space", "no.json"), "no space file"),
    ],
)
def test_tables_that_cannot_be_fitted_are_reported(slayr, folder, text, arguments, words):
    import re

    (folder / "t.csv").write_text(text)
    ConfigurationSpace({"k": ["a", "b"], "x": (0.0, 1.0)}).to_json(folder / "s.json")
    code, _, err = slayr("fit", "t.csv", *arguments)
    assert code == 2 and re.search(words, err), err


@pytest.mark.stan
def test_a_fit_that_fails_is_exit_code_1(slayr, table, monkeypatch):
    def broken(self, *arguments, **options):
        raise InferenceError("chain 1 died")

    monkeypatch.setattr("slayr_py.inference.GaussianProcess.fit", broken)
    code, _, err = slayr("fit", table, "--target", "loss")
    assert code == 1 and "chain 1 died" in err
