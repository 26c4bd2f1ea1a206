# SPDX-License-Identifier: BSD-3-Clause
"""The user's tests with every default, and the points of each: one setting of everything.

A user's test becomes one for each network (or `concurrent_networks`) and transport, because
defaults differ by them; its points follow in the order ranks, sizes, loads, sweep (the keys as
written, the last one fastest). Repeats come innermost and are the compiler's.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from typing import TypeVar

from ..base import transports
from ..base.errors import MISTAKES_MOST, ConfigurationError, Mistakes
from ..base.model import Load, Port, Site
from ..base.source import Document, KeyPath
from ..base.words import listed, meant, shown, unknown_key
from ..search.suites import SUITES
from ..search.suites.declaration import Subtest, Suite, SuiteParameters, Variant, extra_share
from . import rules
from .fields import Strict, read_flows
from .rules import DPDK_RULES, VERBS_RULES, operation_of, option_defaults, without_effect
from .schema import (
    Configuration,
    DpdkOptions,
    Pattern,
    ResolvedSettings,
    Settings,
    Transport,
    validate_value,
)

SHORT_PROFILE = "quick"  # the profile with a lab's parameters
_UNKNOWN_FRAME_MAX = 1518
_PATTERN: Pattern = "flows"
# Of a suite's parameters: min, max, whether only whole numbers mean something.
_SECONDS = (0.001, 2_592_000.0, False)  # 1 ms, as of each window, to 30 days
_LIMITS = {
    "width": (1e-6, 0.5, False),
    "ndr_loss_percent": (0, 50, False),
    "pdr_loss_percent": (0, 50, False),
    "exceed_percent": (0, 99, False),
    "loss_step_percent": (0.01, 10.0, False),
    "oversubscription_percent": (0.1, 100.0, False),
    "latency_repeats": (1, 10_000, True),
    "repeats": (1, 10_000, True),
    "burst_repeats": (1, 10_000, True),
    "addresses_max": (2, 1 << 24, True),
    "learning_fps": (1, 1e9, True),
}


def parameters_of(document: Document, model: Configuration, profile: str) -> SuiteParameters:
    """Return the suite's parameters: the document's, or short ones, and what the user changes."""
    if model.suite is None:
        return SuiteParameters()
    suite = SUITES[model.suite]
    found = suite.lab if profile == SHORT_PROFILE else suite.parameters
    names = suite.uses
    for name, value in (model.suite_parameters or {}).items():
        path = ("suite_parameters", name)
        if name not in names:
            raise document.problem(path, unknown_key(name, names, said=True))
        least, most, whole = _LIMITS.get(name, _SECONDS)
        if value <= 0 < least:
            raise document.problem(path, f"found {shown(value)}, but a number above 0 is needed")
        if not least <= value <= most or (whole and value != int(value)):
            number = "a whole number" if whole else "a number"
            raise document.problem(
                path, f"found {shown(value)}, but {number} from {least:g} to {most:g} is needed"
            )
        found = replace(found, **{name: value})
    for name in ("initial_s", "incast_s"):
        value = getattr(found, name)
        if name in names and value > found.trial_s:
            raise document.problem(
                ("suite_parameters",),
                f"{name}, {value:g}, is longer than trial_s, {found.trial_s:g}",
            )
    if "duration_sum_s" in names and found.duration_sum_s < found.trial_s:
        raise document.problem(
            ("suite_parameters",),
            f"duration_sum_s, {found.duration_sum_s:g}, is shorter than trial_s, {found.trial_s:g}",
        )
    return found


def subtest_names(document: Document, model: Configuration) -> list[str]:
    """Return the subtests of a suite whose user writes no tests, in the document's order."""
    assert model.suite is not None
    suite = SUITES[model.suite]
    if model.subtests is None:
        able = model.device_reset is not None
        return [
            each.name for each in suite.subtests if not each.by_name and (able or not each.resets)
        ]
    if not model.subtests:
        raise document.problem(("subtests",), "is an empty list: without it, all subtests run")
    for number, name in enumerate(model.subtests):
        _known(document, ("subtests", number), suite, name)
        if name in model.subtests[:number]:
            raise document.problem(("subtests", number), f"duplicate value {shown(name)}")
        if suite.subtest(name).resets and model.device_reset is None:
            raise document.problem(
                ("subtests", number),
                f"{name} needs the command that resets the device: "
                "device_reset: {command: [program, argument]}",
            )
    return [each.name for each in suite.subtests if each.name in model.subtests]


