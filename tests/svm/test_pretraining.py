from __future__ import annotations

import math
from functools import partial

import numpy as np
import pandas as pd
import pytest
from ConfigSpace import Categorical, ConfigurationSpace, EqualsCondition, Float, ForbiddenEqualsClause
from sklearn.svm import SVC, SVR

from slayr_py import DataError, SpaceError, svm
from slayr_py.kernels import free
from slayr_py.space import Encoder
from slayr_py.svm import leave_one_out, tuning


def plane() -> ConfigurationSpace:
    return ConfigurationSpace({"x": (-1.0, 1.0), "z": (0.0, 10.0)})


def mixed() -> ConfigurationSpace:
    space = ConfigurationSpace()
    space.add(Float("x", (0.0, 1.0)), Categorical("act", ["relu", "tanh", "gelu"]))
    return space


def related(n: int = 16, space: ConfigurationSpace | Encoder | None = None) -> tuple[list, np.ndarray]:
    encoder = space if isinstance(space, Encoder) else Encoder(plane() if space is None else space)
    configs = encoder.sobol(n, 1)
    return configs, np.array([10 + 3 * np.sin(3 * c["x"]) + (0.1 * c.get("z", 1.0)) ** 2 for c in configs])


FIXED = {"C": 10.0, "lengthscale": 0.5}


@pytest.mark.parametrize("family", ["se", "exponential", "polynomial", "linear"])
@pytest.mark.parametrize("machine", ["svr", "ridge"])
def test_the_machine_is_that_of_the_kernel_of_two_arguments(family, machine):
    configs, y = related()
    options = {} if family in ("polynomial", "linear") else {"lengthscale": 0.5}
    trained = svm.pretrain(plane(), configs, y, family=family, machine=machine, C=10.0, **options)
    u = Encoder(plane()).encode(configs).columns - 0.5
    standard = (y - y.mean()) / y.std(ddof=1)
    gram = trained.free_kernel.evaluate(u, u)
    if machine == "svr":
        wanted = SVR(kernel="precomputed", C=10.0, epsilon=0.05, tol=1e-6).fit(gram, standard).predict(gram)
    else:
        bordered = np.block([[gram + np.eye(16) / 10, np.ones((16, 1))], [np.ones((1, 16)), np.zeros((1, 1))]])
        solution = np.linalg.solve(bordered, np.append(standard, 0.0))
        wanted = gram @ solution[:16] + solution[16]
    np.testing.assert_allclose(trained.predict(configs), y.mean() + y.std(ddof=1) * wanted, rtol=1e-6)
    assert abs(trained.alpha.sum()) < 1e-6 * np.abs(trained.alpha).max()
    assert trained.support.shape == (trained.n_support, 2) and trained.columns == ("x", "z")


def gram_and_targets(n: int = 18) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    x = rng.random((n, 2))
    y = np.sin(5 * x[:, 0]) + rng.normal(0, 0.3, n)
    return free.SquaredExponential(0.4).evaluate(x, x), (y - y.mean()) / y.std(ddof=1)


