from __future__ import annotations

import html
import re
from collections import Counter

import numpy as np
import optuna
import pandas as pd
import pytest
from scipy.special import ndtr
from scipy.stats import beta
from testing_reports import IMAGE, SCRIPT, filled, without_stan

import slayr_py as sl
from slayr_py.display import cell
from slayr_py.errors import InferenceError, StorageError
from slayr_py.inference import NOISE_FLOOR
from slayr_py.kernels import Dirichlet, Hyperparameter
from slayr_py.study import ask, create_study, tell
from slayr_py.study.results.report import importances
from slayr_py.study.results.report.blocks import Drawings, Notice
from slayr_py.study.results.report.front import front
from slayr_py.study.results.report.hyperparameters import _prior_values
from slayr_py.study.results.report.maps import maps
from slayr_py.study.results.report.page import SECTIONS, render, section, write_report
from slayr_py.study.results.report.reading import Absent, Reading
from slayr_py.study.results.report.slices import probability_slices, slices, slices_of
from slayr_py.study.results.report.stopping import stopping
from slayr_py.study.results.report.trials import trials
from slayr_py.study.storage.attributes import ERROR_KEY, FIT_KEY, REGRET_KEY, STUDY_KEY, SUGGESTION_KEY

TITLES = [title for _, title, _ in SECTIONS]


def words(page: str) -> str:
    """Return the visible text of a page."""
    body = re.sub(r"<(style|script)>.*?</\1>", " ", page, flags=re.DOTALL)
    return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", body)).split())


def errors(page: str) -> list[str]:
    return [html.unescape(text) for text in re.findall(r'class="notice error"[^>]*>([^<]*)', page)]


def part(page: str, key: str) -> str:
    """Return a section of a page."""
    return page[page.index(f'<section id="{key}"') :].partition("</section>")[0]


def check_structure(page: str) -> None:
    """Check what holds for every page: all sections, unique identifiers, targets of links, nothing from a network."""
    assert [html.unescape(title) for title in re.findall(r"<h2[^>]*>([^<]*)", page)] == TITLES
    ids = Counter(re.findall(r'\sid="([^"]*)"', page))
    assert [name for name, count in ids.items() if count > 1] == []
    used = re.findall(r'href="#([^"]*)"', page) + re.findall(r"url\(#([^)]*)\)", page)
    used += re.findall(r'(?:for|data-table)="([^"]*)"', page)
    used += " ".join(re.findall(r'aria-labelledby="([^"]*)"', page)).split()
    assert not set(used) - ids.keys()
    assert not re.findall(r'(?:src|href)="(?!#|data:)[^"]*"', page) and "http" not in re.sub(r"http-equiv", "", page)


def test_an_empty_study_has_a_page_that_says_what_is_missing(plane):
    page = render(Reading(create_study(plane, study_name="empty", seed=1, prior={"x": sl.Normal(1.0, 2.0)})))
    check_structure(page)
    assert errors(page) == []
    text = words(page)
    for missing in (
        "no trial yet",
        "No trial has a finite value",
        "there is no best configuration",
        "nothing to replay",
        "prior of the optimum x: Normal(mu=1., sigma=2.)",
    ):
        assert missing in text
    assert words(part(page, "slices")).endswith("No model has been fitted yet: no trial was suggested by one.")


def test_a_design_has_trials_and_convergence_but_no_model(plane):
    study = filled(plane, 2)
    study.tell(ask(study), state=optuna.trial.TrialState.FAIL)
    running = ask(study)
    page = render(Reading(study))
    check_structure(page)
    assert errors(page) == []
    assert "<svg" in part(page, "convergence") and "<svg" not in part(page, "slices")
    configuration = " ".join(f"{name} {cell(value)}" for name, value in running.params.items())
    assert f"Still running when this page was written parameter trial 3 {configuration}" in words(page)
    assert "2 complete, 1 fail, 1 running" in words(page)
    for key in ("slices", "maps", "importance", "hyperparameters"):
        assert "No model has been fitted yet" in part(page, key)


def test_a_logarithmic_axis_of_the_convergence_has_numbers(plane):
    study = create_study(plane, n_initial=2, seed=1)
    for value in (1e-3, 1e6):
        study.tell(ask(study), value)
    assert "10⁶" in (shown := part(render(Reading(study)), "convergence")) and "mathdefault" not in shown


