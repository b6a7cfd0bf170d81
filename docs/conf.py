"""How the site is built: ``python -m sphinx -W -b html docs site``, without a network."""

from __future__ import annotations

import gc
import os
import re
import shutil
import sys
from functools import partial
from pathlib import Path
from typing import Any

from sphinx.addnodes import toctree

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
sys.path[:0] = [str(ROOT), str(HERE)]

# A second thread mostly waits for the first, and last digits would depend on how many there are.
os.environ.setdefault("OMP_NUM_THREADS", "1")
# Trees of pages are many objects that stay: look for cycles among them more rarely.
gc.set_threshold(100_000)

import gallery  # noqa: E402
import reference  # noqa: E402

import psyprobe  # noqa: E402

project = "psyprobe"
author = "psyprobe developers"
version = release = psyprobe.__version__
extensions = [
    "myst_nb",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.viewcode",
    "sphinx_design",
]
exclude_patterns = ["images"]
templates_path = ["templates"]

html_theme = "pydata_sphinx_theme"
html_title = "psyprobe"
html_static_path = ["static"]
html_css_files = ["site.css"]
html_show_sourcelink = False
html_context = {"default_mode": "auto"}
html_theme_options = {
    "navigation_with_keys": False,
    "navbar_align": "left",
    "header_links_before_dropdown": 8,
    "show_toc_level": 2,
    "footer_start": ["copyright"],
    "footer_end": [],
    "secondary_sidebar_items": ["page-toc"],
}
copyright = "psyprobe developers, MIT licence"

# Notebooks travel with their outputs; tests run them.
nb_execution_mode = "off"
myst_heading_anchors = 4
myst_enable_extensions = ["colon_fence"]
autodoc_typehints = "none"
autodoc_member_order = "bysource"
numpydoc_show_class_members = False
autosummary_generate = False
numpydoc_xref_param_type = False
default_role = "code"

#: Files outside docs/ that are pages of the site too.
BESIDE = {
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
    "benchmarks/README.md": "benchmarks.md",
}


def _make_pages(app: Any) -> None:
    """Pages that are made at each build lie in folders that git passes over."""
    for name in ("api", "gallery", "notebooks", "beside"):
        shutil.rmtree(HERE / name, ignore_errors=True)
    shutil.copytree(
        ROOT / "notebooks",
        HERE / "notebooks",
        ignore=shutil.ignore_patterns(".*", "psyprobe-results"),
    )
    (HERE / "beside").mkdir()
    for name, page in BESIDE.items():
        text = re.sub(
            r"\]\((?:\.\./)?docs/", "](../", (ROOT / name).read_text(encoding="utf-8")
        )
        # What is no page of the site is told by its name.
        text = re.sub(r"\[([^\]]+)\]\((?!\.\./|https?:|#)[^)]+\)", r"`\1`", text)
        (HERE / "beside" / page).write_text(text, encoding="utf-8")
    reference.write(HERE / "api")
    gallery.write(HERE / "gallery")


def _on_the_site(app: Any, page: str, source: list[str]) -> None:
    """Links that lead out of docs/ in the repository, and to a page of the site here."""
    text = (
        source[0]
        .replace("](../notebooks/", "](notebooks/")
        .replace("](../docs/", "](../")
    )
    for name, copy in BESIDE.items():
        text = text.replace(f"](../{name}", f"](beside/{copy}")
    # A block that stands for a file, or needs something, says so above it.
    source[0] = re.sub(
        r"^```(\w+) \(([^)\n]+)\)$", _captioned, text, flags=re.MULTILINE
    )


def _captioned(block: re.Match[str]) -> str:
    language, note = block.groups()
    if note == "installs":  # a mark for the tests
        return f"```{language}"
    return (
        f"```{{code-block}} {language}\n:caption: "
        f"{note if '.' in note else note[0].upper() + note[1:]}\n"
    )


def _beside(
    app: Any, page: str, template: str, context: dict[str, Any], doctree: Any
) -> None:
    """Tell the sidebar's template what to list: a page's section, opened along the path to it."""
    path = [page]
    while parent := app.builder.relations.get(path[-1], [None])[0]:
        path.append(parent)
    tables = app.builder.env.tocs
    context |= {
        "path": path[:-1],  # all but the root
        "lists": {page: list(tables[page].findall(toctree)) for page in path[:-1]},
        "titles": app.builder.env.titles,
    }


def _of_one_document(app: Any, doctree: Any) -> None:
    """Nodes of a block of reStructuredText belong to a document of the block's, by which the whole
    environment, 3 MB of it, would be written and read with each page.
    """
    for node in doctree.findall():
        node.document = doctree


def setup(app: Any) -> None:
    """Sphinx calls this once."""
    from jinja2.bccache import FileSystemBytecodeCache
    from jinja2.sandbox import SandboxedEnvironment
    from numpydoc import docscrape_sphinx
    from pygments.lexers.special import TextLexer

    # Each of 1,700 docstrings would compile numpydoc's template anew.
    (app.doctreedir / "templates").mkdir(parents=True, exist_ok=True)
    docscrape_sphinx.SandboxedEnvironment = partial(
        SandboxedEnvironment,
        bytecode_cache=FileSystemBytecodeCache(str(app.doctreedir / "templates")),
    )
    app.add_lexer("csv", TextLexer)
    app.connect("doctree-read", _of_one_document, priority=900)
    app.connect("builder-inited", _make_pages)
    app.connect("source-read", _on_the_site)
    app.connect("html-page-context", _beside)
