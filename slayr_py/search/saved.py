"""Read saved results of kernel searches."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from slayr_py.errors import StorageError
from slayr_py.inference import check_targets
from slayr_py.kernels import Composite, Kernel, from_name, prior_from_dict
from slayr_py.kernels.expressions import parse
from slayr_py.search.fit import SCORES, Fit
from slayr_py.search.journal import Row
from slayr_py.search.kernel_search import KernelSearch
from slayr_py.search.result import FORMAT, SearchResult
from slayr_py.space import Encoded, encoder_from_json


def load(path: str | Path) -> SearchResult:
    """Read a result that `SearchResult.save` wrote.

    Raises
    ------
    StorageError
        If the file is not such a result.
    """
    try:
        values = json.loads(Path(path).read_text(encoding="utf-8"))
        if values["format"] != FORMAT:
            raise StorageError(f"{path} has format {values['format']}, this version reads {FORMAT}")
        return _result(values)
    except StorageError:
        raise
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise StorageError(f"{path} is not a saved kernel search: {error}") from error


def _result(values: dict[str, Any]) -> SearchResult:
    encoder = encoder_from_json(values["space"])
    settings = values["search"]
    priors = {name: prior_from_dict(prior) for name, prior in settings.pop("priors", {}).items()}
    search = KernelSearch(encoder, **settings, priors=priors, given=_given_kernels(values["given"]))
    train = Encoded(np.array(values["values"], np.float64), np.array(values["active"], np.bool_), encoder)
    y = check_targets(values["y"], len(train))
    shape = (len(y), len(encoder.names))
    if not train.unit_values.shape == train.active.shape == shape:
        raise ValueError(
            f"values and active have shapes {train.unit_values.shape} and {train.active.shape}, not {shape}"
        )
    rows = tuple(Row(*row) for row in values["rows"])
    fits = {fit["expression"]: Fit(**fit) for fit in values["fits"]}
    for row in rows:
        if row.expression not in fits:
            raise ValueError(f"the fit of {row.expression!r:.200} is missing")
    for fit in fits.values():
        parse(fit.expression, search.given)  # raises for an illegal expression
        if missing := set(SCORES) - set(fit.scores):
            raise ValueError(f"the fit of {fit.expression!r:.200} has no score {min(missing)!r}")
    messages, first = tuple(values["messages"]), tuple(values["first"])
    return SearchResult(search, train, y, rows, fits, messages, first, bool(values.get("interrupted")))


def _given_kernels(options: dict[str, Any]) -> dict[str, Kernel]:
    """Return kernels by name from the option ``given`` of a composite kernel."""
    if not options:
        return {}
    composite = from_name(Composite.name, expression=next(iter(options)), given=options)
    assert isinstance(composite, Composite)
    return composite.given
