#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Own instructions of the sending side for a message: a worker of ours, and perftest's timed loop.

Both send 1 KiB messages (RC, depth 128) between two guests, in turn, under callgrind in the
sending one; an instruction is one whoever emulates it. Of ours counts all that the worker's thread
spends, of perftest the function that posts and polls. libibverbs, the device's provider and what
these call do not count; both use them alike.

Who polls while nothing has come spends instructions, too, more or less by chance. Each runs several
times with different numbers of messages; a least-squares fit over messages and looks says what a
message costs without the looks. perftest runs as in the other benchmarks, posting one message at a
time, and with lists (`-l`) that it makes once and posts again and again as they are.

    tests/bench/verbs_instructions.py [--messages 2048 4096 ...]
"""

from __future__ import annotations

import itertools
import re
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from common import arguments, need, skip, verdict
from verbs_bed import NODE, Crew, Load, booted, control_address, crew, perftest_command

import guests

VALGRIND = Path("/usr/bin/valgrind.bin")  # `valgrind` is a shell script around it
TOOLS = Path("/usr/libexec/valgrind")
TOOL_FILES = ("callgrind-amd64-linux", "vgpreload_core-amd64-linux.so", "default.supp")
OUTPUT = "/tmp/callgrind.out"
LOAD = Load("send", 1024)
LIST = 32
LIMIT_S = 120.0
MESSAGES = (2048, 4096, 6144, 8192, 3072, 10240)  # multiples of LIST
FOREIGN = ("libibverbs", "librxe")  # and the providers, which lie in libibverbs/
PROVIDER = "librxe"
_ports = itertools.count(19300)  # of perftest's own connection

Place = tuple[str, str]
"""A function: the file that it is in, and its name or address."""


@dataclass
class Profile:
    """What callgrind counted."""

    own: Counter[Place] = field(default_factory=Counter)
    """Instructions of each function, without those that it calls."""
    within: Counter[tuple[Place, Place]] = field(default_factory=Counter)
    """Instructions of all calls from one function to another, with what these call."""
    calls: Counter[tuple[Place, Place]] = field(default_factory=Counter)

    def of_worker(self) -> int:
        """All but the verbs library, its provider, and what they call."""
        ours = sum(count for place, count in self.own.items() if not is_foreign(place))
        lent = sum(
            count
            for (caller, callee), count in self.within.items()
            if is_foreign(caller) and not is_foreign(callee)
        )
        return ours - lent

    def of_loop(self) -> int:
        """The function that calls the provider most often."""
        (caller, _), _ = max(self._to_provider().items(), key=lambda item: item[1])
        return self.own[caller]

    def looks(self, posts: int = 0) -> int:
        """Calls of the provider's poll, which is called often, as the post is; `posts`: so many of
        them were made."""
        counts = [count for count in self._to_provider().values() if count != posts]
        return max(counts, default=0)

    def _to_provider(self) -> Counter[tuple[Place, Place]]:
        return Counter(
            {
                (caller, callee): count
                for (caller, callee), count in self.calls.items()
                if PROVIDER in callee[0] and not is_foreign(caller)
            }
        )


def is_foreign(place: Place) -> bool:
    """The verbs library or a provider."""
    return any(word in place[0] for word in FOREIGN)


class _Names:
    """callgrind's compressed names: "(3) name" the first time, "(3)" then."""

    def __init__(self) -> None:
        self._known: dict[str, str] = {}

    def read(self, value: str) -> str:
        found = re.match(r"(\(\d+\))(?: (.*))?", value)
        assert found is not None
        return self._known.setdefault(found[1], found[2] or "")


def read_profile(text: str) -> Profile:
    """A callgrind.out file (its format: the manual's "Callgrind Format Specification")."""
    profile, objects, functions = Profile(), _Names(), _Names()
    object_ = callee_object = function = callee = ""
    called = False
    for line in text.splitlines():
        key, _, value = line.partition("=")
        if key == "ob":
            object_ = callee_object = objects.read(value)
        elif key == "fn":
            function = functions.read(value)
        elif key == "cob":
            callee_object = objects.read(value)
        elif key == "cfn":
            callee = functions.read(value)
        elif key == "calls":
            call = (object_, function), (callee_object, callee)
            profile.calls[call] += int(value.split()[0])
            called = True
        elif re.match(r"[\d+*-]", line):
            count = int(line.split()[1])
            if called:
                profile.within[call] += count
                callee_object = object_
            else:
                profile.own[(object_, function)] += count
            called = False
    return profile


def under_callgrind(*options: str) -> list[str]:
    """What stands before a command."""
    return [VALGRIND.name, "-q", "--tool=callgrind", f"--callgrind-out-file={OUTPUT}", *options]