def refitted(machine, gram: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Leave-one-out predictions by a refit for every point."""
    out = np.empty(len(y))
    for i in range(len(y)):
        rest = np.delete(np.arange(len(y)), i)
        out[i] = machine(gram[np.ix_(rest, rest)], y[rest], gram[i : i + 1, rest])
    return out


@pytest.mark.parametrize("epsilon", [0.05, 0.6])
def test_leave_one_out_error_of_regression_is_that_of_refits(epsilon, monkeypatch):
    monkeypatch.setattr(leave_one_out, "_TOLERANCE", 1e-6)
    gram, y = gram_and_targets()

    def machine(k, t, new):
        return SVR(kernel="precomputed", C=2.0, epsilon=epsilon, tol=1e-8).fit(k, t).predict(new)[0]

    fit = leave_one_out.svr(gram, y, 2.0, epsilon, np.arange(len(y)))
    assert fit.n_support < len(y) or epsilon < 0.1
    assert fit.loo_mse == pytest.approx(np.mean((y - refitted(machine, gram, y)) ** 2), rel=1e-5)


def test_leave_one_out_error_of_labels_is_that_of_refits():
    gram, y = gram_and_targets()
    labels = np.where(y > 0.3, 1.0, -1.0)

    def machine(k, t, new):
        return SVC(kernel="precomputed", C=2.0).fit(k, t).predict(new)[0]

    wanted = np.mean(refitted(machine, gram, labels) != labels)
    assert 0 < wanted < 1
    assert leave_one_out.svc(gram, labels, 2.0, np.arange(len(y))).loo_mse == pytest.approx(wanted)


def test_leave_one_out_error_of_the_only_member_of_a_class_is_an_error():
    gram, y = gram_and_targets(6)
    labels = np.array([1.0, -1, -1, -1, -1, -1])
    assert leave_one_out.svc(gram, labels, 100.0, np.arange(6)).loo_mse >= 1 / 6


def test_leave_one_out_error_of_least_squares_is_that_of_refits():
    gram, y = gram_and_targets()

    def machine(k, t, new):
        fit = leave_one_out.ridge(k, t, 2.0, np.arange(len(t)))
        return (new @ fit.alpha + fit.intercept)[0]

    wanted = np.mean((y - refitted(machine, gram, y)) ** 2)
    assert leave_one_out.ridge(gram, y, 2.0, np.arange(len(y))).loo_mse == pytest.approx(wanted, rel=1e-9)


@pytest.mark.parametrize("machine", ["svr", "ridge"])
def test_copies_of_a_point_are_left_out_together(machine, monkeypatch):
    monkeypatch.setattr(leave_one_out, "_TOLERANCE", 1e-6)
    gram, y = gram_and_targets()
    rows = np.concatenate([np.arange(len(y)), [0, 0, 3]])
    gram, y = gram[np.ix_(rows, rows)], y[rows] + 0.1 * np.sin(np.arange(len(rows)))
    fit_to = partial(leave_one_out.MACHINES[machine], C=2.0, epsilon=0.05)
    residuals = []
    for row in range(len(y)):
        rest = rows != rows[row]
        fit = fit_to(gram[np.ix_(rest, rest)], y[rest], places=rows[rest])
        residuals.append(y[row] - gram[row, rest] @ fit.alpha - fit.intercept)
    assert fit_to(gram, y, places=rows).loo_mse == pytest.approx(np.mean(np.square(residuals)), rel=1e-4)


@pytest.mark.parametrize("machine", ["svr", "ridge"])
def test_copies_of_noise_are_no_skill(machine):
    rng = np.random.default_rng(1)
    configs = [{"a": a, "b": b} for a, b in rng.random((20, 2))]
    noise = rng.standard_normal(20)
    y = np.concatenate([noise, noise + 0.1 * rng.standard_normal(20)])
    space = ConfigurationSpace({"a": (0.0, 1.0), "b": (0.0, 1.0)})
    assert svm.pretrain(space, configs * 2, y, machine=machine).skill < 0.3


@pytest.mark.parametrize("machine", ["svr", "ridge"])
def test_tuning_takes_the_smallest_error_of_all_settings(machine):
    configs, y = related(10)
    trained = svm.pretrain(plane(), configs, y, machine=machine)
    best = trained.table.loc[trained.table["loo_mse"].idxmin()]
    assert (trained.C, trained.lengthscale, trained.loo_mse) == (best["C"], best["lengthscale"], best["loo_mse"])
    assert list(trained.table.columns) == ["lengthscale", "C", "epsilon", "loo_mse", "n_support"]
    assert len(trained.table) > 35 and not trained.table[["lengthscale", "C"]].duplicated().any()
    again = svm.pretrain(plane(), configs, y, machine=machine, C=trained.C, lengthscale=trained.lengthscale)
    assert np.array_equal(again.alpha, trained.alpha)
    assert trained.loo_mse < 1


@pytest.mark.parametrize("scale", [1e8, 1e200, 1e-200])
def test_scale_of_the_values_does_not_matter(scale):
    configs, y = related()
    one, other = (svm.pretrain(plane(), configs, values, **FIXED) for values in (y, scale * y + 3 * scale))
    np.testing.assert_allclose(other.alpha, one.alpha, rtol=1e-4)
    np.testing.assert_allclose(other.predict(configs), scale * (one.predict(configs) + 3), rtol=1e-6)


@pytest.mark.parametrize("labels", [[False, True], ["good", "poor"]])
def test_labels_are_fitted_by_support_vector_classification(labels):
    configs, y = related(24)
    given = [labels[int(v > np.median(y))] for v in y]
    trained = svm.pretrain(plane(), configs, given, **FIXED)
    assert trained.machine == "svc" and trained.classes == tuple(labels) and trained.epsilon is None
    assert np.mean(trained.predict(configs) == given) > 0.9
    assert 0 <= trained.loo_mse < 0.5


@pytest.mark.parametrize("machine", ["svr", "ridge", "labels"])
@pytest.mark.parametrize("family", ["se", "exponential", "polynomial", "linear"])
def test_every_machine_makes_a_kernel(family, machine):
    configs, y = related()
    options = {} if family in ("polynomial", "linear") else {"lengthscale": 0.5}
    given = {"labels": y > np.median(y)}.get(machine, y)
    options["machine"] = "ridge" if machine == "ridge" else "svr"
    for n in (3, 16):
        trained = svm.pretrain(plane(), configs[:n], given[:n], family=family, C=10.0, **options)
        kernel = trained.kernel(layers=(1, 2) if family == "se" else 2)
        points = trained.encoder.encode(configs)
        k = kernel.with_layers(2).gram(points, points, {"sigma_f": 1.0, "feature_lengthscale": [1.0]})
        np.testing.assert_allclose(np.diag(k), 1.0, rtol=1e-10)
        assert np.linalg.eigvalsh(k).min() > -1e-10 and k.min() < 0.9
        assert kernel.concentration == min(max(2 * trained.skill, 0.1), 1.0)


@pytest.mark.parametrize("maximize", [False, True])
def test_an_initial_design_starts_at_the_best_prediction(maximize):
    space = ConfigurationSpace()
    act = Categorical("act", ["relu", "tanh", "gelu"])
    slope = Float("slope", (0.0, 1.0))
    space.add(Float("x", (0.0, 1.0)), Float("z", (1.0, 1000.0), log=True), act, slope)
    space.add(EqualsCondition(slope, act, "tanh"))
    space.add(ForbiddenEqualsClause(act, "gelu"))
    encoder = Encoder(space)
    configs = encoder.sobol(60, 3)
    y = np.array([(c["x"] - 0.3) ** 2 + (np.log10(c["z"]) - 2) ** 2 + c.get("slope", 0.5) for c in configs])
    trained = svm.pretrain(space, configs, -y if maximize else y, machine="ridge", C=1000.0, lengthscale=0.7)
    design = trained.initial_configs(6, seed=4, maximize=maximize)
    assert design[1:] == encoder.sobol(5, 4) and trained.initial_configs(6, 4, maximize) == design
    assert trained.initial_configs(1, 4, maximize) == design[:1]
    sign = -1 if maximize else 1
    predictions = sign * trained.predict(encoder.sobol(4000, 5))
    assert sign * trained.predict(design[:1])[0] < predictions.min() + 1e-3 * (predictions.max() - predictions.min())
    assert sign * trained.predict(design[:1])[0] < 0.05 and design[0]["act"] == "tanh"


def test_an_initial_design_satisfies_constraints_and_has_no_repetitions():
    encoder = Encoder(plane(), within=["x + z <= 2"])
    configs, y = related(20, encoder)
    trained = svm.pretrain(encoder, configs, y, machine="ridge", **FIXED)
    design = trained.initial_configs(8, seed=2)
    assert len(design) == 8 and all(c["x"] + c["z"] <= 2 for c in design)
    assert trained.predict(design[:1])[0] <= trained.predict(encoder.sobol(500, 1)).min() + 1e-2
    few = ConfigurationSpace({"act": ["relu", "tanh"], "n": (1, 2)})
    points = [{"act": a, "n": n} for a in ("relu", "tanh") for n in (1, 2)]
    design = svm.pretrain(few, points, [3.0, 2.0, 1.0, 4.0], machine="ridge", **FIXED).initial_configs(10)
    assert dict(design[0]) == points[2] and len(design) == len({str(c) for c in design}) <= 4


def test_an_initial_design_has_the_fixed_values_and_its_start_is_the_best_with_them():
    encoder = Encoder(plane(), within=["x + z <= 2"])
    configs, y = related(20, encoder)
    trained = svm.pretrain(encoder, configs, y, machine="ridge", **FIXED)
    free = trained.initial_configs(1)[0]
    design = trained.initial_configs(4, fixed={"x": 0.25})
    assert free["x"] != 0.25 and [c["x"] for c in design] == [0.25] * 4
    line = [{"x": 0.25, "z": z} for z in np.linspace(0.1, 1.75, 200)]
    assert trained.predict(design[:1])[0] <= trained.predict(line).min() + 1e-2 < trained.predict(line).max()
    with pytest.raises(SpaceError, match="fixed: .*'w'"):
        trained.initial_configs(fixed={"w": 1.0})


def test_an_initial_design_needs_a_configuration_that_is_not_excluded():
    switches = [Categorical(f"s{i}", ["off", "on"]) for i in range(20)]
    space = ConfigurationSpace()
    space.add(Float("x", (0.0, 1.0)), *switches, *(ForbiddenEqualsClause(switch, "on") for switch in switches))
    configs = [{"x": x, **{switch.name: "off" for switch in switches}} for x in np.linspace(0, 1, 9)]
    trained = svm.pretrain(space, configs, [c["x"] for c in configs], **FIXED)
    with pytest.raises(SpaceError, match="exclude all of 2048 random configurations; loosen one"):
        trained.initial_configs(1)


def test_an_initial_design_needs_values():
    configs, y = related()
    labels = svm.pretrain(plane(), configs, y > np.median(y), **FIXED)
    with pytest.raises(DataError, match=r"labels \[False, True\], none of which is the best value"):
        labels.initial_configs()
    trained = svm.pretrain(plane(), configs, y, **FIXED)
    for wrong, words in [({"n": 0}, "n must be"), ({"seed": -1}, "seed must be"), ({"maximize": 1}, "maximize")]:
        with pytest.raises(DataError, match=words):
            trained.initial_configs(**wrong)


def test_messages_name_settings_at_the_edge_and_useless_data():
    configs, _ = related()
    y = np.random.default_rng(0).normal(size=len(configs))
    messages = " ".join(svm.pretrain(plane(), configs, y, machine="ridge").messages)
    assert "the best C, 0.1, is the smallest that was tried" in messages
    assert "the machine explains little of the related data (leave-one-out error 1." in messages
    configs, y = related()
    assert not svm.pretrain(plane(), configs, y, **FIXED).messages
    assert (
        "epsilon=0.3 has no effect on the machine 'ridge'"
        in svm.pretrain(plane(), configs, y, machine="ridge", epsilon=0.3).messages
    )


def test_a_fit_that_does_not_converge_is_a_row_without_a_number(monkeypatch):
    monkeypatch.setattr(leave_one_out, "_MOST_ITERATIONS", 40)
    configs, y = related()
    trained = svm.pretrain(plane(), configs, y)
    failed = trained.table["loo_mse"].isna()
    assert failed.any() and not failed.all()
    assert f"{failed.sum()} of {len(trained.table)} settings did not converge; see table" in trained.messages
    with pytest.raises(DataError, match="no fit converged at any of 1 settings"):
        svm.pretrain(plane(), configs, y, C=1e4, lengthscale=0.5)


def test_a_setting_with_too_large_kernel_values_is_a_row_without_a_number():
    X = np.random.default_rng(0).random((12, 2))
    corner = {"a": (0.0, 1.0), "b": (0.0, 1.0)}, X, np.sin(5 * X[:, 0]) + X[:, 1], "exponential"
    trained = svm.pretrain(*corner, C=1.0, origin="corner")
    failed = trained.table["loo_mse"].isna()
    assert failed.any() and np.isfinite(trained.loo_mse) and (trained.table["lengthscale"][~failed] > 0.1).all()
    for machine, advice in (("svr", "machine='ridge'$"), ("ridge", "longer lengthscale .* smaller C$")):
        with pytest.raises(DataError, match=f"no fit converged at any of 1 settings; .*{advice}"):
            svm.pretrain(*corner, machine, C=1.0, lengthscale=0.01, origin="corner")


def test_a_machine_for_pairs_is_thinned(monkeypatch):
    monkeypatch.setattr(tuning, "_MOST_SUPPORT", 8)
    monkeypatch.setattr("slayr_py.kernels.learned.reweighting.MOST_FEATURES", 3)
    configs, y = related(20)
    trained = svm.pretrain(plane(), configs, y, C=10.0, lengthscale=0.5, epsilon=0.001)
    whole = trained.table.iloc[0]
    assert whole["n_support"] > trained.n_support and trained.loo_mse <= 2 * whole["loo_mse"]
    assert trained.epsilon > 0.001
    assert trained.messages[-1].startswith(f"{whole['n_support']:g} of 20 points have a weight")
    assert "epsilon was raised from 0.001 to" in trained.messages[-1]
    slow = svm.pretrain(plane(), configs, y, machine="ridge", C=10.0, lengthscale=0.5)
    assert slow.n_support == 20 and "use machine='svr'" in slow.messages[0]


def test_values_slightly_outside_the_space_are_clipped_on_request():
    configs, y = related()
    rows = [dict(c) for c in configs]
    rows[3]["z"] = 10.2
    with pytest.raises(SpaceError, match="configuration 3: .*10.2"):
        svm.pretrain(plane(), rows, y, **FIXED)
    trained = svm.pretrain(plane(), pd.DataFrame(rows), y, clip=True, **FIXED)
    assert trained.messages == ["1 value outside the ranges of the space moved to the bounds"]
    rows[3]["z"] = 10.0
    np.testing.assert_allclose(trained.predict(rows), svm.pretrain(plane(), rows, y, **FIXED).predict(rows))
    values = np.array([[c["x"] - 0.5, 1.2 * c["z"]] for c in configs])
    moved = svm.pretrain(plane(), values, y, clip=True, **FIXED)
    outside = int(np.sum((values < [-1, 0]) | (values > [1, 10])))
    assert moved.messages == [f"{outside} values outside the ranges of the space moved to the bounds"]
    clipped = svm.pretrain(plane(), np.clip(values, [-1, 0], [1, 10]), y, **FIXED)
    assert np.array_equal(moved.alpha, clipped.alpha)


def test_seed_chooses_the_points_of_the_median_only():
    configs, y = related()
    one, other = (svm.pretrain(plane(), configs, y, seed=seed, **FIXED) for seed in (1, 2))
    assert np.array_equal(one.alpha, other.alpha)
    scales = [trained.kernel().distance_scale for trained in (one, other)]
    assert scales[0] != scales[1] == pytest.approx(scales[0], rel=0.2)
    assert svm.pretrain(plane(), configs, y, seed=1, **FIXED).kernel().options() == one.kernel().options()


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"y": [5.0] * 16}, "y is constant, 5: a kernel cannot be learned from it"),
        ({"epsilon": 50.0}, r"no point has a weight with epsilon = 50 .* \(sd\(y\) = 2"),
        ({"y": [1.0] * 15}, r"y has shape \(15,\) for 16 configurations"),
        ({"y": [1.0, math.nan] * 8}, r"y\[1\] is nan"),
        ({"y": [1.0, math.inf] * 8}, r"y\[1\] is inf"),
        ({"y": ["a", "b", "c", "a"] * 4}, r"labels need two classes, got 3: \['a', 'b', 'c'\]"),
        ({"y": [True] * 16}, r"labels need two classes, got 1: \[True\]"),
        ({"y": [1j] * 16}, "y must be numbers"),
        ({"y": [[1.0]] * 16}, r"y has shape \(16, 1\)"),
        ({"y": [True, False] * 8, "machine": "ridge"}, "machine='ridge' needs numbers as y"),
        ({"C": 0.0}, "C must be positive and finite, got 0.0"),
        ({"lengthscale": 0.0}, "lengthscale is 0.0; give positive"),
        ({"lengthscale": [1.0, 1.0, 1.0]}, "lengthscale has 3 entries for 2 encoded columns"),
        ({"seed": -1}, "seed must be an integer >= 0, got -1"),
        ({"seed": 1.5}, "seed must be an integer >= 0, got 1.5"),
        ({"epsilon": -0.1}, "epsilon must be at least 0 and finite, got -0.1"),
        ({"machine": "svm"}, "unknown machine 'svm'; did you mean 'svr'?"),
        ({"family": "rbf"}, "unknown family 'rbf'"),
        ({"family": "linear"}, "linear kernel has no lengthscale, got 0.5"),
        ({"family": "polynomial", "degree": 0, "lengthscale": None}, "degree must be an integer"),
        ({"degree": 2}, "se kernel takes no 'degree'"),
        ({"origin": "center"}, "unknown origin 'center'; did you mean 'centre'?"),
        ({"origin": {"w": 0.5}}, "origin names the column 'w'"),
        ({"origin": {"x": 2.0}}, r"the origin of 'x' is 2.0; give a number in \[0, 1\]"),
    ],
)
def test_illegal_arguments_are_named(changed, message):
    configs, y = related()
    with pytest.raises(DataError, match=message):
        svm.pretrain(**{"space": plane(), "configs": configs, "y": y, **FIXED, **changed})


def test_configurations_must_belong_to_the_space():
    configs, y = related()
    with pytest.raises(DataError, match="at least 3 observations, got 2"):
        svm.pretrain(plane(), configs[:2], y[:2])
    with pytest.raises(SpaceError):
        svm.pretrain(mixed(), configs, y)
