"""Configuration of the documentation site; `make docs` builds it.

The source folder is the root of the repository, so that relative links between pages, to notebooks and to files of the
repository mean the same here as on a repository browser. A new page is one line in the toctree of a page in `docs/`.
"""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "docs" / "_extensions")]

from slayr_py.version import __version__  # noqa: E402

project = "slayr_py"
author = copyright = "The slayr_py developers"
version = release = __version__
root_doc = "docs/index"
include_patterns = [
    "*.md",
    "benchmarks/README.md",
    "benchmarks/*/README.md",
    "docs/decisions/*.md",
    "docs/*.md",
    "docs/stan/*.md",
    "docs/api/*.rst",
    "notebooks/*.py",
    "stan/README.md",
]
exclude_patterns = [".*", "build", "dist", "examples", "slayr_py", "tests", "docs/_*"]
extensions = [
    "sphinx.ext.autodoc",
    "numpydoc",
    "myst_nb",
    "command_line",
    "executed_notebooks",
    "mathml",
    "public_names",
    "repository_links",
    "stan_functions",
]

# Links. Every target has to exist: the build treats warnings as errors.
repository_url = "https://github.com/slayr-py/slayr_py"
myst_heading_anchors = 4
myst_enable_extensions = ["dollarmath"]
nitpicky = True
# Names of other packages; without a network their pages cannot be resolved.
nitpick_ignore_regex = [(r"py:.*", r"(?!slayr_py).*")]

# API reference. The text of numpydoc has the types.
default_role = "py:obj"
autodoc_typehints = "none"
autodoc_member_order = "bysource"
autodoc_default_options = {"members": True, "inherited-members": True}
numpydoc_show_class_members = False
autosummary_generate = False  # numpydoc loads this extension
toc_object_entries_show_parents = "hide"

# Notebooks are executed once; executed_notebooks sets the folder that keeps their results.
nb_custom_formats = {".py": ["jupytext.reads", {"fmt": "py:percent"}]}
nb_execution_mode = "cache"
nb_execution_in_temp = True
nb_execution_timeout = 1800
nb_execution_show_tb = True  # in the warning of a failed notebook
nb_output_stderr = "error"
nb_merge_streams = True

html_theme = "pydata_sphinx_theme"
html_title = "slayr_py"
html_extra_path = ["_root"]  # leads from the root of the site to the start page
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_show_sourcelink = False
html_copy_source = False
html_theme_options = {
    "icon_links": [{"name": "Repository", "url": repository_url, "icon": "fa-brands fa-square-github"}],
    "navbar_align": "left",
    "show_toc_level": 2,
    "show_nav_level": 1,
    "navigation_with_keys": False,
    "footer_start": ["copyright"],
    "footer_end": [],
    "secondary_sidebar_items": ["page-toc"],
}
# Pages without others below them, and one with wide tables.
html_sidebars = {"docs/recipes": [], "docs/mathematics": [], "docs/comparison": []}
html_context = {"default_mode": "auto"}
