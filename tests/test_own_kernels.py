"""Stan functions of users as kernels: the example of ``docs/own-kernels.md``, and what is refused."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import subprocess

import numpy as np
import pytest
from test_extending import TOY_PROGRAM, check_laws
from testing_own_kernel import STAN, laboratory
from testing_programs import shared_program

import slayr_py as sl
from slayr_py.inference import check_kernel, replay
from slayr_py.inference.prediction.stan_engine import coordinate_table
from slayr_py.inference.sampling import programs
from slayr_py.inference.sampling.cold_starts import cold_starts
from slayr_py.inference.sampling.run import generate
from slayr_py.kernels.base import KERNELS
from slayr_py.study import load
from slayr_py.study.storage.attributes import model_difference, study_record
from slayr_py.toolchain import ensure_cmdstan, program_folder, stan_code

SPACE = {"x": (0.0, 1.0), "y": (0.0, 1.0)}


@pytest.fixture(autouse=True)
def _kernels_as_before():
    """Remove the kernels of the tests from the table."""
    before = dict(KERNELS)
    yield
    KERNELS.clear()
    KERNELS.update(before)


@pytest.fixture
def lab(tmp_path, monkeypatch):
    """Import the page's module; use the executable that all tests share for its program."""

    def shared(stan_file, *, include_paths, **_):
        code = stan_code(stan_file, include_paths)
        digest = hashlib.sha256(code.encode()).hexdigest()
        return dataclasses.replace(shared_program("bent_gp"), source_hash=digest, flags=())

    monkeypatch.setattr(programs, "compile_program", shared)
    return laboratory(tmp_path)


def declared(name="bent", file="bent.stan", covariance=None, **attributes):
    """Declare a kernel as a user would."""

    def ones(self, a, b, theta):
        return np.ones(np.broadcast_shapes(a.shape, b.shape)[:-1])

    return type(
        "Own",
        (sl.kernels.StanKernel,),
        {"name": name, "stan_file": file, "covariance": covariance or ones, **attributes},
    )


def test_the_kernel_obeys_the_laws(tmp_path):
    check_laws(laboratory(tmp_path).Bent())


def test_the_covariance_is_called_inside_the_unit_cube_only(tmp_path):
    def warped(self, a, b, theta):
        distance = (1 - (1 - a**0.7) ** 1.3) - (1 - (1 - b**0.7) ** 1.3)
        return (1 + a[..., 0]) * (1 + b[..., 0]) * np.exp(-0.5 * np.sum(np.square(distance), axis=-1))

    kernel = declared("kumaraswamy", tmp_path / "no.stan", warped)()
    encoder = sl.GaussianProcess(SPACE).encoder
    points = encoder.encode([{"x": x, "y": y} for x in (0.0, 1e-6, 0.5, 1.0) for y in (0.0, 1e-6, 1.0)])
    draws = {"sigma_f": np.ones(1)}
    k, gradient = kernel.cross_gradient(points, points, draws)
    assert np.isfinite(gradient).all() and np.isfinite(kernel.diagonal_gradient(points, draws)).all()
    # At the same point the slope of the exponential is 0, and that of the first factor remains; x is 0.5 in row 6.
    np.testing.assert_allclose(np.diagonal(gradient[0, ..., 0])[6], k[0, 6, 6] / 1.5, rtol=1e-4)
    np.testing.assert_allclose(kernel.diagonal_gradient(points, draws)[0, -1], [4.0, 0.0], atol=1e-4)


@pytest.mark.stan
def test_the_density_of_the_prior_does_not_depend_on_the_observations(lab):
    model = sl.GaussianProcess(SPACE, "bent").model
    points = model.encoder.encode(model.encoder.sobol(5, 1))
    table = coordinate_table({name: np.zeros((1, 1, *shape)) for name, shape in model.parameter_shapes.items()})
    densities = []
    for y in (np.zeros(5), np.arange(5.0)):
        data = model.stan_data(points, y, points[:0], prior_only=True) | {"want_density": 1}
        densities.append(generate(programs.compiled("bent_gp"), data, table, 1)["log_density.1"][0])
    assert densities[0] == densities[1]


