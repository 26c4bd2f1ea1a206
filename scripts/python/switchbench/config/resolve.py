# SPDX-License-Identifier: BSD-3-Clause
"""From the user's tests to points: one setting each of everything, in a fixed order.

A user's test becomes one `ResolvedTest` for each network (or `concurrent_networks`) and transport,
because defaults differ by them; its points follow in the order ranks, sizes, loads, sweep (the keys
as written, the last one fastest). Repeats come innermost and are the compiler's.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

from ..base import transports
from ..base.model import Port, Site
from ..base.source import Document, KeyPath
from ..base.words import listed, meant, shown
from . import profiles, settings, steps, suites
from .amount import refuse_many, trials_of
from .flow_file import FlowLine, read_flows
from .point import ResolvedTest
from .schema import Configuration, Settings
from .settings import Values
from .validate import validate_value

# What runs when a configuration has no tests: every pattern as it comes.
ALL_PATTERNS = ("chain", "pairs", "aapc", "ring")
SUITE_PATTERNS = ("pairs",)  # ... and when it has a suite: RFC 2544's both directions
FREE_SUITE = "ndr-pdr"  # whose patterns its user may choose


@dataclass(frozen=True)
class _Entry:
    """One of the user's tests and where it stands."""

    path: KeyPath
    own: Values


def resolve(document: Document, model: Configuration, site: Site) -> list[ResolvedTest]:
    """All tests with their defaults; ConfigurationError for what can't be or changes nothing."""
    suites.refuse_without_suite(document, model)
    resolver = _Resolver(document, site, _layer(model, (), document), model.suite)
    tests: list[ResolvedTest] = []
    all_idle: list[dict[str, str]] = []
    trials = 0
    for entry in _entries(document, model):
        made = list(resolver.tests(entry))
        trials += sum(map(trials_of, made))
        refuse_many(trials, document)
        idle = [_idle(test) for test in made]
        _refuse_idle(entry.own, idle, entry.path, document)
        tests += made
        all_idle += idle
    _refuse_idle(resolver.top, all_idle, (), document)
    return tests


def _layer(model: Settings, path: KeyPath, document: Document) -> Values:
    """The settings given in one mapping; two forms of the same setting are refused."""
    values = {key: value for key, value in model.given().items() if key in Settings.model_fields}
    for forms in settings.FAMILIES:
        both = [form for form in forms if form in values]
        if len(both) > 1:
            raise document.problem((*path, both[1]), f"stands beside {both[0]}: give one of them")
    for name in (*settings.NESTED, "scatter"):
        if name in values:
            values[name] = values[name].given()
    if isinstance(values.get("flows"), str):
        values["flows"] = _listed_flows(values["flows"], (*path, "flows"), document)
    plain = set(settings.flat_keys({key: v for key, v in values.items() if key != "sweep"}))
    for key, swept in values.get("sweep", {}).items():
        where = (*path, "sweep", key)
        if key in plain:
            raise document.problem(where, f"stands beside {key}: give one of them")
        values["sweep"][key] = [
            _swept_value(key, value, (*where, i), document) for i, value in enumerate(swept)
        ]
        word = steps.SWITCHES.get(key)
        if word in values["sweep"][key]:
            raise document.problem(where, f"{word} is not swept here: write one test for each")
    return values


def _listed_flows(name: str, where: KeyPath, document: Document) -> tuple[FlowLine, ...]:
    """The flows of a file, whose relative path begins at the configuration's folder."""
    try:
        return read_flows((document.folder / Path(name).expanduser()).resolve())
    except ValueError as error:
        raise document.problem(where, str(error)) from None


def _swept_value(key: str, value: Any, where: KeyPath, document: Document) -> Any:
    """One value under `sweep`, checked as if it stood at its own key."""
    refusal = settings.sweep_refusal(key)
    if refusal:
        raise document.problem(where[:-1], f"is not swept here: {refusal}")
    head, dot, tail = key.partition(".")
    model = validate_value(
        Settings,
        {head: {tail: value} if dot else value},
        document,
        lambda location: (
            where if location[:1] == (head,) and head in Settings.model_fields else where[:-1]
        ),
    )
    found = getattr(model, head)
    return getattr(found, tail) if dot else found


