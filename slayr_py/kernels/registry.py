"""Kernels by name, and the choice of one for a space."""

from __future__ import annotations

from collections.abc import Mapping
from inspect import signature
from typing import Any

from slayr_py.errors import DataError, did_you_mean
from slayr_py.kernels.base import KERNELS, Kernel
from slayr_py.kernels.contracts import Contract
from slayr_py.kernels.expressions.composite import Composite
from slayr_py.kernels.expressions.leaf_kernels import LEAVES
from slayr_py.kernels.hierarchical import Hierarchical
from slayr_py.kernels.matern import Matern
from slayr_py.kernels.mixed.frequency_modulated import FrequencyModulated
from slayr_py.kernels.stan_program import OwnProgram
from slayr_py.space import Layout


def names() -> tuple[str, ...]:
    """Return the names that :func:`from_name` accepts, besides "auto"."""
    return tuple(KERNELS)


def program_contracts() -> dict[str, Contract]:
    """Return the contracts of all kernels by Stan program."""
    contracts = {kernel.contract.program: kernel.contract for kernel in KERNELS.values()}
    return dict(sorted(contracts.items()))


def own_program(program: str) -> OwnProgram | None:
    """Return the sources of a program by its name; None if the package has it."""
    owners = (kernel for kernel in KERNELS.values() if kernel.contract.program == program)
    return next((own for kernel in owners if (own := kernel.own_program()) is not None), None)


def from_name(name: str | Kernel, encoder: Layout | None = None, **options: Any) -> Kernel:
    """Return a kernel by name.

    Parameters
    ----------
    name : str or Kernel
        A registered name; an expression such as "LIN * PER + SE" for :class:`Composite`; "auto" for the default kernel
        of the space; or a kernel, which is returned unchanged.
    encoder : Layout, optional
        The space, required by "auto"; if given, the kernel is checked against it.
    **options
        Arguments of the kernel, such as ``p=2``. An argument that is a kernel itself, such as a hierarchical modulator,
        may be a mapping with its name and options.

    Raises
    ------
    DataError
        For an unknown name (the nearest known one is suggested) or option, or a kernel that does not fit the space.
    """
    kernel = _build(name, encoder, options)
    if encoder is not None:
        kernel.check_encoder(encoder)
    return kernel


def auto_reason(encoder: Layout) -> str:
    """Return the reason for the choice of :func:`from_name` for "auto"."""
    if encoder.is_conditional:
        return "the space has conditions"
    if encoder.ranked.graph_names:
        graphs = " or graphs" * bool(encoder.requested_graphs)
        return f"the space has categorical parameters{graphs} and no conditions"
    return "all parameters are numbers" + " or ordinals" * bool(encoder.graph_names)


def _build(name: str | Kernel, encoder: Layout | None, options: dict[str, Any]) -> Kernel:
    if isinstance(name, Kernel):
        if options:
            raise DataError(f"options {sorted(options)} cannot be added to the kernel {name!r}; pass them to it")
        return name
    if name == "auto":
        if options:
            raise DataError(f"options {sorted(options)} need the kernel's name; 'auto' takes none")
        return _choose(encoder)
    if isinstance(name, str) and name not in KERNELS and _is_expression(name):
        return _from_class(Composite, name, options, expression=name)
    if name == "search":
        raise DataError(
            "kernel='search' is for minimize and StanGPSampler, which search as their data grow; for a table of data "
            "use slayr_py.search.KernelSearch(space).run(configs, y).best"
        )
    if not isinstance(name, str) or name not in KERNELS:
        raise DataError(
            f"unknown kernel {name!r}{did_you_mean(name, ('auto', *names(), *LEAVES))}; a StanKernel of yours is known "
            "after the import of the module that declares it"
        )
    if name == Composite.name and "expression" not in options:
        raise DataError(f"kernel {name!r} needs an expression; use it instead of the name, such as 'LIN * PER + SE'")
    return _from_class(KERNELS[name], name, options)


def _from_class(kernel: type[Kernel], name: str, options: Mapping[str, Any], **fixed: Any) -> Kernel:
    """Construct a kernel, with options of the user and fixed ones."""
    parameters = {option: p for option, p in signature(kernel).parameters.items() if option not in fixed}
    for option in options:
        if option not in parameters:
            raise DataError(f"kernel {name!r} takes no option {option!r}{did_you_mean(option, parameters)}")
    missing = [option for option, p in parameters.items() if p.default is p.empty and option not in options]
    if missing:
        raise DataError(f"kernel {name!r} needs the options {', '.join(missing)}")
    arguments = {key: value if key in kernel.plain_mappings else _nested(value) for key, value in options.items()}
    return kernel(**fixed, **arguments)


def _is_expression(name: str) -> bool:
    """Return whether a name is an expression: it has an operator or a bracket, or is a leaf."""
    return name in LEAVES or any(character in name for character in "+*[]()")


def _choose(encoder: Layout | None) -> Kernel:
    if encoder is None:
        raise DataError("kernel='auto' depends on the space; name a kernel, or pass the encoder")
    if encoder.is_conditional:
        return Hierarchical()
    if not encoder.ranked.graph_names:
        return Matern(p=2)
    return FrequencyModulated() if encoder.ranked is encoder else FrequencyModulated(ordinals="ranks")


def _nested(value: Any) -> Any:
    if not isinstance(value, Mapping):
        return value
    options = dict(value)
    if "name" not in options and all(isinstance(option, Mapping | Kernel) for option in options.values()):
        return {key: _nested(option) for key, option in options.items()}  # kernels by name
    if "name" not in options:
        raise DataError(f"the mapping {options} of a kernel has no name; add the entry 'name'")
    return _build(options.pop("name"), None, options)
