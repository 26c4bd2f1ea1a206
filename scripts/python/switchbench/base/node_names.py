# SPDX-License-Identifier: BSD-3-Clause
"""Limits on the number of names in a ClusterShell node set, counted without expanding it.

`NodeSet` and `RangeSet` expand every range on reading, so that a typing error such as
`n[1-999999999]` would fill the memory.
"""

from __future__ import annotations

import math
import os
import re
import shlex
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import yaml
from ClusterShell.NodeSet import RESOLVER_NOGROUP, NodeSet, NodeSetException
from ClusterShell.NodeUtils import GroupResolverError

from .errors import ConfigurationError, shown
from .source import read_text

NAMES_MOST = 65_536
"""Maximum names in one text, which is also the maximum of a network's ranks."""

_BRACKETS_MOST = 8

# A part of a node set lies between two operators that are outside of brackets.
_PART = re.compile(r"(?:\[[^\]]*\]?|[^,!&^\[])+")
_BRACKETS = re.compile(r"\[([^\]]*)\]")


HOST = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,252}")


def refuse_strange(names: Iterable[str]) -> None:
    """Raise ValueError for a text that cannot be a host's name.

    Names become words of command lines (ssh, srun, ip) and are shown on terminals.
    """
    for name in names:
        if not HOST.fullmatch(name):
            raise ValueError(
                f"{shown(name)} can't be a host's name: letters, digits, '.', '_' and '-', with a "
                "letter or digit first"
            )


def refuse_many(names: str, most: int = NAMES_MOST) -> None:
    """Raise ValueError for a node set of more than `most` names; other texts pass unchecked.

    Names that a set removes (`!`, `&`) count too, because they would be expanded as well.
    """
    parts = _PART.findall(names)
    if max((part.count("[") for part in parts), default=0) > _BRACKETS_MOST:
        raise ValueError(f"{shown(names)} has more than {_BRACKETS_MOST} ranges in brackets")
    if sum(math.prod(map(count, _BRACKETS.findall(part))) for part in parts) > most:
        raise ValueError(f"{shown(names)} stands for more than {most} names, the most allowed")


def node_set(names: str, most: int = NAMES_MOST, resolver: Any = RESOLVER_NOGROUP) -> NodeSet:
    """Return the NodeSet that a text describes; raise ValueError for an invalid text.

    Without a resolver, `@group` is not expanded, because ClusterShell would run the commands that
    this machine's configuration has for groups.
    """
    refuse_many(names, most)
    try:
        return NodeSet(padded(names), resolver=resolver)
    except (NodeSetException, GroupResolverError) as error:
        raise ValueError(f"is not a node set, such as node[1-4]: {error}") from None


def padded(names: str) -> str:
    """Return a node set in which the numbers of each range have equal width, as ClusterShell needs.

    Slurm, pdsh and Flux write `node[08-101]` for node08 to node99, node100 and node101. In
    `node[005,4]` Flux means node004 and Slurm node4: this set raises ValueError.
    """
    return _BRACKETS.sub(lambda found: f"[{_same_width(found[1])}]", names)


def _same_width(ranges: str) -> str:
    spans, width = [], 0
    for span in ranges.split(","):
        bounds, slash, step = span.partition("/")
        first, dash, last = bounds.partition("-")
        if not first.isdecimal() or (dash and not last.isdecimal()):
            return ranges  # ClusterShell reports the mistake
        if len(first) < width:
            raise ValueError(
                f'"[{ranges}]" mixes numbers of different widths, such as 01 and 1, which Slurm '
                "and Flux expand differently: write all numbers with one width"
            )
        if first.startswith("0") and len(first) > 1:
            width = width or len(first)
        while dash and first.startswith("0") and len(first) < len(last) and not slash:
            spans.append(f"{first}-{'9' * len(first)}")
            first = f"1{'0' * len(first)}"
        spans.append(f"{first}{dash}{last}{slash}{step}")
    return ",".join(spans)


def count(ranges: str) -> int:
    """Return the number of elements in ranges such as `1-3,7` or `1-16/5`; duplicates count twice.

    Text that RangeSet rejects counts as 1.
    """
    found = 0
    for text in ranges.split(","):
        bounds, _, step = text.partition("/")
        first, dash, last = bounds.partition("-")
        size = 1
        with suppress(ValueError):
            size = (int(last) - int(first)) // max(1, int(step or 1)) + 1 if dash else 1
        found += max(1, size)
    return found


