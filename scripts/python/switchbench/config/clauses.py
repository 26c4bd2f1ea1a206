# SPDX-License-Identifier: BSD-3-Clause
"""Clauses of a contract in `expect:`: parsed, hashed, and matched with the trials of a run.

A clause consists of `where` (the trials), `measure`, `over` (each flow | port | phase | plan, or
the whole run), and `require` (a comparison). `clause` is its wording in the contract or the
standard, `source` the place of this wording.
"""

from __future__ import annotations

import hashlib
import json
import operator
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ..base import quantities, transports
from ..base.errors import ConfigurationError, meant, shown
from ..base.measures import MEASURES, Measure
from ..base.model import Load, Site, Trial
from ..base.source import Document, KeyPath
from ..search.suites import suite_measures
from . import rules
from .schema import About, Configuration, Profile, ResolvedSettings

Spec = Mapping[str, Any]
Comparison = Callable[[float, float], bool]

COMPARISONS: dict[str, Comparison] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<=": operator.le,
    ">=": operator.ge,
    "<": operator.lt,
    ">": operator.gt,
}
_REQUIRE = re.compile(r"\s*(==|!=|<=|>=|<|>)\s*([-+0-9.eE]+)\s*([%A-Za-z/]*)\s*")


@dataclass(frozen=True)
class Clause:
    """Parsed clause of a contract: a measure, and the limit that its value must keep."""

    spec: Spec
    measure: Measure
    over: str
    sign: str  # key of COMPARISONS
    limit: float

    def holds(self, value: float) -> bool:
        """Return true if a value of the measure satisfies the clause."""
        return COMPARISONS[self.sign](value, self.limit)

    def margin(self, value: float) -> float:
        """Return the distance of a value from the clause's limit, in the measure's unit.

        Negative for a value on the wrong side.
        """
        if self.sign in (">=", ">"):
            return value - self.limit
        if self.sign in ("<=", "<"):
            return self.limit - value
        away = abs(value - self.limit)
        return away if self.sign == "!=" else -away


def parse_clause(spec: Spec) -> Clause:
    """Parse one clause of `expect`; raise ConfigurationError for an invalid clause."""

    def problem(key: str, text: str) -> ConfigurationError:
        name = f"expect {spec['id']}" if spec.get("id") else "expect"
        return ConfigurationError(f"{name}: {key}: {text}")

    wanted = str(spec.get("measure"))
    measure = MEASURES.get(wanted) or suite_measures().get(wanted)
    if measure is None:
        near = meant(wanted, [*MEASURES, *suite_measures()])
        text = f"there is no measure {shown(wanted)} (doc/reference/measures.md lists them){near}"
        raise problem("measure", text)
    over = spec.get("over") or "run"
    if over not in measure.overs:
        text = f"{wanted} is judged over {', '.join(measure.overs)}, not {over!r}"
        raise problem("over", text)
    required = spec.get("require")
    match = _REQUIRE.fullmatch(str(required or ""))
    try:
        limit = float(match[2] if match else "")
    except ValueError:
        signs = ", ".join(COMPARISONS)
        words = f"{required!r} is not a comparison ({signs}) with a number, such as '== 0'"
        raise problem("require", words) from None
    assert match is not None
    sign, number, unit = match.groups()
    if unit and unit != measure.unit:
        try:  # convert the limit to the measure's unit: `5 ms` for a measure in us
            kinds = (quantities.RATE, quantities.DURATION, quantities.PERCENT)
            among = (kind for kind in kinds if measure.unit in {**kind.units, **kind.spellings})
            counted = replace(quantities.COUNT, units={measure.unit: 1, **quantities.COUNT.units})
            kind = next(among, counted)
            size = kind.parse(f"{number.removeprefix('-')}{unit}") / kind.parse(f"1{measure.unit}")
        except ValueError as error:
            raise problem("require", str(error)) from None
        limit = float(-size if number.startswith("-") else size)
    return Clause(spec, measure, over, sign, limit)


# --- their hash ----------------------------------------------------------------------------------


