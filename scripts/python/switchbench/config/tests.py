# SPDX-License-Identifier: BSD-3-Clause
"""Resolution of the user's tests: every default, and the settings at which each test runs.

A user's test becomes one test per network (or `concurrent_networks`) and transport, because
defaults depend on them. A test runs at several points (combinations of settings), in the order
ranks, sizes, loads, sweep (the keys as written, the last one fastest). Repeats are innermost and
added by the compiler.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from itertools import product

from ..base import transports
from ..base.errors import ConfigurationError, listed, meant, shown, unknown_key
from ..base.model import SCHEDULE, Load, Port, Site
from ..base.source import Document, KeyPath
from ..search.suites import SUITES
from ..search.suites.declaration import SuiteParameters, extra_share
from . import rules
from .fields import Flow
from .rules import without_effect
from .schema import (
    PATTERNS,
    Configuration,
    ResolvedSettings,
    Settings,
    VerbsOptions,
    validate_value,
)

SHORT_PROFILE = "quick"  # profile with a lab's suite parameters
_UNKNOWN_FRAME_MAX = 1518


def parameters_of(document: Document, model: Configuration, profile: str) -> SuiteParameters:
    """Return the configured suite's parameters for a profile, with the user's changes."""
    if model.suite is None:
        return SuiteParameters()
    suite = SUITES[model.suite]
    found = suite.lab if profile == SHORT_PROFILE else suite.parameters
    limits = {each.name: each.metadata for each in fields(SuiteParameters)}
    for name, value in (model.suite_parameters or {}).items():
        path = ("suite_parameters", name)
        if name not in suite.uses:
            raise document.problem(path, unknown_key(name, suite.uses, said=True))
        least, most, whole = (limits[name][key] for key in ("min", "max", "whole"))
        if not least <= value <= most or (whole and value != int(value)):
            number = "a whole number" if whole else "a number"
            span = "above 0" if value <= 0 < least else f"from {least:g} to {most:g}"
            raise document.problem(path, f"found {shown(value)}, but {number} {span} is needed")
        found = replace(found, **{name: value})
    return found


CHOSEN_BY_SUITES = ("repeat", "window")


def refuse_without_suite(document: Document, model: Configuration) -> None:
    """Raise ConfigurationError for a key or subtest that the configured suite does not have."""
    suite = SUITES[model.suite] if model.suite is not None else None
    named = suite is not None and not suite.is_free
    tests = [(("tests", number, "subtest"), test) for number, test in enumerate(model.tests or [])]
    idle: list[tuple[tuple[str, ...], str]] = []  # keys, and the reason for having no effect
    if named:
        idle.append((("pattern",), f": suite {model.suite} chooses what is sent"))
    else:
        idle.append((("subtest", "variant"), " without a document's `suite`"))
    if suite is None:
        idle.append((("suite_parameters",), " without `suite`"))
    else:
        text = f" with suite {suite.name}, which repeats what the tester limited"
        idle.append((("remeasure",) if model.remeasure else (), text))
        instead = "trial_s, repeats" if "repeats" in suite.uses else "trial_s"
        text = f": suite {suite.name} chooses how long and how often; give it {instead}"
        idle.append((CHOSEN_BY_SUITES, f"{text} in suite_parameters"))
    for keys, why in idle:
        for path in [(*place, key) for place in [(), *(p[:2] for p, _ in tests)] for key in keys]:
            if path in document.marks:
                raise document.problem(path, f"has no effect{why}")
    for path, test in tests:
        if named and test.subtest is None:
            raise document.problem(path, f"is missing: name a subtest of suite {model.suite}")
        if suite is None or (name := test.subtest) is None:
            continue
        names = [each.name for each in suite.subtests]
        text = ""
        if name in suite.refused:
            text = f"{name} of {suite.document} is {suite.refused[name]}"
        elif name not in names:
            near = meant(name, [*names, *suite.refused])
            text = f"{suite.name} has no {shown(name)}; subtests are {listed(names)}{near}"
        elif suite.subtest(name).resets and model.device_reset is None:
            text = f"{name} needs the command that resets the device: "
            text += "device_reset: {command: [program, argument]}"
        if text:
            raise document.problem(path, text)


TRIALS_MOST = 20_000  # at 3 s each, 17 hours
# Patterns that run, with their defaults, if a configuration has no tests.
ALL_PATTERNS = ("chain", "pairs", "aapc", "ring")
SUITE_PATTERNS = ("pairs",)  # patterns with a suite: RFC 2544's traffic in both directions


def resolve(
    document: Document, model: Configuration, site: Site, parameters: SuiteParameters
) -> list[ResolvedSettings]:
    """Return the configuration's tests, one per network and transport, with their defaults.

    Raise ConfigurationError for an impossible value or a key without effect.
    """
    top = _layer(model, (), document)
    tests: list[ResolvedSettings] = []
    all_idle: list[dict[str, str]] = []
    trials = 0
    for path, own in _entries(document, model):
        made = list(_Resolver(document, site, top, model.suite, parameters, path, own).tests())
        for test in made:  # an upper bound: a swept key may have no effect at some points
            axes = (test.ranks, test.loads, test.frame_sizes, test.message_sizes)
            lists = [*(test.sweep or {}).values(), *axes]
            trials += math.prod(len(each) for each in lists if each) * test.repeat.most
        if trials > TRIALS_MOST:
            raise document.problem(
                ("tests",),
                f"loads, sizes, ranks, sweeps and repeats multiply to {trials} trials and more; "
                f"at most {TRIALS_MOST} are allowed",
            )
        idle = [always_idle(test) for test in made]
        _refuse_idle(own, idle, path, document)
        tests += made
        all_idle += idle
    _refuse_idle(top, all_idle, (), document)
    return tests


def _layer(model: Settings, path: KeyPath, document: Document) -> Settings:
    """Return the settings in one mapping; raise ConfigurationError for both `load` and `loads`."""
    given = model.given()
    for forms in rules.FAMILIES:
        both = [form for form in forms if form in given]
        if len(both) > 1:
            raise document.problem((*path, both[1]), f"stands beside {both[0]}: give one of them")
    own = {key: value for key, value in given.items() if key in Settings.model_fields}
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
    """Return one value of a sweep after the same check as a value of the swept key."""
    if refusal := rules.SWEEP_REFUSALS.get(key):
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


def _entries(document: Document, model: Configuration) -> list[tuple[KeyPath, Settings]]:
    """Return the user's tests with their paths; ConfigurationError for a setting given twice."""
    if model.tests is None and model.suite is not None and not SUITES[model.suite].is_free:
        return [
            ((), Settings.model_construct(subtest=each.name))
            for each in SUITES[model.suite].subtests
            if not each.by_name and (model.device_reset is not None or not each.resets)
        ]
    if model.tests is None:
        every = ALL_PATTERNS if model.suite is None else SUITE_PATTERNS
        patterns = every if model.pattern is None else (model.pattern,)
        return [((), Settings.model_construct(pattern=name)) for name in patterns]
    if not model.tests:
        raise document.problem(("tests",), "is an empty list: without it, all patterns run")
    return [
        (("tests", i), _layer(test, ("tests", i), document)) for i, test in enumerate(model.tests)
    ]


