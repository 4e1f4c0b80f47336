"""A toy of each extension, written as the guide in ``docs/architecture.md`` says, and checks of the page itself."""

from __future__ import annotations

import importlib.util
import inspect
import json
import re
import subprocess
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from testing_fits import quick_fit
from testing_spaces import plain_space

import slayr_py as sl
from slayr_py.acquisition import Acquisition, criteria
from slayr_py.acquisition.criteria import gradient_by_inputs
from slayr_py.inference import METHODS, ExactMarginal, FitOptions, Model, replay
from slayr_py.inference.sampling.approximations import Mode
from slayr_py.inference.sampling.method import FitMethod
from slayr_py.inference.sampling.programs import program_folder
from slayr_py.kernels import Kernel, LogNormal, base
from slayr_py.kernels.contracts import LENGTHSCALE, QUANTITIES, Contract, column_inputs
from slayr_py.kernels.expressions import LEAVES
from slayr_py.kernels.expressions.leaf import LeafEvaluation, LeafKernel
from slayr_py.kernels.hyperparameters import Hyperparameter
from slayr_py.kernels.priors import lengthscale_prior
from slayr_py.search.strategies import STRATEGIES
from slayr_py.search.task import Candidate
from slayr_py.space import Encoder
from slayr_py.toolchain import ensure_cmdstan

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "slayr_py"
PAGE = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")


@pytest.fixture(autouse=True)
def _tables_as_before():
    """Remove the toys from the tables."""
    tables = [base.KERNELS, LEAVES, criteria._BY_NAME, METHODS, STRATEGIES]
    before = [dict(table) for table in tables]
    yield
    for table, entries in zip(tables, before, strict=True):
        table.clear()
        table.update(entries)


def check_laws(kernel):
    """Check every law of ``tests/kernels/test_laws.py``."""
    spec = importlib.util.spec_from_file_location("laws", ROOT / "tests" / "kernels" / "test_laws.py")
    laws = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(laws)
    checked = 0
    for name, law in inspect.getmembers(laws, inspect.isfunction):
        if name.startswith("test_") and list(inspect.signature(law).parameters) == ["case"]:
            law((kernel, Encoder(plain_space())))
            checked += 1
    assert checked >= 8


TOY_GP = Contract("toy_gp", (), (LENGTHSCALE,))

TOY_FUNCTIONS = """
vector toy_cov(matrix sq, real sigma_f, vector lengthscale) {
  return square(sigma_f) * inv(1 + sq * inv_square(lengthscale));
}
"""

TOY_PROGRAM = """
functions {
  #include functions/distances.stan
  #include functions/toy.stan
  #include functions/warp.stan
  #include functions/probit.stan
  #include functions/gp_posterior.stan
  #include functions/priors.stan
  #include functions/coordinates.stan
}
data {
  #include blocks/data.stan
  matrix[N, D] X;
  matrix[M, D] X_new;
  #include blocks/lengthscale_prior.stan
}
transformed data {
  #include blocks/transformed_data.stan
  matrix[n_pairs, D] sq = squared_differences(X, X, lower_triangle(N));
  matrix[N * M, D] sq_cross = squared_differences(X, X_new, rectangle(N, M));
  matrix[n_pairs_new, D] sq_new = squared_differences(X_new, X_new, lower_triangle(M_cov));
}
parameters {
  real z_mu;
  real z_sigma_f;
  real z_sigma_n;
  vector[n_warp] z_warp;
  vector[D] z_lengthscale;
}
transformed parameters {
  #include blocks/transformed_parameters.stan
  vector<lower=0>[D] lengthscale = log_normal(
    lengthscale_score(z_lengthscale, lengthscale_location, lengthscale_scale, N),
    lengthscale_location, lengthscale_scale);
}
model {
  #include blocks/model.stan
  z_lengthscale ~ lengthscale_coordinate(lengthscale_location, lengthscale_scale, lengthscale_gamma, N, omit_jacobian);
  if (!prior_only) {
    vector[n_pairs] k = toy_cov(sq, sigma_f, lengthscale);
    target += gp_log_marginal(observed, warp, mu, k, rep_vector(square(sigma_f), N), sigma_n);
  }
}
generated quantities {
  vector[3 + n_warp + D] theta = stack([mu, sigma_f, sigma_n]', warp, lengthscale);
  #include blocks/generated_quantities.stan
  if (want_density) {
    #include blocks/prior.stan
    vector[n_pairs] k = toy_cov(sq, sigma_f, lengthscale);
    log_density[1] = log_prior + gp_log_marginal(observed, warp, mu, k, rep_vector(square(sigma_f), N), sigma_n);
  }
  if (want_pointwise || M || density_by_ep) {
    vector[n_pairs] k = toy_cov(sq, sigma_f, lengthscale);
    vector[N * M] cross = toy_cov(sq_cross, sigma_f, lengthscale);
    vector[n_pairs_new] k_new = toy_cov(sq_new, sigma_f, lengthscale);
    vector[N] variance = rep_vector(square(sigma_f), N);
    vector[M] variance_new = rep_vector(square(sigma_f), M);
    #include blocks/predictions.stan
  }
}
"""