def test_a_study_of_another_sampler():
    study = optuna.create_study(study_name="tpe", direction="maximize")
    study.optimize(lambda trial: trial.suggest_float("z", 0, 1), n_trials=3)
    page = render(Reading(study))
    check_structure(page)
    assert errors(page) == []
    assert "the study was not made by slayr_py" in words(page)
    assert "another sampler" in words(part(page, "slices")) and "<svg" in part(page, "convergence")
    assert f"{study.best_value:.6g}" in words(part(page, "configurations"))


def test_a_study_of_another_sampler_with_several_objectives():
    study = optuna.create_study(study_name="tpe", directions=["minimize", "maximize"])
    assert "there is no front" in words(part(render(Reading(study)), "front"))
    study.optimize(lambda trial: (trial.suggest_float("z", 0, 1), trial.params["z"] ** 2), n_trials=3)
    page = render(Reading(study))
    assert errors(page) == [] and "<svg" in part(page, "front") and 'id="convergence"' not in page


@pytest.mark.parametrize("point", [None, [9.0, 9.0]])
def test_only_a_default_reference_point_is_explained(plane, point):
    study = create_study(plane, directions=["minimize"] * 2, n_initial=9, seed=1, reference_point=point)
    tell(study, ask(study), [1.0, 2.0])
    text = section(Reading(study), "front", "Front", front).blocks[0].text
    assert ("is the default one" in text) == (point is None)


def test_constant_functions_have_no_figure_of_importances(monkeypatch):
    table = pd.DataFrame({"first": [np.nan], "total": [np.nan]}, index=["x"])
    table.attrs["notes"] = ["48 of 48 functions are constant"]
    monkeypatch.setattr(importances, "importance_of", lambda reading: table)
    assert [block.text for block in importances.importances(None)] == ["48 of 48 functions are constant."]


def test_every_section_of_a_modelled_study(hostile_page):
    page = hostile_page
    check_structure(page)
    assert errors(page) == [] and len(page) < 1_500_000
    for key in ("convergence", "importance", "slices", "maps", "hyperparameters"):
        assert "<svg" in part(page, key), key
    assert words(part(page, "convergence")).count("as the model estimates it") == 1
    assert "bulk ESS 31 < 50 (0.4 s), so a cold start: ok" in words(part(page, "fits"))
    assert "Suggestions of trial 5 do not come from a fit that passed" in words(part(page, "fits"))
    assert "3 of 26 trials failed" in words(part(page, "feasibility"))
    assert "$depth$ is active at some values only" in words(part(page, "slices"))
    for svg in re.findall(r"<svg.*?</svg>", page, flags=re.DOTALL):
        assert re.search(r'role="img"', svg) and "<title" in svg and re.search(r"<desc[^>]*>[^<]{20}", svg)


def test_names_of_strangers_are_text(hostile_page):
    page = hostile_page
    assert page.count("<script") == 1 and "<img" not in page
    # How many places name it depends on what the study suggests.
    assert page.count(html.escape(SCRIPT)) + page.count(SCRIPT.replace("<", "&lt;").replace(">", "&gt;")) > 5
    text = words(page)
    for name in (SCRIPT, IMAGE, "$depth$", "$x^2$", f"memory {SCRIPT}", f"ValueError: {SCRIPT}"):
        assert name in text
    assert ">$depth$</text>" in page  # in a figure, and no formula


def test_control_characters_are_visible(plane):
    study = create_study(plane, study_name="a\x1b[2J\u202eb\x00", seed=1)
    page = render(Reading(study))
    assert r"a\x1b[2J\u202eb\x00" in page and not set("\x1b\u202e\x00") & set(page)


def test_a_failing_section_gives_the_error_and_the_others_are_whole(plane):
    study = filled(plane, 8)

    calls = []

    def fail(objective):
        calls.append(1)
        raise InferenceError("the chains <died>")

    page = render(Reading(study, fit=fail))
    check_structure(page)
    assert len(calls) == 1  # a fit that failed is not repeated
    found = errors(page)
    assert len(found) >= 4 and all("InferenceError: the chains <died>" in one for one in found)
    assert "<svg" in part(page, "convergence") and "trials-table" in part(page, "trials")


def test_what_a_section_has_before_it_fails_is_kept():
    def content(reading):
        yield Notice("first")
        raise ValueError("second\nline")

    def absent(reading):
        yield Notice("first")
        raise Absent("nothing here")

    blocks = section(None, "k", "K", content).blocks
    assert [block.text for block in blocks] == ["first", "This section is incomplete. ValueError: second line"]
    assert section(None, "k", "K", absent).blocks == [Notice("first"), Notice("nothing here")]


