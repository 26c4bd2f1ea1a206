# SPDX-License-Identifier: BSD-3-Clause
"""What benchmarks of `verbs` share: guests with Soft-RoCE (tests/vm/guests), a crew of nodes
in them that run trials one by one, and perftest in the same guests.

Guests are emulated and share this machine's cores, so a figure by itself says nothing about RDMA;
its ratio to what perftest gets in the same guests, in turn, does.
"""

from __future__ import annotations

import contextlib
import json
import secrets
import subprocess
import sys
import threading
import time
from base64 import b64decode, b64encode
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from common import ROOT, skip

sys.path[:0] = [str(ROOT / "scripts/python"), str(ROOT / "tests/vm")]

import guests  # noqa: E402 (it lies where this file's place says)

MEMORY_MIB = 1024
PATH_MTU = 1024  # the largest below an Ethernet's 1500 bytes
DEPTH = 128
TIMEOUT = 18  # 4.096 us x 2^18: an emulated guest may stand still for a while
ANSWER_S = 60.0
BEAT_S = 0.5
HEARTBEAT_TIMEOUT_MS = 20_000
KEY_BYTES = 32
_FIRST_PORT = 18600  # perftest's own TCP connection; each run has another


@contextmanager
def booted(count: int, *programs: Path) -> Iterator[guests.Rig]:
    """Guests for as long as the block; ends the program as skipped where they can't be had."""
    missing = guests.why_not()
    if missing:
        skip(missing)
    for program in programs:
        if not program.exists():
            skip(f"{program.name} is not built (scripts/setup builds it where libibverbs is)")
    machines = [replace(each, memory_mib=MEMORY_MIB) for each in guests.machines(count)]
    with guests.boot(machines, guests.Job(programs=programs)) as rig:
        _take_quick_clock(rig)
        yield rig


_CLOCK = "/sys/devices/system/clocksource/clocksource0/current_clocksource"
_CLOCK_WATCHED_S = 2.0
_CLOCK_ERROR = 0.03


def _take_quick_clock(rig: guests.Rig) -> None:
    """The TSC instead of the guests' ACPI timer, each reading of which leaves the emulation: a
    kernel beside a program that polls all the time (perftest) comes to nothing then. Measured
    against this machine's clock, for on a busy machine a guest gets the TSC's rate wrong."""
    for guest in rig.guests:
        guest.output(["sh", "-c", f"echo tsc > {_CLOCK}"])
        here, there = time.monotonic(), _uptime(guest)
        time.sleep(_CLOCK_WATCHED_S)
        went = (_uptime(guest) - there) / (time.monotonic() - here)
        if abs(went - 1) > _CLOCK_ERROR:
            raise SystemExit(f"{guest.name}'s clock goes {went:.3f} times as fast: boot it again")


def _uptime(guest: guests.Guest) -> float:
    return float(guest.output(["cat", "/proc/uptime"]).split()[0])


def control_address(guest: guests.Guest) -> str:
    """Of its `ctl0`, without the prefix length."""
    (address,) = (nic.addresses[0] for nic in guest.machine.nics if nic.name == "ctl0")
    return address.partition("/")[0]


# --- ours -----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Load:
    """What ours and perftest are both asked for."""

    operation: str
    size: int
    service: str = "rc"
    window_s: float = 1.0
    warmup_s: float = 0.3
    depth: int = DEPTH

    @property
    def name(self) -> str:
        """For rows."""
        size = f"{self.size >> 20} MiB" if self.size >= 1 << 20 else f"{self.size >> 10} KiB"
        return f"{self.service.upper()} {self.operation} {size}"


Record = Mapping[str, Any]


@dataclass
class Crew:
    """Nodes in guests, one in each, that wait for trials."""

    processes: Sequence[subprocess.Popen[str]]
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _trials: int = 0

    def tell(self, name: str, value: object) -> None:
        """A document for all of them; JSON is YAML, too."""
        text = f"{json.dumps({name: value})}\n...\n"
        with self._lock:
            for process in self.processes:
                assert process.stdin is not None
                process.stdin.write(text)
                process.stdin.flush()

    def until(self, kind: str) -> list[list[Record]]:
        """Each node's records up to its next of this type, that included."""
        return [_until(process, kind) for process in self.processes]

    def run(self, load: Load, pattern: Record) -> list[Record]:
        """One trial with as much load as goes: its destinations' flow records, all of them whole
        and verified."""
        trial = {
            "id": self._trials,
            "transport": "verbs",
            "parts": [{"network": "bench", "ranks": ports(len(self.processes))}],
            "pattern": pattern,
            "seed": 1,
            "connectivity_check": False,
            "traffic": "stream",
            "sizes": [load.size],
            "load": {"percent": 100},
            "warmup_ns": int(load.warmup_s * 1e9),
            "window_ns": int(load.window_s * 1e9),
            "cooldown_ns": 0,
            "drain_timeout_ns": 500_000_000,
            "drain_max_ns": 20_000_000_000,
            "verbs": {
                "service": load.service,
                "operation": load.operation,
                "depth": load.depth,
                "mtu": PATH_MTU,
                "timeout": TIMEOUT,
            },
        }
        self._trials += 1
        self.tell("trial", trial)
        records = [record for node in self.until("trial") for record in node]
        return _verified(records, load)


def ports(count: int) -> list[str]:
    """The crew's, in rank order."""
    return [f"node{i}:r0" for i in range(1, count + 1)]


def delivered(flows: Sequence[Record]) -> float:
    """MB/s of payload that arrived and was verified in the window, over all flows."""
    return float(sum(each["window_payload_bytes"] * 1e3 / each["window_ns"] for each in flows))


