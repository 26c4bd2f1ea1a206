# SPDX-License-Identifier: BSD-3-Clause
"""Clauses of a contract: PASS, FAIL, INCONCLUSIVE, and what can't be a clause."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from recorded import fed
from switchbench.analysis.judge import Judge, exit_status
from switchbench.analysis.summary import Summary
from switchbench.base.errors import ConfigurationError
from switchbench.base.measures import MEASURES
from switchbench.config.clauses import canonical, clauses_sha256, parse_clause
from switchbench.records.summary_form import summary_schema
from synthetic import about, frame_side, make_run, make_site, make_trial, pair_records

SITE = make_site()
PAIR = ("node1:e0", "node2:e0")


def judge(records: list[dict[str, Any]], *clauses: dict[str, Any], **changes: Any) -> Any:
    run = make_run(SITE, make_trial(SITE, **changes), expectations=clauses)
    summary = fed(run, records)
    return summary.finish(about(), [])


def clause(measure: str, require: str, over: str = "flow", **where: Any) -> dict[str, Any]:
    return {"id": "4.2", "measure": measure, "require": require, "over": over, "where": where}


def test_only_the_worst_failures_are_named() -> None:
    """Of 40 ports that lost 0 to 39 frames those are named that lost the most."""
    site = make_site(40)
    records = []
    for i, port in enumerate(site.ports):
        ends = (port.name, site.ports[i ^ 1].name)
        sent = frame_side("source", *ends, 8000, 7720)
        records += [sent, frame_side("destination", *ends, 8000 - i, 7710)]
    run = make_run(site, make_trial(site, flows=40), expectations=(clause("lost_frames", "== 0"),))
    summary = fed(run, records)
    (judged,) = summary.finish(about(), [])["expectations"]
    assert (judged["judged"], judged["failed"]) == (40, 39)
    assert [failure["value"] for failure in judged["failures"]] == list(range(39, 19, -1))


def test_the_whole_verdict() -> None:
    """FAIL wins over INCONCLUSIVE, and in a run that is not complete nothing passes."""
    fine, bad = clause("lost_frames", "<= 10"), clause("lost_frames", "== 0")
    tested = {"switches": [{"vendor": "Example", "model": "X48", "serial": "7", "firmware": "4.2"}]}

    def verdict(*clauses: dict[str, Any], faults: tuple[str, ...] = ()) -> Any:
        run = make_run(SITE, make_trial(SITE), expectations=clauses, about=tested)
        summary = fed(run, pair_records())
        result = summary.finish(about(), faults)
        jsonschema.validate(result, summary_schema())
        assert result["run"]["about"] == tested
        return result["verdict"]

    passed = verdict(fine)
    switch = "Example X48 (serial 7, firmware 4.2)"
    assert passed["sentence"] == f"{switch} meets its one clause"
    assert passed["clauses_sha256"] == clauses_sha256([fine])
    counts = "(1 failed, 0 inconclusive, 1 passed)"
    assert verdict(fine, bad)["sentence"] == f"{switch} does not meet 1 of 2 clauses {counts}"
    assert passed["warnings"] == []
    partial = verdict(fine, faults=("node2 died",))
    assert partial["verdict"] == "INCONCLUSIVE"
    assert partial["sentence"].endswith(
        "neither passes nor fails: no clause failed, but the run is not complete"
    )
    assert verdict(fine, bad, faults=("node2 died",))["verdict"] == "FAIL"
    assert judge(pair_records())["verdict"] is None


def test_who_was_left_out_is_a_reservation() -> None:
    fine = clause("lost_frames", "<= 10")
    run = make_run(SITE, make_trial(SITE), expectations=(fine,), reservations=("short",))
    left_out = {"excluded_hosts": [{"host": "node3", "reason": "it does not answer"}]}
    verdict = Summary(run).finish(about() | left_out, [])["verdict"]
    assert verdict["warnings"] == ["short", "node3 was left out: it does not answer"]


def test_a_clause_may_cite_a_standard() -> None:
    words = "Throughput as RFC 1242, 3.17 defines it: no frame is lost (RFC 2544, 26.1)"
    spec = clause("lost_frames", "== 0") | {"clause": words, "source": "RFC 2544, 26.1"}
    (judged,) = judge(pair_records(), spec)["expectations"]
    assert (judged["clause"], judged["source"], judged["limit"]) == (words, "RFC 2544, 26.1", 0)


def test_canonical_form() -> None:
    """Keys in order, no spaces, what is usual written out, what was not given left out."""
    spec = {"require": "== 0", "measure": "lost_frames", "id": None, "clause": "Größe",
            "where": {"ranks": [2, 4], "load": "95%"}}  # fmt: skip
    text = (
        '[{"clause":"Größe","measure":"lost_frames","over":"run","require":"== 0",'
        '"where":{"load":"95%","ranks":[2,4]}}]'
    )
    assert canonical([spec]) == text.encode()
    assert clauses_sha256([spec]) == hashlib.sha256(text.encode()).hexdigest()
    assert clauses_sha256([spec | {"require": "== 1"}]) != clauses_sha256([spec])


def limited_phase(phase: int, lost: int, **port: Any) -> list[dict[str, Any]]:
    """The records of a phase in which the second flow lost so many frames, and node1's port says
    more of its host."""
    records = [r | {"phase": phase} for r in pair_records() if r["type"] not in ("hello", "trial")]
    records[3] |= {"frames": 8000 - lost}
    records[4] |= port
    return records


def phases_of(*phases: list[dict[str, Any]]) -> list[dict[str, Any]]:
    every = pair_records()
    return [*every[:2], *(record for phase in phases for record in phase), *every[-2:]]


BUSY = {"dropped_send": 7}  # node1's host


def test_a_clause_over_a_plan_judges_what_the_plans_table_shows() -> None:
    """The mean over its phases, and the time from its start to its end."""
    slow = limited_phase(1, 0)
    slow[3] |= {"window_frames": 3860, "window_payload_bytes": 3860 * 1500}
    result = judge(
        phases_of(limited_phase(0, 0), slow),
        *(clause(measure, ">= 90", "plan") for measure in ("throughput", "percent_of_line")),
        *(clause(measure, ">= 0", "plan") for measure in ("throughput_min", "throughput_total")),
        clause("elapsed_s", "<= 1", "plan"),
        phases=2,
        flows=4,
    )
    [plan] = result["plans"]
    rates = plan["throughput"]
    assert [judged["value"] for judged in result["expectations"]] == [
        rates["mean"], rates["percent_of_line"], rates["min"], rates["total"], plan["elapsed_s"]
    ]  # fmt: skip
    assert rates["mean"] == pytest.approx((92.64 + 92.52 + 92.64 + 46.32) / 4)


def test_a_clause_about_repeats_that_were_not_needed_does_not_pass() -> None:
    trial = make_trial(SITE)
    judging = Judge([clause("lost_frames", "== 0")], [trial])
    (judged,) = judging.verdicts({}, {(trial.id, trial.repeat)})
    assert (judged["judged"], judged["verdict"]) == (0, "INCONCLUSIVE")
    assert judged["reason"] == "nothing was measured that it is about"


@pytest.mark.parametrize(
    ("measure", "require", "sign", "limit"),
    [
        ("start_skew_us", "< 2 ms", "<", 2000.0),
        ("throughput", ">= 1.5 Gbit/s", ">=", 1500.0),
        ("throughput", "> 900 Mbit/s", ">", 900.0),
        ("lost_frames", "<= 2k", "<=", 2000.0),
    ],
)
def test_a_limit_may_have_another_unit(measure: str, require: str, sign: str, limit: float) -> None:
    found = parse_clause(clause(measure, require, "phase"))
    assert (found.sign, found.limit) == (sign, limit)


def test_where_selects() -> None:
    where = {"pattern": "pairs", "transport": "dpdk", "load": "95%", "partners": "neighbours",
             "frame_size": 1518, "ranks": [2, 4], "network": "lab"}  # fmt: skip
    (judged,) = judge(pair_records(), clause("lost_frames", "== 10", "run", **where))[
        "expectations"
    ]
    assert judged["verdict"] == "PASS"


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        (clause("lost_frames", "== 0", pattern="aapc"), "holds for no trial"),
        (clause("lost_frames", "== 0", load="94%"), "holds for no trial"),
        (clause("lost_frames", "== 0", colour="red"), "holds for no trial"),
        (clause("speed", "== 0"), 'there is no measure "speed"'),
        (clause("start_skew_us", "== 0", "flow"), "is judged over phase, plan, run"),
        (clause("lost_frames", "0"), "is not a comparison"),
        (clause("lost_frames", "== 0e"), "is not a comparison"),
        (clause("lost_frames", "=> 0"), "is not a comparison"),
        (clause("round_trip_p99_us", "<= 5 Mbit/s"), "Mbit/s is no unit of a time"),
        *(
            (clause("lost_frames", "== 0") | {"clause": words}, "which no verdict here can state")
            for words in (
                "The switch conforms to RFC 2544",
                "complies fully with the requirements of IEEE 802.3",
                "RFC 2889 compliance",
                "certified to ITU-T Y.1564",
                "Meets RFC 8239",
            )
        ),
    ],
)
def test_bad_clauses_are_refused_before_traffic(spec: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigurationError, match=r"expect 4\.2") as caught:
        Summary(make_run(SITE, make_trial(SITE), expectations=(spec,)))
    assert words in str(caught.value)


def test_every_measure_is_documented() -> None:
    text = (Path(__file__).parents[2] / "doc" / "reference" / "measures.md").read_text("utf-8")
    clauses = text.split("## Clauses")[1].split("## Like names")[0]
    for name in MEASURES:
        assert f"`{name}`" in clauses, name


def test_every_key_of_the_summary_is_documented() -> None:
    """Each key says what it means."""
    schema = summary_schema()
    parts = {"": schema, **schema["$defs"]}
    lacking = [
        f"{part}.{key}"
        for part, form in parts.items()
        for key, value in form.get("properties", {}).items()
        if "description" not in value
    ]
    assert lacking == []


def test_only_rates_have_to_be_sure_over_repeats() -> None:
    rates = {f"throughput{name}" for name in ("", "_min", "_max", "_total")}
    rates |= {"percent_of_line", "min_percent_of_line"}
    assert {name for name, measure in MEASURES.items() if measure.of_repeats} == rates


@pytest.mark.parametrize(
    ("run", "words", "judged", "status"),
    [
        ("partial", ("FAIL",), True, 3), ("failed", ("PASS",), True, 3),
        ("partial", (), False, 3), ("complete", ("INCONCLUSIVE", "FAIL"), True, 1),
        ("complete", ("FAIL",), False, 1), ("complete", ("INCONCLUSIVE", "PASS"), True, 4),
        ("complete", ("PASS",), False, 4), ("complete", ("PASS",), True, 0),
    ],
)  # fmt: skip
def test_precedence_of_exit_status(
    run: str, words: tuple[str, ...], judged: bool, status: int
) -> None:
    assert exit_status(run, [{"verdict": word} for word in words], judged) == status


def test_a_run_in_which_nothing_could_be_judged_is_inconclusive() -> None:
    """Without a clause, too; one phase that the tester did not limit is enough."""
    limited, fair = limited_phase(0, 0, **BUSY), limited_phase(1, 0)
    result = judge(phases_of(limited))
    assert (result["status"], result["exit_status"]) == ("complete", 4)
    [why] = result["not_measured"]
    assert why == "nothing could be judged: the tester was the limit in 1 of 1 phase"
    jsonschema.validate(result, summary_schema())
    assert judge(phases_of(limited, fair), phases=2, flows=4)["exit_status"] == 0
    assert judge(phases_of(limited), clause("start_skew_us", "< 240", "phase"))["exit_status"] == 0
