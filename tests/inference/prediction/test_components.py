from __future__ import annotations

import numpy as np
import pytest
from ConfigSpace import Categorical, ConfigurationSpace, Float
from scipy.stats import norm

import slayr_py as sl
from slayr_py.inference.modes.likelihood import Targets
from slayr_py.inference.prediction import components
from slayr_py.inference.prediction.components import Components, split_into_components
from slayr_py.inference.prediction.kernel_predictor import KernelPredictor
from slayr_py.kernels import Composite
from slayr_py.space import Encoder


@pytest.fixture(scope="module")
def fitted():
    """An expression with a bracket on a mixed space, observations, and two draws of the hyperparameters."""
    space = ConfigurationSpace()
    space.add(Float("x", (0.0, 10.0)), Categorical("c", ["a", "b", "d"]))
    encoder = Encoder(space)
    rng = np.random.default_rng(1)
    kernel = Composite("(LIN[x] + SE[c]) * PER[x] + LIN[x]")
    train = encoder.encode([{"x": rng.uniform(0, 10), "c": str(rng.choice(["a", "b", "d"]))} for _ in range(12)])
    new = encoder.encode([{"x": rng.uniform(0, 10), "c": str(rng.choice(["a", "b", "d"]))} for _ in range(5)])
    draws = {"mu": rng.normal(size=2), "sigma_f": rng.lognormal(size=2), "sigma_n": np.array([0.1, 0.3])}
    for h in kernel.hyperparameters(encoder):
        draws[h.name] = np.stack([h.prior.draw(h.labels, rng) for _ in range(2)])
    return kernel, train, new, rng.normal(size=12), draws


def test_summands_add_up_to_the_prediction(fitted):
    kernel, train, new, y, draws = fitted
    found = split_into_components(kernel, train, Targets(y, np.zeros(12)), draws, new, 3.0, 2.0)
    assert found.names == ("LIN[x] * PER[x]", "SE[c] * PER[x]", "LIN[x]")
    prediction = KernelPredictor.factorise(kernel, train, y, draws).predict(new, 3.0, 2.0)
    np.testing.assert_allclose(found.offset + found.mean.sum(axis=0), prediction.mean, rtol=1e-10)


def test_summands_do_not_depend_on_blocks(fitted, monkeypatch):
    kernel, train, new, y, draws = fitted
    arguments = (kernel, train, Targets(y, np.zeros(12)), draws, new, 3.0, 2.0)
    wanted = split_into_components(*arguments)
    monkeypatch.setattr(components, "BLOCK", 1)
    found = split_into_components(*arguments)
    np.testing.assert_allclose(found.mean, wanted.mean, rtol=1e-12)
    np.testing.assert_allclose(found.sd, wanted.sd, rtol=1e-12)


def test_moments_of_a_summand_by_dense_algebra(fitted):
    kernel, train, new, y, draws = fitted
    one = {name: value[1:] for name, value in draws.items()}
    found = split_into_components(kernel, train, Targets(y, np.zeros(12)), one, new, 0.0, 1.0)
    # The last summand by hand: its weight, times the linear kernel, is a covariance of its own.
    weight = float(one["sigma_f"][0] ** 2 * (1 - one["split"][0, 1]))
    length = one["lengthscale"][0, -1]
    centre = one["centre"][0, -1]
    size = 1 + ((0.5 - centre) ** 2 + 1 / 12) / length**2

    def linear(a, b):
        return weight * (1 + np.outer(a.columns[:, -1] - centre, b.columns[:, -1] - centre) / length**2) / size

    theta = {name: value[0] for name, value in one.items()}
    covariance = kernel.gram(train, train, theta) + one["sigma_n"][0] ** 2 * np.eye(12)
    cross = linear(new, train)
    np.testing.assert_allclose(found.mean[-1], cross @ np.linalg.solve(covariance, y - one["mu"][0]), rtol=1e-9)
    variance = np.diag(linear(new, new) - cross @ np.linalg.solve(covariance, cross.T))
    np.testing.assert_allclose(found.sd[-1], np.sqrt(variance), rtol=1e-7)


def test_equal_summands_are_told_apart(fitted):
    encoder = fitted[1].encoder
    assert Composite("SE + SE * C").component_names(encoder) == ("SE", "SE * C")
    assert Composite("SE + SE").component_names(encoder) == ("1:SE", "2:SE")
    assert Composite("(RQ + SE) * MAT12").component_names(encoder) == ("RQ * MAT12", "SE * MAT12")
    assert len(sl.kernels.Matern().component_names(encoder)) == 1


def test_frame_and_figure(fitted):
    kernel, train, new, y, draws = fitted
    found = split_into_components(kernel, train, Targets(y, np.zeros(12)), draws, new, 0.0, 1.0)
    table = found.frame()
    assert list(table.columns) == ["c", "x", "summand", "mean", "sd"] and len(table) == 15
    np.testing.assert_array_equal(table["mean"].to_numpy().reshape(3, 5), found.mean)
    figure = found.plot()
    assert [panel.get_title(loc="left") for panel in figure.axes] == list(found.names)
    for panel, mean, sd in zip(figure.axes, found.mean, found.sd, strict=True):
        heights = panel.collections[0].get_paths()[0].vertices[:, 1]
        band = norm.ppf(0.95) * sd
        np.testing.assert_allclose(
            [heights.min(), heights.max()], [np.min(mean - band), np.max(mean + band)], rtol=1e-4
        )
    for wrong in ("c", "q"):
        with pytest.raises(sl.DataError, match="the parameter of the horizontal axis is"):
            found.plot(wrong)
    assert "3 summands at 5 configurations" in repr(found) and "<table" in found._repr_html_()


def test_parameters_may_have_the_names_of_columns():
    encoder = Encoder(ConfigurationSpace({"mean": (0.0, 1.0), "sd": (0.0, 1.0), "$x": (0.0, 1.0)}))
    new = encoder.encode([{"mean": 0.75, "sd": 0.5, "$x": 0.0}, {"mean": 0.25, "sd": 0.5, "$x": 1.0}])
    found = Components((r"SE[$x] $\q",), np.array([[1.0, 2.0]]), np.ones((1, 2)), 0.0, new)
    table = found.frame()
    assert list(table["params_mean"]) == [0.75, 0.25] and list(table["mean"]) == [1.0, 2.0]
    assert list(table["params_sd"]) == [0.5, 0.5] and list(table["sd"]) == [1.0, 1.0]
    (panel,) = found.plot("mean").axes
    assert panel.lines[0].get_xdata().tolist() == [0.25, 0.75]
    found.plot("$x").draw_without_rendering()


def test_no_configurations(fitted):
    kernel, train, new, y, draws = fitted
    found = split_into_components(kernel, train, Targets(y, np.zeros(12)), draws, new[:0], 0.0, 1.0)
    assert found.mean.shape == (3, 0) and found.frame().empty
    assert "3 summands at 0 configurations" in repr(found) and "LIN[x] * PER[x]" in repr(found)
