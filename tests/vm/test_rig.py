# SPDX-License-Identifier: BSD-3-Clause
"""What the guest rig promises: guests with RDMA devices, programs in them, cables, and no trace."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import guests
import runs
import vmkit

pytestmark = vmkit.needs_guests

PERFTEST = ["-d", "rxe0", "-x", "1", "-F", "-s", "4096", "-n", "300"]


def test_a_guest_has_rdma_addresses_and_programs(two: guests.Rig) -> None:
    guest = two["node1"]
    said = guest.output(["ibv_devinfo", "-v", "-d", "rxe0"])
    assert all(words in said for words in ("PORT_ACTIVE", "::ffff:198.18.0.1, RoCE v2"))
    rows = guest.output(["/usr/sbin/ip", "-brief", "address"])
    assert all(
        address in rows for address in ("100.64.0.1/16", "198.18.0.1/16", "2001:2:0:1::1/64")
    )
    done = guest.run(["sh", "-c", "cat; echo to the log >&2; exit 7"], input="hello\n")
    assert (done.returncode, done.stdout, done.stderr) == (7, "hello\n", "to the log\n")
    words = ["two words", "", "'quoted'", "ü"]
    assert guest.output(["printf", "%s|", *words]) == "two words||'quoted'|ü|"


def peers(rig: guests.Rig, program: str) -> str:
    """A program of perftest on node2 that waits, and on node1 that comes to it; what it prints."""
    words = [program, *PERFTEST]
    with vmkit.popen(rig["node2"], words) as waiting:
        try:
            retry = ["sh", "-c", 'for i in 1 2 3 4 5 6 7 8; do "$@" && exit; sleep 0.3; done', "-"]
            came = rig["node1"].run([*retry, *words, "198.18.0.2"])
            assert came.returncode == 0, came.stdout + came.stderr
            said, _ = waiting.communicate(timeout=60)
        finally:
            waiting.terminate()
    return str(said)


def test_rdma_goes_from_guest_to_guest(two: guests.Rig) -> None:
    before = two.counters()["node2/eth0"]
    said = peers(two, "ib_write_bw")
    assert re.search(r"^ 4096 +300 ", said, re.M), said
    after = two.counters()["node2/eth0"]
    # 300 messages of 4 KiB in packets of the path MTU, 1024: all crossed this switch.
    assert after["sent"] - before["sent"] >= 1200
    assert after["sent_bytes"] - before["sent_bytes"] > 300 * 4096


def test_a_switch_that_loses_frames_is_seen_and_survived(two: guests.Rig) -> None:
    def resent() -> int:
        path = "/sys/class/infiniband/rxe0/ports/1/hw_counters/completer_retry_err"
        sequence = path.replace("completer_retry_err", "out_of_seq_request")
        said = [two[name].output(["cat", path, sequence]) for name in ("node1", "node2")]
        return sum(map(int, " ".join(said).split()))

    before = resent()
    two.lose("node1/eth0", 0.02)
    try:
        said = peers(two, "ib_send_bw")
    finally:
        two.lose("node1/eth0", 0.0)
    assert re.search(r"^ 4096 +300 ", said, re.M), said
    lost = two.counters()["node1/eth0"]["lost"]
    assert lost > 0
    assert resent() > before
    print(f"{lost} frames lost, {resent() - before} events of repair")


def reaches(rig: guests.Rig) -> bool:
    return rig["node1"].run(["ping", "-c1", "-W1", "198.18.0.2"]).returncode == 0


def test_a_cable_that_is_cut_heals(two: guests.Rig) -> None:
    assert reaches(two)
    two.cut("node2/eth0", for_s=2.5)
    assert not reaches(two)
    assert two.counters()["node2/eth0"]["cut"] > 0
    runs.wait_until(lambda: reaches(two), "the cable is whole again", 10)


def test_a_cable_that_is_pulled_takes_the_rdma_port_down(two: guests.Rig) -> None:
    guest = two["node2"]

    def state() -> str:
        return guest.output(["cat", "/sys/class/infiniband/rxe0/ports/1/state"]).strip()

    assert state() == "4: ACTIVE"
    guest.set_link("eth0", up=False)
    try:
        runs.wait_until(lambda: state() == "1: DOWN", "the port is down", 10)
    finally:
        guest.set_link("eth0", up=True)
    runs.wait_until(lambda: state() == "4: ACTIVE", "the port is up", 10)
    runs.wait_until(lambda: reaches(two), "traffic is back", 10)


def test_nics_of_other_makers() -> None:
    models = {1: "e1000", 2: "e1000e", 3: "vmxnet3"}
    machines = [guests.machine(index, model=model) for index, model in models.items()]
    with guests.boot(machines) as rig:
        for guest, model in zip(rig.guests, models.values(), strict=True):
            driver = guest.output(["readlink", "/sys/class/net/eth0/device/driver"])
            assert driver.strip().endswith(f"/{model}")
        for other in (2, 3):
            assert rig["node1"].run(["ping", "-c1", "-W2", f"198.18.0.{other}"]).returncode == 0


def test_a_guest_that_does_not_boot_shows_its_console(tmp_path: Path) -> None:
    before = vmkit.traces()
    broken = tmp_path / "init"
    broken.write_text("#!/bin/busybox sh\necho it breaks here\n")
    broken.chmod(0o755)
    with (
        pytest.raises(guests.GuestError) as caught,
        guests.boot(guests.machines(2), broken),
    ):
        pass
    said = str(caught.value)
    assert said.startswith(
        "node1 did not come up: QEMU ended with status 0; the end of its console"
    )
    assert "it breaks here" in said
    assert "Attempted to kill init" in said
    assert vmkit.traces() == before


HARNESS = """
import guests, time
with guests.boot(guests.machines(2)) as rig:
    print(rig.folder, flush=True)
    time.sleep(60)
"""


def test_no_guest_outlives_the_process_that_booted_it() -> None:
    with subprocess.Popen(
        [sys.executable, "-c", HARNESS],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    ) as harness:
        assert harness.stdout is not None
        folder = harness.stdout.readline().strip()
        harness.send_signal(signal.SIGKILL)
    # Only the folder is left, as nothing was there to remove it.
    runs.wait_until(lambda: vmkit.traces(harness.pid) == {folder}, "no process is left", 10)
    shutil.rmtree(folder)
