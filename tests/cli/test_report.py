from __future__ import annotations

import optuna
import pytest


def page_of(folder, name="report.html"):
    return (folder / name).read_text(encoding="utf-8")


def test_report_of_a_design_needs_no_stan(slayr, folder):
    assert slayr("optimize", "bowl.toml", "-q")[0] == 0
    code, out, err = slayr("report", "bowl.db")
    assert code == 0 and out == "report report.html\n" and "fitting" not in err
    assert "No model has been fitted yet" in page_of(folder) and 'class="notice error"' not in page_of(folder)
    code, out, _ = slayr("report", "sqlite:///bowl.db", "--study-name", "bowl", "-o", "other.html")
    assert code == 0 and out == "report other.html\n" and "<h1>bowl</h1>" in page_of(folder, "other.html")


def test_a_report_that_cannot_be_written_is_named(slayr, folder):
    optuna.create_study(storage="sqlite:///s.db", study_name="two")
    code, _, err = slayr("report", "s.db", "-o", "none/r.html")
    assert code == 4 and "the report none/r.html cannot be written" in err


@pytest.mark.stan
def test_report_of_a_fitted_study_announces_slow_steps(slayr, folder):
    text = (folder / "bowl.toml").read_text().replace("budget = 4", "budget = 6")
    (folder / "bowl.toml").write_text(text + '[gp]\nmethod = "map"\nchains = 1\n')
    assert slayr("optimize", "bowl.toml", "-q")[0] == 0
    code, _, err = slayr("report", "bowl.db")
    assert code == 0 and "fitting the model to all finished trials ...\n" in err
    page = page_of(folder)
    assert 'class="notice error"' not in page and "slayr replay sqlite:///bowl.db --trial 5 --study-name=bowl" in page
