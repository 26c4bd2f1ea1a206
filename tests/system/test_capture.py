# SPDX-License-Identifier: BSD-3-Clause
"""Frames of each header kind as Wireshark's dissector reads them: not as our own code does."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

import labkit
from switchbench.labs import Lab

ROOT = Path(__file__).resolve().parents[2]
FRAMES = 6
FCS = 4
LEAST = {"l2": 64, "ipv4-udp": 64, "ipv6-udp": 84}  # without a tag


Layers = dict[str, Any]

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


def dissect(path: Path) -> list[Layers]:
    """Return each frame's layers, with checksums verified."""
    command = ["tshark", "-r", str(path), "-T", "json", "-o", "ip.check_checksum:TRUE"]
    # What rides on UDP is ours: else some dissector may take it for its own, by its first bytes.
    command += ["-d", "udp.port==9,data", "-o", "udp.check_checksum:TRUE", "--no-duplicate-keys"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return [packet["_source"]["layers"] for packet in json.loads(done.stdout)]


def check_ethernet(layers: Layers, vlan: int) -> None:
    """Addresses and tag."""
    assert layers["eth"]["eth.dst"] == "02:00:00:00:00:02"
    assert layers["eth"]["eth.src"] == "02:00:00:00:00:01"
    assert ("vlan" in layers) == (vlan != 0)
    if vlan:
        assert layers["vlan"]["vlan.id"] == str(vlan)
        assert layers["vlan"]["vlan.priority"] == "5"


def check_network(layers: Layers, kind: str, behind: int) -> int:
    """Return the IP header; returns the length that UDP should have."""
    if kind == "ipv4-udp":
        header = layers["ip"]
        assert header["ip.checksum.status"] == "1", "good"
        assert (header["ip.src"], header["ip.dst"]) == ("198.18.0.1", "198.18.0.2")
        assert (header["ip.ttl"], header["ip.len"]) == ("63", str(behind))
        assert header["ip.dsfield_tree"]["ip.dsfield.dscp"] == "46"
        return behind - 20
    header = layers["ipv6"]
    assert (header["ipv6.src"], header["ipv6.dst"]) == ("2001:2::1", "2001:2::2")
    assert (header["ipv6.hlim"], header["ipv6.plen"]) == ("63", str(behind - 40))
    assert header["ipv6.tclass_tree"]["ipv6.tclass.dscp"] == "46"
    return behind - 40


def payload(layers: Layers, kind: str) -> bytes:
    """Return the bytes behind the headers."""
    text = layers["data"]["data.data"] if kind == "l2" else layers["udp"]["udp.payload"]
    return bytes.fromhex(text.replace(":", ""))


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
    packets = dissect(path)
    assert len(packets) == FRAMES + 1
    assert all("_ws.malformed" not in packet for packet in packets)
    seen: dict[str, list[int]] = {}
    for layers in packets[1:]:
        check_ethernet(layers, vlan)
        length = int(layers["frame"]["frame.len"])
        network = 18 if vlan else 14
        port = "0"
        if kind == "l2":
            assert layers["eth" if not vlan else "vlan"][
                "eth.type" if not vlan else "vlan.etype"
            ] == "0x88b5"  # fmt: skip
        else:
            udp = layers["udp"]
            assert int(udp["udp.length"]) == check_network(layers, kind, length - network)
            assert udp["udp.checksum.status"] == "1", "good"
            assert udp["udp.dstport"] == "9"
            port = udp["udp.srcport"]
        seen.setdefault(port, []).append(length)
        assert payload(layers, kind)[:6] == bytes.fromhex("beef00000001")
    ports = 1 if kind == "l2" else 2
    order = (sizes * FRAMES)[: FRAMES // ports]
    assert list(seen.values()) == [[size - FCS for size in order]] * ports
