"""The documentation site: built without a warning and without a network, whole, and clean in a
browser."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
import webdriver

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "docs"))

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("myst_nb") is None, reason="no psyprobe[docs] here"
)

#: Pages of each kind that a browser opens.
OPENED = [
    "index.html",
    "getting_started.html",
    "jobs.html",
    "faq.html",
    "notebooks/first_contour_plot.html",
    "gallery/index.html",
    "gallery/stimuli.html",
    "gallery/experiments-gabor_achromatic.html",
    "api/index.html",
    "api/psyprobe.gabor.html",
    "search.html",
    "psychometric.html",
]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    # Proxies that lead nowhere: what wants a network fails.
    nowhere = {
        name: "http://127.0.0.1:9"
        for name in ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY")
    }
    process = subprocess.run(
        [
            sys.executable,
            "-m",
            "sphinx",
            "-W",
            "-q",
            "-b",
            "html",
            "-d",
            folder / "trees",
            ROOT / "docs",
            folder / "site",
        ],
        env={**os.environ, **nowhere, "PYTHONPATH": str(ROOT), "MPLBACKEND": "agg"},
        capture_output=True,
        text=True,
        timeout=1200,
    )
    assert process.returncode == 0, process.stderr[-3000:]
    return folder / "site"


#: What a script says, which is no page, and the tags that lead, load or are a place.
SCRIPT = re.compile(r"(<script[^>]*>).*?(?=</script>)", re.DOTALL)
TAG = re.compile(r"</script>|<[a-z][^>]*\s(?:id|name|href|src)=[^>]*>")


class Page(HTMLParser):
    """Where a page leads, what it loads, and the places in it."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.links: list[str] = []
        self.loaded: list[str] = []
        self.ids: set[str] = set()
        # Most tags of the source colour code.
        text = SCRIPT.sub(r"\1", path.read_text(encoding="utf-8"))
        self.feed("".join(TAG.findall(text)))

    def handle_starttag(
        self, tag: str, attributes: list[tuple[str, str | None]]
    ) -> None:
        attribute_values = dict(attributes)
        self.ids |= {
            str(attribute_values[name])
            for name in ("id", "name")
            if attribute_values.get(name)
        }
        if tag == "a" and attribute_values.get("href"):
            self.links.append(str(attribute_values["href"]))
        if tag in ("img", "script", "iframe", "source") and attribute_values.get("src"):
            self.loaded.append(str(attribute_values["src"]))
        if (
            tag == "link"
            and attribute_values.get("href")
            and attribute_values.get("rel") in ("stylesheet", "icon", "preload")
        ):
            self.loaded.append(str(attribute_values["href"]))


def test_no_link_is_dead_and_nothing_is_loaded_from_elsewhere(site: Path) -> None:
    # The theme leaves a template among its files, which is no page.
    pages = {
        path.resolve(): Page(path)
        for path in site.rglob("*.html")
        if "_static" not in path.parts
    }
    dead, elsewhere = [], []
    for path, page in pages.items():
        for address in [*page.links, *page.loaded]:
            parts = urlsplit(address)
            if parts.scheme == "data":
                continue
            if parts.scheme or parts.netloc:
                elsewhere += [f"{path.name}: {address}"] * (address in page.loaded)
                continue
            target = (
                (path.parent / unquote(parts.path)).resolve() if parts.path else path
            )
            target_page = pages.get(target)
            # Pages of source lead back by the name under which a module defines something: to the
            # page, not the place.
            placed = parts.fragment and "_modules" not in path.parts
            lost = (
                placed
                and target_page is not None
                and unquote(parts.fragment) not in target_page.ids
            )
            if not target.exists() or lost:
                dead.append(f"{path.relative_to(site.resolve())}: {address}")
    assert elsewhere == [] and dead == []
    assert len(pages) > 250


def test_every_page_of_the_catalogue_and_every_public_name_is_there(site: Path) -> None:
    import reference

    from psyprobe.stimulus.catalogue import catalogue_names

    names = [f"api/{name.full}.html" for name in reference.public_names()]
    names += [
        f"gallery/{kind}-{name}.html"
        for kind in ("stimuli", "experiments")
        for name in catalogue_names(kind)
    ]
    assert [name for name in names if not (site / name).exists()] == []
    for name in catalogue_names("stimuli"):
        page = (site / "gallery" / f"stimuli-{name}.html").read_text(encoding="utf-8")
        assert "Requested against delivered" in page and "<img" in page
        assert "<strong>no</strong>" not in page or name.endswith("_published"), name


def test_every_figure_of_the_gallery_comes_with_the_code_that_drew_it(
    site: Path,
) -> None:
    pages = [
        path
        for path in (site / "gallery").glob("*-*.html")
        if "<img" in path.read_text(encoding="utf-8")
    ]
    assert len(pages) > 70
    for path in pages:
        page = path.read_text(encoding="utf-8")
        scripts = re.findall(r'href="\.\./(_downloads/[^"]+\.py)"', page)
        assert 'id="the-code"' in page and all(
            (site / script).exists() for script in scripts
        ), path.name
        assert scripts or path.stem in (
            "probes-mvp_bench",
            "probes-r_bench",
            "probes-corruption_profile",
        ), path.name


@pytest.fixture(scope="module")
def opened(site: Path, browser: webdriver.Browser) -> Iterator[webdriver.Browser]:
    with browser.without_network():
        browser.forget()
        yield browser


@pytest.mark.parametrize("name", OPENED)
def test_a_browser_has_nothing_to_complain_of(
    site: Path, opened: webdriver.Browser, name: str
) -> None:
    opened.open((site / name).as_uri())
    opened.wait("document.readyState", "complete")
    assert (
        opened.run(
            "[...document.images].filter(each => !each.naturalWidth).map(each => each.src)"
        )
        == []
    )
    # The theme remarks on what it does, as where it scrolls.
    assert [
        line
        for line in opened.complaints()
        if "favicon" not in line and "[PST]: " not in line
    ] == []
    assert opened.run("document.documentElement.scrollWidth <= window.innerWidth + 1")
    assert re.search(r"\w", str(opened.run("document.querySelector('h1').textContent")))
