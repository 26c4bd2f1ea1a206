# SPDX-License-Identifier: BSD-3-Clause
"""The frame of all benchmarks: options, subjects in turn, medians, verdicts; and `dpdk-testpmd`."""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from switchbench import labs
from switchbench.labs import LabNode

ROOT = Path(__file__).resolve().parents[2]
Figures = Mapping[str, float]  # of one run, or the medians of several, by name and unit
Subjects = Mapping[str, Callable[[], Figures]]
SKIPPED = 77
TESTPMD = "dpdk-testpmd"
RATE = "M frames/s"


def verdict(
    what: str, value: float, reach: float, *, unit: str = "", at_most: bool = False
) -> None:
    """Print the figure, what it is to reach, and whether it does."""
    good = value <= reach if at_most else value >= reach
    bound = f"(reach: {'at most' if at_most else 'at least'} {reach:g})"
    shown = f"{value:.4g} {unit}".rstrip()
    print(f"{what}: {shown} {bound}: {'PASS' if good else 'RED'}", flush=True)


def medians_in_turn(rounds: int, subjects: Subjects) -> dict[str, Figures]:
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


def beside_peer(
    row: str, rounds: int, subjects: Subjects, at_least: Figures, at_most: Figures | None = None
) -> None:
    """Run ours and a peer in turn; a verdict of the ratio of each figure that has a reach."""
    (ours, mine), (peer, theirs) = medians_in_turn(rounds, subjects).items()
    for reaches, most in ((at_least, False), (at_most or {}, True)):
        for figure, reach in reaches.items():
            what = f"{row}: {figure}, {ours} / {peer}"
            verdict(what, mine[figure] / theirs[figure], reach, at_most=most)


def switchbench(
    *words: str, node: Path | None = None, ends: Sequence[int] = (0,)
) -> tuple[str, Figures]:
    """Return what the command prints, and its time, CPU time and memory with its engine's."""
    begun = time.monotonic()
    command = [sys.executable, "-m", "switchbench", *words]
    variables = os.environ | ({"SWITCHBENCH_NODE": str(node)} if node else {})
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=variables)
    assert process.stdout is not None
    text = process.stdout.read()
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode not in ends:
        raise SystemExit(f"switchbench {' '.join(words)}: status {process.returncode}")
    cpu_s = used.ru_utime + used.ru_stime
    gib = used.ru_maxrss / (1 << 20)
    return text, {"s": time.monotonic() - begun, "CPU s": cpu_s, "GiB": gib}


def skip(reason: str) -> None:
    """End the program: what it needs is not here."""
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
    description: str | None, *, rounds: int = 5, seconds: float = 1.0, **more: Any
) -> argparse.ArgumentParser:
    """Return the options that all benchmarks have; `more`: name and default of some of one."""
    parser = argparse.ArgumentParser(description=(description or "").splitlines()[0])
    parser.add_argument("--rounds", type=int, default=rounds)
    parser.add_argument("--seconds", type=float, default=seconds, help="of one run")
    for name, default in more.items():
        several = isinstance(default, list | tuple)
        kind = type(default[0] if several else default)
        parser.add_argument(f"--{name}", type=kind, default=default, nargs="+" if several else None)
    return parser


NODE = ROOT / "build/engine/switchbench-node"


def built(program: str) -> Path:
    """Return where scripts/setup puts a benchmark's program."""
    return ROOT / "build/tests/bench" / program


@contextlib.contextmanager
def spaces(count: int) -> Iterator[Sequence[LabNode]]:
    """Yield so many namespaces of a lab: `eth0` and `ctl0` meet on bridges; nothing is shaped."""
    topology = labs.load("sixty-four", {"nodes": count, "rate": "unlimited"})
    with labs.session(topology, f"bench{os.getpid()}") as lab:
        yield lab.nodes


def inside(node: LabNode, *command: str) -> list[str]:
    """Return the command, run in a namespace."""
    return ["ip", "netns", "exec", node.namespace.name, *command]


