# SPDX-License-Identifier: BSD-3-Clause
"""What the guest rig promises: guests with RDMA devices, programs in them, cables, and no trace."""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

import vmkit
from switchbench.labs import vm as guests
from switchbench.labs.vm.machine import SESSIONS

pytestmark = vmkit.needs_guests

BLOB_BYTES = 3_000_000
ONE_BOOT_S = 30.0  # 2.4 s on two idle cores
PERFTEST = ["-d", "rxe0", "-x", "1", "-F", "-s", "4096", "-n", "300"]


# --- one guest ------------------------------------------------------------------------------------


def test_a_guest_has_a_real_rdma_device(one: guests.Rig) -> None:
    print(f"one guest answered after {one.boot_s:.1f} s")
    assert one.boot_s < ONE_BOOT_S
    said = one["node1"].output(["ibv_devinfo", "-v", "-d", "rxe0"])
    assert "PORT_ACTIVE" in said
    assert "::ffff:198.18.0.1, RoCE v2" in said
    assert "2001:2:0:1::1, RoCE v2" in said


def test_a_guest_has_its_addresses(one: guests.Rig) -> None:
    said = one["node1"].output(["/usr/sbin/ip", "-brief", "address"])
    rows = {line.split()[0]: line for line in said.splitlines()}
    assert "100.64.0.1/16" in rows["ctl0"]
    assert "198.18.0.1/16" in rows["eth0"]
    assert "2001:2:0:1::1/64" in rows["eth0"]
    assert one["node1"].output(["sh", "-c", "ulimit -l; hostname"]) == "unlimited\nnode1\n"


def test_a_program_has_its_streams_and_its_status(one: guests.Rig) -> None:
    done = one["node1"].run(["sh", "-c", "cat; echo to the log >&2; exit 7"], input="hello\n")
    assert (done.returncode, done.stdout, done.stderr) == (7, "hello\n", "to the log\n")
    assert one["node1"].run(["sh", "-c", "kill -9 $$"]).returncode == -signal.SIGKILL
    missing = one["node1"].run(["no-such-program"])
    assert missing.returncode == 127
    assert (
        missing.stderr == "no-such-program can't be run in the guest: No such file or directory\n"
    )


def test_words_and_environment_arrive_as_they_are(one: guests.Rig) -> None:
    words = ["sh", "-c", 'printf "%s|" "$@" "$COLOUR"', "-", "two words", "", "'quoted'", "ü"]
    done = subprocess.run(
        one["node1"].command(words, COLOUR="dark red"), capture_output=True, text=True, check=True
    )
    assert done.stdout == "two words||'quoted'|ü|dark red|"


def test_streams_are_whole_both_ways(one: guests.Rig) -> None:
    blob = os.urandom(BLOB_BYTES)
    begin = time.monotonic()
    done = subprocess.run(
        one["node1"].command(["cat"]), input=blob, capture_output=True, check=True, timeout=60
    )
    print(f"{BLOB_BYTES / (time.monotonic() - begin) / 1e6:.1f} MB/s through a session and back")
    assert hashlib.sha256(done.stdout).digest() == hashlib.sha256(blob).digest()


