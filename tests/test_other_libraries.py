"""The page for users of other libraries: its code runs, and its tables agree with the errors for foreign arguments."""

from __future__ import annotations

import re

import optuna
import pytest
from testing_pages import DOCS, python_blocks, run_script

from slayr_py.study.model.options import OTHER_LIBRARIES, WITHOUT_COUNTERPART

BLOCKS = python_blocks("other-libraries.md")
AFTER = {"scikit-optimize": (1, 3), "Optuna's GPSampler": (1,), "Optuna's Terminator": (1,), "bayes_opt": (1,)}
ROW = re.compile(r"^\| ((?:`\w+`(?:, )?)+) \| (.*) \|$", re.MULTILINE)


def table() -> dict[str, str]:
    """Return the right cell of the tables of arguments by the names in the left one."""
    text = (DOCS / "other-libraries.md").read_text(encoding="utf-8")
    return {name: cell for names, cell in ROW.findall(text) for name in re.findall(r"\w+", names)}


def test_the_tables_have_the_answers_to_foreign_arguments():
    spelled = {name: cell.strip("`") for name, cell in table().items() if re.fullmatch("`[^`]*`", cell)}
    assert spelled == OTHER_LIBRARIES
    reasons = {
        name: cell.removeprefix("none: ").replace("`", "") for name, cell in table().items() if cell.startswith("none")
    }
    assert reasons == WITHOUT_COUNTERPART


def test_the_code_before_is_python():
    for block in BLOCKS.values():
        compile(block, "page", "exec")


@pytest.mark.stan
@pytest.mark.parametrize("heading", AFTER)
def test_the_code_after_improves_on_the_initial_design(heading, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    code = "\n\n".join(BLOCKS[heading, position] for position in AFTER[heading])
    names = run_script(code.replace("seed=1", 'seed=3, method="map"'), tmp_path)
    study = names["result"].study if "result" in names else names["study"]
    sign = -1 if study.direction == optuna.study.StudyDirection.MAXIMIZE else 1
    assert all(trial.state == optuna.trial.TrialState.COMPLETE for trial in study.trials)
    values = [sign * trial.value for trial in study.trials]
    assert min(values[4:]) < min(values[:4])
    stopped = heading == "Optuna's Terminator"
    assert 4 < len(values) < 15 if stopped else len(values) == 9
