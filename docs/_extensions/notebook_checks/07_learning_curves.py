"""Quick settings and checks of `notebooks/07_learning_curves.py`."""

# ruff: noqa: F821

QUICK = {"options": '{"budget": 13, "n_initial": 13}'}

assert len(stopped) >= 3
assert (stopped["probability"] < 0.05).all()
assert (finals < stopped["best"]).sum() <= 0.05 * len(stopped) + 1
assert steps < 0.8 * 81 * len(table)
assert result.best_value == table["value"].min()
