"""Run simulation-based calibration of every Stan program.

    python -m benchmarks.correctness.calibration --replications 500

Each replication is a row of ranks in ``results/calibration.csv``. Run the same command again to resume after an
interruption, or with more replications to extend the file. ``--report`` only prints the table. The exit status is 1 if
the ranks of a model are not uniform: a p-value below 0.001 over all its quantities.
"""

from __future__ import annotations

import sys
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from ConfigSpace import Categorical, ConfigurationSpace, EqualsCondition, Float
from PIL import Image

import slayr_py as sl
from benchmarks.common.command_line import begin, command_parser
from benchmarks.common.results import add_result_arguments, markdown
from slayr_py.inference import Calibration, calibrate
from slayr_py.inference.sampling.programs import compiled
from slayr_py.inference.validation.uniformity import ecdf_band
from slayr_py.kernels import Additive, Composite, FrequencyModulated, Hierarchical, Kernel, Matern, Separable

LIMIT = 0.001
DRAWS = 99
OBSERVED = 10
CHUNK = 10
FITS = ("case", "ess", "divergences", "seconds")

# Under the default priors ten observations carry little information about some hyperparameters, so their ranks test the
# prior more than the likelihood. Under these priors the data inform both function and noise.
TIGHT = {"sigma_n": sl.LogNormal(-1.2, 0.5), "sigma_f": sl.LogNormal(0.0, 0.4), "lengthscale": sl.LogNormal(-0.7, 0.5)}

# Other families of priors than the log-normal one.
FAMILIES = {
    "mu": sl.Normal(0.3, 0.8),
    "sigma_f": sl.Gamma(4.0, 4.0),
    "sigma_n": sl.HalfNormal(0.4),
    "lengthscale": sl.InverseGamma(4.0, 2.0),
}
WEIGHTS = {"gamma": sl.Beta(2.0, 1.0), "rho": sl.Beta(1.5, 3.0)}

ERRORS = 0.5 * np.geomspace(0.2, 2.0, OBSERVED)
"""Known errors of the observations, for the cases with ``y_sd``."""

# Under the default prior the posterior of a period has many modes, which NUTS does not explore.
SLOW = {"period": sl.LogNormal(-0.7, 0.2)}


def plain() -> ConfigurationSpace:
    return ConfigurationSpace({"x": (0.0, 1.0), "z": (0.0, 1.0)})


def conditional() -> ConfigurationSpace:
    space = ConfigurationSpace()
    kind = Categorical("kind", ["flat", "deep"])
    depth = Float("depth", (0.0, 1.0))
    space.add(kind, depth, Float("x", (0.0, 1.0)), EqualsCondition(depth, kind, "deep"))
    return space


def mixed() -> ConfigurationSpace:
    space = ConfigurationSpace()
    space.add(
        Float("x", (0.0, 1.0)),
        Categorical("act", ["relu", "tanh", "gelu"]),
        Categorical("size", ["s", "m", "l"], ordered=True),
    )
    return space


CASES: dict[str, tuple[ConfigurationSpace, Kernel, dict[str, sl.kernels.Prior]]] = {
    "matern, default priors": (plain(), Matern(2), {}),
    "matern p = 0": (plain(), Matern(0), TIGHT),
    "additive, warp": (plain(), Additive(2), {}),
    "hierarchical se product, default priors": (conditional(), Hierarchical("se", "product"), {}),
    "hierarchical rq sum": (conditional(), Hierarchical("rq", "sum"), TIGHT),
    "fm laplacian, default priors": (mixed(), FrequencyModulated("laplacian"), {}),
    "fm power": (mixed(), FrequencyModulated("power", orders=3, tau=1.2), TIGHT),
    "fm neural": (mixed(), FrequencyModulated("neural"), TIGHT),
    "fm by hierarchical": (conditional(), FrequencyModulated(Hierarchical("matern")), TIGHT),
    "separable laplacian sum": (mixed(), Separable("laplacian", "sum"), TIGHT),
    "matern, warp": (plain(), Matern(2), {}),
    "hierarchical se product, warp": (conditional(), Hierarchical("se", "product"), {}),
    "matern, probit": (plain(), Matern(2), {}),
    "matern, y_sd": (plain(), Matern(2), TIGHT),
    "matern, other priors": (plain(), Matern(2), FAMILIES),
    "hierarchical se product, other priors": (conditional(), Hierarchical("se", "product"), FAMILIES | WEIGHTS),
    "fm laplacian, warp": (mixed(), FrequencyModulated("laplacian"), {}),
    "composite LIN * PER + SE": (ConfigurationSpace({"x": (0.0, 1.0)}), Composite("LIN * PER + SE"), TIGHT | SLOW),
    "composite (RQ + C) * MAT32": (plain(), Composite("(RQ[x] + C) * MAT32"), TIGHT),
    "composite SE + MAT12 + LIN": (mixed(), Composite("SE[x,act] + MAT12 + LIN[x,size]"), TIGHT),
}