def toy_kernel():
    """Declare a kernel, sigma_f^2 / (1 + h), as a module of ``slayr_py/kernels`` would."""

    class Toy(Kernel):
        name = "toy"
        contract = TOY_GP
        description = "toy kernel"

        def options(self):
            return {}

        def hyperparameters(self, encoder):
            columns = encoder.column_names
            return (Hyperparameter("lengthscale", lengthscale_prior(len(columns)), columns, "encoded_column"),)

        def stan_data(self, train, new):
            return column_inputs(train, new)

        def cross(self, a, b, draws):
            return self.cross_gradient(a, b, draws)[0]

        def cross_gradient(self, a, b, draws):
            difference = a.columns[:, None] - b.columns[None]
            weight = 1 / np.square(draws["lengthscale"])
            factor = 1 / (1 + np.einsum("sc,abc->sab", weight, np.square(difference)))
            variance = np.square(draws["sigma_f"])[:, None, None]
            real = list(a.encoder.column_of.values())
            slope = -2 * weight[:, None, None, real] * difference[None, ..., real]
            return variance * factor, (variance * np.square(factor))[..., None] * slope

    return Toy


def test_a_kernel_is_a_class_with_a_name_and_a_contract():
    kernel = toy_kernel()
    assert "toy" in sl.kernels.names() and sl.kernels.program_contracts()["toy_gp"] is TOY_GP
    gp = sl.GaussianProcess(plain_space(), "toy")
    assert isinstance(gp.kernel, kernel) and gp.kernel.asdict() == {"name": "toy", "options": {}}
    assert [h.name for h in gp.hyperparameters] == ["mu", "sigma_f", "sigma_n", "lengthscale"]
    train = gp.encoder.encode(gp.encoder.sobol(5, 1))
    entries = gp.kernel.stan_data(train, train) | {"y": np.zeros(5)}
    assert TOY_GP.data(entries, gp.hyperparameters)["lengthscale_location"].shape == (2,)
    check_laws(gp.kernel)


@pytest.mark.stan
def test_the_program_of_a_kernel_is_made_of_the_blocks(tmp_path):
    (tmp_path / "functions").mkdir()
    (tmp_path / "functions" / "toy.stan").write_text(TOY_FUNCTIONS, encoding="utf-8")
    (tmp_path / "toy_gp.stan").write_text(TOY_PROGRAM, encoding="utf-8")
    stanc = ensure_cmdstan().path / "bin" / "stanc"
    paths = f"--include-paths={tmp_path},{program_folder()}"
    command = [str(stanc), "--info", paths, str(tmp_path / "toy_gp.stan")]
    program = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    entries = {entry.name for entry in TOY_GP.entries}
    priors = {name for parameter in TOY_GP.parameters for name in parameter.prior_entries}
    assert set(program["inputs"]) == entries | priors
    assert list(program["parameters"]) == [parameter.coordinate for parameter in TOY_GP.parameters]
    assert set(program["transformed parameters"]) == {parameter.name for parameter in TOY_GP.parameters}
    assert set(program["generated quantities"]) == {quantity.name for quantity in QUANTITIES}


class Cosine(LeafKernel):
    """cos(2 pi sum_c delta_c / period)."""

    code = 11
    reads = "numbers"
    defaults = {"period": LogNormal(0.0, 0.5)}

    def evaluate(self, pairs, draws):
        period = self._entries(draws, "period")
        total = pairs.differences(self.columns).sum(axis=0)
        phase = 2 * np.pi * total / period.reshape(-1, *[1] * total.ndim)

        def by_inputs():
            for position, _ in self._real_inputs(pairs):
                yield position, -np.sin(phase) * 2 * np.pi / period.reshape(-1, *[1] * total.ndim)

        def by_hyperparameters(adjoint):
            terms = adjoint * np.sin(phase) * phase
            yield self._slope("period", terms.reshape(len(terms), -1).sum(axis=1, keepdims=True) / period)

        return LeafEvaluation(np.cos(phase), by_inputs, by_hyperparameters)


