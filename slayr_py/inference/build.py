"""From what a program wrote to a posterior: labels, diagnostics, record."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import xarray as xr

from slayr_py.inference.data_tree import posterior_groups
from slayr_py.inference.diagnostics import diagnose
from slayr_py.inference.model import Model
from slayr_py.inference.observed import Observed
from slayr_py.inference.output import Run
from slayr_py.inference.posterior import Posterior
from slayr_py.inference.record import make_record
from slayr_py.inference.start import WarmStart
from slayr_py.inference.tree import leave_one_out
from slayr_py.toolchain import CompiledProgram


def build_posterior(
    model: Model,
    program: CompiledProgram,
    observed: Observed,
    run: Run,
    start: WarmStart | None = None,
    abandoned: Sequence[Mapping[str, Any]] = (),
) -> Posterior:
    """Label a run's arrays with the space's names and put the record beside them."""
    y = np.asarray(observed.data["y"], dtype=np.float64)
    groups = posterior_groups(model, observed.train, y, run, observed.y_mean, observed.y_sd)
    idata = xr.DataTree.from_dict(groups)
    hyperparameters = {name: run.variables[name] for name in model.priors if name in run.variables}
    diagnostics = diagnose(run, hyperparameters, leave_one_out(idata))
    record = make_record(model, program, observed.data, run, diagnostics, start, abandoned)
    return Posterior(model, observed.train, observed.data, idata, record, diagnostics)
