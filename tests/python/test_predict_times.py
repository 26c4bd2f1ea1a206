# SPDX-License-Identifier: BSD-3-Clause
"""Single messages: Hockney's and LogGP's parameters, and the times that follow from them."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from configs import PROJECT, needs_engine
from switchbench.analysis.hpcc import about_suite
from switchbench.analysis.sweep import about
from switchbench.base.model import Part
from switchbench.cli.main import main
from switchbench.config import Request, read
from switchbench.plan.compile import compile_run
from switchbench.predict import parameters
from switchbench.predict.measured_times import measured_times
from switchbench.predict.models import Flows
from switchbench.predict.parameters import (
    Hockney,
    Parameters,
    PathCosts,
    fit_hockney,
    large_bandwidth,
    split_loggp,
)
from switchbench.predict.times import (
    HALF_TRIP_US,
    ITERATION_US,
    PHASES_S,
    PLAN_S,
    T_AVG_US,
    Between,
    PhaseTime,
    TimePredictor,
    Wire,
)
from switchbench.records.plan_file import read_plan, write_plan
from switchbench.topology.fabric import Fabric, Link, Routes
from synthetic import bare_summary, make_site, make_trial, plan_entry

SIZES = [4, 64, 256, 1024, 4096, 16384, 65536, 262144]
T0_US, BYTE_US = 70.0, 0.085
STEP_T0_US = 20.0  # ranks that go by steps look for their messages
R_INF = 8 / BYTE_US  # 94.1 Mbit/s of payload
SHARE = 1448 / 1538


def line(noise: np.random.Generator | None = None, scale: float = 0.0) -> list[float]:
    """Times of the sizes by a path that is as Hockney has it."""
    factor = 1 + scale * noise.standard_normal(len(SIZES)) if noise else np.ones(len(SIZES))
    return [float(f * (T0_US + BYTE_US * size)) for f, size in zip(factor, SIZES, strict=True)]


def path_of(times: list[float] | None = None, gap_us: float | None = None) -> Parameters:
    """Its parameters."""
    hockney = fit_hockney(SIZES, times or line())
    costs = PathCosts(small_per_s=[1e6 / gap_us] if gap_us else [])
    return Parameters(
        "dpdk",
        "lab",
        len(SIZES),
        hockney,
        split_loggp("dpdk", hockney, hockney.bandwidth_mbps, costs),
    )


def star(count: int = 4, rate_bps: float = 100e6) -> Routes:
    """Hosts on one switch."""
    names = tuple(f"h{i}" for i in range(count))
    return Routes(Fabric("star", names, ("s",), tuple(Link(n, "s", int(rate_bps)) for n in names)))


def flows_of(routes: Routes, ranks: list[tuple[int, int]]) -> Flows:
    return Flows.of(routes, np.array(ranks), np.full(len(ranks), np.inf))


def within(estimate: parameters.Estimate | None, value: float) -> bool:
    assert estimate is not None
    assert estimate.low is not None
    assert estimate.high is not None
    return estimate.low <= value <= estimate.high


def test_an_exact_line_is_found_exactly() -> None:
    found = fit_hockney(SIZES, line())
    assert found.latency_us.value == pytest.approx(T0_US)
    assert found.bandwidth_mbps is not None
    assert found.bandwidth_mbps.value == pytest.approx(R_INF)
    assert found.half_bytes is not None
    assert found.half_bytes.value == pytest.approx(T0_US / BYTE_US)
    # n_1/2 is the size that gets half of r_inf.
    half = found.half_bytes.value
    assert 8 * half / found.time_us(half) == pytest.approx(R_INF / 2)
    assert max(abs(r) for r in found.residuals.values()) < 1e-6


def test_intervals_hold_what_they_promise() -> None:
    """Of 300 noisy paths the truth is in at least 90 % of the 95 % intervals of eight points."""
    noise = np.random.default_rng(1994)
    found = [fit_hockney(SIZES, line(noise, 0.05)) for _ in range(300)]
    for name, truth in (
        ("latency_us", T0_US), ("bandwidth_mbps", R_INF), ("half_bytes", T0_US / BYTE_US)
    ):  # fmt: skip
        assert np.mean([within(getattr(each, name), truth) for each in found]) >= 0.90


def test_one_bad_size_does_not_bend_the_line_and_shows_in_the_residuals() -> None:
    times = line(np.random.default_rng(2), 0.01)
    times[4] *= 5  # 4 KiB, five times too slow
    found = fit_hockney(SIZES, times)
    assert found.latency_us.value == pytest.approx(T0_US, rel=0.05)
    assert found.bandwidth_mbps is not None
    assert found.bandwidth_mbps.value == pytest.approx(R_INF, rel=0.05)
    assert found.residuals[4096] == pytest.approx(400, abs=30)


def test_times_that_do_not_grow_have_no_bandwidth() -> None:
    found = fit_hockney([4, 8, 16], [50.0, 50.0, 50.0])
    assert found.latency_us.value == pytest.approx(50)
    assert found.bandwidth_mbps is None
    assert found.half_bytes is None
    assert found.time_us(1e6) == pytest.approx(50)


def test_g_is_that_of_large_messages_where_there_are_enough() -> None:
    """A switch stores one frame before it passes it on: up to there a byte costs twice."""
    times = [T0_US + BYTE_US * (size + min(size, 1500)) for size in SIZES]
    hockney = fit_hockney(SIZES, times)
    assert hockney.bandwidth_mbps is not None
    assert hockney.bandwidth_mbps.value < 0.99 * R_INF
    found = large_bandwidth(SIZES, times, hockney)
    assert found is not None
    assert found.value == pytest.approx(R_INF)
    assert large_bandwidth(SIZES[:6], times[:6], fit_hockney(SIZES[:6], times[:6])) == (
        fit_hockney(SIZES[:6], times[:6]).bandwidth_mbps
    )


def test_loggp_splits_what_processors_show() -> None:
    """5 µs of each process by round trip: o = 2.5 at either end, and L is what is left."""
    hockney = fit_hockney(SIZES, line())
    costs = PathCosts(cpu_s=2 * 1000 * 5e-6, round_trips=1000, small_per_s=[100e3, 140e3])
    found = split_loggp("dpdk", hockney, hockney.bandwidth_mbps, costs)
    assert found.byte_ns is not None
    assert found.byte_ns.value == pytest.approx(1000 * BYTE_US)
    assert found.small_us.value == pytest.approx(T0_US + BYTE_US)
    assert found.overhead_us == pytest.approx(2.5)
    assert found.latency_us == pytest.approx(T0_US + BYTE_US - 5)
    assert found.gap_us == pytest.approx(1e6 / 140e3)
    assert found.unknown == ()


@pytest.mark.parametrize(
    ("transport", "costs", "words"),
    [
        ("dpdk", PathCosts(), ["no ping-pong messages of 64 B", "no stream of messages"]),
        ("dpdk", PathCosts(1.0, 1000, polls=True), ["workers that poll", "no stream"]),
        ("dpdk", PathCosts(1.0, 10), ["more processor time than a message takes", "no stream"]),
        ("tcp", PathCosts(0.01, 1000, small_per_s=[3e6]), ["travel joined"]),
    ],
)
def test_what_cannot_be_told_apart_is_said(
    transport: str, costs: PathCosts, words: list[str]
) -> None:
    hockney = fit_hockney(SIZES, line())
    found = split_loggp(transport, hockney, hockney.bandwidth_mbps, costs)
    assert len(found.unknown) == len(words)
    for why, word in zip(found.unknown, words, strict=True):
        assert word in why
    assert found.gap_us is None
    assert (found.latency_us is None) == (found.overhead_us is None) == (transport == "dpdk")


def test_a_transfer_takes_latency_and_its_share_of_the_line() -> None:
    """Two flows into one port: each has half of it, whichever model sees that."""
    routes = star()
    wire = Wire(SHARE, path_of())
    flows = flows_of(routes, [(0, 2), (1, 2)])
    alone_s = 8 * (1 << 20) / SHARE / 100e6
    for model in ("max-min", "proportional", "constrained"):
        assert wire.ends_s(1 << 20, model, flows) == pytest.approx([T0_US / 1e6 + 2 * alone_s] * 2)
    as_fitted = 8 * (1 << 20) / (R_INF * 1e6)
    assert wire.ends_s(1 << 20, "hockney", flows) == pytest.approx([T0_US / 1e6 + as_fitted] * 2)
    assert wire.ends_s(1 << 20, "loggp", flows) == pytest.approx(
        [(T0_US + BYTE_US) / 1e6 + 2 * as_fitted] * 2, rel=1e-3
    )


def test_who_is_left_has_what_the_others_leave() -> None:
    """A port of 100M with one host of 20M and one of 100M: 20 and 80 Mbit/s, then 20 alone."""
    names = ("slow", "fast", "sink")
    links = (Link("slow", "s", 20_000_000), *(Link(n, "s", 100_000_000) for n in names[1:]))
    flows = flows_of(Routes(Fabric("uneven", names, ("s",), links)), [(0, 2), (1, 2)])
    size = 1_000_000
    bits = 8 * size / SHARE
    slow, fast = Wire(SHARE, path_of()).ends_s(size, "max-min", flows) - T0_US / 1e6
    assert slow == pytest.approx(bits / 20e6)
    assert fast == pytest.approx(bits / 80e6)
    # Three into one, one of which has a second flow to share its port with: it ends last, faster
    # than at its first rate.
    shared = flows_of(star(5), [(0, 3), (1, 3), (2, 3), (0, 4)])
    first, *_, other = Wire(SHARE, path_of()).ends_s(size, "max-min", shared) - T0_US / 1e6
    assert first == pytest.approx(3 * bits / 100e6)
    # 66.7 Mbit/s until it is done: the first three need twice as long.
    assert other == pytest.approx(bits / (100e6 * 2 / 3))


def test_loggp_begins_one_message_after_the_other() -> None:
    """Three of one sender are small: each waits for the gaps of its fellows."""
    wire = Wire(SHARE, path_of(gap_us=10.0))
    ends = wire.ends_s(1, "loggp", flows_of(star(), [(0, 1), (0, 2), (0, 3)]))
    assert ends * 1e6 == pytest.approx([T0_US + 2 * 10] * 3, abs=1.0)


def test_a_plans_time_is_its_phases_and_what_is_between() -> None:
    """Networks work at the same time; phases follow each other."""
    between = Between(0.1, 0.02, measured=True)
    time_predictor = TimePredictor({path_of().path: path_of()}, between)
    transfer: Any = SimpleNamespace(traffic="transfer", parameters={}, document={})
    times = [(0, 1.0), (0, 1.5), (1, 2.0)]
    phases = [(number, {"max-min": PhaseTime(last, last, 1)}) for number, last in times]
    found = {time.what: time for time in time_predictor.whole(transfer, phases)}
    assert found[PHASES_S].predicted == pytest.approx(3.5)
    assert found[PLAN_S].predicted == pytest.approx(3.5 + 0.1 + 2 * 0.02)
    message: Any = SimpleNamespace(traffic="pingpong", parameters={})
    trips = [(0, {"max-min": PhaseTime(3e-3, 8e-3, 4)})]
    (time,) = time_predictor.whole(message, trips)
    assert (time.what, time.predicted) == (HALF_TRIP_US, pytest.approx(2000))


# --- a results directory -----------------------------------------------------------------------


def _records() -> Iterator[dict[str, Any]]:
    """What conf/parameters.yaml would leave on a path that is as Hockney has it."""
    run = compile_run(read(Request(PROJECT / "conf" / "parameters.yaml")))
    for trial in run.trials:
        head = {"node": "node1", "trial": trial.id, "repeat": 0, "phase": 0, "network": "lab"}
        pair = {"src": "node1:e0", "dst": "node2:e0"}
        if trial.traffic == "pingpong":
            ns = round(2000 * (T0_US + BYTE_US * trial.sizes[0]))
            times = {"kind": "pingpong", "count": 1, "sum_ns": ns, "min_ns": ns}
            yield {"type": "histogram", **head, **pair, **times, "buckets": ""}
            counts = {"frames": 500, "messages": None, "window_ns": 250_000_000}
            yield {"type": "flow", **head, **pair, "side": "source", **counts}
            for node in ("node1", "node2", "node3"):
                used = 500 * 4e-6 if node != "node3" else 0.0
                yield {"type": "phase", **head, "node": node, "cpu_s": used, "cpu_span_s": 0.5}
        elif trial.traffic == "schedule":
            ns = round(2000 * (STEP_T0_US + BYTE_US * trial.sizes[0]))
            for rank, share in (("node1:e0", 1.0), ("node2:e0", 0.9)):
                own = round(share * ns)
                yield {
                    "type": "execution", **head, "rank": rank, "repetitions": 5, "batches": 1,
                    "sum_ns": 5 * own, "min_ns": own, "max_ns": own, "buckets": "",
                }  # fmt: skip
        elif trial.traffic == "stream":
            counts = {"window_frames": 50_000, "window_messages": None, "window_ns": 500_000_000}
            yield {"type": "flow", **head, **pair, "side": "destination", **counts}


@pytest.fixture
def results(tmp_path: Path) -> Path:
    """A directory with these records and a summary that knows two plans' times."""
    write_plan(tmp_path, compile_run(read(Request(PROJECT / "conf" / "parameters.yaml"))))
    lines = [json.dumps(record) + "\n" for record in _records()]
    (tmp_path / "records.ndjson").write_text("".join(lines))
    summary = bare_summary()
    summary["plans"] = [
        plan_entry(trial)
        for trial in compile_run(read(Request(PROJECT / "conf" / "parameters.yaml"))).trials
    ]
    summary["plans"] += [
        summary["plans"][0]
        | {"trial": 1000 + phases, "phases": phases, "traffic": "transfer"}
        | {"elapsed_s": 0.08 + 0.02 * phases}
        for phases in (1, 7)
    ]
    summary["trials"] = []
    (tmp_path / "summary.json").write_text(json.dumps(summary))
    return tmp_path


