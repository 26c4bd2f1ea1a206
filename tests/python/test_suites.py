# SPDX-License-Identifier: BSD-3-Clause
"""Suites of documents: declared, planned, measured on simulated devices, judged and shown; and read
again from their results."""

from __future__ import annotations

import json
import random
import re
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from bench import Bench, suite_run, summary_of
from configs import LAB, PROJECT, assert_has, compile_text, needs_engine
from golden import unpacked
from switchbench.analysis.data import Measured
from switchbench.analysis.judge import exit_status
from switchbench.analysis.measures import PhaseResult, PortShares
from switchbench.analysis.suite import (
    SuiteCourse,
    nothing_judged,
    replayed,
    search_entries,
    suite_entries,
    suite_summary,
    suite_verdict,
    trial_facts,
    trial_loss,
)
from switchbench.base.errors import RunError
from switchbench.base.model import DeviceReset, Load, Run, Trial
from switchbench.base.source import read_file
from switchbench.cli.run import announce
from switchbench.plan.compile import refuse_too_long
from switchbench.plan.documents import job_document, trial_document
from switchbench.records.directory import SUMMARY, read_plan, write_plan
from switchbench.records.rows import NOTHING, PhaseKey, PhaseRows
from switchbench.render import first_screen
from switchbench.render.report import build, times
from switchbench.render.report.build import Sentences, make
from switchbench.render.tables import TABLES, every, subtests
from switchbench.run.controller import device_reset
from switchbench.search.loads import LoadRange, SearchGoal, TrialLoss
from switchbench.search.suites import SUITES, declaration, methods, suite_measures
from switchbench.search.suites.declaration import PortFacts, SuiteParameters, SuitePoint, TrialFacts
from switchbench.search.suites.formulas import variation_percent
from synthetic import flows_of, frame_side, make_site, make_trial

pytestmark = needs_engine

DOCUMENTS = [suite for suite in SUITES.values() if not suite.is_free]
LABS = {"four": "switchbench: 1\nsite: {lab: model-good, nodes: 4, rate: 20M}\n", "eight": LAB}
DATA = PROJECT / "tests/python/data"
CASES: dict[str, dict[str, Any]] = read_file(DATA / "suites.yaml").data
LATE: dict[str, list[list[Any]]] = read_file(DATA / "late_senders.yaml").data

FIGURES = {
    *("rfc2544-throughput", "rfc2544-loss-rate"),
    *(f"rfc2889-{name}" for name in ("full-mesh", "partial-mesh", "uplink", "half-mesh")),
    *("rfc2889-max-forwarding-rate", "rfc2889-broadcast-throughput"),
}

Device = Callable[[Trial], TrialFacts]
Planned = Callable[..., Run]


@pytest.fixture
def planned(tmp_path: Path) -> Planned:
    """Compile a suite, or some subtests of it, in a lab."""

    def compiled(
        named: str, size: int | None = None, more: str = "", lab: str = LABS["four"],
        **parameters: float,
    ) -> Run:  # fmt: skip
        suite, *subtests = named.split()
        text = f"{lab}suite: {suite}\n{more}\n"
        tests = ", ".join(f"{{subtest: {one}}}" for one in subtests)
        text += f"tests: [{tests}]\n" if subtests else ""
        text += f"frame_size: {size}\n" if size else ""
        text += f"suite_parameters: {parameters}\n" if parameters else ""
        return compile_text(tmp_path, text)

    return compiled


def measured(run: Run, device: Device, trials: int = 10_000) -> SuiteCourse:
    course = SuiteCourse(run)
    while course.trial is not None and course.trial.id < trials:
        course.answer(device(course.trial))
    return course


def rows(course: SuiteCourse, subtest: str) -> list[dict[str, Any]]:
    """Return the rows of a subtest, or of a subtest and size: `latency 64`."""
    name, _, size = subtest.partition(" ")
    return [
        row | {"size": entry["size"], "outcome": entry["outcome"], "complete": entry["complete"]}
        for entry in suite_entries(course)
        if entry["subtest"] == name and (not size or entry["size"] == int(size))
        for row in entry["rows"]
    ]


# --- devices -------------------------------------------------------------------------------------


def says(**facts: Any) -> Device:
    """Return a device with the same result in every trial."""
    return cycle([facts])


def cycle(facts: list[dict[str, Any]]) -> Device:
    """Return a device with these results in turn, trial by trial."""
    return lambda trial: TrialFacts(tester_limited=False, **facts[trial.id % len(facts)])


def forwards(percent: float, limited: Any = (), of: dict[str, Any] | None = None) -> Device:
    """A device that forwards so much of every port's line rate, and loses the rest. `of`: what is
    different in the trials of some subtests."""

    def measure(trial: Trial) -> TrialFacts:
        load = trial.load.percent or 0.0
        offered = round(1e6 * load * trial.window_s)
        lost = round(offered * max(0.0, 1 - percent / load))
        found = TrialFacts(
            offered=offered, lost=lost, tester_limited=trial.sizes[0] in limited,
            offered_fps=1e4 * load, latency_us={"min": 10.0, "mean": 20.0, "max": 70.0},
            duration_s=trial.window_s,
        )  # fmt: skip
        return replace(found, **(of or {}).get(trial.parameters.get("subtest"), {}))

    return measure


def clumped(percent: float) -> Device:
    """Return a device that loses a few frames of a clump in two of three trials."""

    def measure(trial: Trial) -> TrialFacts:
        found, load = forwards(percent)(trial), trial.load.percent or 0.0
        lost = found.lost + (0 if trial.id % 3 == 0 else 5)
        port = PortFacts(found.offered, lost, 1e4 * min(load, percent), 1e4 * load)
        return replace(found, lost=lost, late_frames=8, late_total=200, ports={"c": port})

    return measure


