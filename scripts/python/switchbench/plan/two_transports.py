# SPDX-License-Identifier: BSD-3-Clause
"""Stateful and stateless ports in one phase (RFC 8239, 6): two parts of a trial.

A port of a node is open in one transport at a time, and belongs to one network. So what is sent by
UDP goes from and to further ports on the same interfaces, in a network of their own.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from ..base import transports
from ..base.errors import ConfigurationError
from ..base.model import Load, Part, PartSetting, Pattern, Port, Site, Trial
from ..search.suites.declaration import Variant

MESSAGE_BYTES = 65536
MAX_RATE = Load(percent=100.0)
_STATEFUL = next(each.name for each in transports.TRANSPORTS if each.byte_stream)
_STATELESS = "stateless"  # what the names of further ports and networks end with
_OF_INTERFACE = ("netns", "iface", "tcp_address", "line_rate_bps", "shared")  # keys of a job's port


def with_stateless_ports(site: Site, networks: Iterable[str]) -> Site:
    """The site, with a further port beside each of these networks, in the groups of that one.

    ConfigurationError where the site has a network of that name.
    """
    asked = set(networks)
    more = {
        _name(network): tuple(map(_beside, site.networks[network])) for network in sorted(asked)
    }
    taken = next((name for name in more if name in site.networks), None)
    if taken is not None:
        raise ConfigurationError(
            f"suite: incast needs the name {taken} for a network of its own: rename the site's"
        )
    further = {
        port.name: _beside(port).name for network in asked for port in site.networks[network]
    }
    return replace(
        site,
        processes=tuple(
            replace(
                process,
                ports=process.ports
                + tuple(_beside(port) for port in process.ports if port.network in asked),
            )
            for process in site.processes
        ),
        networks=site.networks | more,
        groups={
            group: names + tuple(further[name] for name in names if name in further)
            for group, names in site.groups.items()
        },
    )


def port_of_interface(name: str, network: str) -> str:
    """A port's name; of a further one that of the port beside which it is."""
    further = network.endswith(f"-{_STATELESS}")
    return name.removesuffix(f"-{_STATELESS}") if further else name


def in_two_transports(planned: Trial, variant: Variant) -> Trial:
    """The trial of a variant whose stateful ports send by TCP.

    ConfigurationError where a port has no TCP, or no known line rate.
    """
    [part] = planned.parts
    without = next((port.name for port in part.ranks if _STATEFUL not in port.transports), None)
    if without is not None:
        raise ConfigurationError(
            f"suite: {variant.name} needs {_STATEFUL}, which {without} has not"
        )
    unknown = next((port.name for port in part.ranks if not port.line_rate_bps), None)
    if unknown is not None:
        raise ConfigurationError(
            f"suite: {variant.name} needs the line rate of {unknown}, for a burst of incast_s: "
            "give the port a `line_rate`"
        )
    egress = part.ranks[variant.flows[0][1]]
    stateful = [part.ranks[source] for source in variant.stateful]
    stateless = [part.ranks[s] for s, _ in variant.flows if s not in variant.stateful]
    parts = (
        Part(part.network, (*stateful, egress)),
        Part(_name(part.network), tuple(map(_beside, (*stateless, egress)))),
    )
    own = PartSetting(_STATEFUL, (MESSAGE_BYTES,), "message", MAX_RATE)
    pattern: Pattern = {"name": "incast", "receivers": 1}  # type: ignore[typeddict-unknown-key]
    return replace(planned, parts=parts, own={part.network: own}, pattern=pattern)


def with_burst(trial: Trial, frames: int) -> Trial:
    """The stateless ports send so many frames when the window opens, and then none."""
    return trial.with_options(window_frames=frames)


def _name(network: str) -> str:
    return f"{network}-{_STATELESS}"


def _beside(port: Port) -> Port:
    return replace(
        port,
        name=f"{port.name}-{_STATELESS}",
        network=_name(port.network),
        transports=tuple(
            name
            for name in port.transports
            if (carrier := transports.of(name)).kernel and carrier.frames
        ),
        engine={key: value for key, value in port.engine.items() if key in _OF_INTERFACE},
    )
