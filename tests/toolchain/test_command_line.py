"""The command line of a compiled program."""

from __future__ import annotations

import json
import os
import subprocess

import pandas as pd
import pytest


@pytest.fixture
def run(program, tmp_path, data_file):
    """Run the program in its own folder; return its status and output."""

    def run(words: str, **environment: str):
        clean = {name: value for name, value in os.environ.items() if name != "STAN_NUM_THREADS"}
        done = subprocess.run(
            [str(program.exe), *words.split()],
            cwd=tmp_path,
            env=clean | environment,
            capture_output=True,
            text=True,
            check=False,
        )
        return done.returncode, done.stdout + done.stderr

    return run


def test_info(program, run):
    status, said = run("info")
    assert status == 0
    pairs = dict(line.split("=") for line in said.replace(" ", "").splitlines())
    version = [pairs[f"stan_version_{part}"] for part in ("major", "minor", "patch")]
    assert ".".join(version) == program.cmdstan.version
    assert pairs["STAN_THREADS"] == "false"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (
            "sample num_sampels=3",
            '"num_sampels=3" is not an argument here; valid: num_samples, num_warmup,',
        ),
        ("help", '"help" is not an argument here; valid: method, id, data, init, random, output, num_threads'),
        ("sample num_samples=-1", '"-1" is not a valid value for "num_samples"; valid: >= 0'),
        ("sample num_samples=3.5", "not a valid value"),
        ("sample adapt delta=1", "between 0 and 1, both excluded"),
        ("sample algorithm=nuts", "valid: hmc, fixed_param"),
        ("sample algorithm=hmc engine=static", '"static" is not a valid value for "engine"; valid: nuts'),
        ("variational", "variational inference (ADVI) is not built in"),
        ("output refresh=1", "A method must be specified"),
        ("sample num_warmup=0 data file=data.json", "adaptation needs warmup"),
        ("sample adapt save_metric=1", "save_metric=1 is not built in. Leave it out, or install CmdStan"),
        ("optimize data file=data.json output diagnostic_file=d.csv", "diagnostic_file=d.csv needs method=sample"),
        ("sample data file=none.json", 'Cannot open file "none.json"'),
        ("sample data file=data.R", "JSON files"),
        ("sample data file=data.json output file=none/out.csv", 'Cannot write file "none/out.csv"'),
        ("sample data file=data.json output file=none/", "output file=none/ is not the name of a file"),
        ("laplace data file=data.json", "needs the mode"),
        ("log_prob data file=data.json", "needs constrained_params="),
        ("generate_quantities data file=data.json", "needs draws"),
        ("sample random seed=4294967296", "0 to 4294967295"),
    ],
)
def test_invalid_arguments_are_named(run, words, said):
    status, text = run(words)
    assert status == 1
    assert said in text


def test_no_arguments(run):
    status, said = run("")
    assert status == 1 and "A method must be specified, for example: sample" in said


def test_output_file_starts_like_cmdstan(program, run, tmp_path):
    status, _ = run("sample num_samples=2 random seed=7 data file=data.json output file=out.csv sig_figs=9")
    assert status == 0
    lines = (tmp_path / "out.csv").read_text().splitlines()
    major, minor, patch = program.cmdstan.version.split(".")
    assert lines[:4] == [
        f"# stan_version_major = {major}",
        f"# stan_version_minor = {minor}",
        f"# stan_version_patch = {patch}",
        "# model = coin_model",
    ]
    assert lines[4].startswith("# start_datetime = 2") and lines[4].endswith(" UTC")
    assert lines[5:9] == [
        "# method = sample (Default)",
        "#   sample",
        "#     num_samples = 2",
        "#     num_warmup = 1000 (Default)",
    ]
    for line in (
        "#       delta = 0.8 (Default)", "#         metric_file =  (Default)", "# init = 2 (Default)", "#   seed = 7",
        "#   sig_figs = 9", "#   save_cmdstan_config = false (Default)", "# num_threads = 1 (Default)",
    ):  # fmt: skip
        assert line in lines
    assert lines[-4].startswith("#  Elapsed Time: ") and lines[-4].endswith(" seconds (Warm-up)")


def test_metric_files_of_the_chains(run, tmp_path):
    """Each chain reads its own file if the name without a number stands for several."""
    for chain in (3, 4):
        (tmp_path / f"metric_{chain}.json").write_text(json.dumps({"inv_metric": [chain] * 7}))
    words = "id=3 sample num_chains=2 num_samples=5 adapt engaged=0 algorithm=hmc metric_file=metric.json "
    assert run(words + "data file=data.json output file=out.csv")[0] == 0
    assert "# 3, 3, 3, 3, 3, 3, 3" in (tmp_path / "out_3.csv").read_text()
    assert "# 4, 4, 4, 4, 4, 4, 4" in (tmp_path / "out_4.csv").read_text()


def test_conflicting_numbers_of_threads_raise(threaded, tmp_path, data_file):
    words = [str(threaded.exe), "sample", "num_threads=3", "data", "file=data.json"]
    done = subprocess.run(
        words, cwd=tmp_path, env=os.environ | {"STAN_NUM_THREADS": "2"}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 1 and "STAN_NUM_THREADS=2 but num_threads=3" in done.stderr


def test_generated_quantities_of_several_chains(run, tmp_path):
    assert run("sample num_chains=2 num_samples=20 random seed=7 data file=data.json output file=out.csv")[0] == 0
    words = (
        "generate_quantities num_chains=2 fitted_params=out.csv random seed=1 data file=data.json output file=gq.csv"
    )
    assert run(words)[0] == 0
    assert [len(pd.read_csv(tmp_path / f"gq_{chain}.csv", comment="#")) for chain in (1, 2)] == [20, 20]
    (tmp_path / "other.csv").write_text("lp__,mu\n1,2\n")
    status, said = run("generate_quantities fitted_params=other.csv data file=data.json")
    assert status == 1 and 'its column 2 is not "theta"' in said


def test_a_full_disk_is_an_error(run, tmp_path):
    if not os.path.exists("/dev/full"):
        pytest.skip("no /dev/full here")
    (tmp_path / "full.csv").symlink_to("/dev/full")
    status, said = run("sample num_samples=1000 random seed=1 data file=data.json output file=full.csv")
    assert status == 1 and "is the disk full?" in said
