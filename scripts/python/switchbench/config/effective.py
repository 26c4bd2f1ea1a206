# SPDX-License-Identifier: BSD-3-Clause
"""The configuration as understood: every default written out, itself a configuration.

Run again, it gives the same run: nothing in it depends on other files but a lab's topology.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import islice
from typing import Any

from ..base import quantities, transports
from ..base.model import ClockChoice, Repeats
from ..search.suites import SUITES
from . import settings
from .acceptance import about_values
from .flow_file import FlowLine
from .point import ResolvedTest, points
from .read import FORMAT, CheckedConfiguration
from .settings import Values
from .steps import COMPOSITE

SWITCH_TIMEOUT_NS = 10_000_000_000  # of `switch_counters`

_TIMES = ("warmup", "window", "cooldown", "drain_timeout", "drain_max")


def effective(reading: CheckedConfiguration) -> dict[str, Any]:
    """The whole configuration as a plain mapping."""
    model = reading.model
    whole: dict[str, Any] = {
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
        if any("subtest" in test.values for test in reading.tests):
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


def model_expect(reading: CheckedConfiguration) -> list[dict[str, Any]]:
    """The clauses as the user wrote them."""
    return [clause.given() for clause in reading.model.expect or []]


def _test(test: ResolvedTest) -> dict[str, Any]:
    """One test: its first point's settings, with the axes and what is swept put back."""
    point = next(islice(points(test), 1))
    # By a suite, not by its user.
    own = set(settings.PATTERN_KEYS[test.pattern]) & test.values.keys()
    chosen = point.share.values.keys() - own if point.share else set()
    first = {key: value for key, value in point.values.items() if key not in chosen}
    swept = {key for point in points(test) for key in point.swept}
    values = {
        key: _unswept(key, value, swept) if key in settings.NESTED else value
        for key, value in first.items()
        if key not in swept and key not in _where_keys() and key not in transports.NAMES
    }
    open_sizes = not any(form in test.values for form in settings.FAMILIES[2])
    if open_sizes and _decider_swept(swept):
        values.pop("frame_sizes", None)  # the profile's sizes follow the header
    if _decider_swept(swept) and not any(form in test.values for form in settings.FAMILIES[3]):
        values.pop("message_sizes", None)  # a datagram's size follows service and MTU
    if "window" in swept and "interval" not in test.values:
        values.pop("interval")  # its default follows the window
    if "ranks" not in values and not test.together:
        values["ranks"] = [test.ports]
    result = {"pattern": test.pattern, **_where(test)}
    result |= {key: text(key, value) for key, value in values.items()}
    if "subtest" in result:  # which says what is sent
        result = {key: value for key, value in result.items() if key not in ("pattern", "flows")}
    result |= _options(test, first, swept)
    result |= _needed_later(test, result)
    if swept:
        result["sweep"] = {
            key: [text(key, value) for value in values]
            for key, values in test.sweep.items()
            if key in swept
        }
    return result


def _unswept(key: str, value: Values, swept: set[str]) -> Values:
    """The keys of a mapping that stand below it, and not in the sweep."""
    return {below: item for below, item in value.items() if f"{key}.{below}" not in swept}


# Options on which defaults of others depend.
_DECIDERS = {"traffic", "dpdk.header", "dpdk.vlan", "verbs.service", "verbs.operation", "verbs.mtu"}


def _decider_swept(swept: set[str]) -> bool:
    """Whether defaults that depend on a swept option have to stay open."""
    return bool(_DECIDERS & swept)


def _where_keys() -> tuple[str, ...]:
    return (*settings.FAMILIES[0], *settings.FAMILIES[1])


def _where(test: ResolvedTest) -> dict[str, Any]:
    where: dict[str, Any] = {"transport": test.transport}
    if test.together:
        where["concurrent_networks"] = list(test.networks)
    else:
        where["network"] = test.networks[0]
    return where


def _options(test: ResolvedTest, first: Values, swept: set[str]) -> dict[str, Any]:
    options = test.values[test.transport] if _decider_swept(swept) else first[test.transport]
    plain = _unswept(test.transport, options, swept)
    return {
        test.transport: {
            key: text(f"{test.transport}.{key}", value) for key, value in plain.items()
        }
    }


def _needed_later(test: ResolvedTest, result: dict[str, Any]) -> dict[str, Any]:
    """Settings that only later points of a sweep have (groups, where partners are swept)."""
    later = {key: value for point in points(test) for key, value in point.values.items()}
    return {
        key: text(key, value)
        for key, value in later.items()
        if key in settings.PATTERN_KEYS[test.pattern]
        and test.pattern != COMPOSITE  # whose points' keys are not its user's
        and key not in result
        and key not in test.sweep
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


def _scatter(value: Values) -> Any:
    return value | {"sizes": list(value["sizes"])}


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
    "scatter": _scatter,
    "transfer_size": quantities.SIZE.text,
    "skew": "{}%".format,
}


def _latency(value: Any) -> Any:
    return {key: text(f"latency.{key}", item) for key, item in value.items()}


def _probes(value: Any) -> Any:
    return f"{value:.17g}/s" if isinstance(value, float) and value > 0 else value or 0


def _burst(value: Any) -> Any:
    return {key: text(f"burst.{key}", item) for key, item in value.items()}


_TEXTS |= {
    "latency": _latency,
    "latency.probes": _probes,
    "burst": _burst,
    "burst.gap": quantities.DURATION.text,
}


def text(key: str, value: Any) -> Any:
    """A value as a user writes it."""
    return _TEXTS[key](value) if key in _TEXTS else value