def _entries(document: Document, model: Configuration) -> list[_Entry]:
    if model.tests is None and model.suite not in (None, FREE_SUITE):
        return [_Entry((), {"subtest": name}) for name in suites.subtest_names(document, model)]
    if model.tests is None:
        every = ALL_PATTERNS if model.suite is None else SUITE_PATTERNS
        patterns = every if model.pattern is None else (model.pattern,)
        return [_Entry((), {"pattern": name}) for name in patterns]
    if not model.tests:
        raise document.problem(("tests",), "is an empty list: without it, all patterns run")
    return [
        _Entry(("tests", i), _layer(test, ("tests", i), document))
        for i, test in enumerate(model.tests)
    ]


@dataclass(frozen=True)
class _Resolver:
    """Makes the tests of the user's entries; `top` is the layer below each of them."""

    document: Document
    site: Site
    top: Values
    suite: str | None

    def tests(self, entry: _Entry) -> Iterator[ResolvedTest]:
        """One test for each network, or several together, and transport."""
        given = settings.merge(self.top, entry.own)
        if "pattern" not in given and "subtest" not in given:
            raise self.document.problem((*entry.path, "pattern"), "is missing: what is to be sent?")
        for networks in self._networks(entry, given):
            for transport in self._transports(entry, given, networks):
                for values in self._variants(entry, given, networks, transport):
                    yield self._test(entry, values, networks, transport)

    def _variants(
        self, entry: _Entry, given: Values, networks: tuple[str, ...], transport: str
    ) -> Iterator[Values]:
        """The settings as given; of a document's suite, those of each of its matrices."""
        if self.suite is None or "subtest" not in given:
            yield given
            return
        profile = given.get("profile") or profiles.profile_name(self.site)
        ports = self.site.networks[networks[0]]
        there = suites.Place(self.document, entry.path, ports, transport)
        yield from suites.expanded(there, self.suite, given | {"profile": profile})

    def _networks(self, entry: _Entry, given: Values) -> list[tuple[str, ...]]:
        """The networks of each test: one, or several together."""
        form = next((form for form in settings.FAMILIES[0] if form in given), None)
        if form is None:
            return _possible_networks(given, self.site)
        where = (*entry.path, form)
        named = [given[form]] if form == "network" else list(given[form])
        for i, name in enumerate(named):
            if name not in self.site.networks:
                raise self.document.problem(
                    where if form == "network" else (*where, i),
                    f"there is no network {shown(name)}; networks are {listed(self.site.networks)}"
                    f"{meant(name, self.site.networks)}",
                )
        if form != "concurrent_networks":
            return [(name,) for name in named]
        if len(named) < 2 or len(set(named)) < len(named):
            raise self.document.problem(where, "needs two or more different networks")
        return [tuple(named)]

    def _transports(self, entry: _Entry, given: Values, networks: tuple[str, ...]) -> list[str]:
        ports = tuple(port for name in networks for port in self.site.networks[name])
        wanted = settings.axis(given, "transport", "transports")
        preferred = transports.PREFERRED_BY_STEPS if _by_steps(given) else transports.PREFERRED
        if self.suite is not None:
            preferred = suites.possible_transports(preferred)
        usable = [name for name in wanted or preferred if _lacking(ports, name) is None]
        if wanted is None:
            if not usable:
                raise self.document.problem(
                    entry.path, f"no transport is on all ports of {networks[0]}"
                )
            return [_unasked(ports, usable)]
        asked = any(key in given for key in settings.FAMILIES[0])
        for transport in wanted:
            port = _lacking(ports, transport)
            if port is not None and (asked or not usable):
                form = "transport" if "transport" in given else "transports"
                raise self.document.problem(
                    (*entry.path, form),
                    f"{port.name} in network {port.network} has no {transport}"
                    f"{_why_not(port, transport)} (it has {listed(port.transports)})",
                )
        return usable

    def _test(
        self, entry: _Entry, given: Values, networks: tuple[str, ...], transport: str
    ) -> ResolvedTest:
        pattern = given["pattern"]
        profile = given.get("profile") or profiles.profile_name(self.site)
        defaults = profiles.defaults(self.site, pattern, transport, profile)
        if steps.by_steps(pattern, given):
            defaults |= profiles.STEP_DEFAULTS
        values = settings.merge(defaults, given)
        if pattern == "pairs" and "groups" not in values and self.site.groups:
            values["groups"] = tuple((name,) for name in self.site.groups)
        retransmits = transports.of(transport).byte_stream
        if retransmits and values["traffic"] == "transfer" and "drain_max" not in given:
            values["drain_max"] = max(values["drain_max"], profiles.TCP_TRANSFER_DRAIN)
        if values["traffic"] == "burst" and not any(form in given for form in settings.FAMILIES[4]):
            values["loads"] = [profiles.BURST_LOAD]
        values.pop("sweep", None)
        limits = [port.frame_max for name in networks for port in self.site.networks[name]]
        return ResolvedTest(
            path=entry.path,
            networks=networks,
            together="concurrent_networks" in given,
            transport=transport,
            values=values,
            sweep=self._sweep(entry),
            ports=min(len(self.site.networks[name]) for name in networks),
            frame_max=min(limits) if all(limits) else 0,
            smallest_queue_bytes=self.site.smallest_queue_bytes,
        )

    def _sweep(self, entry: _Entry) -> dict[str, list[Any]]:
        """The sweep; a test's plain key wins over a sweep at the top."""
        plain = set(settings.flat_keys({k: v for k, v in entry.own.items() if k != "sweep"}))
        above: dict[str, list[Any]] = self.top.get("sweep", {})
        own: dict[str, list[Any]] = entry.own.get("sweep", {})
        return {key: values for key, values in above.items() if key not in plain} | own


