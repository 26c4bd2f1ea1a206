# SPDX-License-Identifier: BSD-3-Clause
"""Small results directories made by hand, whose differences are known, for the tests of compare."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

import synthetic
from recorded import results
from switchbench.base.model import Load, Trial
from switchbench.cli.main import main

WINDOW_S = 1.0


@dataclass(frozen=True)
class Repeats:
    """Pairs of two nodes: frames that each flow delivered in the window, repeat by repeat."""

    windows: Sequence[tuple[int, int]]
    lost: int = 0  # frames of the second flow, each repeat
    load: float = 95.0
    pattern: str = "pairs"
    settings: dict[str, Any] = field(default_factory=dict)  # as understood


def compared(
    capsys: pytest.CaptureFixture[str], *words: object, status: int = 0
) -> tuple[dict[str, Any], dict[str, Any]]:
    """What the command writes as JSON, and its only comparison."""
    capsys.readouterr()
    assert main(["compare", *map(str, words), "--json", "-"]) == status
    whole: dict[str, Any] = json.loads(capsys.readouterr().out)
    (one,) = whole["comparisons"]
    return whole, one


def rate_mbps(frames: float) -> float:
    """Payload of so many frames of a window."""
    return frames * synthetic.FRAME_PAYLOAD * 8 / WINDOW_S / 1e6


def make(
    path: Path, *tests: Repeats, hosts: Sequence[str] = ("node1", "node2"), **configuration: Any
) -> Path:
    """A results directory; `configuration`: more of the configuration as understood."""
    site = synthetic.make_site(hosts)
    trials = list(_trials(site, tests))
    understood = {
        "switchbench": 1,
        "site": {"lab": "one-switch"},
        "tests": [{"pattern": t.pattern, "window": "1s", "seed": 1, **t.settings} for t in tests],
    } | configuration
    run = synthetic.make_run(site, *(trial for trial, _ in trials))
    return results(path, replace(run, effective=understood), _records(hosts, trials))


def _trials(site: Any, tests: Sequence[Repeats]) -> Any:
    number = 0
    for place, test in enumerate(tests):
        for repeat, window in enumerate(test.windows):
            trial = synthetic.make_trial(site, number, test=place, repeat=repeat)
            pattern = {"name": test.pattern, "partners": "neighbours"}
            yield replace(trial, pattern=pattern, load=Load(percent=test.load)), (test, window)
            number += 1


def _records(
    hosts: Sequence[str], trials: Sequence[tuple[Trial, tuple[Repeats, tuple[int, int]]]]
) -> Any:
    first, second = ports = [f"{host}:e0" for host in hosts]
    yield from map(synthetic.hello, hosts)
    for host, port in zip(hosts, ports, strict=True):
        yield {
            "type": "port-open", "node": host, "port": port, "transport": "dpdk",
            "network": "lab", "line_rate_bps": synthetic.LINE_BPS,
        }  # fmt: skip
    for trial, (test, window) in trials:
        place: dict[str, Any] = {"trial": trial.id, "repeat": trial.repeat}
        for ends, lost, frames in zip(
            ((first, second), (second, first)), (0, test.lost), window, strict=True
        ):
            yield synthetic.frame_side("source", *ends, frames + 300 + lost, frames, **place)
            yield synthetic.frame_side("destination", *ends, frames + 300, frames, **place)
        for node in hosts:
            yield synthetic.port_record(f"{node}:e0", **place)
            yield synthetic.phase_record(node, **place)
            yield synthetic.trial_record(node, **place)
