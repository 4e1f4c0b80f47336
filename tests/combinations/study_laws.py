"""Laws of the next suggestion of a study: it is compared with a fit to the same values, or with another study."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from combinations.scenarios import Scenario, suggested
from combinations.textbook import close

from slayr_py.study import config_of


def the_suggestion_is_predicted_by_a_fit_to_the_same_values(scenario: Scenario) -> None:
    """Failures, constraints, history, fixed values and running evaluations do not change the model of the objective."""
    told = scenario.told
    assert told.record["phase"] == "model", told.record.get("error")
    assert told.record["observations"] == len(told.observed)
    running = scenario.encoder.encode(told.pending)
    chosen = scenario.encoder.encode([told.trial.params])
    mixture = scenario.told_mixture.believing(running)
    mean, sd = mixture.centre_and_spread(chosen)
    # The draws of a stack are resampled in proportion to its weights, with another offset.
    tolerance = 0.02 if scenario.is_stack else 1e-6
    unit = abs(mixture.scale)
    np.testing.assert_allclose(told.record["predicted"]["mean"], mean[0], rtol=0, atol=tolerance * unit)
    np.testing.assert_allclose(told.record["predicted"]["sd"], sd[0], rtol=0, atol=tolerance * unit)


def the_value_to_improve_on_is_the_best_feasible_one(scenario: Scenario) -> None:
    """It is observed, or for a noisy objective predicted at an observed configuration."""
    told = scenario.told
    usable = [trial for trial in told.observed if scenario.is_usable(trial)]
    values = [trial.value for trial in usable]
    if scenario.noisy:
        values = scenario.told_mixture.centre_and_spread(scenario.encoder.encode([trial.params for trial in usable]))[0]
    best = max(values) if scenario.maximize else min(values)
    tolerance = 0.02 if scenario.noisy and scenario.is_stack else 1e-6
    difference = told.record["acquisition"]["best"] - best
    assert abs(difference) <= tolerance * abs(scenario.told_mixture.scale)


def the_suggestion_is_legal_and_new(scenario: Scenario) -> None:
    told = scenario.told
    params = told.trial.params
    scenario.encoder.encode([params])  # raises an error
    assert params not in told.pending
    if not scenario.noisy:
        assert params not in [trial.params for trial in told.study.trials[: told.trial.number]]


def expected_improvement_is_that_of_a_textbook(scenario: Scenario) -> None:
    """Every draw improves on the best value and on the values that it believes at running evaluations."""
    told = scenario.told
    mixture = scenario.told_mixture
    running = scenario.encoder.encode(told.pending)
    chosen = scenario.encoder.encode([told.trial.params])
    best = (told.record["acquisition"]["best"] - mixture.centre) / mixture.scale
    improvements = []
    for draw in mixture.draws:
        believed = draw.untransformed(draw.predict(running)[0])
        incumbent = np.min(believed, initial=best)
        improvements.append(draw.believing(running).expected_improvement(chosen, incumbent)[0])
    close(told.record["acquisition"]["value"], mixture.average(improvements), 0.05 if scenario.is_stack else 1e-4)


ALWAYS = (
    the_suggestion_is_predicted_by_a_fit_to_the_same_values,
    the_value_to_improve_on_is_the_best_feasible_one,
    the_suggestion_is_legal_and_new,
    expected_improvement_is_that_of_a_textbook,
)


def maximising_is_minimising_the_negative(scenario: Scenario) -> None:
    mirrored = replace(scenario, maximize=not scenario.maximize, scale=-scenario.scale, shift=-scenario.shift)
    here = scenario.told
    there = mirrored.told
    assert here.trial.params == there.trial.params
    close(here.record["predicted"]["mean"], -there.record["predicted"]["mean"], 1e-12)
    close(here.record["predicted"]["sd"], there.record["predicted"]["sd"], 1e-12)
    close(here.record["acquisition"]["best"], -there.record["acquisition"]["best"], 1e-12)
    assert here.record.get("feasible") == there.record.get("feasible")


def history_is_a_set_of_observations(scenario: Scenario) -> None:
    """Add the same observations to the study as trials, by hand."""
    by_hand = replace(scenario, as_history=False)
    assert scenario.told.trial.params == by_hand.told.trial.params
    assert scenario.told.record["predicted"] == by_hand.told.record["predicted"]


def a_batch_of_one_is_a_suggestion(scenario: Scenario) -> None:
    study = scenario.start()
    (trial,) = study.sampler.ask_batch(study, 1)
    assert config_of(trial) == scenario.told.trial.params


def fixed_values_stay_fixed(scenario: Scenario) -> None:
    for trial in scenario.told.study.trials[scenario.past :]:
        for name, value in scenario.fixed.items():
            assert trial.params[name] == value


def failures_change_only_the_feasibility(scenario: Scenario) -> None:
    """The fit to the same values above does not see them, and a study that ignores them has no model of success."""
    learnt = scenario.told.record
    ignored = suggested(scenario.start(failures="ignore")).record
    assert "success" in learnt["conditions"]
    assert 0 < learnt["feasible"] < 1
    assert "success" not in ignored.get("conditions", {})


def the_unit_of_a_constraint_does_not_matter(scenario: Scenario) -> None:
    here = scenario.told
    there = replace(scenario, constraint=1024 * scenario.constraint).told
    assert 0 < here.record["feasible"] <= 1
    assert here.record["feasible"] == there.record["feasible"]
    assert here.trial.params == there.trial.params
