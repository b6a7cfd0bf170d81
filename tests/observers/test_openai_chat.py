"""Asking over a real connection: every question answered once, whatever goes wrong, and no key
anywhere."""

from __future__ import annotations

import base64
import collections
import http.server
import io
import logging
import os
import pickle
import signal
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from children import child

pytest.importorskip("aiohttp", reason="the chat extra is not installed")

from odd_server import Behaviour, Faults, OddServer

from psyprobe._typing import FloatArray
from psyprobe.errors import ConditionWarning, InputError, PsyprobeError
from psyprobe.files.images import decode_png
from psyprobe.observers import load_observer
from psyprobe.observers.chat import openai_sending
from psyprobe.observers.chat.openai_chat import OpenAIObserver
from psyprobe.observers.chat.openai_sending import Sender
from psyprobe.observers.chat.prices import Price
from psyprobe.observers.chat.protocol import (
    Answer,
    AnswerObserver,
    Decoding,
    Inquiry,
    ask_all,
)
from psyprobe.observers.simulated.observer import SimulatedObserver

MODEL = "simulated:watson-malo"
KEY = "sk-very-secret-0123456789"
PROMPT = "Is there a pattern visible in the image?"
SAMPLED = Decoding(temperature=1.0)
ALL_FAULTS = Faults(
    overload=0.1,
    error=0.05,
    hang=0.02,
    truncated=0.02,
    reset=0.02,
    retry_after=0.1,
    seed=5,
)


@pytest.fixture(autouse=True)
def _environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)


@pytest.fixture(scope="module")
def simulated() -> SimulatedObserver:
    loaded: SimulatedObserver = load_observer(MODEL)
    return loaded


@pytest.fixture(scope="module")
def images() -> list[FloatArray]:
    rng = np.random.default_rng(1)
    return [
        (rng.integers(120, 136, (64, 64, 3)) / 255).astype(np.float32) for _ in range(8)
    ]


def client(server: OddServer, **options: Any) -> OpenAIObserver:
    loaded: OpenAIObserver = load_observer(
        f"openai:{MODEL}", base_url=server.base_url, **options
    )
    return loaded


def inquiries(
    images: list[FloatArray], count: int, decoding: Decoding = SAMPLED
) -> list[Inquiry]:
    return [
        Inquiry(f"{PROMPT} ({i})", (images[i % len(images)],), decoding=decoding)
        for i in range(count)
    ]


def all_at_once(
    observer: AnswerObserver, inquiries: list[Inquiry], simulated: SimulatedObserver
) -> list[Answer]:
    """The answers; checked to be the right ones, each once."""
    replies = list(ask_all(observer, iter(inquiries)))
    assert collections.Counter(
        id(inquiry) for inquiry, _ in replies
    ) == collections.Counter(map(id, inquiries))
    for inquiry, answer in replies:
        assert (
            answer.text
            == simulated.answer(
                inquiry.images, inquiry.prompt, decoding=inquiry.decoding
            ).text
        )
    return [answer for _, answer in replies]


def test_answers_as_the_observer_behind_the_server(
    simulated: SimulatedObserver, images: list[FloatArray]
) -> None:
    with OddServer(simulated) as server, client(server) as observer:
        observer.price = Price(2.0, 10.0)
        assert isinstance(observer, AnswerObserver)
        decoding = Decoding(1.0, max_tokens=3, seed=4)
        answer = observer.answer(images[:1], PROMPT, decoding=decoding)
        direct = simulated.answer(images[:1], PROMPT, decoding=decoding)
        assert direct.first_tokens is not None
        assert (answer.text, answer.finish, answer.first_tokens) == (
            direct.text,
            direct.finish,
            direct.first_tokens[:20],
        )
        assert not answer.complete and answer.latency > 0 and answer.attempts == 1
        assert answer.cost == pytest.approx(
            (2.0 * (answer.tokens_in or 0) + 10.0 * (answer.tokens_out or 0)) / 1e6
        )
        assert (answer.model, answer.server) == (MODEL, direct.server)
        two = observer.answer(
            images[:2], "Which has a pattern, the first or the second?"
        )
        assert (
            two.text
            == simulated.answer(
                images[:2], "Which has a pattern, the first or the second?"
            ).text
        )