# --- hostfile -------------------------------------------------------------------------------------
# Reading hosts from files of other programs.


_SECTION = re.compile(r"\[([\w.-]+)(:(?:vars|children))?\]$")
_HOST = re.compile(r"([A-Za-z0-9](?:\[[\d,-]+\]|[\w.-])*)(?::\d+)?")
_NODE_SET = re.compile(r"[A-Za-z0-9](?:\[[\d,-]+\]|[\w.,-])*")
_SETTING = re.compile(r"[A-Za-z_]\w*=.*")
_FORMS = "HOST, HOST:SLOTS, HOST KEY=VALUE..., a node list, or an Ansible inventory"


def hosts_of_option(hosts: str) -> str:
    """Return the node set that `--hosts` gives: the hosts of a file in its order, or the text.

    Raises
    ------
    ConfigurationError
        For a file name without a file, or a directory; with the line that has no known form; or
        where the file has no host.
    """
    # unlike Path.is_dir, this accepts a node set that is too long for a path
    if os.path.isdir(hosts):
        raise ConfigurationError(f"--hosts {hosts}: is a directory: name a file of hosts")
    if not os.path.exists(hosts):
        outside = re.sub(r"\[[^]]*\]", "", hosts)  # node[0-8/2] is a node set
        if "/" in outside or outside.endswith((".txt", ".ini", ".yaml", ".yml")):
            raise ConfigurationError(f"--hosts {hosts}: no such file")
        return hosts
    path = Path(hosts)
    text = read_text(path)
    if path.suffix in (".yml", ".yaml"):
        try:
            found = list(_of_groups(yaml.safe_load(text)))
        except RecursionError:
            raise ConfigurationError(
                f"--hosts {path}: its groups are nested too deep or contain themselves: list the "
                "hosts instead"
            ) from None
        except (yaml.YAMLError, AttributeError, ValueError):  # ValueError: 2026-13-01 as a date
            raise ConfigurationError(
                f"--hosts {path}: the file is not an Ansible inventory, such as `all: "
                f"{{hosts: {{node1: }}}}`"
            ) from None
    else:
        found = list(_of_lines(path, text))
    if not found:
        raise ConfigurationError(f"--hosts {path}: the file names no host")
    # Inventories set a host's address at its first mention, and list the host in several groups.
    # ssh connects to this address instead of the name.
    addresses = {name: address for name, address in found if address}
    return ",".join(dict.fromkeys(addresses.get(name, name) for name, _ in found))


def _of_groups(groups: dict[str, Any] | None) -> Iterator[tuple[str, str]]:
    """Yield (name, address or "") for each host in Ansible groups and in the groups below them."""
    for group in (groups or {}).values():
        for name, settings in ((group or {}).get("hosts") or {}).items():
            yield _ranges(str(name)), str((settings or {}).get("ansible_host", ""))
        yield from _of_groups((group or {}).get("children"))


def _of_lines(path: Path, text: str) -> Iterator[tuple[str, str]]:
    kind = ""
    for number, line in enumerate(text.splitlines(), 1):
        line = re.split(r"(?:^|\s)[#;]", line)[0].strip()
        section = _SECTION.fullmatch(line)
        if section:
            kind = section[2] or ""
        if not line or section or kind:
            continue
        words = []
        with suppress(ValueError):  # a quotation mark is not closed
            words = shlex.split(_ranges(line))
        if len(words) == 1 and _NODE_SET.fullmatch(words[0]):
            yield words[0], ""
            continue
        host, settings = _HOST.fullmatch("".join(words[:1])), words[1:]
        if host is None or not all(map(_SETTING.fullmatch, settings)):
            raise ConfigurationError(
                f"--hosts {path}, line {number}: {shown(line)} is invalid; valid lines are {_FORMS}"
            )
        named = [one.partition("=")[2] for one in settings if one.startswith("ansible_host=")]
        yield host[1], "".join(named[-1:])


def _ranges(text: str) -> str:
    """Return a text with Ansible's ranges, node[01:16], in ClusterShell's form, node[01-16]."""
    return re.sub(r"\[(\d+):(\d+)\]", r"[\1-\2]", text)