@pytest.mark.stan
def test_a_study_with_the_kernel_is_resumed_and_reports_another_file(lab, tmp_path):
    stored = {"storage": f"sqlite:///{tmp_path}/study.db", "study_name": "bent", "method": "map", "progress": False}
    arguments = {"n_initial": 4, "seed": 1, **stored}
    result = sl.minimize(lab.objective, SPACE, budget=6, kernel=lab.Bent(), **arguments)
    assert len(sl.minimize(lab.objective, SPACE, budget=7, kernel="bent", **arguments).trials) == 7
    once = sl.minimize(lab.objective, SPACE, budget=7, kernel="bent", **{**arguments, "study_name": "once"})
    again = load(stored["storage"], "bent")
    assert again.trials["value"].tolist() == once.trials["value"].tolist()
    assert min(again.trials["value"][4:]) < min(again.trials["value"][:4])
    assert isinstance(result.posterior().kernel, lab.Bent)
    assert "#include" not in result.posterior().stan_code and "bent" in result.posterior().stan_code.lower()

    def change():
        declared_space = sl.study.StanGPSampler(SPACE, kernel="bent").strategy
        return model_difference(study_record(again.study), declared_space.kernel_record, declared_space.encoder)

    (tmp_path / "bent.stan").write_text(f"// a comment\n{STAN}")
    assert change() is None
    (tmp_path / "bent.stan").write_text(STAN.replace("-0.5", "-0.6"))
    assert change() == "the Stan file of the kernel has changed since the study was started"


@pytest.mark.stan
def test_a_fit_is_saved_and_replayed(lab, tmp_path):
    gp = sl.GaussianProcess(SPACE, "bent")
    configs = gp.encoder.sobol(8, 1)
    posterior = gp.fit(configs, [lab.objective(config) for config in configs], method="laplace", draws=20, seed=1)
    new = gp.encoder.sobol(3, 2)
    in_stan = posterior.predict(new, engine="stan")
    np.testing.assert_allclose(posterior.predict(new).draw_mean, in_stan.draw_mean, rtol=1e-8, atol=1e-8)
    assert posterior.idata.posterior["lengthscale"].shape[-1] == 2 and posterior.idata.posterior["bend"].ndim == 2
    posterior.save(tmp_path / "fit")
    assert replay(tmp_path / "fit").identical
    del KERNELS["bent"]
    with pytest.raises(sl.StorageError, match="unknown kernel 'bent'.*after the import of the module"):
        replay(tmp_path / "fit")


@pytest.mark.stan
def test_the_check_compares_stan_with_numpy(lab):
    assert 0 < check_kernel(lab.Bent(), SPACE) < 1e-10

    class Bent(lab.Bent):
        def covariance(self, a, b, theta):
            return super().covariance(a, b, theta) + 1e-7 * (a[..., 0] > b[..., 0])

    with pytest.raises(
        sl.DataError,
        match="differs between Stan and NumPy in .* of 720 .* the first is 1.44.* in Stan and 1.44.* of {'x': ",
    ):
        check_kernel(Bent(), SPACE)