def test_damaged_records_end_in_a_page(plane):
    study = filled(plane, 6)
    study.set_user_attr(STUDY_KEY, {"kernel": 3, "space": "?"})
    for record in ({"phase": "model", "diagnostics": 4, "fit": 5, "stack": 6}, {"phase": "random", "error": SCRIPT}):
        study.add_trial(optuna.trial.create_trial(value=1.0, user_attrs={SUGGESTION_KEY: record, FIT_KEY: 7}))
    page = render(Reading(study))
    check_structure(page)
    assert errors(page) and "no fit: " in words(part(page, "fits"))


def test_the_posterior_is_fitted_once_and_slow_steps_are_announced(plane):
    study = filled(plane, 10)
    calls = []
    steps = []
    fit = without_stan(study, plane)
    render(Reading(study, steps.append, lambda objective: calls.append(1) or fit(objective)))
    assert len(calls) == 1
    assert steps[0] == "fitting the model to all finished trials" and len(steps) == len(set(steps)) > 2


def test_stacks_have_the_hyperparameters_of_each_kernel(plane):
    study = filled(plane, 10)
    fit = without_stan(study, plane, draws=30)
    page = render(
        Reading(study, fit=lambda objective: sl.Posterior.stack([fit(objective), fit(objective)], [1.0, 0.0]))
    )
    check_structure(page)
    assert errors(page) == []
    text = words(part(page, "hyperparameters"))
    assert "weight 1.00" in text and "Weight 0: predictions do not use this kernel" in text


def test_estimates_of_the_regret_are_drawn(plane):
    study = filled(plane, 8)
    assert "has no stopping rule" in section(Reading(study), "stopping", "Stopping", stopping).blocks[0].text
    for number, probability in ((5, 0.2), (6, 0.6), (7, 0.96)):
        record = {"incumbent": 3, "observations": number, "epsilon": 0.1, "target": 0.95, "probability": probability}
        record |= {"mean": 0.5 / number**2, "upper": 3.0 / number, "stop": probability > 0.95}
        study.set_user_attr(f"{REGRET_KEY}:{number}:{number}", record)
    paragraph, notice, drawings = section(Reading(study), "stopping", "Stopping", stopping).blocks
    assert "the probability is 0.960" in paragraph.text and "The rule holds" in notice.text
    assert len(drawings.drawings) == 2 and "0.960 at the end, 0.95 is wanted" in drawings.drawings[0].description
    about = {"fixed": {"x": 1.0}, "reference_point": None}
    study.set_user_attr(f"{REGRET_KEY}:7:7", {**record, "about": about})
    paragraph = section(Reading(study), "stopping", "Stopping", stopping).blocks[0]
    assert paragraph.text.endswith(" The estimate holds with the fixed values x=1.0.")
    study.set_user_attr(f"{REGRET_KEY}:7:7", record)
    late = {"observations": 9, "probability": 0.9, "stop": False}  # a trial that ran at the stop has finished
    study.set_user_attr(f"{REGRET_KEY}:8:9", {**record, **late})
    paragraph, notice, drawings = section(Reading(study), "stopping", "Stopping", stopping).blocks
    assert "After 7 observations the probability is 0.960" in paragraph.text and "The rule holds" in notice.text
    study.set_user_attr(f"{REGRET_KEY}:8:9", {"epsilon": "<b>", "target": None})
    assert len(section(Reading(study), "stopping", "Stopping", stopping).blocks) == 2


def test_point_estimates_are_called_that(plane):
    study = filled(plane, 8)
    gp = sl.GaussianProcess(plane, "SE", inducing=6)
    reading = Reading(study)
    observed = reading.observed
    reading.fit = lambda _: gp.fit(observed.configs, observed.y, method="map", chains=1)
    page = render(reading)
    assert errors(page) == []
    assert "point estimate: single values without uncertainty" in words(part(page, "hyperparameters"))


def test_the_noise_of_observations_has_the_units_of_the_objective(plane):
    reading = Reading(filled(plane, 8))
    observed = reading.observed
    gp = sl.GaussianProcess(plane, "SE", inducing=6)
    reading.fit = lambda _: gp.fit(observed.configs, 1000 * observed.y, method="map", chains=1)
    posterior = reading.posterior
    sigma = posterior.y_sd * np.hypot(posterior.draws["sigma_n"].item(), NOISE_FLOOR)
    np.testing.assert_allclose(reading.noise, sigma, rtol=1e-6)


