"""Covariance functions learned from related data (Shilton et al., arXiv 1802.05370).

A machine with the weights alpha_i at the points u_i re-weights the features of its kernel: K^E(u, u') = sum_ij alpha_i
alpha_j K_4(u_i, u_j, u, u') (theorem 3). It is used in two ways, both 1 on the diagonal:

* one layer (sections 5.1, 5.2): kappa_1 = K^E(u, u') / sqrt(K^E(u, u) K^E(u', u'));
* two layers (section 5.3): kappa_2 = exp(-D / (2 lambda^2)) with the squared distance of the features,
  D = K^E(u, u) + K^E(u', u') - 2 K^E(u, u'), in units of its median over the space.

The covariance is sigma_f^2 (share_1 kappa_1 + share_2 kappa_2 + share_base M_p), with a Matérn kernel M_p for what the
related data do not tell.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Literal, Self, cast

import numpy as np
from ConfigSpace import ConfigurationSpace
from numpy.typing import ArrayLike
from typing_extensions import override

from slayr_py.arguments import check_number
from slayr_py.errors import DataError, SlayrError, StorageError
from slayr_py.kernels.base import Kernel
from slayr_py.kernels.composite import Planned
from slayr_py.kernels.expression import Leaf, Node, Sum
from slayr_py.kernels.free_kernels import FreeKernel, from_family
from slayr_py.kernels.hyperparameters import Draws, Hyperparameter
from slayr_py.kernels.leaves import Given, PlannedLeaf
from slayr_py.kernels.matern import Matern
from slayr_py.kernels.origins import Origin, binary_of, check_origin, origin_of, radius_of
from slayr_py.kernels.plan import Plan
from slayr_py.kernels.priors import Dirichlet, LogNormal, lengthscale_prior
from slayr_py.kernels.reweighting import Reweighted
from slayr_py.space import Encoded, Encoder, FloatArray, Layout

BASE = "base"
"""Label of the share of the base kernel: near 1, the related data do not help."""

_LAYERS = {1: "one layer", 2: "two layers"}
_MEDIAN_POINTS = 256
_VANISHING = 1e-280  # variances below it are treated as 0
_MISLEADING = 0.5  # mean share of the base kernel above which a note says so
_MARGIN = 1e-5  # of the space, in which the kernel can be evaluated too: for finite differences at the bounds
_FORMAT = 1


class Pretrained(Planned):
    """Covariance function learned from related data, beside a Matérn kernel.

    :func:`slayr_py.svm.pretrain` and its ``kernel`` make it.

    Its hyperparameters are ``share`` ("one layer", "two layers", "base"), the weights of the parts;
    ``feature_lengthscale`` of the second layer, in units of the median distance; and ``lengthscale`` of the base kernel
    for each encoded column. What was learned is fixed. A ``share`` of the base near 1 says that the related data are
    misleading.

    Parameters
    ----------
    support : (N, C) array_like
        Points of the machine in the unit coordinates of the encoded columns.
    alpha : (N,) array_like
        Their signed weights, which add up to 0.
    lengthscale : float, (C,) array_like or None
        Length-scale of the machine's kernel; None for a family without.
    family : {"se", "exponential", "polynomial", "linear"}
        Family of the machine's kernel.
    origin : {"centre", "corner"} or mapping of str to float
        Origin of the coordinates u = x - o, on which a re-weighted kernel depends: 1/2 in every column ("centre") or 0
        ("corner"); the columns of a categorical parameter keep 0.
    layers : int or sequence of int
        1, 2 or both.
    base : Matern or None
        Kernel for what the related data do not tell, of order 0, 1 or 2.
    columns : sequence of str
        Names of the C encoded columns; the kernel is refused for a space with others.
    family_options : mapping, optional
        ``degree`` and ``coef0`` of the polynomial family.
    distance_scale : float, optional
        Squared distance of the features that counts as 1; by default the median over 256 points of the space.
    ranges : mapping of str to sequence, optional
        Lower bound, upper bound, and whether the scale is logarithmic, of real parameters: the kernel is refused for a
        space with others.
    concentration : float
        Concentration of the learned parts in the Dirichlet prior of ``share``; that of the base is 1. A number below 1
        makes their prior share smaller.

    Raises
    ------
    DataError
        For arrays of the wrong shape or not finite, weights that are all zero or do not add up to 0, points outside
        [0, 1], unknown layers or bases, and one layer of a family whose K^E vanishes at the origin: all but "se".
    """

    name: ClassVar[str] = "pretrained"
    plain_mappings: ClassVar[tuple[str, ...]] = ("origin", "family_options", "ranges")

    def __init__(
        self,
        support: ArrayLike,
        alpha: ArrayLike,
        lengthscale: ArrayLike | None,
        family: str = "se",
        origin: Origin = "centre",
        layers: int | Sequence[int] = (1, 2),
        base: Matern | None = Matern(p=2),  # noqa: B008  (a kernel is immutable)
        columns: Sequence[str] = (),
        family_options: Mapping[str, Any] | None = None,
        distance_scale: float | None = None,
        ranges: Mapping[str, Sequence[float]] | None = None,
        concentration: float = 1.0,
    ) -> None:
        self.columns = _checked_columns(columns)
        self.support, self.alpha = _checked_support(support, alpha, len(self.columns))
        check_origin(origin, self.columns)
        self.family = family
        self.origin = origin if isinstance(origin, str) else dict(origin)
        self.family_options = dict(family_options or {})
        self._free = _checked_family(family, lengthscale, self.family_options, len(self.columns))
        self.lengthscale = None if lengthscale is None else np.array(lengthscale, dtype=np.float64)
        self.layers = _checked_layers(layers, family)
        if base is not None and not (isinstance(base, Matern) and base.p <= 2):
            raise DataError(f"the base must be Matern(p=0), Matern(p=1), Matern(p=2) or None, got {base!r:.200}")
        self.base = base
        self.distance_scale = None if distance_scale is None else check_number("distance_scale", distance_scale)
        self.ranges = {name: _checked_range(name, values) for name, values in (ranges or {}).items()}
        self.concentration = check_number("concentration", concentration)
        self._at: dict[tuple[Any, ...], Features] = {}

    @override
    def options(self) -> dict[str, Any]:
        options: dict[str, Any] = {
            "support": self.support.tolist(),
            "alpha": self.alpha.tolist(),
            "lengthscale": None if self.lengthscale is None else self.lengthscale.tolist(),
            "family": self.family,
            "origin": self.origin if isinstance(self.origin, str) else {k: float(v) for k, v in self.origin.items()},
            "layers": list(self.layers),
            "base": None if self.base is None else {"name": Matern.name, **self.base.options()},
            "columns": list(self.columns),
        }
        if self.family_options:
            options["family_options"] = self.family_options
        if self.ranges:
            options["ranges"] = {name: list(values) for name, values in self.ranges.items()}
        if self.concentration != 1:
            options["concentration"] = self.concentration
        return options if self.distance_scale is None else options | {"distance_scale": self.distance_scale}

    def __repr__(self) -> str:
        return f"Pretrained({len(self.alpha)} points, {self.family}, layers={self.layers}, base={self.base!r})"

    @property
    @override
    def description(self) -> str:
        return f"pre-trained kernel ({', '.join(self._parts)}; {len(self.alpha)} related points)"

    @property
    def messages(self) -> list[str]:
        """What a user should know about the points at which the kernel was evaluated."""
        worst = max((found.vanishing for found in self._at.values()), default=0)
        if not worst or 1 not in self.layers:
            return []
        return [
            f"the re-weighted kernel vanishes at {worst} configurations: they are uncorrelated with all others under "
            "one layer"
        ]

    @override
    def check_encoder(self, encoder: Layout) -> None:
        super().check_encoder(encoder)
        if encoder.column_names != self.columns:
            raise DataError(
                f"the kernel was learned on the columns {list(self.columns)}, and the space has "
                f"{list(encoder.column_names)}; pre-train on configurations of this space"
            )
        for name, here in ranges_of(encoder).items():
            if here != self.ranges.get(name, here):
                raise DataError(
                    f"the kernel was learned on {name!r} {_spelled(self.ranges[name])}, and the space has it "
                    f"{_spelled(here)}; pre-train on configurations of this space"
                )

    @override
    def hyperparameters(self, encoder: Layout) -> tuple[Hyperparameter, ...]:
        found = []
        if self.base is not None:
            columns = encoder.column_names
            found.append(Hyperparameter("lengthscale", lengthscale_prior(len(columns)), columns, "encoded_column"))
        if len(self._parts) > 1:
            concentration = [self.concentration] * len(self.layers) + [1.0] * (self.base is not None)
            found.append(Hyperparameter("share", Dirichlet(concentration), self._parts, "part"))
        if 2 in self.layers:
            found.append(Hyperparameter("feature_lengthscale", LogNormal(0.0, 1.0), (_LAYERS[2],), "feature_part"))
        return tuple(found)

    @override
    def plan(self, encoder: Layout) -> Plan:
        given = tuple(self._part(layer) for layer in self.layers)
        empty = slice(0, 0)
        leaves = []
        for i, layer in enumerate(self.layers):
            feature = 0 if layer == 2 else -1
            leaves.append(PlannedLeaf(_LAYERS[layer], given[i].kind, (), empty, empty, -1, -1, feature, i))
        if self.base is not None:
            every = tuple(range(len(self.columns)))
            leaf = Leaf(f"MAT{2 * self.base.p + 1}2")
            leaves.append(PlannedLeaf(BASE, leaf.name, every, slice(0, len(every)), empty, -1, -1, -1, -1))
        steps = [1]
        for i in range(1, len(leaves)):
            steps += [i + 1, -i]
        return Plan(tuple(leaves), tuple(steps), given, n_share=len(leaves) if len(leaves) > 1 else 0)

    @override
    def notes(self, draws: Draws) -> tuple[str, ...]:
        if self.base is None:
            return tuple(self.messages)
        share = draws["share"][:, -1]
        note = f"share of the base kernel {share.mean():.2f}"
        if len(share) > 1:
            note += " (90% interval {:.2f} to {:.2f})".format(*np.quantile(share, [0.05, 0.95]))
        if share.mean() > _MISLEADING:
            note += ": the related data do not help, or mislead"
        return (note, *self.messages)

    @override
    def component_names(self, encoder: Layout) -> tuple[str, ...]:
        return self._parts

    @property
    @override
    def only_part(self) -> Given | None:
        return self._part(self.layers[0]) if len(self._parts) == 1 else None

    @override
    def as_node(self) -> tuple[Node, dict[str, Kernel]]:
        single: dict[str, Kernel] = {f"PRE{layer}": self.with_parts(layer, None) for layer in self.layers}
        leaves = [Leaf(name) for name in single]
        if self.base is not None:
            leaves.append(Leaf(f"MAT{2 * self.base.p + 1}2"))
        return (Sum(tuple(leaves)) if len(leaves) > 1 else leaves[0]), single

    def with_parts(self, layers: int | Sequence[int], base: Matern | None) -> Pretrained:
        """Return the kernel with other layers and another base."""
        options = {name: getattr(self, name) for name in _LEARNED}
        return Pretrained(**options, layers=layers, base=base)

    def save(self, path: str | Path) -> Path:
        """Write the kernel as JSON.

        Raises
        ------
        StorageError
            If the file cannot be written.
        """
        file = Path(path)
        try:
            file.write_text(json.dumps({"format": _FORMAT, "kernel": self.options()}) + "\n", encoding="utf-8")
        except OSError as error:
            raise StorageError(f"{file} cannot be written: {error.strerror or error}") from error
        return file

    @classmethod
    def load(cls, path: str | Path, space: ConfigurationSpace | Encoder | None = None) -> Self:
        """Read a kernel that :meth:`save` wrote.

        Parameters
        ----------
        path : path
        space : ConfigSpace.ConfigurationSpace or Encoder, optional
            Check that the kernel belongs to this space.

        Raises
        ------
        StorageError
            If the file cannot be read, is no such kernel, or is one for other columns.
        """
        file = Path(path)
        try:
            stored = json.loads(file.read_text(encoding="utf-8"))
            if stored["format"] != _FORMAT:
                raise ValueError(f"its format is {stored['format']!r:.80}, this version reads {_FORMAT}")
            options = dict(stored["kernel"])
            base = options.pop("base")
            kernel = cls(**options, base=None if base is None else Matern(p=base["p"]))
            if space is not None:
                kernel.check_encoder(space if isinstance(space, Encoder) else Encoder(space))
            return kernel
        except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError, SlayrError) as error:
            raise StorageError(f"{file} is no readable pre-trained kernel: {error}") from error

    @property
    def _parts(self) -> tuple[str, ...]:
        return (*(_LAYERS[layer] for layer in self.layers), *((BASE,) if self.base is not None else ()))

    def _part(self, layer: int) -> Given:
        return _OneLayer(self) if layer == 1 else _TwoLayers(self)

    def features(self, encoder: Layout) -> Features:
        """Return the re-weighted kernel on a space; it is made once."""
        self.check_encoder(encoder)
        origin = origin_of(self.origin, encoder)
        binary = binary_of(origin, encoder)
        key = (origin.tobytes(), binary)
        if key not in self._at:
            radius = (1 + _MARGIN) * radius_of(origin)
            reweighted = self._free.reweighted(self.support - origin, self.alpha, radius, binary=binary)
            self._at[key] = Features(reweighted, origin, self.distance_scale)
        return self._at[key]


_LEARNED = (
    "support",
    "alpha",
    "lengthscale",
    "family",
    "origin",
    "columns",
    "family_options",
    "distance_scale",
    "ranges",
    "concentration",
)


class Features:
    """The re-weighted kernel on configurations of a space.

    Attributes
    ----------
    vanishing : int
        Largest number of configurations in one set at which K^E(u, u) is 0.
    """

    def __init__(self, reweighted: Reweighted, origin: FloatArray, distance_scale: float | None) -> None:
        self._reweighted = reweighted
        self._origin = origin
        self._distance_scale = distance_scale
        self._last: tuple[Encoded, Encoded, FloatArray, FloatArray, FloatArray] | None = None
        self.vanishing = 0

    @property
    def engine(self) -> str:
        """Engine of the re-weighted kernel: "features" or "pairs"."""
        return self._reweighted.engine

    def distance_scale(self, encoder: Layout) -> float:
        """Return the median squared distance of the features of points of the space."""
        if self._distance_scale is None:
            self._distance_scale = self.median_squared_distance(cast(Encoder, encoder), seed=1)
        return self._distance_scale

    def median_squared_distance(self, encoder: Encoder, seed: int) -> float:
        """Return the median squared distance of the features between 256 points of the space; 1 if it is 0."""
        points = encoder.encode(encoder.sobol(_MEDIAN_POINTS, seed))
        distance = _squared_distance(*self.values(points, points))
        return float(np.median(distance[np.triu_indices(len(points), 1)])) or 1.0

    def values(self, a: Encoded, b: Encoded) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return K^E(a, b), K^E(a, a) and K^E(b, b); the last ones are kept, since both layers need them."""
        last = self._last
        if last is None or last[0] is not a or last[1] is not b:
            u = a.columns - self._origin
            v = b.columns - self._origin
            k, of_a, of_b = self._reweighted.covariance_and_variances(u, v)
            self.vanishing = max(self.vanishing, int(np.sum(of_a < _VANISHING)), int(np.sum(of_b < _VANISHING)))
            self._last = last = (a, b, k, of_a, of_b)
        return last[2:]

    def slopes(self, a: Encoded, b: Encoded) -> tuple[FloatArray, FloatArray]:
        """Return the derivatives of K^E(a, b) (n_a, n_b, D_c) and K^E(a, a) (n_a, D_c) by the real inputs of a."""
        u = a.columns - self._origin
        v = b.columns - self._origin
        real = list(a.encoder.column_of.values())
        by_cross = self._reweighted.covariance_gradient(u, v)[1]
        by_own = self._reweighted.variance_gradient(u)[1]
        return by_cross[..., real], by_own[..., real]


