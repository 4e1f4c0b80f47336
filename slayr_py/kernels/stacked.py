"""A stack: several kernels whose posteriors are averaged."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from typing import Any, ClassVar

from slayr_py.errors import DataError
from slayr_py.kernels.base import Kernel
from slayr_py.kernels.composite import Composite
from slayr_py.kernels.matern import Matern
from slayr_py.kernels.registry import from_name
from slayr_py.space import Layout, jsonable


class Stack:
    """Kernels whose posteriors are averaged with weights from leave-one-out; :func:`stack` makes one.

    Attributes
    ----------
    kernels : tuple of Kernel or str
        At least one, none twice.
    name : str
        "stack", in records.
    """

    name: ClassVar[str] = "stack"

    def __init__(self, kernels: Iterable[Kernel | str]) -> None:
        if isinstance(kernels, str | Kernel):
            raise DataError(f"a stack is made of a list of kernels, got {kernels!r}; write [{kernels!r}]")
        # Only the space decides which kernel "auto" is.
        made = [one if isinstance(one, str) and one == "auto" else from_name(one) for one in kernels]
        if not made:
            raise DataError("a stack needs at least one kernel; the list is empty")
        seen: dict[str, Kernel | str] = {}
        for one in made:
            key = one if isinstance(one, str) else _form(one)
            if key in seen:
                raise DataError(f"the kernel {one!r} is in the stack twice, also as {seen[key]!r}; remove one of them")
            seen[key] = one
        self.kernels: tuple[Kernel | str, ...] = tuple(made)

    def on(self, encoder: Layout) -> Stack:
        """Return the same stack with the kernel of a space in the place of "auto".

        Raises
        ------
        DataError
            If a kernel does not fit the space, or "auto" is a kernel that the stack has already.
        """
        return Stack(from_name(one, encoder) for one in self.kernels)

    def with_plain(self) -> Stack:
        """Return the stack with a Matérn kernel of order 2; the same stack if it has one."""
        plain = Matern(p=2)
        same = {_form(plain), _form(Composite("MAT52"))}
        known = {_form(one) for one in self.kernels if isinstance(one, Kernel)}
        return self if same & known else Stack((*self.kernels, plain))

    def options(self) -> dict[str, Any]:
        """Return the kernels by name and options; JSON-able."""
        return {"kernels": [_spelled(one) for one in self.kernels]}

    @property
    def description(self) -> str:
        """Description for people."""
        return f"stack of {', '.join(one if isinstance(one, str) else label(one) for one in self.kernels)}"

    def __len__(self) -> int:
        return len(self.kernels)

    def __repr__(self) -> str:
        return f"stack([{', '.join(map(repr, self.kernels))}])"


def stack(kernels: Iterable[Kernel | str]) -> Stack:
    """Return a stack of kernels, for :func:`~slayr_py.minimize` and :class:`~slayr_py.GaussianProcess`.

    Parameters
    ----------
    kernels : iterable of Kernel or str
        Kernels, their names, or expressions such as "LIN * PER + SE".

    Raises
    ------
    DataError
        For no kernel, an unknown one, or one that occurs twice.

    Examples
    --------
    >>> stack(["matern", "SE + LIN"])
    stack([Matern(p=2), Composite(expression='SE + LIN')])
    """
    return Stack(kernels)


def label(kernel: Kernel) -> str:
    """Return a short name of a kernel for people: its expression, or else its description."""
    return kernel.expression if isinstance(kernel, Composite) else kernel.description


def digest(kernel: Kernel) -> str:
    """Return twelve hexadecimal digits that identify a kernel with its options."""
    return hashlib.sha256(json.dumps(_spelled(kernel), sort_keys=True).encode()).hexdigest()[:12]


def _form(kernel: Kernel) -> str:
    """Return a text that equal kernels share, also if their terms have another order."""
    spelled = _spelled(kernel)
    if isinstance(kernel, Composite):
        spelled["options"]["expression"] = kernel.canonical
    return json.dumps(spelled, sort_keys=True)


def _spelled(kernel: Kernel | str) -> dict[str, Any]:
    if isinstance(kernel, str):
        return {"name": kernel, "options": {}}
    options: dict[str, Any] = jsonable(kernel.options())
    return {"name": kernel.name, "options": options}
