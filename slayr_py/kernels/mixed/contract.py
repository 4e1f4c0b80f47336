"""Contract of ``stan/fm_gp.stan``, the program of all kernels on graphs.

Symbols: N observations, M new points, D real dimensions; P graphs with G distinct eigenvalues and Q vertices in all;
H weights gamma.
"""

from __future__ import annotations

from dataclasses import replace

from slayr_py.kernels.base_kernels import BASES
from slayr_py.kernels.contracts import LENGTHSCALE, MATERN_ORDER, Contract, Entry, Parameter
from slayr_py.kernels.hierarchical import ACTIVE, ADD, BASE, RHO, RQ_ALPHA

MODULATORS = {"laplacian": 1, "power": 2, "neural": 3, "diffusion": 4, "hierarchical": 5}
COMBINATIONS = {"modulation": 0, "product": 1, "sum": 2}
"""Codes of modulators, and of combinations of continuous and discrete parameters in the program."""

_POWER = {"modulator": MODULATORS["power"]}
_NEURAL = {"modulator": MODULATORS["neural"]}
_BY_HIERARCHICAL = {"modulator": MODULATORS["hierarchical"]}

FM_GP = Contract(
    "fm_gp",
    (
        *ACTIVE,
        Entry("P", (), "graphs", "int"),
        Entry("G", (), "distinct eigenvalues of the graphs' Laplacians", "int"),
        Entry("Q", (), "vertices of the graphs", "int"),
        Entry("lambda", ("G",), "distinct eigenvalues, graph after graph"),
        Entry("graph_of", ("G",), "graph of each distinct eigenvalue, ascending from 1", "int"),
        Entry("group_of", ("Q",), "distinct eigenvalue of each eigenvector, from 1", "int"),
        Entry("U", ("N", "Q"), "eigenvectors at the vertices of each observation, the graphs side by side"),
        Entry("U_new", ("M", "Q"), "as `U`, for the new points"),
        Entry("modulator", (), "modulator of the frequencies", "int", codes=MODULATORS),
        Entry("combine", (), "combination of continuous and discrete parameters", "int", codes=COMBINATIONS, default=0),
        Entry("n_alpha", (), "`P` where alpha modulates, else 0", "int", default=0),
        Entry("orders", (), "power modulator: number of orders; 1 for the others", "int", default=1),
        Entry("tau", (), "power modulator: exponent of the distance, in (0, 2]", default=2.0),
        Entry("H", (), "hierarchical modulator: number of weights gamma; 0 for the others", "int", default=0),
        Entry("lineage", ("D", "H"), "1 where gamma belongs to the dimension or an ancestor of it, else 0", default=0),
        replace(BASE, default=BASES["se"]),
        replace(MATERN_ORDER, default=0),
        replace(ADD, default=0),
    ),
    (
        LENGTHSCALE,
        Parameter("alpha", ("n_alpha",), "strength of the modulation of each graph"),
        Parameter("beta", ("P",), "damping of the frequencies of each graph"),
        Parameter("weights", ("orders",), "weights of the orders", when=_POWER, support="simplex"),
        Parameter("bias", ("1",), "bias of the neural network", when=_NEURAL),
        Parameter("gamma", ("H",), "weights of the dimensions and their ancestors", support="unit interval"),
        replace(RHO, when=_BY_HIERARCHICAL),
        replace(RQ_ALPHA, when={**RQ_ALPHA.when, **_BY_HIERARCHICAL}),
    ),
)