@dataclass(frozen=True)
class _Resolver:
    """Resolver of one test as the user wrote it, at `path`; `top` has the defaults below it."""

    document: Document
    site: Site
    top: Settings
    suite: str | None
    parameters: SuiteParameters
    path: KeyPath
    own: Settings

    def problem(self, text: str, *key: str | int) -> ConfigurationError:
        """Return the error at one of the test's keys, or at the same key of the top level."""
        own, top = self.own.given(), self.top.given()
        at_top = key[:1] and key[0] in top and key[0] not in own
        return self.document.problem((*(() if at_top else self.path), *key), text)

    def tests(self) -> Iterator[ResolvedSettings]:
        """Yield one test per network (or set of networks), transport and variant of a subtest."""
        given = rules.merge(self.top, self.own)
        if given.pattern is None and given.subtest is None:
            raise self.problem("is missing: name the pattern of this test", "pattern")
        chosen = [
            (networks, transport)
            for networks in self._networks(given)
            for transport in self._transports(given, networks)
        ]
        load = rules.default_load(self.site, [transport for _, transport in chosen])
        for networks, transport in chosen:
            variants: Iterator[Settings] = iter([given])
            if self.suite is not None and given.subtest is not None:
                variants = self._variants(given, self.site.networks[networks[0]], transport)
            for values in variants:
                yield self._test(values, networks, transport, load)

    def _variants(
        self, given: Settings, ports: Sequence[Port], transport: str
    ) -> Iterator[Settings]:
        """Yield the settings of each variant of a suite's subtest for the given ports."""
        suite, carrier = SUITES[str(self.suite)], transports.of(transport)
        subtest = suite.subtest(given.subtest)
        assert subtest.variants is not None
        given = given.model_copy(update={"profile": given.profile or rules.profile_name(self.site)})
        # The number of ports is the largest possible multiple of the subtest's step.
        ranks = given.ranks or [len(ports)]
        there = min(ranks[0], len(ports))
        count = there - there % subtest.ports_step
        loads = rules.axis(given.load, given.loads) or []
        text = ""
        if len(ranks) > 1:
            raise self.problem("a suite takes one number of ports", "ranks")
        what = f"{subtest.name} of {suite.document}"
        if count < subtest.ports_min:
            text = (
                f"{what} ({subtest.section}) needs {subtest.ports_min} ports, and network "
                f"{ports[0].network} has {there}: choose others with `tests`"
            )
        elif subtest.needs_raw and not carrier.raw:
            text = f"{what} needs raw frames, which {transport} does not send: use dpdk"
        elif subtest.two_transports and not carrier.kernel:
            text = (
                f"{what} sends by TCP and by UDP to one interface, as {transport} does not: use udp"
            )
        elif len(loads) > 1 or any(load.percent is None for load in loads):
            text = f"suite {suite.name} searches up to one load in percent of line rate"
        if text:
            raise self.problem(text)
        variants = list(subtest.variants(count))
        names = [variant.name for variant in variants]
        if given.variant is not None and given.variant not in names:
            text = f"{subtest.name} has no {shown(given.variant)}; variants are {listed(names)}"
            raise self.problem(text, "variant")
        if given.imix is not None:
            raise self.problem(f"suite {suite.name} measures one size at a time", "imix")
        sizes, percent = suite.sizes, suite.load_percent
        if given.profile == SHORT_PROFILE:
            sizes = suite.lab_sizes or sizes
        most = min((port.frame_limit(transport) or _UNKNOWN_FRAME_MAX) for port in ports)
        layer = Settings.model_construct(
            warmup=200_000_000,
            frame_sizes=[size for size in sizes if size <= most],
            loads=None if percent is None else [Load(percent=percent)],
        )
        own = dict(subtest.keys)
        if subtest.frame_options:
            own[transport] = dict(subtest.frame_options)
        layer = rules.merge(layer, Settings.model_validate(own), given)
        for variant in variants:
            if given.variant in (None, variant.name):
                shares = [100.0 if variant.extra else None] * len(variant.flows)
                if variant.extra:
                    shares[-variant.extra :] = [100 * extra_share(self.parameters)] * variant.extra
                flows = tuple(map(Flow, *zip(*variant.flows, strict=True), shares))
                chosen = Settings.model_construct(
                    pattern="flows", flows=flows, variant=variant.name, ranks=[count]
                )
                yield rules.merge(layer, chosen)

    def _networks(self, given: Settings) -> list[tuple[str, ...]]:
        """Return the network names of each resulting test: one, or several at once."""
        form, there = rules.form_of(given, rules.NETWORK), self.site.networks
        named = rules.axis(given.network, given.networks or given.concurrent_networks)
        if form is None or named is None:
            wanted = rules.axis(given.transport, given.transports)
            usable = [
                name
                for name, ports in there.items()
                if wanted is None or any(_lacking(ports, one) is None for one in wanted)
            ]
            return [(name,) for name in usable or there]
        for i, name in enumerate(named):
            if name not in there:
                text = f"there is no network {shown(name)}; networks are {listed(there)}"
                place = (form,) if form == "network" else (form, i)
                raise self.problem(f"{text}{meant(name, there)}", *place)
        if form != "concurrent_networks":
            return [(name,) for name in named]
        if len(named) < 2:
            raise self.problem("needs two or more networks", form)
        return [tuple(named)]

    def _transports(self, given: Settings, networks: tuple[str, ...]) -> list[str]:
        ports = tuple(port for name in networks for port in self.site.networks[name])
        by_steps = given.pattern is not None and rules.by_steps(given.pattern, given)
        wanted = rules.axis(given.transport, given.transports)
        preferred = transports.PREFERRED_BY_STEPS if by_steps else transports.PREFERRED
        if self.suite is not None:  # suites send frames at a load
            preferred = tuple(name for name in preferred if transports.of(name).frames)
        usable = [name for name in wanted or preferred if _lacking(ports, name) is None]
        if wanted is None:
            if not usable:
                why = f": {transports.BY_STEPS_ONLY}" if by_steps else ""
                raise self.problem(f"no transport for it is on all ports of {networks[0]}{why}")
            # Only the node can find out if a shared interface has RDMA: prefer TCP.
            sure = [name for name in usable if transports.of(name).byte_stream]
            plain = (
                port.engine.get("shared") and not {"pci", "rdma", "vdev"} & set(port.engine)
                for port in ports
            )
            return sure[:1] if sure and any(plain) else usable[:1]
        asked = rules.form_of(given, rules.NETWORK) is not None
        for transport in wanted:
            port = _lacking(ports, transport)
            if port is not None and (asked or not usable):
                why = f", as {port.why_these}" if port.why_these else ""
                if transports.of(transport).raw and port.engine.get("shared"):
                    why = ", as it is shared"
                raise self.problem(
                    f"{port.name} in network {port.network} has no {transport}{why} "
                    f"(it has {listed(port.transports)})",
                    rules.form_of(given, rules.TRANSPORT) or "transports",
                )
        return usable

    def _test(
        self, given: Settings, networks: tuple[str, ...], transport: str, load: Load
    ) -> ResolvedSettings:
        pattern, own = given.pattern, self.own
        assert pattern is not None  # for a suite's subtest, its variant's
        profile = given.profile or rules.profile_name(self.site)
        values = rules.merge(
            rules.defaults(self.site, pattern, transport, profile),
            rules.STEP_DEFAULTS if rules.by_steps(pattern, given) else Settings(),
            given,
        )
        together = given.concurrent_networks is not None
        ports = [port for name in networks for port in self.site.networks[name]]
        limits = [port.frame_limit(transport) for port in ports]
        # A key of the test overrides a sweep of this key at the top level.
        plain = set(rules.flat_keys(own.model_copy(update={"sweep": None})))
        above = {k: swept for k, swept in (self.top.sweep or {}).items() if k not in plain}
        later: dict[str, object] = {
            "sweep": above | (own.sweep or {}) or None,
            "network": None if together else networks[0],
            "concurrent_networks": list(networks) if together else None,
            "transport": transport,
            **dict.fromkeys(("networks", "transports")),
            "path": self.path,
            "frame_max": min(limits) if all(limits) else 0,
            "queue_bytes": self.site.smallest_queue_bytes,
        }
        if pattern == "pairs" and values.groups is None and self.site.groups:
            later["groups"] = tuple((name,) for name in self.site.groups)
        retransmits = transports.of(transport).byte_stream
        if retransmits and values.traffic == "transfer" and given.drain_max is None:
            later["drain_max"] = max(values.drain_max, rules.TCP_TRANSFER_DRAIN)
        if rules.form_of(given, rules.LOAD) is None:
            later["loads"] = [rules.BURST_LOAD if values.traffic == "burst" else load]
        return values.model_copy(update=later)


