# SPDX-License-Identifier: BSD-3-Clause
"""Tables of ports, nodes, tuning and switch counters."""

from __future__ import annotations

from .table import Column, Table, at, make
from .times import Summary


def ports(summary: Summary) -> Table | None:
    """Each port as source and as destination."""

    def side(words: str, key: str) -> tuple[Column, ...]:
        return (
            Column(f"{words}, median", f"{key}.median_percent_of_line", "percent", "% of line"),
            Column(f"{words}, least", f"{key}.min_percent_of_line", "percent", "% of line"),
            Column(f"{words}, by median port's", f"{key}.relative_to_median"),
            Column(f"{words}, lost", f"{key}.lost_frames", "count"),
        )

    columns = (
        Column("port", "port", "text"),
        Column("transport", "transport", "text", fold=True),
        Column("network", "network", "text", fold=True),
        Column("switch", "switch", "text", fold=True),
        Column("switch port", "switch_port", "text"),
        *side("sent", "as_source"),
        *side("received", "as_destination"),
        Column("below median", "below_median", "text", fold=True),
        Column("link downs", "link_downs", "count", fold=True),
        Column("slowest in", "slowest_phases", "count", "phases",
               value=lambda entry: len(entry.get("slowest_phases") or [])),
    )  # fmt: skip
    about = "Over all phases, so that a bad port or cable stands out whatever the pattern."
    return make("ports", "Ports", about, columns, summary.get("ports", []))


def tuning(summary: Summary) -> Table | None:
    """How each port was driven."""
    columns = (
        Column("port", "port", "text"),
        Column("transport", "transport", "text", fold=True),
        Column("driver", "driver", "text", fold=True),
        Column("NUMA node", "numa", "count", fold=True),
        Column("queues", "queues", "count", fold=True),
        Column("cores", "cores", "text"),
        Column("offloads", "offloads", "text", fold=True),
        Column("hot paths", "variants", "text", fold=True),
        Column("RDMA device", "rdma.rdma", "text", seldom=True),
        Column(
            "RDMA link",
            "rdma.link_layer",
            "text",
            fold=True,
            seldom=True,
            about="The link layer of the device's port: InfiniBand or Ethernet",
        ),
        Column(
            "RDMA MTU",
            "rdma.mtu",
            "count",
            "B",
            fold=True,
            seldom=True,
            about="Active path MTU of the device's port: payload of a packet at the most",
        ),
    )
    about = "What each port was sent and received through, as the nodes found it."
    return make("tuning", "Ports and their tuning", about, columns, summary.get("ports", []))


def nodes(summary: Summary) -> Table | None:
    """Each node and its clock."""
    clocks = {clock["node"]: clock for clock in summary.get("clocks", [])}
    found = at(summary, "run.nodes") or []
    entries = [{**node, "how": clocks.get(node["node"], {})} for node in found]
    columns = (
        Column("node", "node", "text"),
        Column("host", "host", "text", fold=True, about="The machine that the node runs on"),
        Column("version", "version", "text", fold=True),
        Column("CPUs", "cpus", "count", fold=True, about="That the node's machine has online"),
        Column("workers", "workers", "count", fold=True, about="Threads that send and receive"),
        Column(
            "between bursts",
            "worker",
            "text",
            fold=True,
            about="What workers do: poll, or sleep until there is something to do",
        ),
        Column("cores", "cores", "text"),
        Column("clock", "how.clock", "text", fold=True, defined="clocks.clock"),
        Column("clock within", "how.bound_us", unit="µs", defined="clocks.bound_us"),
        Column("TSC drift", "tsc_drift_ppm", unit="ppm", defined="run.nodes.tsc_drift_ppm"),
    )
    return make("nodes", "Nodes", "One process of the engine each.", columns, entries)


def switch_counters(summary: Summary) -> Table | None:
    """The switch's own view."""
    found = at(summary, "switch_counters.differences") or {}
    entries = [{"counter": name, "difference": count} for name, count in found.items()]
    columns = (
        Column("counter", "counter", "text", about="As the switch's own command names it"),
        Column("difference", "difference", "count", about="After the last trial less before"),
    )
    about = "What the switch itself counted; only what differs is here."
    return make("switch-counters", "The switch's own counters", about, columns, entries)
