"""A stack: several kernels whose posteriors are averaged."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, ClassVar

from slayr_py.errors import DataError
from slayr_py.kernels.base import Kernel
from slayr_py.kernels.expressions.composite import Composite
from slayr_py.kernels.matern import Matern
from slayr_py.kernels.registry import from_name
from slayr_py.space import Layout


class Stack:
    """Kernels whose posteriors are averaged with weights from leave-one-out; :func:`stack` returns it.

    Attributes
    ----------
    kernels : tuple of Kernel or str
        At least one kernel, without repetition.
    name : str
        "stack", in records.
    description : str
        Description for people.
    """

    name: ClassVar[str] = "stack"

    def __init__(self, kernels: Iterable[Kernel | str]) -> None:
        if isinstance(kernels, str | Kernel):
            raise DataError(f"the kernels of a stack are {kernels!r}, which is not a list; use [{kernels!r}]")
        # The kernel "auto" depends on the space, which is not known here.
        self.kernels = tuple(kernel if kernel == "auto" else from_name(kernel) for kernel in kernels)
        if not self.kernels:
            raise DataError("a stack needs at least one kernel; the list is empty")
        seen: dict[str, Kernel | str] = {}
        for kernel in self.kernels:
            form = kernel if isinstance(kernel, str) else kernel.form
            if form in seen:
                raise DataError(f"the kernel {kernel!r} is in the stack twice, also as {seen[form]!r}; remove one")
            seen[form] = kernel
        names = (kernel if isinstance(kernel, str) else kernel.short_name for kernel in self.kernels)
        self.description = f"stack of {', '.join(names)}"

    def on(self, encoder: Layout) -> Stack:
        """Return the stack with "auto" replaced by the default kernel of a space.

        Raises
        ------
        DataError
            If a kernel does not fit the space, or the stack already has the kernel that replaces "auto".
        """
        return Stack(from_name(kernel, encoder) for kernel in self.kernels)

    def with_plain(self) -> Stack:
        """Return the stack with a Matérn kernel of order 2; the same stack if it has one."""
        plain = Matern(p=2)
        equal = {plain.form, Composite("MAT52").form}
        forms = {kernel.form for kernel in self.kernels if isinstance(kernel, Kernel)}
        return self if equal & forms else Stack((*self.kernels, plain))

    def options(self) -> dict[str, Any]:
        """Return the kernels by name and options; JSON-able."""
        auto = {"name": "auto", "options": {}}
        return {"kernels": [kernel.asdict() if isinstance(kernel, Kernel) else auto for kernel in self.kernels]}

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
