"""``slayr replay``: what it says, and with which exit code."""

from __future__ import annotations

import json
import shutil

import pytest

from slayr_py.errors import InferenceError


@pytest.fixture(scope="module")
def saved(branin_posterior, tmp_path_factory):
    return branin_posterior.save(tmp_path_factory.mktemp("posterior"))


@pytest.fixture
def folder(saved, tmp_path):
    """A saved posterior, to be changed."""
    for name in ("record.json", "data.json"):
        shutil.copy(saved / name, tmp_path / name)
    return tmp_path


def change(folder, **entries):
    path = folder / "record.json"
    record = json.loads(path.read_text())
    for way, value in entries.items():
        *names, last = way.split("__")
        part = record
        for name in names:
            part = part[name]
        part[last] = value
    path.write_text(json.dumps(record))


@pytest.mark.parametrize("name", ["", "record.json"])
def test_an_identical_replay_is_exit_code_0(slayr, saved, name):
    code, out, err = slayr("replay", saved / name)
    assert code == 0 and "fitting ..." in err
    assert "nuts of matern_gp, seed 5, made 20" in out
    assert "draws        identical, bit for bit\n" in out and "summaries    the same\n" in out
    assert out.endswith("environment  as recorded\n")


def test_other_bits_and_another_toolchain_are_exit_code_1(slayr, folder):
    change(folder, draws_sha256="0" * 64, cmdstan__compiler="g++ 4.8\x1b[2J", program__flags=["O=1"])
    code, out, _ = slayr("replay", folder)
    assert code == 1 and "draws        not identical" in out
    assert r"  cmdstan.compiler: was g++ 4.8\x1b[2J, is " in out and "\x1b" not in out
    assert "  program.flags: was O=1, is " in out


def test_other_bits_for_no_known_reason_say_so(slayr, folder):
    change(folder, draws_sha256="0" * 64)
    code, out, _ = slayr("replay", folder)
    assert code == 1 and "the source code of slayr_py or the record itself must have changed" in out


def test_another_posterior_is_exit_code_2(slayr, folder):
    change(folder, draws_sha256="0" * 64, summary__sigma_f__mean=9.0)
    code, out, _ = slayr("replay", folder)
    assert code == 2 and "summaries    DISAGREE: largest difference" in out and "(mean of sigma_f), limit" in out


def test_a_run_that_fails_is_exit_code_2(slayr, folder, monkeypatch):
    def fails(*arguments):
        raise InferenceError("Stan's nuts run of matern_gp failed: no reason")

    monkeypatch.setattr("slayr_py.cli.replay.replay_saved", fails)
    code, out, err = slayr("replay", folder)
    assert (code, out) == (2, "") and err == "slayr: Stan's nuts run of matern_gp failed: no reason\n"


def test_altered_data_are_exit_code_4(slayr, folder):
    data = json.loads((folder / "data.json").read_text())
    data["y"][0] += 1e-12
    (folder / "data.json").write_text(json.dumps(data))
    code, out, err = slayr("replay", folder)
    assert (code, out) == (4, "") and str(folder / "record.json") in err
    assert "the data are not those of the record" in err and "put the data.json of the same fit beside it" in err


def test_what_is_no_record_is_exit_code_4(slayr, folder):
    change(folder, program__name="../../x")
    code, out, err = slayr("replay", folder)
    assert (code, out) == (4, "") and "'../../x' is not the program" in err and "Traceback" not in err
    assert slayr("replay", folder / "nowhere")[0] == 4
    assert slayr("replay")[0] == 2


def test_help_has_the_exit_codes(slayr):
    code, out, _ = slayr("replay", "--help")
    assert code == 0 and "  1  not identical, but the summaries agree" in out and "  4  no readable record" in out
    assert "See slayr replay --help".lower() in slayr("--help")[1].lower()
