"""Columns of CmdStan's tables as named arrays."""

from __future__ import annotations

import numpy as np

from slayr_py.inference.sampling.output import columns_of, read_csv, shapes_of, variables_of

NAMES = ("lp__", "energy__", "z_mu", "z_lengthscale[1]", "z_lengthscale[2]", "gram.1.1", "gram.2.1")


def test_columns_are_grouped_by_variable():
    wanted = {"lp__": [0], "energy__": [1], "z_mu": [2], "z_lengthscale": [3, 4], "gram": [5, 6]}
    assert columns_of(NAMES) == wanted


def test_shapes_are_those_of_the_parameters():
    assert shapes_of(NAMES) == {"z_mu": (), "z_lengthscale": (2,)}
    assert shapes_of(["z_rho.1"]) == {"z_rho": (1,)}


def test_variables_keep_the_axes_of_chains_and_draws():
    table = np.arange(2 * 3 * 7.0).reshape(2, 3, 7)
    variables = variables_of(table, NAMES)
    assert variables.keys() == {"lp__", "z_mu", "z_lengthscale", "gram"}
    np.testing.assert_array_equal(variables["lp__"], table[..., 0])
    np.testing.assert_array_equal(variables["z_mu"], table[..., 2:3])
    np.testing.assert_array_equal(variables["z_lengthscale"], table[..., 3:5])


def test_numbers_of_a_table_are_exact(tmp_path):
    values = np.random.default_rng(0).normal(size=(20, 2))
    rows = [",".join(f"{value:.17g}" for value in row) for row in values]
    path = tmp_path / "output.csv"
    path.write_text("\n".join(["# stan_version_major = 2", "lp__,z.1", rows[0], "# Adaptation", *rows[1:], "#"]) + "\n")
    table = read_csv(path)
    assert list(table.columns) == ["lp__", "z.1"]
    np.testing.assert_array_equal(table.to_numpy(), values)
