# SPDX-License-Identifier: BSD-3-Clause
"""What results were measured with, as flat words, and which of the differences are the question.

A switch, its firmware, the site and the transport are what one compares: they are named. A window,
a load or a seed that differs makes two other measurements: it is said, and the status is 2.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from ..base import format

Settings = dict[str, str]

ABSENT = "-"

# Of a test: they change how long or how often is measured, not what.
_NO_MATTER = {
    "repeat", "profile", "interval", "connectivity_check", "flood_limit", "drain_timeout",
    "drain_max", "cooldown", "loads", "frame_sizes", "message_sizes", "load", "ranks", "network",
    "networks", "transport", "transports", "pattern", "imix",
}  # fmt: skip
# What makes the matrix: cases that differ in one of these are not beside each other.
MATRIX = ("pattern", "ranks", "traffic", "network", "size", "load", "transport")
TRANSPORT, NETWORK, SIZE, LOAD = "transport", "network", "size", "load"


@dataclass(frozen=True)
class Differing:
    """One setting that is not the same in all results; `of`: whose, empty for the whole run."""

    of: str
    setting: str
    values: tuple[str, ...]  # in the results' order

    @property
    def sentence(self) -> str:
        """For a person."""
        where = f"{self.of}: " if self.of else ""
        return f"{where}{self.setting} is {' and '.join(self.values)}"


def of_plan(plan: Mapping[str, Any], tests: list[Any]) -> Settings:
    """Return all that a plan was measured with.

    Who sends to whom and how much first, then the rest.

    `tests`: of the configuration as understood; a plan knows the number of its own.
    """
    load = plan["intended_load"]
    found = {
        "pattern": str(plan["pattern"]),
        **{name: _word(value) for name, value in plan["parameters"].items()},
        "ranks": str(plan["ranks"]),
        "traffic": str(plan["traffic"]),
        NETWORK: str(plan["network"]),
        SIZE: format.size(plan),
        LOAD: ABSENT if load is None else f"{load:g}%",
        TRANSPORT: str(plan["transport"]),
    }
    if plan["concurrent_networks"]:
        found["concurrent_networks"] = ", ".join(plan["concurrent_networks"])
    number = plan["test"]
    given = tests[number] if number < len(tests) and isinstance(tests[number], dict) else {}
    for name, value in given.items():
        if name not in _NO_MATTER and name not in plan["parameters"]:
            found |= {key: word for key, word in flat(value, name) if key not in found}
    return found


def matrix(settings: Settings, plan: Mapping[str, Any]) -> Settings:
    """Of these settings those that say which matrix it is, at which size and load."""
    names = (*MATRIX, "concurrent_networks", *plan["parameters"])
    return {name: value for name, value in settings.items() if name in names}


def of_run(summary: Mapping[str, Any], configuration: Mapping[str, Any]) -> Settings:
    """Return what the run was made on: switch, cables, site, versions, machine."""
    run = summary.get("run") or {}
    found: Settings = {}
    found |= dict(flat(configuration.get("about") or {}, "about"))
    site = configuration.get("site") or {}
    if isinstance(site, dict) and "lab" in site:
        site = {"kind": "the lab file's", **site}
    found |= dict(flat(site if isinstance(site, dict) else {"file": site}, "site"))
    found |= dict(flat(run.get("versions") or {}, "version"))
    machine = run.get("machine") or {}
    found |= dict(flat({key: machine.get(key) for key in ("host", "cpu", "cpus")}, "machine"))
    return found


def differing(of: str, all_settings: list[Settings], without: set[str]) -> Iterator[Differing]:
    """Yield the settings that are not the same in all, in the order of the first that has them."""
    names = dict.fromkeys(name for settings in all_settings for name in settings)
    for name in names:
        values = tuple(settings.get(name, ABSENT) for settings in all_settings)
        if name not in without and len(set(values)) > 1:
            yield Differing(of, name, values)


def flat(value: Any, path: str) -> Iterator[tuple[str, str]]:
    """`site.control.heartbeat_timeout`: `2s`; a mapping's keys and a list's mappings by number."""
    if isinstance(value, Mapping):
        for key, inner in value.items():
            yield from flat(inner, f"{path}.{key}")
    elif isinstance(value, list) and any(isinstance(inner, Mapping) for inner in value):
        for number, inner in enumerate(value):
            yield from flat(inner, f"{path}.{number}")
    elif value is not None:
        yield path, _word(value)


def _word(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list):
        return ", ".join(map(_word, value))
    return f"{value:g}" if isinstance(value, float) else str(value)
