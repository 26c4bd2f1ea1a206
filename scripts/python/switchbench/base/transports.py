# SPDX-License-Identifier: BSD-3-Clause
"""The transports: what each of them is and can do, for all who would otherwise ask for its name.

A further transport is an entry here, its options' keys (config/schema.py) and what they mean
(config/rules.py).
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Transport:
    """What the configuration, the compiler and the results ask of a transport."""

    name: str
    devices: tuple[str, ...]  # keys of a site's port, each of which is enough for it
    frames: bool = False
    """Its sizes are frames', but where one message waits for another; every frame is counted."""
    reliable: bool = False  # it delivers every message, or breaks: it carries plans by steps
    bursts: bool = False  # it sends bursts of a counted length
    byte_stream: bool = False  # its messages lose their bounds: small ones travel joined
    settings: tuple[str, ...] = ()  # of a test, besides sizes and its own options
    ports_most: int | None = None  # of one process
    library: str | None = None  # a build may be without; `package` is what it is built with
    package: str | None = None

    @property
    def raw(self) -> bool:
        """Return whether it takes a device to itself, whose frames need addresses of their own."""
        return "vdev" in self.devices

    @property
    def kernel(self) -> bool:
        """Return whether its bytes go through the kernel's sockets."""
        return "tcp_address" in self.devices

    @property
    def rdma(self) -> bool:
        """Return whether it needs an RDMA device, with queue pairs and counters of its own."""
        return "rdma" in self.devices


# In the order in which a user who names none is given one.
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
    Transport(
        "tcp",
        ("iface", "pci", "tcp_address"),
        reliable=True,
        byte_stream=True,
    ),
    Transport(
        "udp",
        ("iface", "pci", "tcp_address"),
        frames=True,
    ),
    Transport(
        "packet",
        ("iface", "pci"),
        frames=True,
    ),
)

_BY_NAME = {transport.name: transport for transport in TRANSPORTS}

NAMES = tuple(sorted(_BY_NAME))  # as they are listed for users
PREFERRED = tuple(_BY_NAME)
PREFERRED_BY_STEPS = tuple(transport.name for transport in TRANSPORTS if transport.reliable)
BY_STEPS_ONLY = f"collectives run over {' and '.join(sorted(PREFERRED_BY_STEPS))}"
# Side by side in results; the others are divided by the first of these that ran.
BASELINES = tuple(sorted(NAMES, key=lambda name: not _BY_NAME[name].byte_stream))


def of(name: str) -> Transport:
    """Return the transport of a name that was checked."""
    return _BY_NAME[name]
