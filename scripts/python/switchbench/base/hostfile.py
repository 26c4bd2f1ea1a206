# SPDX-License-Identifier: BSD-3-Clause
"""Read the hosts of files for other programs.

A host a line, hostfiles of MPI, node lists of Slurm and PBS, inventories of Ansible (INI and YAML).
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import yaml

from .errors import ConfigurationError
from .source import read_text
from .words import shown

_SECTION = re.compile(r"\[([\w.-]+)(:(?:vars|children))?\]$")
_HOST = re.compile(r"([A-Za-z0-9](?:\[[\d,-]+\]|[\w.-])*)(?::\d+)?")
_NODE_SET = re.compile(r"[A-Za-z0-9](?:\[[\d,-]+\]|[\w.,-])*")
_SETTING = re.compile(r"[A-Za-z_]\w*=.*")
_FORMS = "HOST, HOST:SLOTS, HOST KEY=VALUE..., a node list, or an Ansible inventory"


def named(hosts: str) -> str:
    """Return the node set that `--hosts` gives: of the file that it names, else itself.

    Raises
    ------
    ConfigurationError
        Where it can only be a file and there is none.
    """
    if os.path.isdir(hosts):  # unlike Path's, it takes a node set that is too long for a path
        raise ConfigurationError(f"--hosts {hosts}: is a directory: name a file of hosts")
    if os.path.exists(hosts):
        return node_set(Path(hosts))
    outside = re.sub(r"\[[^]]*\]", "", hosts)  # node[0-8/2] is a node set
    if "/" in outside or outside.endswith((".txt", ".ini", ".yaml", ".yml")):
        raise ConfigurationError(f"--hosts {hosts}: no such file")
    return hosts


def node_set(path: Path) -> str:
    """Return the hosts of a file as a node set, each once, in the file's order.

    `ansible_host` wins over the name of its line, because ssh reaches it.

    Raises
    ------
    ConfigurationError
        With the line that is in no form known here; or where there is no host.
    """
    text = read_text(path)
    if path.suffix in (".yml", ".yaml"):
        try:
            hosts = list(_of_groups(yaml.safe_load(text)))
        except RecursionError:
            raise ConfigurationError(
                f"--hosts {path}: its groups are too deep, or in themselves: list the hosts instead"
            ) from None
        except (yaml.YAMLError, AttributeError, ValueError):  # ValueError: 2026-13-01 as a date
            raise ConfigurationError(
                f"--hosts {path}: it is no Ansible inventory: `all: {{hosts: {{node1: }}}}`"
            ) from None
    else:
        hosts = list(_of_lines(path, text))
    if not hosts:
        raise ConfigurationError(f"--hosts {path}: the file names no host")
    # Inventories set the address of a host where it is first named, and name it in several groups.
    addresses = {name: address for name, address in hosts if address}
    return ",".join(dict.fromkeys(addresses.get(name, name) for name, _ in hosts))


def _of_groups(groups: dict[str, Any] | None) -> Iterator[tuple[str, str]]:
    """Yield name and address ("": none) of the hosts of groups and of the groups below them."""
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
        with suppress(ValueError):  # a quotation mark that is not closed
            words = shlex.split(_ranges(line))
        if len(words) == 1 and _NODE_SET.fullmatch(words[0]):
            yield words[0], ""
            continue
        host, settings = _HOST.fullmatch("".join(words[:1])), words[1:]
        if host is None or not all(map(_SETTING.fullmatch, settings)):
            raise ConfigurationError(
                f"--hosts {path}, line {number}: {shown(line)} is in no form known here: {_FORMS}"
            )
        named = [one.partition("=")[2] for one in settings if one.startswith("ansible_host=")]
        yield host[1], "".join(named[-1:])


def _ranges(text: str) -> str:
    """Return Ansible's node[01:16] as the node set node[01-16]."""
    return re.sub(r"\[(\d+):(\d+)\]", r"[\1-\2]", text)
