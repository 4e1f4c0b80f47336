"""Check that the package has no unsafe calls, and that files from strangers cannot run code or read other files."""

from __future__ import annotations

import ast
import json
import os
import shutil
import sqlite3
import sys
import tempfile
from pathlib import Path

import pytest
import xarray as xr
from testing_hostility import disk_with_room_for

import slayr_py as sl
from slayr_py.cli.config import load_config
from slayr_py.cli.objective import command_objective
from slayr_py.inference.sampling.run_folder import run_folder
from slayr_py.processes import this_process
from slayr_py.toolchain.cache import staging

PACKAGE = Path(sl.__file__).parent
SOURCES = sorted(PACKAGE.rglob("*.py"))

FORBIDDEN_MODULES = {"pickle", "cloudpickle", "dill", "joblib", "shelve", "marshal", "yaml", "pty", "commands"}
FORBIDDEN_CALLS = {
    *("eval", "exec", "compile", "__import__", "os.system", "os.popen", "subprocess.getoutput", "tempfile.mktemp"),
    *("subprocess.getstatusoutput", "pd.read_pickle", "pandas.read_pickle", "np.fromfile", "torch.load"),
}
PROCESSES = {"Parallel", "delayed"}
"""Names of joblib that start processes; what they exchange is pickled, and never read from a file or a network."""
RUNS = {"subprocess.run", "subprocess.Popen", "subprocess.call", "subprocess.check_call", "subprocess.check_output"}
IMPORTS = {"slayr_py/__init__.py", "slayr_py/cli/app.py", "slayr_py/cli/objective.py"}
"""Files that import a module by name: the package's own modules, and the objective of a configuration file."""


def dotted(node: ast.expr) -> str:
    if isinstance(node, ast.Attribute):
        return f"{dotted(node.value)}.{node.attr}"
    return node.id if isinstance(node, ast.Name) else ""


def offences(source: str, name: str) -> list[str]:
    found = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import | ast.ImportFrom):
            modules = [node.module or ""] if isinstance(node, ast.ImportFrom) else [alias.name for alias in node.names]
            if modules == ["joblib"] and {alias.name for alias in node.names} <= PROCESSES:
                continue
            found += [f"imports {module}" for module in modules if module.split(".")[0] in FORBIDDEN_MODULES]
        if not isinstance(node, ast.Call):
            continue
        called = dotted(node.func)
        options = {keyword.arg: keyword.value for keyword in node.keywords}
        if called in FORBIDDEN_CALLS:
            found.append(f"calls {called}")
        if called == "importlib.import_module" and name not in IMPORTS:
            found.append(f"calls {called}")
        if "shell" in options or (called in RUNS and not node.args):
            found.append(f"{called} uses a shell, or has no positional command")
        if called in RUNS and node.args and isinstance(node.args[0], ast.Constant | ast.JoinedStr | ast.BinOp):
            found.append(f"{called} takes its command as a string")
        if "allow_pickle" in options:
            found.append(f"{called} uses allow_pickle")
    return found


def test_nothing_is_unpickled_evaluated_or_given_to_a_shell():
    sources = {path.relative_to(PACKAGE.parent).as_posix(): path.read_text(encoding="utf-8") for path in SOURCES}
    assert {name: found for name, source in sources.items() if (found := offences(source, name))} == {}


@pytest.mark.parametrize(
    "source",
    [
        "import pickle",
        "from joblib import load",
        "eval('1')",
        "os.system('true')",
        "subprocess.run('true')",
        "subprocess.run(f'rm {x}')",
        "subprocess.run(['true'], shell=True)",
        "np.load('x', allow_pickle=True)",
        "importlib.import_module(name)",
    ],
)
def test_the_search_finds_what_it_looks_for(source):
    assert len(offences(source, "slayr_py/new.py")) == 1


EVIL = "__import__('pathlib').Path('evil').touch()"


