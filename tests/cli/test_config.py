from __future__ import annotations

import re
import tomllib
from dataclasses import asdict
from pathlib import Path

import pytest
from ConfigSpace import ConfigurationSpace

import slayr_py as sl
from slayr_py.cli import keys
from slayr_py.cli.checks import ConfigError, check_keys
from slayr_py.cli.config import load_config
from slayr_py.errors import DataError, SlayrError
from slayr_py.kernels import LogNormal, Matern
from slayr_py.search import KernelSearch
from slayr_py.space import Encoder
from slayr_py.study import LOOP_OPTIONS, create_study

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


def write(folder: Path, text: str) -> Path:
    path = folder / "study.toml"
    path.write_text(text)
    return path


OBJECTIVE = '[objective]\nfunction = "bowls:bowl"\n'
SPACE = '[space]\nx = { type = "float", lower = 0.0, upper = 1.0 }\n'


def test_a_file_with_all_sections(folder):
    config = load_config(
        write(
            folder,
            f"""
[study]
name = "net"
storage = "sqlite:///net.db"
budget = 9
n_initial = 3
seed = 4
direction = "maximize"
noisy = true
timeout = 10
output = "out"

[gp]
kernel = {{ name = "matern", p = 1 }}
method = "laplace"
chains = 2
warmup = 30
draws = 40
priors = {{ sigma_n = {{ family = "LogNormal", mu = -2.0, sigma = 1.0 }} }}

[acquisition]
name = "lcb"
delta = 0.25
{OBJECTIVE}max_seconds = 7
{SPACE}""",
        )
    )
    assert (config.name, config.storage, config.output) == ("net", "sqlite:///net.db", Path("out"))
    options = dict(config.options)
    kernel = options.pop("kernel")
    acquisition = options.pop("acquisition")
    assert isinstance(kernel, Matern) and kernel.options()["p"] == 1
    assert acquisition.name == "lcb" and acquisition.options()["delta"] == 0.25
    assert options == {
        "budget": 9,
        "n_initial": 3,
        "seed": 4,
        "direction": "maximize",
        "noisy": True,
        "timeout": 10,
        "max_seconds": 7,
        "method": "laplace",
        "chains": 2,
        "warmup": 30,
        "draws": 40,
        "priors": {"sigma_n": LogNormal(-2.0, 1.0)},
    }
    assert config.objective({"x": 0.3, "k": "a"}) == 0.0


def test_prior_knowledge(folder):
    """Tables with a family are distributions, others are weights, whose levels are keys, thus texts."""
    text = """
[study]
default = true
prior_beta = 3.0
prior = { lr = { family = "LogNormal", mu = -7.0, sigma = 1.0 }, batch = { 16 = 1, 32 = 3, 64 = 1 } }
[space]
lr = { type = "float", lower = 1e-4, upper = 0.1, log = true }
batch = [16, 32, 64]
"""
    config = load_config(write(folder, text), has_objective=False)
    beliefs = {"lr": LogNormal(-7.0, 1.0), "batch": {"16": 1, "32": 3, "64": 1}}
    assert config.options == {"default": True, "prior_beta": 3.0, "prior": beliefs}
    study = create_study(config.space, **config.options)
    weights = study.user_attrs["slayr:study"]["prior"]["batch"]["weights"]
    assert weights == {"16": 0.2, "32": 0.6, "64": 0.2}
    assert (
        load_config(
            write(folder, text.replace(text[text.index("prior = ") : text.index("[space]")], 'prior = "space"\n')),
            has_objective=False,
        ).options["prior"]
        == "space"
    )
    words = r"the prior of 'lr' in prior in \[study\]: unknown prior family 'Norm'; known: Normal, .*, Beta$"
    with pytest.raises(ConfigError, match=words):
        load_config(write(folder, text.replace("LogNormal", "Norm")), has_objective=False)


def test_the_shortest_valid_file(folder):
    config = load_config(write(folder, OBJECTIVE + SPACE))
    assert (config.name, config.storage, config.output, config.options) == ("study", None, Path("."), {})