@needs_engine
def test_parameters_of_a_results_directory(results: Path) -> None:
    dpdk, dpdk_steps, tcp, tcp_steps = parameters.measured(results)
    assert [each.transport for each in (dpdk, dpdk_steps, tcp, tcp_steps)] == [
        "dpdk", "dpdk", "tcp", "tcp",
    ]  # fmt: skip
    for steps in (dpdk_steps, tcp_steps):
        assert steps.by_steps
        assert steps.hockney.latency_us.value == pytest.approx(STEP_T0_US, rel=1e-4)
    assert dpdk_steps.loggp.overhead_us == pytest.approx(2.0)
    assert not dpdk.by_steps
    assert not tcp.by_steps
    assert isinstance(dpdk.hockney, Hockney)
    assert dpdk.hockney.latency_us.value == pytest.approx(T0_US, rel=1e-4)
    assert dpdk.loggp.overhead_us == pytest.approx(2.0)
    assert dpdk.loggp.gap_us == pytest.approx(10.0)
    assert tcp.loggp.gap_us is None


@pytest.mark.parametrize(("networks", "trips", "cpu_s"), [(1, 500, 0.2), (2, 0, 0.0)])
def test_round_trips_and_their_processor_time_are_of_the_same_trials(
    networks: int, trips: int, cpu_s: float
) -> None:
    """Of networks together it is not known whose time it is, so neither is counted."""
    site = make_site()
    parts = tuple(Part(f"net{n}", site.ports) for n in range(networks))
    trial = make_trial(site, traffic="pingpong", sizes=(64,), size_unit="message", parts=parts)
    seen: dict[parameters.Path_, Any] = defaultdict(parameters._Seen)
    flow = {"network": "net0", "side": "source", "messages": 500, "window_ns": 1}
    parameters._take_flow(trial, flow, seen)
    parameters._take_phase(trial, {"cpu_s": 0.2, "cpu_span_s": 0.5}, seen)
    costs = seen[parameters.Path_(trial.transport, "net0")].costs
    assert (costs.round_trips, costs.cpu_s) == (trips, cpu_s)


