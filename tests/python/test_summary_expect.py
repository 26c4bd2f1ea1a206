# SPDX-License-Identifier: BSD-3-Clause
"""Clauses of a contract: accepted, refused, inconclusive, and what can't be a clause."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from switchbench.errors import ConfigurationError
from switchbench.results.expect import MEASURES
from switchbench.results.summary import Summary, exit_status, schema
from synthetic import about, make_run, make_site, make_trial, pair_records

SITE = make_site()


def judge(records: list[dict[str, Any]], *clauses: dict[str, Any], **changes: Any) -> Any:
    run = make_run(SITE, make_trial(SITE, **changes), expectations=clauses)
    summary = Summary(run)
    for line, record in enumerate(records, start=1):
        summary.feed(line, record)
    return summary.finish(about(), [])


def clause(measure: str, require: str, over: str = "flow", **where: Any) -> dict[str, Any]:
    return {"id": "4.2", "measure": measure, "require": require, "over": over, "where": where}


@pytest.mark.parametrize(
    ("measure", "require", "over", "verdict", "value"),
    [
        ("lost_frames", "== 0", "flow", "refused", 10),
        ("lost_frames", "<= 10", "flow", "accepted", 10),
        ("lost_frames", "<= 10", "port", "accepted", 10),
        ("lost_frames", "< 10", "plan", "refused", 10),
        ("lost_frames", "<= 10", "run", "accepted", 10),
        ("throughput", ">= 92.6", "flow", "refused", 92.52),
        ("throughput", ">= 92.5", "phase", "accepted", 92.58),
        ("throughput_min", "> 92.5", "phase", "accepted", 92.52),
        ("percent_of_line", ">= 95", "port", "refused", 94.86384),
        ("duplicated_frames", "== 0", "run", "refused", 2),
        ("start_skew_us", "< 5000", "phase", "accepted", 120.5),
        ("loss_percent", "< 0.1 %", "flow", "refused", 0.125),
        ("elapsed_s", "<= 2", "plan", "accepted", 1.5),
    ],
)
def test_verdicts(measure: str, require: str, over: str, verdict: str, value: float) -> None:
    result = judge(pair_records(), clause(measure, require, over))
    (judged,) = result["expectations"]
    assert (judged["verdict"], judged["value"]) == (verdict, value)
    assert result["exit_status"] == {"accepted": 0, "refused": 1}[verdict]


def test_the_worst_flow_is_named() -> None:
    (judged,) = judge(pair_records(), clause("lost_frames", "== 0"))["expectations"]
    assert judged["of"] == "node2:e0 -> node1:e0 in trial 0 pairs phase 0"
    assert (judged["judged"], judged["failed"]) == (2, 1)


@pytest.mark.parametrize("require", ["== 0", "<= 10"])
def test_a_limiting_host_makes_loss_inconclusive(require: str) -> None:
    records = pair_records()
    records[6] |= {"dropped_send": 7}
    result = judge(records, clause("lost_frames", require), clause("start_skew_us", "< 1", "phase"))
    loss, skew = result["expectations"]
    assert loss["verdict"] == "inconclusive"
    assert loss["reason"] == "node1:e0: 7 frames dropped in the host"
    assert skew["verdict"] == "refused"  # no business of the host's drops
    assert result["exit_status"] == 1


def test_unobserved_values_are_inconclusive() -> None:
    records = pair_records()
    del records[5]  # the destination of the second flow
    (judged,) = judge(records, clause("lost_frames", "== 0"))["expectations"]
    assert judged["verdict"] == "inconclusive"
    assert judged["reason"] == "1 of 2 values could not be observed"


def test_unmeasured_trial_is_inconclusive_not_accepted() -> None:
    result = judge([], clause("lost_frames", "== 0"))
    assert result["expectations"][0]["verdict"] == "inconclusive"
    assert result["exit_status"] == 3


def test_where_selects() -> None:
    where = {"pattern": "pairs", "transport": "dpdk", "load": "95%", "partners": "neighbours",
             "frame_size": 1518, "ranks": [2, 4], "network": "lab"}  # fmt: skip
    (judged,) = judge(pair_records(), clause("lost_frames", "== 10", "run", **where))[
        "expectations"
    ]
    assert judged["verdict"] == "accepted"


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        (clause("lost_frames", "== 0", pattern="aapc"), "holds for no trial"),
        (clause("lost_frames", "== 0", load="94%"), "holds for no trial"),
        (clause("lost_frames", "== 0", colour="red"), "holds for no trial"),
        (clause("speed", "== 0"), "'speed' is none of throughput"),
        (clause("start_skew_us", "== 0", "flow"), "is judged over phase, plan, run"),
        (clause("lost_frames", "0"), "is not a comparison"),
        (clause("lost_frames", "== 0e"), "is not a comparison"),
        (clause("lost_frames", "=> 0"), "is not a comparison"),
    ],
)
def test_bad_clauses_are_refused_before_traffic(spec: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigurationError, match=r"expect 4\.2") as caught:
        Summary(make_run(SITE, make_trial(SITE), expectations=(spec,)))
    assert words in str(caught.value)


def test_every_measure_is_documented() -> None:
    text = (Path(__file__).parents[2] / "doc" / "measures.md").read_text("utf-8")
    clauses = text.split("## Clauses")[1].split("## Like names")[0]
    for name in MEASURES:
        assert f"`{name}`" in clauses, name


def test_every_key_of_the_summary_is_documented() -> None:
    """Each property of the schema says what it means, or is a definition that does."""

    def undescribed(place: str, node: Any) -> Iterator[str]:
        for name, value in node.get("properties", {}).items():
            said = {"description", "$ref", "const", "enum", "oneOf", "items"} & value.keys()
            if not said and not value.get("properties"):
                yield f"{place}.{name}"
            yield from undescribed(f"{place}.{name}", value)

    lacking = list(undescribed("", schema()))
    for name, definition in schema()["$defs"].items():
        lacking += undescribed(name, definition)
    assert set(lacking) <= {"trial.records.repeat", "trial.records.network", "trial.records.phase"}


def test_precedence_of_exit_status() -> None:
    refused, doubtful, fine = (
        {"verdict": word} for word in ("refused", "inconclusive", "accepted")
    )
    assert exit_status("partial", [refused]) == 3
    assert exit_status("failed", [fine]) == 3
    assert exit_status("complete", [doubtful, refused]) == 1
    assert exit_status("complete", [doubtful, fine]) == 4
    assert exit_status("complete", [fine]) == 0
