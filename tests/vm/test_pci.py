# SPDX-License-Identifier: BSD-3-Clause
"""DPDK on PCI devices: they leave their kernel drivers and come back, and frames pass between."""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import guests
import pcikit
import vmkit
from guests.machine import command as command_line
from nodekit import NodeRuns
from pcikit import JOURNAL, PCI, UIO, VFIO
from switchbench.labs import namespaces

pytestmark = vmkit.needs_guests

PAIRS, CHAIN = {"pattern": "pairs"}, {"pattern": "chain"}


def restore(guest: guests.Guest) -> subprocess.CompletedProcess[str]:
    """Restores all devices."""
    return pcikit.tool(guest, "restore")


def dress(guest: guests.Guest) -> None:
    """Gives the NIC all kinds of state that leaving its driver takes away."""
    pcikit.shell(
        guest,
        """
        ip=/usr/sbin/ip
        $ip link set eth0 down; $ip link set eth0 address 02:00:00:00:99:01 mtu 1400
        $ip link set eth0 up
        $ip address add 10.1.2.3/24 dev eth0 label eth0:x
        $ip address add 2001:db8:7::1/64 dev eth0 nodad
        $ip route add 10.9.0.0/16 via 198.18.0.77 table 100 metric 5
        $ip route add 10.8.0.0/16 dev eth0
        $ip -6 route add 2001:db8:8::/48 via 2001:db8:7::77 metric 7
        """,
    )


def test_a_device_comes_back_as_it_was() -> None:
    """Of a guest with an e1000, on which all kinds of state stand."""
    with pcikit.boot("e1000", UIO, count=1) as rig:
        guest = rig["node1"]
        dress(guest)
        before = pcikit.picture(guest)
        assert "10.9.0.0/16 via 198.18.0.77 table 100" in before
        assert "2001:db8:8::/48 via 2001:db8:7::77" in before
        said = pcikit.bind(guest, UIO)
        assert said == f"PCI device {PCI}: from e1000 to uio_pci_generic.\n"
        assert pcikit.driver_of(guest) == UIO
        journal = json.loads(pcikit.shell(guest, f"cat {JOURNAL}"))
        (interface,) = journal["devices"][0]["interfaces"]
        assert (interface["name"], interface["mac"]) == ("eth0", "02:00:00:00:99:01")
        assert pcikit.bind(guest, UIO).startswith("All of them are bound already")
        restored = restore(guest)
        assert restored.returncode == 0, restored.stderr
        assert restored.stdout == f"PCI device {PCI}: back at e1000.\n"
        assert pcikit.picture(guest) == before
        nothing = restore(guest)
        assert (nothing.returncode, nothing.stdout[:27]) == (0, "There is nothing to restore")


# --- two guests -----------------------------------------------------------------------------------


def check_frames(found: NodeRuns, number: int, flows: int) -> None:
    """The frames of a trial arrived, whole and in order, but for a few that an emulated NIC on a
    busy machine has no room for."""
    destinations = found.of("flow", trial=number, side="destination")
    assert len(destinations) == flows
    for record in destinations:
        (source,) = found.of("flow", trial=number, side="source", dst=record["dst"])
        assert source["frames"] >= record["frames"] > 0.98 * source["frames"] > 1000
        assert record["corrupted"] == record["reordered"] == record["duplicated"] == 0


@pytest.mark.parametrize(
    ("model", "driver"), [*((model, UIO) for model in pcikit.DRIVERS), ("virtio", VFIO)]
)
def test_two_guests_through_bound_devices(model: str, driver: str, tmp_path: Path) -> None:
    """Pairs and a chain through bound devices, all given back afterwards; and a link that comes
    back in the middle of a long window."""
    long = PAIRS | {"window": "16s"}
    with pcikit.boot(model, driver) as rig:
        before = pictures(rig)
        found = pcikit.conduct(rig, driver, pcikit.job(tmp_path, [PAIRS, CHAIN]))
        for guest, run in zip(rig.guests, found, strict=True):
            assert run.status == 0, run.log
            (opened,) = run.of("port-open")
            assert opened["driver"].startswith(pcikit.DRIVERS[model])
            assert not run.of("event", kind="link-down")
            assert pcikit.driver_of(guest) == pcikit.KERNEL_DRIVERS[model]
        check_frames(found, 0, 2)
        check_frames(found, 1, 1)
        assert pictures(rig) == before
        text = pcikit.job(tmp_path, [long])
        found = pcikit.conduct(rig, driver, text, lambda: flap(rig))
    assert found.status == [0, 0], found.text
    (gone,), (up,) = (found.of("event", kind=f"link-{way}") for way in ("down", "up"))
    assert gone["port"] == up["port"] == "node2:e0"
    for run in found:  # both directions went on after it
        (arrived,) = run.of("flow", side="destination", trial=0)
        (phase,) = run.of("phase", phase=0)
        end_ns = phase["start_run_ns"] + phase["elapsed_ns"]
        assert end_ns - arrived["last_run_ns"] < 1_000_000_000
        assert arrived["frames"] > 10_000


