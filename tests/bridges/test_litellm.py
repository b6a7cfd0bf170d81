"""LiteLLM's proxy between psyprobe and a server: the same answers, log-probabilities and refusals
as without it.

The proxy may live in an environment of its own: its command has to be on the path.
"""

from __future__ import annotations

import json
import os
import shutil
import socket
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from children import child
from odd_server import Behaviour, OddServer
from small_runs import QUESTIONS, ran, small_page

import psyprobe as pp
from psyprobe.analysis import trials
from psyprobe.errors import ConditionWarning
from psyprobe.probes.experiments import load_results
from psyprobe.running.store import Store

MODEL = "simulated:watson-malo"
#: What the proxy is told that tokens cost, USD a token in and out; its own, and not those of a
#: price table here.
PRICES = (1e-6, 4e-6)
LITELLM = shutil.which(
    "litellm",
    path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}",
)

pytest.importorskip("aiohttp", reason="the chat extra is not installed")
pytest.importorskip("uvicorn", reason="the server extra is not installed")
pytestmark = pytest.mark.skipif(
    LITELLM is None, reason="no litellm on the path: pip install 'litellm[proxy]'"
)


@pytest.fixture(scope="module")
def addresses(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """One proxy in front of a server that gives all, and of one that gives no log-probabilities and
    thinks."""
    observer, folder = pp.load_observer(MODEL), tmp_path_factory.mktemp("litellm")
    odd = Behaviour(logprobs="refused", temperature="one", thinking="apart")
    with (
        OddServer(observer) as server,
        OddServer(observer, behaviour=odd) as thinker,
        socket.create_server(("", 0)) as free,
    ):
        port = free.getsockname()[1]
        costs = dict(
            zip(("input_cost_per_token", "output_cost_per_token"), PRICES, strict=True)
        )
        models = [
            {
                "model_name": name,
                "litellm_params": {
                    "model": f"openai/{MODEL}",
                    "api_base": url,
                    "api_key": "none",
                },
                "model_info": costs,
            }
            for name, url in ((MODEL, server.base_url), ("thinker", thinker.base_url))
        ]
        config = folder / "config.yaml"  # JSON is YAML
        config.write_text(json.dumps({"model_list": models}), encoding="utf-8")
        free.close()
        command = [
            str(LITELLM),
            "--config",
            str(config),
            "--host",
            "127.0.0.1",
            "--port",
            str(port),
        ]
        # Its environment is its own, and its list of models is the one that it ships.
        environment = {
            name: value for name, value in os.environ.items() if name != "PYTHONPATH"
        }
        environment |= {"LITELLM_LOCAL_MODEL_COST_MAP": "True"}
        with (
            (folder / "log.txt").open("w") as log,
            child(
                command, 300, env=environment, cwd=folder, stdout=log, stderr=-2
            ) as proxy,
        ):
            while proxy.poll() is None and not _alive(
                f"http://127.0.0.1:{port}/health/liveliness"
            ):
                time.sleep(0.3)
            assert proxy.poll() is None, (folder / "log.txt").read_text()[-2000:]
            yield {"direct": server.base_url, "proxy": f"http://127.0.0.1:{port}/v1"}


def _alive(url: str) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=5) as reply:
            return bool(reply.status == 200)
    except OSError:
        return False


def _replies(store: Store) -> list[dict[str, Any]]:
    """Return the replies to all questions in the order of their keys."""
    answers = sorted(store.all_answers(), key=lambda entry: entry[0].question.key)
    return [dict(answered.answer["reply"]) for answered, _ in answers]


@pytest.mark.parametrize("readout", ["text", "p_yes"])
def test_a_page_through_the_proxy_is_the_page_without_it(
    readout: str, addresses: dict[str, str], tmp_path: Path
) -> None:
    page = small_page(tmp_path, **{"asking.readout": readout})
    results, replies = [], []
    for address in addresses.values():
        with (
            Store(None) as store,
            pp.load_observer(f"openai:{MODEL}", base_url=address) as chat,
        ):
            ran(store, page, chat)
            results += map(trials, load_results(store))
            replies.append(_replies(store))
    direct, between = results
    assert direct.sizes["trial"] == QUESTIONS
    apart = {"latency", "cost"}
    for name in set(direct.data_vars) - apart:
        np.testing.assert_array_equal(
            direct[name].values, between[name].values, err_msg=name
        )
    # Word for word and number for number, the probabilities of all first tokens among them.
    for reply, other in zip(*replies, strict=True):
        assert {k: v for k, v in reply.items() if k not in apart} == {
            k: v for k, v in other.items() if k not in apart
        }
        assert bool(reply.get("first_tokens")) == (readout == "p_yes")
    # The proxy reports the cost of an answer; the server behind it says nothing.
    cost = PRICES[0] * between["tokens_in"] + PRICES[1] * between["tokens_out"]
    np.testing.assert_allclose(between["cost"], cost, rtol=1e-9)
    assert np.isnan(direct["cost"]).all()


def test_what_the_server_refuses_is_found_through_the_proxy(
    addresses: dict[str, str], tmp_path: Path
) -> None:
    page = small_page(tmp_path, **{"asking.temperature": 0.5})
    with (
        Store(None) as store,
        pp.load_observer("openai:thinker", base_url=addresses["proxy"]) as chat,
        pytest.warns(ConditionWarning, match="temperature left out from here on"),
        pytest.warns(ConditionWarning, match="tokens more for thinking from here on"),
    ):
        ran(store, page, chat)
        result = trials(load_results(store)[0])
    replaced = {
        setting["name"]: setting
        for setting in json.loads(result.attrs["replaced_settings"])
    }
    assert replaced["temperature"] == {
        "name": "temperature",
        "requested": 0.5,
        "sent": None,
        "answers": QUESTIONS,
    }
    assert replaced["max_tokens"]["sent"] > 4096
    assert (result["tokens_thinking"] > 0).all() and set(result["reading"].values) <= {
        "yes",
        "no",
    }