CHOSEN_BY_SUITES = frozenset({"repeat", "window"})


def refuse_without_suite(document: Document, model: Configuration) -> None:
    """ConfigurationError for a suite's keys where there is none, or none that has them."""
    for path, text in _suite_refusals(document, model):
        raise document.problem(path, text)


def _suite_refusals(document: Document, model: Configuration) -> Iterator[tuple[KeyPath, str]]:
    suite = SUITES[model.suite] if model.suite is not None else None
    named = suite is not None and not suite.is_free
    tests = [(("tests", number), test) for number, test in enumerate(model.tests or [])]
    places: list[KeyPath] = [(), *(path for path, _ in tests)]
    if suite is None:
        for key in ("subtests", "suite_parameters"):
            if getattr(model, key) is not None:
                yield (key,), "has no effect without `suite`"
    else:
        if not named and model.subtests is not None:
            yield ("subtests",), f"has no effect with suite {suite.name}"
        if model.remeasure:
            text = f"has no effect with suite {suite.name}, which repeats what the tester limited"
            yield ("remeasure",), text
        instead = "trial_s, repeats" if "repeats" in suite.uses else "trial_s"
        for path in [(*place, key) for place in places for key in sorted(CHOSEN_BY_SUITES)]:
            if path in document.marks:
                text = f"has no effect: suite {suite.name} chooses how long and how often; give "
                yield path, f"{text}it {instead} in suite_parameters"
    for place, test in tests:
        for key in ("subtest", "variant"):
            if getattr(test, key) is not None and not named:
                yield (*place, key), "has no effect without a document's `suite`"
        if named and test.subtest is None:
            yield (*place, "subtest"), f"is missing: which of suite {model.suite}?"
        if suite is not None and test.subtest is not None:
            _known(document, (*place, "subtest"), suite, test.subtest)
    for path in [(*place, "pattern") for place in places if named]:
        if path in document.marks:
            yield path, f"has no effect: suite {model.suite} chooses what is sent"


def _known(document: Document, path: KeyPath, suite: Suite, name: str) -> None:
    names = [each.name for each in suite.subtests]
    if name in suite.refused:
        raise document.problem(path, f"{name} of {suite.document} is {suite.refused[name]}")
    if name not in names:
        possible = [*names, *suite.refused]
        raise document.problem(
            path,
            f"{suite.name} has no {shown(name)}; subtests are {listed(names)}"
            f"{meant(name, possible)}",
        )


def possible_transports(names: Sequence[str]) -> tuple[str, ...]:
    """Return those that send frames at a load."""
    return tuple(name for name in names if transports.of(name).frames)


@dataclass(frozen=True)
class SuitePlace:
    """Where a test of a suite stands, and what it has there."""

    document: Document
    path: KeyPath
    ports: Sequence[Port]
    transport: str

    def problem(self, text: str, *key: str) -> ConfigurationError:
        """Return the error at the test, or at one of its keys."""
        return self.document.problem((*self.path, *key), text)


def expanded(
    place: SuitePlace,
    suite_name: str,
    subtest_name: str,
    given: Settings,
    parameters: SuiteParameters,
) -> Iterator[Settings]:
    """Yield the settings of each variant of a test's subtest on these ports."""
    suite = SUITES[suite_name]
    subtest = suite.subtest(subtest_name)
    count = _count(place, suite, subtest, given)
    assert subtest.variants is not None
    variants = list(subtest.variants(count))
    wanted = given.variant
    names = [variant.name for variant in variants]
    if wanted is not None and wanted not in names:
        text = f"{subtest.name} has no {shown(wanted)}; variants are {listed(names)}"
        raise place.problem(text, "variant")
    if subtest.needs_raw and not transports.of(place.transport).raw:
        raise place.problem(
            f"{subtest.name} of {suite.document} needs raw frames, which {place.transport} does "
            "not send: use dpdk"
        )
    if subtest.two_transports and not transports.of(place.transport).kernel:
        raise place.problem(
            f"{subtest.name} of {suite.document} sends by TCP and by UDP to one interface, as "
            f"{place.transport} does not: use udp"
        )
    own = dict(subtest.keys)
    if subtest.frame_options:
        own[place.transport] = dict(subtest.frame_options)
    layer = rules.merge(_suite_layer(place, suite, given), Settings.model_validate(own))
    for variant in variants:
        if wanted in (None, variant.name):
            yield rules.merge(layer, given, _flows(variant, count, parameters))


