"""Contracts of the Stan programs: their data, parameters and generated quantities, each declared once.

The data dictionary and its check, the shapes of the parameters, the order of ``theta`` and the tables in
``stan/README.md`` follow from the contracts, which the kernels declare; a test compares them with ``stanc --info``.

Symbols: N observations, M new points, D input columns; L leaves of an expression.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from slayr_py.kernels.hyperparameters import Hyperparameter
from slayr_py.kernels.priors import stan_names
from slayr_py.space import Encoded, FloatArray

StanValue = int | float | FloatArray | NDArray[np.int64]
StanData = Mapping[str, StanValue]

LENGTHS: Mapping[str, Callable[[StanData], int]] = {
    "N (N + 1) / 2": lambda data: _pairs(data, "N") + _length(data, "N"),
    "N M": lambda data: _length(data, "N") * _length(data, "M"),
    "new pairs": lambda data: _length(data, "want_cov") * _pairs(data, "M"),
    "2 L - 1": lambda data: 2 * _length(data, "L") - 1,
}
"""Lengths of axes that are not entries of the data. "new pairs" is M (M - 1) / 2 if ``want_cov``, else 0."""


def _length(data: StanData, axis: str) -> int:
    return int(axis) if axis.isdigit() else int(data[axis])


def _pairs(data: StanData, points: str) -> int:
    n = _length(data, points)
    return n * (n - 1) // 2


@dataclass(frozen=True)
class Variable:
    """A variable of a program.

    Attributes
    ----------
    name : str
    shape : tuple of str
        Length of each axis: an integer entry of the data, a number, or a name in `LENGTHS`; () for a scalar.
    meaning : str
    type : {"real", "int"}
    when : mapping of str to int
        Conditions on integer entries of the data; if one fails, all axes have length 0.
    """

    name: str
    shape: tuple[str, ...]
    meaning: str
    type: Literal["real", "int"] = "real"
    when: Mapping[str, int] = field(default_factory=dict)

    def lengths(self, data: StanData) -> tuple[int, ...]:
        """Return the shape, given the integer entries of the data."""
        if any(data[name] != value for name, value in self.when.items()):
            return (0,) * len(self.shape)
        return tuple(LENGTHS[axis](data) if axis in LENGTHS else _length(data, axis) for axis in self.shape)


@dataclass(frozen=True)
class Entry(Variable):
    """An entry of a program's data.

    Attributes
    ----------
    codes : mapping of str to int
        Meanings of an integer that stands for a choice.
    default : int or float, optional
        Value of the entry for kernels that do not set it; None if every kernel has to set it.
    """

    codes: Mapping[str, int] = field(default_factory=dict)
    default: int | float | None = None


@dataclass(frozen=True)
class Parameter(Variable):
    """A hyperparameter, for which the program samples the coordinate ``z_<name>`` of the same shape.

    Attributes
    ----------
    support : str
        Fixes the family of the prior, and so the prior's entries in the data.
    """

    support: str = "positive"

    @property
    def coordinate(self) -> str:
        """Name of the program's parameter."""
        return f"z_{self.name}"

    @property
    def prior_entries(self) -> dict[str, tuple[str, ...]]:
        """Shapes of the prior's entries in the data, by name."""
        return {
            f"{self.name}_{suffix}": (*self.shape, "3") if suffix == "gamma" else self.shape
            for suffix in stan_names(self.support)
        }


