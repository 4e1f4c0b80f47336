"""Content of run records, which does not depend on the process that makes them."""

from __future__ import annotations

import json
import os
import re
import tempfile
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pytest
from testing_fits import recorded_fit
from testing_processes import exit_code

import slayr_py as sl
from slayr_py.inference.records.record import array_digest, as_text

pytestmark = [pytest.mark.stan, pytest.mark.usefixtures("accepted_fits")]


def test_no_folder_of_this_machine_is_in_a_record(rounds):
    for posterior in (rounds, recorded_fit(start=rounds.warm_start()), recorded_fit("laplace"), recorded_fit("map")):
        text = as_text(posterior.record)
        assert "/" not in text and os.path.basename(tempfile.gettempdir()) not in text.split()


def test_a_record_made_elsewhere_is_the_same(rounds, tmp_path):
    """Only the times depend on the process, the temporary folder and the number of BLAS threads."""
    code = (
        "import json, sys; from pathlib import Path; from threadpoolctl import threadpool_limits; threadpool_limits(3);"
        "from testing_fits import recorded_fit;"
        "Path(sys.argv[1]).write_text(json.dumps(recorded_fit(seed=1, ess=150).record))"
    )
    assert exit_code(code, str(tmp_path / "record.json"), TMPDIR=str(tmp_path)) == 0
    here = json.loads(json.dumps(rounds.record))
    there = json.loads((tmp_path / "record.json").read_text())
    for record in (here, there):
        del record["made"], record["seconds"]
        # What is loaded besides NumPy and SciPy depends on the process.
        assert record["machine"].pop("blas")
    assert here == there


def test_a_record_has_every_argument_of_cmdstan_with_its_value(rounds):
    paths, first, *further = rounds.record["calls"]
    wanted = {"method": "sample", "num_samples": 30, "num_warmup": 60, "delta": 0.8, "gamma": 0.05, "t0": 10}
    wanted |= {
        "init_buffer": 9,
        "term_buffer": 6,
        "max_depth": 10,
        "metric": "diag_e",
        "seed": 2,
        "sig_figs": 18,
    }
    assert first == first | wanted and paths["method"] == "pathfinder" and paths["seed"] != 2
    shapes = rounds.model.parameter_shapes
    assert (len(paths["init"]), len(first["init"])) == (5, 2), "a point for each path and chain"
    assert all({name: np.shape(v) for name, v in point.items()} == shapes for point in paths["init"] + first["init"])
    assert further and all("delta" not in call and call["init"] == "the last draws" for call in further[:1])
    arguments = rounds.record["arguments"]
    assert len(rounds.record["calls"]) == 1 + len(arguments["rounds"]) and arguments["chain_ids"] == [1, 2]
    assert "Pathfinder" in rounds.record["inits"] and rounds.record["start"] is None
    assert len(rounds.record["adaptation"][0]["inv_metric"]) == 5


def test_a_warm_start_is_recorded_once_and_in_full(rounds):
    start = rounds.warm_start()
    record = recorded_fit(seed=2, start=start).record
    assert record["start"] == start.asdict() and "start" in record["inits"]
    assert record["adaptation"] == [{"step_size": size} for size in start.step_size]
    first = record["calls"][0]
    assert (first["init"], first["metric_file"], first["stepsize"], first["engaged"]) == ("start", "start", "start", 0)


@pytest.mark.parametrize(
    ("method", "options", "calls"),
    [
        ("pathfinder", {"paths": 5, "elbo_draws": 10}, ["pathfinder"]),
        ("laplace", {"mode_starts": 5}, ["optimize", "laplace"]),
        ("map", {"mode_starts": 5}, ["optimize"]),
    ],
)
def test_options_of_approximations(method, options, calls):
    record = recorded_fit(method, seed=3).record
    assert record["arguments"] == record["arguments"] | options
    assert record["arguments"].get("improved") in ((None,) if method == "map" else (True, False))
    assert [call["method"] for call in record["calls"] if "method" in call] == calls
    seeds = {call["seed"] for call in record["calls"]}
    assert len(seeds) == len(record["calls"]), "every call has its own seed"


def test_a_record_has_its_format_and_the_time_in_utc(rounds):
    record = rounds.record
    assert record["format"] == 1
    made = datetime.fromisoformat(record["made"])
    assert made.utcoffset() == timedelta(0) and datetime.now(UTC) - made < timedelta(hours=1)


def test_the_text_of_a_record_has_each_list_on_one_line(rounds):
    text = as_text(rounds.record)
    assert json.loads(text) == json.loads(json.dumps(rounds.record))
    assert '"chain_ids": [1, 2]' in text and max(map(len, text.splitlines())) < 500
    odd = {"a": ["[\n", "] \n  [", "x\\"], "b": [[1, 2], [3]], "c": [], "d": [{"e": ["  f  "]}]}
    assert json.loads(as_text(odd)) == odd


def test_the_hash_of_data_survives_json():
    data = {"X": np.zeros((0, 3)), "Y": np.zeros((4, 0)), "y": np.array([0.1, 1e-300, -0.0]), "n": 3, "k": np.int64(2)}
    plain = json.loads(json.dumps({k: v.tolist() if hasattr(v, "tolist") else v for k, v in data.items()}))
    assert array_digest(data) == array_digest(plain)
    assert len({array_digest(data | {"y": np.array([0.1, 1e-300, y])}) for y in (-0.0, 0.0, 5e-324)}) == 3


def test_records_of_another_format_are_neither_loaded_nor_replayed(rounds, tmp_path):
    folder = rounds.save(tmp_path / "fit")
    record = json.loads((folder / "record.json").read_text())
    (folder / "record.json").write_text(json.dumps(record | {"format": 4}))
    for read in (sl.Posterior.load, sl.inference.replay):
        with pytest.raises(sl.StorageError, match="its format is 4, and this version of slayr_py reads 1"):
            read(folder)


def test_the_manual_has_every_entry(rounds):
    manual = (Path(__file__).parents[3] / "docs" / "records.md").read_text(encoding="utf-8")
    section = manual.partition("## Entries of a record")[2].partition("\n## ")[0]
    table = [line.split("|")[1] for line in section.splitlines() if line.startswith("| `")]
    assert sorted(rounds.record) == sorted(re.findall(r"`(\w+)`", "".join(table)))