def _suite_layer(place: SuitePlace, suite: Suite, given: Settings) -> Settings:
    most = min((port.frame_limit(place.transport) or _UNKNOWN_FRAME_MAX) for port in place.ports)
    sizes = suite.sizes
    if given.profile == SHORT_PROFILE:
        sizes = suite.lab_sizes or sizes
    loads = rules.axis(given.load, given.loads) or []
    if len(loads) > 1 or any(load.percent is None for load in loads):
        raise place.problem(f"suite {suite.name} searches up to one load in percent of line rate")
    if given.imix is not None:
        raise place.problem(f"suite {suite.name} measures one size at a time", "imix")
    percent = suite.load_percent
    return Settings.model_construct(
        warmup=200_000_000,
        frame_sizes=[size for size in sizes if size <= most],
        loads=None if percent is None else [Load(percent=percent)],
    )


def _count(place: SuitePlace, suite: Suite, subtest: Subtest, given: Settings) -> int:
    """Return how many of the ports take part: as many as fit the subtest's steps."""
    ranks = given.ranks or [len(place.ports)]
    if len(ranks) > 1:
        raise place.problem("a suite takes one number of ports", "ranks")
    there = min(ranks[0], len(place.ports))
    count: int = there - there % subtest.ports_step
    if count < subtest.ports_min:
        raise place.problem(
            f"{subtest.name} of {suite.document} ({subtest.section}) needs "
            f"{subtest.ports_min} ports, and network {place.ports[0].network} has {there}: "
            "choose others with `subtests`",
        )
    return count


def _flows(variant: Variant, count: int, parameters: SuiteParameters) -> Settings:
    shares: list[float | None] = [100.0 if variant.extra else None] * len(variant.flows)
    if variant.extra:
        shares[-variant.extra :] = [100 * extra_share(parameters)] * variant.extra
    return Settings.model_construct(
        pattern=_PATTERN,
        flows=tuple((*ends, share) for ends, share in zip(variant.flows, shares, strict=True)),
        variant=variant.name,
        ranks=[count],
    )


# --- tests ----------------------------------------------------------------------------------------
# The user's tests with every default, and the points of each: one setting of everything.


Options = TypeVar("Options", bound=Strict)

TRIALS_MOST = 20_000  # of 3 s each they would take 17 hours


def trials_of(test: ResolvedSettings) -> int:
    """Return an upper bound: a swept key may change nothing at some points."""
    axes = (test.ranks, test.loads, test.frame_sizes, test.message_sizes)
    lists = [*(test.sweep or {}).values(), *axes]
    return math.prod(len(each) for each in lists if each) * test.repeat.most


# What runs when a configuration has no tests: every pattern as it comes.
ALL_PATTERNS: tuple[Pattern, ...] = ("chain", "pairs", "aapc", "ring")
SUITE_PATTERNS: tuple[Pattern, ...] = (
    "pairs",
)  # ... and when it has a suite: RFC 2544's both directions


@dataclass(frozen=True)
class _Entry:
    """One of the user's tests and where it stands."""

    path: KeyPath
    own: Settings


