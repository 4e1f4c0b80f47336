"""What a record says of a fit, and that it says it everywhere alike."""

from __future__ import annotations

import hashlib
import json
import os
import re
import subprocess
import sys
import tempfile
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pytest
from testing_spaces import plain_space
from threadpoolctl import threadpool_info, threadpool_limits

import slayr_py as sl
from slayr_py.inference.diagnostics.arviz_bridge import arviz
from slayr_py.inference.records import environment
from slayr_py.inference.records.record import as_text, digest
from slayr_py.inference.sampling import approximations, population
from slayr_py.inference.sampling.programs import compiled, program_folder
from slayr_py.inference.sampling.seeds import stan_seed
from slayr_py.toolchain.source import expand_header, expand_stan

pytestmark = pytest.mark.stan

Y = np.array([1.0, 3.0, 2.0, 5.0, 4.0])
QUICK = {"chains": 2, "warmup": 60, "draws": 30}


def fit(method="nuts", **options):
    gp = sl.GaussianProcess(plain_space())
    return gp.fit(gp.encoder.sobol(len(Y), 1), Y, method, **QUICK | options)


@pytest.fixture(scope="module", autouse=True)
def contented():
    """Diagnostics object to nothing, so that what is asked for is what is recorded."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sl.Posterior, "check", lambda posterior: replace(posterior._diagnostics, ok=True))
        yield


@pytest.fixture(scope="module")
def rounds():
    return fit(seed=1, ess=150)


def test_sources_are_hashed_with_what_they_include(rounds):
    program, folder = rounds.record["program"], program_folder()
    text = expand_stan(folder / "matern_gp.stan", (folder / "accelerated", folder))
    assert "\n#include" not in text and all(
        path.read_text() in text for path in (folder / "accelerated" / "functions").glob("matern_*.stan")
    )
    assert program["source_sha256"] == hashlib.sha256(text.encode()).hexdigest()
    header = expand_header(folder / "accelerated" / "slayr.hpp")
    assert program["header_sha256"] == hashlib.sha256(header.encode()).hexdigest()
    readable = environment.environment(compiled("matern_gp", likelihood="readable"))["program"]
    assert readable["header_sha256"] is None and readable["source_sha256"] != program["source_sha256"]


def test_no_folder_of_this_machine_is_in_a_record(rounds):
    for posterior in (rounds, fit(start=rounds.warm_start()), fit("laplace"), fit("map")):
        text = as_text(posterior.record)
        assert "/" not in text and os.path.basename(tempfile.gettempdir()) not in text.split()


def test_a_record_made_elsewhere_is_the_same(rounds, tmp_path):
    """Another process, another temporary folder and another number of threads of BLAS change the times only."""
    code = (
        "import sys, json, numpy as np; sys.path.insert(0, sys.argv[1]); import test_record;"
        "print(json.dumps(test_record.fit(seed=1, ess=150).record))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, os.path.dirname(__file__)],
        env=os.environ | {"TMPDIR": str(tmp_path), "OMP_NUM_THREADS": "3", "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        check=True,
    )
    here, there = json.loads(json.dumps(rounds.record)), json.loads(done.stdout)
    for record in (here, there):
        del record["made"], record["seconds"]
        # What is loaded besides NumPy and SciPy depends on the process.
        assert record["machine"].pop("blas")
    assert here == there


def test_every_argument_of_cmdstan_is_there_with_its_default(rounds):
    first, *further = rounds.record["calls"]
    wanted = {"method": "sample", "num_samples": 30, "num_warmup": 60, "delta": 0.8, "gamma": 0.05, "t0": 10}
    wanted |= {"init_buffer": 75, "max_depth": 10, "metric": "diag_e", "init": 2, "seed": 2, "sig_figs": 18}
    assert first == first | wanted
    assert further and all("delta" not in call and call["init"] == "the last draws" for call in further[:1])
    arguments = rounds.record["arguments"]
    assert len(rounds.record["calls"]) == len(arguments["rounds"]) and arguments["chain_ids"] == [1, 2]
    assert "(-2, 2)" in rounds.record["inits"] and rounds.record["start"] is None
    assert len(rounds.record["adaptation"][0]["inv_metric"]) == 5


def test_a_warm_start_is_there_once_and_in_full(rounds):
    start = rounds.warm_start()
    record = fit(seed=2, start=start).record
    assert record["start"] == start.asdict() and "start" in record["inits"]
    assert record["adaptation"] == [{"step_size": size} for size in start.step_size]
    first = record["calls"][0]
    assert (first["init"], first["metric_file"], first["stepsize"], first["engaged"]) == ("start", "start", "start", 0)


@pytest.mark.parametrize(
    ("method", "options", "calls"),
    [
        ("pathfinder", {"paths": 4, "elbo_draws": 10}, ["pathfinder"]),
        ("laplace", {"mode_starts": 4}, ["optimize", "laplace"]),
        ("map", {"mode_starts": 4}, ["optimize"]),
    ],
)
def test_options_of_approximations(method, options, calls):
    record = fit(method, seed=3).record
    assert record["arguments"] == record["arguments"] | options
    assert record["arguments"].get("improved") in ((None,) if method == "map" else (True, False))
    assert [call["method"] for call in record["calls"] if "method" in call] == calls
    seeds = {call["seed"] for call in record["calls"]}
    assert len(seeds) == len(record["calls"]), "no two calls have one stream"


def test_what_else_touches_the_numbers(rounds):
    record = rounds.record
    assert record["format"] == 2
    made = datetime.fromisoformat(record["made"])
    assert made.utcoffset() == timedelta(0) and datetime.now(UTC) - made < timedelta(hours=1)
    assert record["packages"].keys() >= {"cmdstanpy", "numpy", "scipy", "pandas", "networkx", "scikit-learn", "optuna"}
    assert record["machine"]["blas"] and record["cmdstan"]["compiler"]


def test_the_summary_is_that_of_the_draws(rounds):
    posterior = rounds.idata["posterior"].to_dataset()
    summary = rounds.record["summary"]
    assert list(summary) == ["mu", "sigma_f", "sigma_n", "lengthscale[x]", "lengthscale[z]"]
    for name, entry in summary.items():
        draws = posterior["lengthscale"].sel(encoded_column=name[-2]) if "[" in name else posterior[name]
        assert entry["mean"] == pytest.approx(float(draws.mean()), rel=1e-9)
        assert entry["sd"] == pytest.approx(float(draws.values.std(ddof=1)), rel=1e-9)
        assert entry["mcse_mean"] == pytest.approx(float(arviz().mcse(draws.values, method="mean")), rel=1e-9)
        # ArviZ divides by n - 1 in its error, by n here: 1e-3 of 960 draws.
        assert entry["ess_mean"] == pytest.approx(float(arviz().ess(draws.values, method="mean")), rel=2e-3)


@pytest.mark.slow
def test_errors_of_the_summary_are_those_of_repeated_fits():
    """The spread of 20 means and standard deviations, which chance moves by 16%, against what each fit says."""
    records = [fit(seed=seed, draws=150, warmup=150).record["summary"]["sigma_f"] for seed in range(20)]
    for moment in ("mean", "sd"):
        spread = np.std([record[moment] for record in records], ddof=1)
        told = np.median([record[f"mcse_{moment}"] for record in records])
        assert 0.55 < told / spread < 1.6, moment


def test_one_draw_has_a_mean_only():
    for entry in fit("map").record["summary"].values():
        assert np.isfinite(entry.pop("mean")) and set(entry.values()) <= {None, 0.0}


def test_a_record_reads_well(rounds):
    text = as_text(rounds.record)
    assert json.loads(text) == json.loads(json.dumps(rounds.record))
    assert '"chain_ids": [1, 2]' in text and max(map(len, text.splitlines())) < 500
    odd = {"a": ["[\n", "] \n  [", "x\\"], "b": [[1, 2], [3]], "c": [], "d": [{"e": ["  f  "]}]}
    assert json.loads(as_text(odd)) == odd


def test_the_hash_of_data_survives_json():
    data = {"X": np.zeros((0, 3)), "Y": np.zeros((4, 0)), "y": np.array([0.1, 1e-300, -0.0]), "n": 3, "k": np.int64(2)}
    plain = json.loads(json.dumps({k: v.tolist() if hasattr(v, "tolist") else v for k, v in data.items()}))
    assert digest(data) == digest(plain)
    assert len({digest(data | {"y": np.array([0.1, 1e-300, y])}) for y in (-0.0, 0.0, 5e-324)}) == 3


def test_records_of_earlier_versions_load_and_cannot_be_replayed(rounds, tmp_path):
    folder = rounds.save(tmp_path / "fit")
    record = json.loads((folder / "record.json").read_text())
    for name in ("format", "made", "calls", "inits", "summary", "executable"):
        del record[name]
    del record["machine"]["features"], record["machine"]["blas"], record["arguments"]["chain_ids"]
    (folder / "record.json").write_text(json.dumps(record))
    loaded = sl.Posterior.load(folder)
    assert loaded.warm_start().asdict() == rounds.warm_start().asdict()
    with pytest.raises(sl.StorageError, match="its format is None"):
        sl.inference.replay_folder(folder)


def test_blas_has_one_thread_wherever_a_run_uses_it(monkeypatch):
    """Some implementations sum in another order on several."""
    seen = []

    def improve(*arguments):
        seen.extend(library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas")
        return population.improve(*arguments)

    # No importance ratios are good enough, so that population Monte Carlo, full of matrix products, is part of it.
    monkeypatch.setattr(approximations, "PARETO_K_LIMIT", -np.inf)
    monkeypatch.setattr(approximations, "improve", improve)
    with threadpool_limits(limits=2, user_api="blas"):
        assert fit("pathfinder", seed=3).record["arguments"]["improved"]
    assert seen and set(seen) == {1}


def test_distinct_seeds_give_distinct_streams():
    fits = [fit(seed=seed, ess=10_000, draws=10) for seed in (0, 1, 2)]
    assert all(len(posterior.record["arguments"]["rounds"]) > 2 for posterior in fits)
    seeds = [call["seed"] for posterior in fits for call in posterior.record["calls"]]
    assert len(set(seeds)) == len(seeds)
    draws = [posterior.idata["posterior"]["mu"].values for posterior in fits]
    first = [values[chain, :10] for values in draws for chain in range(2)]
    assert len({values.tobytes() for values in first}) == 6, "no chain of a seed is one of another"
    for values in draws:
        # Equal draws are those of a rejected trajectory, next to each other; a stream used twice gives noise twice.
        assert len(np.unique(values)) > 0.5 * values.size
    made = [stan_seed(seed, part) for seed in range(300) for part in range(10)]
    assert len(set(made)) == len(made)


def test_the_manual_has_every_entry(rounds):
    manual = (Path(__file__).parents[3] / "docs" / "records.md").read_text(encoding="utf-8")
    table = [line.split("|")[1] for line in manual.splitlines() if line.startswith("| `")]
    assert sorted(rounds.record) == sorted(re.findall(r"`(\w+)`", "".join(table)))