def run_case(case: str, path: Path, replications: int, seed: int) -> None:
    """Run the replications of one case that the file does not have yet."""
    space, kernel, priors = CASES[case]
    gp = sl.GaussianProcess(
        space,
        kernel,
        priors,
        "log" if case.endswith("warp") else "none",
        "probit" if case.endswith("probit") else "gaussian",
    )
    errors = ERRORS if case.endswith("y_sd") else None
    configs = gp.encoder.sobol(OBSERVED + 1, 0)
    program = compiled(kernel.program)
    table = pd.read_csv(path) if path.exists() else pd.DataFrame(columns=list(FITS))
    done = int((table["case"] == case).sum())
    print(f"{case}: {max(replications - done, 0)} replications to do", flush=True)
    while done < replications:
        n = min(CHUNK, replications - done)
        result = calibrate(gp, configs, n, DRAWS, seed, first=done, program=program, y_sd=errors)
        rows = pd.concat([result.fits.round(3), result.ranks], axis=1)
        rows.insert(0, "case", case)
        # Columns of hyperparameters that a kernel does not have stay empty.
        table = pd.concat([table, rows], ignore_index=True) if len(table) else rows
        ranks = table.columns.difference(FITS)
        table[ranks] = table[ranks].astype("Int64")
        table.to_csv(path, index=False)
        done += n


def stored_results(path: Path) -> dict[str, Calibration]:
    """Return the stored ranks of every case."""
    table = pd.read_csv(path)
    results = {}
    for case in CASES:
        rows = table[table["case"] == case]
        if len(rows):
            ranks = rows.drop(columns=list(FITS)).dropna(axis=1).astype(int)
            results[case] = Calibration(ranks, DRAWS, rows[["ess", "divergences", "seconds"]])
    return results


def report(results: dict[str, Calibration]) -> bool:
    """Print one row per case and return whether all ranks are uniform."""
    heads = ["model", "replications", "quantities", "smallest p-value", "of", "Bonferroni p-value", "ESS"]
    lines = []
    uniform = True
    for case, result in results.items():
        p = result.p_values()
        together = result.p_value()
        fits = result.fits
        uniform &= together >= LIMIT
        cells = [case, str(len(result.ranks)), str(len(p)), f"{p.min():.3g}", f"`{p.idxmin()}`", f"{together:.2g}"]
        cells += [f"{fits['ess'].min():.0f} to {fits['ess'].max():.0f}", str(fits["divergences"].sum())]
        lines.append([*cells, f"{fits['seconds'].sum():.0f}"])
    print(markdown([*heads, "divergences", "s"], lines))
    return uniform


def draw(results: dict[str, Calibration], path: Path) -> None:
    """Draw empirical minus uniform distribution functions of the ranks with their simultaneous 95% bands."""
    columns = 3
    rows = -(-len(results) // columns)
    figure, axes = plt.subplots(rows, columns, figsize=(10, 2.5 * rows), sharex=True, sharey=True, squeeze=False)
    share = np.arange(1, DRAWS + 1) / (DRAWS + 1)
    for axis, (case, result) in zip(axes.flat, results.items(), strict=False):
        n = len(result.ranks)
        lower, upper = ecdf_band(n, DRAWS)
        axis.fill_between(share, lower - share, upper - share, color="0.88", linewidth=0)
        p = result.p_values()
        for name, ranks in result.ranks.items():
            below = np.cumsum(np.bincount(ranks, minlength=DRAWS + 1))[:-1] / n
            lowest = name == p.idxmin()
            label = f"{name}, p = {p[name]:.2g}" if lowest else None
            axis.plot(share, below - share, label=label, color="C3" if lowest else "C0", lw=1.3 if lowest else 0.6)
        axis.set_title(case, fontsize=9)
        axis.legend(fontsize=7, loc="lower center", frameon=False)
    for axis in axes.flat[len(results) :]:
        axis.axis("off")
    figure.supxlabel("rank / (L + 1)", fontsize=9)
    figure.supylabel("difference of distribution functions", fontsize=9)
    figure.tight_layout()
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=80)
    plt.close(figure)
    Image.open(path).convert("RGB").quantize(32).save(path, optimize=True)  # to a third of the size


def main(arguments: list[str] | None = None) -> int:
    parser = command_parser(__file__, __doc__)
    parser.add_argument("--replications", type=int, default=500, help="replications per case")
    parser.add_argument("--cases", nargs="+", choices=list(CASES), default=list(CASES))
    parser.add_argument("--seed", type=int, default=1, help="seed of a new file")
    parser.add_argument("--figure", type=Path, help="file for a figure of the ranks")
    add_result_arguments(parser, __file__)
    given = begin(parser, arguments)
    given.output.mkdir(parents=True, exist_ok=True)
    path = given.output / "calibration.csv"
    if not given.report:
        for case in given.cases:
            run_case(case, path, given.replications, given.seed)
    results = stored_results(path)
    uniform = report(results)
    if given.figure:
        draw(results, given.figure)
    return int(not uniform)


if __name__ == "__main__":
    sys.exit(main())
