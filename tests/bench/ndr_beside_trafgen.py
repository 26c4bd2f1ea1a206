#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""NDR and PDR of a real forwarding plane, beside what the kernel loses of trafgen's frames.

    tests/bench/ndr_beside_trafgen.py [--kinds bridges ovs] [--rounds N]

The lab has two nodes on Linux bridges, or on Open vSwitch, and the receiver's port has 60 % of the
sender's rate. First the suite `ndr-pdr` searches, then trafgen sends as many frames as a trial of
the search, at the bounds that were found: a TBF of the sender's kernel paces them, because
trafgen's own `--rate` sends a second's frames at once. What arrived is counted by the kernel, at
the two switch ports. A trial begins with an empty queue and a full token bucket: what they hold
is hidden from a short trial, so the rate above which frames are lost is

    rate of the receiver + 8 (queue + burst) / duration of the trial
"""

from __future__ import annotations

import contextlib
import itertools
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import common

sys.path[:0] = [str(common.ROOT / "tests/system"), str(common.ROOT / "scripts/python")]

import counters  # noqa: E402
from switchbench.labs import Lab, load, session  # noqa: E402
from switchbench.topology import lab_addresses  # noqa: E402

LINE_BPS, SLOW_BPS = 20_000_000, 12_000_000
QUEUE, BURST = 32 * 1024, 16 * 1024
SIZE, LAYER1 = 1518, 1538  # bytes of a frame with FCS, and on the line
PDR_PERCENT = 0.5
SHORTFALL = 0.01  # of a load, below which a trial says nothing
MOST_TRIES = 3  # for each trial that is wanted
TOPOLOGY = {
    "nodes": 2, "rate": "20M", "queue": "32KiB", "burst": "16KiB",
    "overrides": {"node2": {"rate": "12M"}},
}  # fmt: skip


@dataclass(frozen=True)
class Sent:
    """One trial of either tester."""

    frames: int
    lost: int
    seconds: float

    @property
    def loss_percent(self) -> float:
        return 100 * self.lost / self.frames

    @property
    def load_percent(self) -> float:
        """Of the sender's line, layer 1."""
        return 100 * self.frames * LAYER1 * 8 / self.seconds / LINE_BPS


def search(kind: str, folder: Path) -> Mapping[str, Any]:
    """Return the summary of our search on this plane."""
    conf = {
        "switchbench": 1, "suite": "ndr-pdr", "transport": "dpdk", "warmup": "200ms",
        "site": {"lab": "one-switch", "kind": kind, **TOPOLOGY}, "tests": [{"pattern": "chain"}],
    }  # fmt: skip
    file = folder / f"{kind}.yaml"
    file.write_text(json.dumps(conf))
    common.switchbench("run", str(file), "--quiet", "--out", str(folder / kind))
    summary: Mapping[str, Any] = json.loads((folder / kind / "summary.json").read_text())
    return summary


def ours(summary: Mapping[str, Any], percent: float) -> list[Sent]:
    """Our full trials at a load that the tester did not limit."""
    return [
        Sent(trial["offered_frames"], trial["lost_frames"], trial["elapsed_s"])
        for trial in summary["trials"]
        if abs(trial["intended_load"] / percent - 1) < 1e-6 and not trial["tester_limited"]
    ]


@contextlib.contextmanager
def paced(lab: Lab, percent: float) -> Iterator[None]:
    """Yield the sender's own kernel lets frames out at this rate, two at a time."""
    tc = ["ip", "netns", "exec", lab_addresses.namespace_name(lab.name, "node1"), "tc", "qdisc"]
    root = ["dev", lab_addresses.IFACE, "root"]
    rate = f"{round(percent / 100 * LINE_BPS)}bit"
    # A frame counts as on the line: FCS, preamble and gap are 24 bytes.
    shape = ["stab", "overhead", "24", "linklayer", "ethernet"]
    tbf = ["tbf", "rate", rate, "burst", str(2 * LAYER1), "limit", "100mb"]
    subprocess.run([*tc, "replace", *root, *shape, *tbf], check=True)
    try:
        yield
    finally:
        subprocess.run([*tc, "del", *root], check=True)