# --- two processes beside two of a peer -----------------------------------------------------------

HOSTS = ("a", "b")


class Pair:
    """A program's two processes, and the CPU time that they spend."""

    def __init__(self) -> None:
        self._processes: list[subprocess.Popen[bytes]] = []
        self.cpu_s = 0.0

    def start(self, command: Sequence[str], output: Path) -> None:
        """Start one of them; what it prints goes into a file."""
        with output.open("wb") as stdout:
            process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=stdout)
        self._processes.append(process)

    @property
    def alive(self) -> bool:
        """Return whether the one that was started last runs."""
        return (
            os.waitid(os.P_PID, self._processes[-1].pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            is None
        )

    def end(self) -> None:
        """Wait for both."""
        for process in self._processes:
            _, status, used = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
            self.cpu_s += used.ru_utime + used.ru_stime
            if process.returncode != 0:
                raise SystemExit(f"{process.args!r} ended with {process.returncode}")


def write_job(
    folder: Path,
    control: Sequence[str],
    ports: Sequence[Mapping[str, Any]],
    cores: Sequence[int] = (),
    **keys: Any,
) -> Path:
    """Write the job of one flow from a to b, to be started at both by hand, on these cores."""
    site = {
        "launch": "hand",
        "hosts": list(HOSTS),
        "control": {
            "addresses": dict(zip(HOSTS, control, strict=True)),
            "barrier_timeout": "20s",
        },
        "ports": {"e0": {"network": "bench", "line_rate": "100Gbit"}},
        "overrides": {host: {"e0": port} for host, port in zip(HOSTS, ports, strict=True)},
        "host_cores": {host: [core] for host, core in zip(HOSTS, cores, strict=False)},
    }
    test = {"pattern": "chain", "connectivity_check": False, "repeat": 1}
    conf, job = folder / "conf.yaml", folder / "job.ndjson"
    conf.write_text(json.dumps({"switchbench": 1, "site": site, "tests": [test], **keys}))
    job.unlink(missing_ok=True)
    switchbench("plan", str(conf), "--job", str(job))
    return job


def run_job(node: Path, job: Path, prefixes: Sequence[Sequence[str]]) -> tuple[Any, float]:
    """Run both nodes behind their prefixes; return what b says of the flow, and their CPU time."""
    pair, log = Pair(), job.with_name("b.log")
    for host, prefix in reversed([*zip(HOSTS, prefixes, strict=True)]):
        command = [*prefix, str(node.resolve()), str(job), "--name", host]
        pair.start(command, job.with_name(f"{host}.log"))
        while not log.read_text() and pair.alive:  # b's memif is there before a's
            time.sleep(0.02)
    pair.end()
    records = map(json.loads, log.read_text().splitlines())
    (flow,) = (record for record in records if record["type"] == "flow")
    if flow["side"] != "destination" or flow["corrupted"] or flow["duplicated"]:
        raise SystemExit(f"this flow is not what was asked for: {flow}")
    return flow, pair.cpu_s


# --- frames on cores of their own, and testpmd ----------------------------------------------------


def two_cores() -> tuple[int, int]:
    """Return two cores of ours; end the program as skipped where there are fewer."""
    cores = sorted(os.sched_getaffinity(0))
    if len(cores) < 2:
        skip("needs two cores")
    return cores[0], cores[1]


def pinned(core: int, *command: object, netns: str | None = None) -> list[str]:
    """Return a command on one core, in a namespace or not."""
    prefix = ["ip", "netns", "exec", netns] if netns else []
    return [*prefix, "taskset", "-c", str(core), *map(str, command)]


def frame_rate(core: int, program: Path, *words: object) -> Figures:
    """Run a program of ours on a core; it prints frames per second."""
    done = subprocess.run(pinned(core, program, *words), capture_output=True, text=True, check=True)
    return rate_in(done.stdout)


def rate_in(text: str) -> Figures:
    """Return the rate that a program of ours printed first."""
    found = re.match(r"(\d+) frames/s", text)
    if found is None:
        raise SystemExit(f"no rate: {text}")
    return {RATE: float(found[1]) / 1e6}


def show_cycles(medians: Mapping[str, Figures]) -> float:
    """Print the cycles per frame of each subject; return the rate of the TSC in GHz."""
    bogomips = re.search(r"bogomips\s*: ([\d.]+)", Path("/proc/cpuinfo").read_text())
    ghz = float(bogomips[1]) / 2e3 if bogomips else 0.0
    for name, figures in medians.items():
        print(f"{name}: {ghz * 1e3 / figures[RATE]:.1f} cycles a frame at {ghz:.2f} GHz (TSC)")
    return ghz


def until(stream: IO[str], mark: str) -> str:
    """Return what a program prints until `mark`."""
    text = ""
    while mark not in text:
        got = stream.read(1)
        if got == "":
            raise SystemExit(f"it ended:\n{text[-2000:]}")
        text += got
    return text


@dataclass
class Testpmd:
    """One `dpdk-testpmd` with one forwarding core, and the other for its console."""

    use: str
    vdevs: Sequence[str]
    mode: str
    core: int
    console_core: int
    options: Sequence[str] = ()
    netns: str | None = None
    start: str = "start"
    process: subprocess.Popen[str] = field(init=False)

    @contextlib.contextmanager
    def running(self) -> Iterator[Testpmd]:
        """Open it, and see that nothing stays behind."""
        name = f"switchbench-{self.use}-{os.getpid()}"  # of what DPDK leaves in /run
        command = [
            *(["ip", "netns", "exec", self.netns] if self.netns else []),
            "stdbuf", "-oL", TESTPMD, "--lcores", f"0@{self.console_core},1@{self.core}",
            "--no-huge", "-m", "512", "--no-pci", "--no-shconf", "--no-telemetry",
            f"--file-prefix={name}", *(f"--vdev={vdev}" for vdev in self.vdevs), "--",
            "--interactive", f"--forward-mode={self.mode}", "--nb-cores=1", *self.options,
        ]  # fmt: skip
        pipe = subprocess.PIPE
        with subprocess.Popen(
            command, stdin=pipe, stdout=pipe, stderr=subprocess.STDOUT, text=True, bufsize=1
        ) as self.process:
            try:
                self._until("testpmd> ")
                yield self
                self._say("quit")
                self.process.communicate(timeout=20)
            finally:
                self.process.kill()
                shutil.rmtree(f"/run/dpdk/{name}", ignore_errors=True)

    def _say(self, line: str) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()

    def _until(self, mark: str) -> str:
        assert self.process.stdout is not None
        return until(self.process.stdout, mark)

    def begin(self) -> None:
        """Start forwarding."""
        self._say(self.start)
        self._until("testpmd> ")

    def end(self) -> tuple[int, int]:
        """Stop; return frames received and sent since the start."""
        self._say("stop")
        total = self._until("Done.\n").rpartition("Accumulated")[2]
        self._until("testpmd> ")
        received, sent = (re.search(rf"{way}-packets:\s*(\d+)", total) for way in ("RX", "TX"))
        if received is None or sent is None:
            raise SystemExit(f"testpmd showed no frames:\n{total[-2000:]}")
        return int(received[1]), int(sent[1])

    def _worker_s(self) -> float:
        """Return the CPU time of the forwarding thread."""
        for task in Path(f"/proc/{self.process.pid}/task").iterdir():
            if "worker" in (task / "comm").read_text():
                return float((task / "schedstat").read_text().split()[0]) / 1e9
        raise SystemExit("testpmd has no forwarding thread")

    def rate(self, seconds: float) -> Figures:
        """Run for a while; frames sent per second of the forwarding thread's CPU time."""
        with self.running():
            before = self._worker_s()
            self.begin()
            time.sleep(seconds)
            _, frames = self.end()
            used = self._worker_s() - before
        if frames == 0 or used <= 0:
            raise SystemExit("testpmd moved nothing")
        return {RATE: frames / used / 1e6}