@pytest.mark.parametrize(("direction", "best"), [("minimize", min), ("maximize", max)])
def test_a_slice_names_the_best_median_in_the_direction_of_the_study(plane, direction, best):
    study = filled(plane, 8, direction=direction)
    reading = Reading(study, fit=without_stan(study, plane, draws=30))
    (drawn,) = (block for block in slices(reading) if isinstance(block, Drawings))
    for part_of_line, drawing in zip(slices_of(reading), drawn.drawings, strict=True):
        assert f"the best median {best(part_of_line.quantiles[2]):.4g} at " in drawing.description


@pytest.mark.parametrize(("direction", "corner"), [("minimize", "x = -5, y = 15"), ("maximize", "x = 10, y = 0")])
def test_a_map_names_the_best_point_in_the_direction_of_the_study(plane, direction, corner):
    """The median of a linear kernel is linear."""
    reading = Reading(filled(plane, 8, direction=direction))
    configs, gp = reading.observed.configs, sl.GaussianProcess(plane, "LIN", inducing=6)
    values = [config["x"] - config["y"] for config in configs]
    reading.fit = lambda _: gp.fit(configs, values, method="map", chains=1, maximize=direction == "maximize")
    (drawn,) = (block for block in maps(reading) if isinstance(block, Drawings))
    assert [drawing.description.partition("best at ")[2] for drawing in drawn.drawings] == [f"{corner}."]


def test_the_best_so_far_in_the_table_of_trials_rises_when_maximising(plane):
    study = create_study(plane, n_initial=9, seed=1, direction="maximize")
    for value in (1.0, 3.0, 2.0):
        tell(study, ask(study), value)
    (table,) = trials(Reading(study))
    column = table.columns.index("best so far")
    assert [row[column].key for row in table.rows] == [1.0, 3.0, 3.0]


def test_the_prior_of_a_share_is_the_marginal_of_the_dirichlet_distribution():
    share = Hyperparameter("share", Dirichlet([0.5, 1.0, 2.0]), ("one layer", "two layers", "base"), "part")
    z = np.array([-1.5, 0.0, 1.0])
    for i, (a, b) in enumerate(((0.5, 3.0), (1.0, 2.5), (2.0, 1.5))):
        np.testing.assert_allclose(_prior_values(share, i, z), beta.ppf(ndtr(z), a, b), rtol=1e-9)


def test_the_probability_of_feasibility_by_all_models_is_the_product(plane):
    study = filled(plane, 8)
    reading = Reading(study, fit=without_stan(study, plane, draws=30))
    excess = reading.observed.y - np.median(reading.observed.y)
    gp = sl.GaussianProcess(plane, "SE", inducing=6)
    models = {
        name: gp.fit(reading.observed.configs, sign * excess, chains=1, draws=30)
        for name, sign in (("low", 1), ("high", -1))
    }
    for drawing in probability_slices(reading, models):
        probabilities = np.array([[cell.key for cell in row[1:]] for row in drawing.table.rows])
        np.testing.assert_allclose(probabilities[:, 2], probabilities[:, 0] * probabilities[:, 1], rtol=1e-12)
        assert 0.01 < probabilities[:, :2].min() < probabilities[:, :2].max() < 0.99


def test_known_errors_are_error_bars_and_a_column(plane):
    study = create_study(plane, n_initial=3, seed=1)
    for value, sd in ((3.0, 0.5), (2.0, None)):
        sl.study.tell(study, ask(study), value, sd=sd)
    page = render(Reading(study))
    assert "one known standard deviation (y_sd) of 1 trials" in words(page)
    assert ">sd</button>" in page


def test_a_damaged_error_of_a_value_leaves_the_section_of_fits_whole(plane):
    study = filled(plane, 8)
    study.add_trial(
        optuna.trial.create_trial(
            value=1.0,
            params=study.trials[0].params,
            distributions=study.trials[0].distributions,
            user_attrs={ERROR_KEY: -1.0},
        )
    )
    text = words(part(render(Reading(study, fit=without_stan(study, plane))), "fits"))
    assert "trial 8 has the user attribute 'y_sd' = -1.0" in text
    assert "incomplete" not in text


def test_two_hundred_trials_stay_small(plane):
    study = filled(plane, 200)
    page = render(Reading(study, fit=without_stan(study, plane)))
    assert errors(page) == [] and len(page.encode()) < 1_500_000


def test_the_file_is_returned_and_an_unwritable_one_is_an_error(plane, tmp_path):
    study = filled(plane, 2)
    path = write_report(study, tmp_path / "r.html")
    assert path.read_text(encoding="utf-8").startswith("<!doctype html>")
    with pytest.raises(StorageError, match="cannot be written"):
        write_report(study, tmp_path / "none" / "r.html")
