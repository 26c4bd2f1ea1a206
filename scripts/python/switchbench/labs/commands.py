# SPDX-License-Identifier: BSD-3-Clause
"""`switchbench lab up|down|status|exec` as functions, for the command line to call.

Each prints what it did, a line a lab, and returns or raises `LabError` or `TopologyError`; none
exits. Without privilege they work in the user's own namespaces (see `rootless`).
"""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TextIO

from switchbench.base.quantities import link_rate_text
from switchbench.labs import build, rootless, state
from switchbench.labs.state import LabError
from switchbench.topology.file_form import AttachedHost, Topology, TopologyError
from switchbench.topology.links import NodeLink
from switchbench.topology.topology import load


def up(
    out: TextIO, topology: str, name: str | None = None, overrides: Mapping[str, Any] | None = None
) -> None:
    """Make a lab of a topology's file or name; it stays until `down`."""
    model = load(topology, overrides)
    start = time.monotonic()
    with rootless.joined():
        lab = build.up(model, name)
    took_s = time.monotonic() - start
    print(f"lab {lab.name} is up: {describe(lab.topology)} ({took_s:.1f} s)", file=out)


def down(out: TextIO, name: str | None = None, everything: bool = False) -> None:
    """Remove one lab, the only one if no name is given, or all."""
    with rootless.joined():
        failures = []
        for lab in state.labs() if everything else [_chosen(name)]:
            try:
                build.down(lab)
                print(f"lab {lab} is down", file=out)
            except LabError as error:
                failures.append(str(error))
    if failures:
        raise LabError("\n".join(failures))


@dataclass(frozen=True)
class LabStatus:
    """One line of `lab status`."""

    name: str
    condition: str
    """`up`, `in use by process N`, or what a crash left."""
    description: str


def status() -> list[LabStatus]:
    """All the labs of this machine, or of this user where it has no privilege."""
    with rootless.joined():
        return [_status(name) for name in state.labs()]


def print_status(out: TextIO) -> None:
    """One line for each lab."""
    labs = status()
    for lab in labs:
        print(f"{lab.name}: {lab.condition}: {lab.description}", file=out)
    if not labs:
        print("no lab is up", file=out)


def run(node: str, command: Sequence[str], name: str | None = None) -> int:
    """Run a command on a node of a lab, or on its `switch`; its exit status, 128 + n for signal n.

    `node` may be `<lab>/<node>`, which says the same as `name`.
    """
    lab_name, _, node_name = node.rpartition("/")
    with rootless.joined():
        lab = build.find(_chosen(lab_name or name))
        try:
            process = lab.popen(node_name, command)
        except (FileNotFoundError, PermissionError) as error:
            raise LabError(f"{command[0]} can't be run: {error.strerror}") from None
        code = _wait(process.wait)
    return code if code >= 0 else 128 - code


def describe(topology: Topology) -> str:
    """A topology in a few words: `24 nodes of 10M on 2 modules, trunks left-right of 80M`."""
    nodes = f"{len(topology.nodes)} nodes{_of_rates(topology.nodes)}"
    modules = len(topology.modules)
    where = "one module" if modules == 1 else f"{modules} modules"
    trunks = ", ".join(
        f"{trunk.name} of {link_rate_text(trunk.rate_bps)}" for trunk in topology.trunks
    )
    cables = len(topology.links)
    between = f", {cables} link{'s' * (cables > 1)}{_of_rates(topology.links)} between nodes"
    parts = [nodes, f" on {where}" * (modules > 0), f", trunks {trunks}" * bool(trunks)]
    return "".join([*parts, between * (cables > 0)])


def _of_rates(ends: Sequence[AttachedHost | NodeLink]) -> str:
    """` of 10M`; nothing where none is on a switch."""
    rates = sorted({end.rate_bps for end in ends if isinstance(end, NodeLink) or end.module})
    return f" of {' and '.join(link_rate_text(rate) for rate in rates)}" if rates else ""


def _chosen(name: str | None) -> str:
    """The lab that is meant: by its name, or the only one."""
    if name:
        return name
    labs = state.labs()
    if len(labs) == 1:
        return labs[0]
    if not labs:
        raise LabError("no lab is up")
    raise LabError(f"several labs are up, say which: {', '.join(labs)}")


def _status(name: str) -> LabStatus:
    pid = state.holder(name)
    try:
        known = state.read(name)
    except LabError as error:
        return LabStatus(name, "unreadable", str(error))
    if known is None:
        return LabStatus(name, "down", "")
    condition = "up" if known.kept else "left by a crash"
    return LabStatus(
        name, f"in use by process {pid}" if pid else condition, describe(known.topology)
    )


def _wait(wait: Callable[[], int]) -> int:
    """Wait for a process that gets Ctrl-C from the terminal itself and decides what it means."""
    previous = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        return wait()
    finally:
        signal.signal(signal.SIGINT, previous)


__all__ = ["LabError", "LabStatus", "TopologyError", "down", "print_status", "run", "status", "up"]
