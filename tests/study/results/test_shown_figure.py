from __future__ import annotations

from IPython.core.formatters import DisplayFormatter

from slayr_py.study import convergence_figure, create_study


def test_notebooks_display_the_figure(plane):
    figure = convergence_figure(create_study(plane, n_initial=1, seed=1))
    shown, _ = DisplayFormatter().format(figure)
    assert shown["image/png"].startswith(b"\x89PNG")
