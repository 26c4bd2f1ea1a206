# SPDX-License-Identifier: BSD-3-Clause
"""The JUnit XML is what the forms of Ant's JUnitReport and of Jenkins both allow."""

from __future__ import annotations

import re
from typing import Any
from xml.etree import ElementTree

import pytest

from recorded import fed
from switchbench.analysis.sealing import junit
from synthetic import about, make_run, make_site, make_trial, pair_records

SITE = make_site()
TOKEN, NUMBER, DECIMAL, ANY = r"\S(.*\S)?", "[0-9]+", r"[0-9]+\.[0-9]{3}", "(?s).*"
WHEN = r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}"  # without a time zone
OUTCOME = ({"message": ANY, "type": TOKEN}, "")
# By element: its attributes, and its children as a pattern over their names.
FORMS: dict[str, tuple[dict[str, str], str]] = {
    "testsuites": ({}, "testsuite "),
    "testsuite": (
        dict.fromkeys(("tests", "failures", "errors", "skipped", "id"), NUMBER)
        | {"name": TOKEN, "package": TOKEN, "hostname": TOKEN, "timestamp": WHEN, "time": DECIMAL},
        "properties (testcase )+system-out system-err ",
    ),
    "properties": ({}, "(property )*"),
    "property": ({"name": TOKEN, "value": ANY}, ""),
    "testcase": (
        {"name": TOKEN, "classname": TOKEN, "time": DECIMAL}, "((failure|error|skipped) )?"
    ),
    "failure": OUTCOME, "error": OUTCOME, "system-out": ({}, ""), "system-err": ({}, ""),
}  # fmt: skip


def mistakes(element: ElementTree.Element) -> list[str]:
    """What is not as the forms have it, in this element and below."""
    attributes, children = FORMS.get(element.tag, ({}, "no element"))
    found = [
        f"{element.tag} {name}={value!r}"
        for name, value in element.attrib.items()
        if not re.fullmatch(attributes.get(name, "no attribute"), value)
    ]
    found += [f"{element.tag} lacks {name}" for name in attributes.keys() - element.attrib.keys()]
    names = "".join(f"{child.tag} " for child in element)
    if not re.fullmatch(children, names):
        found.append(f"{element.tag} holds {names}")
    return found + [mistake for child in element for mistake in mistakes(child)]


def document(*clauses: dict[str, Any], faults: tuple[str, ...] = (), **more: Any) -> Any:
    """The parsed XML of a run with a lossy flow."""
    run = make_run(SITE, make_trial(SITE), expectations=clauses, **more)
    summary = fed(run, pair_records())
    result = summary.finish(about(), faults)
    assert result["verdict"] is not None
    text = junit(result, result["verdict"])
    assert text.startswith(b"<?xml version='1.0' encoding='utf-8'?>\n")
    root = ElementTree.fromstring(text)
    assert mistakes(root) == []
    (suite,) = root
    return suite


FINE = {"id": "1", "clause": "Fine", "measure": "lost_frames", "require": "<= 10", "over": "flow"}
BAD = FINE | {"id": "2", "clause": "None lost", "require": "== 0", "source": "contract, 4"}
OPEN = {"measure": "round_trip_p99_us", "require": "<= 5"}


@pytest.mark.parametrize(
    ("clauses", "faults", "counts", "outcomes", "message"),
    [
        (
            (FINE, BAD), (), ["3", "1", "0"],
            {"the run came to its end": "", "1 Fine": "", "2 None lost": "failure"},
            "required lost_frames over flow == 0, seen 10 at node2:e0 -> node1:e0 in trial 0 pairs "
            "phase 0",
        ),
        (
            (OPEN,), ("node2 died",), ["2", "0", "2"],
            {"the run came to its end": "error", "expect.0 round_trip_p99_us": "error"},
            "node2 died",
        ),
        # What XML can not hold is replaced.
        (
            (BAD | {"id": None, "clause": "bell \x07 and \ufffe"},), (), ["2", "1", "0"],
            {"the run came to its end": "", "bell \ufffd and \ufffd": "failure"}, None,
        ),
    ],
)  # fmt: skip
def test_a_case_for_each_clause(
    clauses: Any, faults: Any, counts: list[str], outcomes: dict[str, str], message: str | None
) -> None:
    suite = document(*clauses, faults=faults)
    assert [suite.get(name) for name in ("tests", "failures", "errors")] == counts
    cases = list(suite.iter("testcase"))
    assert {case.get("name"): case[0].tag if len(case) else "" for case in cases} == outcomes
    first = next(case[0] for case in cases if len(case))
    assert message in (None, first.get("message"))
    assert (suite.find("system-err").text or "") == "\n".join(faults)
    if clauses == (FINE, BAD):
        assert "stated in contract, 4" in first.text
        assert "10 frames: node2:e0 -> node1:e0" in first.text


def test_what_is_tested_stands_in_the_properties() -> None:
    tested = {"switches": [{"model": "X48", "serial": "0012"}], "cables": 'DAC <1 m> & "x"'}
    suite = document(FINE, about=tested)
    properties = {item.get("name"): item.get("value") for item in suite.iter("property")}
    assert properties["about.switches.0.serial"] == "0012"
    assert properties["about.cables"] == tested["cables"]
    assert properties["verdict"] == "PASS"
    assert len(properties["clauses_sha256"]) == 64


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('<testsuites name="x"/>', "testsuites name='x'"),
        ("<testsuites><testcase/></testsuites>", "testsuites holds testcase"),
        ('<property name=" x" value=""/>', "property name=' x'"),
    ],
)
def test_the_forms_themselves(text: str, words: str) -> None:
    assert any(words in mistake for mistake in mistakes(ElementTree.fromstring(text)))
