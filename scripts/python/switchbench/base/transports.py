# SPDX-License-Identifier: BSD-3-Clause
"""Properties of each transport; other code tests these properties, not a transport's name.

A new transport needs an entry here, keys for its options (config/schema.py), and rules for these
keys (config/rules.py).
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Transport:
    """Properties of a transport for the configuration, the compiler and the results."""

    name: str
    devices: tuple[str, ...]  # keys of a site's port; one of them is enough for the transport
    frames: bool = False
    """Sizes are frame sizes, except in ping-pong; every frame is counted."""
    reliable: bool = False  # delivers every message or fails, so it can carry schedules
    bursts: bool = False  # can send bursts of a counted length
    byte_stream: bool = False  # a byte stream without message boundaries: small messages are joined
    settings: tuple[str, ...] = ()  # settings of a test, besides sizes and the transport's options
    ports_most: int | None = None  # port limit of one process
    library: str | None = None  # optional library of a build; `package` is needed to build with it
    package: str | None = None

    @property
    def raw(self) -> bool:
        """Return true for a transport that drives a whole device and sets the frames' addresses."""
        return "vdev" in self.devices

    @property
    def kernel(self) -> bool:
        """Return true for a transport whose bytes pass through the kernel's sockets."""
        return "tcp_address" in self.devices

    @property
    def rdma(self) -> bool:
        """Return true for a transport that needs an RDMA device, with queue pairs and counters."""
        return "rdma" in self.devices


# All transports in order of preference, for configurations that name no transport.
TRANSPORTS = (
    Transport(
        "dpdk",
        ("iface", "pci", "vdev"),
        frames=True,
        bursts=True,
        settings=("flood_limit",),
        ports_most=32,  # RTE_MAX_ETHPORTS as Debian builds it
        library="librte_eal",
        package="libdpdk-dev",
    ),
    Transport(
        "verbs",
        ("iface", "pci", "rdma"),
        reliable=True,
        library="libibverbs",
        package="libibverbs-dev",
    ),
    Transport("tcp", ("iface", "pci", "tcp_address"), reliable=True, byte_stream=True),
    Transport("udp", ("iface", "pci", "tcp_address"), frames=True),
    Transport("packet", ("iface", "pci"), frames=True),
)

_BY_NAME = {transport.name: transport for transport in TRANSPORTS}

NAMES = tuple(sorted(_BY_NAME))  # in the order shown to users
PREFERRED = tuple(_BY_NAME)
PREFERRED_BY_STEPS = tuple(transport.name for transport in TRANSPORTS if transport.reliable)
BY_STEPS_ONLY = f"collectives run over {' and '.join(sorted(PREFERRED_BY_STEPS))}"
# Baselines in results: ratios are to the first of these that ran.
BASELINES = tuple(sorted(NAMES, key=lambda name: not _BY_NAME[name].byte_stream))


def of(name: str) -> Transport:
    """Return the properties of the transport with a given name, which must be valid."""
    return _BY_NAME[name]
