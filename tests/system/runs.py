# SPDX-License-Identifier: BSD-3-Clause
"""What the tests of whole runs share: a run as a person starts it, and what it left behind."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import yaml

import labkit
from told import records_in

Record = dict[str, Any]


@dataclass(frozen=True)
class Flow:
    """Both sides of one flow in one phase, as the nodes recorded them."""

    source: Record
    destination: Record

    @property
    def name(self) -> str:
        """For messages of assertions."""
        return f"{self.source['src']} -> {self.source['dst']}"

    @property
    def offered_l1_bps(self) -> float:
        """Layer-1 rate in the source's window."""
        return _l1_bps(self.source)

    @property
    def delivered_l1_bps(self) -> float:
        """Layer-1 rate in the destination's window."""
        return _l1_bps(self.destination)

    @property
    def delivered_payload_bps(self) -> float:
        """Payload rate in the destination's window."""
        side = self.destination
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
    def counted(self) -> bool:
        """Whether the run ended whole; on a busy machine its counts hold and its rates may not."""
        return self.status in (0, 4)

    @cached_property
    def summary(self) -> Record:
        """summary.json."""
        with (self.directory / "summary.json").open() as file:
            summary: Record = json.load(file)
        return summary

    def trials(self, **where: Any) -> list[Record]:
        """The summary's trials (a phase each) with these values."""
        found = [
            trial
            for trial in self.summary["trials"]
            if all(trial[key] == value for key, value in where.items())
        ]
        assert found, f"no trial with {where}"
        return found

    def records(self, *types: str) -> Iterator[Record]:
        """The nodes' records of these types."""
        return records_in(self.directory, *types)

    def flows(self, trial: Record) -> list[Flow]:
        """The flows of one of the summary's trials."""
        sides: dict[tuple[str, str], dict[str, Record]] = {}
        for record in self.records("flow"):
            if all(record[key] == trial[key] for key in ("trial", "repeat", "network", "phase")):
                ends = (record["src"], record["dst"])
                sides.setdefault(ends, {})[record["side"]] = record
        flows = [Flow(pair["source"], pair["destination"]) for pair in sides.values()]
        assert len(flows) == trial["flows"]
        return flows


def command(*words: str) -> list[str]:
    """`switchbench WORDS` of this tree."""
    return [sys.executable, "-m", "switchbench", *words]


def _own_site(site: Any) -> Any:
    """Two runs of the tests at a time must not meet in one lab."""
    if not isinstance(site, dict) or "lab" not in site:
        return site
    return site | {"lab": labkit.own(site["lab"])}


def run(directory: Path, configuration: Record, timeout_s: float = 600) -> Result:
    """Runs a configuration as a person would, and waits."""
    conf = directory / "conf.yaml"
    document = {"switchbench": 1} | configuration
    document["site"] = _own_site(document["site"])
    conf.write_text(yaml.safe_dump(document, sort_keys=False))
    out = directory / "results"
    done = subprocess.run(
        command("run", str(conf), "--out", str(out)),
        capture_output=True,
        text=True,
        timeout=timeout_s,
        check=False,
    )
    return Result(done.returncode, done.stdout, done.stderr, out)
