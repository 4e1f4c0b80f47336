"""Resolve links to files and folders of the repository that are no pages of the site, and check the links of the site.

A link to a folder with a page ``README.md`` leads to this page, a link to another folder or file to the repository. A
link to something that does not exist is left to MyST, which warns. After the build, every link and anchor of the
written pages is checked, those of extensions and of the theme included.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.util import logging

logger = logging.getLogger(__name__)


def resolve(app: Sphinx, document: nodes.document) -> None:
    """Replace links of MyST to files and folders that exist."""
    env = app.env
    root = Path(app.srcdir)
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


def check(app: Sphinx, error: Exception | None) -> None:
    """Warn of links between written pages that lead to no page, or to no anchor of it."""
    if error is not None or app.builder.name != "html":
        return
    pages = {path: path.read_text(encoding="utf-8") for path in Path(app.outdir).rglob("*.html")}
    anchors = {path: set(re.findall(r'\bid="([^"]+)"', text)) for path, text in pages.items()}
    for path, text in pages.items():
        for link in sorted(set(re.findall(r'<a [^>]*?href="([^"]+)"', text))):
            if re.match(r"[a-z]+:", link):
                continue
            address, _, anchor = unquote(link).partition("#")
            target = Path(os.path.normpath(path.parent / address)) if address else path
            if not target.exists() or (anchor and target in anchors and anchor not in anchors[target]):
                logger.warning("broken link in %s: %s", path.relative_to(app.outdir).as_posix(), link)


def setup(app: Sphinx) -> dict[str, bool]:
    """Resolve the links of every page after it is read, and check them in the end."""
    app.add_config_value("repository_url", "", "env")
    app.connect("doctree-read", resolve)
    app.connect("build-finished", check)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
