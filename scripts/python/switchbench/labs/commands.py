# SPDX-License-Identifier: BSD-3-Clause
"""`switchbench lab up|down|status|exec` as functions.

Each returns what there is to say, or raises `LabError` or `TopologyError`.
"""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from switchbench.base.quantities import link_rate_text
from switchbench.labs import build, rootless, state
from switchbench.labs.state import LabError
from switchbench.topology.file_form import AttachedHost, Topology, TopologyError
from switchbench.topology.links import NodeLink
from switchbench.topology.topology import load

__all__ = ["LabError", "TopologyError", "down", "run", "status", "up"]


def up(topology: str, name: str | None = None, overrides: Mapping[str, Any] | None = None) -> str:
    """Make a lab of a topology's file or name; it stays until `down`."""
    rootless.need_root("lab up")
    model = load(topology, overrides)
    start = time.monotonic()
    lab = build.up(model, name)
    took_s = time.monotonic() - start
    return f"lab {lab.name} is up: {describe(lab.topology)} ({took_s:.1f} s)"


def down(name: str | None = None, everything: bool = False) -> Iterator[str]:
    """Remove one lab, the only one if no name is given, or all; yield a sentence for each."""
    rootless.need_root("lab down")
    failures = []
    for lab in state.labs() if everything else [_chosen(name)]:
        try:
            build.down(lab)
            yield f"lab {lab} is down"
        except LabError as error:
            failures.append(str(error))
    if failures:
        raise LabError("\n".join(failures))


def status() -> list[str]:
    """Return a sentence for each lab of this machine."""
    return [_status(name) for name in state.labs()] or ["no lab is up"]


def run(node: str, command: Sequence[str], name: str | None = None) -> int:
    """Run a command on a node of a lab, or on its `switch`.

    Return its exit status, 128 + n for signal n.

    `node` may be `<lab>/<node>`, which says the same as `name`.
    """
    rootless.need_root("lab exec")
    lab_name, _, node_name = node.rpartition("/")
    lab = build.find(_chosen(lab_name or name))
    try:
        process = lab.popen(node_name, command)
    except (FileNotFoundError, PermissionError) as error:
        raise LabError(f"{command[0]} can't be run: {error.strerror}") from None
    # The process gets Ctrl-C from the terminal itself and decides what it means.
    previous = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        code: int = process.wait()
    finally:
        signal.signal(signal.SIGINT, previous)
    return code if code >= 0 else 128 - code


def describe(topology: Topology) -> str:
    """Return a topology in words: `24 nodes of 10M on 2 modules, trunks left-right of 80M`."""
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
    """Return ` of 10M`; nothing where none is on a switch."""
    rates = sorted({end.rate_bps for end in ends if isinstance(end, NodeLink) or end.module})
    return f" of {' and '.join(link_rate_text(rate) for rate in rates)}" if rates else ""


def _chosen(name: str | None) -> str:
    """Return the lab that is meant: by its name, or the only one."""
    if name:
        return name
    labs = state.labs()
    if len(labs) == 1:
        return labs[0]
    if not labs:
        raise LabError("no lab is up")
    raise LabError(f"several labs are up, say which: {', '.join(labs)}")


def _status(name: str) -> str:
    pid = state.holder(name)
    try:
        known = state.read(name)
    except LabError as error:
        return f"{name}: unreadable: {error}"
    if known is None:
        return f"{name}: down"
    condition = "up" if known.kept else "left by a crash"
    used = f"in use by process {pid}" if pid else condition
    return f"{name}: {used}: {describe(known.topology)}"
