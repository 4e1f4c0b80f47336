"""Imports follow the order of the rooms, no module imports one that imports it, and some things have one way."""

from __future__ import annotations

import ast
import functools
from pathlib import Path

import pytest

PACKAGE = Path(__file__).resolve().parents[1] / "slayr_py"

ROOMS = [
    ["display", "errors", "version"],
    ["arguments", "memory", "processes", "progress_bar", "text_files", "threads", "watcher"],
    ["space"],
    ["kernels"],
    ["toolchain"],
    ["inference"],
    ["search"],
    ["acquisition"],
    ["study"],
    ["sklearn"],
    ["cli"],
]
"""From the bottom to the top: a room may import those before it. `svm` stands apart and imports kernels only."""

INFERENCE = [
    ["log_sum_exp", "normal", "expectation_propagation"],
    ["diagnostics", "warp"],
    ["sampling"],
    ["model", "named_priors", "observed"],
    ["modes"],
    ["prediction"],
    ["records"],
    ["stacking"],
    ["part"],
    ["mixture", "sparse_fit"],
    ["posterior"],
    ["validation", "stack_fit", "functions"],
    ["gaussian_process"],
    ["sensitivity", "replaying"],
]
STUDY = [
    ["storage"],
    ["model"],
    ["loop"],
    ["declared_space", "inferred_space"],
    ["sampler"],
    ["results"],
    ["run"],
]


def module_name(path: Path) -> str:
    return ".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts).removesuffix(".__init__")


MODULES = {module_name(path): path for path in sorted(PACKAGE.rglob("*.py"))}


def imported(path: Path) -> set[str]:
    """Modules of the package that a file imports, for type checking and inside functions too."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module is not None:
            names = {f"{node.module}.{alias.name}" for alias in node.names}
            found |= names & MODULES.keys() or {node.module}
    return {name for name in found if name in MODULES}


@functools.cache
def imports() -> dict[str, set[str]]:
    return {name: imported(path) - {name} for name, path in MODULES.items()}


def level(name: str, order: list[list[str]], package: str) -> int | None:
    first = name.removeprefix(f"{package}.").split(".")[0]
    return next((i for i, rooms in enumerate(order) if first in rooms), None)


@pytest.mark.parametrize(
    ("package", "order"),
    [
        pytest.param("slayr_py", ROOMS, id="rooms"),
        pytest.param("slayr_py.inference", INFERENCE, id="inference"),
        pytest.param("slayr_py.study", STUDY, id="study"),
    ],
)
def test_imports_run_in_one_direction(package, order):
    levels = {
        name: level(name, order, package)
        for name in MODULES
        if name.startswith(f"{package}.") and not name.startswith("slayr_py.svm")
    }
    assert [name for name, place in levels.items() if place is None] == []
    upward = [(name, other) for name in levels for other in imports()[name] if levels.get(other, 0) > levels[name]]
    assert not upward


def test_support_vector_machines_use_kernels_and_spaces_only():
    allowed = {"svm", "kernels", "space", "errors", "arguments", "threads"}
    used = {(name, other) for name in MODULES if name.startswith("slayr_py.svm") for other in imports()[name]}
    assert not {pair for pair in used if pair[1].split(".")[1] not in allowed}


SUB_ROOMS = {"slayr_py.kernels.expressions"}
"""Folders of a room that its ``__init__`` names as a whole: their own ``__init__`` lists what other rooms may use."""


def room_of(name: str) -> str:
    return ".".join(name.split(".")[:2])


FACADES = {room_of(name) for name in MODULES if name.count(".") >= 2} | SUB_ROOMS
"""The rooms that are folders: a single module such as `slayr_py.errors` is its own facade."""


def names_of(facade: str) -> set[str]:
    """Names that the ``__init__`` of a room imports from its modules."""
    tree = ast.parse(MODULES[facade].read_text(encoding="utf-8"))
    return {
        alias.asname or alias.name for node in tree.body if isinstance(node, ast.ImportFrom) for alias in node.names
    }


def test_rooms_use_what_another_room_names_in_its_init():
    named = {facade: names_of(facade) for facade in FACADES}
    behind = []
    for name, path in MODULES.items():
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            modules = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            modules += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            for module in modules:
                facade = module if module in SUB_ROOMS else room_of(module)
                if facade not in FACADES or room_of(facade) == room_of(name) or name == "slayr_py":
                    continue
                unnamed = {alias.name for alias in node.names} - named[facade] if module == facade else {module}
                behind += [f"{name}: {what} of {module}" for what in sorted(unnamed)]
    assert not behind


def test_the_sampler_of_a_study_is_found_by_one_function_and_named_in_messages():
    found = []
    for name, path in MODULES.items():
        tree = ast.parse(path.read_text(encoding="utf-8"))
        texts = {inner for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for inner in ast.walk(node)}
        samplers = [node for node in ast.walk(tree) if isinstance(node, ast.Attribute) and node.attr == "sampler"]
        found += [
            f"{name}:{node.lineno}"
            for node in samplers
            if ast.unparse(node.value).endswith("study") and node not in texts
        ]
    assert {where.rpartition(":")[0] for where in found} == {"slayr_py.study.storage.optuna_private"}, found


def test_warnings_point_to_the_code_outside_the_package():
    levels = {
        f"{name}:{node.value.lineno}": ast.unparse(node.value)
        for name, path in MODULES.items()
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.keyword) and node.arg == "stacklevel"
    }
    assert levels and set(levels.values()) == {"level_outside()"}, levels


def test_sub_rooms_are_named_by_their_room():
    assert all(name.rpartition(".")[2] in names_of(room_of(name)) for name in SUB_ROOMS)


def test_no_circles():
    def reachable(start: str) -> set[str]:
        found: set[str] = set()
        left = [start]
        while left:
            for name in imports()[left.pop()] - found:
                found.add(name)
                left.append(name)
        return found

    # The package's own file imports every room for type checkers; each room's file imports its modules.
    modules = [name for name, path in MODULES.items() if path.name != "__init__.py"]
    assert [name for name in modules if name in reachable(name)] == []