class _Layer(Given):
    """A use of the re-weighted kernel."""

    def __init__(self, kernel: Pretrained) -> None:
        self.kernel = kernel

    @override
    def check_encoder(self, encoder: Layout) -> None:
        self.kernel.check_encoder(encoder)


class _OneLayer(_Layer):
    """The normalised re-weighted kernel."""

    kind: ClassVar[Literal["correlation", "squared distance"]] = "correlation"

    @override
    def between(self, a: Encoded, b: Encoded) -> FloatArray:
        k, of_a, of_b = self.kernel.features(a.encoder).values(a, b)
        vanishes = (of_a < _VANISHING)[:, None] | (of_b < _VANISHING)
        root = np.sqrt(np.maximum(of_a, _VANISHING))[:, None] * np.sqrt(np.maximum(of_b, _VANISHING))
        correlation = np.where(vanishes, 0.0, k / root)
        if vanishes.any():
            correlation[vanishes & np.all(a.columns[:, None] == b.columns, axis=-1)] = 1.0
        return correlation

    @override
    def gradient(self, a: Encoded, b: Encoded) -> tuple[FloatArray, FloatArray]:
        _, of_a, of_b = self.kernel.features(a.encoder).values(a, b)
        value = self.between(a, b)
        (by_cross, by_own) = self.kernel.features(a.encoder).slopes(a, b)
        vanishes = (of_a < _VANISHING)[:, None] | (of_b < _VANISHING)
        safe_a = np.maximum(of_a, _VANISHING)
        safe_b = np.maximum(of_b, _VANISHING)
        slope = by_cross / (np.sqrt(safe_a)[:, None] * np.sqrt(safe_b))[..., None]
        slope -= value[..., None] * (by_own / (2 * safe_a[:, None]))[:, None]
        return value, np.where(vanishes[..., None], 0.0, slope)


