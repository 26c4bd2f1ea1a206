# SPDX-License-Identifier: BSD-3-Clause
"""The configuration as understood: every default written out, itself a configuration.

Run again, it gives the same run: nothing in it depends on other files but a lab's topology.
"""

from __future__ import annotations

from collections.abc import Collection

from ..base import transports
from ..base.model import ClockChoice
from ..search.suites import SUITES
from . import settings
from .read import CheckedConfiguration
from .rules import PARAMETERS
from .schema import ResolvedSettings, Settings, SwitchCountersKeys
from .suites import CHOSEN_BY_SUITES
from .tests import combinations

SWITCH_TIMEOUT_NS = 10_000_000_000  # of `switch_counters`


def effective(reading: CheckedConfiguration) -> dict[str, object]:
    """Return the whole configuration as a plain mapping."""
    model = reading.model
    changes: dict[str, object] = {
        **dict.fromkeys((*Settings.model_fields, "site", "tests", "subtests", "suite_parameters")),
        "seed": reading.seed,
        "clock": model.clock or ClockChoice(),
        "switch_counters": _command(model.switch_counters),
        "device_reset": _command(model.device_reset),
    }
    if model.suite is not None:
        used = SUITES[model.suite].uses
        changes["suite_parameters"] = {k: getattr(reading.suite_parameters, k) for k in used}
    whole: dict[str, object] = {"switchbench": model.switchbench, "site": reading.site.effective}
    whole |= model.model_copy(update=changes).written()
    unused: Collection[str] = () if model.suite is None else CHOSEN_BY_SUITES
    return whole | {"tests": [_test(test, unused) for test in reading.tests]}


def _command(asked: SwitchCountersKeys | None) -> SwitchCountersKeys | None:
    timeout_ns = (asked and asked.timeout) or SWITCH_TIMEOUT_NS
    return asked and asked.model_copy(update={"timeout": timeout_ns})


def _test(test: ResolvedSettings, unused: Collection[str]) -> dict[str, object]:
    """Return one test: its first point's settings, with the axes and what is swept put back.

    Without `unused` keys.
    """
    every = combinations(test)
    swept = {key for values in every for key in values.swept}
    first = every[0]
    left = swept | {*settings.NETWORK, *settings.TRANSPORT, "pattern"} | set(transports.NAMES)
    if _DECIDERS & swept:  # the profile's sizes follow the header, a datagram's service and MTU
        for forms in (settings.FRAMES, settings.MESSAGES):
            left |= set(forms) if settings.form_of(test, forms) is None else set()
    if "window" in swept and test.interval is None:
        left.add("interval")  # its default follows the window
    left |= set(unused)
    if test.subtest is not None:  # which says what is sent
        left.add("flows")
    result: dict[str, object] = {} if test.subtest else {"pattern": test.pattern}
    result["transport"] = test.transport
    if test.concurrent_networks is not None:
        result["concurrent_networks"] = test.concurrent_networks
    else:
        result["network"] = test.network
    written = {key: value for key, value in first.written().items() if key not in left}
    options = (test if _DECIDERS & swept else first).written()[test.transport]
    for head, _, tail in (key.partition(".") for key in swept):
        if head in written:
            written[head].pop(tail, None)
        if head == test.transport:
            options.pop(tail, None)
    result |= written | {test.transport: options}
    # Settings that only later points of a sweep have (groups, where partners are swept).
    later = {key: value for values in every for key, value in values.written().items()}
    result |= {
        key: later[key]
        for key in PARAMETERS[test.pattern]
        if key in later and key not in result and key not in (test.sweep or {})
    }
    if swept:
        result["sweep"] = {
            key: [settings.written_key(key, value) for value in values]
            for key, values in (test.sweep or {}).items()
            if key in swept
        }
    return result


# Options on which defaults of others depend.
_DECIDERS = {"traffic", "dpdk.header", "dpdk.vlan", "verbs.service", "verbs.operation", "verbs.mtu"}
