"""The values that travel with the tests: each with its source, none too big to travel."""

from __future__ import annotations

from pathlib import Path


def test_every_file_is_small_and_has_a_line_in_the_readme(oracle_data: Path) -> None:
    readme = (oracle_data / "README.md").read_text(encoding="utf-8")
    files = [path for path in oracle_data.rglob("*") if path.is_file()]
    assert len(files) > 40
    for path in files:
        assert path.stat().st_size < 1_000_000
        # A registry is one thing of many files, which its own page describes.
        in_registry = "results" in path.parts or path.name == "registry.toml"
        if not in_registry and path.name not in ("README.md", "LICENSE"):
            assert (
                f"{path.name}`" in readme
                or f"`{path.parent.name}/*{path.suffix}`" in readme
            ), path.name
