"""Contract of ``stan/composite_gp.stan``: the hyperparameters of leaves and sums, and the encoding of an expression."""

from __future__ import annotations

from dataclasses import dataclass

from slayr_py.kernels.contracts import Contract, Entry, Parameter


@dataclass(frozen=True)
class Slot:
    """A hyperparameter of some leaves: a vector of the entries of all leaves that have it.

    Attributes
    ----------
    parameter : Parameter
        Its length is the number of entries.
    dimension : str
        Name of the vector's dimension in arrays of draws.
    first : str
        Name in the data of the first entry of each leaf, from 1.
    by_column : bool
        Whether a leaf has an entry for each of its columns, rather than one.
    absent : int
        Stands for the first entry of a leaf that has none.
    """

    parameter: Parameter
    dimension: str
    first: str
    by_column: bool = False
    absent: int = 0

    @property
    def name(self) -> str:
        """Name of the hyperparameter."""
        return self.parameter.name

    @property
    def count(self) -> str:
        """Name in the data of the number of entries."""
        return self.parameter.shape[0]

    @property
    def entries(self) -> tuple[Entry, Entry]:
        """Declarations of the data."""
        first = f"first entry of `{self.name}` of each leaf, from 1; {self.absent} for none"
        return Entry(self.count, (), f"entries of `{self.name}`", "int"), Entry(self.first, ("L",), first, "int")


LENGTHSCALE = Slot(
    Parameter("lengthscale", ("n_lengthscale",), "length-scales, leaf by leaf"),
    "leaf_column",
    "first_lengthscale",
    by_column=True,
    absent=1,  # there may be no length-scale to point to
)
PERIOD = Slot(Parameter("period", ("n_period",), "periods"), "periodic_leaf", "period_of")
RQ_ALPHA = Slot(
    Parameter("rq_alpha", ("n_rq",), "shapes of the rational quadratic leaves"),
    "rational_quadratic_leaf",
    "rq_alpha_of",
)
CENTRE = Slot(
    Parameter("centre", ("n_centre",), "centres of the linear leaves", support="real"),
    "linear_column",
    "first_centre",
    by_column=True,
)
FEATURE_LENGTHSCALE = Slot(
    Parameter("feature_lengthscale", ("n_feature",), "length-scales of given squared distances"),
    "feature_leaf",
    "feature_of",
)
SPLIT = Parameter("split", ("n_split",), "weights of the left operands of the sums", support="unit interval")
SHARE = Parameter("share", ("n_share",), "weights of the leaves", support="simplex")

SLOTS = {slot.name: slot for slot in (LENGTHSCALE, PERIOD, RQ_ALPHA, CENTRE, FEATURE_LENGTHSCALE)}
"""Hyperparameters of leaves by name."""

COMPOSITE_GP = Contract(
    "composite_gp",
    (
        Entry("L", (), "leaves of the expression, in reading order", "int"),
        Entry("kind", ("L",), "kinds of the leaves, see `functions/composite.stan`", "int"),
        Entry("n_columns", ("L",), "columns of each leaf", "int"),
        Entry("column", ("n_lengthscale",), "column of `X` of each length-scale", "int"),
        *(entry for slot in SLOTS.values() for entry in slot.entries),
        Entry("n_given", (), "given covariances and squared distances", "int"),
        Entry("given_of", ("L",), "column of `given` of each leaf, 0 for none", "int"),
        Entry("n_split", (), "sums with a split", "int"),
        Entry("n_share", (), "0; or `L`, if the leaves are added up with shares and there are no splits", "int"),
        Entry("steps", ("2 L - 1",), "postfix order: a leaf; 0 multiplies; -j adds with split j", "int"),
        Entry("depth", (), "largest number of values on the stack", "int"),
        Entry("given", ("N (N + 1) / 2", "n_given"), "values for the pairs of the lower triangle, then the diagonal"),
        Entry("given_cross", ("N M", "n_given"), "values between observed and new points, N x M column by column"),
        Entry("given_own", ("M", "n_given"), "values of the new points with themselves"),
        Entry("given_new", ("new pairs", "n_given"), "values for the lower triangle of new points, if `want_cov`"),
    ),
    (
        LENGTHSCALE.parameter,
        PERIOD.parameter,
        RQ_ALPHA.parameter,
        CENTRE.parameter,
        SPLIT,
        SHARE,
        FEATURE_LENGTHSCALE.parameter,
    ),
)
