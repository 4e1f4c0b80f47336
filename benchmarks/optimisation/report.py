"""Tables and a figure of stored runs.

The best value of a run after b evaluations is the noise-free value of the configuration with the smallest observation
among them. A run has reached the minimum if the remaining regret is at most 0.1% of that of the initial design (median
over all runs of the problem), the convergence test of Moré & Wild (2009, *SIAM J. Optim.* 20:172, equation 2.2). If the
minimum is unknown, the smallest stored value replaces it in this test.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from scipy.stats import studentized_range

from benchmarks.common.problems import Problem
from benchmarks.common.results import markdown, standard_error

BUDGETS = (25, 50, 100, 200)
START = 10
"""Evaluations in which Optuna's samplers are random: their times are not reported, and their best value is the start of
the convergence test."""
TOLERANCE = 0.001
_ROUNDING = 1e-12  # relative difference between two ways to compute a mean
_RUN = ["problem", "sampler", "seed"]


def budgets_up_to(budget: int, budgets: Sequence[int] = BUDGETS) -> list[int]:
    """Return the numbers of evaluations at which runs of this length are compared."""
    return [b for b in budgets if b <= budget] or [budget]


def with_best(trials: pd.DataFrame) -> pd.DataFrame:
    """Return the trials in their order with a column ``best``: the exact value of the best observation so far."""
    trials = trials.sort_values([*_RUN, "number"], ignore_index=True)
    is_best = trials["value"] == trials.groupby(_RUN)["value"].cummin()
    trials["best"] = trials["exact"].where(is_best)
    trials["best"] = trials.groupby(_RUN)["best"].ffill()
    return trials


def best_values(trials: pd.DataFrame, budgets: Sequence[int]) -> pd.DataFrame:
    """Return the best values, one row per run and one column per budget; NaN where a run is shorter."""
    best = with_best(trials)
    return pd.DataFrame({b: best[best["number"] == b - 1].set_index(_RUN)["best"] for b in budgets})


def minima(trials: pd.DataFrame, problems: Mapping[str, Problem]) -> pd.Series:
    """Return the known minimum of each problem, or the smallest stored value."""
    smallest = trials.groupby("problem")["exact"].min()
    known = pd.Series({name: problem.minimum for name, problem in problems.items()}, dtype=float)
    return known.fillna(smallest)


def limits(trials: pd.DataFrame, problems: Mapping[str, Problem]) -> pd.Series:
    """Return the largest value of each problem that counts as its minimum."""
    start = best_values(trials, [START])[START].groupby("problem").median()
    minimum = minima(trials, problems)
    return minimum + TOLERANCE * (start - minimum) + 1e-12


def report(trials: pd.DataFrame, problems: Mapping[str, Problem], samplers: Sequence[str], budget: int) -> str:
    """Return the tables of all problems in Markdown, up to a budget."""
    if trials.empty:
        return "no stored trials"
    budgets = budgets_up_to(budget)
    best = best_values(trials, budgets)
    limit = limits(trials, problems)
    present = [name for name in samplers if name in best.index.unique("sampler")]
    tables = [value_table(best, limit, trials, problems, present), rank_table(best, present)]
    if len(complete := complete_samplers(best, present)) < len(present):
        tables.append(rank_table(best, complete))
    tables.append(lost_table(best, present))
    return "\n\n".join([*tables, reached_table(best, limit, present)])


def value_table(
    best: pd.DataFrame, limit: pd.Series, trials: pd.DataFrame, problems: Mapping[str, Problem], samplers: Sequence[str]
) -> str:
    """Return mean regrets (best values if the minimum is unknown), standard errors, and runs that reached the minimum.

    The time of a suggestion and the R-hat of its fit are those after the initial design, mean and median.
    """
    lines = []
    modelled = trials[trials["number"] >= START].groupby(["problem", "sampler"])
    seconds = modelled["seconds"].mean()
    rhat = modelled["rhat"].median()
    for name in [name for name in problems if name in best.index.unique("problem")]:
        offset = np.nan_to_num(problems[name].minimum)
        own = best.loc[name] - offset
        smallest = own.groupby("sampler").mean().min()
        for sampler in [s for s in samplers if s in own.index.unique("sampler")]:
            runs = own.loc[sampler]
            cells = [value_cell(runs[b].dropna(), limit[name] - offset, smallest[b]) for b in best]
            quality = f"{rhat[name, sampler]:.3f}" if np.isfinite(rhat[name, sampler]) else ""
            lines.append([name, sampler, *cells, f"{seconds[name, sampler]:.2f}", quality])
    return markdown(["problem", "sampler", *(f"at {b}" for b in best), "seconds per suggestion", "R-hat"], lines)


def value_cell(values: pd.Series, limit: float, smallest: float) -> str:
    """Return "mean ± standard error, runs that reached the minimum / runs", with the smallest mean in bold."""
    if values.empty:
        return ""
    mean = f"{values.mean():.3g}"
    mean = f"**{mean}**" if np.isclose(values.mean(), smallest, rtol=_ROUNDING, atol=0.0) else mean
    error = f" ± {standard_error(values):.2g}" if len(values) > 1 else ""
    return f"{mean}{error}, {(values <= limit).sum()}/{len(values)}"


def complete_samplers(best: pd.DataFrame, samplers: Sequence[str]) -> list[str]:
    """Return the samplers that have runs of every problem."""
    counts = best.groupby("sampler").apply(lambda runs: runs.index.unique("problem").size)
    return [name for name in samplers if counts[name] == counts.max()]


def rank_table(best: pd.DataFrame, samplers: Sequence[str]) -> str:
    """Return the average ranks of samplers by their mean best values, and their standard errors over problems.

    A budget counts the problems on which every sampler has runs of that length, and in each the seeds that all of them
    have. The last row has the critical difference of each budget, if there are several samplers.
    """
    columns = {}
    for budget in best:
        ranks = common_means(best[budget], samplers).rank(axis=1)
        columns[f"at {budget} ({len(ranks)} problems)"] = ranks
    lines = [[sampler, *(rank_cell(ranks[sampler]) for ranks in columns.values())] for sampler in samplers]
    if len(samplers) > 1:
        critical = [f"{critical_difference(ranks):.2f}" if len(ranks) else "" for ranks in columns.values()]
        lines.append(["critical difference", *critical])
    return markdown(["average rank", *columns], lines)


def critical_difference(ranks: pd.DataFrame) -> float:
    """Return the difference between the average ranks of two samplers (columns) that is significant at 5%.

    Nemenyi's test, which allows for the number of pairs (Demšar 2006, *JMLR* 7:1, section 3.2.2).
    """
    problems, samplers = ranks.shape
    quantile = studentized_range.ppf(0.95, samplers, np.inf) / np.sqrt(2)
    return float(quantile * np.sqrt(samplers * (samplers + 1) / (6 * problems)))


def common_means(best: pd.Series, samplers: Sequence[str]) -> pd.DataFrame:
    """Return the mean best values, problems by samplers, over the seeds that every sampler has."""
    wide = best.unstack("sampler").reindex(columns=list(samplers)).dropna()
    return wide.groupby("problem", sort=False).mean()


def rank_cell(ranks: pd.Series) -> str:
    """Return "mean ± standard error" of the ranks on all problems; without the error for one, and "" for none."""
    if ranks.empty:
        return ""
    error = f" ± {standard_error(ranks):.2f}" if len(ranks) > 1 else ""
    return f"{ranks.mean():.2f}{error}"


def lost_table(best: pd.DataFrame, samplers: Sequence[str]) -> str:
    """Return every problem on which another sampler has a smaller mean best value than the first.

    Problems and seeds as in `rank_table`.
    """
    first, *others = samplers
    lines = []
    for budget in best if others else ():
        means = common_means(best[budget], samplers)
        lost = means[means[first] > means[others].min(axis=1)]
        for problem, row in lost.iterrows():
            better = row[others].astype(float)
            lines.append([f"{problem} at {budget}", f"{row[first]:.6g}", f"{better.idxmin()} {better.min():.6g}"])
    return markdown([f"behind: {len(lines)} problems and budgets", first, "best other"], lines)


def reached_table(best: pd.DataFrame, limit: pd.Series, samplers: Sequence[str]) -> str:
    """Return the shares of runs that reached the minimum, averaged over problems."""
    lines = []
    ceiling = best.index.get_level_values("problem").map(limit)
    for sampler in samplers:
        cells = []
        for b in best:
            reached = (best[b] <= ceiling)[best[b].notna()]
            reached = reached[reached.index.get_level_values("sampler") == sampler]
            shares = reached.groupby("problem").mean()
            cells.append(f"{shares.mean():.0%} of {len(shares)} problems" if len(shares) else "")
        lines.append([sampler, *cells])
    return markdown(["runs that reached the minimum", *(f"at {b}" for b in best)], lines)


def draw_convergence(
    trials: pd.DataFrame, problems: Mapping[str, Problem], samplers: Sequence[str], path: Path
) -> None:
    """Draw the mean best value so far (the regret if the minimum is known) over seeds, one panel per problem."""
    best = with_best(trials)
    names = [name for name in problems if name in set(best["problem"])]
    columns = min(len(names), 4)
    rows = -(-len(names) // columns)
    figure, axes = plt.subplots(rows, columns, figsize=(4.5 * columns, 3.5 * rows), squeeze=False, layout="constrained")
    for axis, name in zip(axes.flat, names, strict=False):
        known = not np.isnan(problems[name].minimum)
        for sampler in samplers:
            own = best[(best["problem"] == name) & (best["sampler"] == sampler)]
            if own.empty:
                continue
            runs = own.pivot(index="number", columns="seed", values="best")
            runs = runs.dropna() - (problems[name].minimum if known else 0.0)
            mean = runs.mean(axis=1)
            error = runs.std(axis=1) / np.sqrt(runs.shape[1])
            (line,) = axis.plot(runs.index + 1, mean, label=sampler)
            # On a logarithmic axis a band down to zero would hide the other lines.
            lower = np.maximum(mean - error, 0.1 * mean) if known else mean - error
            axis.fill_between(runs.index + 1, lower, mean + error, color=line.get_color(), alpha=0.15)
        axis.set(title=name, xlabel="evaluations", ylabel="simple regret" if known else "best value")
        axis.set_yscale("log" if known else "linear")
    axes[0, 0].legend(fontsize="small")
    figure.savefig(path)
    plt.close(figure)