def test_the_file_in_the_manual_is_valid(slayr, folder):
    """Its values have the types of their keys, and those of fits are the defaults."""
    manual = slayr("optimize", "--help")[1].partition("A configuration file:\n")[2].partition("\n  Kernels,")[0]
    document = tomllib.loads(manual)
    for section in ("study", "objective", "gp", "pretrain"):
        known = keys.types(getattr(keys, section.upper()))
        assert check_keys(document[section], known, section).keys() == known.keys()
    (folder / "net.py").write_text("def loss(config):\n    return 1.0\n")
    (folder / "runs.csv").write_text("lr,layers,act,size,slope,epochs,value\n0.01,2,relu,small,,20,1.5\n")
    text = manual.partition("\n    [pretrain]")[0] + manual[manual.index("\n    [acquisition]") :]
    text = re.sub(r"\n    command = (?=\[)", "\n    # command = ", text)
    options = load_config(write(folder, text)).options
    assert asdict(LOOP_OPTIONS).items() <= options.items()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[studdy]\n", "unknown key 'studdy' in study.toml; did you mean 'study'"),
        ("[study]\nbuget = 3\n", r"unknown key 'buget' in \[study\]; did you mean 'budget'"),
        ('[study]\nkernel = "SE"\n', r"unknown key 'kernel' in \[study\]; it belongs in \[gp\]"),
        ('[study]\nacquisition = "ei"\n', r"'acquisition' in \[study\]; \[acquisition\] is a section of its own"),
        ("[gp]\nmax_seconds = 3\n", r"unknown key 'max_seconds' in \[gp\]; it belongs in \[objective\]"),
        ('[study]\nbudget = "many"\n', r"budget in \[study\] must be an integer, not 'many'"),
        ("[study]\nseed = true\n", "seed.*must be an integer, not True"),
        ("[gp]\ndraw = 3\n", r"'draw' in \[gp\]; did you mean 'draws'"),
        ('[gp]\nkernel = { name = "matern", q = 1 }\n', r"kernel in \[gp\]: .*'matern' takes no option 'q'; known: p"),
        ('[gp]\nkernel = { name = "fm" }\n', r"kernel in \[gp\]: .*ordinal or categorical"),
        ('[gp]\nkernel = { name = "auto", p = 1 }\n', "'auto' takes none"),
        ("[study]\nnoisy = 1\n", "noisy in .study. must be true or false, not 1"),
        ('[gp]\nkernel = { nam = "matern" }\n', "name or a table with one"),
        ('[gp]\nkernel = { name = "composite" }\n', r"kernel in \[gp\]: .*'composite' needs an expression"),
        ('[gp]\nkernel = { name = "SE + LIN", p = 1 }\n', r"kernel in \[gp\]: .*'SE \+ LIN' takes no option 'p'"),
        ('[gp]\npriors = { lengthscale = { x = { family = "Cauchy" } } }\n', "prior of 'x' in 'lengthscale'.*Cauchy"),
        ("[gp]\npriors = { sigma_n = 3 }\n", "prior of 'sigma_n'.*table"),
        ('[gp]\npriors = { sigma_n = { family = "Cauchy" } }\n', "prior of 'sigma_n'.*Cauchy"),
        ('[acquisition]\nname = "lcb"\ndetla = 0.1\n', "unknown key 'detla'.*did you mean 'delta'"),
        ('[acquisition]\nname = "lcb"\ndelta = 1.5\n', "1.5"),
        ('[acquisition]\nname = "eii"\n', "did you mean 'ei'"),
        ("[acquisition]\ndelta = 0.1\n", "needs a name"),
        ("budget = 3\n", r"unknown key 'budget' in study.toml; it belongs in \[study\]"),
        ("[study\n", "not valid TOML"),
    ],
)
def test_wrong_keys_and_values_are_named(folder, text, words):
    with pytest.raises(DataError, match=words):
        load_config(write(folder, text + OBJECTIVE + SPACE))


@pytest.mark.parametrize(
    ("line", "section", "parameter"),
    [
        ("noisy = true", "it belongs in [study]", '{ type = "constant", value = true }'),
        ("seed = 7", "it belongs in [study]", '{ type = "constant", value = 7 }'),
        ('kernel = "matern"', "it belongs in [gp]", '{ type = "constant", value = "matern" }'),
        ("max_seconds = 0.5", "it belongs in [objective]", '{ type = "constant", value = 0.5 }'),
        ('acquisition = "ei"', "[acquisition] is a section of its own", '{ type = "constant", value = "ei" }'),
        (
            'directions = ["minimize", "maximize"]',
            "it belongs in [study]",
            '{ type = "categorical", choices = ["minimize", "maximize"] }',
        ),
        ('constraints = ["a <= 1"]', "it belongs in [study]", '{ type = "categorical", choices = ["a <= 1"] }'),
        ('within = ["x <= 1"]', "it belongs in [study]", '{ type = "categorical", choices = ["x <= 1"] }'),
    ],
)
def test_an_option_in_the_space_is_refused_unless_it_is_written_as_a_parameter(folder, line, section, parameter):
    name = line.partition(" = ")[0]
    written = f"{name} = {parameter}"
    with pytest.raises(ConfigError) as error:
        load_config(write(folder, f"{OBJECTIVE}{SPACE}\n{line}\n"))
    assert str(error.value) == f"unknown key {name!r} in [space]; {section}; write a parameter as {written}"
    assert name in load_config(write(folder, f"{OBJECTIVE}{SPACE}\n{written}\n")).space.space


