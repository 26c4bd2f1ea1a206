# SPDX-License-Identifier: BSD-3-Clause
"""Runs as a person starts them: waited for, or watched and hurt; and what they left behind."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import yaml

import labkit
from switchbench.records.schema import columns_of, flow_side
from switchbench.records.store import Tables

Record = dict[str, Any]
Starter = Callable[[list[str]], "subprocess.Popen[str]"]
SAMPLE_S = 0.01

# The tables that hold what nodes sent as records (doc/developer/node-protocol.md).
_TABLES = {
    "flow": "flows",
    "port": "ports",
    "phase": "phases",
    "clock": "phases",
    "histogram": "histograms",
    "interval": "intervals",
}


def records_in(directory: Path, *types: str) -> Iterator[Record]:
    """Yield the nodes' records of these types; none: of all. Those of phases come last."""
    tables = Tables(directory)
    yield from (event for event in tables.events() if not types or event["type"] in types)
    for phase in tables.phases():
        for kind, table in _TABLES.items():
            if not types or kind in types:
                for row in phase.rows(table).records():
                    yield from ({"type": kind} | record for record in _of_row(kind, row))


def _of_row(kind: str, row: Record) -> Iterator[Record]:
    if kind == "flow":
        ends = {name: row[name] for name in ("trial", "repeat", "network", "phase", "src", "dst")}
        for side, end in (("source", "src"), ("destination", "dst")):
            if row[f"{side}_reported"]:
                names = flow_side(side)
                node = row[end].partition(":")[0]
                yield {"side": side, "node": node, **ends} | {
                    key: row.get(name) for key, name in names.items()
                }
    elif kind == "clock":
        names = {column.key: column.name for column in columns_of("phases").values() if column.key}
        yield row | {key: row.get(name) for key, name in names.items()}
    else:
        yield dict.fromkeys(columns_of(_TABLES[kind])) | row


@dataclass(frozen=True)
class Flow:
    """Both sides of one flow in one phase, as the nodes recorded them."""

    source: Record
    destination: Record

    @property
    def name(self) -> str:
        """Its ends, for messages of assertions."""
        return f"{self.source['src']} -> {self.source['dst']}"

    @property
    def offered_l1_bps(self) -> float:
        """Return Layer-1 rate in the source's window."""
        return _l1_bps(self.source)

    @property
    def delivered_l1_bps(self) -> float:
        """Return Layer-1 rate in the destination's window."""
        return _l1_bps(self.destination)

    @property
    def delivered_payload_bps(self) -> float:
        """Payload rate in the destination's window."""
        return payload_bps(self.destination)


def payload_bps(side: Record) -> float:
    """Return the payload rate in a side's window."""
    return float(side["window_payload_bytes"]) * 8e9 / float(side["window_ns"])


def _l1_bps(side: Record) -> float:
    octets = side["window_frame_bytes"] + 20 * side["window_frames"]
    return float(octets) * 8e9 / float(side["window_ns"])


@dataclass(frozen=True)
class Result:
    """One finished `switchbench run`."""

    status: int
    output: str
    errors: str
    directory: Path

    @property
    def complete(self) -> Result:
        """This result, of a run that ended whole and met its expectations."""
        assert self.status == 0, self.output + self.errors
        return self

    @property
    def counted(self) -> bool:
        """Whether the run ended whole; on a busy machine its counts hold and its rates may not."""
        return self.status in (0, 4)

    @cached_property
    def summary(self) -> Record:
        """Return what is in summary.json."""
        summary: Record = json.loads((self.directory / "summary.json").read_text())
        return summary

    @property
    def sentence(self) -> str:
        """Return the one sentence with which the run ended on standard error."""
        return sentence(self.errors)

    @property
    def suspects(self) -> list[Record]:
        """Return what the summary says to be at fault."""
        found: list[Record] = self.summary["location"]["suspects"]
        return found

    def trials(self, **where: Any) -> list[Record]:
        """Return the summary's trials (a phase each) with these values."""
        found = [t for t in self.summary["trials"] if where.items() <= t.items()]
        assert found, f"no trial with {where}"
        return found

    def records(self, *types: str) -> Iterator[Record]:
        """Yield the nodes' records of these types."""
        return records_in(self.directory, *types)

    def switch(self, *types: str) -> list[Record]:
        """Return what a modelled switch wrote of itself."""
        lines = (self.directory / "switch.ndjson").read_text().splitlines()
        return [one for one in map(json.loads, lines) if not types or one["type"] in types]

    def flows(self, trial: Record) -> list[Flow]:
        """Return the flows of one of the summary's trials."""
        sides: dict[tuple[str, str], dict[str, Record]] = {}
        for record in self.records("flow"):
            if all(record[key] == trial[key] for key in ("trial", "repeat", "network", "phase")):
                ends = (record["src"], record["dst"])
                sides.setdefault(ends, {})[record["side"]] = record
        flows = [Flow(pair["source"], pair["destination"]) for pair in sides.values()]
        assert len(flows) == trial["flows"]
        return flows