def profile_of_perftest(rig: guests.Rig, messages: int, further: Sequence[str]) -> Profile:
    """Its client; without the peak's time stamps, which long runs leave out by themselves."""
    source, destination = rig.guests
    words = [*perftest_command(LOAD), "-N", "-n", str(messages), "-p", str(next(_ports)), *further]
    with destination.popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL) as server:
        try:
            time.sleep(1)  # it listens; a failed try under callgrind takes longer
            source.output([*under_callgrind(), *words, control_address(destination)], LIMIT_S)
            server.wait(LIMIT_S)
        finally:
            server.terminate()
    return read_profile(source.output(["cat", OUTPUT]))


def profile_of_ours(rig: guests.Rig, node: Path, messages: int) -> Profile:
    """The worker of the sending node."""
    source, _ = rig.guests
    prefixes = {source.name: under_callgrind("--toggle-collect=work")}
    with crew(rig, node, prefixes) as nodes:
        transfer(nodes, messages)
    return read_profile(source.output(["cat", OUTPUT]))


def transfer(nodes: Crew, messages: int) -> None:
    """So many messages, no more."""
    bytes_ = messages * LOAD.size
    nodes.run(LOAD, {"name": "chain"}, traffic="transfer", transfer_bytes=bytes_, window_ns=0)


Run = tuple[int, int, int]
"""Messages, looks, own instructions."""


def ours(rig: guests.Rig, node: Path, messages: int) -> Run:
    """One run."""
    profile = profile_of_ours(rig, node, messages)
    return messages, profile.looks(), profile.of_worker()


def perftest(rig: guests.Rig, messages: int, list_: int) -> Run:
    """One run that posts lists of so many."""
    profile = profile_of_perftest(rig, messages, ["-l", str(list_)] if list_ > 1 else [])
    return messages, profile.looks(messages // list_), profile.of_loop()


def least_squares(rows: Sequence[Sequence[float]], values: Sequence[float]) -> list[float]:
    """The coefficients, by the normal equations."""
    size = len(rows[0])
    table = [
        [sum(row[i] * row[j] for row in rows) for j in range(size)]
        + [sum(row[i] * value for row, value in zip(rows, values, strict=True))]
        for i in range(size)
    ]
    for i in range(size):
        table[i] = [each / table[i][i] for each in table[i]]
        for j in range(size):
            if j != i:
                factor = table[j][i]
                table[j] = [a - factor * b for a, b in zip(table[j], table[i], strict=True)]
    return [row[size] for row in table]


def fit(what: str, runs: Sequence[Run]) -> float:
    """Own instructions by message: the plane through the runs, over messages and looks."""
    rows = [(float(messages), float(looks), 1.0) for messages, looks, _ in runs]
    values = [float(own) for _, _, own in runs]
    by_message, by_look, once = found = least_squares(rows, values)
    errors = [
        abs(sum(a * b for a, b in zip(found, row, strict=True)) - value) / row[0]
        for row, value in zip(rows, values, strict=True)
    ]
    looks = ", ".join(f"{looks / messages:.2f}" for messages, looks, _ in runs)
    whole = ", ".join(f"{own / messages:.1f}" for messages, _, own in runs)
    print(
        f"{what}: {by_message:.1f} instructions a message, {by_look:.1f} a look, {once:.0f} once; "
        f"at most {max(errors):.1f} a message beside the fit"
    )
    print(f"  of {len(runs)} runs: {whole} a message with {looks} looks a message", flush=True)
    return by_message


@contextmanager
def prepared(node: Path) -> Iterator[guests.Rig]:
    """Two guests with valgrind in them."""
    need("valgrind")
    if not VALGRIND.exists() or not all((TOOLS / name).exists() for name in TOOL_FILES):
        skip(f"valgrind's tools are not in {TOOLS}")
    files = {str(TOOLS / name): TOOLS / name for name in TOOL_FILES}
    with booted(2, node, VALGRIND, files=files) as rig:
        yield rig


def main() -> int:
    """Two rows."""
    parser = arguments(__doc__)
    parser.add_argument("--node", type=Path, default=NODE)
    parser.add_argument("--messages", type=int, nargs="+", default=MESSAGES)
    asked = parser.parse_args()
    if len(asked.messages) < 4 or any(count % LIST for count in asked.messages):
        parser.error(f"--messages: at least 4 numbers, multiples of {LIST}")
    with prepared(asked.node) as rig:
        measures: dict[str, Callable[[int], Run]] = {
            "ours": lambda messages: ours(rig, asked.node, messages),
            "perftest": lambda messages: perftest(rig, messages, 1),
            f"perftest -l {LIST}": lambda messages: perftest(rig, messages, LIST),
        }
        runs: dict[str, list[Run]] = {name: [] for name in measures}
        for messages in asked.messages:
            for name, measure in measures.items():
                runs[name].append(measure(messages))
    own = {name: fit(name, of_it) for name, of_it in runs.items()}
    for name in list(own)[1:]:
        verdict(
            f"instructions a message: ours by {name}'s", own["ours"] / own[name], 1, at_most=True
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