def _by_steps(given: Values) -> bool:
    return "pattern" in given and steps.by_steps(given["pattern"], given)


def _possible_networks(given: Values, site: Site) -> list[tuple[str, ...]]:
    """All networks that have one of the transports asked for; all when none has."""
    wanted = settings.axis(given, "transport", "transports")
    found: list[tuple[str, ...]] = [
        (name,)
        for name, ports in site.networks.items()
        if wanted is None or any(_lacking(ports, transport) is None for transport in wanted)
    ]
    return found or [(name,) for name in site.networks]


def _lacking(ports: tuple[Port, ...], transport: str) -> Port | None:
    """A port that has not the transport."""
    return next((port for port in ports if transport not in port.transports), None)


def _unasked(ports: tuple[Port, ...], usable: list[str]) -> str:
    """The first; but whether a shared interface has RDMA is for its node to find out."""
    sure = (name for name in usable if transports.of(name).byte_stream)
    if any(_is_shared_interface(port) for port in ports):
        return next(sure, usable[0])
    return usable[0]


def _is_shared_interface(port: Port) -> bool:
    return bool(port.engine.get("shared")) and not {"pci", "rdma", "vdev"} & set(port.engine)


def _why_not(port: Port, transport: str) -> str:
    if transports.of(transport).raw and _is_shared_interface(port):
        return ", as it is shared and has no `pci`"
    return f", as {port.why_these}" if port.why_these else ""


def _idle(test: ResolvedTest) -> dict[str, str]:
    """Keys that change nothing at any point of a test, and why."""
    found: list[dict[str, str]] = []
    for chosen in product(*test.sweep.values()):
        values = settings.assigned(test.values, dict(zip(test.sweep, chosen, strict=True)))
        found.append(settings.without_effect(values, test.pattern, test.transport))
    always = set.intersection(*(set(idle) for idle in found))
    return {key: reason for key, reason in found[0].items() if key in always}


def _refuse_idle(
    given: Values, idle: list[dict[str, str]], path: KeyPath, document: Document
) -> None:
    """Refuses the first given key that is idle in every one of the tests made of it."""
    for key in settings.flat_keys(given):
        reasons = [found.get(key) or found.get(settings.head(key)) for found in idle]
        if reasons and all(reasons):
            swept = ("sweep", key) if key in given.get("sweep", {}) else tuple(key.split("."))
            raise document.problem((*path, *swept), str(reasons[0]))
