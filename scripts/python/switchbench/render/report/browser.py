# SPDX-License-Identifier: BSD-3-Clause
"""Headless Chromium over its debugging pipe: opens a page of ours and asks its script for values.

No port is opened and nothing is fetched: file descriptors 3 and 4 carry JSON, a NUL after each
message (Chromium's --remote-debugging-pipe, the DevTools protocol).
"""

from __future__ import annotations

import fcntl
import json
import os
import select
import shutil
import signal
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any

from ...base.errors import ConfigurationError, RunError

VARIABLE = "SWITCHBENCH_BROWSER"
NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
MISSING = (
    "figures can only be drawn by a browser, and there is none: install Chromium "
    f"(Debian: apt-get install chromium) or name one in {VARIABLE}; in report.html each figure "
    "can be saved as PNG or SVG without it"
)
START_S = 30.0
ANSWER_S = 60.0
END_S = 5.0

_OPTIONS = (
    "--headless=new",
    "--remote-debugging-pipe",
    "--disable-gpu",
    "--disable-extensions",
    "--disable-background-networking",
    "--no-first-run",
    "--hide-scrollbars",
)


def find() -> str:
    """A Chromium of this machine; ConfigurationError where there is none."""
    named = os.environ.get(VARIABLE)
    for name in (named,) if named else NAMES:
        found = shutil.which(name)
        if found:
            return found
    raise ConfigurationError(f"{VARIABLE}={named} can't be executed" if named else MISSING)


class Browser:
    """One headless browser with one page; a context manager, nothing of it is left behind."""

    def __init__(self, program: str) -> None:
        self._program = program
        self._asked = 0
        self._session: str | None = None
        self._heard = b""

    def __enter__(self) -> Browser:
        self._profile = tempfile.TemporaryDirectory(
            prefix="switchbench-browser-", ignore_cleanup_errors=True
        )
        to_browser, self._write = _high_pipe()
        self._read, from_browser = _high_pipe()
        # Chromium refuses its sandbox to root, and a page of ours needs none.
        sandbox = ["--no-sandbox"] if os.geteuid() == 0 else []
        options = [*_OPTIONS, *sandbox, f"--user-data-dir={self._profile.name}", "about:blank"]
        try:
            self._pid = os.posix_spawn(
                self._program, [self._program, *options], os.environ, file_actions=[
                    (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
                    (os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0),
                    (os.POSIX_SPAWN_OPEN, 2, os.devnull, os.O_WRONLY, 0),
                    (os.POSIX_SPAWN_DUP2, to_browser, 3),
                    (os.POSIX_SPAWN_DUP2, from_browser, 4),
                ],
            )  # fmt: skip
        finally:
            os.close(to_browser)
            os.close(from_browser)
        self._alive = os.pidfd_open(self._pid)
        try:
            self._attach()
        except BaseException:
            self._end()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._end()

    def open(self, path: Path) -> None:
        """Opens a file and waits until its scripts have run."""
        self._ask("Page.enable")
        self._ask("Page.navigate", url=path.resolve().as_uri())
        until = time.monotonic() + START_S
        while self.value("document.readyState") != "complete":
            if time.monotonic() > until:
                raise RunError(f"{self._program} did not open {path} within {START_S:g} s")
            time.sleep(0.05)

    def value(self, expression: str) -> Any:
        """What an expression of the page's script comes to; a promise is waited for."""
        answer = self._ask(
            "Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True
        )
        if "exceptionDetails" in answer:
            wrong = answer["exceptionDetails"]
            words = wrong.get("exception", {}).get("description") or wrong["text"]
            raise RunError(f"the page says: {words.splitlines()[0]}")
        return answer["result"].get("value")

    def _attach(self) -> None:
        targets = self._ask("Target.getTargets")["targetInfos"]
        page = next(target for target in targets if target["type"] == "page")
        attached = self._ask("Target.attachToTarget", targetId=page["targetId"], flatten=True)
        self._session = attached["sessionId"]

    def _ask(self, method: str, **parameters: Any) -> dict[str, Any]:
        self._asked += 1
        message: dict[str, Any] = {"id": self._asked, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        try:
            data = json.dumps(message).encode() + b"\0"
            while data:
                data = data[os.write(self._write, data) :]
        except BrokenPipeError as error:
            raise self._gone() from error
        until = time.monotonic() + ANSWER_S
        while True:
            heard = json.loads(self._hear(until))
            if heard.get("id") == self._asked:
                if "error" in heard:
                    raise RunError(f"{self._program}: {method}: {heard['error']['message']}")
                result: dict[str, Any] = heard["result"]
                return result

    def _hear(self, until: float) -> bytes:
        """The next message."""
        while b"\0" not in self._heard:
            left = until - time.monotonic()
            if left <= 0 or not select.select([self._read], [], [], left)[0]:
                raise RunError(f"{self._program} gave no answer for {ANSWER_S:g} s")
            part = os.read(self._read, 1 << 20)
            if not part:
                raise self._gone()
            self._heard += part
        message, _, self._heard = self._heard.partition(b"\0")
        return message

    def _gone(self) -> RunError:
        return RunError(
            f"{self._program} has ended without an answer; does it run by itself? "
            f"{self._program} --headless=new --dump-dom about:blank"
        )

    def _end(self) -> None:
        with suppress(RunError):
            self._session = None
            self._ask("Browser.close")
        os.close(self._write)
        if not select.select([self._alive], [], [], END_S)[0]:
            os.kill(self._pid, signal.SIGKILL)
        os.waitpid(self._pid, 0)
        os.close(self._alive)
        os.close(self._read)
        self._profile.cleanup()


def _high_pipe() -> tuple[int, int]:
    """A pipe whose numbers are none of those that the browser gets."""
    low = os.pipe()
    try:
        return (
            fcntl.fcntl(low[0], fcntl.F_DUPFD_CLOEXEC, 10),
            fcntl.fcntl(low[1], fcntl.F_DUPFD_CLOEXEC, 10),
        )
    finally:
        os.close(low[0])
        os.close(low[1])
