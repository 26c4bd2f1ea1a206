# SPDX-License-Identifier: BSD-3-Clause
"""The report's first page: clauses, the device's ports, suspects; static, and one page of A4."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

import golden
from switchbench.analysis.location.facts import WORDS
from switchbench.base.errors import ConfigurationError
from switchbench.cli.main import main
from switchbench.render.report import build
from switchbench.render.report.first_page import ADVICE, about_what, first_page

SUSPECT = {
    "kind": "loss",
    "brief": "switch:p10 in (from node10:e0) loses 2 % of frames",
    "sentence": "switch:p10 in (from node10:e0): loses 2 %; 7 of 7 flows through it suffer",
    "confidence": 1.0,
}


def summary_of(**more: Any) -> dict[str, Any]:
    """As much of a summary as the page reads."""
    ports = [
        {
            "port": f"node{number}:e0",
            "switch": "switch",
            "switch_port": f"p{number}",
            "suspect": "loses 2 % of frames" if number == 10 else None,
            "as_destination": {"median_percent_of_line": None if number == 3 else 95.0},
        }
        for number in (2, 10, 1, 3)
    ]
    run = {"id": "1-a", "started": "2026-01-01T00:00:00Z", "lab": "one-switch", "command": ["x"]}
    location = {"suspects": [SUSPECT]}
    return {"run": run, "ports": ports, "location": location, "expectations": [], **more}


def test_ports_stand_as_on_the_devices_front() -> None:
    ((switch, ports),) = first_page(summary_of()).faces  # type: ignore[arg-type]
    assert switch == "switch"
    assert [(one.label, one.mood, one.share) for one in ports] == [
        ("p1", "good", "95 %"),
        ("p2", "good", "95 %"),
        ("p3", "", ""),
        ("p10", "bad", "95 %"),
    ]


def test_a_suspect_has_its_evidence_and_what_to_do() -> None:
    (found,) = first_page(summary_of()).culprits  # type: ignore[arg-type]
    assert found.brief == SUSPECT["brief"]
    assert found.evidence.endswith("suffer (99.9 % sure).")
    assert found.advice.startswith("Swap the cable")


def test_each_kind_of_fault_has_advice() -> None:
    assert ADVICE.keys() == WORDS.keys()


@pytest.mark.parametrize(
    ("about", "says"),
    [
        (None, "Lab one-switch, 4 ports"),
        ({"switches": [{"vendor": "A", "model": "B", "serial": "1"}]}, "A B, serial 1"),
        ({"switches": [{"name": "x"}, {"model": "Y", "firmware": "2"}]}, "x; Y, firmware 2"),
    ],
)
def test_the_title_is_the_device(about: dict[str, Any] | None, says: str) -> None:
    summary = summary_of()
    summary["run"]["about"] = about
    assert about_what(summary) == says  # type: ignore[arg-type]


def test_it_reads_without_a_script(tmp_path: Path) -> None:
    """Verdict, clauses with wording, value, limit and margin, and short tables are in the HTML."""
    directory = golden.unpack("acceptance", tmp_path)
    text = build.write(directory, tmp_path / "r.html").read_text()
    still = re.sub(r"<script.*?</script>", "", text, flags=re.S)
    assert "<h1>Example X8, modelled, serial SN-0012, firmware 1.0.3</h1>" in still
    row = re.search(r"<tr><td>B\.1: .*?</tr>", still)
    assert row is not None
    assert re.findall(r"<td[^>]*>(.*?)</td>", row[0])[1:5] == [
        "PASS", "94.76 %", "&gt;= 90 %", "4.760 %",
    ]  # fmt: skip
    assert still.count('<table class="long still">') > 5


def test_many_clauses_and_suspects_are_counted() -> None:
    clause = {
        "id": None, "clause": None, "measure": "lost_frames", "require": "== 0", "verdict": "PASS",
        "value": 0, "margin": 0, "unit": "frames", "of": None, "reason": None,
    }  # fmt: skip
    failed = clause | {"verdict": "FAIL", "value": 3}
    summary = summary_of(
        expectations=[clause] * 13 + [failed], location={"suspects": [SUSPECT] * 4}
    )
    page = first_page(summary)  # type: ignore[arg-type]
    assert [one.verdict for one in page.clauses[:2]] == ["FAIL", "PASS"]
    assert page.further == "2 clauses and 1 suspect more below."


def test_the_page_prints(tmp_path: Path) -> None:
    """The first page ends where the paper does: what follows begins on another one."""
    try:
        build.find_browser()
    except ConfigurationError as error:
        pytest.skip(str(error))
    directory = golden.unpack("acceptance", tmp_path)
    pdf = tmp_path / "r.pdf"
    assert (
        main(["report", str(directory), "--out", str(tmp_path / "r.html"), "--pdf", str(pdf)]) == 0
    )
    content = pdf.read_bytes()
    assert content.startswith(b"%PDF-")
    assert len(re.findall(rb"/Type\s*/Page\b", content)) > 3