def test_the_pixels_arrive_as_drawn(
    simulated: SimulatedObserver, images: list[FloatArray]
) -> None:
    url = OpenAIObserver(MODEL)._url(images[0]).decode()
    head, _, data = url.partition(",")
    assert head == "data:image/png;base64"
    np.testing.assert_array_equal(
        decode_png(base64.b64decode(data)), np.rint(images[0] * 255)
    )
    with pytest.raises(InputError, match="round it with dither first"):
        OpenAIObserver(MODEL)._url(images[0] + np.float32(0.001))


def test_many_questions_are_under_way_and_few_are_held(
    simulated: SimulatedObserver,
    images: list[FloatArray],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    encoded: list[int] = []
    real = openai_sending.encode_png
    monkeypatch.setattr(
        openai_sending,
        "encode_png",
        lambda codes, **options: (encoded.append(1), real(codes, **options))[1],
    )
    drawn_count = answered = largest_backlog = under_way = at_once = 0
    exchange = Sender._exchange

    async def counted(*arguments: Any) -> Any:
        nonlocal under_way, at_once
        under_way += 1
        at_once = max(at_once, under_way)
        try:
            return await exchange(*arguments)
        finally:
            under_way -= 1

    monkeypatch.setattr(Sender, "_exchange", counted)

    def source() -> Iterator[Inquiry]:
        nonlocal drawn_count, largest_backlog
        for image in images:
            for i in range(25):
                drawn_count += 1
                largest_backlog = max(largest_backlog, drawn_count - answered)
                yield Inquiry(f"{PROMPT} {i}", (image,), decoding=SAMPLED)

    with (
        OddServer(simulated, latency=0.05) as server,
        client(server, concurrency=8) as observer,
    ):
        for _ in observer.answers(source()):
            answered += 1
    assert answered == 200 and largest_backlog <= 4 * 8 + 1
    # One may be sent a second time beside those that are under way.
    assert 8 <= at_once <= 9
    assert len(encoded) == len(images), "an image was encoded more than once"


def test_every_question_is_answered_once_whatever_goes_wrong(
    simulated: SimulatedObserver, images: list[FloatArray]
) -> None:
    with (
        OddServer(simulated, latency=(0.01, 0.03), faults=ALL_FAULTS) as server,
        client(server, concurrency=16) as observer,
    ):
        answers = all_at_once(observer, inquiries(images, 300), simulated)
        assert all(
            server.counts[kind]
            for kind in ("overload", "error", "hang", "truncated", "reset")
        ), server.counts
        assert max(answer.attempts for answer in answers) > 1
        assert sum(answer.attempts for answer in answers) <= server.counts.total() + 1
        assert max(answer.latency for answer in answers) < 5


def test_what_hangs_is_asked_again_long_before_the_time_out(
    simulated: SimulatedObserver, images: list[FloatArray]
) -> None:
    faults = Faults(hang=0.1, seed=2)
    with (
        OddServer(simulated, latency=0.01, faults=faults) as server,
        client(server, concurrency=8) as observer,
    ):
        start = time.monotonic()
        all_at_once(observer, inquiries(images, 60), simulated)
        assert server.counts["hang"] >= 3 and time.monotonic() - start < 30


def test_a_slow_server_is_not_asked_twice(
    simulated: SimulatedObserver, images: list[FloatArray]
) -> None:
    with (
        OddServer(simulated, latency=(0.2, 0.4)) as server,
        client(server, concurrency=16) as observer,
    ):
        answers = all_at_once(observer, inquiries(images, 64), simulated)
        # One or two may be sent again where this machine, and not the server, stood still for a
        # second.
        assert (
            sum(answer.attempts for answer in answers) <= 66
            and server.counts["answered"] <= 66
        )


def test_waits_as_long_as_it_is_told(
    simulated: SimulatedObserver, images: list[FloatArray]
) -> None:
    faults = Faults(overload=0.5, retry_after=0.3, seed=1)
    with OddServer(simulated, faults=faults) as server, client(server) as observer:
        start = time.monotonic()
        for _ in range(20):
            attempts = observer.answer(images[:1], PROMPT).attempts
            took = time.monotonic() - start
            assert took >= 0.3 * (attempts - 1)
            if attempts > 1:
                break
            start = time.monotonic()
        assert attempts > 1


def test_gives_a_server_that_refuses_all_a_rest(
    simulated: SimulatedObserver, images: list[FloatArray]
) -> None:
    faults = Faults(overload=0.95, retry_after=0.1, seed=1)
    with (
        OddServer(simulated, faults=faults) as server,
        client(server, concurrency=16, retries=3) as observer,
    ):
        with pytest.raises(
            PsyprobeError, match=r"no answer after 4 attempts, .* HTTP 429"
        ):
            list(observer.answers(inquiries(images, 100)))
        assert server.counts["overload"] < 250


def test_keeps_to_a_rate(
    simulated: SimulatedObserver, images: list[FloatArray]
) -> None:
    with (
        OddServer(simulated) as server,
        client(server, rate=40.0, concurrency=32) as observer,
    ):
        start = time.monotonic()
        all_at_once(observer, inquiries(images, 21), simulated)
        assert time.monotonic() - start >= 20 / 40


def test_falls_back_to_text_and_tells_so_once(
    simulated: SimulatedObserver, images: list[FloatArray]
) -> None:
    behaviour = Behaviour(logprobs="refused", seed="refused")
    with (
        OddServer(simulated, behaviour=behaviour) as server,
        client(server, concurrency=8) as observer,
    ):
        pending = inquiries(images, 30, Decoding(1.0, seed=3))
        with pytest.warns(ConditionWarning) as warned:
            replies = list(observer.answers(pending))
        assert sorted(
            str(warning.message).split(" from here on")[0] for warning in warned
        ) == [
            f"openai:{MODEL}: logprobs left out",
            f"openai:{MODEL}: seed left out",
        ]
        assert len(replies) == 30 and all(
            answer.first_tokens is None for _, answer in replies
        )
        # The first question finds it out, before the others are sent.
        assert server.counts["refused"] == 2
        assert all(
            set(answer.instead) == {"logprobs", "top_logprobs", "seed"}
            for _, answer in replies
        )


@pytest.mark.parametrize(
    ("behaviour", "model", "count", "message"),
    [
        (
            Behaviour(key="another"),
            MODEL,
            1,
            r"refuses the key \(HTTP 401\); set OPENAI_API_KEY",
        ),
        (
            Behaviour(),
            "simulated:other",
            1,
            r"knows no such model \(HTTP 404.*; it offers simulated:watson-malo",
        ),
        (
            Behaviour(),
            MODEL,
            3,
            r"refuses the question \(HTTP 400: .* was shown 3 images",
        ),
    ],
)
def test_a_clear_end_at_once(
    simulated: SimulatedObserver,
    images: list[FloatArray],
    behaviour: Behaviour,
    model: str,
    count: int,
    message: str,
) -> None:
    with OddServer(simulated, behaviour=behaviour) as server:
        with OpenAIObserver(model, base_url=server.base_url) as observer:
            with pytest.raises(PsyprobeError, match=message) as caught:
                observer.answer(images[:count], PROMPT)
            assert server.counts["refused"] + server.counts["unauthorised"] <= 2
            with pytest.raises(PsyprobeError, match=message):
                list(observer.answers([Inquiry(PROMPT, tuple(images[:count]))] * 20))
        assert "\n" not in str(caught.value) and "127.0.0.1" not in str(caught.value)


def test_no_more_tokens_are_asked_for_than_a_server_has(
    simulated: SimulatedObserver, images: list[FloatArray]
) -> None:
    """It thinks, and caps tokens below what that takes: the thinking counts as it came, and no room
    is promised."""
    with (
        OddServer(
            simulated, behaviour=Behaviour(thinking="tags", most_tokens=8)
        ) as server,
        client(server) as observer,
        pytest.warns(ConditionWarning, match="kept within 1 and 8") as warned,
    ):
        answer = observer.answer(images[:1], PROMPT, decoding=SAMPLED)
    assert (
        answer.text.startswith("<think>")
        and answer.finish == "length"
        and len(warned) == 1
    )
    assert answer.instead == {"max_tokens": [SAMPLED.max_tokens, 8]}


def test_no_server_there(images: list[FloatArray]) -> None:
    with (
        OpenAIObserver("m", base_url="http://127.0.0.1:9/v1", retries=1) as observer,
        pytest.raises(
            PsyprobeError,
            match=r"no server answers \(connection refused\); does base_url, or else "
            r"OPENAI_BASE_URL, name one",
        ),
    ):
        observer.answer(images[:1], PROMPT)


def test_gives_up_after_the_time_out(
    simulated: SimulatedObserver, images: list[FloatArray]
) -> None:
    with (
        OddServer(simulated, faults=Faults(hang=0.999)) as server,
        client(server, timeout=0.2, retries=1) as observer,
        pytest.raises(PsyprobeError, match=r"no answer within 0.2 s"),
    ):
        observer.answer(images[:1], PROMPT)


def test_what_was_answered_is_yielded_before_the_end(
    simulated: SimulatedObserver,
    images: list[FloatArray],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(openai_sending, "_PAUSES_AFTER_ANSWERS", (0.01,) * 4)
    pending = inquiries(images, 16)
    with OddServer(simulated) as server, client(server, concurrency=1) as observer:
        answered = []
        with pytest.raises(PsyprobeError, match="refuses the key"):
            for inquiry, _ in observer.answers(pending):
                answered.append(inquiry)
                if len(answered) == 10:
                    server._key = "another key from here on"
        assert {id(inquiry) for inquiry in pending[:10]} <= {
            id(inquiry) for inquiry in answered
        }


def test_closing_the_generator_takes_back_what_is_under_way(
    simulated: SimulatedObserver, images: list[FloatArray]
) -> None:
    with (
        OddServer(simulated, latency=0.05) as server,
        client(server, concurrency=4) as observer,
    ):
        replies = observer.answers(inquiries(images, 1000))
        next(replies)
        replies.close()  # type: ignore[attr-defined]
        time.sleep(0.2)
        assert server.counts["answered"] < 40
        assert observer.answer(images[:1], PROMPT).text, (
            "the observer is still good for questions"
        )


def test_threads_may_ask_side_by_side(
    simulated: SimulatedObserver, images: list[FloatArray]
) -> None:
    with (
        OddServer(simulated, latency=0.02) as server,
        client(server) as observer,
        ThreadPoolExecutor(8) as threads,
    ):
        pending = inquiries(images, 64)
        answers = list(
            threads.map(
                lambda inquiry: observer.answer(
                    inquiry.images, inquiry.prompt, decoding=SAMPLED
                ),
                pending,
            )
        )
        assert (
            sum(thread.name == "openai-sender" for thread in threading.enumerate()) == 1
        )
    for inquiry, answer in zip(pending, answers, strict=True):
        assert (
            answer.text
            == simulated.answer(inquiry.images, inquiry.prompt, decoding=SAMPLED).text
        )


def test_closes_and_opens_again_and_travels(
    simulated: SimulatedObserver, images: list[FloatArray]
) -> None:
    with OddServer(simulated) as server:
        observer = client(server)
        text = observer.answer(images[:1], PROMPT).text
        observer.close()
        observer.close()
        assert observer.answer(images[:1], PROMPT).text == text
        copy = pickle.loads(pickle.dumps(observer))
        assert (
            copy.answer(images[:1], PROMPT).text == text and copy.card == observer.card
        )
        copy.close()
        observer.close()


def test_the_key_is_nowhere(
    simulated: SimulatedObserver, images: list[FloatArray], monkeypatch: Any
) -> None:
    written = io.StringIO()
    handler = logging.StreamHandler(written)
    root = logging.getLogger()
    level = root.level
    root.addHandler(handler)
    root.setLevel(logging.DEBUG)
    errors = []
    try:
        for behaviour in (Behaviour(key=KEY), Behaviour(key="another")):
            with OddServer(
                simulated, behaviour=behaviour, faults=Faults(error=0.3, seed=2)
            ) as server:
                monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
                with OpenAIObserver(MODEL) as observer:
                    try:
                        answers = [
                            answer
                            for _, answer in observer.answers(inquiries(images, 10))
                        ]
                        assert len(answers) == 10
                    except PsyprobeError as error:
                        trace = traceback.TracebackException.from_exception(
                            error, capture_locals=True
                        )
                        errors.append("".join(trace.format()))
                        assert str(server.port) not in str(error)
                    texts = (repr(observer), str(observer.card.to_dict()))
                    assert KEY not in str(
                        (*texts, vars(observer), pickle.dumps(observer))
                    )
                    assert not any(str(server.port) in text for text in texts)
    finally:
        root.removeHandler(handler)
        root.setLevel(level)
    assert len(errors) == 1 and "refuses the key" in errors[0] and KEY not in errors[0]
    assert written.getvalue() and KEY not in written.getvalue()


def test_ctrl_c_ends_cleanly(simulated: SimulatedObserver) -> None:
    program = (
        "import signal, sys, numpy as np\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "from psyprobe.observers import load_observer\n"
        "from psyprobe.observers.chat.protocol import Inquiry\n"
        f"observer = load_observer('openai:{MODEL}')\n"
        "grey = np.full((64, 64, 3), 128 / 255)\n"
        "try:\n"
        "    for _ in observer.answers(Inquiry(f'? {i}', (grey,)) for i in range(10000)):\n"
        "        print('answered', flush=True)\n"
        "except KeyboardInterrupt:\n"
        "    sys.exit(130)\n"
    )
    # Python itself ignores an interrupt that falls into a destructor, and says so.
    for _ in range(3):
        code, err = _interrupt(program, simulated)
        if "Exception ignored" not in err:
            break
    assert (code, err) == (130, "")


def _interrupt(program: str, simulated: SimulatedObserver) -> tuple[int, str]:
    """Interrupt a program after its first answer; return its exit code and error text."""
    with OddServer(simulated, latency=0.05) as server:
        environment = {**os.environ, "OPENAI_BASE_URL": server.base_url}
        with child(
            [sys.executable, "-W", "error", "-c", program],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=environment,
        ) as process:
            assert process.stdout is not None
            assert process.stdout.readline() == "answered\n"
            process.send_signal(signal.SIGINT)
            _, err = process.communicate(timeout=1200)
        return process.returncode, err


def test_one_place_for_loopback_and_another_for_each_server() -> None:
    def place(url: str | None) -> object:
        return OpenAIObserver("m", base_url=url).card.options["endpoint"]

    assert (
        place("http://127.0.0.1:8000/v1")
        == place("http://localhost:9000/v1/")
        == place("http://[::1]:1/v1")
    )
    places = {
        place(None),
        place("https://a.example/v1"),
        place("https://b.example/v1"),
        place("https://a.example/v2"),
    }
    assert len(places) == 4 and not any("example" in str(address) for address in places)
    assert place("https://a.example/v1/") in places


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"concurrency": 0}, "concurrency is 0"),
        ({"retries": -1}, "retries is -1"),
        ({"rate": 0}, "rate is 0; give a finite number > 0"),
        ({"timeout": float("nan")}, "timeout is nan"),
        ({"detail": "huge"}, "detail is 'huge'"),
        ({"base_url": "localhost:8000"}, "no address of a server"),
        ({"base_url": "http://me:secret@host/v1"}, "put the key into OPENAI_API_KEY"),
        ({"base_url": "http://host/v1?key=secret"}, "put the key into OPENAI_API_KEY"),
        ({"key": "sk-1"}, "takes no option 'key'"),
    ],
)
def test_one_clear_line(options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message) as caught:
        load_observer("openai:m", **options)
    assert "secret" not in str(caught.value)


def test_openai_s_own_server_wants_a_key(
    images: list[FloatArray], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY")
    with pytest.raises(
        PsyprobeError, match="needs a key for OpenAI's server: set OPENAI_API_KEY"
    ):
        OpenAIObserver("m").answer(images[:1], PROMPT)


def test_a_web_page_is_told_at_once(images: list[FloatArray]) -> None:
    class Page(http.server.BaseHTTPRequestHandler):
        request_count = 0

        def do_POST(self) -> None:
            type(self).request_count += 1
            self.rfile.read(int(self.headers["Content-Length"]))
            body = b"<!doctype html><title>Welcome</title>"
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    with http.server.HTTPServer(("127.0.0.1", 0), Page) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        with (
            OpenAIObserver(
                "m", base_url=f"http://127.0.0.1:{server.server_port}"
            ) as observer,
            pytest.raises(
                PsyprobeError,
                match=r"answers with a web page.*\(base_url, or else OPENAI_BASE_URL\) end in /v1",
            ),
        ):
            observer.answer(images[:1], "Is there a pattern?")
        server.shutdown()
        thread.join()
    assert Page.request_count == 1
