# SPDX-License-Identifier: BSD-3-Clause
"""`switchbench topology import`: a site's topology file of what its devices say of their cables."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from ClusterShell.NodeSet import RESOLVER_NOGROUP, NodeSet, NodeSetException

from ..base import quantities
from ..base.errors import ConfigurationError
from ..base.node_names import padded, refuse_many
from ..base.source import read_regular
from ..topology import cabling, ibnetdiscover
from ..topology.cabling import Cabling
from ..topology.fabric import Fabric, from_topology
from ..topology.form import TopologyError
from ..topology.topology import parse

WORD = "import"
_MOST_BYTES = 64 << 20  # a subnet of 10,000 hosts has 10 MB
_OPTIONS = ("lldp", "ibnetdiscover", "interface", "switches", "rate", "out")
_OF_FILES = ("prices", "svg", "json")
_OF_LLDP = ("interface", "switches")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of `import`, beside those of `topology FILE`."""
    group = parser.add_argument_group("with `import`")
    sources = group.add_mutually_exclusive_group()
    sources.add_argument(
        "--lldp", metavar="FILE", nargs="+",
        help="`lldpcli -f json show neighbors details` of each host: a file HOST.json each, or all "
        "in one (or in -) with `==> HOST <==` before each, or `HOST: ` before each line",
    )  # fmt: skip
    sources.add_argument("--ibnetdiscover", metavar="FILE", help="its output, or -")
    group.add_argument(
        "--interface", metavar="PATTERN", action="append",
        help="only these interfaces of hosts, of LLDP's, e.g. 'ens*'",
    )  # fmt: skip
    group.add_argument("--switches", metavar="NODES", help="whose LLDP outputs are of switches")
    group.add_argument("--rate", metavar="RATE", help="of links whose rate is not said, e.g. 25G")
    group.add_argument("--out", metavar="FILE", type=Path, help="write there, not to the terminal")


def refuse(args: argparse.Namespace) -> None:
    """Refuse options of `import` without it."""
    given = [name for name in _OPTIONS if getattr(args, name) is not None]
    if given:
        raise ConfigurationError(f"--{given[0]} goes with `switchbench topology import` only")


def _refuse_others(args: argparse.Namespace) -> None:
    """Refuse what would do nothing here."""
    given = [name for name in _OF_FILES if getattr(args, name)]
    if given:
        raise ConfigurationError(
            f"--{given[0]} does not go with `import`: say it to `switchbench topology` with the "
            "file that is made"
        )
    given = [name for name in _OF_LLDP if getattr(args, name) is not None]
    if given and args.ibnetdiscover is not None:
        raise ConfigurationError(f"--{given[0]} goes with --lldp only")


def main(args: argparse.Namespace) -> int:
    """Read, check and write a topology."""
    _refuse_others(args)
    rate_bps = _rate_bps(args.rate)
    if args.ibnetdiscover is not None:
        found = ibnetdiscover.read(_text(args.ibnetdiscover), _name(args.ibnetdiscover), rate_bps)
    elif args.lldp is not None:
        found = _of_lldp(args, rate_bps)
    else:
        raise ConfigurationError(
            "topology import: say of what: --lldp FILE or --ibnetdiscover FILE"
        )
    keys = cabling.cabling_document(found)
    fabric = _checked(found, keys)
    written = cabling.cabling_text(found, keys)
    if args.out is None:
        print(written, end="")
    else:
        write(args.out, written)
    for remark in found.remarks:
        print(remark, file=sys.stderr)
    counts = f"{len(fabric.hosts)} hosts, {len(fabric.switches)} switches"
    cables = sum(link.cables for link in fabric.links)
    print(f"{args.out or found.source}: {counts}, {cables} cables", file=sys.stderr)
    return 0


def _of_lldp(args: argparse.Namespace, rate_bps: int | None) -> Cabling:
    texts: dict[str, str] = {}
    for path in args.lldp:
        name = "" if path == "-" else Path(path).stem
        for host, text in cabling.lldp_outputs(_text(path), name, _name(path)).items():
            if host in texts:
                raise ConfigurationError(f"{_name(path)}: is a second output of {host}")
            texts[host] = text
    source = _name(args.lldp[0]) if len(args.lldp) == 1 else f"{len(args.lldp)} files of LLDP"
    choice = cabling.LldpOptions(
        switches=_nodes(args.switches),
        interfaces=tuple(args.interface or ("*",)),
        rate_bps=rate_bps,
    )
    return cabling.read_lldp(texts, source, choice)


def _checked(found: Cabling, keys: dict[str, object]) -> Fabric:
    """Return what the file says, as whoever reads it sees it; refused where that is no network."""
    try:
        return from_topology(parse(keys, found.source, where=found.source))
    except TopologyError as error:
        raise ConfigurationError(error.messages[0]) from None


def _rate_bps(text: str | None) -> int | None:
    if text is None:
        return None
    try:
        bps = quantities.link_rate_bps(text)
    except ValueError as error:
        raise ConfigurationError(f"--rate: {error}") from None
    if not bps:
        raise ConfigurationError("--rate: a real link has a rate")
    return bps


def _nodes(text: str | None) -> frozenset[str]:
    try:
        refuse_many(text or "")
        return frozenset(NodeSet(padded(text or ""), resolver=RESOLVER_NOGROUP))
    except (ValueError, NodeSetException) as error:
        raise ConfigurationError(f"--switches: is no possible node set: {error}") from None


def _name(path: str) -> str:
    return "standard input" if path == "-" else path


def _text(path: str) -> str:
    try:
        if path == "-":
            content = sys.stdin.read(_MOST_BYTES + 1)
        else:
            content = read_regular(Path(path), _MOST_BYTES).decode()
    except OSError as error:
        raise ConfigurationError(f"{path}: can't be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise ConfigurationError(f"{_name(path)}: is not text") from None
    if len(content) > _MOST_BYTES:
        raise ConfigurationError(f"{_name(path)}: is too large: more than {_MOST_BYTES >> 20} MiB")
    return content


def write(path: Path, text: str) -> None:
    """Write a file that was asked for; refused in a sentence where it can't be written."""
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise ConfigurationError(f"{path}: can't be written: {error.strerror}") from None