def test_a_leaf_is_a_class_in_the_table():
    LEAVES["COS"] = Cosine
    kernel = sl.kernels.from_name("COS * SE")
    assert kernel.expression == "COS * SE"
    check_laws(kernel)

    model = Model(plain_space(), kernel)
    train = model.encoder.encode(model.encoder.sobol(9, 1))
    marginal = ExactMarginal(model, train, np.linspace(-1, 1, 9), None)
    z = np.random.default_rng(3).normal(size=marginal.coordinates.size) / 2
    steps = 1e-5 * np.eye(len(z))
    expected = [(marginal(z + step).value - marginal(z - step).value) / 2e-5 for step in steps]
    np.testing.assert_allclose(marginal(z).gradient, expected, rtol=1e-5, atol=1e-5)


def toy_acquisition():
    @dataclass(frozen=True)
    class LowMean(Acquisition):
        name = "low_mean"
        factor: float = 2.0

        def value(self, mean, sd, state):
            return -self.factor * mean.mean(axis=0)

        def transformed_with_gradient(self, moments, state):
            by_mean = np.full(moments.mean.shape, -self.factor / len(moments.mean))
            return self.value(moments.mean, None, state), gradient_by_inputs(moments, by_mean, 0 * by_mean)

    return LowMean


def test_an_acquisition_is_one_class(branin_posterior):
    low_mean = toy_acquisition()
    assert "low_mean" in sl.acquisition.names() and sl.acquisition.from_name("low_mean") == low_mean()
    assert sl.acquisition.from_name("low_mean", factor=3.0).options() == {"factor": 3.0}
    rng = np.random.default_rng(0)
    suggestion = sl.acquisition.suggest(branin_posterior, "low_mean", best=0.0, t=1, rng=rng)
    standardised = (suggestion.mean - branin_posterior.y_mean) / branin_posterior.y_sd
    assert suggestion.value == pytest.approx(-2 * standardised)

    def bowl(config):
        return (config["x"] - 0.3) ** 2

    options = {"acquisition": "low_mean", "method": "map", "progress": False}
    result = sl.minimize(bowl, plain_space(), budget=4, n_initial=3, seed=1, **options)
    assert len(result.trials) == 4 and result.trials["value"].iloc[-1] < 0.3


def toy_method():
    class Copied(FitMethod):
        """Laplace's approximation by another name."""

        name = "toy"

        def sample(self, job):
            return METHODS["laplace"].sample(job)

    return Copied


@pytest.mark.stan
def test_a_fit_method_is_one_class():
    with pytest.raises(sl.DataError, match="unknown method 'toy'"):
        FitOptions(method="toy")
    method = toy_method()
    assert isinstance(METHODS["toy"], method)
    posterior = quick_fit([1.0, 3.0, 2.0, 5.0, 4.0], method="toy", seed=3)
    same = quick_fit([1.0, 3.0, 2.0, 5.0, 4.0], method="laplace", seed=3)
    np.testing.assert_array_equal(posterior.draws["lengthscale"], same.draws["lengthscale"])
    assert posterior.check().pareto_k == same.check().pareto_k
    assert posterior.record["arguments"]["method"] == "toy" and posterior.record["arguments"]["draws"] == 100
    assert replay(posterior).identical


@pytest.mark.stan
def test_a_study_repeats_the_fits_of_a_new_point_estimate():
    class Again(Mode):
        """The mode by another name."""

        name = "mode2"

    with pytest.raises(sl.DataError, match="ess is 50, but method='mode2' returns one point; leave ess out"):
        quick_fit([1.0, 3.0, 2.0], method="mode2", ess=50)
    options = {"n_initial": 3, "seed": 1, "method": "mode2", "progress": False}
    result = sl.minimize(lambda config: config["x"] ** 2, plain_space(), budget=4, **options)
    assert [again.identical for again in sl.study.replay(result.study, 3)] == [True]
    assert result.posterior().record["arguments"]["method"] == "mode2"


def test_a_search_strategy_is_one_function():
    def base_only(task):
        """Propose the base kernels."""
        yield [Candidate(node) for node in (*task.first, *task.base)]

    STRATEGIES["base_only"] = base_only
    search = sl.search.KernelSearch(plain_space(), base=["SE", "LIN"], strategy="base_only", budget=9, restarts=1)
    configs = Encoder(plain_space()).sobol(12, 1)
    result = search.run(configs, [config["z"] for config in configs], progress=False)
    assert {"SE", "LIN"} <= set(result.table["expression"])


def section(title):
    """Return the text of a section of the guide."""
    return re.search(rf"^## {title}\n(.*?)(?=^## |\Z)", PAGE, re.MULTILINE | re.DOTALL)[1]


def places(title):
    """Return the files in the table of a section of the guide."""
    table = re.search(r"^\| file \| what to write \|\n\|---\|---\|\n((?:\|.*\n)+)", section(title), re.MULTILINE)[1]
    return [re.match(r"\| `([^`]+)` \|", row)[1] for row in table.splitlines()]