def flap(rig: guests.Rig) -> None:
    """Pulls node2's cable in the middle of a long window."""
    vmkit.wait_for_load(rig)
    rig["node2"].set_link("eth0", False)
    time.sleep(2.0)
    rig["node2"].set_link("eth0", True)


def pictures(rig: guests.Rig) -> dict[str, str]:
    """Return all that must be the same after a device was away, of each guest."""
    return {guest.name: pcikit.picture(guest) for guest in rig.guests}


def test_a_killed_node_leaves_devices_that_are_restored(tmp_path: Path) -> None:
    """A killed node, and one ended in order, has its device back afterwards."""
    with pcikit.boot("virtio", VFIO) as rig:
        before = pictures(rig)
        long = pcikit.job(tmp_path, [PAIRS | {"window": "60s"}])

        def signalled(number: str) -> NodeRuns:
            def strike() -> None:
                vmkit.wait_for_load(rig)
                busy = restore(rig["node1"])
                assert busy.returncode == 3
                assert "(switchbench-nod) uses PCI device" in busy.stderr
                pcikit.shell(rig["node1"], f"kill -{number} $(pidof switchbench-node)")

            found = pcikit.conduct(rig, VFIO, long, strike)
            assert pictures(rig) == before
            return found

        first, second = signalled("KILL").status
        assert first != 0
        assert second == 3
        assert [bye["reason"] for bye in signalled("TERM").of("bye")] == ["signal", "peer"]


# --- several queues -------------------------------------------------------------------------------


@pytest.fixture
def bridge() -> Iterator[str]:
    """Yield a namespace with a bridge, on which taps of two queues wait for the guests: only a tap
    gives a virtio device more queues than one."""
    name = f"sb-pci-{os.getpid()}"
    ip = ["ip", "-netns", name]
    try:
        subprocess.run(["ip", "netns", "add", name], check=True)
        subprocess.run([*ip, "link", "set", "lo", "up"], check=True)
        subprocess.run([*ip, "link", "add", "switch", "type", "bridge"], check=True)
        subprocess.run([*ip, "link", "set", "switch", "up"], check=True)
        for i in (1, 2):
            tap = f"node{i}"
            subprocess.run([*ip, "tuntap", "add", tap, "mode", "tap", "multi_queue"], check=True)
            subprocess.run([*ip, "link", "set", tap, "master", "switch", "up"], check=True)
        yield name
    finally:
        subprocess.run(["ip", "netns", "delete", name], check=False)


def on_taps(machine: guests.Machine, boot: Any) -> list[str]:
    """Return QEMU's command line with the NIC under test on a tap of two queues, spread by RSS."""
    words = command_line(machine, boot)
    tap = f"tap,id=eth0,ifname={machine.name},script=no,downscript=no,queues=2,vhost=off"
    for i, word in enumerate(words):
        if word.startswith("dgram,id=eth0,"):
            words[i] = tap
        elif word.startswith("virtio-net-pci,netdev=eth0,"):
            words[i] += ",mq=on,rss=on,vectors=6"
    return words


@pytest.mark.skipif(
    os.geteuid() != 0 or not Path("/dev/net/tun").exists(), reason="taps need root and TUN"
)
def test_several_queues(bridge: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("guests.rig.command", on_taps)
    udp = {"dpdk": {"header": "ipv4-udp", "udp_sources_per_flow": 16}}
    text = pcikit.job(tmp_path, [PAIRS | udp, CHAIN | udp], queues=2)

    def played() -> NodeRuns:
        with pcikit.boot("virtio", UIO) as rig:
            return pcikit.conduct(rig, UIO, text)

    # ssh has to reach the guests, whose ports for it are where QEMU is.
    found = namespaces.inside(Path("/run/netns", bridge), played)
    for run in found:
        assert run.status == 0, run.log
        (opened,) = run.of("port-open")
        assert (opened["driver"], opened["queues"]) == ("net_virtio", 2)
        assert "RSS" in opened["offloads"]
    check_frames(found, 0, 2)
    check_frames(found, 1, 1)