@pytest.mark.stan
@pytest.mark.parametrize("per_column", [{}, {"lengthscale": sl.HalfNormal(1.0), "weight": sl.Beta(1.0, 2.0)}])
def test_the_program_has_the_data_and_the_parameters_of_the_contract(tmp_path, per_column):
    scalars = {"shift": sl.Normal(0.0, 1.0), "shape": sl.Gamma(2.0, 2.0)}
    arguments = ", ".join([*(f"vector {name}" for name in per_column), *(f"real {name}" for name in scalars)])
    text = f"vector flat(data matrix a, data matrix b, {arguments}) {{ return rep_vector(1, rows(a)); }}"
    (tmp_path / "flat.stan").write_text(text)
    own = declared("flat", tmp_path / "flat.stan", per_column=per_column, scalars=scalars)
    (tmp_path / "program.stan").write_text(own.own_program().text)
    stanc = ensure_cmdstan().path / "bin" / "stanc"
    paths = f"--include-paths={program_folder()},{tmp_path}"
    command = [str(stanc), "--info", paths, str(tmp_path / "program.stan")]
    program = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    priors = {name for parameter in own.contract.parameters for name in parameter.prior_entries}
    assert set(program["inputs"]) == {entry.name for entry in own.contract.entries} | priors
    assert list(program["parameters"]) == [parameter.coordinate for parameter in own.contract.parameters]
    assert set(program["transformed parameters"]) == {parameter.name for parameter in own.contract.parameters}
    gp = sl.GaussianProcess(SPACE, own())
    train = gp.model.encoder.encode(gp.model.encoder.sobol(12, 0))
    data = gp.model.stan_data(train, np.arange(12.0), train[:0])
    for start in cold_starts(own.contract.program, data, np.random.default_rng(0)):
        assert set(start) == set(program["parameters"]) - {"z_warp"}


@pytest.mark.stan
def test_an_error_of_stan_is_quoted_before_the_first_evaluation(tmp_path):
    (tmp_path / "broken.stan").write_text("vector broken(data matrix a, data matrix b) { return rep_vector(1 }\n")
    own = declared("broken", tmp_path / "broken.stan")
    with pytest.raises(sl.CompileError, match=r"broken\.stan does not compile; correct it: (.|\n)*[Ss]yntax error"):
        sl.minimize(lambda config: pytest.fail("evaluated"), SPACE, kernel=own(), progress=False)


def test_a_missing_file_is_an_error_before_the_first_evaluation(tmp_path):
    own = declared("gone", tmp_path / "gone.stan")
    with pytest.raises(sl.DataError, match=r"the Stan file of the kernel 'gone' does not exist: .*gone\.stan"):
        sl.minimize(lambda config: pytest.fail("evaluated"), SPACE, kernel=own(), progress=False)


def test_a_file_with_blocks_is_the_program(tmp_path):
    (tmp_path / "own.stan").write_text(TOY_PROGRAM)
    assert declared("own", tmp_path / "own.stan").own_program().text == TOY_PROGRAM
    (tmp_path / "own.stan").write_text(f"// data {{\n{STAN}")
    assert '#include "own.stan"' in declared("own", tmp_path / "own.stan").own_program().text


@pytest.mark.parametrize(
    ("attributes", "message"),
    [
        ({"name": "Bent"}, "'Bent' cannot be the name of a Stan function"),
        ({"scalars": {"mu": sl.Normal(0, 1)}}, "'mu' cannot be the name"),
        ({"scalars": {"shape": 2.0}}, "the prior of 'shape' is 2.0; use a prior"),
        ({"per_column": {"share": sl.Dirichlet(1.0)}}, "one of the supports positive, real, unit interval"),
        ({"per_column": {"c": sl.Normal(0, 1)}, "scalars": {"c": sl.Normal(0, 1)}}, "in per_column and in scalars"),
        ({"name": "matern"}, "the name 'matern' belongs to the kernel Matern"),
    ],
)
def test_illegal_declarations_are_refused(attributes, message):
    with pytest.raises(TypeError, match=message):
        declared(**attributes)


def test_a_class_with_another_file_needs_another_name():
    with pytest.raises(TypeError, match="Changed declares stan_file but no name"):
        type("Changed", (declared(),), {"stan_file": "other.stan"})


def test_a_covariance_of_the_wrong_shape_is_an_error(tmp_path):
    (tmp_path / "bent.stan").write_text(STAN)
    own = declared("bent", tmp_path / "bent.stan", lambda self, a, b, theta: a - b)
    points = sl.GaussianProcess(SPACE).encoder.encode([{"x": 0.1, "y": 0.2}])
    with pytest.raises(sl.DataError, match=r"covariance returns shape \(1, 1, 2\) .* return \(1, 1\)"):
        own().gram(points, points, {})
