"""Minimise a function of a number, an integer and a category."""

import optuna
import optunahub


def objective(trial: optuna.Trial) -> float:
    """Return a value whose minimum is 0, at x = 2, n = 3 and "b"."""
    x = trial.suggest_float("x", -5, 5)
    n = trial.suggest_int("n", 1, 10)
    offset = trial.suggest_categorical("kind", ["a", "b", "c"]) != "b"
    return (x - 2) ** 2 + (n - 3) ** 2 + offset


if __name__ == "__main__":
    module = optunahub.load_module(package="samplers/slayr")
    study = optuna.create_study(sampler=module.StanGPSampler(seed=1))
    study.optimize(objective, n_trials=30)
    print(study.best_value, study.best_params)
