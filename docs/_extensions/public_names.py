"""Generate the pages of the API reference from the public names of the package.

The public names are those in ``__all__`` of ``slayr_py`` and of every module in it, and in turn. A name that several
modules export has one page, under the shortest path. After the build, a public name without a page is a warning.
"""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

from docutils import nodes
from sphinx.addnodes import pending_xref
from sphinx.application import Sphinx
from sphinx.config import Config
from sphinx.environment import BuildEnvironment
from sphinx.util import logging

PACKAGE = "slayr_py"
FOLDER = "docs/api"
logger = logging.getLogger(__name__)


def names_of(module: ModuleType) -> list[str]:
    """Return the public names of a module: ``__all__``, else what it defines."""
    if hasattr(module, "__all__"):
        return sorted(module.__all__)
    return sorted(n for n, o in vars(module).items() if n[0] != "_" and getattr(o, "__module__", "") == module.__name__)


def public_modules(path: str = PACKAGE) -> Iterator[tuple[str, ModuleType]]:
    """Yield the package and the modules among its public names, by their public path."""
    module = _get(path)
    yield path, module
    for name in names_of(module):
        if inspect.ismodule(getattr(module, name)):
            yield from public_modules(f"{path}.{name}")


def pages() -> dict[str, dict[str, str]]:
    """Return for each public module its names and the path under which each is documented."""
    home: dict[int, str] = {}
    found: dict[str, dict[str, str]] = {}
    for path, module in sorted(public_modules(), key=lambda one: one[0].count(".")):
        names = [name for name in names_of(module) if not inspect.ismodule(getattr(module, name))]
        found[path] = {name: home.setdefault(id(getattr(module, name)), f"{path}.{name}") for name in names}
    return found


def _get(path: str) -> Any:
    """Return the object at a public path."""
    first, *rest = path.split(".")
    value = importlib.import_module(first)
    for name in rest:
        value = getattr(value, name)
    return value


def summary(value: Any) -> str:
    """Return the first line of a docstring, as reStructuredText."""
    if not (inspect.isclass(value) or inspect.isroutine(value) or inspect.ismodule(value)):
        return ""
    return (inspect.getdoc(value) or "").partition("\n\n")[0].replace("\n", " ")


def module_page(path: str, homes: dict[str, str]) -> str:
    """Return the page of a module: its summary and a table of its names."""
    module = _get(path)
    lines = [path, "=" * len(path), "", inspect.getdoc(module) or "", "", f".. py:module:: {path}", ""]
    lines += [".. list-table::", "   :class: public-names", "   :widths: auto", ""]
    for name, home in homes.items():
        lines += [f"   * - :py:obj:`{name} <{home}>`", f"     - {summary(_get(home))}"]
    own = [one for one, _ in public_modules(path) if one.count(".") == path.count(".") + 1]
    own += [home for home in homes.values() if home.rpartition(".")[0] == path]
    lines += ["", ".. toctree::", "   :hidden:", "", *(f"   {home}" for home in own), ""]
    return "\n".join(lines)


def name_page(path: str) -> str:
    """Return the page of one public name."""
    value = _get(path)
    kind = "class" if inspect.isclass(value) else "function" if inspect.isroutine(value) else "data"
    kind = "exception" if inspect.isclass(value) and issubclass(value, BaseException) else kind
    module, _, name = path.rpartition(".")
    return f"{name}\n{'=' * len(name)}\n\n.. py:currentmodule:: {module}\n\n.. auto{kind}:: {path}\n"


def link_types(app: Sphinx, config: Config) -> None:
    """Let numpydoc link the names of classes in the types of parameters, where a name is not ambiguous."""
    homes = sorted({home for names in pages().values() for home in names.values() if inspect.isclass(_get(home))})
    ends = [home.rpartition(".")[2] for home in homes]
    config["numpydoc_xref_param_type"] = True
    config["numpydoc_xref_ignore"] = "all"
    # Under this name numpydoc adds no links of its own to the pages of NumPy and Python, which need a network.
    config.numpydoc_xref_aliases_complete = {n: h for n, h in zip(ends, homes, strict=True) if ends.count(n) == 1}


def generate(app: Sphinx) -> None:
    """Write the pages; pages that have not changed keep their time, pages of earlier names are removed."""
    folder = Path(app.srcdir) / FOLDER
    folder.mkdir(exist_ok=True)
    wanted = {}
    for path, homes in pages().items():
        wanted[f"{path}.rst"] = module_page(path, homes)
        wanted |= {f"{home}.rst": name_page(home) for home in homes.values()}
    for old in folder.glob("*.rst"):
        if old.name not in wanted:
            old.unlink()
    for name, text in wanted.items():
        page = folder / name
        if not page.exists() or page.read_text(encoding="utf-8") != text:
            page.write_text(text, encoding="utf-8")


def check(app: Sphinx, env: BuildEnvironment) -> None:
    """Warn of public names that the reference lacks."""
    documented = env.domaindata["py"]["objects"]
    for homes in pages().values():
        for home in homes.values():
            if home not in documented:
                logger.warning("public name without documentation: %s", home, location=f"{FOLDER}/{home}")


def skip_foreign(app: Sphinx, what: str, name: str, value: Any, skip: bool, options: Any) -> bool | None:
    """Leave out what a class inherits from another package."""
    value = value.fget if isinstance(value, property) else inspect.unwrap(value) if callable(value) else value
    module = getattr(value, "__module__", None)
    return True if module and not module.startswith(PACKAGE) else None


def nearest(
    app: Sphinx, env: BuildEnvironment, node: pending_xref, content: nodes.TextElement
) -> nodes.reference | None:
    """Resolve a name as its module writes it: by the end of exactly one public path."""
    if node.get("refdomain") != "py":
        return None
    domain = env.domains["py"]
    target = node["reftarget"].lstrip(".")
    candidates = [path for path in domain.objects if path.endswith(f".{target}")]
    private = target.rpartition(".")[2] if target.startswith(PACKAGE) else None
    if private:
        candidates = [path for path in domain.objects if path.endswith(f".{private}")]
    if len(candidates) != 1:
        return None
    return domain.resolve_xref(env, node["refdoc"], app.builder, "obj", candidates[0], node, content)


def setup(app: Sphinx) -> dict[str, bool]:
    """Generate the pages before reading, check after."""
    app.connect("config-inited", link_types, priority=900)  # after numpydoc
    app.connect("builder-inited", generate)
    app.connect("env-check-consistency", check)
    app.connect("autodoc-skip-member", skip_foreign)
    app.connect("missing-reference", nearest)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
