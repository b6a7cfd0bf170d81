"""A real OpenAI-compatible server on loopback, ``transformers serve``, before the same weights as
in process."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from children import child

from psyprobe import load_observer
from psyprobe.observers.chat.protocol import Decoding

pytest.importorskip("torch", reason="the chat extra is not installed")
pytest.importorskip("transformers", reason="the chat extra is not installed")
for package in ("fastapi", "uvicorn", "aiohttp"):
    pytest.importorskip(
        package,
        reason="the server's packages (transformers[serving]) are not installed",
    )

#: The server as it is, except that what its first convolution takes in is kept in a file.
PROGRAM = """
import sys
import numpy
import torch

torch.set_num_threads(1)
look = torch.nn.Conv2d.forward

def kept(self, pixels):
    numpy.save(PIXELS, pixels.float().numpy())
    return look(self, pixels)

torch.nn.Conv2d.forward = kept
from transformers.cli.transformers import app
app()
"""
PATIENCE = 240.0  # s, for a busy machine; half a minute is usual


@pytest.fixture(scope="module")
def served(
    chat_folders: Callable[[str], Path], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[str, Path]]:
    """The server's address, and the file with the pixels that its network saw last."""
    folder = tmp_path_factory.mktemp("served")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    program = PROGRAM.replace("PIXELS", repr(str(folder / "pixels.npy")))
    where = ["--host", "127.0.0.1", "--port", str(port), "--device", "cpu"]
    with (
        (folder / "log.txt").open("w") as log,
        child(
            [
                sys.executable,
                "-c",
                program,
                "serve",
                str(chat_folders("llava")),
                *where,
            ],
            seconds=2 * PATIENCE,
            env=os.environ | {"HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1"},
            stdout=log,
            stderr=subprocess.STDOUT,
        ) as server,
    ):
        end = time.monotonic() + PATIENCE
        while True:
            try:
                urllib.request.urlopen(
                    f"http://127.0.0.1:{port}/health", timeout=5
                ).close()
                break
            except (urllib.error.URLError, OSError):
                log_text = (folder / "log.txt").read_text()[-2000:]
                assert server.poll() is None, f"the server ended: {log_text}"
                assert time.monotonic() < end, (
                    f"the server is not up after {PATIENCE} s: {log_text}"
                )
                time.sleep(0.2)
        yield f"http://127.0.0.1:{port}/v1", folder / "pixels.npy"


@pytest.mark.slow
def test_the_served_model_is_the_one_in_process(
    served: tuple[str, Path], chat_folders: Callable[[str], Path]
) -> None:
    url, pixels = served
    name = str(chat_folders("llava"))
    local = load_observer(f"transformers:{name}", device="cpu")
    rng = np.random.default_rng(7)
    decoding = Decoding(max_tokens=6)
    texts = set()
    with load_observer(f"openai:{name}", base_url=url, timeout=120.0) as remote:
        for prompt in (
            "Is there a pattern visible in the image?",
            "Can you see a texture?",
        ):
            image = rng.integers(0, 256, (*local.card.input_size, 3)) / 255
            near, far = (
                observer.answer([image], prompt, decoding=decoding)
                for observer in (local, remote)
            )
            assert far.text == near.text
            assert (far.tokens_in, far.tokens_out) == (near.tokens_in, near.tokens_out)
            assert near.first_tokens is not None and far.first_tokens is None
            texts.add(far.text)
            network_input = (
                np.load(pixels)[0].transpose(1, 2, 0) * np.array(local.card.std)
                + local.card.mean
            )
            np.testing.assert_allclose(network_input, image, rtol=0, atol=5e-7)
    assert len(texts) == 2
