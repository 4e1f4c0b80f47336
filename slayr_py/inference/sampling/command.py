"""Run a program's generated quantities for any draws; CmdStanPy accepts only the output of its own runs."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import TypedDict

import numpy as np
import pandas as pd

from slayr_py.errors import InferenceError
from slayr_py.inference.sampling.output import read_csv

DIGITS = 18
"""Significant digits in output files: enough to read back every double exactly."""


_SETTING = re.compile(r"[a-z_][a-z_0-9]*( =.*)?")  # a line of the settings that CmdStan prints first
_COMMAND = re.compile(r" ?Command '.*' failed: console log output:$")


class CommonArguments(TypedDict):
    """Arguments that all inference methods of CmdStanPy take."""

    data: str
    seed: int
    output_dir: str
    sig_figs: int


def generated_quantities(exe: str, data: Path, parameters: pd.DataFrame, seed: int) -> pd.DataFrame:
    """Return a program's generated quantities, one row per row of ``parameters``; columns have CmdStan's names."""
    parameters_file = data.with_name("draws.csv")
    output = data.with_name("generated.csv")
    # The text of `to_csv` with float_format="%.17g", in a third of its time.
    row = ",".join(["%.17g"] * parameters.shape[1])
    rows = [row % tuple(values) for values in parameters.to_numpy(dtype=np.float64).tolist()]
    parameters_file.write_text("\n".join([",".join(parameters.columns), *rows, ""]), encoding="ascii")
    command = [exe, "id=1", "generate_quantities", f"fitted_params={parameters_file}", "random", f"seed={seed}"]
    _call(command, data, output)
    return read_csv(output)


def _call(command: list[str], data: Path, output: Path) -> None:
    files = ["data", f"file={data}", "output", f"file={output}", f"sig_figs={DIGITS}"]
    done = subprocess.run([*command, *files], capture_output=True, text=True, check=False)
    if done.returncode:
        raise InferenceError(f"Stan's {' '.join(command[1:3])} failed: {last_words(done.stdout + done.stderr)}")


def last_words(text: str) -> str:
    """Return the last 12 distinct lines of Stan's output, without settings, commands and CmdStanPy's list of files."""
    lines = [_COMMAND.sub("", line).strip() for line in text.split("Command and output files")[0].splitlines()]
    said = [line for line in lines if line and not _SETTING.fullmatch(line)]
    return "\n".join(list(dict.fromkeys(said))[-12:]) or "no message"