def resolve(
    document: Document, model: Configuration, site: Site, parameters: SuiteParameters,
    mistakes: Mistakes, wrong: Sequence[KeyPath],
) -> list[ResolvedSettings]:  # fmt: skip
    """Return all tests with their defaults.

    What can't be or changes nothing is added to the mistakes; tests in which something is `wrong`
    already are left out.
    """
    top = _layer(model, (), document)
    resolver = _Resolver(document, site, top, model.suite, parameters)
    tests: list[ResolvedSettings] = []
    all_idle: list[dict[str, str]] = []
    trials = 0
    for entry in entries_of(document, model, mistakes):
        if entry.path and any(path[: len(entry.path)] == entry.path for path in wrong):
            continue
        if len(mistakes.found) > MISTAKES_MOST:
            break
        made: list[ResolvedSettings] = []
        with mistakes.collected():
            made = list(resolver.tests(entry))
        trials += sum(map(trials_of, made))
        if trials > TRIALS_MOST:
            raise document.problem(
                ("tests",),
                f"loads, sizes, ranks, sweeps and repeats multiply to {trials} trials and more; "
                f"at most {TRIALS_MOST} are allowed",
            )
        with mistakes.collected():
            idle = [_idle(test) for test in made]
            _refuse_idle(entry.own, idle, entry.path, document)
            tests += made
            all_idle += idle
    if not mistakes.found:
        _refuse_idle(resolver.top, all_idle, (), document)
    return tests


def _layer(model: Settings, path: KeyPath, document: Document) -> Settings:
    """Return the settings given in one mapping; two forms of the same setting are refused."""
    given = model.given()
    for forms in rules.FAMILIES:
        both = [form for form in forms if form in given]
        if len(both) > 1:
            raise document.problem((*path, both[1]), f"stands beside {both[0]}: give one of them")
    own = {key: value for key, value in given.items() if key in Settings.model_fields}
    if isinstance(model.flows, str):
        file = (document.folder / Path(model.flows).expanduser()).resolve()
        with document.at((*path, "flows")):
            own["flows"] = read_flows(file)
    values = Settings().model_copy(update=own)
    if model.sweep is None:
        return values
    plain = set(rules.flat_keys(values.model_copy(update={"sweep": None})))
    sweep: dict[str, list[object]] = {}
    for key, swept in model.sweep.items():
        where = (*path, "sweep", key)
        if key in plain:
            raise document.problem(where, f"stands beside {key}: give one of them")
        sweep[key] = [
            _swept_value(key, value, (*where, i), document) for i, value in enumerate(swept)
        ]
        word = rules.SWITCHES.get(key)
        if word in sweep[key]:
            raise document.problem(where, f"{word} is not swept here: write one test for each")
    return values.model_copy(update={"sweep": sweep})


def _swept_value(key: str, value: object, where: KeyPath, document: Document) -> object:
    """Return one value under `sweep`, checked as if it stood at its own key."""
    refusal = rules.sweep_refusal(key)
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
    found: object = getattr(model, head)
    return getattr(found, tail) if dot else found


def entries_of(document: Document, model: Configuration, mistakes: Mistakes) -> list[_Entry]:
    """Return the user's tests, those left out in which a setting is given twice."""
    if model.tests is None and model.suite is not None and not SUITES[model.suite].is_free:
        names = subtest_names(document, model)
        return [_Entry((), Settings.model_construct(subtest=name)) for name in names]
    if model.tests is None:
        every = ALL_PATTERNS if model.suite is None else SUITE_PATTERNS
        patterns = every if model.pattern is None else (model.pattern,)
        return [_Entry((), Settings.model_construct(pattern=name)) for name in patterns]
    if not model.tests:
        raise document.problem(("tests",), "is an empty list: without it, all patterns run")
    entries = []
    for i, test in enumerate(model.tests):
        if len(mistakes.found) > MISTAKES_MOST:
            break
        with mistakes.collected():
            entries.append(_Entry(("tests", i), _layer(test, ("tests", i), document)))
    return entries