COMMON_ENTRIES = (
    Entry("N", (), "observations", "int"),
    Entry("D", (), "columns of the inputs, may be 0", "int"),
    Entry("X", ("N", "D"), "inputs in [0, 1]; in `hierarchical_gp`, a categorical column holds the level's index"),
    Entry("y", ("N",), "targets, standardised to mean 0 and standard deviation 1"),
    Entry("M", (), "new points, may be 0", "int"),
    Entry("X_new", ("M", "D"), "inputs of the new points, as `X`"),
    Entry("want_cov", (), "1 writes `f_cov` for every draw", "int", default=0),
    Entry("prior_only", (), "1 omits the likelihood, to sample the prior", "int", default=0),
    Entry(
        "omit_jacobian", (), "1 omits the Jacobian of the coordinates, for the mode on the log scale", "int", default=0
    ),
    Entry(
        "y_sd", ("N",), "known standard deviations of the errors of `y`; 0 under a warp, or if `binary`", default=0.0
    ),
    Entry("noise_floor", (), "added to `sigma_n^2` as a square; in units of the transformed targets", default=0.0),
    Entry("binary", (), "1 for a probit likelihood: `y` is 1 for a success and -1 for a failure", "int", default=0),
    Entry("want_pointwise", (), "1 writes `log_lik` and `y_rep` for every draw", "int", default=1),
    Entry("want_density", (), "1 writes `log_density` for every draw", "int", default=0),
    Entry(
        "n_warp", (), "1 samples the warp of the targets, 0 leaves them as they are; 0 if `binary`", "int", default=0
    ),
    Entry("n_pivot", (), "1 for a warp that is linear below a pivot", "int", default=0),
    Entry("warp_pivot", ("n_pivot",), "the pivot: the best target, or another value that is not positive", default=0.0),
)
COMMON_PARAMETERS = (
    Parameter("mu", (), "constant mean", support="real"),
    Parameter("sigma_f", (), "signal standard deviation"),
    Parameter("sigma_n", (), "noise standard deviation"),
    Parameter("warp", ("n_warp",), "warp of the targets"),
)
QUANTITIES = (
    Variable("theta", ("n_theta",), "all hyperparameters, in the order of the parameters"),
    Variable(
        "log_lik",
        ("N",),
        "exact log density of each observation given all others, with the function integrated out",
        when={"want_pointwise": 1},
    ),
    Variable(
        "y_rep",
        ("N",),
        "replicate of each observation given all others; a joint draw if `prior_only`",
        when={"want_pointwise": 1},
    ),
    Variable("f_mean", ("M",), "mean of the latent function at the new points, after the warp"),
    Variable("f_sd", ("M",), "its standard deviation"),
    Variable(
        "log_density",
        ("1",),
        "log posterior density of the coordinates up to a constant, without its derivatives",
        when={"want_density": 1},
    ),
    Variable("f_cov", ("M", "M"), "its covariance", when={"want_cov": 1}),
)


