"""Choice between the accelerated and the readable likelihood."""

from __future__ import annotations

import pytest

import slayr_py as sl
from slayr_py.inference.sampling import programs
from slayr_py.inference.sampling.programs import compiled

pytestmark = pytest.mark.stan


def test_fall_back_to_the_readable_likelihood_if_the_header_does_not_compile(monkeypatch):
    def refuse(name, progress):
        raise sl.CompileError("no such instruction")

    monkeypatch.setattr(programs, "compile_accelerated", refuse)
    monkeypatch.setattr(programs, "compile_program", lambda source, **options: "readable")
    monkeypatch.setattr(programs, "_found", {})
    monkeypatch.setattr(programs, "is_trusted", lambda program: False)
    monkeypatch.setattr(programs, "_refused", {})
    with pytest.warns(RuntimeWarning, match="fm_gp does not compile here.*no such instruction"):
        assert compiled("fm_gp") == "readable"
    assert compiled("fm_gp") == "readable"  # no second warning
    with pytest.raises(sl.CompileError):
        compiled("fm_gp", likelihood="accelerated")
    monkeypatch.setenv("CXX", "another compiler")
    with pytest.warns(RuntimeWarning, match="fm_gp does not compile here"):
        compiled("fm_gp")


def test_the_likelihood_is_chosen_by_name(monkeypatch):
    options = []
    monkeypatch.setattr(programs, "_found", {})
    monkeypatch.setattr(programs, "is_trusted", lambda program: False)
    monkeypatch.setattr(programs, "compile_program", lambda source, **others: options.append(others) or source.stem)
    monkeypatch.setenv("SLAYR_LIKELIHOOD", "readable")
    assert compiled("matern_gp") == "matern_gp"
    # No header of a likelihood. Tests of the programs compile the readable one.
    assert options == [{"include_paths": (programs.program_folder(),), "on_progress": None}]
    monkeypatch.setenv("SLAYR_LIKELIHOOD", "fast")
    with pytest.raises(sl.DataError, match="'fast'"):
        compiled("matern_gp")


def test_a_program_is_prepared_again_only_if_its_sources_or_its_executable_change(monkeypatch, tmp_path):
    # A copy of the sources, and a build that counts: the loop asks for its program at every fit.
    folder = tmp_path / "stan"
    (folder / "functions").mkdir(parents=True)
    (folder / "functions" / "part.stan").write_text("one")
    built = []
    damaged = []
    monkeypatch.setattr(programs, "_found", {})
    monkeypatch.setattr(programs, "program_folder", lambda: folder)
    monkeypatch.setattr(programs, "is_trusted", lambda program: not damaged)
    monkeypatch.setattr(programs, "compile_program", lambda source, **others: built.append(source) or len(built))
    compiled("matern_gp", likelihood="readable")
    assert compiled("matern_gp", likelihood="readable") == 1
    (folder / "functions" / "part.stan").write_text("another")
    assert compiled("matern_gp", likelihood="readable") == 2
    monkeypatch.setenv("CXX", "another compiler")
    assert compiled("matern_gp", likelihood="readable") == 3
    damaged.append("executable")
    assert compiled("matern_gp", likelihood="readable") == 4