def stutters(percent: float, late: int) -> Device:
    """Return a device with a capacity, and senders that are late by so many frames a trial."""

    def measure(trial: Trial) -> TrialFacts:
        load = trial.load.percent or 0.0
        offered = round(85 * load * trial.window_s)
        lost = round(offered * max(0.0, 1 - percent / load))
        return TrialFacts(offered=offered, lost=lost, late_total=late, tester_limited=False)

    return measure


def recovers(percent: float, seconds: float) -> Device:
    """Return a device that loses frames for so long after the load has fallen."""
    asked, frame_s = SUITES["rfc2544"].lab, 8 * 1538 / 20e6

    def measure(trial: Trial) -> TrialFacts:
        found = forwards(percent)(trial)
        if trial.parameters["subtest"] != "recovery":
            return found
        assert trial.load.percent == pytest.approx(1.1 * percent, rel=0.01)
        assert trial.window_s == asked.trial_s + asked.recovery_s
        fall = {"falls_to": 50.0, "falls_after_ns": round(asked.trial_s * 1e9)}
        assert trial_document(trial)["dpdk"].items() >= fall.items()
        after_s = frame_s / (0.5 * (trial.load.percent or 0.0) / 100)
        return replace(found, last_gap_s=asked.trial_s + seconds + after_s)

    return measure


def frames_of(trial: Trial) -> int:
    return int(trial_document(trial)["burst"]["frames"])


def buffers(frames: float, sporadic: bool = False) -> Device:
    """A port of which so many frames wait; all ports but one send to it at once. `sporadic`: of
    each length the first burst loses three frames more."""
    seen = set[int]()

    def measure(trial: Trial) -> TrialFacts:
        senders = len(set(trial.pattern["list"][::2]))
        share = senders * (trial.load.percent or 0.0) / 100
        if trial.traffic != "burst":
            lost = round(1e6 * max(0.0, 1 - 1 / share))
            return TrialFacts(offered=10**6, lost=lost, tester_limited=False)
        each = frames_of(trial)
        lost = max(0, round(senders * each * (1 - 1 / share) - frames)) if share > 1 else 0
        lost += 3 if sporadic and each not in seen else 0
        seen.add(each)
        return TrialFacts(offered=senders * each, lost=lost, tester_limited=False)

    return measure


def two_loads(held: int, late: int = 0, always_late: int = 0) -> Device:
    """A device each of whose ports holds so many frames, until the bursts at line rate are over.
    `late`: by so many frames are senders late in two trials of three; so many more fit then."""

    def measure(trial: Trial) -> TrialFacts:
        frames, load = frames_of(trial), trial.load.percent
        assert load == 99.98
        behind = late if trial.id % 3 else 0
        arrived: Counter[int] = Counter()
        sent = [int(frames * share / 1e9 + 0.5) for share in trial.pattern["shares"]]
        for destination, count in zip(trial.pattern["list"][1::2], sent, strict=True):
            arrived[destination] += count
        beyond = [count - frames * 100 / load - held - behind for count in arrived.values()]
        lost = sum(max(0, round(excess)) for excess in beyond)
        behind = always_late or behind
        return TrialFacts(offered=sum(sent), lost=lost, tester_limited=False, late_frames=behind)

    return measure


def late(held: int, stalls: random.Random | None = None) -> Device:
    """Ports whose egress queues hold so many frames, and senders that share a core, which is taken
    away for once in some trials: what was due meanwhile leaves at line rate behind that."""

    def measure(trial: Trial) -> TrialFacts:
        frames, sources = frames_of(trial), trial.pattern["list"][::2]
        load = (trial.load.percent or 0.0) / 100
        shares = [share / 1e9 for share in trial.pattern.get("shares", [10**9] * len(sources))]
        away = away_end = 0.0  # times are in those of a frame
        if stalls is not None and stalls.random() < 0.5:
            away = stalls.uniform(0, frames / load)
            away_end = away + stalls.expovariate(1 / 20)
        arrivals: dict[int, list[float]] = {}
        behind = []
        for destination, share in zip(trial.pattern["list"][1::2], shares, strict=True):
            due = [number / (load * share) for number in range(round(frames * share))]
            behind.append(max(0, sum(away <= at < away_end for at in due) - 1))
            free = 0.0
            for at in due:
                free = max(free, away_end if away <= at < away_end else at) + 1
                arrivals.setdefault(destination, []).append(free)
        return TrialFacts(
            offered=sum(map(len, arrivals.values())),
            lost=sum(overflow(sorted(times), held) for times in arrivals.values()),
            late_frames=max(behind), late_total=sum(behind), tester_limited=False,
        )  # fmt: skip

    return measure


def overflow(arrivals: list[float], held: int) -> int:
    """Return frames that come when so many wait, and one is leaving."""
    waiting, before, lost = 0.0, 0.0, 0
    for at in arrivals:
        waiting = max(0.0, waiting - (at - before))
        before = at
        if waiting > held:
            lost += 1
        else:
            waiting += 1
    return lost


