# SPDX-License-Identifier: BSD-3-Clause
"""What nodes say of themselves and their ports before the first trial, checked."""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Iterable, Mapping, Sequence

from nacl.exceptions import CryptoError
from nacl.public import PublicKey, SealedBox

from ...base.errors import ConfigurationError, RunError
from ...plan.documents import PROTOCOL, peers_document
from ...records.record_forms import Record

PAIRS_SHOWN = 6

_NO_ADDRESSES = ("", "00:00:00:00:00:00")


def peers(hellos: Sequence[Record], key: bytes) -> dict[str, object]:
    """The `peers` document: where all are, and the run's key for each alone to read."""
    addresses = [hello["control"] for hello in hellos]
    return peers_document(addresses, [_sealed(hello, key) for hello in hellos])


def _sealed(hello: Record, key: bytes) -> str:
    try:
        sealed = SealedBox(PublicKey(b64decode(hello["key"]))).encrypt(key)
    except (CryptoError, ValueError) as error:
        raise RunError(f"{hello['node']} sent no usable key: {error}") from error
    return b64encode(sealed).decode()


def check_versions(hellos: Iterable[Record]) -> None:
    """Refuses nodes that speak another protocol, or are not all of one version."""
    versions: dict[str, str] = {}
    for hello in hellos:
        if hello.get("protocol") != PROTOCOL:
            raise ConfigurationError(
                f"{hello['node']} speaks protocol {hello.get('protocol')}, this command "
                f"{PROTOCOL}: install the same version of Switchbench on both"
            )
        versions.setdefault(str(hello.get("version")), hello["node"])
    if len(versions) > 1:
        found = ", ".join(f"{node} has {version}" for version, node in versions.items())
        raise ConfigurationError(f"the nodes' engines differ in version: {found}")


def check_addresses(opened: Iterable[Record], networks: Mapping[str, str]) -> None:
    """Refuses two ports of one network with the same address: frames would go astray."""
    owners: dict[tuple[str, str], str] = {}
    for record in opened:
        port = record["port"]
        for kind in ("mac", "ipv4", "ipv6"):
            address = record.get(kind)
            if not address or address in _NO_ADDRESSES:
                continue
            owner = owners.setdefault((networks.get(port, ""), address.lower()), port)
            if owner != port:
                raise ConfigurationError(f"{owner} and {port} have the same address {address}")


def unreachable(records: Sequence[Record]) -> str:
    """Which trials were not started for which pairs: the first ones by name, all in the summary."""
    trials = sorted({record["trial"] for record in records})
    pairs = sorted({(record["src"], record["dst"]) for record in records})
    shown = ", ".join(f"{src} -> {dst}" for src, dst in pairs[:PAIRS_SHOWN])
    more = f" and {len(pairs) - PAIRS_SHOWN} more" if len(pairs) > PAIRS_SHOWN else ""
    words = "trials" if len(trials) > 1 else "trial"
    return f"no load in {words} {', '.join(map(str, trials))}: no probe got through {shown}{more}"
