"""Quick settings and checks of `notebooks/05_pretraining.py`."""

# ruff: noqa: F821

QUICK = {
    "budget": "6",
    "study": '{"method": "map"}',
    "sampling": '{"chains": 2, "warmup": 150, "draws": 120}',
    "n_points": "12",
}