@dataclass(frozen=True)
class Contract:
    """Data, parameters and output of a Stan program.

    Attributes
    ----------
    program : str
        Stem of the program's file.
    own_entries : tuple of Entry
        Data beyond `COMMON_ENTRIES` and the priors.
    own_parameters : tuple of Parameter
        Hyperparameters after `COMMON_PARAMETERS`, in the program's order.
    """

    program: str
    own_entries: tuple[Entry, ...]
    own_parameters: tuple[Parameter, ...]

    @property
    def entries(self) -> tuple[Entry, ...]:
        """Data without the priors."""
        return COMMON_ENTRIES + self.own_entries

    @property
    def parameters(self) -> tuple[Parameter, ...]:
        """Hyperparameters in the program's order, which is the order of ``theta`` too."""
        return COMMON_PARAMETERS + self.own_parameters

    def ordered(self, hyperparameters: Iterable[Hyperparameter]) -> tuple[Hyperparameter, ...]:
        """Return hyperparameters in the program's order.

        Raises
        ------
        ValueError
            If the program has no such hyperparameter, or has it with another support or rank.
        """
        given = {h.name: h for h in hyperparameters}
        declared = {parameter.name: parameter for parameter in self.parameters}
        for name, h in given.items():
            parameter = declared.get(name)
            if parameter is None:
                raise ValueError(f"{self.program} has no hyperparameter {name!r}")
            if parameter.support != h.prior.support or len(parameter.shape) < len(h.shape):
                raise ValueError(f"{self.program} declares {name!r} as {parameter.support} of shape {parameter.shape}")
        return tuple(given[name] for name in declared if name in given)

    def coordinate_shapes(self, hyperparameters: Iterable[Hyperparameter]) -> dict[str, tuple[int, ...]]:
        """Return the shapes of the program's parameters in its order; parameters of length 0 are omitted."""
        shapes: dict[str, tuple[int, ...]] = {}
        given = {h.name: h for h in hyperparameters}
        for parameter in self.parameters:
            if parameter.name in given and (h := given[parameter.name]).shape != (0,):
                # A scalar of some kernels only is a vector of length 1.
                shapes[parameter.coordinate] = h.shape or (1,) * len(parameter.shape)
        return shapes

    def coordinate_shapes_in(self, data: StanData) -> dict[str, tuple[int, ...]]:
        """Return `coordinate_shapes` from the program's data, which have an array for every parameter's prior."""
        firsts = {parameter.coordinate: next(iter(parameter.prior_entries)) for parameter in self.parameters}
        shapes = {coordinate: np.shape(data[name]) for coordinate, name in firsts.items()}
        return {coordinate: shape for coordinate, shape in shapes.items() if shape != (0,)}

    def data(self, entries: StanData, hyperparameters: Iterable[Hyperparameter]) -> dict[str, StanValue]:
        """Assemble the data of the program.

        Parameters
        ----------
        entries : mapping
            Data without the priors; entries with a default may be missing.
        hyperparameters : iterable of Hyperparameter
            Their priors become data; hyperparameters of other kernels of the program get priors of length 0.

        Raises
        ------
        ValueError
            If an entry is unknown or missing, or has the wrong type, code or shape.
        """
        required = {entry.name for entry in self.entries if entry.default is None}
        if wrong := (entries.keys() - {entry.name for entry in self.entries}) | (required - entries.keys()):
            raise ValueError(f"data of {self.program}: unknown or missing entries {sorted(wrong)}")
        data = dict(entries)
        for entry in sorted(self.entries, key=lambda entry: len(entry.shape)):  # lengths before arrays
            if entry.name not in data and entry.default is not None:
                data[entry.name] = np.full(entry.lengths(data), float(entry.default)) if entry.shape else entry.default
            self._check(entry, data)
        given = {h.name: h for h in self.ordered(hyperparameters)}
        for parameter in self.parameters:
            h = given.get(parameter.name)
            values = h.prior.stan_data(h.name, h.labels) if h else {}
            for name, axes in parameter.prior_entries.items():
                variable = replace(parameter, name=name, shape=axes)
                value = values.get(name, np.zeros((0, *variable.lengths(data)[1:])))
                # A scalar of some kernels only is a vector of length 1.
                data[name] = np.array(value, ndmin=len(axes)) if axes else value
                self._check(variable, data)
        return data

    def _check(self, variable: Variable, data: StanData) -> None:
        value = np.asarray(data[variable.name])
        shape = variable.lengths(data)
        legal = value.shape == shape and value.dtype.kind in ("iu" if variable.type == "int" else "iuf")
        if isinstance(variable, Entry) and variable.codes:
            legal = legal and value in variable.codes.values()
        if not legal:
            raise ValueError(
                f"data of {self.program}: {variable.name!r} is {variable.type} of shape {shape}, "
                f"got {value.dtype} of shape {value.shape}: {value!r:.100}"
            )

    def split(self, theta: FloatArray, lengths: Mapping[str, int]) -> dict[str, FloatArray]:
        """Split ``theta`` (..., n_theta) into hyperparameters, given the length of each hyperparameter with entries.

        Raises
        ------
        ValueError
            If the lengths do not add up to n_theta.
        """
        names = [parameter.name for parameter in self.parameters if parameter.name in lengths]
        ends = np.cumsum([lengths[name] for name in names])
        if ends[-1] != theta.shape[-1] or len(names) != len(lengths):
            raise ValueError(f"theta of {self.program} has {theta.shape[-1]} entries, which do not fit {dict(lengths)}")
        return dict(zip(names, np.split(theta, ends[:-1], axis=-1), strict=True))


def column_inputs(train: Encoded, new: Encoded) -> dict[str, StanValue]:
    """Return the entries of the inputs for kernels that read the one-hot columns."""
    return {"N": len(train), "D": train.columns.shape[1], "X": train.columns, "M": len(new), "X_new": new.columns}


MATERN_ORDER = Entry("p", (), "order of the Matérn kernel, nu = p + 1/2", "int")
LENGTHSCALE = Parameter("lengthscale", ("D",), "length-scales")