@pytest.fixture
def folder(tmp_path, monkeypatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.path", list(sys.path))
    return tmp_path


def test_reading_a_configuration_runs_only_the_module_that_it_names(folder):
    (folder / "study.toml").write_text(
        f"""
        [study]
        name = "{EVIL}"
        [objective]
        command = ["true", "{{x}}"]
        [space]
        x = {{ type = "categorical", choices = ["{EVIL}", "$(touch evil)", "; touch evil", "`touch evil`"] }}
        """
    )
    config = load_config(folder / "study.toml")
    for choice in config.space.dimensions[0].levels:
        with pytest.raises(sl.errors.ObjectiveError, match="wrote nothing"):
            config.objective({"x": choice})
    assert [path.name for path in folder.iterdir()] == ["study.toml"]


@pytest.mark.parametrize("placeholder", ["{x.__class__}", "{x[0]}", "{__import__}", "{0}", "{}"])
def test_placeholders_reach_parameters_only(folder, placeholder):
    with pytest.raises(sl.DataError, match="placeholder"):
        command_objective(["echo", placeholder], ["x"], folder)


def test_a_value_is_one_argument_whatever_is_in_it(folder):
    code = "import sys; open('seen', 'w').write(repr(sys.argv[1:])); print(1)"
    command = ["{python}", "-c", code, "--name={x}", "--lr={lr:.3g}", "$HOME; rm -rf {{}}", "{config}"]
    config = {"x": "a b'\"$HOME;|&\n*{y}", "lr": 0.00012345}
    assert command_objective(command, ["x", "lr"], folder)(config) == 1.0
    seen = [f"--name={config['x']}", "--lr=0.000123", "$HOME; rm -rf {}", json.dumps(config)]
    assert (folder / "seen").read_text() == repr(seen)


def test_temporary_folders_are_private(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setenv("SLAYR_CACHE_DIR", str(tmp_path / "cache"))
    before = os.umask(0)
    try:
        with run_folder() as run, staging("program") as build:
            assert [path.stat().st_mode & 0o777 for path in (run, build)] == [0o700, 0o700]
    finally:
        os.umask(before)
    assert not run.exists() and not build.exists()


def test_a_link_in_the_way_of_a_run_folder_is_not_followed(tmp_path, monkeypatch):
    """All users can write to the temporary folder: one could put links there with the names of dead processes."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "tmp"))
    mine = tmp_path / "mine"
    mine.mkdir()
    (mine / "thesis").write_text("chapter 1")
    os.utime(mine / "thesis", (0, 0))
    os.utime(mine, (0, 0))
    (tmp_path / "tmp").mkdir()
    dead = this_process()._replace(pid=2**22 - 1)
    (tmp_path / "tmp" / f"slayr-run-{dead}-x").symlink_to(mine)
    with run_folder():
        pass
    assert (mine / "thesis").read_text() == "chapter 1"


@pytest.fixture(scope="session")
def saved(tmp_path_factory, plane) -> Path:
    fit = sl.GaussianProcess(plane).fit([{"x": 1.0, "y": 2.0}, {"x": 3.0, "y": 4.0}], [1.0, 2.0], method="map")
    return fit.save(tmp_path_factory.mktemp("saved") / "fit")


def edited(change):
    def edit(folder: Path) -> None:
        record = json.loads((folder / "record.json").read_text())
        change(record)
        (folder / "record.json").write_text(json.dumps(record))

    return edit


def linked(name: str, target: str):
    def link(folder: Path) -> None:
        (folder / name).unlink()
        (folder / name).symlink_to(target)

    return link


def regrouped(change):
    def regroup(folder: Path) -> None:
        with xr.open_datatree(folder / "posterior.nc") as tree:
            groups = {name: child.to_dataset().load() for name, child in tree.children.items()}
        change(groups)
        (folder / "posterior.nc").unlink()
        xr.DataTree.from_dict(groups).to_netcdf(folder / "posterior.nc")

    return regroup


def drop(groups, group: str, name: str) -> None:
    groups[group] = groups[group].drop_vars(name)


def shorten(groups, group: str) -> None:
    groups[group] = groups[group].isel(observation=slice(1))


POSTERIORS = [
    ("a record that is a list", lambda folder: (folder / "record.json").write_text("[1]")),
    ("a record that is no text", lambda folder: (folder / "record.json").write_bytes(b"\xff\xfe")),
    ("a record a hundred thousand deep", lambda folder: (folder / "record.json").write_text("[" * 100_000)),
    ("priors that are a list", edited(lambda record: record.update(priors=[1]))),
    ("draws without a posterior", regrouped(lambda groups: groups.pop("posterior"))),
    ("draws without length-scales", regrouped(lambda groups: drop(groups, "posterior", "lengthscale"))),
    ("targets that are one too few", regrouped(lambda groups: shorten(groups, "observed_data"))),
    ("a kernel to come", edited(lambda record: record["kernel"].update(name="quantum"))),
    ("an option of no kernel", edited(lambda record: record["kernel"].update(options={"code": EVIL}))),
    ("an option beyond reason", edited(lambda record: record["kernel"].update(options={"p": 10**9}))),
    ("a prior of no family", edited(lambda record: record["priors"]["mu"].update(family="os.system"))),
    ("a space of no kind", edited(lambda record: record["space"]["space"].update(hyperparameters=[3]))),
    ("a record that is a device", linked("record.json", "/dev/null")),
    ("a record that is another file", linked("record.json", "/etc/passwd")),
    ("draws that are another file", linked("posterior.nc", "/etc/passwd")),
    ("draws that are a pickle", lambda folder: (folder / "posterior.nc").write_bytes(b"\x80\x04cos\nsystem\n.")),
    ("no draws", lambda folder: (folder / "posterior.nc").unlink()),
]


@pytest.mark.stan
@pytest.mark.parametrize("change", [row[1] for row in POSTERIORS], ids=[row[0] for row in POSTERIORS])
def test_a_saved_posterior_that_is_none_is_named(tmp_path, saved, change):
    folder = tmp_path / "fit"
    shutil.copytree(saved, folder)
    change(folder)
    with pytest.raises(sl.StorageError, match=".*/fit is not a readable saved posterior") as caught:
        sl.Posterior.load(folder)
    assert type(caught.value) is sl.StorageError and "root:" not in str(caught.value)
    assert "restore a copy" in str(caught.value)


@pytest.mark.stan
def test_a_full_disk_leaves_an_older_posterior_as_it_was(tmp_path, saved):
    folder = tmp_path / "fit"
    shutil.copytree(saved, folder)
    fit = sl.Posterior.load(folder)
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    for room in (10, 20_000):
        with disk_with_room_for(room), pytest.raises(sl.StorageError, match="cannot save .*/fit: .*make room") as full:
            fit.save(folder)
        assert type(full.value) is sl.StorageError
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before


@pytest.mark.stan
def test_a_study_holds_nothing_but_json_and_numbers(study_file, go_on):
    """Some of Optuna's samplers store pickles in a study and load them; ours stores none."""
    go_on(study_file, 5, n_initial=3)
    database = sqlite3.connect(study_file)
    tables = [name for (name,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
    for table in tables:
        rows = database.execute(f"SELECT * FROM {table}")
        names = [column[0] for column in rows.description]
        for name, cell in ((name, cell) for row in rows for name, cell in zip(names, row, strict=True)):
            assert cell is None or isinstance(cell, int | float | str), (table, name)
            if name.endswith("_json"):
                json.loads(cell)
    database.close()
    assert len(tables) > 5


def test_a_study_cannot_steer_the_terminal(tmp_path, go_on, slayr):
    def objective(config):
        raise ValueError("\x1b]0;owned\x07 \x9b2J \udcff \r done")

    with pytest.raises(sl.errors.ObjectiveError):
        go_on(tmp_path / "study.db", 3, objective)
    code, out, _ = slayr("inspect", tmp_path / "study.db")
    assert code == 0 and r"raised ValueError: \x1b]0;owned\x07 \x9b2J \udcff \r done" in out
