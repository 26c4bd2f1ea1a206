# SPDX-License-Identifier: BSD-3-Clause
"""The verdict as JUnit XML, which continuous integration systems show.

A clause is a test case: FAIL is a failure, INCONCLUSIVE an error. That the run came to its end is
a case of its own. The form is that of the schemas which Jenkins and Ant's
reports are checked with: names and order of elements, and which attributes they need.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any
from xml.etree import ElementTree

from ..judge import FAIL, INCONCLUSIVE

Entry = Mapping[str, Any]

_SUITE = "switchbench"
# What XML 1.0 can't hold (2.2).
_NO_CHARACTER = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_ELEMENTS = {FAIL: "failure", INCONCLUSIVE: "error"}


def junit(summary: Entry) -> bytes:
    """Return the document."""
    run, verdict = summary["run"], summary["verdict"]
    whole = summary["status"] == "complete"
    totals = {
        "tests": str(len(summary["expectations"]) + 1),
        "failures": str(verdict["failed"]),
        "errors": str(verdict["inconclusive"] + (not whole)),
        "skipped": "0",
        "time": _seconds(run["elapsed_s"]),
    }
    root = ElementTree.Element("testsuites")  # Ant's form allows it no attributes
    suite = ElementTree.SubElement(
        root,
        "testsuite",
        {
            "name": _text(run["id"]),
            "package": _SUITE,
            "id": "0",
            "timestamp": run["started"].removesuffix("Z"),
            "hostname": _text(run["machine"]["host"]),
            **totals,
        },
    )
    properties = ElementTree.SubElement(suite, "properties")
    for name, value in _properties(summary):
        ElementTree.SubElement(properties, "property", {"name": name, "value": _text(value)})
    _add_run(suite, summary)
    for number, clause in enumerate(summary["expectations"]):
        _add_clause(suite, number, clause)
    words = "\n".join(
        [f"{verdict['verdict']}: {verdict['sentence']}.", *verdict["warnings"], verdict["scope"]]
    )
    ElementTree.SubElement(suite, "system-out").text = _text(words)
    ElementTree.SubElement(suite, "system-err").text = _text("\n".join(summary["errors"]))
    ElementTree.indent(root)
    return bytes(ElementTree.tostring(root, encoding="utf-8", xml_declaration=True)) + b"\n"


def _properties(summary: Entry) -> Iterator[tuple[str, str]]:
    yield "verdict", summary["verdict"]["verdict"]
    yield "clauses_sha256", summary["verdict"]["clauses_sha256"]
    about = summary["run"].get("about", {})
    for number, switch in enumerate(about.get("switches", [])):
        yield from ((f"about.switches.{number}.{key}", value) for key, value in switch.items())
    yield from ((f"about.{key}", value) for key, value in about.items() if key != "switches")
    versions = summary["run"]["versions"]
    yield from ((f"version.{name}", value or "unknown") for name, value in versions.items())


def _add_run(suite: ElementTree.Element, summary: Entry) -> None:
    """Add the case that all that was asked for was measured."""
    case = _case(suite, "the run came to its end", summary["run"]["elapsed_s"])
    if summary["status"] != "complete":
        gaps = [*summary["errors"], *summary["not_measured"]] or [summary["status"]]
        _add_outcome(case, "error", summary["status"], gaps)


def _add_clause(suite: ElementTree.Element, number: int, clause: Entry) -> None:
    name = " ".join(str(clause[key]) for key in ("id", "clause") if clause[key])
    case = _case(suite, name or f"expect.{number} {clause['measure']}", 0)
    element = _ELEMENTS.get(clause["verdict"])
    if element is not None:
        _add_outcome(case, element, clause["verdict"], list(_lines(clause)))


def _lines(clause: Entry) -> Iterator[str]:
    """Yield what was required, what was seen and where; then the other values that fail."""
    seen = "nothing was seen" if clause["value"] is None else f"seen {clause['value']:.10g}"
    at = f" at {clause['of']}" if clause["of"] else ""
    reason = f"; {clause['reason']}" if clause["reason"] else ""
    required = f"{clause['measure']} over {clause['over'] or 'run'} {clause['require']}"
    yield f"required {required}, {seen}{at}{reason}"
    if clause["source"]:
        yield f"stated in {clause['source']}"
    for failure in clause["failures"]:
        yield f"{failure['value']:.10g} {clause['unit']}: {failure['of']}"


def _case(suite: ElementTree.Element, name: str, elapsed_s: float | None) -> ElementTree.Element:
    attributes = {"name": _text(name), "classname": _SUITE, "time": _seconds(elapsed_s)}
    return ElementTree.SubElement(suite, "testcase", attributes)


def _add_outcome(case: ElementTree.Element, name: str, kind: str, lines: list[str]) -> None:
    attributes = {"message": _text(lines[0]), "type": kind}
    ElementTree.SubElement(case, name, attributes).text = _text("\n".join(lines))


def _seconds(value: float | None) -> str:
    return f"{value or 0:.3f}"


def _text(text: str) -> str:
    """Without the characters that XML can't hold."""
    return _NO_CHARACTER.sub("\ufffd", str(text))