def congested(blocks: bool, pauses: bool) -> Device:
    """Groups of four: a port that gets 150 %; one that gets half, and loses some if it blocks."""

    def measure(trial: Trial) -> TrialFacts:
        names = [port.name for port in trial.parts[0].ranks]
        starts, ends = trial.pattern["list"][::2], trial.pattern["list"][1::2]
        pairs = zip(starts, ends, strict=True)
        full = {end for start, end in pairs if starts.count(start) == 1}
        ports = {
            names[end]: PortFacts(1500, 0 if pauses else 500, 1000.0)
            if end in full
            else PortFacts(500, 20 if blocks else 0, 480.0 if blocks else 500.0)
            for end in set(ends)
        }
        lost = sum(port.lost for port in ports.values())
        return TrialFacts(
            offered=2000, lost=lost, tester_limited=False, ports=ports, offered_fps=9.0
        )

    return measure


def overloaded(percent: float, held: float = 0.0, less: float = 0.0) -> Device:
    """A device that forwards so much, and `less` for each percent beyond. `held`: up to that load
    its buffers hold the rest of a short trial."""

    def measure(trial: Trial) -> TrialFacts:
        load = trial.load.percent or 0.0
        carried = min(load, percent) - less * max(0.0, load - percent)
        return TrialFacts(
            offered=10**6, lost=round(1e6 * max(0.0, 1 - (held or carried) / load)),
            offered_fps=load * 10, delivered_fps=carried * 10, tester_limited=False,
        )  # fmt: skip

    return measure


def table(size: int, ageing_s: float = 1e9, drops: bool = False, sporadic: bool = False) -> Device:
    """Return a table of so many addresses, each of which is forgotten so long after it was learned.
    `drops`: what is not in it is lost, and not flooded. `sporadic`: of each number the first trial
    loses a frame."""
    seen = set[int]()

    def measure(trial: Trial) -> TrialFacts:
        dpdk = trial_document(trial)["dpdk"]
        count = dpdk["addresses"]
        assert frames_of(trial) == count
        assert trial_document(trial)["flood_limit"] == 0
        # Learned one after the other; the first are forgotten before the last has come.
        unknown = count - min(count, size - 3, int(ageing_s * dpdk["learning_rate"]))
        lost = int(sporadic and count not in seen) + (unknown if drops else 0)
        seen.add(count)
        flooded = 0 if drops else unknown
        return TrialFacts(offered=count, lost=lost, flooded=flooded, tester_limited=False)

    return measure


def learner(rate: float, queue: int = 8, table: int = 10**6) -> Device:
    """Return a table that learns at a rate, where a few addresses wait."""
    known = set[int]()

    def measure(trial: Trial) -> TrialFacts:
        dpdk = trial_document(trial)["dpdk"]
        count, asked, first = dpdk["addresses"], dpdk["learning_rate"], dpdk["address_first"]
        assert not known & set(range(first, first + count))
        flooded = max(0, round(count * (1 - rate / asked)) - queue)
        flooded = min(count, max(flooded, len(known) + count - table))
        known.update(range(first, first + count - flooded))
        return TrialFacts(offered=count, flooded=flooded, tester_limited=False)

    return measure


DEVICES: dict[str, Callable[..., Device]] = {
    made.__name__: made
    for made in (
        *(says, cycle, forwards, clumped, recovers, buffers, two_loads, late),
        *(congested, overloaded, table, learner),
    )
}


def assert_is(found: dict[str, Any], wanted: dict[str, Any]) -> None:
    for key, value in wanted.items():
        if isinstance(value, str) and " .. " in value:
            assert_has(found, {key: value})
        elif isinstance(value, str):
            assert value in found[key], key
        elif isinstance(value, float):
            assert found[key] == pytest.approx(value), key
        else:
            assert found.get(key) == value, key
            # Which a terminal prints as `1`.
            assert isinstance(found.get(key), bool) == isinstance(value, bool), key


@pytest.mark.parametrize("name", CASES)
def test_measured(name: str, planned: Planned) -> None:
    """Each device has these rows and verdicts."""
    case = CASES[name]
    lab, parameters = LABS[case.get("lab", "four")], case.get("parameters", {})
    run = planned(case["plan"], case.get("size"), case.get("more", ""), lab, **parameters)
    [(named, settings)] = case["device"].items()
    device = DEVICES[named](**settings)

    def answer(trial: Trial) -> TrialFacts:
        assert_has(trial_document(trial), case.get("document", {}))
        return device(trial)

    course = measured(run, answer, case.get("trials", 10_000))
    for subtest, wanted in case.get("rows", {}).items():
        found = rows(course, subtest)
        each = [wanted] * len(found) if isinstance(wanted, dict) else wanted
        assert found
        for row, values in zip(found, each, strict=True):
            assert_is(row, values)
    for subtest, count in case.get("count", {}).items():
        assert len(rows(course, subtest)) == count
    for clause, wanted in case.get("verdicts", ()):
        assert_is(suite_verdict(clause, course), wanted)
    searches = [each.search for each in course.measurements]
    for search, trials in zip(searches, case.get("again", ()), strict=False):
        assert search is not None
        assert search.trials == trials


# --- declarations --------------------------------------------------------------------------------


@pytest.mark.parametrize("suite", DOCUMENTS, ids=lambda suite: suite.name)
def test_a_declaration_is_whole(suite: Any) -> None:
    names = [each.name for each in suite.subtests]
    assert len(set(names)) == len(names)
    assert not set(names) & suite.refused.keys()
    assert all(each.values and each.variants and each.section for each in suite.subtests)
    two = [each.name for each in suite.subtests if each.two_transports]
    assert two == (["incast"] if suite.name == "rfc8239" else [])
    for each in suite.subtests:
        assert set(each.needs) < set(names)
        flows = [variant.flows for variant in each.variants(each.ports_min)]
        assert all(flows), each.name
        for one in flows:
            assert len(set(one)) == len(one), each.name
            assert all(source != destination for source, destination in one)
            assert max(max(flow) for flow in one) < each.ports_min
    for parameters in (suite.parameters, suite.lab):
        assert all(getattr(parameters, name) > 0 for name in suite.uses)
    keys = [v.key for each in suite.subtests for v in each.values if not v.of_setting]
    assert len(set(keys)) == len(keys)
    assert all(suite_measures()[f"{suite.name}.{key}"].definition for key in keys)


