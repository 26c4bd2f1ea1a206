# SPDX-License-Identifier: BSD-3-Clause
"""What benchmarks against a peer share: runs in turn, medians, verdicts, and `dpdk-testpmd`."""

from __future__ import annotations

import argparse
import contextlib
import os
import pathlib
import re
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import IO

ROOT = pathlib.Path(__file__).resolve().parents[2]
Figures = Mapping[str, float]  # of one run, or the medians of several, by name and unit
SKIPPED = 77
TESTPMD = "dpdk-testpmd"


def verdict(
    what: str, value: float, reach: float, *, unit: str = "", at_most: bool = False
) -> None:
    """One line: the figure, what it is to reach, and whether it does."""
    good = value <= reach if at_most else value >= reach
    bound = "at most" if at_most else "at least"
    print(
        f"{what}: {value:.4g}{' ' if unit else ''}{unit} (reach: {bound} {reach:g}): "
        f"{'PASS' if good else 'RED'}",
        flush=True,
    )


def medians_in_turn(
    rounds: int, subjects: Mapping[str, Callable[[], Figures]]
) -> dict[str, Figures]:
    """Run all subjects one after the other, `rounds` times; print each, return their medians."""
    runs: dict[str, list[Figures]] = {name: [] for name in subjects}
    for _ in range(rounds):
        for name, measure in subjects.items():
            runs[name].append(measure())
            words = (f"{figure} {value:.4g}" for figure, value in runs[name][-1].items())
            print(f"  {name}: {', '.join(words)}", flush=True)
    found: dict[str, Figures] = {}
    for name, some in runs.items():
        values = {figure: [run[figure] for run in some] for figure in some[0]}
        found[name] = {figure: statistics.median(each) for figure, each in values.items()}
        words = (
            f"{figure} {found[name][figure]:.4g} ({min(each):.4g} to {max(each):.4g})"
            for figure, each in values.items()
        )
        print(f"{name}, medians of {rounds}: {', '.join(words)}", flush=True)
    return found


def in_turn(
    rounds: int, subjects: Mapping[str, Callable[[], float]], *, unit: str = "M frames/s"
) -> dict[str, float]:
    """Return the medians of subjects that have one figure each."""

    def single(measure: Callable[[], float]) -> Callable[[], Figures]:
        return lambda: {unit: measure()}

    found = medians_in_turn(rounds, {name: single(one) for name, one in subjects.items()})
    return {name: figures[unit] for name, figures in found.items()}


def switchbench(*words: str) -> tuple[str, Figures]:
    """What the command prints, and the time, CPU time and memory that it takes with its engine."""
    begun = time.monotonic()
    command = [sys.executable, "-m", "switchbench", *words]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    text = process.stdout.read()
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"switchbench {' '.join(words)}: status {process.returncode}")
    cpu_s = used.ru_utime + used.ru_stime
    gib = used.ru_maxrss / (1 << 20)
    return text, {"s": time.monotonic() - begun, "CPU s": cpu_s, "GiB": gib}


def tsc_ghz() -> float:
    """The rate of the time stamp counter, as the kernel calibrated it; the core's where unknown."""
    for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines():
        found = re.match(r"bogomips\s*: ([\d.]+)", line)
        if found:
            return float(found[1]) / 2e3
    return 0.0


def two_cores() -> tuple[int, int]:
    """Two cores of ours; ends the program as skipped where there are fewer."""
    cores = sorted(os.sched_getaffinity(0))
    if len(cores) < 2:
        skip("needs two cores")
    return cores[0], cores[1]


def skip(reason: str) -> None:
    """Ends the program: what it needs is not here."""
    print(f"skipped: {reason}")
    raise SystemExit(SKIPPED)


def need(*programs: str, root: bool = False) -> None:
    """End the program as skipped when one of these can't be run, or root is needed and missing."""
    if root and os.geteuid() != 0:
        skip("namespaces need root")
    for program in programs:
        if shutil.which(program) is None:
            skip(f"needs {program} (scripts/setup installs it)")


