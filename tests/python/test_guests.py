# SPDX-License-Identifier: BSD-3-Clause
"""What guests are made of, without one: archives, kernels, command lines, the switch."""

from __future__ import annotations

import io
import lzma
import select
import socket
import subprocess
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from switchbench.labs import vm as guests
from switchbench.labs.vm import kernel, switch
from switchbench.labs.vm.cpio import Archive
from switchbench.labs.vm.machine import Boot, command

BROADCAST = b"\xff" * 6
QUEUE = 10_000  # frames of 100 bytes: more than a socket and a queue hold


def frame(destination: bytes, source: bytes, size: int = 100) -> bytes:
    return (destination + source).ljust(size, b"x")


def mac(number: int) -> bytes:
    return bytes([2, 0, 0, 0, 0, number])


class Bed:
    """A switch with guests that are plain sockets."""

    def __init__(self, folder: Path, names: tuple[str, ...]) -> None:
        self.poller = select.epoll()
        self.switch = switch.Switch(self.poller)
        self.sockets: dict[str, socket.socket] = {}
        for name in names:
            own, guest = folder / f"{name}.switch", folder / f"{name}.guest"
            self.sockets[name] = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
            self.sockets[name].bind(str(guest))
            self.sockets[name].setblocking(False)
            network = "other" if name.startswith("other") else "test"
            self.switch.add(name, network, own, guest)
            self.sockets[name].connect(str(own))

    def work(self) -> None:
        while found := self.poller.poll(0):
            for fd, events in found:
                self.switch.serve(fd, events)
            if all(events == select.EPOLLOUT for _, events in found):
                break

    def send(self, name: str, data: bytes) -> None:
        self.sockets[name].send(data)
        self.work()

    def received(self, name: str) -> list[bytes]:
        found = []
        while True:
            try:
                found.append(self.sockets[name].recv(1 << 17))
            except BlockingIOError:
                return found

    def counters(self, name: str) -> switch.Counters:
        return self.switch.ports[name].counters

    def close(self) -> None:
        self.switch.close()
        for sock in self.sockets.values():
            sock.close()
        self.poller.close()


@pytest.fixture
def bed(tmp_path: Path) -> Iterator[Bed]:
    made = Bed(tmp_path, ("a", "b", "c", "other"))
    yield made
    made.close()


def test_the_switch_floods_then_learns(bed: Bed) -> None:
    bed.send("a", frame(mac(2), mac(1)))
    assert [len(bed.received(name)) for name in ("a", "b", "c", "other")] == [0, 1, 1, 0]
    assert bed.counters("a").flooded == 1
    bed.send("b", frame(mac(1), mac(2)))
    bed.send("a", frame(mac(2), mac(1)))
    assert [len(bed.received(name)) for name in ("a", "b", "c")] == [1, 1, 0]
    assert bed.counters("a").flooded == 1
    bed.send("a", frame(BROADCAST, mac(1)))
    assert [len(bed.received(name)) for name in ("a", "b", "c", "other")] == [0, 1, 1, 0]
    assert bed.counters("a").flooded == 1


def test_a_frame_to_whoever_sent_it_goes_nowhere(bed: Bed) -> None:
    bed.send("a", frame(BROADCAST, mac(1)))
    for name in ("b", "c"):
        bed.received(name)
    bed.send("a", frame(mac(1), mac(1)))
    assert [bed.received(name) for name in ("a", "b", "c")] == [[], [], []]


def test_planted_loss_takes_its_share_and_counts_it(bed: Bed) -> None:
    bed.switch.ports["a"].loss = 0.25
    for _ in range(1000):
        bed.send("a", frame(BROADCAST, mac(1)))
        bed.received("c")
    came = bed.counters("b").sent
    assert bed.counters("a").lost + came == 1000
    assert 180 < bed.counters("a").lost < 320


def test_a_cut_works_both_ways_and_ends(bed: Bed) -> None:
    bed.switch.ports["b"].cut_until_s = time.monotonic() + 0.2
    bed.send("a", frame(BROADCAST, mac(1)))
    bed.send("b", frame(BROADCAST, mac(2)))
    assert [len(bed.received(name)) for name in ("a", "b", "c")] == [0, 0, 1]
    assert bed.counters("b").cut == 2
    time.sleep(0.25)
    bed.send("b", frame(BROADCAST, mac(2)))
    assert len(bed.received("a")) == 1


