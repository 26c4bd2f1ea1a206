# SPDX-License-Identifier: BSD-3-Clause
"""The documents' suites by name, and the measures that they add to those of clauses."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from ...base.measures import Measure
from .declaration import Subtest, Suite, Value
from .methods import NDR_PDR
from .rfc2544 import RFC2544
from .rfc2889 import RFC2889
from .rfc8239 import RFC8239
from .rfc9004 import RFC9004

SUITES: Mapping[str, Suite] = MappingProxyType(
    {suite.name: suite for suite in (NDR_PDR, RFC2544, RFC9004, RFC2889, RFC8239)}
)


def _measure(suite: Suite, subtest: Subtest, value: Value) -> Measure:
    words = f"{suite.document} {subtest.section}, {subtest.title.lower()}: {value.definition}"
    return Measure(
        f"{suite.name}.{value.key}", value.title, value.unit, value.better, value.format,
        "min", words, overs=("run",),
    )  # fmt: skip


SUITE_MEASURES: Mapping[str, Measure] = MappingProxyType(
    {
        f"{suite.name}.{value.key}": _measure(suite, subtest, value)
        for suite in SUITES.values()
        for subtest in suite.subtests
        for value in subtest.values
        if not value.of_setting
    }
)
"""Measures that a clause may name in a run of the suite, such as `rfc2544.throughput`."""
