"""Resolve links to files and folders of the repository that are no pages of the site.

A link to a folder with a page ``README.md`` leads to this page, a link to another folder or file to the repository. A
link to something that does not exist is left to MyST, which warns.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx


def resolve(app: Sphinx, document: nodes.document) -> None:
    """Replace links of MyST to files and folders that exist."""
    env, root = app.env, Path(app.srcdir)
    folder = (root / env.docname).parent
    for link in [*document.findall(addnodes.pending_xref), *document.findall(addnodes.download_reference)]:
        if link.get("reftype") != "myst":
            continue
        if link.get("refdomain") == "doc":
            # The name of a page has lost its ending, and a link to `train.py` may be meant.
            target = next((root / link["reftarget"]).parent.glob(f"{Path(link['reftarget']).name}.*"), root / "missing")
        else:
            target = (folder / link["reftarget"].partition("#")[0]).resolve()
        if not target.is_relative_to(root) or not target.exists():
            continue
        inside = target.relative_to(root).as_posix()
        if target.is_dir() and f"{inside}/README" in env.found_docs:
            page: Any = addnodes.pending_xref(refdomain="doc", reftarget=f"{inside}/README", reftargetid=None)
            page.update_all_atts({k: link[k] for k in ("refdoc", "reftype", "refexplicit")}, replace=True)
        elif target.is_dir():
            page = nodes.reference(refuri=f"{app.config.repository_url}/tree/main/{inside}")
        elif link.get("refdomain") == "doc" and link["reftarget"] not in env.found_docs:
            page = nodes.reference(refuri=f"{app.config.repository_url}/blob/main/{inside}")
        elif isinstance(link, addnodes.download_reference):
            page = nodes.reference(refuri=f"{app.config.repository_url}/blob/main/{inside}")
        else:
            continue
        page += link.children
        link.replace_self(page)


def setup(app: Sphinx) -> dict[str, bool]:
    """Resolve the links of every page after it is read."""
    app.add_config_value("repository_url", "", "env")
    app.connect("doctree-read", resolve)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
