# SPDX-License-Identifier: BSD-3-Clause
"""A document's suite in a configuration: its subtests become tests, its flows become patterns.

A test of a suite names its `subtest`, and its `variant` where the subtest has several matrices;
which ports send to which follows from both and from the number of ports.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from ..base import transports
from ..base.errors import ConfigurationError
from ..base.model import Load, Port
from ..base.source import Document, KeyPath
from ..base.words import listed, meant, shown, unknown_key
from ..search.suites import SUITES
from ..search.suites.declaration import Subtest, Suite, SuiteParameters, Variant
from ..search.suites.methods import extra_share
from . import settings
from .schema import Configuration, Pattern, Settings

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


def refuse_without_suite(document: Document, model: Configuration) -> None:
    """ConfigurationError for a suite's keys where there is none, or none that has them."""
    suite = SUITES[model.suite] if model.suite is not None else None
    named = suite is not None and not suite.is_free
    given = [key for key in ("subtests", "suite_parameters") if getattr(model, key) is not None]
    if given and suite is None:
        raise document.problem((given[0],), "has no effect without `suite`")
    if "subtests" in given and not named:
        raise document.problem(("subtests",), f"has no effect with suite {model.suite}")
    if suite is not None and model.remeasure:
        text = f"has no effect with suite {suite.name}, which repeats what the tester limited"
        raise document.problem(("remeasure",), text)
    if suite is not None:
        _refuse_chosen(document, model, suite)
    for number, test in enumerate(model.tests or []):
        path: KeyPath = ("tests", number)
        for key in ("subtest", "variant"):
            if getattr(test, key) is not None and not named:
                raise document.problem((*path, key), "has no effect without a document's `suite`")
        if named and test.subtest is None:
            raise document.problem((*path, "subtest"), f"is missing: which of suite {model.suite}?")
        if suite is not None and test.subtest is not None:
            _known(document, (*path, "subtest"), suite, test.subtest)
    if named:
        for path in ((), *(("tests", number) for number in range(len(model.tests or [])))):
            if (*path, "pattern") in document.marks:
                raise document.problem(
                    (*path, "pattern"), f"has no effect: suite {model.suite} chooses what is sent"
                )


CHOSEN_BY_SUITES = frozenset({"repeat", "window"})


def _refuse_chosen(document: Document, model: Configuration, suite: Suite) -> None:
    """ConfigurationError for keys whose values a suite's trials have from its parameters."""
    instead = "trial_s, repeats" if "repeats" in suite.uses else "trial_s"
    for path in ((), *(("tests", number) for number in range(len(model.tests or [])))):
        for key in sorted(CHOSEN_BY_SUITES):
            if (*path, key) in document.marks:
                text = f"has no effect: suite {suite.name} chooses how long and how often; give "
                text += f"it {instead} in suite_parameters"
                raise document.problem((*path, key), text)


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
class Place:
    """Where a test of a suite stands, and what it has there."""

    document: Document
    path: KeyPath
    ports: Sequence[Port]
    transport: str

    def problem(self, text: str, *key: str) -> ConfigurationError:
        """Return the error at the test, or at one of its keys."""
        return self.document.problem((*self.path, *key), text)


def expanded(
    place: Place, suite_name: str, subtest_name: str, given: Settings, parameters: SuiteParameters
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
    layer = settings.merge(_layer(place, suite, given), Settings.model_validate(own))
    for variant in variants:
        if wanted in (None, variant.name):
            yield settings.merge(layer, given, _flows(variant, count, parameters))


def _layer(place: Place, suite: Suite, given: Settings) -> Settings:
    most = min((port.frame_limit(place.transport) or _UNKNOWN_FRAME_MAX) for port in place.ports)
    sizes = suite.sizes
    if given.profile == SHORT_PROFILE:
        sizes = suite.lab_sizes or sizes
    loads = settings.axis(given.load, given.loads) or []
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


def _count(place: Place, suite: Suite, subtest: Subtest, given: Settings) -> int:
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