def test_a_slow_receiver_slows_its_sender_and_loses_nothing(bed: Bed) -> None:
    bed.send("b", frame(BROADCAST, mac(2)))
    sent, came = 0, 0
    while sent < QUEUE:
        try:
            bed.sockets["a"].send(frame(mac(2), mac(1)))
            sent += 1
        except BlockingIOError:  # as QEMU, which waits then
            bed.work()
            came += len(bed.received("b"))
    for _ in range(QUEUE):
        bed.work()
        came += len(bed.received("b"))
        if came == sent:
            break
    assert came == sent
    assert bed.counters("b").dropped == 0


def test_a_receiver_that_stands_still_does_not_stop_the_others(
    bed: Bed, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(switch, "_STUCK_S", 0.05)
    bed.send("b", frame(BROADCAST, mac(2)))
    bed.send("c", frame(BROADCAST, mac(3)))
    bed.received("c")

    def flood() -> None:
        for _ in range(QUEUE):
            bed.sockets["a"].send(frame(mac(2), mac(1)))
            bed.work()

    with pytest.raises(BlockingIOError):
        flood()
    time.sleep(0.1)
    bed.switch.check()
    bed.work()
    assert bed.counters("b").dropped > 0
    bed.send("a", frame(mac(3), mac(1)))
    assert len(bed.received("c")) == 1


def test_an_archive_unpacks_to_what_was_put_in(tmp_path: Path) -> None:
    out = io.BytesIO()
    archive = Archive(out)
    archive.file("etc/deep/note", b"odd", 0o640)
    archive.link("/etc/alias", "deep/note")
    archive.folder("empty")
    archive.close()
    subprocess.run(
        ["busybox", "cpio", "-i", "-d"] if not _cpio() else ["cpio", "-i", "-d", "--quiet"],
        input=out.getvalue(),
        cwd=tmp_path,
        check=True,
        capture_output=True,
    )
    assert (tmp_path / "etc/deep/note").read_bytes() == b"odd"
    assert (tmp_path / "etc/deep/note").stat().st_mode & 0o777 == 0o640
    assert (tmp_path / "etc/alias").readlink() == Path("deep/note")
    assert (tmp_path / "empty").is_dir()


def _cpio() -> bool:
    try:
        return subprocess.run(["cpio", "--version"], capture_output=True).returncode == 0
    except FileNotFoundError:
        try:
            subprocess.run(["busybox", "true"], check=True)
        except FileNotFoundError:
            pytest.skip("neither cpio nor busybox is installed")
        return False


def test_a_kernel_is_found_in_its_image() -> None:
    elf = b"\x7fELF" + bytes(5000)
    false = b"\xfd7zXZ\0 that is none"
    image = b"boot code" + false + lzma.compress(elf) + b"trailing"
    assert kernel.extract(image) == elf
    with pytest.raises(guests.GuestsMissingError, match="no xz payload"):
        kernel.extract(b"nothing here")


def test_a_machine_loads_what_its_devices_need() -> None:
    plain = replace(guests.machine(1, model="e1000"), rdma=())
    assert plain.all_modules == ("virtio", "e1000")
    assert guests.machine(1).all_modules == ("virtio", "rxe", "cm")
    assert replace(plain, share=Path("/x"), modules=("uio",)).all_modules[-2:] == ("9p", "uio")


def test_the_command_line_tells_the_guest_who_it_is() -> None:
    machine = replace(guests.machine(3, ports=2), hugepages=96)
    words = command(machine, Boot(Path("/k"), Path("/i"), Path("/f")))
    told = words[words.index("-append") + 1].split()
    assert "sb_name=node3" in told
    assert "sb_rdma=eth0,eth1" in told
    assert "sb_huge=96" in told
    (nics,) = (word for word in told if word.startswith("sb_nics="))
    assert nics.count(";") == 2
    assert "=eth0=1500=198.18.0.3/16,2001:2:0:1::3/64;" in nics
    assert len({nic.mac for index in (1, 2) for nic in guests.machine(index, 3).nics}) == 8
    assert all(" " not in word.strip() for word in told)