@pytest.mark.parametrize("suite", SUITES.values(), ids=lambda suite: suite.name)
def test_what_the_reporting_sections_ask_for_is_somewhere(suite: Any) -> None:
    """Each statement names tables, figures or sentences that the report has."""
    tables = {spec.name for spec in every()}
    for one in suite.statements:
        named = re.findall(r"(table|figure|sentence) `([^`]+)`", one.where)
        assert named, one.asks
        for kind, name in named:
            places = {"table": tables, "figure": FIGURES, "sentence": set(first_screen.SENTENCES)}
            assert name in places[kind], (one.asks, name)


# --- configurations ------------------------------------------------------------------------------


def test_a_site_is_warned_before_the_run_and_a_lab_is_not(
    planned: Planned, capsys: pytest.CaptureFixture[str]
) -> None:
    run = planned("rfc2544", 64)
    announce(run)
    assert "RFC 6815" not in capsys.readouterr().err
    announce(replace(run, site=replace(run.site, launch="ssh")))
    assert "must not run on one that others use (RFC 6815)" in capsys.readouterr().err


def test_the_goals_of_ndr_and_pdr_are_parameters(planned: Planned) -> None:
    loads = SUITES["ndr-pdr"].subtest(None)
    assert loads.goals is not None
    ndr = SearchGoal(0.0, 0.5, 1.0, 21.0)  # as FD.io CSIT searches it
    usual = loads.goals(SUITES["ndr-pdr"].parameters)
    assert usual == {"ndr": ndr, "pdr": replace(ndr, loss_ratio=0.005)}
    run = planned(
        "ndr-pdr", 1518,
        trial_s=2, duration_sum_s=6, initial_s=0.5, pdr_loss_percent=2, exceed_percent=0,
    )  # fmt: skip
    ndr, pdr = loads.goals(SuiteParameters(**run.suite_parameters)).values()
    assert pdr == replace(ndr, loss_ratio=0.02) == SearchGoal(0.02, 0.0, 2.0, 6.0, 0.5)
    course = measured(run, forwards(60.0))
    found = {entry["goal"]: entry["relevant_lower_bound"] for entry in search_entries(course)}
    assert found == {"ndr": pytest.approx(60.0, rel=0.005), "pdr": pytest.approx(61.2, rel=0.005)}


# --- what is said --------------------------------------------------------------------------------


def test_a_suite_whose_every_search_was_tester_limited_judged_nothing(planned: Planned) -> None:
    entries: Any = [{"tester_limited": [{"port": "node1:e0"}]}]
    run = planned("rfc2544 throughput", more="frame_sizes: [64, 1518]")
    why = nothing_judged(entries, [], measured(run, forwards(61.3, (64, 1518))))
    assert why is not None
    assert why.startswith("nothing could be judged: ")
    assert "The tester, not the device, was the limit" in why
    assert exit_status("complete", [], judged=why is None) == 4
    for device in (forwards(61.3, (64,)), forwards(0.5)):  # which fails at the min of the range
        assert nothing_judged(entries, [], measured(run, device)) is None


@pytest.mark.parametrize("name", ["rfc2544", "rfc2889"])
def test_the_graphs_are_drawn_with_the_theoretical_line(planned: Planned, name: str) -> None:
    subtests = [one for one in SUITES[name].subtests if one.quantity == "load" and not one.resets]
    words = " ".join([name, *(one.name for one in subtests)])
    run = planned(words, more="frame_sizes: [64, 1518]\n", lab=LAB)
    ports = {port.name: PortFacts(9, 0, 1.0) for port in run.site.ports}
    course = measured(run, lambda trial: replace(forwards(61.3)(trial), ports=ports))
    summary = {"suite": suite_summary(run, course)}
    drawn = {one.name: one for one in times.suites(SimpleNamespace(summary=summary))}  # type: ignore[arg-type]
    assert set(drawn) == {each for each in FIGURES if each.startswith(name)}
    rates = next(figure for each, figure in drawn.items() if not each.endswith("loss-rate"))
    assert rates.data[0]["name"] == "theoretical max"
    sizes, max_fps = (unpacked(rates.data[0][axis]) for axis in "xy")
    assert (sizes[0], sizes[-1]) == (64, 1518)
    # The line rate / (8 x (size + 20)) at each size.
    assert max_fps * 8 * (sizes + 20) == pytest.approx(run.site.ports[0].line_rate_bps)
    # Of one size the axis of rates begins at 0: between 1,000 and 2,000 it would have no tick.
    assert rates.layout["yaxis"]["type"] == "log"
    for entry in summary["suite"]["subtests"]:
        entry["size"] = 64
    again = times.suites(SimpleNamespace(summary=summary))  # type: ignore[arg-type]
    one = next(each for each in again if each.name == rates.name)
    assert one.layout["yaxis"].get("type", one.layout["yaxis"]["rangemode"]) == "tozero"