def test_signals_reach_the_program(one: guests.Rig) -> None:
    script = "trap 'echo got it; exit 3' TERM; echo ready; while :; do sleep 0.1; done"
    with one["node1"].popen(
        ["sh", "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        process.terminate()
        assert process.stdout.read() == b"got it\n"
        assert process.wait(10) == 3


def test_a_program_whose_client_is_killed_reads_its_end(one: guests.Rig) -> None:
    guest = one["node1"]
    with guest.popen(
        ["sh", "-c", "echo ready; cat >/dev/null; echo over >/tmp/over"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as process:
        assert process.stdout is not None
        process.stdout.readline()
        process.kill()
    vmkit.wait_until(lambda: guest.run(["cat", "/tmp/over"]).stdout == "over\n", "it ended", 10)


def test_a_program_that_ignores_its_end_is_ended(one: guests.Rig) -> None:
    guest = one["node1"]
    with guest.popen(
        ["sh", "-c", "trap '' TERM; echo $$; while :; do sleep 0.1; done"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as process:
        assert process.stdout is not None
        pid = process.stdout.readline().decode().strip()
        process.kill()

    def gone() -> bool:
        return guest.run(["kill", "-0", pid]).returncode != 0

    vmkit.wait_until(gone, "the program is gone", 15)


def test_many_programs_at_once_and_no_session_is_lost(one: guests.Rig) -> None:
    def one_of_many(number: int) -> str:
        return one["node1"].output(["sh", "-c", f"sleep 0.5; echo {number}"])

    with ThreadPoolExecutor(SESSIONS) as pool:
        said = list(pool.map(one_of_many, range(2 * SESSIONS)))
    assert said == [f"{number}\n" for number in range(2 * SESSIONS)]


# --- two guests -----------------------------------------------------------------------------------


def test_rdma_goes_from_guest_to_guest(two: guests.Rig) -> None:
    print(f"two guests answered after {two.boot_s:.1f} s")
    before = two.counters()["node2/eth0"]
    said, _ = vmkit.peers(two, ["ib_write_bw", *PERFTEST], ["ib_write_bw", *PERFTEST, "198.18.0.2"])
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
        said, _ = vmkit.peers(
            two, ["ib_send_bw", *PERFTEST], ["ib_send_bw", *PERFTEST, "198.18.0.2"]
        )
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
    vmkit.wait_until(lambda: reaches(two), "the cable is whole again", 10)


def test_a_cable_that_is_pulled_takes_the_rdma_port_down(two: guests.Rig) -> None:
    guest = two["node2"]

    def state() -> str:
        return guest.output(["cat", "/sys/class/infiniband/rxe0/ports/1/state"]).strip()

    assert state() == "4: ACTIVE"
    guest.set_link("eth0", up=False)
    try:
        vmkit.wait_until(lambda: state() == "1: DOWN", "the port is down", 10)
    finally:
        guest.set_link("eth0", up=True)
    vmkit.wait_until(lambda: state() == "4: ACTIVE", "the port is up", 10)
    vmkit.wait_until(lambda: reaches(two), "traffic is back", 10)


# --- other guests ---------------------------------------------------------------------------------


def test_four_guests_reach_each_other() -> None:
    before = vmkit.traces()
    with guests.boot(guests.machines(4)) as rig:
        print(f"four guests answered after {rig.boot_s:.1f} s")
        for guest in rig.guests:
            assert "rxe0" in guest.output(["ibv_devices"])
        for other in (2, 3, 4):
            assert rig["node1"].run(["ping", "-c1", "-W2", f"198.18.0.{other}"]).returncode == 0
            assert rig["node1"].run(["ping", "-c1", "-W2", f"100.64.0.{other}"]).returncode == 0
    assert vmkit.traces() == before


def test_nics_of_other_makers_and_a_shared_folder(tmp_path: Path) -> None:
    models = {1: "e1000", 2: "e1000e", 3: "vmxnet3"}
    machines = [guests.machine(index, model=model) for index, model in models.items()]
    machines[0] = replace(machines[0], share=tmp_path)
    with guests.boot(machines) as rig:
        for guest, model in zip(rig.guests, models.values(), strict=True):
            driver = guest.output(["readlink", "/sys/class/net/eth0/device/driver"])
            assert driver.strip().endswith(f"/{model}")
        for other in (2, 3):
            assert rig["node1"].run(["ping", "-c1", "-W2", f"198.18.0.{other}"]).returncode == 0
        rig["node1"].output(["sh", "-c", "echo from the guest > /share/note"])
    assert (tmp_path / "note").read_text() == "from the guest\n"


def test_a_job_brings_programs_with_their_libraries(tmp_path: Path) -> None:
    note = tmp_path / "note"
    note.write_text("a file\n")
    tshark = Path("/usr/bin/openssl")
    program = tshark if tshark.exists() else Path(sys.executable).resolve()
    job = guests.Job(programs=(program,), files={"/etc/note": note})
    with guests.boot(guests.machines(1), job) as rig:
        assert rig["node1"].output(["cat", "/etc/note"]) == "a file\n"
        words = ["version"] if program == tshark else ["--version"]
        assert rig["node1"].output([program.name, *words])


# --- failures -------------------------------------------------------------------------------------


def test_a_guest_that_does_not_boot_shows_its_console(tmp_path: Path) -> None:
    before = vmkit.traces()
    broken = tmp_path / "init"
    broken.write_text("#!/bin/busybox sh\necho it breaks here\n")
    broken.chmod(0o755)
    with (
        pytest.raises(guests.GuestError) as caught,
        guests.boot(guests.machines(2), guests.Job(files={"/init": broken})),
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
import sys, time
from switchbench.labs import vm as guests
with guests.boot(guests.machines(2)) as rig:
    print(rig.folder, flush=True)
    time.sleep(60)
"""


def qemus_of(pid: int) -> list[str]:
    return [line for line in vmkit.traces(pid) if "qemu" in line]


def keeper_of(pid: int) -> int:
    (line,) = (line for line in vmkit.traces(pid) if "vm.keeper" in line)
    return int(line.partition(":")[0])


@pytest.mark.parametrize("victim", [pytest.param("harness", marks=pytest.mark.slow), "keeper"])
def test_no_guest_outlives_whoever_keeps_it(victim: str) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", HARNESS], stdout=subprocess.PIPE, text=True
    ) as harness:
        assert harness.stdout is not None
        folder = harness.stdout.readline().strip()
        assert Path(folder).is_dir()
        if victim == "harness":
            harness.kill()
        else:
            os.kill(keeper_of(harness.pid), signal.SIGKILL)
            vmkit.wait_until(lambda: not qemus_of(harness.pid), "its guests are gone", 5)
            harness.terminate()
        harness.wait(20)
    if victim == "keeper":  # nobody was left to remove the folder; no process uses it
        assert vmkit.traces(harness.pid) == {folder}
        shutil.rmtree(folder)
    vmkit.wait_until(lambda: not vmkit.traces(harness.pid), "nothing is left", 10)


def test_a_guest_that_is_gone_is_said_so() -> None:
    with guests.boot(guests.machines(1)) as rig:
        guest = rig["node1"]
        with guest.popen(
            ["sh", "-c", "echo ready; sleep 30"], stdout=subprocess.PIPE, stderr=subprocess.PIPE
        ) as process:
            assert process.stdout is not None
            assert process.stderr is not None
            process.stdout.readline()
            with guest.monitor() as monitor, contextlib.suppress(guests.GuestError):
                monitor.execute("quit")
            assert process.wait(10) == 255
            assert process.stderr.read() == b"node1: the guest has ended\n"
        vmkit.wait_until(lambda: rig.status()["node1"] == 0, "its end is known", 5)
        assert guest.run(["true"]).stderr == "node1: the guest is not running\n"
