# SPDX-License-Identifier: BSD-3-Clause
"""The configuration as understood: every default written out, itself a configuration.

Run again, it gives the same run: nothing in it depends on other files but a lab's topology.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ..base import quantities, transports
from ..base.model import ClockChoice, Repeats
from ..search.suites import SUITES
from . import settings
from .acceptance import about_values
from .flow_file import FlowLine
from .kinds import Strict
from .point import Point, ResolvedTest, points
from .read import FORMAT, CheckedConfiguration
from .rules import PARAMETERS
from .steps import COMPOSITE

SWITCH_TIMEOUT_NS = 10_000_000_000  # of `switch_counters`

_TIMES = ("warmup", "window", "cooldown", "drain_timeout", "drain_max")


def effective(reading: CheckedConfiguration) -> dict[str, object]:
    """The whole configuration as a plain mapping."""
    model = reading.model
    whole: dict[str, object] = {
        "switchbench": FORMAT,
        "site": reading.site.effective,
        "seed": reading.seed,
        "on_missing": model.on_missing or "stop",
        "worker": model.worker or "auto",
        "log": model.log or "info",
        "clock": _clock(model.clock or ClockChoice()),
    }
    if model.suite is not None:
        whole["suite"] = model.suite
        if any(test.values.subtest is not None for test in reading.tests):
            used = SUITES[model.suite].uses
            whole["suite_parameters"] = {k: getattr(reading.suite_parameters, k) for k in used}
    if model.time_limit is not None:
        whole["time_limit"] = quantities.DURATION.text(model.time_limit)
    if model.remeasure is not None:
        whole["remeasure"] = model.remeasure
    for key in ("switch_counters", "device_reset"):
        asked = getattr(model, key)
        if asked is not None:
            whole[key] = {
                "command": list(asked.command),
                "timeout": quantities.DURATION.text(asked.timeout or SWITCH_TIMEOUT_NS),
            }
    whole["tests"] = [_test(test) for test in reading.tests]
    about = about_values(model)
    if about:
        whole["about"] = about
    if reading.expectations:
        whole["expect"] = [dict(clause) for clause in model_expect(reading)]
    return whole


def _clock(clock: ClockChoice) -> str | dict[str, str]:
    stated = {"asymmetry": clock.asymmetry_ns, "error": clock.error_ns}
    texts = {key: quantities.DURATION.text(value) for key, value in stated.items() if value}
    return {"mode": clock.mode, **texts} if texts else clock.mode


def model_expect(reading: CheckedConfiguration) -> list[dict[str, object]]:
    """The clauses as the user wrote them."""
    return [clause.given() for clause in reading.model.expect or []]


def _test(test: ResolvedTest) -> dict[str, object]:
    """One test: its first point's settings, with the axes and what is swept put back."""
    every = list(points(test))
    swept = {key for point in every for key in point.swept}
    first = every[0].values
    left = swept | {*settings.NETWORK, *settings.TRANSPORT, "pattern"} | set(transports.NAMES)
    if every[0].share is not None:  # what a suite chose, not its user
        left |= every[0].share.values.given().keys() - _own_parameters(test)
    if _DECIDERS & swept:  # the profile's sizes follow the header, a datagram's service and MTU
        for forms in (settings.FRAMES, settings.MESSAGES):
            left |= set(forms) if settings.form_of(test.values, forms) is None else set()
    if "window" in swept and test.values.interval is None:
        left.add("interval")  # its default follows the window
    if test.values.subtest is not None:  # which says what is sent
        left.add("flows")
    result: dict[str, object] = {} if test.values.subtest else {"pattern": test.pattern}
    result["transport"] = test.transport
    if test.together:
        result["concurrent_networks"] = list(test.networks)
    else:
        result["network"] = test.networks[0]
    for key, value in first.in_effect().items():
        if key not in left:
            result[key] = (
                _unswept(key, value, swept) if isinstance(value, Strict) else text(key, value)
            )
    if first.ranks is None and not test.together:
        result["ranks"] = [test.ports]
    options = getattr(test.values if _DECIDERS & swept else first, test.transport)
    result[test.transport] = _unswept(test.transport, options, swept)
    result |= _needed_later(test, every, result)
    if swept:
        result["sweep"] = {
            key: [text(key, value) for value in values]
            for key, values in test.sweep.items()
            if key in swept
        }
    return result


def _unswept(key: str, options: Strict, swept: set[str]) -> dict[str, object]:
    """The keys of a mapping that stand below it, and not in the sweep."""
    values = {f"{key}.{below}": (below, item) for below, item in options.in_effect().items()}
    return {below: text(path, item) for path, (below, item) in values.items() if path not in swept}


# Options on which defaults of others depend.
_DECIDERS = {"traffic", "dpdk.header", "dpdk.vlan", "verbs.service", "verbs.operation", "verbs.mtu"}


def _own_parameters(test: ResolvedTest) -> set[str]:
    return set(PARAMETERS[test.pattern]) & test.values.in_effect().keys()


def _needed_later(
    test: ResolvedTest, every: Sequence[Point], result: Mapping[str, object]
) -> dict[str, object]:
    """Settings that only later points of a sweep have (groups, where partners are swept)."""
    if test.pattern == COMPOSITE:  # whose points' keys are not its user's
        return {}
    later = {key: value for point in every for key, value in point.values.in_effect().items()}
    return {
        key: text(key, later[key])
        for key in PARAMETERS[test.pattern]
        if key in later and key not in result and key not in test.sweep
    }


def _load(value: Any) -> Any:
    return quantities.load_text(value)


def _loads(values: Any) -> Any:
    return [quantities.load_text(value) for value in values]


def _partners(value: Any) -> Any:
    return value if isinstance(value, str) else [list(pair) for pair in value]


def _flows(values: Any) -> Any:
    flows = [item.flow if isinstance(item, FlowLine) else item for item in values]
    return [list(ends) if share is None else [*ends, f"{share:.10g}%"] for *ends, share in flows]


def _groups(values: Any) -> Any:
    return [group[0] if len(group) == 1 else list(group) for group in values]


def _repeat(value: Repeats) -> Any:
    if value.width is None:
        return value.most
    shares = {"width": value.width, "confidence": value.confidence}
    percents = {key: f"{100 * share:.10g}%" for key, share in shares.items()}
    return {"min": value.least, "max": value.most, **percents}


def _interval(value: int) -> str:
    return quantities.DURATION.text(value) if value else "off"


_TEXTS: dict[str, Callable[[Any], Any]] = {
    **dict.fromkeys(_TIMES, quantities.DURATION.text),
    "load": _load,
    "loads": _loads,
    "partners": _partners,
    "groups": _groups,
    "flows": _flows,
    "imix": list,
    "repeat": _repeat,
    "interval": _interval,
    "scatter.sizes": list,
    "transfer_size": quantities.SIZE.text,
    "skew": "{}%".format,
}


def _probes(value: Any) -> Any:
    return f"{value:.17g}/s" if isinstance(value, float) and value > 0 else value or 0


_TEXTS |= {
    "latency.probes": _probes,
    "burst.gap": quantities.DURATION.text,
}


def text(key: str, value: object) -> Any:
    """A value as a user writes it."""
    if isinstance(value, Strict):
        return {below: text(f"{key}.{below}", item) for below, item in value.in_effect().items()}
    return _TEXTS[key](value) if key in _TEXTS else value
