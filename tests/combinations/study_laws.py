"""Laws of the next suggestion of a study: it is compared with a fit to the same values, or with another study."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from combinations import textbook
from combinations.scenarios import PENALISED, POINTS, PRIOR_BETA, PRUNED, ROWS, Scenario, Told, suggested
from combinations.textbook import close

from slayr_py.acquisition import OptimumPrior
from slayr_py.space import Encoded
from slayr_py.study import config_of, cost_model_of, posterior_of


def predictions(told: Told) -> list[dict[str, float]]:
    """Return the prediction of each objective."""
    return [part["predicted"] for part in told.record.get("objectives", [told.record])]


def the_suggestion_is_predicted_by_a_fit_to_the_same_values(scenario: Scenario) -> None:
    """Failures, constraints, history, fixed values and running evaluations do not change the model of an objective."""
    told = scenario.told
    assert told.record["phase"] == "model", told.record.get("error")
    assert told.record["observations"] == len(told.observed)
    chosen = scenario.encoder.encode([told.trial.params])
    # The draws of a stack are resampled in proportion to its weights, with another offset.
    tolerance = 0.02 if scenario.is_stack else 1e-6
    for predicted, plain in zip(predictions(told), scenario.told_mixtures, strict=True):
        mean, sd = plain.centre_and_spread(chosen)
        unit = abs(plain.scale)
        np.testing.assert_allclose(predicted["mean"], mean[0], rtol=0, atol=tolerance * unit)
        np.testing.assert_allclose(predicted["sd"], sd[0], rtol=0, atol=tolerance * unit)


def values_to_improve_on(scenario: Scenario) -> np.ndarray:
    """Return the values (n, p) of feasible trials; for a noisy objective as they are predicted."""
    usable = [trial for trial in scenario.told.observed if scenario.is_usable(trial)]
    if scenario.is_noisy:
        encoded = scenario.encoder.encode([trial.params for trial in usable])
        return np.column_stack([mixture.centre_and_spread(encoded)[0] for mixture in scenario.told_mixtures])
    return np.column_stack([scenario.observations(usable, j)[0] for j in range(len(scenario.maximised))])


def the_value_to_improve_on_is_the_best_feasible_one(scenario: Scenario) -> None:
    """It is observed, or for a noisy objective predicted at an observed configuration.

    Of several objectives, the reference point is worse than the front by its range or by a spread of all values.
    """
    told = scenario.told
    values = values_to_improve_on(scenario)
    tolerance = 0.02 if scenario.is_noisy and scenario.is_stack else 1e-6
    if not scenario.several:
        best = values.max() if scenario.maximize else values.min()
        difference = told.record["acquisition"]["best"] - best
        assert abs(difference) <= tolerance * abs(scenario.told_mixtures[0].scale)
        return
    front = textbook.front(signed(scenario, values))
    assert told.record["acquisition"]["front"] == len(front)
    low, high = np.quantile(signed(scenario, values), [0.1, 0.9], axis=0)
    extent = np.maximum(np.ptp(front, axis=0), (high - low) / 2)
    reference = signed(scenario, np.array([told.record["acquisition"]["reference"]]))[0]
    np.testing.assert_allclose(reference, front.max(axis=0) + extent, rtol=1e-3 if tolerance > 1e-6 else 1e-9)


def signed(scenario: Scenario, values: np.ndarray) -> np.ndarray:
    """Return values (n, p) of which smaller ones are better."""
    return np.where(scenario.maximised, -values, values)


def the_suggestion_is_legal_and_new(scenario: Scenario) -> None:
    told = scenario.told
    params = told.trial.params
    scenario.encoder.encode([params])  # raises an error
    if not scenario.is_noisy:
        assert params not in told.pending
        assert params not in [trial.params for trial in told.study.trials[: told.trial.number]]


def expected_improvement_is_that_of_a_textbook(scenario: Scenario) -> None:
    """Every draw improves on the best value and on the values that it believes at running evaluations.

    If values are noisy, posterior means improve by a noisy evaluation on that of the recommended configuration, or of
    the running one that a draw believes to be better, to which the recommended one is the runner-up.
    """
    told = scenario.told
    running = scenario.encoder.encode(told.pending)
    chosen = scenario.encoder.encode([told.trial.params])
    if scenario.several:
        expected = hypervolume_improvement(scenario, running, chosen)
        close(told.record["acquisition"]["value"], expected, 0.1 if scenario.is_stack else 1e-3)
        return
    (mixture,) = scenario.told_mixtures
    best = (told.record["acquisition"]["best"] - mixture.centre) / mixture.scale
    recommended = told.record["acquisition"].get("recommended")
    assert (recommended is not None) == scenario.is_noisy
    improvements = []
    for draw in mixture.draws:
        knowing = draw.believing(running, not scenario.is_noisy)
        believed = draw.untransformed(draw.predict(running)[0])
        if recommended is None:
            improvement = knowing.expected_improvement(chosen, np.min(believed, initial=best))[0]
        else:
            compared = scenario.encoder.encode(recommended)
            incumbent = draw.untransformed(draw.predict(compared[:1])[0])[0]
            if np.min(believed, initial=incumbent) < incumbent:
                incumbent = np.min(believed)
                compared = running[[np.argmin(believed)]].concatenate(compared[:1])
            improvement = knowing.improvement_of_means(chosen, compared, incumbent)
        improvements.append(improvement)
    close(told.record["acquisition"]["value"], mixture.average(improvements), 0.05 if scenario.is_stack else 1e-4)


def hypervolume_improvement(scenario: Scenario, running: Encoded, chosen: Encoded) -> float:
    """Return the expected improvement of two objectives over the staircase of their front, strip by strip.

    Of noisy objectives it is that of the posterior means after an evaluation. The steps move with the configurations
    whose values they are, the lower edge of a strip with the owner of its upper one.
    """
    mixtures = scenario.told_mixtures
    values = values_to_improve_on(scenario)
    usable = [trial.params for trial in scenario.told.observed if scenario.is_usable(trial)]
    owners = scenario.encoder.encode(usable).concatenate(running)
    if len(running):
        believed = [
            mixture.believing(running, not scenario.is_noisy).centre_and_spread(running)[0] for mixture in mixtures
        ]
        values = np.vstack([values, np.column_stack(believed)])
    centre = np.array([mixture.centre for mixture in mixtures])
    scale = np.array([mixture.scale for mixture in mixtures])
    reference = (np.array(scenario.told.record["acquisition"]["reference"]) - centre) / scale
    standard = (values - centre) / scale
    stairs = textbook.front(standard)[::-1]  # by the second objective
    stairs = stairs[np.all(stairs < reference, axis=1)]

    def shortfall(objective: int, edge: float, upper: float) -> float:
        rows = np.flatnonzero(standard[:, objective] == upper)
        improvements = []
        for draw in mixtures[objective].draws:
            knowing = draw.believing(running, not scenario.is_noisy)
            noise = draw.further_noise if scenario.is_noisy else 0.0
            if scenario.is_noisy and len(rows):
                owner = owners[rows[[0]]]
                improvements.append(knowing.improvement_beside(chosen, owner, upper, edge)[0])
            else:
                improvements.append(knowing.expected_improvement(chosen, edge, noise)[0])
        return float(mixtures[objective].average(improvements))

    total = 0.0
    floors = [-np.inf, *stairs[:, 1]]
    for floor, ceiling, right in zip(floors, [*floors[1:], reference[1]], [reference[0], *stairs[:, 0]], strict=True):
        height = shortfall(1, ceiling, ceiling) - (shortfall(1, floor, ceiling) if np.isfinite(floor) else 0.0)
        total += height * shortfall(0, right, right)
    return total


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
    close(predictions(here)[0]["mean"], -predictions(there)[0]["mean"], 1e-12)
    close(predictions(here)[0]["sd"], predictions(there)[0]["sd"], 1e-12)
    if scenario.several:
        mine, theirs = (told.record["acquisition"]["reference"] for told in (here, there))
        np.testing.assert_allclose(mine, [-theirs[0], theirs[1]], rtol=1e-12)
    else:
        close(here.record["acquisition"]["best"], -there.record["acquisition"]["best"], 1e-12)
    assert here.record.get("feasible") == there.record.get("feasible")


def the_fit_has_the_chosen_scale(scenario: Scenario) -> None:
    study, number = scenario.told.study, scenario.told.trial.number
    posterior = posterior_of(study, number, objective=0 if scenario.several else None)
    assert posterior.encoder.logarithmic == scenario.encoder.logarithmic


def history_is_a_set_of_observations(scenario: Scenario) -> None:
    """Add the same observations to the study as trials, by hand."""
    by_hand = replace(scenario, as_history=False)
    assert scenario.told.trial.params == by_hand.told.trial.params
    assert predictions(scenario.told) == predictions(by_hand.told)


def a_batch_of_one_is_a_suggestion(scenario: Scenario) -> None:
    study = scenario.start()
    (trial,) = study.sampler.ask_batch(study, 1)
    assert config_of(trial) == scenario.told.trial.params


def fixed_values_stay_fixed(scenario: Scenario) -> None:
    for trial in scenario.told.study.trials[scenario.past :]:
        for name, value in scenario.fixed.items():
            assert trial.params[name] == value


def constraints_on_inputs_hold(scenario: Scenario) -> None:
    for trial in scenario.told.study.trials:
        assert trial.params["z"] + 2 * trial.params["x"] <= 4 + 1e-9


def every_configuration_has_a_row(scenario: Scenario) -> None:
    rows = set(ROWS.itertuples(index=False, name=None))
    assert {(trial.params["x"], trial.params["z"]) for trial in scenario.told.study.trials} <= rows


def the_prior_moves_the_suggestion(scenario: Scenario) -> None:
    """With the exponent 10, the standard deviation of the belief is 2 / sqrt(10); every second suggestion has none."""
    told = scenario.told
    if (told.trial.number - POINTS) % 2:
        assert "prior" not in told.record["acquisition"]
        return
    factor = told.record["acquisition"]["prior"]
    assert factor["exponent"] == PRIOR_BETA / len(told.study.trials)
    prior = OptimumPrior.of(scenario.prior, scenario.encoder).tempered(factor["exponent"])
    close(factor["log"], prior.values(scenario.encoder.encode([told.trial.params]))[0], 1e-9)
    assert abs(told.trial.params["z"] - 1.5) < 2


def the_default_is_the_first_own_trial(scenario: Scenario) -> None:
    first = scenario.told.study.trials[scenario.past]
    assert first.params == dict(scenario.default_configuration)


def failures_change_only_the_feasibility(scenario: Scenario) -> None:
    """The fit to the same values above does not see them, and a study that ignores them has no model of success."""
    learnt = scenario.told.record
    ignored = suggested(scenario.start(failures="ignore")).record
    assert "success" in learnt["conditions"]
    assert 0 < learnt["feasible"] < 1
    assert "success" not in ignored.get("conditions", {})


def a_penalty_is_a_failure(scenario: Scenario) -> None:
    """The fit to the same values above does not see it; it does with several objectives, or if failures are ignored."""
    told = scenario.told
    success = told.record.get("conditions", {}).get("success", {})
    if scenario.several:
        assert "penalties" not in success
        return
    assert success["penalties"] == [[PENALISED, PENALISED]]
    assert 0 < told.record["feasible"] < 1
    ignored = suggested(scenario.start(failures="ignore")).record
    assert "success" not in ignored.get("conditions", {})
    assert ignored["observations"] == len(told.observed) + 1


def the_unit_of_a_constraint_does_not_matter(scenario: Scenario) -> None:
    here = scenario.told
    there = replace(scenario, constraint=1024 * scenario.constraint).told
    assert 0 < here.record["feasible"] <= 1
    assert here.record["feasible"] == there.record["feasible"]
    assert here.trial.params == there.trial.params


def a_range_has_one_model(scenario: Scenario) -> None:
    names = [name for name in scenario.told.record["conditions"] if name.startswith("constraint")]
    assert names == ["constraint cold and heat"]


def the_unit_of_a_cost_does_not_matter(scenario: Scenario) -> None:
    """Only the recorded cost has the unit; it is that of the repeated fit, and the value stays the improvement."""
    here = scenario.told
    there = replace(scenario, cost=1024 * scenario.cost).told
    chosen, other = (scenario.encoder.encode([told.trial.params]).unit_values for told in (here, there))
    np.testing.assert_allclose(chosen, other, atol=1e-3)
    close(there.record["cost"]["expected"], 1024 * here.record["cost"]["expected"], 1e-2)
    prediction = cost_model_of(here.study, here.trial.number).predict([here.trial.params])
    expected = np.exp(prediction.draw_mean + 0.5 * prediction.draw_sd**2).mean()
    close(here.record["cost"]["expected"], expected, 1e-9)
    priced = POINTS - len(PRUNED) * scenario.pruned  # pruned trials have spent a part of the cost
    assert here.record["cost"]["observations"] == priced