@pytest.mark.parametrize(
    "line",
    [
        'kernel = ["rbf", "poly"]',
        "seed = [0, 10]",
        "C = [0.1, 10.0]",
        'direction = ["minimize", "maximize"]',
        'directions = ["north", "south"]',
        'constraints = ["hard", "soft"]',
        "layers = [1, 2, 3]",
        "depth = 3",
    ],
)
def test_a_parameter_may_be_called_like_an_option(folder, line):
    assert line.partition(" = ")[0] in load_config(write(folder, f"{OBJECTIVE}{SPACE}\n{line}\n")).space.space


MIXED = (
    SPACE
    + """
layers = { type = "integer", lower = 1, upper = 4 }
act = { type = "categorical", choices = ["relu", "leaky", "tanh"] }
"""
)


@pytest.mark.parametrize(
    ("text", "options"),
    [
        ('{ name = "hierarchical", base = "rq", combine = "sum" }', {"base": "rq", "combine": "sum"}),
        ('{ name = "hierarchical", base = "matern", p = 1 }', {"base": "matern", "combine": "product", "p": 1}),
        ('{ name = "fm", modulator = "power", orders=2, tau = 1.5 }', {"modulator": "power", "orders": 2, "tau": 1.5}),
        (
            '{ name = "fm", modulator = { name = "hierarchical", base = "se" } }',
            {"modulator": {"name": "hierarchical", "base": "se", "combine": "product"}},
        ),
        ('{ name = "separable", graph = "diffusion" }', {"graph": "diffusion", "combine": "product"}),
        ('{ name = "LIN[x] + SE", max_leaves = 3 }', {"expression": "LIN[x] + SE", "max_leaves": 3}),
        ('{ name = "composite", expression = "LIN[x]+SE" }', {"expression": "LIN[x] + SE"}),
    ],
)
def test_every_kernel_has_its_options(folder, text, options):
    kernel = load_config(write(folder, f"[gp]\nkernel = {text}\n" + OBJECTIVE + MIXED)).options["kernel"]
    assert kernel.options() == options


def test_a_kernel_search_is_checked_with_the_file(folder):
    by_name = load_config(write(folder, '[gp]\nkernel = "search"\n' + OBJECTIVE + SPACE))
    assert by_name.options["kernel"] == "search"

    def written(options: str) -> Path:
        return write(folder, f'[gp]\nkernel = {{ name = "search", {options} }}\n{OBJECTIVE}{SPACE}')

    search = load_config(written('budget = 8, base = ["SE", "LIN"]')).options["kernel"]
    assert isinstance(search, KernelSearch) and (search.budget, search.base) == (8, ("SE", "LIN"))
    assert (search.max_leaves, search.single) == (4, True)
    for options, words in (
        ("budgt = 8", r"unknown key 'budgt' in kernel in \[gp\]; did you mean 'budget'"),
        ("budget = 1", r"kernel in \[gp\]: budget=1 is smaller than the number of base kernels"),
        ('base = ["SEE"]', "unknown base kernel 'SEE'"),
    ):
        with pytest.raises(ConfigError, match=words):
            load_config(written(options))


def test_graphs_by_name_or_by_edges(folder):
    graphs = '[graphs]\nlayers = "path"\nact = [["relu", "leaky"], ["leaky", "tanh", 0.5]]\n'
    encoder = load_config(write(folder, OBJECTIVE + graphs + MIXED)).space
    assert set(encoder.graphs["act"].edges(data="weight")) == {("relu", "leaky", 1.0), ("leaky", "tanh", 0.5)}
    assert set(encoder.graphs["layers"].edges) == {(1, 2), (2, 3), (3, 4)}


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ('act = [["relu", "leaky"], ["leaky", "tanh", "0.5"]]', "weight '0.5'"),
        ('acts = "path"', "'acts'"),
    ],
)
def test_invalid_graphs_are_named(folder, line, words):
    with pytest.raises(SlayrError, match=words):
        load_config(write(folder, f"[graphs]\n{line}\n" + OBJECTIVE + MIXED))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (SPACE, r"no \[objective\] section"),
        (OBJECTIVE, r"no \[space\] section"),
        ("[objective]\n" + SPACE, "needs either function"),
        ('[objective]\nfunction = "bowls:bowl"\ncommand = ["a"]\n' + SPACE, "needs either function"),
        ('[objective]\nfunction = "bowls.bowl"\n' + SPACE, "must read"),
        ('[objective]\nfunction = "bowlz:bowl"\n' + SPACE, "no module 'bowlz'"),
        ('[objective]\nfunction = "bowls:bowle"\n' + SPACE, "no function 'bowle'; did you mean 'bowl'"),
        ('[objective]\ncommand = "train"\n' + SPACE, "command.*must be a list"),
        ('[objective]\ncommand = ["train", 3]\n' + SPACE, "list of strings"),
        ('[objective]\ncommand = ["train", "{y}"]\n' + SPACE, "placeholder {y}"),
        ('[objective]\ncommand = ["train", "{x.real}"]\n' + SPACE, r"placeholder {x\.real}"),
        ('[objective]\ncommand = ["train", "{x"]\n' + SPACE, "malformed placeholder"),
        ('[objective]\ncommand = ["train"]\nmax_seconds = 0\n' + SPACE, "positive number of seconds"),
    ],
)
def test_wrong_objectives_are_named(folder, text, words):
    with pytest.raises(ConfigError, match=words):
        load_config(write(folder, text))


