#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""The controller's own cost during a run: CPU time of the command's process, of one core.

A lab of 16 ranks in 16 node processes, one of 64 in 16, and one of 64 in 64. `switchbench run` as
a person starts it, in turn

  plain    its output into a pipe: lines
  metrics  the same, and Prometheus' metrics scraped once a second
  screen   on a terminal of 160 x 50

Counted is what the process and its threads used (/proc) from the first window to the last trial's
end, by that time. The nodes' own cost is not in it; heartbeats, records, summary and screen are.

    tests/bench/controller.py [--node PROGRAM] [--rounds 5] [--lab 16|64|64x64]
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PYTHON = ROOT / ".venv" / "bin" / "python"
if sys.prefix == sys.base_prefix and PYTHON.exists():  # the tests' kit needs the environment
    os.execv(PYTHON, [str(PYTHON), *sys.argv])
sys.path[:0] = [str(ROOT / "tests/system"), str(ROOT / "scripts/python")]

from common import in_turn, skip, verdict  # noqa: E402

import ptykit  # noqa: E402

REACH_PERCENT = 5.0
RUN_TIMEOUT_S = 120.0
LOOK_S = 0.05
SCRAPE_S = 1.0


@dataclass(frozen=True)
class Lab:
    """So many ranks, so many of them in a process."""

    ranks: int
    pack: int
    rate: str

    @property
    def words(self) -> str:
        """For people."""
        return f"{self.ranks} ranks in {self.ranks // self.pack} processes"

    def configuration(self, folder: Path) -> Path:
        """A configuration of random rings, a phase of a second each."""
        topology = folder / f"controller{os.getpid()}.yaml"
        topology.write_text(
            f"topology: 1\nrate: {self.rate}\nmodules: [switch]\n"
            f"nodes: {{'node[1-{self.ranks}]': {{}}}}\n"
        )
        path = folder / "conf.yaml"
        path.write_text(
            f"switchbench: 1\nsite: {{lab: {topology}, pack: {self.pack}}}\n"
            f"transport: dpdk\nload: 50%\nwindow: 1s\nwarmup: 200ms\nrepeat: 1\n"
            "tests: [{pattern: ring, count: 7}]\n"
        )
        return path


LABS = {
    "16": Lab(16, 1, "10M"),
    "64": Lab(64, 4, "2M"),
    "64x64": Lab(64, 1, "1M"),
}


def used_s(pid: int) -> float:
    """CPU time of a process, its threads included."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


class Meter:
    """Reads the records as they are written, and the clock when load begins and ends."""

    def __init__(self, pid: int, directory: Path) -> None:
        self._pid = pid
        self._path = directory / "records.ndjson"
        self._at = 0
        self._nodes: set[str] = set()
        self._ended: set[str] = set()
        self.begin: tuple[float, float] | None = None  # time, CPU time
        self.end: tuple[float, float] | None = None

    def look(self) -> None:
        """Called often while the run lasts."""
        with suppress(OSError):
            text = self._path.read_bytes()[self._at :]
            whole = text[: text.rfind(b"\n") + 1]
            self._at += len(whole)
            for line in whole.splitlines():
                self._take(json.loads(line))

    def _take(self, record: dict[str, str]) -> None:
        kind = record["type"]
        if kind == "hello":
            self._nodes.add(record["node"])
        elif kind == "progress" and record["step"] == "window" and self.begin is None:
            self.begin = time.monotonic(), used_s(self._pid)
        elif kind == "trial":
            self._ended.add(record["node"])
            if self._ended == self._nodes and self.end is None:
                self.end = time.monotonic(), used_s(self._pid)

    @property
    def percent(self) -> float:
        """Of one core."""
        if self.begin is None or self.end is None:
            raise SystemExit("the run had no window, or no end")
        return 100.0 * (self.end[1] - self.begin[1]) / (self.end[0] - self.begin[0])


@contextmanager
def piped(words: list[str]) -> Iterator[tuple[subprocess.Popen[bytes], Callable[[], None]]]:
    """Its output into a file that nobody watches."""
    with tempfile.TemporaryFile() as log:
        process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        try:
            yield process, lambda: time.sleep(LOOK_S)
        finally:
            process.wait(RUN_TIMEOUT_S)


@contextmanager
def scraped(words: list[str]) -> Iterator[tuple[subprocess.Popen[bytes], Callable[[], None]]]:
    """The same, and its metrics asked for."""
    port = 20000 + os.getpid() % 20000
    due_s = [time.monotonic()]

    def scrape() -> None:
        time.sleep(LOOK_S)
        if time.monotonic() >= due_s[0]:
            due_s[0] += SCRAPE_S
            with suppress(OSError):
                urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=5).read()

    with piped([*words, "--metrics", f"127.0.0.1:{port}"]) as (process, _):
        yield process, scrape


@contextmanager
def on_screen(words: list[str]) -> Iterator[tuple[subprocess.Popen[bytes], Callable[[], None]]]:
    """On a terminal that shows it."""
    with ptykit.on_terminal(words, 160, 50) as terminal:
        yield terminal.process, lambda: terminal.take(LOOK_S)
        terminal.end(RUN_TIMEOUT_S)
        if b"delivered" not in terminal.raw:
            raise SystemExit("no screen was drawn")


WAYS = {"plain": piped, "metrics": scraped, "screen": on_screen}


def cost_percent(way: str, conf: Path) -> float:
    """One run; percent of one core."""
    with (
        tempfile.TemporaryDirectory(prefix="switchbench-controller-") as name,
        ExitStack() as stack,
    ):
        out = Path(name) / "results"
        words = [sys.executable, "-m", "switchbench", "run", str(conf), "--out", str(out)]
        process, wait = stack.enter_context(WAYS[way](words))
        meter = Meter(process.pid, out)
        limit_s = time.monotonic() + RUN_TIMEOUT_S
        while process.poll() is None and meter.end is None:
            if time.monotonic() > limit_s:
                raise SystemExit("the run does not end")
            wait()
            meter.look()
        return meter.percent


def main() -> int:
    """All ways in turn on each lab, then the verdicts."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--node", type=Path, default=ROOT / "build/engine/switchbench-node")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--lab", choices=LABS, action="append", help="all when not named")
    options = parser.parse_args()
    if os.geteuid() != 0:
        skip("the lab needs root here")
    os.environ["SWITCHBENCH_NODE"] = str(options.node.absolute())
    for name in options.lab or LABS:
        lab = LABS[name]
        print(lab.words, flush=True)
        with tempfile.TemporaryDirectory(prefix="switchbench-controller-") as folder:
            conf = lab.configuration(Path(folder))
            ways = {way: partial(cost_percent, way, conf) for way in WAYS}
            medians = in_turn(options.rounds, ways, unit="% of a core")
        for way, percent in medians.items():
            what = f"controller, {lab.words}, {way}"
            verdict(what, percent, REACH_PERCENT, unit="% of a core", at_most=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
