# SPDX-License-Identifier: BSD-3-Clause
"""The JUnit XML is what the forms of Ant's JUnitReport and of Jenkins both allow."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any
from xml.etree import ElementTree

import pytest

from recorded import fed
from switchbench.analysis.sealing import junit
from synthetic import about, make_run, make_site, make_trial, pair_records

SITE = make_site()
TOKEN, NUMBER, DECIMAL, ANY = r"\S(.*\S)?", "[0-9]+", r"[0-9]+\.[0-9]{3}", "(?s).*"
WHEN = r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}"  # without a time zone


@dataclass(frozen=True)
class Form:
    """An element: its attributes, and its children as a pattern over their names."""

    attributes: dict[str, str] = field(default_factory=dict)
    children: str = ""


OUTCOME = Form({"message": ANY, "type": TOKEN})
FORMS = {
    "testsuites": Form({}, "testsuite "),
    "testsuite": Form(
        dict.fromkeys(("tests", "failures", "errors", "skipped", "id"), NUMBER)
        | {"name": TOKEN, "package": TOKEN, "hostname": TOKEN, "timestamp": WHEN, "time": DECIMAL},
        "properties (testcase )+system-out system-err ",
    ),
    "properties": Form({}, "(property )*"),
    "property": Form({"name": TOKEN, "value": ANY}),
    "testcase": Form(
        {"name": TOKEN, "classname": TOKEN, "time": DECIMAL}, "((failure|error|skipped) )?"
    ),
    "failure": OUTCOME,
    "error": OUTCOME,
    "system-out": Form(),
    "system-err": Form(),
}


def mistakes(element: ElementTree.Element) -> list[str]:
    """What is not as the forms have it, in this element and below."""
    form = FORMS.get(element.tag)
    if form is None:
        return [f"{element.tag} is no element"]
    found = []
    if element.attrib.keys() != form.attributes.keys():
        found.append(f"{element.tag} has {sorted(element.attrib)}")
    else:
        found += [
            f"{element.tag} {name}={value!r}"
            for name, value in element.attrib.items()
            if not re.fullmatch(form.attributes[name], value)
        ]
    names = "".join(f"{child.tag} " for child in element)
    if not re.fullmatch(form.children, names):
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


def outcomes(suite: Any) -> list[tuple[str, str]]:
    return [
        (case.get("name"), case[0].tag if len(case) else "passed")
        for case in suite.iter("testcase")
    ]


def test_a_case_for_each_clause() -> None:
    suite = document(FINE, BAD)
    assert [suite.get(name) for name in ("tests", "failures", "errors")] == ["3", "1", "0"]
    assert outcomes(suite) == [
        ("the run came to its end", "passed"), ("1 Fine", "passed"), ("2 None lost", "failure"),
    ]  # fmt: skip
    (failure,) = suite.iter("failure")
    assert failure.get("message") == (
        "required lost_frames over flow == 0, seen 10 at node2:e0 -> node1:e0 in trial 0 pairs "
        "phase 0"
    )
    assert "stated in contract, 4" in failure.text
    assert "10 frames: node2:e0 -> node1:e0" in failure.text


def test_inconclusive_is_an_error_and_so_is_a_run_that_broke_off() -> None:
    records = document(OPEN, faults=("node2 died",))
    assert [records.get(name) for name in ("tests", "failures", "errors")] == ["2", "0", "2"]
    assert outcomes(records) == [
        ("the run came to its end", "error"), ("expect.0 round_trip_p99_us", "error"),
    ]  # fmt: skip
    assert next(records.iter("error")).get("message") == "node2 died"
    assert records.find("system-err").text == "node2 died"


def test_what_is_tested_stands_in_the_properties() -> None:
    tested = {"switches": [{"model": "X48", "serial": "0012"}], "cables": 'DAC <1 m> & "x"'}
    suite = document(FINE, about=tested)
    properties = {item.get("name"): item.get("value") for item in suite.iter("property")}
    assert properties["about.switches.0.serial"] == "0012"
    assert properties["about.cables"] == tested["cables"]
    assert properties["verdict"] == "PASS"
    assert len(properties["clauses_sha256"]) == 64


def test_characters_that_xml_can_not_hold() -> None:
    suite = document(FINE | {"clause": "bell \x07 and \ufffe"})
    assert outcomes(suite)[1][0] == "1 bell \ufffd and \ufffd"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('<testsuites name="x"/>', "testsuites has ['name']"),
        ("<testsuites><testcase/></testsuites>", "testsuites holds testcase"),
        ('<property name=" x" value=""/>', "property name=' x'"),
    ],
)
def test_the_forms_themselves(text: str, words: str) -> None:
    assert any(words in mistake for mistake in mistakes(ElementTree.fromstring(text)))
