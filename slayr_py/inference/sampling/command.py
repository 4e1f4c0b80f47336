"""What CmdStanPy does not ask of a program: many densities at once, and generated quantities without their chains."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import numpy as np
import pandas as pd

from slayr_py.errors import InferenceError
from slayr_py.inference.sampling.output import read_csv
from slayr_py.space.dimension import FloatArray

DIGITS = 18
"""Enough for a double to survive the way through a text file."""


def log_densities(exe: str, data: Path, points: FloatArray) -> FloatArray:
    """Log density of a program at points (s, P) of its parameters, (s,); minus infinity where it has none."""
    given, output = data.with_name("points.json"), data.with_name("densities.csv")
    given.write_text(json.dumps({"params_r": points.tolist()}))
    _call([exe, "log_prob", f"unconstrained_params={given}"], data, output)
    values = read_csv(output)["lp__"].to_numpy(dtype=np.float64)
    return np.where(np.isnan(values), -np.inf, values)


def generated_quantities(exe: str, data: Path, parameters: pd.DataFrame, seed: int) -> pd.DataFrame:
    """Generated quantities of a program at draws of its parameters, one a row, columns named as CmdStan names them."""
    given, output = data.with_name("draws.csv"), data.with_name("generated.csv")
    parameters.to_csv(given, index=False, float_format="%.17g")
    _call([exe, "id=1", "generate_quantities", f"fitted_params={given}", "random", f"seed={seed}"], data, output)
    return read_csv(output)


def _call(command: list[str], data: Path, output: Path) -> None:
    files = ["data", f"file={data}", "output", f"file={output}", f"sig_figs={DIGITS}"]
    done = subprocess.run([*command, *files], capture_output=True, text=True, check=False)
    if done.returncode:
        raise InferenceError(f"Stan's {' '.join(command[1:3])} failed: {last_words(done.stdout + done.stderr)}")


def last_words(text: str) -> str:
    """What Stan said, each line once, without CmdStanPy's description of its files."""
    lines = [line.strip() for line in text.split("Command and output files")[0].splitlines() if line.strip()]
    return "\n".join(list(dict.fromkeys(lines))[-12:]) or "no message"