def test_the_error_of_a_failing_import_has_its_reason(folder):
    (folder / "needy.py").write_text("import a_module_nobody_has\n")
    with pytest.raises(ConfigError, match="not installed: a_module_nobody_has"):
        load_config(write(folder, '[objective]\nfunction = "needy:f"\n' + SPACE))
    (folder / "angry.py").write_text("raise ValueError('not today')\n")
    with pytest.raises(ConfigError, match="raised ValueError: not today"):
        load_config(write(folder, '[objective]\nfunction = "angry:f"\n' + SPACE))


def test_the_file_of_a_space(folder):
    space = ConfigurationSpace({"x": (0.0, 1.0), "k": ["a", "b"]})
    space.to_json(folder / "space.json")
    assert load_config(write(folder, OBJECTIVE + '[space]\nfile = "space.json"\n')).space.space == space
    with pytest.raises(ConfigError, match="both a file and the parameter 'y'"):
        load_config(write(folder, OBJECTIVE + '[space]\nfile = "space.json"\ny = 3\n'))


def test_a_pruner_and_a_cost(folder):
    keys = "[study]\nprune = { probability = 0.1, n_startup_trials = 4 }\ncost = 'seconds'\nmax_cost = 60\n"
    options = load_config(write(folder, keys + OBJECTIVE + SPACE)).options
    assert options == {"pruner": sl.Prune(0.1, 4), "cost": "seconds", "max_cost": 60}
    with pytest.raises(ConfigError, match=r"prune in \[study\]: probability must be a single number in .* got 2"):
        load_config(write(folder, "[study]\nprune = { probability = 2 }\n" + OBJECTIVE + SPACE))


def test_a_stopping_rule(folder):
    rule = "[study]\nstop = { epsilon = 0.5, probability = 0.9 }\n"
    assert load_config(write(folder, rule + OBJECTIVE + SPACE)).options["stop"] == sl.Regret(0.5, 0.9)
    for text, words in (
        ("{ probability = 0.9 }", r"needs an epsilon: stop = \{ epsilon = 0.01 \}"),
        ("{ epsilon = -1 }", r"stop in \[study\]: epsilon must be .* got -1"),
        ("{ epsilon = 1, probabilty = 0.9 }", "did you mean 'probability'"),
        ("{ epsilon = true }", "epsilon in stop in .* not True"),
    ):
        with pytest.raises(ConfigError, match=words):
            load_config(write(folder, f"[study]\nstop = {text}\n" + OBJECTIVE + SPACE))


@pytest.mark.parametrize("name", ["nusvr_diabetes", "train_command"])
def test_the_examples_load_and_evaluate(name, monkeypatch):
    monkeypatch.setattr("sys.path", list(__import__("sys").path))
    config = load_config(EXAMPLES / f"{name}.toml")
    configuration = {
        k: v.item() if hasattr(v, "item") else v for k, v in config.space.space.get_default_configuration().items()
    }
    first = config.objective(configuration)
    second = config.objective(configuration)
    assert first == second > 0


def test_a_table_of_rows_among_the_constraints(tmp_path, capsys):
    (tmp_path / "stock.csv").write_text("name,mass,code\nx,120.5,01\ny,99.5,02\nz,120.5,02\n")
    (tmp_path / "c.toml").write_text(
        '[space]\nmass = [50.0, 200.0]\ncode = ["01", "02"]\n[study]\nwithin = ["stock.csv", "mass <= 110"]\n'
    )
    config = load_config(tmp_path / "c.toml", has_objective=False)
    encoder = Encoder(config.space.space, within=config.options["within"])
    assert capsys.readouterr().err == "note: stock.csv has columns that are not parameters: name\n"
    assert [dict(each) for each in encoder.sobol(3, 1)] == [{"mass": 99.5, "code": "02"}]