@dataclass(frozen=True)
class _Resolver:
    """Makes the tests of the user's entries; `top` is the layer below each of them."""

    document: Document
    site: Site
    top: Settings
    suite: str | None
    parameters: SuiteParameters

    def tests(self, entry: _Entry) -> Iterator[ResolvedSettings]:
        """Yield one test for each network, or several together, and transport."""
        given = rules.merge(self.top, entry.own)
        if given.pattern is None and given.subtest is None:
            raise self.document.problem((*entry.path, "pattern"), "is missing: what is to be sent?")
        chosen = [
            (networks, transport)
            for networks in self._networks(entry, given)
            for transport in self._transports(entry, given, networks)
        ]
        load = rules.default_load(self.site, (transport for _, transport in chosen))
        for networks, transport in chosen:
            for values in self._variants(entry, given, networks, transport):
                yield self._test(entry, values, networks, transport, load)

    def _variants(
        self, entry: _Entry, given: Settings, networks: tuple[str, ...], transport: str
    ) -> Iterator[Settings]:
        """Yield the settings as given; of a document's suite, those of each of its matrices."""
        if self.suite is None or given.subtest is None:
            yield given
            return
        profile = given.profile or rules.profile_name(self.site)
        ports = self.site.networks[networks[0]]
        there = SuitePlace(self.document, entry.path, ports, transport)
        whole = given.model_copy(update={"profile": profile})
        yield from expanded(there, self.suite, given.subtest, whole, self.parameters)

    def _networks(self, entry: _Entry, given: Settings) -> list[tuple[str, ...]]:
        """Return the networks of each test: one, or several together."""
        form = rules.form_of(given, rules.NETWORK)
        named = rules.axis(given.network, given.networks or given.concurrent_networks)
        if form is None or named is None:
            wanted, networks = _asked_transports(given), self.site.networks
            usable = [
                name
                for name, ports in networks.items()
                if wanted is None or any(_lacking(ports, one) is None for one in wanted)
            ]
            return [(name,) for name in usable or networks]
        where = (*entry.path, form)
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

    def _transports(self, entry: _Entry, given: Settings, networks: tuple[str, ...]) -> list[str]:
        ports = tuple(port for name in networks for port in self.site.networks[name])
        wanted = _asked_transports(given)
        preferred = transports.PREFERRED_BY_STEPS if _by_steps(given) else transports.PREFERRED
        if self.suite is not None:
            preferred = possible_transports(preferred)
        usable = [name for name in wanted or preferred if _lacking(ports, name) is None]
        if wanted is None:
            if not usable:
                why = f": {transports.BY_STEPS_ONLY}" if _by_steps(given) else ""
                raise self.document.problem(
                    entry.path, f"no transport for it is on all ports of {networks[0]}{why}"
                )
            return [_unasked(ports, usable)]
        asked = rules.form_of(given, rules.NETWORK) is not None
        for transport in wanted:
            port = _lacking(ports, transport)
            if port is not None and (asked or not usable):
                form = rules.form_of(given, rules.TRANSPORT) or "transports"
                raise self.document.problem(
                    (*entry.path, form),
                    f"{port.name} in network {port.network} has no {transport}"
                    f"{_why_not(port, transport)} (it has {listed(port.transports)})",
                )
        return usable

    def _test(
        self,
        entry: _Entry,
        given: Settings,
        networks: tuple[str, ...],
        transport: str,
        load: Load,
    ) -> ResolvedSettings:
        pattern = given.pattern
        assert pattern is not None  # of a suite's subtest, its variant's
        profile = given.profile or rules.profile_name(self.site)
        values = rules.merge(
            rules.defaults(self.site, pattern, transport, profile),
            rules.STEP_DEFAULTS if rules.by_steps(pattern, given) else Settings(),
            given,
        )
        together = given.concurrent_networks is not None
        ports = [port for name in networks for port in self.site.networks[name]]
        limits = [port.frame_limit(transport) for port in ports]
        later: dict[str, object] = {
            "sweep": self._sweep(entry) or None,
            "network": None if together else networks[0],
            "concurrent_networks": list(networks) if together else None,
            "transport": transport,
            **dict.fromkeys(("networks", "transports")),
            "path": entry.path,
            "frame_max": min(limits) if all(limits) else 0,
            "queue_bytes": self.site.smallest_queue_bytes,
        }
        if values.ranks is None and not together:
            later["ranks"] = [len(ports)]
        if pattern == "pairs" and values.groups is None and self.site.groups:
            later["groups"] = tuple((name,) for name in self.site.groups)
        retransmits = transports.of(transport).byte_stream
        if retransmits and values.traffic == "transfer" and given.drain_max is None:
            later["drain_max"] = max(values.drain_max, rules.TCP_TRANSFER_DRAIN)
        if rules.form_of(given, rules.LOAD) is None:
            later["loads"] = [rules.BURST_LOAD if values.traffic == "burst" else load]
        return values.model_copy(update=later)

    def _sweep(self, entry: _Entry) -> dict[str, list[object]]:
        """Return the sweep; a test's plain key wins over a sweep at the top."""
        plain = set(rules.flat_keys(entry.own.model_copy(update={"sweep": None})))
        above = self.top.sweep or {}
        return {k: values for k, values in above.items() if k not in plain} | (
            entry.own.sweep or {}
        )