def test_a_report_begins_with_what_the_suite_came_to(planned: Planned) -> None:
    more = "frame_sizes: [512, 1518]\ndpdk: {header: ipv4-udp, dscp: 10}\n"
    run = planned("rfc2544 throughput recovery", more=more)
    summary = {"suite": suite_summary(run, measured(run, forwards(100.0))), "ports": []}
    assert first_screen.headline(summary) == "RFC 2544: 2 of 2 tests complete"
    notes = {title: lines for title, lines, _ in first_screen.suite_notes(summary)}
    assert notes["Excluded"] == [
        "recovery pairs, 512 B frames, 1518 B frames: Excluded: the device forwards this size at "
        "the max rate: no overload."
    ]
    assert notes["Statements"][0] == (
        "Set-up: 0 ports, Ethernet, 20 Mbit/s over dpdk, DSCP 10, at a constant interval. Where "
        "ports are on the device is not known: the site has no wiring."
    )
    (latency,) = [spec for spec in subtests() if spec.name == "rfc2544-throughput"]
    assert [row["media"] for row in latency.entries(summary)] == ["Ethernet, 20 Mbit/s"] * 2
    assert first_screen.performance(summary) in notes["Statements"]
    assert "Not run: latency, loss-rate, back-to-back, reset." in notes["Statements"]
    asked = next(
        part for part in build.suite(summary) if "sections require" in getattr(part, "title", "")
    )
    assert any("table “System recovery”" in line for line in asked.every)
    assert not any("“Latency”" in line for line in asked.every)
    said = [part for part in build.suite(summary) if isinstance(part, Sentences)]
    assert [line for part in said for line in part.every if "`" in line] == []
    assert first_screen.performance(summary).startswith("Performance: 4,699 frames/s per port")
    summary["suite"]["subtests"] = suite_entries(measured(run, forwards(100.0), trials=1))
    assert first_screen.headline(summary) == "RFC 2544: 0 of 2 tests complete"


def test_the_loads_of_one_search_are_its_headline() -> None:
    ends = {"load_unit": "% of line", "regular": True}
    found = [
        {"goal": goal, "relevant_lower_bound": load} | ends
        for goal, load in (("ndr", 61.12), ("pdr", 61.74))
    ]
    assert first_screen.headline({"searches": found}) == "NDR 61.12 % of line, PDR 61.74 % of line"
    found[1]["regular"] = False
    assert first_screen.headline({"searches": found}) == "1 of 2 goals reached"
    assert first_screen.headline({}) is None


def test_further_ports_of_an_interface_are_none_of_the_device() -> None:
    names = ("node1:e0", "node2:e0", "node2:e0-stateless")
    ports = [{"port": name, "network": "lab"} for name in names]
    ports.append({"port": "node2:e0-stateless", "network": "lab-stateless"})
    suite: Any = {"name": "rfc8239", "subtests": [], "parameters": {}, "media": ""}
    summary = {"suite": suite | {"traffic_classes": []}, "ports": ports}
    assert next(first_screen.statements(summary, SUITES["rfc8239"])).startswith("Set-up: 3 ports,")
    listens = summary | {"plans": [{"ranks": 4}]}
    assert next(first_screen.statements(listens, SUITES["rfc8239"])).startswith("Set-up: 4 ports,")


# --- a reset -------------------------------------------------------------------------------------


def reset(command: str, trial: Trial, *steps: dict[str, Any], wait_s: float = 0.3) -> None:
    """Run a trial's reset beside progress records: `trial`, `step`."""
    with device_reset(DeviceReset(tuple(command.split()), 5.0), trial) as take:
        for step in steps:
            take({"type": "progress", "trial": trial.id, "step": "window"} | step)
        time.sleep(wait_s)


def test_the_device_is_reset_within_the_window(tmp_path: Path) -> None:
    trial = make_trial(make_site(2), window_s=0.2, expected_s=0.3)
    flag = tmp_path / "reset"
    with pytest.raises(RunError, match="the trial ended before its command was run"):
        reset(f"touch {flag}", trial, {"step": "warmup"}, {"trial": trial.id + 1})
    assert not flag.exists()
    reset(f"touch {flag}", trial, {}, {})
    assert flag.exists()


@pytest.mark.rows
def test_a_reset_that_failed_or_was_not_begun_is_said(window_s: float, words: str) -> None:
    with pytest.raises(RunError, match=words):
        reset("false", make_trial(make_site(2), window_s=window_s), {})


# --- searches ------------------------------------------------------------------------------------


SECTION_3 = {
    "buffer-efficiency": "efficiency_buffer", "buffer-port": "port_buffer",
    "buffer-port-pairs": "pair_buffer", "buffer-many-to-one": "buffer",
}  # fmt: skip


@pytest.mark.rows
def test_late_senders_change_no_result(
    planned: Planned, suite: str, subtest: str, key: str, within: float
) -> None:
    """The same is found as by senders that are never late, exact to one per ingress, or nothing."""
    named = subtest in SECTION_3
    more = "tests: [{subtest: microburst, variant: 3 to 1}]\n" if subtest == "microburst" else ""
    words, lab = (f"{suite} {subtest}", LAB) if named else (suite, LABS["four"])
    run = planned(words, 1518, more, lab, **({"burst_s": 0.2} if named else {"burst_repeats": 3}))

    def found(stalls: random.Random | None = None) -> list[dict[str, Any]]:
        bursts, streams = late(30, stalls), buffers(30)
        course = measured(
            run, lambda trial: (bursts if trial.traffic == "burst" else streams)(trial)
        )
        return rows(course, subtest)

    truth, known = found(), 0
    assert all(row["complete"] for row in truth)
    if named:
        assert [row[key] for row in truth] == pytest.approx([30] * len(truth), abs=1.5)
    for seed in range(5):
        for row, true in zip(found(random.Random(seed)), truth, strict=True):
            if row["complete"]:
                assert row[key] == pytest.approx(true[key], abs=within)
                known += 1
            else:
                assert row["outcome"].startswith("The tester, not the device, was the limit")
    assert known > 0.9 * 5 * len(truth) or not named


