# SPDX-License-Identifier: BSD-3-Clause
"""Pages on the suites, made of their declarations.

doc/reference/standards.md has what is common to them; each document has a page of its own, and
doc/developer/conformance.md says what its reports have to say.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import fields
from typing import TypeVar

from switchbench.search.suites import SUITES
from switchbench.search.suites.declaration import Suite, SuiteParameters

T = TypeVar("T")

_MARK = "<!-- made of search/suites/ -->\n"


def refreshed(page: str) -> str:
    """Return standards.md with the declarations' tables below its mark."""
    begin = page.index(_MARK) + len(_MARK)
    suites = list(SUITES.values())
    parts = [_list(suites), _parameters(suites), _deviations(_common(suites))]
    return page[:begin] + "\n" + "\n".join("\n".join(part) + "\n" for part in parts)


def pages() -> dict[str, str]:
    """Return a page for each suite, by its name."""
    suites = list(SUITES.values())
    common = _common(suites)
    defined: dict[tuple[str, str], tuple[Suite, str]] = {}
    return {f"{s.name}.md": "\n".join(_page(s, defined, common)) + "\n" for s in suites}


def conformance(page: str) -> str:
    """Return conformance.md with what the documents ask of reports below its mark."""
    begin = page.index(_MARK) + len(_MARK)
    lines = (line for suite in SUITES.values() for line in _statements(suite))
    return page[:begin] + "\n" + "\n".join(lines)


def _common(suites: list[Suite]) -> list[str]:
    """Return the deviations that all suites of RFCs with trials have."""
    return [line for line in suites[0].deviations if all(line in s.deviations for s in suites)]


def _list(suites: list[Suite]) -> Iterator[str]:
    yield "## Suites"
    yield ""
    yield "| suite | document | subtests |"
    yield "| --- | --- | --- |"
    for suite in suites:
        names = ", ".join(f"`{each.name}`" for each in suite.subtests)
        yield f"| [`{suite.name}`]({suite.name}.md) | {suite.title} | {names} |"


def _deviations(lines: list[str]) -> Iterator[str]:
    yield "## Deviations of all suites"
    yield ""
    for line in lines:
        yield f"- {line}"


def _parameters(suites: list[Suite]) -> Iterator[str]:
    yield "## Parameters"
    yield ""
    yield "As the document has them / with `profile: quick`:"
    yield ""
    yield f"| parameter | what | {' | '.join(f'`{suite.name}`' for suite in suites)} |"
    yield f"| --- | --- |{' --- |' * len(suites)}"
    for field in fields(SuiteParameters):
        pairs = [
            f"{getattr(suite.parameters, field.name):g} / {getattr(suite.lab, field.name):g}"
            if field.name in suite.uses
            else ""
            for suite in suites
        ]
        yield f"| `{field.name}` | {field.metadata['about']} | {' | '.join(pairs)} |"


def _page(
    suite: Suite, defined: dict[tuple[str, str], tuple[Suite, str]], common: list[str]
) -> Iterator[str]:
    """Yield a suite's page. A definition in the words of an earlier suite's names its measure."""
    yield f"# {suite.title}: `suite: {suite.name}`"
    yield ""
    yield "Parameters, clauses and results of all suites: [standards](standards.md)."
    yield ""
    yield "## Subtests"
    yield ""
    yield "| subtest | section | ports | what it does |"
    yield "| --- | --- | --- | --- |"
    for each in suite.subtests:
        ports = str(each.ports_min)
        yield f"| `{each.name}` | {each.section} | {ports} | {each.about} |"
    for name, why in suite.refused.items():
        yield f"| `{name}` | | | rejected: {why} |"
    yield ""
    yield "## Measures"
    yield ""
    yield "| measure | unit | what it is |"
    yield "| --- | --- | --- |"
    values = [value for each in suite.subtests for value in each.values]
    for same, names in _joined(
        ((v.unit or "count", v.definition), v.key if v.of_setting else f"{suite.name}.{v.key}")
        for v in values
    ):
        unit, definition = same
        of, first = defined.setdefault(same, (suite, names[0]))
        what = definition if of is suite else f"as `{of.name if first in names else first}`"
        yield f"| {', '.join(f'`{name}`' for name in names)} | {unit} | {what} |"
    own = [line for line in suite.deviations if line not in common]
    if own:
        yield ""
        yield "## Deviations from the document"
        yield ""
        yield "Beside [those of all suites](standards.md#deviations-of-all-suites):"
        yield ""
        for line in own:
            yield f"- {line}"


def _statements(suite: Suite) -> Iterator[str]:
    yield f"## {suite.title}: `suite: {suite.name}`"
    yield ""
    yield "| section | word | what the report has to say | where it does |"
    yield "| --- | --- | --- | --- |"
    for (word, asks), ones in _joined(((s.word, s.asks), s) for s in suite.statements):
        sections = ", ".join(dict.fromkeys(one.section for one in ones))
        wheres = _places(list(dict.fromkeys(one.where for one in ones)))
        yield f"| {sections} | {word} | {asks} | {wheres} |"
    yield ""


def _places(wheres: list[str]) -> str:
    """Return the names of tables or figures, with their kind once in front."""
    kinds = {where.partition(" ")[0] for where in wheres}
    if len(kinds) > 1:
        return ", ".join(wheres)
    return f"{kinds.pop()} {', '.join(where.partition(' ')[2] for where in wheres)}"


def _joined(
    pairs: Iterable[tuple[tuple[str, str], T]],
) -> Iterable[tuple[tuple[str, str], list[T]]]:
    """Return rows that differ in one cell as one, in the order of their first mention."""
    found: dict[tuple[str, str], dict[T, None]] = {}
    for same, other in pairs:
        found.setdefault(same, {})[other] = None
    return [(same, list(others)) for same, others in found.items()]
