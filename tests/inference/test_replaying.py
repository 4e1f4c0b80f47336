"""Replays of recorded runs: identical, or with their differences."""

from __future__ import annotations

import copy
import json
import sys
from dataclasses import replace

import numpy as np
import pytest
from ConfigSpace import ConfigurationSpace
from testing_processes import exit_code
from testing_programs import readable
from testing_spaces import branin, mixed_space

import slayr_py as sl
from slayr_py.errors import CompileError
from slayr_py.inference import replay
from slayr_py.space import Encoder

pytestmark = pytest.mark.stan

QUICK = {"chains": 2, "warmup": 200, "draws": 150}
WAYS = ["cold", "rounds", "warm", "warm rounds", "pathfinder", "laplace", "map"]


def stored(posterior, folder):
    """Save a posterior and read its record and data."""
    posterior.save(folder)
    return [json.loads((folder / name).read_text()) for name in ("record.json", "data.json")]


def problem(program):
    if program == "matern_gp":
        space = Encoder(ConfigurationSpace({"x1": (-5.0, 10.0), "x2": (0.0, 15.0)}))
        configs = space.sobol(10, 0)
        return sl.GaussianProcess(space), configs, [branin(c) for c in configs]
    space = mixed_space()
    configs = Encoder(space).sobol(12, 3)
    y = [np.log(c["lr"]) + c["layers"] + (c["act"] == "relu") + 0.1 * len(c["size"]) for c in configs]
    return sl.GaussianProcess(space), configs, y


@pytest.fixture(scope="module")
def fits(tmp_path_factory):
    """Saved (record, data) of every program and way of fitting."""
    found = {}
    with pytest.MonkeyPatch.context() as patch:
        # Failed diagnostics must not lead to another method: these tests compare bits.
        check = sl.Posterior.check
        patch.setattr(sl.Posterior, "check", lambda posterior: replace(check(posterior), ok=True))
        for program in ("matern_gp", "fm_gp"):
            gp, configs, y = problem(program)
            cold = gp.fit(configs, y, seed=1, **QUICK)
            start = cold.warm_start()
            fits = {
                "cold": cold,
                "rounds": gp.fit(configs, y, seed=2, ess=350, **QUICK),
                "warm": gp.fit(configs, y, seed=3, start=start, **QUICK),
                "warm rounds": gp.fit(configs, y, seed=4, start=start, ess=350, **QUICK),
                **{
                    method: gp.fit(configs, y, method=method, seed=5, **QUICK)
                    for method in ("pathfinder", "laplace", "map")
                },
            }
            for way, posterior in fits.items():
                assert posterior.record["program"]["name"] == program
                found[program, way] = stored(posterior, tmp_path_factory.mktemp("fit"))
    return found


@pytest.fixture
def cold(fits):
    return copy.deepcopy(fits["matern_gp", "cold"])


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("program", ["matern_gp", "fm_gp"])
def test_a_replay_is_identical(fits, program, way):
    record, data = fits[program, way]
    arguments = record["arguments"]
    assert arguments["method"] == (way if way in ("pathfinder", "laplace", "map") else "nuts")
    assert arguments.get("start", "cold") == ("warm" if "warm" in way else "cold")
    assert len(arguments.get("rounds", [150])) > 1 if "rounds" in way else arguments.get("rounds", [150]) == [150]
    again = replay(record, data)
    assert again.identical and again.agrees and again.differences == ()
    assert again.draws_sha256 == record["draws_sha256"] and again.worst == 0 < again.limit


def test_a_replay_does_not_change_its_arguments(cold):
    before = copy.deepcopy(cold)
    replay(*cold)
    assert cold == before


def test_a_posterior_and_a_folder_are_sources(mixed_posterior, tmp_path):
    from_posterior = replay(mixed_posterior)
    from_folder = replay(mixed_posterior.save(tmp_path / "fit"))
    assert from_posterior.identical and from_folder.identical
    assert from_posterior.record == mixed_posterior.record and "record" not in repr(from_folder)
    with pytest.raises(sl.DataError, match="a record cannot be replayed without data; pass the data too"):
        replay(mixed_posterior.record)
    stack = sl.Posterior.stack([mixed_posterior])
    with pytest.raises(sl.DataError, match="a stack of 1 fits has no record; use one of its posteriors"):
        replay(stack)


def test_other_draws_that_agree(cold):
    record, data = cold
    record["arguments"]["seed"] = 11  # like another compiler: other draws of the same posterior
    again = replay(record, data)
    assert not again.identical and again.agrees and 0 < again.worst <= again.limit


def test_differences_are_listed(cold):
    record, data = cold
    record["draws_sha256"] = "0" * 64
    record["cmdstan"]["compiler"] = "g++ 4.8"
    record["program"]["flags"] = ["O=1", *record["program"]["flags"]]
    record["machine"]["features"] = [*record["machine"]["features"], "avx1024"]
    record["packages"]["tensorflow"] = "2.0"
    again = replay(record, data)
    assert not again.identical and again.agrees and len(again.differences) == 4
    assert any(line.startswith("cmdstan.compiler: was g++ 4.8, is ") for line in again.differences)
    assert "program.flags: was O=1, is without" in again.differences
    assert "machine.features: was avx1024, is without" in again.differences
    assert "packages.tensorflow: was 2.0, is absent" in again.differences


def test_a_summary_of_other_draws_does_not_agree(cold):
    record, data = cold
    record["summary"]["sigma_f"]["sd"] *= 30  # the error of sd is large, by how much depends on the draws
    again = replay(record, data)
    assert not again.agrees and again.worst_of == "sd of sigma_f" and again.worst > again.limit


