"""A registry as a table: of a folder, of a site, and of what was read before."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

import psyprobe as pp
from psyprobe.errors import ConditionWarning, InputError
from psyprobe.reporting.publishing.index import _fetch, index_text, read_index
from psyprobe.reporting.publishing.ranks import rank
from psyprobe.running.registry_run import run_folders

REGISTRIES = Path(__file__).resolve().parents[1] / "data" / "registry"


class Quiet(SimpleHTTPRequestHandler):
    """Serves a folder and logs nothing."""

    def log_message(self, *_: object) -> None:
        """Nothing."""


@pytest.fixture
def site(tmp_path: Path) -> Iterator[tuple[Path, str, ThreadingHTTPServer]]:
    folder = shutil.copytree(REGISTRIES / "valid_encoder", tmp_path / "site")
    text = index_text(read_index(folder))
    (folder / "index.json").write_text(text, encoding="utf-8")
    with ThreadingHTTPServer(
        ("127.0.0.1", 0), partial(Quiet, directory=str(folder))
    ) as server:
        threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
        yield folder, f"http://127.0.0.1:{server.server_address[1]}", server
        server.shutdown()


def test_folder_site_and_cache_give_one_table(
    site: tuple[Path, str, ThreadingHTTPServer], tmp_path: Path
) -> None:
    folder, address, server = site
    local = pp.registry(folder)
    ours = local[(local.responder == "observer") & (local.observer == "pixels")]
    (result,) = (
        result
        for result in pp.load_results(folder)
        if result.attrs["observer"] == "pixels"
    )
    assert ours.value.item() == pytest.approx(pp.score(result).score.alignment.value)
    assert {"one person", "attainable"} <= set(local.responder)
    remote = pp.registry(address, cache=tmp_path / "cache", answers=True)
    assert remote.equals(local)
    assert len(pp.load_results(remote.attrs["folder"])) == 2
    server.shutdown()
    server.server_close()
    with pytest.warns(ConditionWarning, match="as it was on 20"):
        cached = pp.registry(address, cache=tmp_path / "cache")
    assert cached.equals(local)


def test_a_file_that_is_not_the_one_of_the_index_is_refused(
    site: tuple[Path, str, ThreadingHTTPServer], tmp_path: Path
) -> None:
    folder, address, _ = site
    (run_folders(folder)[0] / "page.toml").write_text("title = 'other'")
    with pytest.raises(InputError, match="tampered"):
        pp.registry(address, cache=tmp_path / "cache", answers=True)
    with pytest.raises(InputError, match="not encrypted"):
        _fetch("http://example.org/index.json", 10)


def test_a_bad_run_is_left_out_with_a_line() -> None:
    with pytest.warns(ConditionWarning, match="left out"):
        table = pp.registry(REGISTRIES / "licence_missing")
    assert not len(table)


def test_observers_that_cannot_be_told_apart_share_a_rank() -> None:
    def entry(value: float, values: tuple[float, ...] = ()) -> dict[str, object]:
        sample = {
            "population": "variants",
            "keys": list("abcd"),
            "values": values,
            "scale": "linear",
            "clusters": (),
        }
        return {
            "value": value,
            "low": value - 0.3,
            "high": value + 0.3,
            "confidence": 0.95,
            "sample": sample if values else None,
        }

    assert rank([entry(0.5), entry(0.6)], lower_is_better=False) == [(1, 2), (1, 2)]
    # On the same variants one is surely better, though the intervals overlap.
    first = entry(0.5, (0.1, 0.4, 0.6, 0.9))
    second = entry(0.6, (0.2, 0.51, 0.7, 0.99))
    assert rank([first, second], lower_is_better=False) == [(2, 2), (1, 1)]
    assert rank([first, second], lower_is_better=True) == [(1, 1), (2, 2)]