class _TwoLayers(_Layer):
    """The squared distance of the features, in units of its median."""

    kind: ClassVar[Literal["correlation", "squared distance"]] = "squared distance"

    @override
    def between(self, a: Encoded, b: Encoded) -> FloatArray:
        return _squared_distance(*self.kernel.features(a.encoder).values(a, b)) / self.kernel.features(
            a.encoder
        ).distance_scale(a.encoder)

    @override
    def gradient(self, a: Encoded, b: Encoded) -> tuple[FloatArray, FloatArray]:
        by_cross, by_own = self.kernel.features(a.encoder).slopes(a, b)
        return self.between(a, b), (by_own[:, None] - 2 * by_cross) / self.kernel.features(a.encoder).distance_scale(
            a.encoder
        )


def ranges_of(encoder: Layout) -> dict[str, tuple[float, float, bool]]:
    """Return lower bound, upper bound and whether the scale is logarithmic, of every real parameter."""
    return {d.name: (float(d.lower), float(d.upper), d.log) for d in encoder.dimensions if d.is_real}


def _checked_range(name: str, values: Sequence[float]) -> tuple[float, float, bool]:
    try:
        lower, upper, log = values
        found = float(lower), float(upper), bool(log)
    except (TypeError, ValueError) as error:
        raise DataError(f"ranges[{name!r}] must be a lower bound, an upper bound and a bool, got {values!r}") from error
    if not found[0] < found[1]:
        raise DataError(f"ranges[{name!r}] must have a lower bound below the upper one, got {values!r}")
    return found