@pytest.mark.parametrize("name", LATE)
def test_what_a_late_sender_may_be_why_of(name: str) -> None:
    """By lost frames, and by how many frames a sender was late."""
    suite, subtest = name.split()
    point = SuitePoint(
        1518, 1e9, LoadRange(1, 100, "% of line"), flows=((0, 2), (1, 2)), ports=("a", "b", "c")
    )
    asked = SUITES[suite].subtest(subtest)
    for lost, behind, unclear in LATE[name]:
        ports = {"c": PortFacts(99, lost, 5.0, 5.1)}
        facts = TrialFacts(
            offered=99, lost=lost, late_frames=behind, late_total=7 if behind else 0, ports=ports
        )
        assert asked.is_unclear(point, facts, {"c": 9.0}) == unclear
        if asked.quantity == "load":  # what is offered beyond all that it received is too much
            assert not asked.is_unclear(point, facts, {"c": 9.0}, 7)  # as many cost nothing
            assert asked.is_unclear(point, facts, {"c": 9.0}, 6) == unclear
            assert not asked.is_unclear(point, facts, {"c": 5.0})
            assert asked.is_unclear(point, facts, {"c": 5.06}) == unclear  # as windows differ


def test_late_frames_that_do_no_harm_just_below_excuse_no_loss(planned: Planned) -> None:
    """Each trial has late frames enough to explain its loss; just below, as many cost nothing."""
    course = measured(planned("ndr-pdr", 1518, trial_s=1), stutters(75.1, 60))
    ndr, pdr = course.measurements[0].results
    assert ndr.is_regular
    assert pdr.is_regular
    assert ndr.relevant_lower_bound == pytest.approx(75.1, rel=0.006)


@pytest.mark.parametrize("clear", [0, 1])
def test_a_search_without_a_lower_bound_has_a_row_without_values(
    planned: Planned, clear: int
) -> None:
    """All trials are void, or all but the first, which loses frames."""
    device = stutters(0.5, 10**6)
    course = measured(
        planned("ndr-pdr", 1518, trial_s=1),
        lambda trial: replace(device(trial), late_total=0 if trial.id < clear else 10**6),
    )
    (entry,) = suite_entries(course)
    (row,) = entry["rows"]
    assert set(row.values()) == {None}
    assert "The tester, not the device, was the limit at " in entry["outcome"]


def test_each_iteration_is_listed(planned: Planned) -> None:
    """RFC 2889, 5.7.5 requires the list; a number that failed is tried again."""
    run = planned("rfc2889 address-capacity", learning_fps=350)
    course = measured(run, table(777, 1.5))
    listed = list(TABLES["suite-trials"].entries({"suite": suite_summary(run, course)}))
    columns = ("number", "value", "learning_rate", "offered", "forwarded", "flooded")
    assert [tuple(one[key] for key in columns) for one in listed[-2:]] == [
        (len(listed) - 1, 525, pytest.approx(350), 525, 525, 0),
        (len(listed), 526, pytest.approx(700), 526, 526, 0),
    ]
    assert [one["flooded"] for one in listed if one["value"] == 526] == [1, 1, 0]


@pytest.mark.parametrize("held", [12, 42, 170])
def test_a_further_port_s_search_begins_at_the_first_ones_buffer(
    planned: Planned, held: int
) -> None:
    run = planned(" ".join(["rfc8239", *SECTION_3]), 1518, lab=LAB)
    course = measured(run, late(held))
    trials = [each.search.trials for each in course.measurements if each.search is not None]
    assert len(trials) == 1 + 6 + 2 + 8
    assert max(trials[1:9]) <= 3  # procedures 2 and 3
    assert max(trials[10:]) <= 4
    assert all(each.outcome()[1] for each in course.measurements)


def test_time_that_a_measurement_did_not_use_is_left_to_those_behind_it(planned: Planned) -> None:
    run = planned("rfc2544 throughput latency loss-rate", 1518)
    run = replace(run, time_limit_s=1.01 * sum(run.estimates_s))
    # Longer than it was estimated: the latency of a device at line rate, whose throughput is quick.
    run = replace(run, estimates_s=(run.estimates_s[0], 0.5 * run.estimates_s[1], 0.1))
    course = measured(run, forwards(100.0))
    assert [one.outcome()[1] for one in course.measurements] == [True, True, True]
    used_s = sum(one.search.used_s for one in course.measurements if one.search is not None)
    assert used_s < run.time_limit_s


def test_the_estimate_of_buffers_is_near_what_they_take(planned: Planned) -> None:
    """Searches behind the first begin where that has ended."""
    run = planned("rfc8239 buffer-efficiency buffer-port buffer-many-to-one", 1518)
    course = measured(run, late(42))
    used_s = [one.search.used_s for one in course.measurements if one.search is not None]
    assert sum(run.estimates_s) < 3 * sum(used_s)
    refuse_too_long(replace(run, time_limit_s=1.1 * sum(used_s)))


# --- flows ---------------------------------------------------------------------------------------