def _lacking(ports: tuple[Port, ...], transport: str) -> Port | None:
    """Return the first port that does not have the transport; None if all ports have it."""
    return next((port for port in ports if transport not in port.transports), None)


def _sweep_points(test: ResolvedSettings) -> Iterator[dict[str, object]]:
    sweep = test.sweep or {}
    return (dict(zip(sweep, chosen, strict=True)) for chosen in product(*sweep.values()))


def always_idle(test: ResolvedSettings) -> dict[str, str]:
    """Return the keys without effect for all swept values of a test, with the reasons."""
    found = [without_effect(rules.assigned(test, swept)) for swept in _sweep_points(test)]
    return {key: why for key, why in found[0].items() if all(key in idle for idle in found)}


def _refuse_idle(
    given: Settings, idle: list[dict[str, str]], path: KeyPath, document: Document
) -> None:
    """Raise ConfigurationError for a key of the user that has no effect in any resulting test."""
    for key in rules.flat_keys(given):
        reasons = [found.get(key) or found.get(key.partition(".")[0]) for found in idle]
        if reasons and all(reasons):
            swept = ("sweep", key) if key in (given.sweep or {}) else tuple(key.split("."))
            raise document.problem((*path, *swept), str(reasons[0]))


# --- points --------------------------------------------------------------------------------------


