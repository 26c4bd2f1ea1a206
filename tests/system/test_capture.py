# SPDX-License-Identifier: BSD-3-Clause
"""Frames of each header kind as Wireshark's dissector reads them: not as our own code does."""

from __future__ import annotations

import csv
import os
import shutil
import subprocess
import time
from collections import defaultdict
from pathlib import Path

import pytest
import yaml

import labkit
from switchbench.labs import Lab

ROOT = Path(__file__).resolve().parents[2]
FRAMES = 6
FCS = 4
LEAST = {"l2": 64, "ipv4-udp": 64, "ipv6-udp": 84}  # without a tag

HEADERS = yaml.safe_load((labkit.DATA / "headers.yaml").read_text())
MORE = ("vlan.id", "vlan.priority", "eth.type", "vlan.etype", "frame.len", "ip.len", "ipv6.plen",
        "udp.length", "udp.srcport", "data.data", "_ws.malformed")  # fmt: skip

pytestmark = [
    labkit.needs_lab,
    pytest.mark.skipif(shutil.which("tshark") is None, reason="tshark is not installed"),
]


def sender() -> Path:
    """Return the newest build's sender of frames."""
    found = [*ROOT.glob("build*/tests/transport/battery_dpdk")]
    found += ROOT.glob("build*/*/tests/transport/battery_dpdk")
    if os.environ.get("SWITCHBENCH_BUILD"):
        found = [Path(os.environ["SWITCHBENCH_BUILD"]) / "tests/transport/battery_dpdk"]
    if not found:
        pytest.skip("no build holds tests/transport/battery_dpdk")
    return max(found, key=lambda path: path.stat().st_mtime)


def capture(lab: Lab, path: Path, command: list[str], count: int) -> None:
    """Write `count` frames that `command` sends on alice to a file; the switch floods them."""
    dump = ["dumpcap", "-q", "-i", "eth0", "-c", str(count), "-a", "duration:20", "-w", str(path)]
    with lab.popen("bob", dump, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        while "File:" not in (line := process.stderr.readline()):
            assert line, "dumpcap ended"
        time.sleep(0.3)
        sender = lab.popen("alice", command, stderr=subprocess.PIPE, text=True)
        _, errors = sender.communicate(timeout=60)
        process.communicate()
    assert sender.returncode == 0, errors


def dissect(path: Path) -> list[dict[str, str]]:
    """Return each frame's fields, with checksums verified."""
    command = ["tshark", "-r", str(path), "-T", "fields", "-E", "header=y", "-E", "occurrence=f"]
    # What rides on UDP is ours: else some dissector may take it for its own, by its first bytes.
    command += ["-d", "udp.port==9,data", "-o", "ip.check_checksum:TRUE"]
    command += ["-o", "udp.check_checksum:TRUE"]
    for name in {*MORE}.union(*HEADERS.values()):
        command += ["-e", name]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return [*csv.DictReader(done.stdout.splitlines(), delimiter="\t")]


@pytest.mark.parametrize("vlan", [0, 100])
@pytest.mark.parametrize("kind", LEAST)
def test_frames_are_well_formed(lab: Lab, tmp_path: Path, kind: str, vlan: int) -> None:
    """Sizes, addresses, lengths and checksums of one flow, as tshark sees them."""
    tagged = 4 if vlan and kind != "l2" else 0
    sizes = [LEAST[kind] + tagged, 333, 1518]
    path = tmp_path / "frames.pcapng"
    command = [str(sender()), "capture", f"header={kind}", "dscp=46", "ttl=63", "burst=8"]
    command += [f"vlan={vlan}", "pcp=5"] if vlan else []
    # One learning frame comes first.
    capture(lab, path, [*command, *map(str, sizes)], FRAMES + 1)
    frames = dissect(path)
    assert len(frames) == FRAMES + 1
    assert not any(frame["_ws.malformed"] for frame in frames)
    seen = defaultdict(list)
    for frame in frames[1:]:
        length = int(frame["frame.len"])
        behind = length - (18 if vlan else 14)
        wanted = HEADERS[kind] | {
            "vlan.id": str(vlan or ""),
            "vlan.priority": "5" if vlan else "",
        }
        if kind == "l2":
            wanted["vlan.etype" if vlan else "eth.type"] = "0x88b5"
        elif kind == "ipv4-udp":
            wanted |= {"ip.len": str(behind), "udp.length": str(behind - 20)}
        else:
            wanted |= {"ipv6.plen": str(behind - 40), "udp.length": str(behind - 40)}
        assert {key: frame[key] for key in wanted} == wanted
        assert frame["data.data"].startswith("beef00000001")
        seen[frame["udp.srcport"]].append(length)
    ports = 1 if kind == "l2" else 2
    order = (sizes * FRAMES)[: FRAMES // ports]
    assert list(seen.values()) == [[size - FCS for size in order]] * ports
