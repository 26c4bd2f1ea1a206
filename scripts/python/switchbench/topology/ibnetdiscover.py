# SPDX-License-Identifier: BSD-3-Clause
"""Reader of `ibnetdiscover` output (infiniband-diags, rdma-core) for one InfiniBand subnet."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from ..base.errors import ConfigurationError
from .cabling import Cable, Cabling, distinct, tidy

# Data rate of a lane after coding. InfiniBand Architecture Specification, volume 2: 2.5, 5 and 10
# GBd with 8b/10b up to QDR; 10.3125, 14.0625 and 25.78125 GBd with 64b/66b for FDR10, FDR and EDR.
# HDR, NDR and XDR (PAM4, forward error correction): the rates of IBTA's roadmap.
LANE_BPS = {
    "SDR": 2_000_000_000,
    "DDR": 4_000_000_000,
    "QDR": 8_000_000_000,
    "FDR10": 10_000_000_000,
    "FDR": 13_636_363_636,
    "EDR": 25_000_000_000,
    "HDR": 50_000_000_000,
    "NDR": 100_000_000_000,
    "XDR": 200_000_000_000,
}

_MOST_LANES = 12

_NODE = re.compile(
    r'(Switch|Ca|Rt)\s+\d{1,4}\s+"([SHR]-[0-9a-f]{1,32})"(?:\s*#\s*"(.*?)")?.*', re.ASCII
)
_END = r"\[(\d{1,4})\](?:\[ext \d{1,4}\])?(?:\([0-9a-f]{1,32}\))?"
_PORT = re.compile(rf'{_END}\s+"([SHR]-[0-9a-f]{{1,32}})"{_END}(.*)', re.ASCII)
_RATE = re.compile(r"\b(\d{1,4})x([A-Z]{3}(?:10)?)\b", re.ASCII)
_CHASSIS = re.compile(r"Chassis \d{1,9}(?: \(guid 0x[0-9a-f]{1,32}\))?|Non-Chassis Nodes", re.ASCII)
# Warnings on standard error about devices that do not answer: infiniband-diags, libibmad and
# libibnetdisc.
_WARNING = re.compile(r"ibwarn: \[|[\w./-]{1,80}\.c:\d{1,9}; ")
_WORDS_OF_FILE = ("vendid=", "devid=", "sysimgguid=", "switchguid=", "caguid=", "rtguid=")
# Description of a switch with a management system: "MF0;name:model/unit".
_MANAGED = re.compile(r"MF0;([^:;]+):[^/]+/(.+)")
_AGGREGATION = "Aggregation Node"  # SHARP's part of a switch, which sends no traffic of its own
# The name of an adapter model, `MT4129 ConnectX7   Mellanox Technologies`, does not name its host.
# The word before a Linux device does, whatever its form: `nvidia-dgx01 mlx5_0`.
_MAKER = re.compile(
    r"(MT\d{3,}|Mellanox|NVIDIA|ConnectX\S*|Voltaire|QLogic|InfiniPath)(?!\S)", re.I
)
_OF_HOST = re.compile(r"(\S+) +(?:mlx|mthca|HCA-|ib|hfi|qib|roce|bnxt_re|irdma|opa)\w*\d\w*", re.I)


@dataclass
class _Device:
    """Device of the subnet: a switch, channel adapter or router."""

    kind: str
    description: str
    # By port number: the other end's device and port, and the rest of the line.
    ports: dict[int, tuple[str, int, str]] = field(default_factory=dict)


def read(said: str, source: str, rate_bps: int | None = None) -> Cabling:
    """Return the cabling in an `ibnetdiscover` output; links without a rate count as `rate_bps`."""
    devices, warned = _devices(said, source)
    switches = {}
    for guid, device in devices.items():
        if device.kind == "Switch":
            switches[guid] = device.description or guid
            if managed := _MANAGED.fullmatch(device.description):
                unit = managed[2].removesuffix("/U1").removesuffix("U1")
                switches[guid] = f"{managed[1]}-{unit}" if unit else managed[1]
    hosts = {
        # `node1` in `node1 HCA-1` or `node1 mlx5_0`: adapters with one host name belong to one
        # host.
        guid: tidy(_host_word(device.description) or guid)
        for guid, device in devices.items()
        if device.kind == "Ca" and _AGGREGATION not in device.description
    }
    names = distinct(switches.items()) | hosts
    dropped = [guid for guid in devices if guid not in names]
    # Each cable once: from the host's end, else from the end with the lower GUID.
    cables = []
    for guid, device in devices.items():
        for number, (other, other_port, rest) in device.ports.items():
            if guid not in names or other not in names:
                continue
            is_host, to_host = device.kind == "Ca", devices[other].kind == "Ca"
            first = (guid, number) < (other, other_port) if is_host == to_host else is_host
            if first:
                bps = _bps(rest, f"{source}: {names[guid]} port {number}", rate_bps)
                cables.append(Cable(names[guid], names[other], bps, str(other_port)))
    remarks = [f"Left out: {devices[guid].description or guid}." for guid in dropped]
    if warned:
        remarks.append(f"ibnetdiscover warned {warned} times: devices may be missing.")
    inside = dict.fromkeys(hosts.values())
    outside = tuple(names[guid] for guid in switches)
    return Cabling(source, tuple(inside), outside, tuple(cables), tuple(remarks))


def _devices(said: str, source: str) -> tuple[dict[str, _Device], int]:
    """Return the devices by GUID, and the number of warnings among the lines.

    Raise ConfigurationError for lines of another program, for an incomplete output, and for two
    hosts with one name.
    """
    devices: dict[str, _Device] = {}
    current: _Device | None = None
    warned = 0
    for number, line in enumerate(said.splitlines(), 1):
        line = line.strip()
        if not line or line.startswith(("#", *_WORDS_OF_FILE)) or _CHASSIS.fullmatch(line):
            continue
        head, port = _NODE.fullmatch(line), _PORT.fullmatch(line)
        if head and head[2] in devices:
            raise ConfigurationError(f"{source}:{number}: device {head[2]} is described twice")
        if head:
            current = devices[head[2]] = _Device(head[1], head[3] or "")
        elif port and current is not None and int(port[1]) in current.ports:
            raise ConfigurationError(
                f"{source}:{number}: port {port[1]} has a second neighbour, but a port has only one"
            )
        elif port and current is not None:
            current.ports[int(port[1])] = (port[2], int(port[3]), port[4])
        elif _WARNING.match(line):
            warned += 1
        else:
            raise ConfigurationError(
                f"{source}:{number}: {line[:40]!r} is not a line of ibnetdiscover's output: give "
                "the output of plain `ibnetdiscover > FILE`"
            )
    if not devices:
        raise ConfigurationError(
            f"{source}: the file has no InfiniBand device: is it the output of ibnetdiscover?"
        )
    # Both ends must list each cable alike; the file is incomplete otherwise.
    for guid, device in devices.items():
        for number, (other, other_port, _) in device.ports.items():
            if other not in devices or other_port not in devices[other].ports:
                missing = other if other not in devices else f"{other}[{other_port}]"
                raise ConfigurationError(
                    f"{source}: {device.description or guid} port {number} leads to {missing}, "
                    "which the file does not describe: the file is incomplete"
                )
            back = devices[other].ports[other_port]
            if back[:2] != (guid, number):
                raise ConfigurationError(
                    f"{source}: {device.description or guid} port {number} leads to "
                    f"{other}[{other_port}], which leads to {back[0]}[{back[1]}]: the file "
                    "contradicts itself"
                )
    seen: set[str] = set()  # hosts share a name mostly if both are called localhost
    for device in devices.values():
        said = device.description
        if device.kind == "Ca" and _AGGREGATION not in said and _host_word(said):
            if said in seen:
                raise ConfigurationError(
                    f"{source}: two channel adapters have the node description {said!r}: give each "
                    "host its own (rdma-ndd), so that the hosts differ"
                )
            seen.add(said)
    return devices, warned


def _host_word(description: str) -> str:
    """Return the host name in a channel adapter's description; "" where there is none."""
    named = _OF_HOST.fullmatch(description.strip("'\""))
    if named:
        return named[1]
    return "" if _MAKER.match(description) else description.split(" ")[0].strip("'\"")


def _bps(rest: str, where: str, rate_bps: int | None) -> int:
    found = _RATE.search(rest.rpartition('"')[2])
    if found is None and rate_bps is not None:
        return rate_bps
    if found is None:
        raise ConfigurationError(f"{where}: the link has no rate, such as 4xHDR: give --rate")
    if found[2] not in LANE_BPS:
        raise ConfigurationError(
            f"{where}: {found[0]} is not a known rate (known: {', '.join(LANE_BPS)})"
        )
    if not 1 <= int(found[1]) <= _MOST_LANES:
        raise ConfigurationError(f"{where}: {found[0]}: a link has 1 to {_MOST_LANES} lanes")
    return int(found[1]) * LANE_BPS[found[2]]