@contextmanager
def crew(rig: guests.Rig, node: Path) -> Iterator[Crew]:
    """A node in every guest, connected; no trial has been run."""
    with ExitStack() as stack:
        made = Crew([_start(stack, each, node) for each in rig.guests])
        with _beating(made):
            made.tell("job", _job(rig))
            hellos = [records[-1] for records in made.until("hello")]
            made.tell("peers", _peers(hellos))
            made.until("ready")
            yield made
        made.tell("quit", True)
        made.until("bye")
        for process in made.processes:
            process.wait(ANSWER_S)


def _start(stack: ExitStack, guest: guests.Guest, node: Path) -> subprocess.Popen[str]:
    process = guest.popen(
        [node.name, "--name", guest.name],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    stack.enter_context(process)
    stack.callback(process.terminate)
    return process


@contextmanager
def _beating(nodes: Crew) -> Iterator[None]:
    done = threading.Event()

    def beat() -> None:
        number = 0
        while not done.wait(BEAT_S):
            with contextlib.suppress(BrokenPipeError):
                nodes.tell("heartbeat", number)
            number += 1

    thread = threading.Thread(target=beat, daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


def _job(rig: guests.Rig) -> Record:
    nodes = [
        {
            "name": guest.name,
            "control": {"address": f"{control_address(guest)}:0"},
            "ports": [
                {
                    "name": port,
                    "network": "bench",
                    "iface": "eth0",
                    "rdma": "rxe0/1",
                    "transports": ["verbs"],
                }
            ],
        }
        for guest, port in zip(rig.guests, ports(len(rig.guests)), strict=True)
    ]
    return {
        "protocol": 2,
        "run": "bench-verbs",
        "controlled": True,
        "heartbeat_timeout_ms": HEARTBEAT_TIMEOUT_MS,
        "barrier_timeout_ms": HEARTBEAT_TIMEOUT_MS,
        "log": "warning",
        "nodes": nodes,
    }


def _peers(hellos: Sequence[Record]) -> Record:
    from nacl.public import PublicKey, SealedBox

    key = secrets.token_bytes(KEY_BYTES)
    sealed = [SealedBox(PublicKey(b64decode(hello["key"]))).encrypt(key) for hello in hellos]
    return {
        "addresses": [hello["control"] for hello in hellos],
        "sealed_keys": [b64encode(each).decode() for each in sealed],
    }


def _until(process: subprocess.Popen[str], kind: str) -> list[Record]:
    assert process.stdout is not None
    records: list[Record] = []
    for line in process.stdout:
        record: Record = json.loads(line)
        records.append(record)
        if record["type"] == kind:
            return records
        if record["type"] in ("error", "missing"):
            raise SystemExit(f"a node gave up: {record}")
    raise SystemExit(f"a node ended before its {kind}: {records[-3:]}")


def _verified(records: Sequence[Record], load: Load) -> list[Record]:
    flows = [each for each in records if each["type"] == "flow" and each["side"] == "destination"]
    ends = [each for each in records if each["type"] == "trial"]
    if not flows or any(end["state"] != "complete" for end in ends):
        raise SystemExit(f"{load.name}: the trial did not complete: {ends} {flows[:1]}")
    for flow in flows:
        if flow["corrupted"] or not flow["window_payload_bytes"]:
            raise SystemExit(f"{load.name}: not whole, or nothing came: {flow}")
    return flows


# --- perftest -------------------------------------------------------------------------------------

# A client may come before its server listens.
_RETRY = 'for i in 1 2 3 4 5 6 7 8 9; do "$@" && exit; sleep 0.2; done; exit 1'
_next_port = _FIRST_PORT  # a connection's port is in use for a minute after it


def perftest(
    source: guests.Guest, destination: guests.Guest, load: Load, further: Sequence[str] = ()
) -> float:
    """MB/s of one run: what the client saw completed; of datagrams, what the server received.

    Depth, path MTU, GID and timeout are ours.
    """
    global _next_port
    _next_port += 1
    service = ["-c", load.service.upper()] if load.operation == "send" else []
    words = [
        f"ib_{load.operation}_bw", "-d", "rxe0", "-x", "1", "-m", str(PATH_MTU), "-F",
        "-s", str(load.size), "-t", str(load.depth), "-u", str(TIMEOUT), *service, *further,
        "-p", str(_next_port),
    ]  # fmt: skip
    options: dict[str, Any] = {
        "stdin": subprocess.DEVNULL,
        "stdout": subprocess.PIPE,
        "stderr": subprocess.STDOUT,
        "text": True,
    }
    server = destination.popen(words, **options)
    client = source.popen(
        ["sh", "-c", _RETRY, "-", *words, control_address(destination)], **options
    )
    texts = []
    for process in (client, server):
        try:
            text, _ = process.communicate(timeout=ANSWER_S)
        except subprocess.TimeoutExpired:
            process.kill()
            raise SystemExit(f"{load.name}: perftest hangs") from None
        if process.returncode != 0:
            raise SystemExit(f"{load.name}: perftest failed:\n{text[-1500:]}")
        texts.append(text)
    # The "BW average" of its table, in MB/s (it says MB and means MiB).
    table = texts[1 if load.service == "ud" else 0]
    rows = [line.split() for line in table.splitlines()]
    found = [row for row in rows if len(row) == 5 and row[0].isdigit()]
    figure = float(found[-1][3]) * (1 << 20) / 1e6 if found else 0.0
    if figure == 0:
        raise SystemExit(f"{load.name}: perftest saw nothing come in its window:\n{table[-1500:]}")
    return figure


def timed(seconds: float, margin: float) -> tuple[str, ...]:
    """perftest's words for a window after a warm-up; it takes whole seconds only, and leaves as
    much out at the end as at the beginning."""
    return ("-D", str(round(seconds + 2 * margin)), "-f", str(round(margin)))