@needs_engine
def test_the_command_predicts_times(results: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Seven phases of 1 MiB at 100 Mbit/s and what is between, from --parameters."""
    arguments = ["predict", str(PROJECT / "conf" / "parameters.yaml"), "--models", "max-min"]
    changed = ["--set", "tests.2.transfer_size=1MiB", "--parameters", str(results)]
    assert main([*arguments, *changed, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["parameters"][0]["hockney"]["latency_us"]["value"] == pytest.approx(T0_US, 1e-4)
    (*_, last) = (t for t in found["trials"] if t["pattern"] == "aapc" and t["phases"] == 7)
    assert last["transport"] == "dpdk"
    times = {time["what"]: time["predicted"] for time in last["times"]}
    one = T0_US / 1e6 + 8 * (1 << 20) / SHARE / 95e6  # dpdk is offered at 95 %
    assert times[PHASES_S] == pytest.approx(7 * one, rel=1e-3)
    assert times[PLAN_S] == pytest.approx(7 * one + 0.08 + 7 * 0.02, rel=1e-3)


@needs_engine
def test_parameters_of_results_that_have_none(
    results: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (results / "records.ndjson").write_text("")
    conf = str(PROJECT / "conf" / "parameters.yaml")
    assert main(["predict", conf, "--parameters", str(results)]) == 2
    assert "no ping-pong messages of 3 sizes" in capsys.readouterr().err
    assert main(["predict", conf, "--parameters", str(tmp_path / "nowhere")]) == 2
    assert "nowhere" in capsys.readouterr().err


@needs_engine
def test_parameters_of_another_transport(results: Path, capsys: pytest.CaptureFixture[str]) -> None:
    conf = str(PROJECT / "conf" / "verbs-guests.yaml")
    arguments = ["predict", conf, "--topology", "one-switch", "--parameters", str(results)]
    assert main(arguments) == 2
    assert "has parameters of dpdk and tcp, and the run sends by verbs" in capsys.readouterr().err


# --- by steps ----------------------------------------------------------------------------------


def predicted_steps(
    results: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], tests: str, *more: str
) -> dict[str, Any]:
    """What the command says of tests on a lab of four nodes at 100 Mbit/s."""
    path = tmp_path / "steps.yaml"
    path.write_text(
        "switchbench: 1\nsite: {lab: model-good, nodes: 4, rate: 100M}\ntransport: tcp\n"
        f"tests:\n{tests}"
    )
    assert main(["predict", str(path), "--parameters", str(results), *more, "--json"]) == 0
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


@needs_engine
def test_the_command_predicts_plans_by_steps(
    results: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """By the latency of steps, not that of messages there and back."""
    tests = (
        "- {pattern: allreduce, algorithm: ring, message_sizes: [1MiB]}\n"
        "- {pattern: pingpong, ranks: [2], message_sizes: [0], batch: 100}\n"
    )
    found = predicted_steps(
        results, tmp_path, capsys, tests, "--models", "hockney,max-min,constrained"
    )
    ring, pingpong = found["trials"]
    assert ring["models"] == pingpong["models"] == {}
    times = {time["model"]: time for time in ring["times"]}
    assert set(times) == {"hockney", "max-min"}  # the slow ones are not asked again and again
    part = 8 * (1 << 18)
    step_us = {"hockney": part / R_INF, "max-min": part / SHARE / 100}
    for model, time in times.items():
        assert time["what"] == T_AVG_US
        assert time["predicted"] == pytest.approx(6 * (STEP_T0_US + step_us[model]), rel=1e-3)
    # As IMB has it, half of the time there and back; in a repetition who answers is through early.
    assert pingpong["times"][0]["predicted"] == pytest.approx(STEP_T0_US, rel=0.003)


@needs_engine
def test_computing_between_steps_takes_what_flops_say(
    results: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """EP computes for all of its time, and is measured by its slowest rank."""
    tests = "- {pattern: nas_ep, problem_class: S}\n"
    (idle,) = predicted_steps(results, tmp_path, capsys, tests)["trials"]
    slow, fast = (
        predicted_steps(results, tmp_path, capsys, tests, "--flops", speed)["trials"][0]
        for speed in ("1GFlop/s", "2GFlop/s")
    )
    by_speed = [each["times"][0]["predicted"] for each in (idle, slow, fast)]
    assert {each["times"][0]["what"] for each in (idle, slow, fast)} == {ITERATION_US}
    assert by_speed[1] - by_speed[0] == pytest.approx(2 * (by_speed[2] - by_speed[0]))
    assert by_speed[1] > 100 * by_speed[0]


@needs_engine
def test_the_command_predicts_hpccs_figures(
    results: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Under its names, by its formulas, as one setting."""
    found = predicted_steps(
        results,
        tmp_path,
        capsys,
        "- {pattern: hpcc}\n- {pattern: barrier}\n",
        "--models",
        "max-min",
    )
    suite, barrier = found["trials"]
    assert (suite["pattern"], barrier["pattern"]) == ("hpcc", "barrier")
    assert found["not_predicted"] == []
    figures = {time["what"]: time["predicted"] for time in suite["times"]}
    assert len(figures) == 10
    one_us = STEP_T0_US + 8 * 8 / SHARE / 100
    for word in ("Min", "Avg", "Max"):
        assert figures[f"{word}PingPongLatency_usec"] == pytest.approx(one_us, rel=1e-3)
        line = 2e6 / (STEP_T0_US + 8 * 2e6 / SHARE / 100) / 1e3
        assert figures[f"{word}PingPongBandwidth_GBytes"] == pytest.approx(line, rel=1e-3)
    # The better method of a ring has both messages at once: half a repetition is half of what two
    # of them take together.
    for word in ("Naturally", "Randomly"):
        latency_us = (STEP_T0_US + 2 * 8 * 8 / SHARE / 100) / 2
        assert figures[f"{word}OrderedRingLatency_usec"] == pytest.approx(latency_us, rel=0.02)
        assert figures[f"{word}OrderedRingBandwidth_GBytes"] == pytest.approx(
            0.1 * SHARE / 8, rel=1e-3
        )
    assert main(["predict", str(tmp_path / "steps.yaml"), "--parameters", str(results)]) == 0
    said = capsys.readouterr().out
    assert "hpcc" in said
    assert "RandomlyOrderedRingBandwidth_GBytes" in said
    assert "not predicted" not in said


SITE_OF_TWO = """\
switchbench: 1
site:
  launch: ssh
  hosts: h[1-4]
  ports:
    e0: {network: fast, iface: eth0, transports: [tcp]}
    e1: {network: slow, iface: eth1, transports: [tcp]}
transport: tcp
tests:
- {pattern: allreduce, algorithm: ring, message_sizes: [1MiB], concurrent_networks: [fast, slow]}
"""
STAR = """\
topology: 1
kind: site
rate: 100M
modules: [s]
nodes: {"h[1-4]": {module: s}}
"""


@needs_engine
def test_networks_together_have_a_time_each(
    results: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    conf, star_file = tmp_path / "two.yaml", tmp_path / "star.yaml"
    conf.write_text(SITE_OF_TWO)
    star_file.write_text(STAR)
    arguments = ["predict", str(conf), "--topology", str(star_file), "--parameters", str(results)]
    assert main([*arguments, "--models", "max-min", "--json"]) == 0
    (trial,) = json.loads(capsys.readouterr().out)["trials"]
    assert [time["what"] for time in trial["times"]] == [
        "t_avg in fast, µs", "t_avg in slow, µs",
    ]  # fmt: skip
    assert main([*arguments, "--models", "max-min"]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "times of tcp in fast, by steps are by parameters of tcp in lab, by steps" in said


@needs_engine
def test_settings_without_times_are_counted(
    results: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """No parameters of the transport; no model that says times of steps."""
    kept = [r for r in map(json.loads, (results / "records.ndjson").read_text().splitlines())]
    run = read_plan(results)
    by_tcp = {trial.id for trial in run.trials if trial.transport == "tcp"}
    lines = [json.dumps(record) + "\n" for record in kept if record["trial"] in by_tcp]
    (results / "records.ndjson").write_text("".join(lines))
    tests = "- {pattern: barrier}\n- {pattern: barrier, transports: [dpdk]}\n"
    found = predicted_steps(results, tmp_path, capsys, tests)
    assert [trial["pattern"] for trial in found["trials"]] == ["barrier"]
    (one,) = found["not_predicted"]
    assert one == {
        "settings": 1, "of": "dependent steps by dpdk in lab, which has no parameters",
    }  # fmt: skip
    arguments = ["predict", str(tmp_path / "steps.yaml"), "--parameters", str(results)]
    assert main([*arguments, "--models", "constrained"]) == 2
    assert "constrained, constrained-fair do not say" in capsys.readouterr().err


@needs_engine
def test_lateness_is_in_times_of_steps(
    results: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tests = "- {pattern: barrier, batch: 1000}\n"
    prompt, late = (
        predicted_steps(results, tmp_path, capsys, tests, "--models", "max-min", "--late", late)
        for late in ("0us", "100us")
    )
    assert (prompt["late_s"], late["late_s"]) == (0.0, 100e-6)
    times = [found["trials"][0]["times"][0]["predicted"] for found in (prompt, late)]
    assert times[0] == pytest.approx(2 * STEP_T0_US, rel=1e-3)
    # Two steps, and of those who meet the latest counts.
    assert times[0] + 2 * 100 < times[1] < times[0] + 2 * 400


@needs_engine
@pytest.mark.parametrize("option", ["--flops=1GFlop/s", "--late=20us"])
def test_what_only_steps_need_is_not_passed_over(
    option: str, results: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["predict", str(PROJECT / "conf/chain.yaml"), "--parameters", str(results)]
    assert main([*arguments, option]) == 2
    assert "is for tests with dependent steps, and none has them" in capsys.readouterr().err


@pytest.mark.parametrize(("option", "value"), [("flops", "1GFlop/s"), ("late", "20us")])
def test_what_only_times_need_is_not_passed_over(
    option: str, value: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["predict", str(PROJECT / "conf/imb.yaml"), f"--{option}", value]) == 2
    assert f"--{option} is for times" in capsys.readouterr().err


@pytest.mark.parametrize("speed", ["fast", "0GFlop/s", "3GB/s"])
def test_speeds_that_are_none(speed: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["predict", str(PROJECT / "conf/kernels.yaml"), "--flops", speed])
    assert ended.value.code == 2
    assert speed in capsys.readouterr().err


def test_what_was_measured_of_steps_stands_beside(tmp_path: Path) -> None:
    """Of a function IMB's t_avg, of a kernel its iteration, of HPCC what it reports."""
    site = make_site()
    trials = [
        make_trial(site, number, traffic="schedule", pattern={"name": name}, sizes=(size,))
        for number, (name, size) in enumerate([("allreduce", 8), ("nas_cg", 0)])
    ]
    hpcc = {"hpcc": "latency", "method": "sendrecv"}
    suite = make_trial(site, 2, traffic="schedule", pattern={"name": "ring"}, parameters=hpcc)
    outputs = {"RandomlyOrderedRingLatency_usec": 15.0, "MinPingPongLatency_usec": None}
    curves = [about(trial, trial.parts[0]) for trial in trials]
    trials.append(suite)
    document = bare_summary() | {
        "messages": {"curves": []},
        "steps": {
            "functions": [
                curves[0] | {"points": [{"size": 8, "imb": {"t_avg_us": 44.0}}]}
            ],
            "kernels": [curves[1] | {"iteration_us": 1234.0}],
            "hpcc": [about_suite(suite, suite.parts[0]) | {"outputs": outputs}],
        },
    }  # fmt: skip
    (tmp_path / "summary.json").write_text(json.dumps(document))
    found = measured_times({(trial.id, 0): trial for trial in trials}, tmp_path)
    points = [trial.point for trial in trials]
    assert found[points[0], T_AVG_US] == 44.0
    assert found[points[1], ITERATION_US] == 1234.0
    assert found[points[2], "RandomlyOrderedRingLatency_usec"] == 15.0
    assert (points[2], "MinPingPongLatency_usec") not in found
