"""A headless browser driven over the WebDriver protocol by the standard library alone."""

from __future__ import annotations

import base64
import json
import os
import shutil
import signal
import socket
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from children import child

LEFT, UP, RIGHT, DOWN = "\ue012", "\ue013", "\ue014", "\ue015"
ENTER, CONTROL, TAB, SPACE = "\ue007", "\ue009", "\ue004", " "
#: Seconds for one answer of the driver: on a machine full of work a browser takes minutes to start.
_PATIENCE = 240


def missing() -> str:
    """Name what this machine lacks; empty if a browser can be driven."""
    absent = [
        name for name in ("chromedriver", "chromium") if shutil.which(name) is None
    ]
    return (
        f"no {' and no '.join(absent)} here: the page is driven over HTTP only"
        if absent
        else ""
    )


class Browser:
    """One window."""

    def __init__(self, base: str) -> None:
        self._base = base
        drawing = ["--use-angle=swiftshader", "--enable-unsafe-swiftshader"]
        flags = [
            "--headless=new",
            "--no-sandbox",
            "--disable-dev-shm-usage",
            "--window-size=1100,900",
            *drawing,
        ]
        options = {"binary": shutil.which("chromium"), "args": flags}
        request = {
            "capabilities": {
                "alwaysMatch": {
                    "goog:chromeOptions": options,
                    "goog:loggingPrefs": {"browser": "ALL"},
                }
            }
        }
        reply = self._call("/session", request)
        self._session, self._process = (
            f"/session/{reply['sessionId']}",
            reply["capabilities"].get("goog:processID"),
        )

    def _call(self, path: str, values: Any = None, method: str = "POST") -> Any:
        body = None if method != "POST" else json.dumps(values or {}).encode()
        request = urllib.request.Request(
            self._base + path, body, {"Content-Type": "application/json"}, method=method
        )
        with urllib.request.urlopen(request, timeout=_PATIENCE) as reply:
            return json.load(reply)["value"]

    def open(self, address: str) -> None:
        self._call(f"{self._session}/url", {"url": address})

    def press(self, *keys: str) -> None:
        """Keys one after the other; those in one string are held together."""
        actions: list[dict[str, str]] = []
        for keys_together in keys:
            actions += [{"type": "keyDown", "value": key} for key in keys_together]
            actions += [
                {"type": "keyUp", "value": key} for key in reversed(keys_together)
            ]
        self._call(
            f"{self._session}/actions",
            {"actions": [{"type": "key", "id": "keyboard", "actions": actions}]},
        )

    def run(self, script: str) -> Any:
        return self._call(
            f"{self._session}/execute/sync", {"script": f"return {script}", "args": []}
        )

    def wait(self, script: str, value: Any) -> None:
        end = time.monotonic() + 20
        while (current := self.run(script)) != value:
            if time.monotonic() > end:
                raise AssertionError(f"{script} is {current!r} and not {value!r}")
            time.sleep(0.05)

    def text(self, name: str) -> str:
        return str(self.run(f"document.getElementById('{name}').textContent"))

    def complaints(self) -> list[str]:
        """What the browser wrote on its console, such as things that the page may not load.

        Not what its graphics driver says about its own speed, which depends on the machine.
        """
        complaints = [
            row["message"]
            for row in self._call(f"{self._session}/se/log", {"type": "browser"})
        ]
        return [
            line
            for line in complaints
            if "GL Driver Message (OpenGL, Performance" not in line
        ]

    def forget(self) -> None:
        """Leave a page, whose server may be gone and which still calls it, and drop what it
        complained of."""
        self.open("about:blank")
        self.complaints()

    def command(self, name: str, **values: Any) -> Any:
        """A command of the DevTools protocol, such as to set the size of the window."""
        return self._call(
            f"{self._session}/goog/cdp/execute", {"cmd": name, "params": values}
        )

    @contextmanager
    def without_network(self) -> Iterator[None]:
        """Cut the window off from every server, and connect it again afterwards."""
        self.command("Network.enable")
        self._limit_network(offline=True, throughput=0)
        try:
            yield
        finally:
            self._limit_network(offline=False, throughput=-1)

    def _limit_network(self, *, offline: bool, throughput: int) -> None:
        """Set how much goes over the network, bytes a second; -1 is no limit."""
        self.command(
            "Network.emulateNetworkConditions",
            offline=offline,
            latency=0,
            downloadThroughput=throughput,
            uploadThroughput=throughput,
        )

    def screenshot(self, path: Path) -> None:
        path.write_bytes(
            base64.b64decode(self._call(f"{self._session}/screenshot", method="GET"))
        )

    def photograph(self, name: str) -> None:
        """Light and dark, into the folder of the variable PSYPROBE_SCREENSHOTS, where somebody
        wants to look."""
        if folder := os.environ.get("PSYPROBE_SCREENSHOTS"):
            for scheme in ("light", "dark"):
                features = [{"name": "prefers-color-scheme", "value": scheme}]
                self.command("Emulation.setEmulatedMedia", features=features)
                self.screenshot(Path(folder) / f"{name}_{scheme}.png")

    def tab(self) -> None:
        """Open another tab, and go on in it."""
        self.switch(
            self._call(f"{self._session}/window/new", {"type": "tab"})["handle"]
        )

    def tabs(self) -> list[str]:
        """Names of all tabs, from the first."""
        return list(self._call(f"{self._session}/window/handles", method="GET"))

    def switch(self, name: str) -> None:
        self._call(f"{self._session}/window", {"handle": name})

    def close_tab(self) -> None:
        """Close the tab in which it is; another one must be switched to."""
        self._call(f"{self._session}/window", method="DELETE")

    def kill(self) -> None:
        """SIGKILL, as from a crash."""
        os.kill(self._process, signal.SIGKILL)
        self._process = 0

    def close(self) -> None:
        if self._process:
            self._call(self._session, method="DELETE")


@contextmanager
def browser(seconds: float = 600) -> Iterator[Browser]:
    """A window that lives for so long at most."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    driver = [str(shutil.which("chromedriver")), f"--port={port}"]
    with child(
        driver, seconds=seconds, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as process:
        base = f"http://127.0.0.1:{port}"
        for _ in range(300):
            try:
                urllib.request.urlopen(f"{base}/status", timeout=5).close()
                break
            except (urllib.error.URLError, ConnectionError):
                time.sleep(0.1)
        try:
            opened = Browser(base)
            try:
                yield opened
            finally:
                opened.close()
        finally:
            # Killed, it would leave its browser behind.
            process.terminate()
            process.wait(20)
