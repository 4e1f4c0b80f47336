"""Messages of failed CmdStan commands."""

from __future__ import annotations

import sys

import pandas as pd
import pytest

from slayr_py.errors import InferenceError
from slayr_py.inference.sampling.command import generated_quantities, last_words


def test_the_last_distinct_lines_of_the_output_are_kept():
    lines = [f"line {i}" for i in range(20)]
    output = "\n\n".join([*lines, "  line 19  "]) + "\nCommand and output files:\n/tmp/chain-1.csv"
    assert last_words(output) == "\n".join(lines[-12:])
    assert last_words(" \n") == last_words("Command and output files: none") == "no message"


def test_the_output_of_a_failed_command_is_in_the_error(tmp_path):
    # Python in place of a program: it cannot open a script with the name of the method.
    with pytest.raises(InferenceError, match="Stan's id=1 generate_quantities failed: .*can't open file"):
        generated_quantities(sys.executable, tmp_path / "data.json", pd.DataFrame({"z": [0.0]}), seed=1)
