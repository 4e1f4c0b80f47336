"""Side effects of a run: files, log messages and threads."""

from __future__ import annotations

import errno
import logging
import tempfile
from types import SimpleNamespace

import numpy as np
import pytest
from testing_fits import recorded_fit
from threadpoolctl import threadpool_info, threadpool_limits

import slayr_py as sl
from slayr_py.inference.diagnostics import checks
from slayr_py.inference.sampling import approximations, population, run

pytestmark = pytest.mark.stan


def test_nothing_is_left_behind_or_logged(branin_data, branin_posterior, caplog, capfd, tmp_path, monkeypatch):
    space, configs, y = branin_data
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with caplog.at_level(logging.INFO):
        sl.GaussianProcess(space).fit(configs[:3], y[:3], chains=1, warmup=20, draws=10)
    assert not list(tmp_path.iterdir())
    assert not caplog.records and capfd.readouterr() == ("", "")


def test_errors_of_files_name_the_folder_to_blame(tmp_path, monkeypatch):
    missing = FileNotFoundError(errno.ENOENT, "No such file or directory")
    forbidden = PermissionError(errno.EACCES, "Permission denied", "/elsewhere/program")
    full = OSError(errno.ENOSPC, "No space left on device")
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    assert run._reason(missing) == "No such file or directory"
    assert run._reason(forbidden) == "Permission denied: /elsewhere/program"
    assert run._reason(full).startswith(f"No space left on device, in the temporary folder {tmp_path}; make room")
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    assert run._reason(missing) == "the working directory does not exist any more; change to another one"


@pytest.mark.parametrize("free", [1000, 10**9])
def test_a_run_that_fails_on_a_full_disk_says_so(tmp_path, monkeypatch, free):
    monkeypatch.setattr(run.shutil, "disk_usage", lambda folder: SimpleNamespace(free=free))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with (
        pytest.raises(RuntimeError, match="Error during") as raised,
        run._console_in_errors(SimpleNamespace(folder=tmp_path)),
    ):
        raise RuntimeError("Error during sampling:")
    assert (f"in the temporary folder {tmp_path}; make room there" in str(raised.value)) == (free < 2**20)


def test_the_console_of_stan_is_added_to_errors_of_cmdstanpy_only(tmp_path):
    (tmp_path / "1-stdout.txt").write_text("0.02 seconds (Sampling)\n")
    for message, is_added in (("Error during sampling:", True), ("Could not determine home directory.", False)):
        with (
            pytest.raises(RuntimeError, match=message) as raised,
            run._console_in_errors(SimpleNamespace(folder=tmp_path)),
        ):
            raise RuntimeError(message)
        assert ("seconds" in str(raised.value)) == is_added


def test_a_run_uses_one_thread_of_blas(accepted_fits, monkeypatch):
    """With more threads some implementations of BLAS sum in another order."""
    seen = []

    def improve(*arguments, **options):
        seen.extend(library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas")
        return population.improve(*arguments, **options)

    # No importance ratios are good enough, so that the run includes population Monte Carlo with its matrix products.
    monkeypatch.setattr(checks, "PARETO_K_LIMIT", -np.inf)
    monkeypatch.setattr(approximations, "improve", improve)
    with threadpool_limits(limits=2, user_api="blas"):
        assert recorded_fit("pathfinder", seed=3).record["arguments"]["improved"]
    assert seen and set(seen) == {1}
