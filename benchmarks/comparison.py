"""Write the measured tables of docs/comparison.md from the pages of the benchmarks.

    python -m benchmarks.comparison

The pages in optimisation/, speed/ and search/ have the results; docs/comparison.md shows them in short form between the
comments "begin NAME" and "end NAME". Run this command after a page has changed. Nothing is measured.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from benchmarks.common.results import markdown

FOLDER = Path(__file__).parent
PAGE = FOLDER.parent / "docs" / "comparison.md"
LABELS = {
    "slayr": "slayr_py",
    "optuna-gp": "Optuna GP",
    "optuna-tpe": "Optuna TPE",
    "botorch": "BoTorch",
    "random": "random",
}
TIME = "seconds per suggestion"
WITHOUT_MINIMUM = ("nusvr", "xgboost")
"""Problems whose page has best values instead of regrets."""


def tables(page: str, heading: str) -> list[pd.DataFrame]:
    """Return the tables under a heading of the page of a folder, their cells as text."""
    text = (FOLDER / page / "README.md").read_text(encoding="utf-8")
    return tables_in(text.partition(f"\n## {heading}\n")[2].partition("\n## ")[0])


def tables_in(text: str) -> list[pd.DataFrame]:
    """Return the tables of a text in Markdown, their cells as text."""
    found = []
    for block in re.findall(r"(?:^\|.*\n?)+", text, re.MULTILINE):
        lines = (line.strip().removeprefix("|").removesuffix("|") for line in block.splitlines())
        rows = [[cell.strip() for cell in re.split(r"(?<!\\)\|", line)] for line in lines]
        found.append(pd.DataFrame(rows[2:], columns=rows[0]))
    return found


def table(page: str, heading: str, *columns: str) -> pd.DataFrame:
    """Return the first table under a heading that has these columns."""
    for found in tables(page, heading):
        if set(columns) <= set(found.columns):
            return found
    raise SystemExit(f"{page}/README.md has no table with the columns {', '.join(columns)} under {heading!r}")


def number(cell: str) -> float:
    """Return the first number of a cell: the mean of "**0.058** ± 0.026, 1/9"."""
    return float(cell.replace("*", "").split()[0].rstrip(","))


def suite() -> pd.DataFrame:
    """Return the results of all problems and of the samplers with a label."""
    results = table("optimisation", "Results", "problem", "sampler", "at 25", "at 50")
    return results[results["sampler"].isin(LABELS)]


def wide(results: pd.DataFrame, column: str, index: str = "problem") -> pd.DataFrame:
    """Return a column with one row for each problem and one column for each sampler, "" where one is missing."""
    cells = results.pivot(index=index, columns="sampler", values=column).fillna("")
    return cells.loc[results[index].unique(), [name for name in LABELS if name in cells]]


def row_of_means(cells: pd.Series, counts: Callable[[str], str]) -> list[str]:
    """Return the means of a row with the smallest in bold, and what ``counts`` makes of each cell."""
    smallest = min(number(cell) for cell in cells if cell)
    texts = []
    for cell in cells:
        if not cell:
            texts.append("not run")
            continue
        mean = cell.replace("*", "").split()[0].rstrip(",")
        mean = f"**{mean}**" if number(cell) == smallest else mean
        texts.append(mean + counts(cell))
    return texts


def runs(cell: str) -> str:
    """Return the number of runs: " (9)" for a cell that ends with "1/9", where 1 is how many reached the minimum."""
    return f" ({cell.rpartition('/')[2]})"


def found_runs(cell: str) -> str:
    """Return the runs that found a feasible configuration and all runs: " (3/5)"."""
    return f" ({cell.rpartition(' ')[2]})"


def no_runs(_: str) -> str:
    return ""


def regrets(column: str) -> str:
    cells = wide(suite(), column)
    names = [f"{name} (best value)" if name in WITHOUT_MINIMUM else name for name in cells.index]
    rows = [[name, *row_of_means(row, runs)] for name, (_, row) in zip(names, cells.iterrows(), strict=True)]
    return markdown(["problem", *(LABELS[name] for name in cells)], rows)


def ranks() -> str:
    """Return the tables of average ranks, of all samplers and of those that ran on every problem."""
    found = [t for t in tables("optimisation", "Results") if t.columns[0] == "average rank"]
    rows = [[[LABELS.get(row[0], row[0]), *row[1:]] for row in t.itertuples(index=False)] for t in found]
    return "\n\n".join(markdown(list(t.columns), own) for t, own in zip(found, rows, strict=True))


def behind(cells: pd.DataFrame) -> tuple[str, str]:
    """Return in how many rows slayr has the smallest mean, and the others with the best sampler of each."""
    run = cells[cells["slayr"] != ""]
    means = run.map(lambda cell: number(cell) if cell else float("inf"))
    others = means.drop(columns=["slayr"])
    worse = means.index[means["slayr"] > others.min(axis=1)]
    names = [f"{name} ({LABELS[others.loc[name].idxmin()]})" for name in worse]
    return f"{len(run) - len(worse)} of {len(run)}", ", ".join(names) or "none"


def summary() -> str:
    rows = []
    for column in ("at 25", "at 50", "at 100"):
        rows.append([f"[regret](#regret), {column} evaluations", *behind(wide(suite(), column))])
    constrained = table("optimisation", "Constraints", "problem", "sampler", "at 25", "at 50")
    for column in ("at 25", "at 50"):
        rows.append([f"[constraints](#constraints), {column} evaluations", *behind(wide(constrained, column))])
    batches = with_case(table("optimisation", "Batches", "problem", "sampler", "batch"))
    for column in ("at 25", "at 50"):
        rows.append([f"[batches](#batches), {column} evaluations", *behind(wide(batches, column, "case"))])
    rows.append(["[processor time](#time-per-suggestion) per suggestion, against each sampler", *slower()])
    return markdown(["benchmark", "slayr_py is best or level in", "slayr_py is behind in (best other)"], rows)


def slower() -> tuple[str, str]:
    """Return in how many comparisons with a sampler on a problem slayr is as fast, and by sampler where it is not."""
    times = wide(suite(), TIME)
    times = times[times["slayr"] != ""].replace("", np.nan).astype(float)
    fast = 0
    compared = 0
    names = []
    for sampler in times.columns.drop(["slayr", "random"]):
        both = times[["slayr", sampler]].dropna()
        slow = both["slayr"] > both[sampler]
        fast = fast + int((~slow).sum())
        compared = compared + len(slow)
        names.append(f"{LABELS[sampler]} on {slow.sum()} of {len(slow)} problems")
    return f"{fast} of {compared}", ", ".join(names)


def seconds() -> str:
    """Return the range of times over the problems of the suite."""
    rows = []
    results = suite()
    for sampler, label in LABELS.items():
        if sampler == "random":
            continue
        own = results[results["sampler"] == sampler]
        times = own[TIME].astype(float)
        slowest = own["problem"][times.idxmax()]
        rows.append([label, *(f"{time:.2f}" for time in (times.min(), times.median(), times.max())), slowest])
    return markdown(["sampler", "smallest", "median", "largest", "problem of the largest"], rows)


def growth() -> str:
    """Return the times of one suggestion for several numbers of observations."""
    first, second = (t for t in tables("speed", "Time per suggestion") if "n" in t)
    rows = []
    heads = ["slayr, carried", "slayr, NUTS", "Optuna GP", "BoTorch"]
    for name, found in (("first run", first), ("second run, with BoTorch", second)):
        found = found.assign(n=found["n"].replace("", pd.NA).ffill())
        cells = found.pivot(index="n", columns="", values="median").reindex(columns=heads, fill_value="not run")
        rows += [[n, name, *cells.loc[n]] for n in found["n"].unique()]
    labels = ["slayr_py, carried posterior", "slayr_py, NUTS", "Optuna GP", "BoTorch, fully Bayesian"]
    return markdown(["observations", "run", *labels], rows)


def constraints() -> str:
    results = table("optimisation", "Constraints", "problem", "sampler", "at 25", "at 50")
    rows = []
    for column in ("at 25", "at 50"):
        cells = wide(results, column)
        rows += [[name, column, *row_of_means(row, found_runs)] for name, row in cells.iterrows()]
    return markdown(["problem", "evaluations", *(LABELS[name] for name in cells)], sorted(rows, key=lambda row: row[0]))


def failures() -> str:
    found = table("optimisation", "Failures", "problem", "failed suggestions")
    return markdown(list(found.columns), found.to_numpy().tolist())


def noise() -> str:
    found = table("optimisation", "Noise", "evaluations", "noise", "runs")
    return markdown([LABELS.get(name, name) for name in found.columns], found.to_numpy().tolist())


def with_case(results: pd.DataFrame) -> pd.DataFrame:
    """Return the results of batches with a name for each problem and size."""
    sizes = results["batch"].map(lambda size: "one at a time" if size == "1" else f"batches of {size}")
    return results.assign(case=results["problem"] + ", " + sizes)


def batches() -> str:
    results = with_case(table("optimisation", "Batches", "problem", "sampler", "batch"))
    rows = []
    for column in ("at 25", "at 50"):
        cells = wide(results, column, "case")
        rows += [[case, column, *row_of_means(row, no_runs)] for case, row in cells.iterrows()]
    return markdown(["case", "evaluations", *(LABELS[name] for name in cells)], rows)


def kernel_search() -> str:
    found = table("search", "Recovery", "kernel", "greedy")
    return markdown(list(found.columns), found.to_numpy().tolist())


BLOCKS: dict[str, Callable[[], str]] = {
    "summary": summary,
    "ranks": ranks,
    "regret after 25 evaluations": lambda: regrets("at 25"),
    "regret after 50 evaluations": lambda: regrets("at 50"),
    "regret after 100 evaluations": lambda: regrets("at 100"),
    "seconds per suggestion": seconds,
    "seconds by observations": growth,
    "constraints": constraints,
    "noise": noise,
    "failures": failures,
    "batches": batches,
    "kernel search": kernel_search,
}


def updated(page: str) -> str:
    """Return the page with all blocks written anew."""
    for name, block in BLOCKS.items():
        begin = f"<!-- begin {name} -->\n"
        end = f"<!-- end {name} -->"
        if page.count(begin) != 1 or page.count(end) != 1:
            raise SystemExit(f"the page needs one {begin.strip()} and one {end}")
        before, _, rest = page.partition(begin)
        page = f"{before}{begin}\n{block()}\n\n{end}{rest.partition(end)[2]}"
    return page


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.comparison",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.parse_args(arguments)
    PAGE.write_text(updated(PAGE.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()