def _spelled(values: tuple[float, float, bool]) -> str:
    return f"from {values[0]:g} to {values[1]:g}{' (logarithmic)' if values[2] else ''}"


def _squared_distance(k: FloatArray, of_a: FloatArray, of_b: FloatArray) -> FloatArray:
    return np.maximum(of_a[:, None] + of_b - 2 * k, 0.0)


def _checked_layers(layers: int | Sequence[int], family: str) -> tuple[int, ...]:
    given = [layers] if isinstance(layers, int) or not isinstance(layers, Iterable) else list(layers)
    integers = all(isinstance(layer, int | np.integer) and not isinstance(layer, bool) for layer in given)
    if not given or not integers or not set(given) <= _LAYERS.keys():
        raise DataError(f"layers must be 1, 2 or (1, 2), got {layers!r}")
    chosen = tuple(layer for layer in _LAYERS if layer in given)
    if 1 in chosen and family != "se":
        raise DataError(
            f"one layer of the family {family!r} is 0/0 at the origin, where its re-weighted kernel vanishes; use "
            "layers=2, or the family 'se'"
        )
    return chosen


def _checked_columns(columns: Sequence[str]) -> tuple[str, ...]:
    if isinstance(columns, str) or not isinstance(columns, Iterable):
        raise DataError(f"columns must be the names of the encoded columns, got {columns!r}")
    return tuple(columns)