def arguments(
    description: str | None, *, node: bool = False, rounds: int = 5, seconds: float = 1.0
) -> argparse.ArgumentParser:
    """Options that all benchmarks have; `node`: and that of the engine's program."""
    parser = argparse.ArgumentParser(description=(description or "").splitlines()[0])
    parser.add_argument("--rounds", type=int, default=rounds)
    parser.add_argument("--seconds", type=float, default=seconds, help="of one run")
    if node:
        default = ROOT / "build/engine/switchbench-node"
        parser.add_argument("--node", type=pathlib.Path, default=default)
    return parser


def built(program: str) -> str:
    """Where scripts/setup puts a benchmark's program."""
    return str(ROOT / "build/tests/bench" / program)


def until(stream: IO[str], mark: str) -> str:
    """What a program prints until `mark`."""
    text = ""
    while mark not in text:
        got = stream.read(1)
        if got == "":
            raise SystemExit(f"it ended:\n{text[-2000:]}")
        text += got
    return text


def pinned(core: int, *command: str, netns: str | None = None) -> list[str]:
    """A command on one core, in a namespace or not."""
    prefix = ["ip", "netns", "exec", netns] if netns else []
    return [*prefix, "taskset", "-c", str(core), *command]


@dataclass
class Testpmd:
    """One `dpdk-testpmd` with one forwarding core, and the other for its console."""

    name: str
    vdevs: Sequence[str]
    mode: str
    core: int
    console_core: int
    options: Sequence[str] = ()
    netns: str | None = None
    start: str = "start"
    process: subprocess.Popen[str] = field(init=False)

    def command(self) -> list[str]:
        """Its command line."""
        prefix = ["ip", "netns", "exec", self.netns] if self.netns else []
        eal = [f"--vdev={vdev}" for vdev in self.vdevs]
        return [
            *prefix, "stdbuf", "-oL", TESTPMD,
            "--lcores", f"0@{self.console_core},1@{self.core}",
            "--no-huge", "-m", "512", "--no-pci", "--no-shconf", "--no-telemetry",
            f"--file-prefix={self.name}", *eal, "--",
            "--interactive", f"--forward-mode={self.mode}", "--nb-cores=1", *self.options,
        ]  # fmt: skip

    @contextlib.contextmanager
    def running(self) -> Iterator[Testpmd]:
        """Opens it, and sees that nothing stays behind."""
        with subprocess.Popen(
            self.command(),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            bufsize=1,
        ) as self.process:
            try:
                self._until("testpmd> ")
                yield self
                self.say("quit")
                self.process.communicate(timeout=20)
            finally:
                if self.process.poll() is None:
                    self.process.kill()
                shutil.rmtree(f"/run/dpdk/{self.name}", ignore_errors=True)

    def say(self, line: str) -> None:
        """Types a command."""
        assert self.process.stdin is not None
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()

    def _until(self, mark: str) -> str:
        assert self.process.stdout is not None
        return until(self.process.stdout, mark)

    def begin(self) -> None:
        """Starts forwarding."""
        self.say(self.start)
        self._until("testpmd> ")

    def end(self) -> tuple[int, int]:
        """Stops; frames received and sent since the start."""
        self.say("stop")
        text = self._until("Done.\n")
        self._until("testpmd> ")
        total = text[text.rfind("Accumulated") :]
        received = re.search(r"RX-packets:\s*(\d+)", total)
        sent = re.search(r"TX-packets:\s*(\d+)", total)
        if received is None or sent is None:
            raise SystemExit(f"testpmd showed no frames:\n{text[-2000:]}")
        return int(received[1]), int(sent[1])

    def worker_seconds(self) -> float:
        """CPU time of the forwarding thread."""
        for task in pathlib.Path(f"/proc/{self.process.pid}/task").iterdir():
            if "worker" in (task / "comm").read_text():
                return float((task / "schedstat").read_text().split()[0]) / 1e9
        raise SystemExit("testpmd has no forwarding thread")

    def rate(self, seconds: float, *, received: bool = False) -> float:
        """Runs for a while; million frames a second of the forwarding thread's CPU time."""
        with self.running():
            before = self.worker_seconds()
            self.begin()
            time.sleep(seconds)
            frames = self.end()[0 if received else 1]
            used = self.worker_seconds() - before
        if frames == 0 or used <= 0:
            raise SystemExit("testpmd moved nothing")
        return frames / used / 1e6


def prefix(use: str) -> str:
    """A name of this process's, for what DPDK leaves in /run."""
    return f"switchbench-{use}-{os.getpid()}"