def test_the_iterations_of_rfc8239s_buffers() -> None:
    assert [each.flows for each in declaration.each_port(5)] == [
        ((0, 1), (2, 1)), ((1, 2), (3, 2)), ((2, 3), (4, 3)),
    ]  # fmt: skip
    first, last = declaration.port_pairs(8)
    assert first.flows == ((0, 1), (2, 3), (4, 5), (6, 1), (7, 3))
    assert last.flows == ((0, 1), (2, 3), (4, 5), (6, 3), (7, 5))
    assert (first.name, last.name) == ("to port 2 and 4", "to port 4 and 6")
    assert (first.extra, last.extra) == (2, 2)
    assert [each.flows for each in declaration.first_ports(9)] == [((0, 1), (2, 1))]
    for percent in (1.0, 10.0):
        point = SuitePoint(
            64, 1e8, LoadRange(1, 99.98, "%"),
            parameters=SuiteParameters(oversubscription_percent=percent),
        )  # fmt: skip
        for extra in (1, 7, 10**6):  # and the engine's rounding gives the same again
            frames = methods.line_frames(point, extra)
            assert round(frames * round(1e9 * percent / 99.98) / 1e9) == extra


def test_the_percentage_of_variation_is_between_iterations() -> None:
    assert variation_percent([100.0, 110.0, 99.0]) == pytest.approx(10.0)
    assert variation_percent([5.0]) is None
    assert variation_percent([0.0, 0.0]) is None
    assert variation_percent([0.0, 5.0, 5.0]) is None  # and not 0: of nothing there is no percent


UDP = "transport: udp\n"


def test_incast_divides_its_ports_between_two_transports(planned: Planned, tmp_path: Path) -> None:
    run = planned("rfc8239 incast", 1518, UDP)
    trial = SuiteCourse(run).trial
    assert trial is not None
    stateful, stateless = trial_document(trial)["parts"]
    assert (stateful["transport"], stateful["load"]) == ("tcp", {"percent": 100.0})
    assert stateless.keys() == {"network", "ranks"}
    assert trial_document(trial)["transport"] == "udp"
    assert trial_document(trial)["latency"] == {"stamps": True, "probe_fps": 0}
    assert trial_document(trial)["udp"]["window_frames"] == round(0.05 * 0.9998 * 20e6 / (8 * 1538))
    assert [trial.of(part.network).size_unit for part in trial.parts] == ["message", "frame"]
    nodes = job_document(run, "x")["nodes"]
    used = {port["name"]: port for node in nodes for port in node["ports"]}
    assert used["node4:e0"]["transports"] == ["tcp"]
    same = ("netns", "iface", "tcp_address", "line_rate_bps")
    own = {"network": "lab-stateless", "transports": ["udp"], "name": "node4:e0-stateless"}
    assert used["node4:e0-stateless"] == own | {key: used["node4:e0"][key] for key in same}
    write_plan(tmp_path, run)
    assert read_plan(tmp_path) == run


@pytest.mark.parametrize("ports", [8, 9, 12, 15])
def test_four_egress_ports_share_the_first_ports_load_in_the_second_procedure(ports: int) -> None:
    variants = list(declaration.shifted_groups(ports))
    assert [each.name.split(",")[0] for each in variants] == (
        ["two groups"] * ports + ["all groups"] * ports
    )
    for number, variant in enumerate(variants):
        second = number >= ports
        groups = ports // 4 if second else 2
        shares = Counter(source for source, _ in variant.flows)
        assert len(set(variant.flows)) == len(variant.flows)
        assert sorted(shares.values()) == [1] * groups + [4 if second else 2] * groups
        offered: Counter[int] = Counter()
        for source, destination in variant.flows:
            offered[destination] += 100 // shares[source]
        assert sorted(offered.values()) == [50] * groups + [150] * groups
        assert not shares.keys() & offered.keys()
        names = tuple(map(str, range(ports)))
        point = SuitePoint(
            1518, 1e9, LoadRange(1, 100, "% of line"), flows=variant.flows, ports=names
        )
        for congested, load in ((False, 50), (True, 150)):
            at_load = [port for port in sorted(offered) if offered[port] == load]
            assert point.receivers(congested=congested) == [names[port] for port in at_load]
    first = variants[ports].flows
    assert {end for start, end in first if start == 0} == {2, 3, 6, 7}


# --- suites that search ---------------------------------------------------------------------------


def facts(offered: int, lost: int, limited: bool = False) -> TrialFacts:
    times = {"min": 5.0, "mean": 20.0, "max": 90.0}
    return TrialFacts(
        offered=offered, lost=lost, tester_limited=limited, latency_us=times, rtt_us={"mean": 42.0}
    )


def result(**changes: Any) -> PhaseResult:
    values = {"offered_frames": 1000, "lost_frames": 3, "state": "complete", "tester_limited": []}
    values |= {"misdelivered_frames": 0, "latency": None, "window_s": 1.0, "size_unit": "frame"}
    values |= changes
    flows, rows = PhaseRows().flows(), NOTHING
    shares = PortShares({}, {}, {})
    key = PhaseKey(0, 0, "lab", 0)
    return PhaseResult(key, values, flows, shares, {}, flows, rows, {}, lambda _: None)


STREAMS: dict[str, Any] = {"offered_frames": None, "lost_frames": None, "size_unit": "message"}


def late_phase(frames: int, learning: float = 0, to: str = "b", src: str = "a") -> PhaseResult:
    """Return the records of a phase with a sender that was late by so many frames in each flow."""
    sent = [frame_side("source", src, end, 99, 99, measures={"late_frames": frames}) for end in to]
    measures = {"learning_late": learning}
    came = [frame_side("destination", src, end, 99, 99, measures=measures) for end in to]
    return replace(result(), flows=flows_of(*sent, *came))