def points(test: ResolvedSettings) -> Iterator[ResolvedSettings]:
    """Yield a test's settings for each combination of ranks, size, load and swept values."""
    found = []
    for values in combinations(test):
        ranks: Sequence[int | None] = values.ranks or [None]
        # Ping-pong has no load: a message is sent when the previous one has returned.
        loads = rules.axis(values.load, values.loads) or [Load(percent=100.0)]
        axes = product(enumerate(ranks), enumerate(_sizes(values)), enumerate(loads))
        for (i, count), (j, sizes), (k, load) in axes:
            chosen = {"ranks": count and [count], "sizes": sizes, "load": load, "loads": None}
            found.append(((i, j, k), values.model_copy(update=chosen)))
    # The sort is stable: at one point of the axes the sweep keeps its order.
    yield from (point for _, point in sorted(found, key=lambda item: item[0]))


def combinations(test: ResolvedSettings) -> list[ResolvedSettings]:
    """Return a test's settings for each combination of its swept values.

    Keys without effect are removed, and equal results appear once.
    """
    found: dict[str, ResolvedSettings] = {}
    for every in _sweep_points(test):
        idle = without_effect(rules.assigned(test, every)).keys()
        swept = {k: value for k, value in every.items() if not {k, k.partition(".")[0]} & idle}
        if repr(swept) not in found:
            values = rules.assigned(test.model_copy(update={"sweep": None}), swept)
            found[repr(swept)] = _completed_settings(values, swept)
    return list(found.values())


