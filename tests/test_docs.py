"""Python and commands of README and docs run, page by page, top to bottom; what pages say of keys
and files is true."""

from __future__ import annotations

import pkgutil
import re
import shlex
import sqlite3
import sys
from contextlib import closing
from pathlib import Path

import pytest
from experiment_keys import key_rows

import psyprobe as pp
from psyprobe import cli
from psyprobe.observers import registry

ROOT = Path(__file__).resolve().parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
#: A block with its language and a note: "needs ..." is not run, but its commands must exist.
BLOCK = re.compile(
    r"^```(python|bash)(?: \(([^)\n]*)\))?\n(.*?)^```", re.MULTILINE | re.DOTALL
)
#: A command outside blocks, on a line of its own.
INDENTED = re.compile(r"^    (psyprobe (?:.*\\\n)*.*)$", re.MULTILINE)
#: A block that names a file stands for that file.
FILE = re.compile(r"^```\w+ \((\S+\.\w+)\)\n(.*?)^```", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\(([^)\s#]+)(?:#[^)]*)?\)")


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_python_and_commands_run(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = page.read_text(encoding="utf-8")
    blocks = [
        (language, code) for language, note, code in BLOCK.findall(text) if not note
    ]
    if not blocks:
        pytest.skip("this page has nothing to run")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    # Kinds of observers that a page registers are its own.
    monkeypatch.setattr(registry, "_KINDS", dict(registry._KINDS))
    files = dict(FILE.findall(text))
    for name, content in files.items():
        Path(name).parent.mkdir(parents=True, exist_ok=True)
        Path(name).write_text(content, encoding="utf-8")
    names: dict[str, object] = {"__name__": "page"}
    for language, code in blocks:
        # A page compares eight draws, as users do; that it runs is seen of three.
        code = code.replace("range(1, 9)", "range(1, 4)")
        if language == "python":
            exec(compile(code, page.name, "exec", dont_inherit=True), names)
            continue
        for command in commands(code):
            assert cli.main(expanded(command)) == 0, command
    for path in map(Path, files):
        # Another page may import another file of that name; a colour.toml is not the package
        # colour.
        if path.suffix == ".py":
            sys.modules.pop(path.stem, None)
    if "matplotlib.pyplot" in sys.modules:
        # A notebook shows and closes its figures; here they would pile up from page to page.
        sys.modules["matplotlib.pyplot"].close("all")


@pytest.mark.parametrize(
    "page", [*PAGES, ROOT / "CONTRIBUTING.md"], ids=lambda p: p.name
)
def test_commands_that_are_only_shown_exist(page: Path) -> None:
    """With each of their options: the parser takes them."""
    text = page.read_text(encoding="utf-8")
    shown_blocks = "\n".join(
        [
            code
            for language, note, code in BLOCK.findall(text)
            if note and language == "bash"
        ]
    )
    for command in commands("\n".join([shown_blocks, *INDENTED.findall(text)])):
        cli._parser(command).parse_args(command)


def expanded(command: list[str]) -> list[str]:
    """The command with files in place of patterns, as a shell gives them."""
    return [
        name
        for word in command
        for name in (sorted(map(str, Path().glob(word))) if "*" in word else [word])
    ]


def commands(code: str) -> list[list[str]]:
    """What a shell would give psyprobe, line by line; a group such as "a|b" in a summary is no
    command."""
    lines = [
        shlex.split(line, comments=True)
        for line in code.replace("\\\n", " ").split("\n")
    ]
    words = [
        line[line.index("psyprobe") + 1 :] for line in lines if "psyprobe" in line[:2]
    ]
    return [[word for word in command if word != "..."] for command in words if command]


@pytest.mark.parametrize(
    "page", [*PAGES, ROOT / "CONTRIBUTING.md"], ids=lambda p: p.name
)
def test_links_lead_somewhere(page: Path) -> None:
    # Pages of the gallery and of the API are made with the site, and tested there.
    targets = LINK.findall(page.read_text(encoding="utf-8"))
    links = [
        link
        for link in targets
        if "://" not in link and not link.startswith(("gallery/", "api/"))
    ]
    assert [link for link in links if not (page.parent / link).exists()] == []


def test_the_table_of_keys_is_that_of_the_schema() -> None:
    page = (ROOT / "docs" / "experiments.md").read_text(encoding="utf-8")
    readers = ""
    keys: dict[str, tuple[str, ...]] = {}
    for line in page.splitlines():
        # A section's table is read by the same probes in every row, which a line above it names.
        readers = (
            line[9:-1]
            if line.startswith("Read by: ")
            else ""
            if line.startswith("#")
            else readers
        )
        if line.startswith("| `"):
            cells = [cell.strip() for cell in line.strip("|").split("|")]
            keys[cells[0]] = (*cells[:3], *([readers] if readers else cells[3:4]))
    assert [row for row in key_rows() if keys.get(row[0]) != row] == []


def test_files_that_the_design_page_names_exist() -> None:
    page = (ROOT / "docs" / "design.md").read_text(encoding="utf-8")
    file_names = {
        name for name in re.findall(r"`([\w/]+\.(?:py|toml))`", page) if "/" in name
    }
    assert file_names
    assert [
        name
        for name in file_names
        if not any((ROOT / base / name).exists() for base in ("", "psyprobe"))
    ] == []


def test_the_queries_of_the_store_page_find_rows(tmp_path: Path) -> None:
    text = (ROOT / "docs" / "store.md").read_text(encoding="utf-8")
    files = dict(
        FILE.findall((ROOT / "docs" / "own_experiments.md").read_text(encoding="utf-8"))
    )
    (tmp_path / "phase.toml").write_text(files["phase.toml"], encoding="utf-8")
    pp.run(
        tmp_path / "phase.toml",
        "simulated:watson-malo",
        store=tmp_path / "runs.sqlite",
        progress=False,
    )
    with closing(sqlite3.connect(tmp_path / "runs.sqlite")) as store:
        commands = re.findall(r'^sqlite3 .*"(SELECT .*)"$', text, re.MULTILINE)
        queries = re.findall(r"```sql\n(.*?)```", text, re.DOTALL)
        assert commands and queries
        for query in [*commands, *queries]:
            assert store.execute(query).fetchall(), query
        tables = {
            name
            for (name,) in store.execute(
                "SELECT name FROM sqlite_master WHERE type = 'table'"
            )
        }
        columns = [
            column for column, *_ in store.execute("SELECT * FROM answers").description
        ]
    view = text.split("## Without psyprobe\n")[1]
    contributing = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    inside = contributing.split("## Inside the store\n")[1]
    assert tables == set(re.findall(r"^\| `(\w+)` \|", inside, re.MULTILINE))
    cells = re.findall(r"^\| (`.*?`) \|", view.split("\n#")[0], re.MULTILINE)
    assert columns == re.findall(r"`(\w+)`", " ".join(cells))


@pytest.mark.parametrize(
    "page",
    [*PAGES, *(ROOT / name for name in ("CONTRIBUTING.md", "CHANGELOG.md"))],
    ids=lambda p: p.name,
)
def test_names_that_pages_mention_exist(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert {
        name for name in re.findall(r"\bpp\.(\w+)", text) if not hasattr(pp, name)
    } == set()
    modules = {
        name
        for name in re.findall(
            r"(?<![\w./-])(psyprobe(?:\.[a-z_0-9]+)+)(?![\w/-])", text
        )
    }
    unknown = {
        name
        for name in modules
        if not _exists(name) and not name.endswith((".toml", ".py", ".sqlite"))
    }
    assert (
        unknown
        - {
            f"psyprobe.{room}"
            for room in (
                "observers",
                "probes",
                "stimuli",
                "human",
                "experiments",
                "commands",
                "harnesses",
            )
        }
        == set()
    )


def _exists(name: str) -> bool:
    """Say whether a dotted name is a module, or something in one."""
    try:
        pkgutil.resolve_name(name)
    except (ImportError, AttributeError):
        return False
    return True
