"""Choice between the accelerated and the readable likelihood."""

from __future__ import annotations

import pytest

import slayr_py as sl
from slayr_py.inference.sampling import programs
from slayr_py.inference.sampling.programs import compiled
from slayr_py.toolchain import compile_program, ensure_cmdstan, processor_options

pytestmark = pytest.mark.stan


def test_fall_back_to_the_readable_likelihood_if_the_header_does_not_compile(monkeypatch):
    def refuse(source, **options):
        if options.get("cpp_options"):
            raise sl.CompileError("no such instruction")
        return "readable"

    monkeypatch.setattr(programs, "compile_program", refuse)
    monkeypatch.setattr(programs, "_refused", {})
    with pytest.warns(RuntimeWarning, match="fm_gp does not compile here.*no such instruction"):
        assert compiled("fm_gp") == "readable"
    assert compiled("fm_gp") == "readable"  # no second warning
    with pytest.raises(sl.CompileError):
        programs._refused.clear()
        compiled("fm_gp", likelihood="accelerated")


def test_the_likelihood_is_chosen_by_name(monkeypatch):
    options = []

    def recorded(source, **others):
        # With the options of `testing_programs.readable`: others compile the front end and a program again for minutes.
        options.append(dict(others))
        return compile_program(source, **others | {"cpp_options": processor_options(ensure_cmdstan()) | {"O": "1"}})

    monkeypatch.setattr(programs, "compile_program", recorded)
    monkeypatch.setenv("SLAYR_LIKELIHOOD", "readable")
    assert compiled("matern_gp").header is None
    assert options == [{"include_paths": (programs.program_folder(),), "on_progress": None}]
    monkeypatch.setenv("SLAYR_LIKELIHOOD", "fast")
    with pytest.raises(sl.DataError, match="'fast'"):
        compiled("matern_gp")
