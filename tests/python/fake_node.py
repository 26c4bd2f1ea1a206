# SPDX-License-Identifier: BSD-3-Clause
"""A node that speaks the protocol and measures nothing, with faults on demand.

    fake_node.py NAME BEHAVIOUR

For the controller's tests only: the real node is the engine's.
"""

from __future__ import annotations

import hashlib
import json
import os
import signal
import sys
import time
from base64 import b64decode, b64encode
from typing import Any

from nacl.public import PrivateKey, SealedBox

from synthetic import frame_side, hello, phase_record, trial_record


def write(record: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(record) + "\n")
    sys.stdout.flush()


class FakeNode:
    """A node that answers the controller, with one fault if it is given one."""

    def __init__(self, name: str, behaviour: str) -> None:
        self.name = name
        self.behaviour = behaviour
        self.key = PrivateKey.generate()
        self.beats = 0
        self.names: list[str] = []

    def run(self) -> int:
        for line in sys.stdin:
            ((kind, value),) = json.loads(line).items()
            status = getattr(self, "on_" + kind)(value)
            if status is not None:
                return int(status)
        if self.behaviour == "deaf":
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            time.sleep(60)
        write({"type": "bye", "node": self.name, "status": 3, "reason": "end-of-input"})
        return 3

    def on_heartbeat(self, _number: int) -> None:
        self.beats += 1

    def on_job(self, job: dict[str, Any]) -> int | None:
        self.names = [node["name"] for node in job["nodes"]]
        if self.behaviour == "refuse":
            text = "no interface eth7"
            write({"type": "error", "node": self.name, "text": text, "status": 2})
            return 2
        if self.behaviour == "mute":
            return None
        address = "02:00:00:00:00:01" if self.behaviour == "twin" else f"02:{os.getpid():010d}"
        write({"type": "port-open", "node": self.name, "port": f"{self.name}:e0",
               "transport": "dpdk", "mac": address, "line_rate_bps": 100_000_000})  # fmt: skip
        protocol = 3 if self.behaviour == "other-protocol" else 2
        key = b64encode(bytes(self.key.public_key)).decode()
        write(hello(self.name, key=key, protocol=protocol))
        return None

    def on_peers(self, peers: dict[str, Any]) -> None:
        sealed = b64decode(peers["sealed_keys"][self.names.index(self.name)])
        key = SealedBox(self.key).decrypt(sealed)
        digest = hashlib.sha256(key).hexdigest()
        ready = {"type": "ready", "node": self.name, "addresses": peers["addresses"]}
        write(ready | {"length": len(key), "digest": digest})

    @property
    def other(self) -> str:
        return next(name for name in self.names if name != self.name)

    def counts(self, trial: dict[str, Any]) -> tuple[tuple[int, int], tuple[int, int], int]:
        """Return frames sent, received and intended; of the first two also those in the window."""
        number = trial["id"]
        if self.behaviour == "busy" and number in (0, 2):  # its host was away for a while
            return (500, 450), (1000, 900), 1000
        if self.behaviour == "cut" and number == 0:  # busy, and its cable was away for a while
            return (500, 450), (600, 600), 1000
        if self.behaviour.startswith("half"):  # the network has room for half of the line rate
            came = min(1000, round(1000 * 50 / trial["load"]["percent"]))
            return (1000, 1000), (came, came), 1000
        noisy = self.behaviour == "noisy"
        return (1000, 900), (1000, 500 + 400 * (number % 2) if noisy else 900), 1000

    def on_trial(self, trial: dict[str, Any]) -> int | None:
        mine, theirs = f"{self.name}:e0", f"{self.other}:e0"
        place = {"trial": trial["id"], "repeat": trial.get("repeat", 0)}
        if (self.behaviour, trial["id"]) in (("half-then-dies", 3), ("dies-in-1", 1)):
            return self.fault_die()
        self.trial = trial["id"]
        sent, came, intended = self.counts(trial)
        write(frame_side("source", mine, theirs, *sent, intended=intended) | place)
        write(frame_side("destination", theirs, mine, *came) | place)
        fault = getattr(self, "fault_" + self.behaviour.replace("-", "_"), None)
        if self.behaviour == "chatty" and trial["id"] == 0:
            fault = None
        status: int | None = fault() if fault else None
        if status is None:
            write(phase_record(self.name, **place))
            write(trial_record(self.name, **place))
        return status

    def on_quit(self, _value: bool) -> int:
        write({"type": "bye", "node": self.name, "status": 0, "reason": "quit",
               "beats": self.beats})  # fmt: skip
        if self.behaviour in ("stays", "goes-on-logging"):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            if self.behaviour == "stays":
                time.sleep(60)
            os.write(sys.stderr.fileno(), b"a long farewell\n" * 20_000)  # no pipe holds it
        return 0

    def fault_die(self) -> int:
        print("the ring is gone", file=sys.stderr, flush=True)
        os.kill(os.getpid(), signal.SIGKILL)
        return 0

    def fault_escapes(self) -> int:
        os.write(sys.stderr.fileno(), b"\x1b]0;owned\x07\x1b[2J\n")
        return 7

    def fault_stopped(self) -> None:
        os.kill(os.getpid(), signal.SIGSTOP)

    def fault_error(self) -> int:
        write({"type": "error", "node": self.name, "text": "the link is down", "status": 3})
        return 3

    def miss(self, text: str, **more: Any) -> int:
        text = f"{self.other} {text}"
        about = {"type": "missing", "node": self.name, "missing_node": self.other, "text": text}
        write(about | more)
        return int(more.get("status", 3))

    def fault_missing(self) -> int:
        late = (
            "did not reach barrier 14 within 5 s; "
            "its last datagram arrived 6.2 s ago, at barrier 13"
        )
        return self.miss(late, barrier=14)

    def fault_missing_first(self) -> int:
        """Report a missing node a moment after the first node missed another."""
        time.sleep(0.2)
        return self.fault_missing()

    def fault_refused_by_other(self) -> int:
        return self.miss("aborted the run: no such pattern", status=2)

    def fault_garbage(self) -> None:
        sys.stdout.write("EAL: hello\n")

    def fault_liar(self) -> None:
        """Send a record in another node's name."""
        write(phase_record(self.other))

    def fault_stranger(self) -> None:
        write(phase_record(self.name, phase=7))

    def fault_endless(self) -> None:
        sys.stdout.write("x" * (1 << 20))
        sys.stdout.flush()

    def fault_wild(self) -> None:
        ends = (f"{self.name}:e0", f"{self.names[-1]}:e0")
        write(frame_side("source", *ends, 1, 1) | {"frames": "\x1b[2J"})

    def fault_stutter(self) -> None:
        """Send the same record twice."""
        ends = (f"{self.name}:e0", f"{self.names[-1]}:e0")
        write(frame_side("source", *ends, 1000, 900))

    def fault_overflow(self) -> None:
        """Send an event of an unknown type with a number that no column holds.

        In later trials while the run ends.
        """
        time.sleep(0.1 * self.trial)
        write({"type": "novelty", "node": self.name, "phase": 1 << 63})

    def fault_chatty(self) -> None:
        for _ in range(2000):
            noise = os.urandom(99).hex()
            write({"type": "event", "node": self.name, "kind": "noise", "text": noise})

    def fault_hang(self) -> None:
        for _line in sys.stdin:  # waits for what never comes, until the end of input
            pass

    def fault_late_quit(self) -> None:
        time.sleep(0.5)


if __name__ == "__main__":
    sys.exit(FakeNode(sys.argv[1], sys.argv[2]).run())