def _by_steps(given: Settings) -> bool:
    return given.pattern is not None and rules.by_steps(given.pattern, given)


def _asked_transports(given: Settings) -> list[Transport] | None:
    return rules.axis(given.transport, given.transports)


def _lacking(ports: tuple[Port, ...], transport: str) -> Port | None:
    """Return a port that has not the transport."""
    return next((port for port in ports if transport not in port.transports), None)


def _unasked(ports: tuple[Port, ...], usable: list[str]) -> str:
    """Return the first; but whether a shared interface has RDMA is for its node to find out."""
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


def _idle(test: ResolvedSettings) -> dict[str, str]:
    """Return keys that change nothing at any point of a test, and why."""
    found: list[dict[str, str]] = []
    sweep = test.sweep or {}
    for chosen in product(*sweep.values()):
        values = rules.assigned(test, dict(zip(sweep, chosen, strict=True)))
        found.append(without_effect(values))
    always = set.intersection(*(set(idle) for idle in found))
    return {key: reason for key, reason in found[0].items() if key in always}


def _refuse_idle(
    given: Settings, idle: list[dict[str, str]], path: KeyPath, document: Document
) -> None:
    """Refuse the first given key that is idle in every one of the tests made of it."""
    for key in rules.flat_keys(given):
        reasons = [found.get(key) or found.get(rules.head(key)) for found in idle]
        if reasons and all(reasons):
            swept = ("sweep", key) if key in (given.sweep or {}) else tuple(key.split("."))
            raise document.problem((*path, *swept), str(reasons[0]))


# --- points --------------------------------------------------------------------------------------


def points(test: ResolvedSettings) -> Iterator[ResolvedSettings]:
    """Yield the points of a test in order: ranks, sizes, loads, sweep."""
    found = [(place, point) for values in combinations(test) for place, point in _axes(values)]
    # The sort is stable: within one place on the axes the sweep keeps its order.
    yield from (point for _, point in sorted(found, key=lambda item: item[0]))


def combinations(test: ResolvedSettings) -> list[ResolvedSettings]:
    """Return a test's settings at each point of its sweep.

    Without keys that change nothing there, each once.
    """
    found: dict[str, ResolvedSettings] = {}
    sweep = test.sweep or {}
    for chosen in product(*sweep.values()):
        swept = dict(zip(sweep, chosen, strict=True))
        idle = without_effect(rules.assigned(test, swept))
        swept = {
            key: value for key, value in swept.items() if not {key, rules.head(key)} & idle.keys()
        }
        if repr(swept) not in found:
            values = rules.assigned(test.model_copy(update={"sweep": None}), swept)
            found[repr(swept)] = _completed_settings(values, swept)
    return list(found.values())


def _completed_settings(given: ResolvedSettings, swept: Mapping[str, object]) -> ResolvedSettings:
    """Return settings without idle ones, and with the defaults that depend on others."""
    idle = without_effect(given)
    # A suite's measurements replace some that a test always has.
    changes: dict[str, object] = dict.fromkeys(
        key
        for key in idle
        if "." not in key and not ResolvedSettings.model_fields[key].is_required()
    )
    traffic = rules.traffic(given.pattern, given) if "traffic" in idle else given.traffic
    changes |= {"traffic": traffic, "swept": swept}
    for name in rules.NESTED:
        options = getattr(given, name)
        lost = [key.partition(".")[2] for key in idle if key.startswith(f"{name}.")]
        if options is not None and lost and name not in idle:
            changes[name] = options.model_copy(update=dict.fromkeys(lost))
    values = given.model_copy(update=changes)
    if values.interval is None:
        values = values.model_copy(update={"interval": rules.interval_ns(values.window)})
    frames = rules.catch_up(given.queue_bytes, traffic)
    late = {} if f"{given.transport}.catch_up" in idle else {"catch_up": frames}
    for name in ("dpdk", "packet", "udp"):
        options = getattr(values, name)
        if options is not None:
            own = option_defaults(DPDK_RULES, options) if name == "dpdk" else {}
            values = values.model_copy(update={name: _completed(options, late | own)})
            return values.model_copy(update=_frame_sizes(values, rules.frame_header(values)))
    if values.verbs is not None:
        operation: dict[str, object] = {"operation": operation_of(values.verbs)}
        operation |= option_defaults(VERBS_RULES, values.verbs)
        verbs = _completed(values.verbs, operation)
        sizes = _message_sizes(values, rules.verbs_message_bytes(verbs, values.frame_max))
        return values.model_copy(update={"verbs": verbs} | sizes)
    return values


