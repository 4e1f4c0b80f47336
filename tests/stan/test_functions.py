"""Compare every Stan function with its NumPy twin; the program runs once, and each row of the table is a test."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from testing_functions import TABLE, VALUES
from testing_programs import shared_program

from slayr_py.inference.sampling.run import generate

pytestmark = pytest.mark.stan


@pytest.fixture(scope="module")
def output():
    data = {name: value for name, (_, value) in VALUES.items()}
    return generate(shared_program("functions_table"), data, pd.DataFrame({"unused": [0.0]}), seed=1).iloc[0]


@pytest.mark.parametrize("row", range(len(TABLE)), ids=[expression for expression, _ in TABLE])
def test_stan_equals_numpy(output, row):
    wanted = np.asarray(TABLE[row][1])
    columns = [c for c in output.index if c == f"row_{row}" or c.startswith(f"row_{row}.")]
    got = output[columns].to_numpy().reshape(wanted.shape, order="F")
    np.testing.assert_allclose(got, wanted, rtol=1e-10, atol=1e-10)
