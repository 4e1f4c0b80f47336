"""Kernels by name."""

from __future__ import annotations

from typing import Any

from slayr_py.errors import DataError, did_you_mean
from slayr_py.kernels.base import Kernel
from slayr_py.kernels.matern import Matern
from slayr_py.space import Encoder

_KERNELS: dict[str, type[Kernel]] = {kernel.name: kernel for kernel in (Matern,)}


def names() -> tuple[str, ...]:
    """Names that :func:`from_name` knows, besides "auto"."""
    return tuple(_KERNELS)


def from_name(name: str | Kernel, encoder: Encoder | None = None, **options: Any) -> Kernel:
    """Make a kernel.

    Parameters
    ----------
    name : str or Kernel
        A registered name, "auto" for the kernel that suits the space, or a kernel, which is handed back.
    encoder : Encoder, optional
        The space that "auto" looks at.
    **options
        Arguments of the kernel, such as ``p=2``.

    Raises
    ------
    DataError
        For an unknown name (the nearest known one is suggested) or option.
    """
    if isinstance(name, Kernel):
        if options:
            raise DataError(f"options {sorted(options)} cannot be added to the kernel {name!r}; pass them to it")
        return name
    if name == "auto":
        return Matern(**options)
    if not isinstance(name, str) or name not in _KERNELS:
        raise DataError(f"unknown kernel {name!r}{did_you_mean(name, ('auto', *names()))}")
    try:
        return _KERNELS[name](**options)
    except TypeError as error:
        raise DataError(f"kernel {name!r} does not take {sorted(options)}") from error
