"""``slayr suggest``: proposals from tables, appended to them with results, as a chemist would."""

from __future__ import annotations

import csv
import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

from slayr_py.cli.app import app
from slayr_py.cli.keys import STUDY

PAGE = Path(__file__).resolve().parents[2] / "docs" / "laboratory.md"


def run(*words: str) -> str:
    outcome = CliRunner().invoke(app, ["suggest", *words])
    assert outcome.exit_code == 0, outcome.output
    return outcome.output


def block(language: str) -> str:
    return re.search(rf"```{language}\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)[1]


def reaction(row):
    """Return a yield with a maximum inside the region."""
    a, b = float(row["acid"]), float(row["base"])
    return 80 - 100 * (a - 0.5) ** 2 - 80 * (b - 0.3) ** 2 + (5 if row["solvent"] == "dmso" else 0)


@pytest.mark.stan
def test_the_tutorial_runs_from_an_empty_folder_by_the_command_line_alone(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("lab.toml").write_text(block("toml") + '\n[gp]\nmethod = "map"\n')
    commands = [line.split()[3:] for line in block("console").splitlines() if line.startswith("$ slayr suggest")]
    assert "space-filling points" in run(*commands[0])
    results = Path("results.csv")
    for round_number in range(2):
        with open("next.csv", newline="") as file:
            rows = list(csv.DictReader(file))
        for row in rows:
            assert abs(float(row["acid"]) + float(row["base"]) + float(row["filler"]) - 1) <= 1e-9
            assert row["status"] == "planned" and row["yield"] == ""
            row["yield"] = f"{reaction(row):.2f}"
            row["status"] = "done"
        with results.open("a", newline="") as file:
            writer = csv.DictWriter(file, rows[0])
            if not round_number:
                writer.writeheader()
            writer.writerows(rows)
        text = run(*commands[1])
        assert "maxima of the acquisition" in text and "(predicted)" in text
    once = Path("next.csv").read_text()
    run(*commands[1])
    assert Path("next.csv").read_text() == once  # nothing is stored


def test_the_script_of_the_page_reads_the_results_of_its_own_proposals(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("past.csv").write_text("acid,base,filler,value\n0.2,0.5,0.3,1\n0.5,0.3,0.2,2\n")
    names = {"space": {"acid": (0.0, 1.0), "base": (0.0, 1.0), "filler": (0.0, 0.5)}}
    script = block("python").replace('"lab",', '"lab",\n    n_initial=20,')
    exec(script, names)
    _, *rows = Path("next.csv").read_text().splitlines()
    with open("past.csv", "a") as file:
        file.writelines(f"{row},{value}\n" for value, row in enumerate(rows))
    exec(script, names)
    assert [trial.value for trial in names["study"].trials] == [1, 2, 0, 1, 2, 3, *[None] * 4]


SPACE = '[space]\nx = { type = "float", lower = 0, upper = 1 }\n'


@pytest.mark.parametrize(
    ("study", "words", "message"),
    [
        ('constraints = ["heat <= 1"]', ["--history", "runs.csv"], "no column 'heat' of the constraint 'heat <= 1'"),
        ('constraints = ["x <= 1"]', [], "'x' has only parameters; give a constraint on inputs by within="),
        ('directions = ["minimize", "maximize"]', ["--maximize"], "are for one objective"),
        ('directions = ["minimize", "maximize"]', ["--target", "y"], "is for one objective; name several"),
        ("", ["--history", "none.csv"], "there is no table none.csv"),
        ("", ["--history", "runs.csv", "--separator", ";;"], "give one character"),
        ("", ["--history", "runs.csv", "--target", "yields"], "has no column 'yields' of results"),
        ("", ["--history", "runs.csv", "--target", "x"], "the column 'x' of runs.csv is a parameter; name"),
        ("", ["--epsilon", "2"], "--epsilon is for the page of --report; give both"),
        ("", ["-o", "runs.csv"], "runs.csv exists and has more than proposals without results; append its rows"),
        ("", ["-o", "failed.csv"], "failed.csv exists and has more than proposals"),
        (
            "",
            ["--history", "open.csv", "-o", "open.csv"],
            "open.csv exists and has more than proposals without results",
        ),
        ("", ["--target", "x"], "the column 'x' of results is a parameter; name the results in another way"),
        ("", ["-o", "lab.toml"], "lab.toml exists and has more than proposals"),
        ("", ["-o", "none/next.csv"], "next.csv cannot be written: there is no folder none"),
        ("", ["-o", "."], ". cannot be written: it is a folder"),
        ("z = [0.0, 1, 5]\n", [], "the levels of 'z' are 0.0, 1, 5; write floats or integers, and 0.5 instead of 0,5"),
    ],
)
def test_what_it_cannot_use_is_refused_with_a_remedy(tmp_path, monkeypatch, study, words, message):
    monkeypatch.chdir(tmp_path)
    Path("lab.toml").write_text(f"{SPACE}{study}" if study.startswith("z") else f"[study]\n{study}\n{SPACE}")
    Path("runs.csv").write_text("x,value\n0.5,1\n")
    Path("failed.csv").write_text("x,value,status\n0.5,,failed\n0.6,,planned\n")
    Path("open.csv").write_text("x,value\n0.5,\n")
    outcome = CliRunner().invoke(app, ["suggest", "lab.toml", *words])
    assert outcome.exit_code == 2 and message in outcome.output


WIDE = """
[space]
lr = { type = "float", lower = 1e-5, upper = 1e-1, log = true }
act = ["relu", "leaky", "tanh"]
layers = { type = "integer", lower = 1, upper = 4 }
x1 = { type = "float", lower = 0, upper = 1 }
x2 = { type = "float", lower = 0, upper = 1 }
x3 = { type = "float", lower = 0, upper = 1 }
"""
NEEDS = {"reference_point": 'directions = ["minimize", "maximize"]', "prior_beta": f"prior = {STUDY['prior'].example}"}


@pytest.mark.parametrize("key", sorted(STUDY))
def test_every_key_of_a_study_is_accepted(tmp_path, monkeypatch, key):
    monkeypatch.chdir(tmp_path)
    Path("runs.csv").write_text("lr,act,layers,x1,x2,x3,memory,value\n0.01,relu,2,0.2,0.3,0.5,6,1.0\n")
    Path("lab.toml").write_text(f"[study]\n{key} = {STUDY[key].example}\n{NEEDS.get(key, '')}\n{WIDE}")
    assert "1 proposal" in run("lab.toml")


@pytest.mark.stan
def test_constraints_on_results_are_columns_of_the_table(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    given = f'[study]\ndirection = "maximize"\nconstraints = ["purity >= 0.9"]\n[gp]\nmethod = "map"\n{SPACE}'
    Path("lab.toml").write_text(given)
    run("lab.toml", "-o", "next.csv")
    assert Path("next.csv").read_text().splitlines()[0] == "x,value,purity,status"
    # The value rises with x, and the purity falls: it is 0.9 at x = 0.5.
    rows = [f"{x};{x};{1 - 0.2 * x};done" for x in (0.0, 0.1, 0.2, 0.3, 0.4, 0.6, 0.8, 1.0)]
    Path("runs.csv").write_text("\n".join(["x;value;purity;status", *rows]).replace(".", ","))
    text = run("lab.toml", "--history", "runs.csv", "-n", "1", "-o", "next.csv")
    _, row = Path("next.csv").read_text().splitlines()
    x, *others = row.replace(",", ".").split(";")
    assert 0.42 < float(x) < 0.52 and others == ["", "", "planned"] and "feasible" in text
    free = given.replace('constraints = ["purity >= 0.9"]\n', "")
    Path("free.toml").write_text(free)
    Path("free.csv").write_text(Path("runs.csv").read_text().replace(";purity", ";colour"))
    run("free.toml", "--history", "free.csv", "-n", "1", "-o", "free_next.csv")
    assert float(Path("free_next.csv").read_text().splitlines()[1].split(";")[0].replace(",", ".")) > 0.6


@pytest.mark.stan
def test_replicates_planned_experiments_and_decimal_commas_of_a_spreadsheet(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("lab.toml").write_text(f'[study]\nn_initial = 2\n[gp]\nmethod = "map"\n{SPACE}')
    rows = "0,1;3,5;\n0,1;3,9;\n0,6;1,25;\n0,9;;failed\n0,65;;planned\n"
    Path("runs.csv").write_text(f"x;value;status\n{rows}")
    page = ["--report", "lab.html", "--epsilon", "5"]
    output = run("lab.toml", "--history", "runs.csv", "-n", "2", "-o", "next.csv", *page)
    assert "Configurations within 5 of the optimum" in Path("lab.html").read_text(encoding="utf-8")
    assert "the objective counts as noisy" in output and "decimal commas" in output
    header, *cells = Path("next.csv").read_text().splitlines()
    assert header == "x;value;status"
    assert all(re.fullmatch(r"[01],\d+;;planned", line) for line in cells) and len(set(cells)) == 2


@pytest.mark.stan
def test_costs_are_columns_of_the_proposals(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("lab.toml").write_text(f'[study]\nn_initial = 2\ncost = "euros"\n[gp]\nmethod = "map"\n{SPACE}')
    assert "costs" not in run("lab.toml", "-o", "next.csv")
    assert Path("next.csv").read_text().startswith("x,value,euros,status\n")
    Path("runs.csv").write_text("x,value\n0.1,3\n0.5,2\n0.9,4\n")
    text = run("lab.toml", "--history", "runs.csv", "-o", "next.csv")
    assert "note: costs are not modelled: too few experiments have one in the column 'euros'" in text
    assert Path("next.csv").read_text().startswith("x,value,euros,status\n")
    Path("runs.csv").write_text("x,user_attrs_euros,value\n0.1,1,3\n0.5,2,2\n0.9,3,4\n")
    assert "costs" not in run("lab.toml", "--history", "runs.csv", "-o", "next.csv")
    assert Path("next.csv").read_text().startswith("x,user_attrs_euros,value,status\n")


def test_replicates_of_a_parameter_called_value_are_found(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("lab.toml").write_text(SPACE.replace("x =", "value ="))
    Path("runs.csv").write_text("params_value,value\n0.5,1\n0.5,2\n")
    assert "the objective counts as noisy" in run("lab.toml", "--history", "runs.csv")


@pytest.mark.parametrize("header", [None, "status,value", "params_status,value", "params_status,status,value"])
def test_a_parameter_called_status_is_proposed_beside_the_status(tmp_path, monkeypatch, header):
    monkeypatch.chdir(tmp_path)
    Path("lab.toml").write_text(SPACE.replace("x =", "status ="))
    words = [] if header is None else ["--history", "runs.csv"]
    Path("runs.csv").write_text(f"{header}\n{'0.5,,7' if header and header.count(',') == 2 else '0.5,7'}\n")
    run("lab.toml", "-o", "next.csv", *words)
    with open("next.csv", newline="") as file:
        (row,) = csv.DictReader(file)
    assert 0 <= float(row.pop("params_status", None) or row.pop("status")) <= 1
    assert sorted(row.values()) == ["", "planned"]
    assert "counted as running" in run("lab.toml", "--history", "next.csv")


def test_a_result_in_a_column_with_the_name_of_a_parameter_stays_empty(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("lab.toml").write_text(SPACE.replace("x =", "value ="))
    Path("runs.csv").write_text("params_value,value\n0.5,7\n")
    run("lab.toml", "--history", "runs.csv", "-o", "next.csv")
    assert re.fullmatch(r"params_value,value,status\n[01]\.\d+,,planned\n", Path("next.csv").read_text())
