# SPDX-License-Identifier: BSD-3-Clause
"""Tables of ports, nodes, tuning and switch counters."""

from __future__ import annotations

from collections.abc import Iterator

from ...records.document.schema import at
from .table import PAGE, Column, Entry, Spec, Summary, count, text

_PORT = text("port", "port")
_TRANSPORT = text("transport", "transport", fold=True)


def _side(words: str, key: str) -> tuple[Column, ...]:
    return (
        Column(f"{words}, median", f"{key}.median_percent_of_line", "percent", "% of line"),
        Column(f"{words}, min", f"{key}.min_percent_of_line", "percent", "% of line", drop=2),
        Column(f"{words} ÷ median port", f"{key}.relative_to_median"),
        count(f"{words}, lost", f"{key}.lost_frames", drop=3),
    )


ports = Spec(
    "ports",
    "Ports",
    "Over all phases, so that a bad port or cable stands out whatever the pattern.",
    (
        _PORT,
        _TRANSPORT,
        text("network", "network", fold=True, output=PAGE),
        text("switch", "switch", fold=True, seldom=True),
        text("switch port", "switch_port", seldom=True),
        *_side("sent", "as_source"),
        *_side("received", "as_destination"),
        text("suspect", "suspect", seldom=True, output=PAGE),
        count("link downs", "link_downs", fold=True),
        count("slowest in", "slowest_phases", unit="phases", drop=1,
              value=lambda entry: len(entry.get("slowest_phases") or [])),
    ),
    "ports",
)  # fmt: skip

tuning = Spec(
    "tuning",
    "Ports and their tuning",
    "What each port was sent and received through, as the nodes found it.",
    (
        _PORT,
        _TRANSPORT,
        text("driver", "driver", fold=True),
        count("NUMA node", "numa", fold=True),
        count("queues", "queues", fold=True),
        text("cores", "cores"),
        text("offloads", "offloads", fold=True),
        text("hot paths", "variants", fold=True),
        text("RDMA device", "rdma.rdma", seldom=True),
        text("RDMA link", "rdma.link_layer", fold=True, seldom=True,
             about="The link layer of the device's port: InfiniBand or Ethernet"),
        count("RDMA MTU", "rdma.mtu", unit="B", fold=True, seldom=True,
              about="Active path MTU of the device's port: payload of a packet at the most"),
    ),
    "ports",
)  # fmt: skip


def _nodes(summary: Summary) -> Iterator[Entry]:
    clocks = {clock["node"]: clock for clock in summary.get("clocks", [])}
    for node in at(summary, "run.nodes") or []:
        yield {**node, "how": clocks.get(node["node"], {})}


nodes = Spec(
    "nodes",
    "Nodes",
    "One process of the engine each.",
    (
        text("node", "node", about="Its name"),
        text("host", "host", fold=True, about="The machine that the node runs on"),
        text("version", "version", fold=True),
        count("CPUs", "cpus", fold=True, about="That the node's machine has online"),
        count("workers", "workers", fold=True, about="Threads that send and receive"),
        text("between bursts", "worker", fold=True,
             about="What workers do: poll, or sleep until there is something to do"),
        text("cores", "cores"),
        text("clock", "how.clock", fold=True, defined="clocks.clock"),
        Column("clock within", "how.bound_us", unit="µs", defined="clocks.bound_us"),
    ),
    _nodes,
)  # fmt: skip

switch_counters = Spec(
    "switch-counters",
    "The switch's own counters",
    "What the switch itself counted; only what differs is here.",
    (
        text("counter", "counter", about="As the switch's own command names it"),
        count("difference", "difference", about="After the last trial less before"),
    ),
    lambda summary: (
        {"counter": name, "difference": difference}
        for name, difference in (at(summary, "switch_counters.differences") or {}).items()
    ),
)
