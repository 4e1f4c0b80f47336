"""Covariance functions learned from related data (Shilton et al., arXiv 1802.05370).

A machine with the weights alpha_i at the points u_i re-weights the features of its kernel: K^E(u, u') = sum_ij alpha_i
alpha_j K_4(u_i, u_j, u, u') (theorem 3). It is used in two ways, and the machine itself in a third, all 1 on the
diagonal:

* one layer (sections 5.1, 5.2): kappa_1 = K^E(u, u') / sqrt(K^E(u, u) K^E(u', u'));
* two layers (section 5.3): kappa_2 = exp(-D / (2 lambda^2)) with the squared distance of the features,
  D = K^E(u, u) + K^E(u', u') - 2 K^E(u, u'), in units of its median over the space;
* prediction (not in the document): kappa_0 = exp(-(g(u) - g(u'))^2 / (2 lambda_0^2)), g(u) = sum_i alpha_i K_2(u_i, u),
  in units of the standard deviation of g at the points u_i: a smooth function of the machine's prediction.

The covariance is sigma_f^2 (share_0 kappa_0 + share_1 kappa_1 + share_2 kappa_2 + share_base M_p), with a Matérn kernel
M_p for functions that the related data do not show.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import partial
from inspect import signature
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike
from typing_extensions import override

from slayr_py.arguments import check_number
from slayr_py.errors import DataError, SlayrError, StorageError
from slayr_py.kernels.base import Kernel
from slayr_py.kernels.expressions.composite import Planned
from slayr_py.kernels.expressions.language import Leaf, Node, add
from slayr_py.kernels.expressions.leaf_kernels import GIVEN_LEAVES, LEAVES
from slayr_py.kernels.expressions.pairs import Given
from slayr_py.kernels.expressions.plan import Plan
from slayr_py.kernels.hyperparameters import Draws, Hyperparameter
from slayr_py.kernels.learned.layers import LAYERS, MachineFeatures
from slayr_py.kernels.learned.machine import Machine
from slayr_py.kernels.learned.origins import Origin, binary_of, check_origin, origin_of, radius_of
from slayr_py.kernels.learned.pretrained_arguments import (
    check_same,
    checked_columns,
    checked_family,
    checked_layers,
    checked_levels,
    checked_range,
    checked_support,
    levels_of,
    ranges_of,
    spell_levels,
    spell_range,
)
from slayr_py.kernels.matern import Matern
from slayr_py.kernels.priors import Dirichlet, LogNormal
from slayr_py.space import Encoded, Layout, Space, as_encoder
from slayr_py.text_files import write_text

BASE = "base"
"""Label of the share of the base kernel. If the share is near 1, the related data do not help."""

_MISLEADING = 0.5  # share of the base kernel; if its interval is above this, a note says so
_MARGIN = 1e-5  # of the space, in which the kernel can be evaluated too: for finite differences at the bounds
_FORMAT = 1  # of the file; other formats are refused
_OMITTED = {  # by :meth:`options`
    "family_options": {},
    "ranges": {},
    "levels": {},
    "concentration": 1.0,
    "distance_scale": None,
}


class Pretrained(Planned):
    """Covariance function learned from related data, beside a Matérn kernel.

    :func:`slayr_py.svm.pretrain` and its ``kernel`` make it.

    Its hyperparameters are ``share`` ("prediction", "one layer", "two layers", "base"), the weights of the parts;
    ``feature_lengthscale`` of the prediction, in units of its standard deviation, and of the second layer, in units of
    the median distance; and ``lengthscale`` of the base kernel for each encoded column. The learned parts are fixed.
    A ``share`` of the base near 1 indicates related data that do not help, or mislead.

    Parameters
    ----------
    support : (N, C) array_like
        Points of the machine in the unit coordinates of the encoded columns.
    alpha : (N,) array_like
        Their signed weights, which add up to 0.
    lengthscale : float, (C,) array_like or None
        Length-scale of the machine's kernel; None for a family without length-scales.
    family : {"se", "exponential", "polynomial", "linear"}
        Family of the machine's kernel.
    origin : {"centre", "corner"} or mapping of str to float
        Origin of the coordinates u = x - o, on which a re-weighted kernel depends: 1/2 in every column ("centre") or 0
        ("corner"); the columns of a categorical parameter keep 0.
    layers : int or sequence of int
        One or more of 0, the machine's prediction; 1 and 2, layers of the re-weighted kernel.
    base : Matern or None
        Kernel of order 0, 1 or 2 for functions that the related data do not show.
    columns : sequence of str
        Names of the C encoded columns; the kernel is refused for a space with others.
    family_options : mapping, optional
        ``degree`` and ``coef0`` of the polynomial family.
    distance_scale : float, optional
        Squared distance of the features that counts as 1; by default the median over 256 points of the space, whether
        or not forbidden clauses and constraints allow them.
    ranges : mapping of str to sequence, optional
        Lower bound, upper bound, and whether the scale is logarithmic, of real parameters: the kernel is refused for a
        space with others.
    concentration : float
        Concentration of the learned parts in the Dirichlet prior of ``share``; the base has 1. A number below 1
        makes their prior share smaller.
    levels : mapping of str to sequence, optional
        Levels of ordinal parameters in order: the kernel is refused for a space with others.

    Raises
    ------
    DataError
        For arrays of the wrong shape or not finite, weights that are all zero or do not add up to 0, points outside
        [0, 1], unknown layers or bases, and one layer of a family whose K^E vanishes at the origin: all but "se".
    """

    name: ClassVar[str] = "pretrained"
    plain_mappings: ClassVar[tuple[str, ...]] = ("origin", "family_options", "ranges", "levels")
    _last_features: tuple[Layout, MachineFeatures] | None = None

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
        levels: Mapping[str, Sequence[Any]] | None = None,
    ) -> None:
        self.columns = checked_columns(columns)
        self.support, self.alpha = checked_support(support, alpha, len(self.columns))
        check_origin(origin, self.columns)
        self.family = family
        self.origin = origin if isinstance(origin, str) else {name: float(o) for name, o in origin.items()}
        self.family_options = dict(family_options or {})
        self._free = checked_family(family, lengthscale, self.family_options, len(self.columns))
        self.lengthscale = None if lengthscale is None else np.array(lengthscale, dtype=np.float64)
        self.layers = checked_layers(layers, family)
        if base is not None and not (isinstance(base, Matern) and base.p <= 2):
            raise DataError(f"the base is {base!r:.200}; use Matern(p=0), Matern(p=1), Matern(p=2) or None")
        self.base = base
        self.distance_scale = None if distance_scale is None else check_number("distance_scale", distance_scale)
        self.ranges = {name: checked_range(name, values) for name, values in (ranges or {}).items()}
        self.concentration = check_number("concentration", concentration)
        self.levels = {name: checked_levels(name, values) for name, values in (levels or {}).items()}
        self._parts = tuple(LAYERS[layer].label for layer in self.layers) + ((BASE,) if base is not None else ())
        self.description = f"pre-trained kernel ({', '.join(self._parts)}; {len(self.alpha)} related points)"
        self._at: dict[tuple[Any, ...], MachineFeatures] = {}

    @override
    def options(self) -> dict[str, Any]:
        options = {name: getattr(self, name) for name in signature(Pretrained).parameters} | {
            "support": self.support.tolist(),
            "alpha": self.alpha.tolist(),
            "lengthscale": None if self.lengthscale is None else self.lengthscale.tolist(),
            "layers": list(self.layers),
            "base": None if self.base is None else {"name": Matern.name, **self.base.options()},
            "columns": list(self.columns),
            "ranges": {name: list(values) for name, values in self.ranges.items()},
            "levels": {name: list(values) for name, values in self.levels.items()},
        }
        return {name: value for name, value in options.items() if name not in _OMITTED or value != _OMITTED[name]}

    def __repr__(self) -> str:
        return f"Pretrained({len(self.alpha)} points, {self.family}, layers={self.layers}, base={self.base!r})"

    @property
    def messages(self) -> list[str]:
        """Notes on the points at which the kernel was evaluated."""
        return self._on_vanishing(max((features.vanishing for features in self._at.values()), default=0))

    def _on_vanishing(self, n: int) -> list[str]:
        """Return a note on n configurations at which the re-weighted kernel is 0."""
        if not n or 1 not in self.layers:
            return []
        consequence = "they are uncorrelated with all others under one layer"
        return [f"the re-weighted kernel vanishes at {n} configurations: {consequence}"]

    @override
    def check_encoder(self, encoder: Layout) -> None:
        super().check_encoder(encoder)
        if encoder.column_names != self.columns:
            raise DataError(
                f"the kernel was learned on the columns {list(self.columns)}, and the space has "
                f"{list(encoder.column_names)}; pre-train on configurations of this space"
            )
        check_same(self.ranges, ranges_of(encoder), spell_range)
        check_same(self.levels, levels_of(encoder), spell_levels)

    @override
    def hyperparameters(self, encoder: Layout) -> tuple[Hyperparameter, ...]:
        hyperparameters: list[Hyperparameter] = []
        if self.base is not None:
            hyperparameters += self.base.hyperparameters(encoder)
        if len(self._parts) > 1:
            concentration = [self.concentration] * len(self.layers) + [1.0] * (self.base is not None)
            hyperparameters.append(Hyperparameter("share", Dirichlet(concentration), self._parts, "part"))
        distances = tuple(LAYERS[k].label for k in self.layers if LAYERS[k].kind == "squared distance")
        if distances:
            scale = Hyperparameter("feature_lengthscale", LogNormal(0.0, 1.0), distances, "feature_part")
            hyperparameters.append(scale)
        return tuple(hyperparameters)

    @override
    def _plan(self, encoder: Layout) -> Plan:
        given = tuple(LAYERS[layer](self.features) for layer in self.layers)
        leaves = []
        n_distances = 0
        for i, part in enumerate(given):
            leaf = GIVEN_LEAVES[part.kind]
            places = {name: slice(n_distances, n_distances + 1) for name in leaf.priors(0)}
            n_distances += len(places)
            leaves.append(leaf(part.label, (), places, i))
        if self.base is not None:
            columns = tuple(range(len(self.columns)))
            leaves.append(LEAVES[self.base.leaf.name](BASE, columns, {"lengthscale": slice(0, len(columns))}))
        steps = [1]
        for i in range(1, len(leaves)):
            steps += [i + 1, -i]
        return Plan(tuple(leaves), tuple(steps), given, n_share=len(leaves) if len(leaves) > 1 else 0)

    @override
    def notes(self, draws: Draws, train: Encoded) -> tuple[str, ...]:
        vanishing = self._on_vanishing(self.features(train.encoder).n_vanishing(train))
        if self.base is None:
            return tuple(vanishing)
        share = draws["share"][:, -1]
        low, high = np.quantile(share, [0.05, 0.95])
        note = f"share of the base kernel {share.mean():.2f}"
        if len(share) > 1:
            note += f" (90% interval {low:.2f} to {high:.2f})"
        if low > _MISLEADING:
            note += ": the related data do not help, or mislead"
        return (note, *vanishing)

    @override
    def component_names(self, encoder: Layout) -> tuple[str, ...]:
        return self._parts

    @property
    @override
    def only_part(self) -> Given | None:
        return LAYERS[self.layers[0]](self.features) if len(self._parts) == 1 else None

    @override
    def as_node(self) -> tuple[Node, dict[str, Kernel]]:
        single: dict[str, Kernel] = {f"PRE{layer}": self.with_layers(layer) for layer in self.layers}
        leaves = [Leaf(name) for name in single]
        if self.base is not None:
            leaves.append(self.base.leaf)
        return add(*leaves), single

    def with_layers(self, layers: int | Sequence[int]) -> Pretrained:
        """Return the kernel with other layers and without a base."""
        return self._with(layers=layers, base=None)

    def _with(self, **changes: Any) -> Pretrained:
        """Return the kernel with other arguments; what it has computed on spaces is computed again."""
        options = {name: getattr(self, name) for name in signature(Pretrained).parameters}
        return Pretrained(**options | changes)

    def save(self, path: str | Path) -> Path:
        """Write the kernel as JSON.

        Raises
        ------
        StorageError
            If the file cannot be written.
        """
        file = Path(path)
        write_text(file, json.dumps({"format": _FORMAT, "kernel": self.options()}) + "\n")
        return file

    @classmethod
    def load(cls, path: str | Path, space: Space | None = None) -> Self:
        """Read a kernel that :meth:`save` wrote.

        Parameters
        ----------
        path : path
        space : ConfigSpace.ConfigurationSpace, Encoder or mapping, optional
            Check that the kernel belongs to this space.

        Raises
        ------
        StorageError
            If the file cannot be read, does not hold a pre-trained kernel, or holds one for other columns.
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
                kernel.check_encoder(as_encoder(space))
            return kernel
        except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError, SlayrError) as error:
            raise StorageError(f"{file} cannot be read as a pre-trained kernel: {error}") from error

    def features(self, encoder: Layout) -> MachineFeatures:
        """Return the re-weighted kernel on a space, which is computed once."""
        last = self._last_features  # a gradient asks several times
        if last is None or last[0] is not encoder:
            self._last_features = last = (encoder, self._features(encoder))
        return last[1]

    def _features(self, encoder: Layout) -> MachineFeatures:
        self.check_encoder(encoder)
        origin = origin_of(self.origin, encoder)
        binary = binary_of(origin, encoder)
        key = (origin.tobytes(), binary)
        if key not in self._at:
            points = self.support - origin
            machine = Machine(self._free.series(len(self.columns)), points, self.alpha)
            radius = (1 + _MARGIN) * radius_of(origin)
            reweighted = partial(self._free.reweighted, points, self.alpha, radius, binary=binary)
            self._at[key] = MachineFeatures(machine, reweighted, origin, self.distance_scale)
        return self._at[key]
