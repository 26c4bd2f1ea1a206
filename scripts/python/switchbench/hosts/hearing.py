# SPDX-License-Identifier: BSD-3-Clause
"""Who hears whom on the control network, really tried: each host's engine binds its control
address, asks all others by UDP and answers them. And whether their clocks agree, on the way."""

from __future__ import annotations

import json
import os
import secrets
import selectors
import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

from ..base.errors import ConfigurationError
from ..base.model import Process, Site
from ..base.programs import ENGINE
from ..base.words import some
from ..plan.documents import BY_HAND_UDP_PORT, numeric_address
from ..run.launch.base import FarProcess
from ..run.launch.muster import end, last_words, output
from ..run.launch.openssh import OpenSsh
from ..run.launch.ssh import ssh_muster

ALL_HEARD = "heard by all"
SYNCHRONIZED = "synchronized"
ONE_CLOCK = "within 0.1 s"
_TOKEN_BYTES = 16
_LIMIT_S = 10.0  # the engine asks for 3 s
_CHUNK = 1 << 16
_LINE_MOST = 1 << 20  # bytes: more than the places of all hosts
_SHOWN = 60  # bytes of what is not understood
_CLOCK_S = 0.1  # more than a login's delay


@dataclass(frozen=True)
class Hearing:
    """By host: in words, what its control port and its clock are like."""

    ports: Mapping[str, str]
    clocks: Mapping[str, str]  # whether something keeps it right
    times: Mapping[str, str]  # against this machine's


def hear(site: Site, processes: Sequence[Process]) -> Hearing:
    """Tries it among these hosts; who can't be asked is not among them."""
    addresses, failed = _addresses(processes)
    muster = ssh_muster(OpenSsh.of(site), lambda process: ["--reach", addresses[process.name]])
    named = [process for process in processes if process.name in addresses]
    try:
        failed |= {one.host: one.reason for one in muster.gather(named)}
        there = {one.name: muster.take(one) for one in named if one.name not in failed}
        said, ended = _converse(there, addresses)
    finally:
        muster.dismiss()
    return Hearing(
        _ports(list(there), {host: one.answered for host, one in said.items()}) | failed | ended,
        {
            host: SYNCHRONIZED if one.synchronized else f"not {SYNCHRONIZED}"
            for host, one in said.items()
        },
        {host: one.off for host, one in said.items()},
    )


def _addresses(processes: Sequence[Process]) -> tuple[dict[str, str], dict[str, str]]:
    """Of those that have one here; and why the others have none."""
    found, failed = {}, {}
    for process in processes:
        try:
            found[process.name] = _address(process)
        except ConfigurationError as error:
            failed[process.name] = str(error)
    return found, failed


def _address(process: Process) -> str:
    address = numeric_address(process.name, process.control["address"])
    host, _, port = address.rpartition(":")
    return f"{host}:{int(port) or BY_HAND_UDP_PORT}"


@dataclass(frozen=True)
class _Said:
    """What an engine says at the end."""

    answered: frozenset[int]  # by their places: hosts that answered it
    synchronized: bool
    off: str  # its clock, against this machine's


@dataclass
class _Talk:
    """What hosts say, a line each, as it comes: nobody is waited for within one."""

    begun: dict[str, bytes] = field(default_factory=dict)  # lines whose end has not come
    said: dict[str, _Said] = field(default_factory=dict)
    failed: dict[str, str] = field(default_factory=dict)

    def hear(self, host: str, popen: FarProcess) -> bool:
        """Takes what is there of a host; whether that is all that it has to say."""
        chunk = os.read(output(popen).fileno(), _CHUNK)
        text = self.begun.get(host, b"") + chunk
        self.begun[host] = text
        if chunk and b"\n" not in chunk and len(text) < _LINE_MOST:
            return False
        if text:
            self._understand(host, text.partition(b"\n")[0])
        else:
            words = last_words(popen)
            self.failed[host] = words[-1].removeprefix(f"{ENGINE}: ") if words else "ended at once"
        return True

    def _understand(self, host: str, line: bytes) -> None:
        now_s = time.time()
        try:
            one = json.loads(line)
            off_s = one["realtime_ns"] / 1e9 - now_s
            off = ONE_CLOCK if abs(off_s) < _CLOCK_S else f"{off_s:+.1f} s from here"
            self.said[host] = _Said(frozenset(one["answered"]), one["synchronized"], off)
        except (ValueError, LookupError, TypeError):
            text = line[:_SHOWN].decode(errors="replace").strip()
            self.failed[host] = f"its engine says what is not understood ({text!r})"


def _converse(
    there: Mapping[str, FarProcess], addresses: Mapping[str, str]
) -> tuple[dict[str, _Said], dict[str, str]]:
    """What each has said by host, and why the others could not begin."""
    token = secrets.token_hex(_TOKEN_BYTES)
    text = "\n".join([token, *(addresses[host] for host in there), "", ""]).encode()
    talk = _Talk()
    try:
        with selectors.DefaultSelector() as selector:
            for host, popen in there.items():
                if popen.stdin is not None:
                    with suppress(BrokenPipeError):  # it has ended: its output says how
                        popen.stdin.write(text)
                selector.register(output(popen), selectors.EVENT_READ, host)
            deadline_s = time.monotonic() + _LIMIT_S
            while selector.get_map() and time.monotonic() < deadline_s:
                for key, _ in selector.select(max(0.0, deadline_s - time.monotonic())):
                    if talk.hear(key.data, there[key.data]):
                        selector.unregister(key.fileobj)
    finally:
        end(list(there.values()))
    late = f"its engine did not say within {_LIMIT_S:.0f} s whom it heard"
    silent = [host for host in there if host not in talk.said and host not in talk.failed]
    return talk.said, talk.failed | dict.fromkeys(silent, late)


def _ports(hosts: Sequence[str], answered: Mapping[str, Iterable[int]]) -> dict[str, str]:
    """The fewest hosts whose fault explains who did not answer whom."""
    pairs = {
        (asker, hosts[place])
        for asker, places in answered.items()
        for place in set(range(len(hosts))).difference(places)
    }
    found = dict.fromkeys(answered, ALL_HEARD)
    while pairs:
        deaf = Counter(host for pair in pairs for host in set(pair))
        worst, _ = max(deaf.items(), key=lambda item: (item[1], -hosts.index(item[0])))
        mute = sorted(
            {a if b == worst else b for a, b in pairs if worst in (a, b)}, key=hosts.index
        )
        mute = [host for host in mute if host != worst] or [worst]
        whom = "all others" if len(mute) >= len(hosts) - 1 > 1 else some(mute)
        found[worst] = f"no UDP to and from {whom}"
        pairs = {pair for pair in pairs if worst not in pair}
    return found