def _completed_settings(given: ResolvedSettings, swept: Mapping[str, object]) -> ResolvedSettings:
    """Return settings without keys that have no effect, and with defaults that depend on others."""
    idle = without_effect(given)
    # Keys that every test needs stay set, even if a suite's measurements replace their values.
    changes: dict[str, object] = dict.fromkeys(
        key
        for key in idle
        if "." not in key and not ResolvedSettings.model_fields[key].is_required()
    )
    traffic = given.traffic
    if "traffic" in idle:
        traffic = SCHEDULE if rules.by_steps(given.pattern, given) else "stream"
    changes |= {"traffic": traffic, "swept": swept}
    values = given.model_copy(update=changes)
    if values.interval is None:
        values = values.model_copy(update={"interval": rules.interval_ns(values.window)})
    name = values.transport
    options = getattr(values, name)
    lost = [key.partition(".")[2] for key in idle if key.startswith(f"{name}.")]
    options = options.model_copy(update=dict.fromkeys(lost))
    own = {
        key: value
        for applies, keys, _ in rules.beside_others(options)
        for key, value in keys.items()
        if applies
    }
    each_bytes = rules.FRAME_MESSAGE_BYTES
    if isinstance(options, VerbsOptions):
        own["operation"] = rules.operation_of(options)
        each_bytes = rules.verbs_message_bytes(options, values.frame_max)
    elif transports.of(name).frames and f"{name}.catch_up" not in idle:
        own["catch_up"] = rules.catch_up(given.queue_bytes, traffic)
    values = values.model_copy(update={name: options.with_defaults(**own)})
    sizes: dict[str, object] = {}
    if rules.carries_messages(name, traffic):
        if not rules.form_of(values, rules.MESSAGES) and not PATTERNS[values.pattern].sizeless:
            sizes["message_sizes"] = [each_bytes]
    elif rules.form_of(values, rules.FRAMES) is None:
        header = rules.frame_header(values)
        sizes["frame_sizes"] = rules.frame_sizes(values.profile, header, values.frame_max)
    return values.model_copy(update=sizes)


def _sizes(values: ResolvedSettings) -> list[tuple[int, ...]]:
    if PATTERNS[values.pattern].sizeless:
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
    """Settings of one point of a test, with the document that errors refer to."""

    document: Document
    point: ResolvedSettings

    def path(self, keys: str) -> KeyPath:
        """Return the key path at which the user set a setting; else the path of the test.

        `keys` is one key, or several separated by spaces; all forms of each setting are looked up.
        """
        return next(iter(self._given(keys)), self.point.path)

    def given(self, key: str) -> bool:
        """Return true if the user set a setting in the test or at the top level."""
        return bool(self._given(key))

    def problem(self, keys: str, text: str) -> ConfigurationError:
        """Return a ConfigurationError at the key path of a setting."""
        return self.document.problem(self.path(keys), text)

    def _given(self, keys: str) -> list[KeyPath]:
        """Return the key paths at which the user set the given settings, in order of precedence."""
        candidates: list[KeyPath] = []
        forms = [form for key in keys.split() for form in rules.family(key)]
        for base in (self.point.path, ()):
            for form in forms:
                candidates += [(*base, "sweep", form), (*base, *form.split("."))]
        return [candidate for candidate in candidates if candidate in self.document.marks]