def test_a_mode_elsewhere_does_not_agree(fits):
    record, data = copy.deepcopy(fits["matern_gp", "map"])
    record["summary"]["lengthscale[x2]"]["mean"] *= 1.1
    again = replay(record, data)
    assert again.identical and not again.agrees and again.worst == pytest.approx(1 / 11)


def test_without_the_accelerated_likelihood_the_readable_one_is_used(fits, monkeypatch):
    module = sys.modules["slayr_py.inference.replaying"]

    def refused(name, progress=None, likelihood=None):
        if likelihood == "accelerated":
            raise CompileError("no such instruction")
        return readable(name)

    monkeypatch.setattr(module, "compiled", refused)
    fit = fits["matern_gp", "laplace"]
    again = replay(*fit)
    assert not again.identical and again.agrees, (again.worst, again.worst_of)
    assert "program.likelihood: was accelerated, is readable" in again.differences
    record = fit[0] | {"program": fit[0]["program"] | {"likelihood": "readable"}}
    monkeypatch.setattr(module, "compiled", lambda *_: (_ for _ in ()).throw(CompileError("nor that one")))
    with pytest.raises(CompileError, match="nor that one"):
        replay(record, fit[1])


def test_a_fresh_process_replays_a_saved_folder_bit_for_bit(mixed_posterior, tmp_path):
    folder = mixed_posterior.save(tmp_path / "fit")
    code = (
        "import sys; from slayr_py.inference import replay; again = replay(sys.argv[1]);"
        "assert (again.identical, again.agrees, again.differences, again.draws_sha256) == (True, True, (), sys.argv[2])"
    )
    assert exit_code(code, str(folder), mixed_posterior.record["draws_sha256"]) == 0


def change(path, value):
    def changed(record):
        *way, last = path.split(".")
        for name in way:
            record = record[name]
        if value is KeyError:
            del record[last]
        else:
            record[last] = value

    return changed


HOSTILE = [
    ("program.name", "../../x", r"'../../x' is not the program"),
    ("program.name", "fm_gp", "'fm_gp' is not the program of its kernel, matern_gp"),
    ("program.name", ["matern_gp"], "is not the program"),
    ("program.likelihood", "/bin/sh", "its likelihood is '/bin/sh'"),
    ("program", 3, "TypeError"),
    ("format", 2, "its format is 2, .* reads 1; use the version that wrote it"),
    ("format", KeyError, "its format is None"),
    ("kernel.name", "os", "unknown kernel 'os'"),
    ("arguments", KeyError, "KeyError: 'arguments'"),
    ("arguments.method", "vi", "unknown method 'vi'"),
    ("arguments.method", {"nuts": 1}, "unknown method"),
    ("arguments.seed", -1, "seed must be an integer >= 0"),
    ("arguments.seed", "1; touch evil", "seed must be an integer"),
    ("arguments.chains", "2", "chains must be an integer"),
    ("arguments.target_acceptance", [0.8], r"target_acceptance must be .* got \[0.8\]"),
    ("start", [1], "not a warm start"),
    ("start", {"points": {"z_mu": [0.0]}, "step_size": [1.0], "inverse_metric": [1.0]}, "not a warm start"),
    ("summary", KeyError, "KeyError: 'summary'"),
    ("summary", {}, "its summary has , its model has mu, sigma_f, sigma_n, lengthscale.x1., lengthscale.x2."),
    ("summary.mu", {"mean": "x"}, "Error"),
    ("summary.mu.mean", "x", "ValueError"),
    ("machine", KeyError, "machine"),
    ("data_sha256", KeyError, "data_sha256"),
    ("data_sha256", "0" * 64, "the data do not belong to the record: .*; put the data.json"),
    ("space", "x", "Error"),
    ("priors.mu.family", "Cauchy", "Cauchy"),
]


@pytest.mark.parametrize(("path", "value", "words"), HOSTILE, ids=[f"{row[0]} {row[1]!r:.20}" for row in HOSTILE])
def test_an_invalid_record_is_rejected_before_anything_runs(cold, monkeypatch, path, value, words):
    record, data = cold
    change(path, value)(record)
    module = sys.modules["slayr_py.inference.replaying"]
    monkeypatch.setattr(module, "run", lambda *_, **__: pytest.fail("it ran"))
    monkeypatch.setattr(module, "compiled", lambda *_, **__: pytest.fail("it was compiled"))
    with pytest.raises(sl.StorageError, match=words) as caught:
        replay(record, data)
    assert type(caught.value) is sl.StorageError and ";" in str(caught.value)


@pytest.mark.parametrize("value", ["evil", {"a": 1}, [[1.0], [2.0, 3.0]], None, [1.0]])
def test_other_data_are_rejected(cold, value):
    record, data = cold
    with pytest.raises(sl.StorageError, match="do not belong to the record|not a readable run record"):
        replay(record, data | {"y": value})


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("record.json", None, "record.json cannot be read: .*No such file.*; give the folder"),
        ("record.json", "{", "record.json cannot be read"),
        ("record.json", "[]", "record.json is not a JSON object"),
        ("record.json", "{}", "record.json cannot be replayed: its format is None"),
        ("data.json", None, "data.json cannot be read"),
        ("data.json", "[" * 99_999, "data.json cannot be read"),
        ("data.json", '{"N": 1}', "record.json cannot be replayed: the data do not belong to the record"),
    ],
)
def test_an_invalid_folder(fits, tmp_path, name, text, words):
    record, data = fits["matern_gp", "cold"]
    for file, content in (("record.json", json.dumps(record)), ("data.json", json.dumps(data))):
        content = text if file == name else content
        if content is not None:
            (tmp_path / file).write_text(content)
    for path in (tmp_path, tmp_path / "record.json"):
        with pytest.raises(sl.StorageError, match=words):
            replay(path)