@pytest.mark.parametrize(
    ("title", "most"),
    [
        ("a kernel", 6),
        ("a leaf", 4),
        ("an acquisition", 1),
        ("a fit method", 1),
        ("a search strategy", 3),
        ("an option", 2),
    ],
)
def test_an_extension_touches_few_files_that_exist(title, most):
    files = places(f"Add {title}")
    assert 1 <= len(files) <= most
    for file in files:
        assert (ROOT / file).parent.is_dir() if "NAME" in file else (ROOT / file).is_file(), file


def test_the_files_of_a_kernel_are_those_that_name_the_matern_kernel():
    """A kernel of the package has each of the places that the guide names."""
    names = {"stan/matern_gp.stan", "stan/functions/matern.stan", "slayr_py/kernels/matern.py"}
    assert names <= {file.replace("NAME", "matern") for file in places("Add a kernel")}
    for file in places("Add a kernel"):
        assert "matern" in (ROOT / file.replace("NAME", "matern")).read_text(encoding="utf-8").lower()


def tokens():
    """Return the texts in backticks outside blocks of code."""
    return set(re.findall(r"`([^`\n]+)`", re.sub(r"```.*?```", "", PAGE, flags=re.DOTALL)))


def homes():
    """Return the folders to which the page's paths are relative: the repository, the package and its folders."""
    return [ROOT, PACKAGE, *(path.parent for path in PACKAGE.rglob("__init__.py"))]


def test_every_path_of_the_page_exists():
    paths = {token for token in tokens() if re.fullmatch(r"[\w./]*(/[\w./]*|\.(py|stan|md|hpp))", token)}
    assert len(paths) > 20
    missing = {path for path in paths if "NAME" not in path and not any((home / path).exists() for home in homes())}
    assert missing == set()


def test_every_part_of_a_room_that_the_page_lists_exists():
    tables = re.findall(r"Inside `([\w/]+)/`.*?\n\n\| part \| task \|\n\|---\|---\|\n((?:\|.*\n)+)", PAGE)
    assert {room for room, _ in tables} >= {"kernels", "search", "inference", "study"}
    for room, rows in tables:
        parts = [name for row in rows.splitlines() for name in re.findall(r"`([\w/]+)`", row.split("|")[1])]
        assert parts
        for part in parts:
            path = PACKAGE / room / part
            assert path.is_dir() or path.with_suffix(".py").is_file(), f"{room}/{part}"
        modules = {path.stem for path in (PACKAGE / room).iterdir() if path.suffix == ".py" or path.is_dir()}
        assert modules - {"__init__", "__pycache__", ""} <= {part.strip("/").split("/")[0] for part in parts}


def test_every_dotted_name_of_the_page_is_one_of_the_package():
    sources = {}
    for path in PACKAGE.rglob("*.py"):
        name = ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
        sources[name] = path.read_text(encoding="utf-8")

    def is_known(module, name):
        """Return whether a module, class or variable of the package has the name."""
        if any(f".{other}".endswith(f".{module}.{name}") for other in sources):
            return True
        texts = [text for other, text in sources.items() if f".{other}".endswith(f".{module}")]
        defined = rf"^(def |class |from .* import .*\b)?{name}\b|^    {name},$"  # an import may have several lines
        if any(re.search(defined, text, re.MULTILINE) for text in texts):
            return True
        texts = [
            text for text in sources.values() if re.search(rf"^class {module.rpartition('.')[2]}\b", text, re.MULTILINE)
        ]
        if any(re.search(rf"^    (def )?{name}\b", text, re.MULTILINE) for text in texts):
            return True
        return any(re.search(rf"\b{module}\.{name}\b", text) for text in sources.values())

    names = {token.partition("(")[0] for token in tokens() if not token.endswith((".py", ".md", ".stan"))}
    dotted = [name.rpartition(".") for name in names if re.fullmatch(r"\w+(\.\w+)+", name)]
    assert len(dotted) > 20
    assert [f"{module}.{name}" for module, _, name in dotted if not is_known(module, name)] == []


def test_the_table_of_rooms_has_their_imports():
    rows = re.findall(r"^\| (`.*) \| .* \| (.*?) ?\|$", section("Rooms").partition("`stan/`")[0], re.MULTILINE)
    (first, _), *rooms = rows
    assert len(rooms) == 10
    for names, cell in rooms:
        room = names.strip("`/")
        imports = set()
        for path in (PACKAGE / room).rglob("*.py"):
            imports |= set(re.findall(r"^ *from slayr_py\.(\w+)", path.read_text(encoding="utf-8"), re.MULTILINE))
        imports -= {room, *re.findall(r"`(\w+)`", first)}
        if "everything" not in cell:
            assert imports == set(re.findall(r"`(\w+)`", cell)), room