def trafgen(lab: Lab, packet: Path, percent: float, frames: int) -> Sent:
    """One trial of so many frames, counted at the switch ports after the queues ran empty."""
    command = ["trafgen", "--dev", lab_addresses.IFACE, "--conf", str(packet), "--cpus", "1"]
    # With a gap, if one of 0, it sends frame by frame, and waits while the socket's queue is full.
    command += ["--no-cpu-stats", "--qdisc-path", "--gap", "0", "--num", str(frames)]
    with paced(lab, percent):
        before = counters.read(lab)
        begun = time.monotonic()
        sender = lab.popen("node1", command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        with sender:
            while (truth := counters.read(lab) - before).nodes["node1"].frames_from_node < frames:
                if time.monotonic() - begun > 30:
                    sender.kill()
                    raise SystemExit(f"trafgen sent {truth.nodes['node1'].frames_from_node} frames")
                if truth.nodes["node1"].frames_from_node == 0:
                    begun = time.monotonic()
                time.sleep(0.002)
            took = time.monotonic() - begun
    time.sleep(0.3)
    truth = counters.read(lab) - before
    return Sent(frames, frames - truth.nodes["node2"].frames_to_node, took)


def show(name: str, percent: float, trials: list[Sent]) -> float:
    """Return a line of a tester at one load; the median loss in percent."""
    if not trials:
        print(f"  {name:8} {percent:6.2f} %: no trial")
        return float("nan")
    losses = [trial.loss_percent for trial in trials]
    load_percent = statistics.median(trial.load_percent for trial in trials)
    print(
        f"  {name:8} {percent:6.2f} %: sent at {load_percent:.2f} %, lost median "
        f"{statistics.median(losses):.3f} % ({min(losses):.3f} to {max(losses):.3f}) "
        f"of {len(losses)} trials of {trials[0].frames} frames",
        flush=True,
    )
    return statistics.median(losses)


def compare(kind: str, rounds: int, folder: Path) -> None:
    """One plane: the search, then both testers at its bounds and above."""
    summary, found = search(kind, folder), {}
    for goal in summary["searches"]:
        if not goal["regular"]:
            common.skip(f"{goal['goal']}: {goal['outcome']}")
        found[goal["goal"]] = (goal["relevant_lower_bound"], goal["relevant_upper_bound"])
    seconds = max(trial["elapsed_s"] for trial in summary["trials"])
    truth = 100 * (SLOW_BPS + 8 * (QUEUE + BURST) / seconds) / LINE_BPS
    for goal, (lower, upper) in found.items():
        lossy = 1 - (PDR_PERCENT / 100 if goal == "pdr" else 0)
        print(f"{kind}: {goal} {lower:.2f} to {upper:.2f} % of line, planted {truth / lossy:.2f} %")
    loads = sorted(set(itertools.chain(*found.values())) | {found["pdr"][1] * 1.05})
    packet = folder / "packet.cfg"
    packet.write_text(
        "{ eth(da=02:00:00:00:01:02, sa=02:00:00:00:01:01, type=0x88b5), "
        f"fill(0x42, {SIZE - 18}) }}\n"
    )
    lost = {}
    with session(load("one-switch", {"kind": kind, **TOPOLOGY})) as lab:
        for percent in loads:
            frames = round(percent / 100 * LINE_BPS / LAYER1 / 8 * seconds)
            show("ours", percent, ours(summary, percent))
            every = (trafgen(lab, packet, percent, frames) for _ in range(MOST_TRIES * rounds))
            kept = (trial for trial in every if trial.load_percent > percent * (1 - SHORTFALL))
            lost[percent] = show("trafgen", percent, list(itertools.islice(kept, rounds)))
    for goal, (lower, upper) in found.items():
        most = PDR_PERCENT if goal == "pdr" else 0.0
        for name, percent, at_most in (("lower", lower, True), ("upper", upper, False)):
            # Above a bound at least one frame more is lost than below it.
            reach = most if at_most else max(most, 1e-3)
            what = f"{kind}: trafgen's median loss at the {name} bound of {goal}"
            common.verdict(what, lost[percent], reach, unit="%", at_most=at_most)


def main() -> None:
    """Compare on both planes, one after the other."""
    options = common.arguments(__doc__, kinds=["bridges", "ovs"]).parse_args()
    common.need("trafgen", "tc", *(["ovs-vswitchd"] if "ovs" in options.kinds else []))
    with tempfile.TemporaryDirectory() as folder:
        for kind in options.kinds:
            compare(kind, options.rounds, Path(folder))


if __name__ == "__main__":
    main()
