"""A registry as a table: of a folder, of a site, and of what was read before."""

from __future__ import annotations

import json
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
from psyprobe.reporting.publishing.reproductions import count_reproductions
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


def test_a_run_is_reproduced_by_others_whose_numbers_are_its_own(
    tmp_path: Path,
) -> None:
    registry = shutil.copytree(REGISTRIES / "valid_two_nights", tmp_path / "registry")
    # The second night of one contributor reproduces nothing, though its numbers are the same.
    assert [run["reproduced"] for run in read_index(registry).runs] == [0, 0]
    path = run_folders(registry)[1] / "run.json"
    table = json.loads(path.read_text(encoding="utf-8"))
    table["contributor"]["name"] = "Another Laboratory"
    path.write_text(json.dumps(table), encoding="utf-8")
    first, second = read_index(registry).runs
    assert first["ability"] == "answer"
    assert [first["reproduced"], second["reproduced"]] == [1, 1]


def reproductions(*runs: dict[str, object]) -> list[int]:
    """Count the reproductions of runs that are alike but for what is given."""
    run = {
        "observer": "openai:m3",
        "revision": "s-0123456789ab-89abcdef",
        "digest": "0123abcd",
        "ability": "answer",
        "retracted": None,
    }
    score = {"responder": "observer", "metric": "shape", "layer": "", "measure": ""}
    ends = {"value": 0.2, "low": 0.1, "high": 0.3}
    return count_reproductions(
        [
            {
                **run,
                "contributor": f"laboratory {number}",
                "board": [score | ends | {k: facts[k] for k in facts if k in ends}],
                **facts,
            }
            for number, facts in enumerate(runs)
        ]
    )


def test_who_answers_is_reproduced_within_its_interval() -> None:
    wide = {"value": 0.29, "low": 0.19, "high": 0.39}
    narrow = {"value": 0.29, "low": 0.25, "high": 0.33}
    assert reproductions({}, wide) == [1, 1]
    assert reproductions({}, narrow) == [1, 0]
    assert reproductions({}, {"value": 0.35, "low": 0.31, "high": 0.4}) == [0, 0]
    # Each contributor counts once, and nobody for its own run.
    assert reproductions({}, *[{"contributor": "laboratory 9"}] * 2) == [1, 1, 1]
    assert reproductions({}, {}, {}) == [2, 2, 2]


def test_an_encoder_is_reproduced_within_a_ten_thousandth() -> None:
    encoder = {"ability": "features"}
    assert reproductions(encoder, {**encoder, "value": 0.20009}) == [1, 1]
    assert reproductions(encoder, {**encoder, "value": 0.20011}) == [0, 0]


@pytest.mark.parametrize(
    "facts",
    [
        {"revision": "s-000000000000-89abcdef"},
        {"digest": "00000000"},
        {"retracted": "wrong display"},
        {"board": []},
        {"value": None},
    ],
)
def test_another_subject_or_a_run_without_a_number_reproduces_nothing(
    facts: dict[str, object],
) -> None:
    assert reproductions({}, facts) == [0, 0]


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