def _checked_family(
    family: str, lengthscale: ArrayLike | None, options: Mapping[str, Any], n_columns: int
) -> FreeKernel:
    """Return the kernel of the machine; ``DataError`` unless it is one for points with ``n_columns`` columns."""
    if "lengthscale" in options:
        raise DataError("family_options are degree and coef0; the length-scale is an argument of its own")
    takes_one = "lengthscale" in from_family(family, **options).options()
    if takes_one and lengthscale is None:
        raise DataError(f"the {family} kernel needs a lengthscale")
    scales = {} if lengthscale is None else {"lengthscale": lengthscale}
    free = from_family(family, **scales, **options)
    free.series(n_columns)  # refuses another number of length-scales
    return free


def _checked_support(support: ArrayLike, alpha: ArrayLike, n_columns: int) -> tuple[FloatArray, FloatArray]:
    try:
        points = np.array(support, dtype=np.float64)
        weights = np.array(alpha, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise DataError(f"support and alpha must be numbers: {error}") from error
    if points.ndim != 2 or points.shape[1] != n_columns or weights.shape != points.shape[:1]:
        raise DataError(
            f"support must have a row for each of the {weights.size} weights and a column for each of the {n_columns} "
            f"names in columns, got shape {points.shape}"
        )
    if not (np.all(np.isfinite(points)) and np.all(np.isfinite(weights))):
        raise DataError("support and alpha must be finite")
    if np.any((points < -1e-9) | (points > 1 + 1e-9)):
        outside = points[np.any((points < -1e-9) | (points > 1 + 1e-9), axis=1)][0]
        raise DataError(f"support must be in [0, 1], the coordinates of an encoder; got {outside.tolist()}")
    largest = float(np.max(np.abs(weights), initial=0.0))
    if largest == 0:
        raise DataError("all weights alpha are 0: the related data teach nothing")
    if abs(weights.sum()) > 1e-6 * largest:
        raise DataError(f"the weights alpha must add up to 0, not {weights.sum():g}")
    return points, weights