class Underway:
    """A run that has been started."""

    def __init__(self, process: subprocess.Popen[str], directory: Path) -> None:
        self.process = process
        self.directory = directory

    def records(self, *types: str) -> list[Record]:
        """Return what nodes sent so far."""
        return list(records_in(self.directory, *types))

    def wait_for_load(self, phase: int = 0, limit_s: float = 60) -> None:
        """Wait until some node says that this phase is in its window."""

        def loaded() -> bool:
            assert self.process.poll() is None, self.process.communicate()
            wanted = {"phase": phase, "step": "window"}
            return any(wanted.items() <= one.items() for one in self.records("progress"))

        wait_until(loaded, f"phase {phase} is loaded", limit_s)

    def node_pids(self, *names: str) -> list[int]:
        """Return the process of every node with a hello record, or of these nodes."""
        return [r["pid"] for r in self.records("hello") if not names or r["node"] in names]

    def end(self, limit_s: float = 60) -> Result:
        """Wait for its end. No node may outlive it."""
        output, errors = self.process.communicate(timeout=limit_s)
        left = [pid for pid in self.node_pids() if is_alive(pid)]
        assert not left, f"nodes {left} outlive their run"
        return Result(self.process.returncode, output, errors, self.directory)


def command(*words: str) -> list[str]:
    """Return `switchbench WORDS` of this tree."""
    return [sys.executable, "-m", "switchbench", *words]


def execute(
    *words: str, timeout_s: float = 300, **options: Any
) -> subprocess.CompletedProcess[str]:
    """Run `switchbench WORDS` to its end."""
    return program(*command(*words), timeout=timeout_s, **options)


def program(
    *words: str | Path, check: bool = False, **options: Any
) -> subprocess.CompletedProcess[str]:
    """Run any program to its end, its outputs as text."""
    return subprocess.run(words, capture_output=True, text=True, check=check, **options)


def popen(words: list[str], **options: Any) -> subprocess.Popen[str]:
    """Start a program with outputs that are read as text."""
    return subprocess.Popen(
        words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **options
    )


def write(directory: Path, configuration: Mapping[str, Any]) -> Path:
    """Write a configuration; two runs of the tests at a time must not meet in one lab."""
    directory.mkdir(exist_ok=True)
    document = {"switchbench": 1, **configuration}
    site = document["site"]
    if isinstance(site, dict) and "lab" in site:
        document["site"] = site | {"lab": labkit.own(str(site["lab"]))}
    conf = directory / "conf.yaml"
    conf.write_text(yaml.safe_dump(document, sort_keys=False))
    return conf


def run(
    directory: Path,
    configuration: Mapping[str, Any],
    *words: str,
    timeout_s: float = 600,
    start: Starter = popen,
) -> Result:
    """Run a configuration, with more words, to its end; what is left of it is killed."""
    with started(directory, configuration, *words, start=start) as underway:
        return underway.end(timeout_s)


@contextmanager
def started(
    directory: Path, configuration: Mapping[str, Any], *words: str, start: Starter = popen
) -> Iterator[Underway]:
    """Start a run, with more words; whatever the block leaves of it is killed."""
    conf, out = write(directory, configuration), directory / "results"
    process = start(command("run", str(conf), "--out", str(out), *words))
    run = Underway(process, out)
    try:
        yield run
    finally:
        for pid in [process.pid, *run.node_pids()] if process.poll() is None else []:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        # What the run has started may hold its outputs still: a test fails then, and ends.
        process.communicate(timeout=60)


def wait_until(done: Callable[[], object], what: str, limit_s: float) -> None:
    """Look often; fail with `what` when it takes too long."""
    deadline = time.monotonic() + limit_s
    while not done():
        assert time.monotonic() < deadline, f"waited {limit_s} s until {what}"
        time.sleep(SAMPLE_S)


def is_alive(pid: int) -> bool:
    """Return whether there is such a process, zombies left out."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def sentences(errors: str) -> list[str]:
    """Return what a command says on standard error, without the codes; each has one."""
    lines = [line for line in errors.splitlines() if line.startswith("switchbench: ")]
    found = [re.fullmatch(r"switchbench: (.*) \[SB-[A-Z]+\]", line) for line in lines]
    return [
        one[1] if one else f"{line}: has no code" for one, line in zip(found, lines, strict=True)
    ]


def sentence(errors: str) -> str:
    """Return the one sentence with which a command ends on standard error."""
    (line,) = sentences(errors)
    return line