def canonical(clauses: Sequence[Spec]) -> bytes:
    """Return clauses as bytes in a canonical form, for hashing.

    JSON in UTF-8 with sorted keys, without spaces. `over` is always written; absent keys are left
    out.
    """
    plain = [
        {key: value for key, value in {"over": "run", **spec}.items() if value is not None}
        for spec in clauses
    ]
    return json.dumps(plain, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()


def clauses_sha256(clauses: Sequence[Spec]) -> str:
    """Return the SHA-256 of the clauses' canonical form in hexadecimal."""
    return hashlib.sha256(canonical(clauses)).hexdigest()


# --- trials of a clause ---------------------------------------------------------------------------


def matches(where: Spec, trial: Trial) -> bool:
    """Return true if a trial meets all conditions in a clause's `where`.

    A list of values holds if one of the values holds.
    """
    facts: dict[str, list[Any]] = {name: [value] for name, value in trial.parameters.items()}
    facts |= {
        "pattern": [trial.pattern["name"]],
        "transport": [trial.transport],
        "network": [part.network for part in trial.parts],
        "ranks": [len(part.ranks) for part in trial.parts],
        "size": list(trial.sizes),
        f"{trial.size_unit}_size": list(trial.sizes),
        "load": [trial.load if trial.load.percent is None else f"{trial.load.percent}%"],
        "traffic": [trial.traffic],
        "test": [trial.test],
        "repeat": [trial.repeat],
    }
    return all(_holds(wanted, facts.get(key, [])) for key, wanted in where.items())


def _holds(wanted: Any, facts: Iterable[Any]) -> bool:
    choices = wanted if isinstance(wanted, list) else [wanted]
    return any(_same(choice, fact) for choice in choices for fact in facts)


def _same(wanted: Any, fact: Any) -> bool:
    if isinstance(fact, Load):
        return wanted in (fact.bps, fact.fps)
    if isinstance(wanted, str) and isinstance(fact, str):
        left, right = quantities.percentage(wanted), quantities.percentage(fact)
        if left is not None and right is not None:
            return left == right
    return bool(wanted == fact) or str(wanted) == str(fact)


def selected(where: Spec, trials: Iterable[Trial]) -> Iterator[Trial]:
    """Yield the trials that meet all conditions in a clause's `where`."""
    return (trial for trial in trials if matches(where, trial))


# --- acceptance -----------------------------------------------------------------------------------
# Requirements of the profile `acceptance`, besides its times: descriptions of device and clauses.


PROFILE: Profile = "acceptance"

_OF_SWITCH = ("model", "serial", "firmware")


def refuse_incomplete(
    document: Document, model: Configuration, tests: Iterable[ResolvedSettings]
) -> None:
    """Raise ConfigurationError for the first missing requirement of an acceptance run."""
    accepting = next((test for test in tests if test.profile == PROFILE), None)
    if accepting is None:
        return
    about = model.about or About()
    of_switches = (
        "is missing: profile acceptance needs a description of the device: about.switches (a "
        "list) with the "
        "model, serial and firmware of each, and about.cables"
    )
    words = "is missing: profile acceptance needs each clause's wording in contract or standard"
    needed: list[tuple[KeyPath, object]] = [(("about", "switches"), about.switches)]
    for i, switch in enumerate(about.switches or ()):
        needed += [(("about", "switches", i, key), getattr(switch, key)) for key in _OF_SWITCH]
    needed.append((("about", "cables"), about.cables))
    needed += [(("expect", i, "clause"), one.clause) for i, one in enumerate(model.expect or [])]
    for path, value in needed:
        if not value:
            raise document.problem(path, words if path[0] == "expect" else of_switches)


def reservations(site: Site, tests: Iterable[ResolvedSettings]) -> Iterator[str]:
    """Yield a sentence for each test that measures less than the acceptance profile requires."""
    for number, test in enumerate(tests):
        if test.profile != PROFILE:
            continue
        usual = rules.defaults(site, test.pattern, test.transport, PROFILE)
        less = []
        for key in ("warmup", "window") if test.traffic == "stream" else ():
            found_ns, usual_ns = getattr(test, key), getattr(usual, key)
            if found_ns is not None and usual_ns is not None and found_ns < usual_ns:
                found, whole = map(quantities.DURATION.text, (found_ns, usual_ns))
                less.append(f"{key} {found} (profile: {whole})")
        if test.repeat.least < usual.repeat.least:
            less.append(f"at least {test.repeat.least} repeats (profile: {usual.repeat.least})")
        if transports.of(test.transport).frames and test.frame_sizes is not None:
            sizes = rules.frame_sizes(PROFILE, rules.frame_header(test), test.frame_max)
            left_out = [str(size) for size in sizes if size not in test.frame_sizes]
            if left_out:
                less.append(f"without frames of {', '.join(left_out)} bytes")
        if less:
            which = f"test {number} ({test.pattern}, {test.transport})"
            yield f"{which} measures less than profile {PROFILE} requires: {', '.join(less)}"
