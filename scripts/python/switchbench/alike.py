# SPDX-License-Identifier: BSD-3-Clause
"""What hosts of a site have, side by side: a table of what differs from the majority.

Nothing of ours but the engine is needed there: a host is asked for the engine's version, and for
the text of files below /sys and /proc (by `head`); nothing is written.
"""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from .errors import ConfigurationError
from .launch.fan import Answer, fan_out
from .launch.openssh import FAILED, OpenSsh, failure, find_client, refusal
from .model import Port, Process, Site

NOT_THERE = "-"
_SLACK_S = 20.0
_LINES = 200  # of a file, at most
_MARK = "==> "  # with which `head -v` begins a file
_CPU = "/sys/devices/system/cpu"


@dataclass(frozen=True)
class Fact:
    """A thing that hosts should have alike: the file that says it, and how it is read there."""

    name: str
    path: str
    read: Callable[[str], str]


@dataclass(frozen=True)
class Row:
    """One thing on all hosts: what most of them have, and who differs."""

    name: str
    most: str
    differ: Mapping[str, str]


def survey(site: Site, processes: Sequence[Process]) -> tuple[list[Row], dict[str, str]]:
    """The table, and why hosts could not be asked, by host."""
    if site.launch != "ssh":
        raise ConfigurationError(
            f"doctor: hosts are asked by ssh, and this site says launch: {site.launch}"
        )
    find_client()
    way = OpenSsh.of(site)
    facts = {process.name: [*_MACHINE, *_of_ports(process.ports)] for process in processes}
    timeout_s = way.timeout_s + _SLACK_S
    engines = {host: way.node(host, ["--version"]) for host in facts}
    versions = fan_out(engines, way.fanout, timeout_s)
    files = {host: way.command(host, _question(facts[host])) for host in facts}
    answers = fan_out(files, way.fanout, timeout_s)
    silent = {
        host: why for host, answer in answers.items() if (why := _silent(host, answer)) is not None
    }
    values: dict[str, dict[str, str]] = {"engine": {}}
    for host in facts:
        if host in silent:
            continue
        values["engine"][host] = _engine(host, versions[host], way.engine)
        texts = _texts(answers[host].output)
        for fact in facts[host]:
            text = texts.get(fact.path)
            found = fact.read(text) if text is not None else NOT_THERE
            values.setdefault(fact.name, {})[host] = found
    return [_row(name, found) for name, found in values.items() if found], silent


def _row(name: str, values: Mapping[str, str]) -> Row:
    """Of values that are as frequent, that of the first host counts as most hosts'."""
    ((most, _),) = Counter(values.values()).most_common(1)
    return Row(name, most, {host: value for host, value in values.items() if value != most})


# --- asking --------------------------------------------------------------------------------------


def _question(facts: Sequence[Fact]) -> str:
    paths = dict.fromkeys(fact.path for fact in facts)
    return f"exec {shlex.join(['head', '-v', '-n', str(_LINES), '--', *paths])}"


def _silent(host: str, answer: Answer) -> str | None:
    if answer.status == FAILED or answer.status is None:
        return failure(host, answer.errors) or "it did not answer"
    return None


def _engine(host: str, answer: Answer, engine: str) -> str:
    if answer.status == 0 and answer.output:
        return answer.output[-1].removeprefix("switchbench-node ")
    return refusal(host, answer, engine) or f"status {answer.status}"


def _texts(lines: Sequence[str]) -> dict[str, str]:
    """The files of what `head -v` has written, by path."""
    texts: dict[str, list[str]] = {}
    current: list[str] = []
    for line in lines:
        if line.startswith(_MARK) and line.endswith(" <=="):
            current = texts.setdefault(line[len(_MARK) : -len(" <==")], [])
        else:
            current.append(line)
    return {path: "\n".join(text).strip() for path, text in texts.items()}


# --- what is asked for ---------------------------------------------------------------------------


def _plain(text: str) -> str:
    return text or "none"


def _after(key: str) -> Callable[[str], str]:
    """What follows `key` and its colon or equals sign on the first line that has it."""

    def read(text: str) -> str:
        for line in text.splitlines():
            name, _, value = line.replace("=", ":", 1).partition(":")
            if name.strip() == key:
                return value.strip()
        return "none"

    return read


def _gigabytes(text: str) -> str:
    """Two kernels keep different amounts for themselves: whole GiB are compared."""
    kib = _after("MemTotal")(text).partition(" ")[0]
    return f"{round(int(kib) / 2**20)} GiB" if kib.isdigit() else "none"


_MACHINE = (
    Fact("kernel", "/proc/sys/kernel/osrelease", _plain),
    Fact("cpu", "/proc/cpuinfo", _after("model name")),
    Fact("cores", f"{_CPU}/online", _plain),
    Fact("isolated cores", f"{_CPU}/isolated", _plain),
    Fact("governor", f"{_CPU}/cpu0/cpufreq/scaling_governor", _plain),
    Fact(
        "clock source", "/sys/devices/system/clocksource/clocksource0/current_clocksource", _plain
    ),
    Fact("memory", "/proc/meminfo", _gigabytes),
    Fact("hugepages", "/proc/meminfo", _after("HugePages_Total")),
)


def _of_ports(ports: Sequence[Port]) -> Iterator[Fact]:
    for port in ports:
        name = port.name.partition(":")[2]
        for key, facts in _OF_PORT.items():
            if key in port.engine:
                yield from facts(name, str(port.engine[key]))


def _iface(port: str, iface: str) -> Iterator[Fact]:
    folder = f"/sys/class/net/{iface}"
    yield Fact(f"{port} link", f"{folder}/operstate", _plain)
    yield Fact(f"{port} speed", f"{folder}/speed", _plain)
    yield Fact(f"{port} mtu", f"{folder}/mtu", _plain)
    yield Fact(f"{port} driver", f"{folder}/device/uevent", _after("DRIVER"))
    yield Fact(f"{port} numa node", f"{folder}/device/numa_node", _plain)


def _pci(port: str, address: str) -> Iterator[Fact]:
    folder = f"/sys/bus/pci/devices/{address}"
    yield Fact(f"{port} driver", f"{folder}/uevent", _after("DRIVER"))
    yield Fact(f"{port} numa node", f"{folder}/numa_node", _plain)
    yield Fact(f"{port} pcie speed", f"{folder}/current_link_speed", _plain)
    yield Fact(f"{port} pcie width", f"{folder}/current_link_width", _plain)


def _rdma(port: str, device: str) -> Iterator[Fact]:
    name, _, number = device.partition("/")
    folder = f"/sys/class/infiniband/{name}"
    yield Fact(f"{port} rdma firmware", f"{folder}/fw_ver", _plain)
    for what in ("state", "rate", "link_layer"):
        yield Fact(f"{port} rdma {what}", f"{folder}/ports/{number or 1}/{what}", _plain)


_OF_PORT: dict[str, Callable[[str, str], Iterator[Fact]]] = {
    "iface": _iface,
    "pci": _pci,
    "rdma": _rdma,
}