def ended(
    numbers: float = 100, reordered: int = 0, gap_ns: float = 2.5e9,
    last_sent: float = 5e9, last_came: float | None = 5e9,
) -> PhaseResult:  # fmt: skip
    """Return one flow, of which ten frames were lost before the one that was sent at `gap_ns`."""
    measures = {"numbers": numbers, "gap_ns": gap_ns}
    sent = frame_side("source", "a", "b", 100, 100, last_run_ns=last_sent)
    came = frame_side("destination", "a", "b", 90, 90, reordered=reordered, measures=measures,
                      last_run_ns=last_came)  # fmt: skip
    return replace(result(), flows=flows_of(sent, came))


def held(came: int) -> PhaseResult:
    """Return a flow of which so much came in a window in which 8,100 frames were sent."""
    ends = ("node1:e0", "node2:e0")
    sides = frame_side("source", *ends, 9000, 8100), frame_side("destination", *ends, 9000, came)
    return replace(result(), flows=flows_of(*sides))


PHASES: dict[str, Callable[..., PhaseResult]] = {
    "result": result,
    "bytes": lambda **changes: result(**STREAMS, **changes),
    "held": held,
    "late": late_phase,
    "ended": ended,
}


@pytest.mark.rows
def test_what_a_trial_says(phases: list[dict[str, Any]], says: dict[str, Any]) -> None:
    found = trial_facts([PHASES[kind](**keys) for one in phases for kind, keys in one.items()])
    assert {key: getattr(found, key) for key in says} == pytest.approx(says)
    loss = trial_loss(1.0, found, found.lost)
    assert loss == TrialLoss(found.offered, found.lost, 1.0, found.tester_limited)


def test_trials_are_ordinary_ones() -> None:
    run = suite_run()
    course = SuiteCourse(run)
    measured: dict[int, TrialFacts] = {}
    trials = []
    while (trial := course.trial) is not None:
        trials.append(trial)
        lost = max(0, round(10**6 * (1 - 40 / (trial.load.percent or 0))))
        measured[trial.id] = facts(10**6, lost)
        course.answer(measured[trial.id])
    assert [trial.id for trial in trials] == list(range(len(trials)))
    assert trials[0].load == Load(percent=95.0)
    assert [trial.window_s for trial in trials[-4:]] == [1.0, 5.0, 5.0, 5.0]  # latency
    for trial in trials[:-3]:
        assert trial_document(trial)["load"] == {"percent": trial.load.percent}
        assert trial_document(trial)["window_ns"] == trial_document(trial)["interval_ns"] == 10**9
        assert (trial.window_s, trial.search) == (1.0, 0)
    ndr, pdr = search_entries(replayed(run, measured))
    [subtest] = suite_entries(replayed(run, measured))
    parts = [ndr["relevant_lower_bound"] * part for part in (0.1, 0.5, 0.9)]
    assert [trial.load.percent for trial in trials[-3:]] == pytest.approx(parts)
    assert [row["load_percent"] for row in subtest["rows"]] == pytest.approx(parts)
    assert [row["of_ndr"] for row in subtest["rows"]] == pytest.approx([10, 50, 90])
    for row in subtest["rows"]:
        assert (row["latency"], row["latency_min"], row["latency_max"]) == (20.0, 5.0, 90.0)
        assert row["rtt"] == 42.0
    assert ndr["relevant_lower_bound"] <= 40 < ndr["relevant_upper_bound"]
    assert pdr["relevant_lower_bound"] <= 40 / 0.995 < pdr["relevant_upper_bound"]
    assert ndr["relative_width"] <= 0.005
    assert (ndr["regular"], ndr["trials"]) == (True, len(trials))
    cut, _ = search_entries(replayed(run, {trial: measured[trial] for trial in range(5)}))
    assert cut["outcome"] == "The run ended before this measurement was complete."


def test_a_run_searches_and_its_results_say_the_same_again(tmp_path: Path) -> None:
    bench = Bench(tmp_path / "run")
    bench.run = replace(suite_run(), site=bench.run.site)
    outcome = bench.conduct(node1="half", node2="half")
    assert (outcome.faults, outcome.status) == ([], 0)
    bench.run = replace(bench.run, trials=outcome.trials)
    assert bench.watcher.grown == list(outcome.trials)
    assert read_plan(tmp_path / "run").trials == outcome.trials
    assert read_plan(tmp_path / "run").searches == bench.run.searches
    summary = summary_of(bench.run, tmp_path / "run", outcome)
    assert (summary["status"], summary["not_measured"]) == ("complete", [])
    ndr, pdr = summary["searches"]
    assert (ndr["goal"], pdr["goal"]) == ("ndr", "pdr")
    for goal, truth in ((ndr, 50.0), (pdr, 50 / 0.995)):
        assert goal["relevant_lower_bound"] <= truth * 1.001
        assert truth < goal["relevant_upper_bound"] * 1.001
        assert goal["regular"]
    assert summary["statistics"] == [] or all(
        len(entry["trials"]) == 1 for entry in summary["statistics"]
    )
    (tmp_path / "run" / SUMMARY).write_text(json.dumps(summary))
    page = make(Measured.load(tmp_path / "run")).text
    sections = re.findall(r'<details class="section"( open)?><summary><h2>([^<]+)', page)
    opened = {title: bool(is_open) for is_open, title in sections}
    assert (opened["Suite"], opened["Results"], opened["Trials"]) == (True, False, False)