def _completed(options: Options, defaults: Mapping[str, object]) -> Options:
    """Options with the defaults of those that nobody gave."""
    return options.model_copy(
        update={key: value for key, value in defaults.items() if getattr(options, key) is None}
    )


def _frame_sizes(values: ResolvedSettings, header: DpdkOptions) -> dict[str, object]:
    """Return the sizes of a transport of frames that nobody gave: frames', or messages'."""
    if rules.carries_messages(values.transport, values.traffic):
        return _message_sizes(values, rules.FRAME_MESSAGE_BYTES)
    if rules.form_of(values, rules.FRAMES):
        return {}
    return {"frame_sizes": rules.frame_sizes(values.profile, header, values.frame_max)}


def _message_sizes(values: ResolvedSettings, each_bytes: int) -> dict[str, object]:
    """Return the size of messages, where it is the default's to choose."""
    given = rules.form_of(values, rules.MESSAGES) or values.scatter is not None
    if given or values.pattern in rules.SIZELESS:
        return {}
    return {"message_sizes": [each_bytes]}


def _axes(
    values: ResolvedSettings,
) -> Iterator[tuple[tuple[int, ...], ResolvedSettings]]:
    """Yield the points of one combination of the sweep, each with its place on the axes."""
    ranks: Sequence[int | None] = values.ranks or [None]
    # Ping-pong has no load: the next one begins when the last is back.
    loads = rules.axis(values.load, values.loads) or [Load(percent=100.0)]
    axes = product(enumerate(ranks), enumerate(_sizes(values)), enumerate(loads))
    for (i, count), (j, sizes), (k, load) in axes:
        chosen = {"ranks": count and [count], "sizes": sizes, "load": load, "loads": None}
        yield (i, j, k), values.model_copy(update=chosen)


def _sizes(values: ResolvedSettings) -> list[tuple[int, ...]]:
    if values.scatter is not None:
        return [(values.scatter.sizes[1],)]
    if values.pattern in rules.SIZELESS:
        return [(0,)]
    if rules.carries_messages(values.transport, values.traffic):
        found = rules.axis(values.message_size, values.message_sizes)
    elif values.imix is not None:
        return [values.imix]
    else:
        found = rules.axis(values.frame_size, values.frame_sizes)
    return [(size,) for size in found or ()]


@dataclass(frozen=True)
class PointPlace:
    """A point of a test in its document."""

    document: Document
    point: ResolvedSettings

    def path(self, keys: str) -> KeyPath:
        """Return where a setting was given: in its test, else at the top, else the test itself.

        `keys`: one, or several with spaces; of each, all forms of the setting are looked for.
        """
        return next(iter(self._given(keys)), self.point.path)

    def given(self, key: str) -> bool:
        """Return whether the user wrote a setting anywhere."""
        return bool(self._given(key))

    def problem(self, keys: str, text: str) -> ConfigurationError:
        """Return the error at a setting."""
        return self.document.problem(self.path(keys), text)

    def _given(self, keys: str) -> list[KeyPath]:
        """Return the places of the settings, dotted below options; the one that wins first."""
        candidates: list[KeyPath] = []
        forms = [form for key in keys.split() for form in rules.family(key)]
        for base in (self.point.path, ()):
            for form in forms:
                candidates += [(*base, "sweep", form), (*base, *form.split("."))]
        return [candidate for candidate in candidates if candidate in self.document.marks]
