# SPDX-License-Identifier: BSD-3-Clause
"""What is shown of a run while it runs: the state, the screen as lines, plain lines, metrics."""

from __future__ import annotations

import errno
import io
import json
import re
import socket
import tracemalloc
import urllib.request
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from prometheus_client.parser import text_string_to_metric_families
from rich.console import Console

from recorded import Feed
from switchbench.base.errors import ConfigurationError
from switchbench.base.model import Burst, Run
from switchbench.run.live import metrics, state
from switchbench.run.live.screen import Plain, Screen, Seconds, Watch, worst_first
from switchbench.run.live.state import PhaseLoss, RunState
from synthetic import frame_side, make_run, make_site, make_trial, phase_record, trial_record

ROOT = Path(__file__).resolve().parents[2]
SITE = make_site()
ENDS = ("node1:e0", "node2:e0")


@dataclass
class Shown:
    """The state that metrics read."""

    state: RunState
    run_id: str = "run"


def progress_record(node: str, offered: float | None, delivered: float | None, **more: Any) -> Any:
    """Return a `progress` record of a node with one port, in the window."""
    record = {
        "type": "progress",
        "node": node,
        "trial": 0,
        "repeat": 0,
        "phase": 0,
        "step": "window",
        "offered_bps": offered or 0,
        "delivered_bps": delivered or 0,
        "ports": [[f"{node}:e0", offered, delivered, delivered]],
    }
    return record | more


def flows(sent: int, came: int, phase: int = 0) -> list[Any]:
    """Return both sides of one flow."""
    return [
        frame_side("source", *ENDS, sent, sent, phase=phase),
        frame_side("destination", *ENDS, came, came, phase=phase),
    ]


def state_of(run: Run) -> RunState:
    """Return the state of a run that has not begun."""
    feed = Feed(run, brief=True)
    state = RunState(run, feed.summary)
    state.feed = feed  # type: ignore[attr-defined]
    return state


def take(state: RunState, record: Any) -> state.PhaseLoss | None:
    """Hand a record over as the controller does."""
    state.feed.take(record)  # type: ignore[attr-defined]
    return state.take(record)


def fed(state: RunState, *records: Any) -> RunState:
    """Return the state after these records."""
    for record in records:
        take(state, record)
    return state


def one_trial(**changes: Any) -> RunState:
    """Return a state of one trial that has not begun."""
    return state_of(make_run(SITE, make_trial(SITE, **changes)))


def text_of(screen: Screen, width: int = 100, height: int = 24) -> list[str]:
    """Return the screen's lines as plain text, as wide and as high as the terminal at most."""
    stream = io.StringIO()
    console = Console(file=stream, width=width, height=height, color_system=None)
    console.print(screen, end="")
    return stream.getvalue().split("\n")


def many(count: int) -> RunState:
    """Return ports of 100 Mbit/s that all send and receive 95, one that receives half of it."""
    site = make_site(count)
    state = state_of(make_run(site, make_trial(site, phases=3)))
    for number in range(1, count + 1):
        slow = number == count // 2
        take(state, progress_record(f"node{number}", 95e6, 47e6 if slow else 95e6))
    return state


# --- the state -----------------------------------------------------------------------------------


def test_phases_count_once_and_ended_trials_are_forgotten() -> None:
    state = state_of(make_run(SITE, make_trial(SITE), make_trial(SITE, 1)))
    assert state.left_s == 4.0
    assert take(state, phase_record("node1", phase=-1)) is None  # the probe
    assert take(state, phase_record("node1")) is None
    assert isinstance(take(state, phase_record("node2")), PhaseLoss)
    fed(state, *(trial_record(node) for node in ("node1", "node2")))
    assert state.phases_done == 1
    assert 0 <= state.left_s <= 2.0


def test_what_is_shown_does_not_grow_with_trials_that_ended() -> None:
    """A run may last for days."""
    state = state_of(make_run(SITE, *(make_trial(SITE, n, phases=5) for n in range(30))))
    tracemalloc.start()
    before = 0
    for number in range(30):
        before = tracemalloc.get_traced_memory()[0] if number == 10 else before
        for phase in range(5):
            nodes = (phase_record(node) for node in ("node1", "node2"))
            here = {"trial": number, "phase": phase}
            fed(state, *(record | here for record in (*flows(1000, 1000), *nodes)))
        fed(state, *(trial_record(node, trial=number) for node in ("node1", "node2")))
    after, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert state.phases_done == 150
    assert (after - before) / 100 < 400  # bytes a phase


def test_rates_are_of_the_window_and_go_with_the_phase() -> None:
    state = one_trial(phases=2)
    fed(state, progress_record("node1", 50e6, 50e6, step="warmup"))
    port = state.ports["node1:e0"]
    assert (port.offered_bps, port.step) == (50e6, "warmup")
    fed(state, progress_record("node1", 95e6, 94e6))
    fed(state, progress_record("node1", 10e6, 20e6, step="drain"))
    assert (port.offered_bps, port.delivered_bps, port.step) == (95e6, 94e6, "drain")
    fed(state, progress_record("node2", 90e6, None, phase=1))
    assert port.offered_bps == 95e6  # node1 has not said that it is in the next phase
    fed(state, phase_record("node1", phase=1))
    assert (port.offered_bps, port.step) == (None, "")
    assert state.ports["node2:e0"].delivered_bps is None


def test_loss_is_known_when_all_nodes_have_told() -> None:
    state = one_trial()
    fed(state, *flows(1000, 990), phase_record("node1"))
    port = state.ports["node2:e0"]
    assert (port.lost, port.phase_lost) == (0, None)
    fed(state, phase_record("node2"))
    assert (port.lost, port.sent, port.phase_lost_percent) == (10, 1000, 1.0)
    assert state.lost == (10, 1000)


def test_when_a_phase_has_ended_rates_are_what_the_table_says() -> None:
    """Payload of the window, by the flows; the bar is of the line."""
    state = fed(one_trial(), progress_record("node1", 99e6, None))
    fed(state, progress_record("node2", None, 99e6), *flows(1000, 900))
    fed(state, phase_record("node1"), phase_record("node2"))
    sender, receiver = state.ports["node1:e0"], state.ports["node2:e0"]
    source, destination = flows(1000, 900)
    assert sender.offered_bps == 8 * source["window_payload_bytes"]
    assert receiver.delivered_bps == 8 * destination["window_payload_bytes"]
    assert receiver.delivered_line_bps == 8 * (destination["window_frame_bytes"] + 900 * 20)
    assert (state.offered_bps, state.delivered_bps) == (sender.offered_bps, receiver.delivered_bps)
    assert (sender.delivered_bps, receiver.offered_bps) == (None, None)


def test_what_was_under_way_when_a_phase_was_stopped_is_not_lost() -> None:
    state = fed(one_trial(), *flows(1000, 10), phase_record("node1", state="stopped"))
    fed(state, phase_record("node2"))
    assert state.lost == (0, 0)


def test_suspects_are_marked_and_victims_are_not() -> None:
    """node1 sends to two others, and loses a tenth of all; node2 gets all that node3 sends."""
    site = make_site(3)
    state = state_of(make_run(site, make_trial(site, flows=3)))
    nodes = [process.name for process in site.processes]
    for source, destination, came in ((1, 2, 2700), (1, 3, 2700), (3, 2, 3000)):
        ends = f"node{source}:e0", f"node{destination}:e0"
        fed(state, frame_side("source", *ends, 3000, 3000))
        fed(state, frame_side("destination", *ends, came, came))
    fed(state, *(make(node) for make in (phase_record, trial_record) for node in nodes))
    state.turn()
    assert [name for name, port in state.ports.items() if port.suspect] == ["node1:e0"]
    assert worst_first(state.ports.values())[0].name == "node1:e0"
    fed(state, progress_record("node1", 95e6, None))
    lines = text_of(Screen(state), 120)
    (row,) = [line for line in lines if " ! " in line and line.startswith("node")]
    assert row.startswith("node1:e0 ! ")
    assert lines[-1].endswith("; ! a fault is suspected there")
    samples = [
        (sample.labels["port"], sample.value)
        for family in metrics.StateCollector(Shown(state)).collect()
        for sample in family.samples
        if sample.name == "switchbench_port_suspected"
    ]
    assert samples == [("node1:e0", 1), ("node2:e0", 0), ("node3:e0", 0)]


def test_the_worst_come_first() -> None:
    state = many(40)
    losing = state.ports["node7:e0"]
    losing.phase_lost, losing.phase_sent = 5, 1000
    idle = state.ports["node1:e0"]
    idle.offered_bps = idle.delivered_bps = None
    names = [port.name for port in worst_first(state.ports.values())]
    assert names[:3] == ["node7:e0", "node20:e0", "node2:e0"]
    assert names[-1] == "node1:e0"


# --- the screen ----------------------------------------------------------------------------------


def test_the_screen_says_what_runs_and_how_each_port_fares() -> None:
    state = fed(one_trial(phases=3), progress_record("node1", 95e6, 94e6, phase=1))
    fed(state, progress_record("node2", None, 95e6, phase=1))
    lines = text_of(Screen(state))
    assert lines[0] == "1/1 pairs neighbours, dpdk, 2 ranks, phase 1 of 0-2, window"
    assert "0/3 phases" in lines[1]
    assert lines[1].endswith(" left")
    assert lines[2] == "offered 95.00 Mbit/s, delivered 189.0 Mbit/s"
    rows = {line.split()[0]: line.split() for line in lines if line.startswith("node")}
    assert rows["node1:e0"][1:7] == ["95.00", "94.00", "-", "-", "1", "window"]
    assert rows["node2:e0"][1:3] == ["-", "95.00"]


def test_the_screen_has_the_worst_of_many_ports() -> None:
    lines = text_of(Screen(many(1000)), 80, 24)
    seen = [line.split()[0] for line in lines if line.startswith("node")]
    assert seen[:2] == ["node500:e0", "node1:e0"]
    assert lines[-1].startswith(f"{len(seen)} of 1000 ports, the worst first; ")


@pytest.mark.parametrize("height", [1, 2, 5, 8, 24, 200])
@pytest.mark.parametrize("width", [1, 10, 33, 80, 400])
def test_any_size_of_terminal_does(width: int, height: int) -> None:
    state = many(60)
    for phase in range(3):
        for node in state.run.site.processes:
            take(state, phase_record(node.name, phase=phase))
    for what in ("link-down", "link-up"):
        fed(state, {"type": "event", "node": "node1", "kind": what, "port": "node1:e0"})
    lines = text_of(Screen(state), width, height)
    assert len(lines) <= height
    assert max(map(len, lines)) <= width
    if width >= 80 and height >= 24:  # what happened last comes first
        at = lines.index("0 findings, 2 events")
        assert lines[at + 1 : at + 3] == ["node1:e0: link-up", "node1:e0: link-down"]


# --- plain lines ---------------------------------------------------------------------------------


def test_plain_lines_are_at_most_one_a_second() -> None:
    state = one_trial(phases=3)
    stream = io.StringIO()
    plain = Plain(state, Console(file=stream, width=120))
    state.stage = "measuring"
    plain.stage()
    for phase in range(3):
        fed(state, progress_record("node1", 95e6, 95e6, phase=phase), *flows(100, 99, phase))
        for node in ("node1", "node2"):
            ended = take(state, phase_record(node, phase=phase))
            if ended is not None:
                plain.ended(ended)
    first, second = stream.getvalue().splitlines()
    assert first == "measuring"
    assert second.startswith(
        "1/1 pairs neighbours, dpdk, 2 ranks, phase 0 of 0-2 done, 1.188 Mbit/s, 1 frame lost, "
    )


def test_a_trial_of_a_suite_is_called_by_its_subtest() -> None:
    """How many will come is not known; a burst has no rate when it is over."""
    trial = replace(
        make_trial(SITE), pattern={"name": "flows"}, traffic="burst",
        burst=Burst(100),
        parameters={"subtest": "back-to-back", "variant": "many to one"},
    )  # fmt: skip
    state = state_of(make_run(SITE, trial, suite="rfc9004", searches=(trial,), estimates_s=(9.0,)))
    stream = io.StringIO()
    plain = Plain(state, Console(file=stream, width=120))
    fed(state, progress_record("node1", 0, 0), *flows(100, 99))
    (ended,) = filter(None, [take(state, phase_record(node)) for node in ("node1", "node2")])
    plain.ended(ended)
    assert stream.getvalue().startswith(
        "1 back-to-back many to one, dpdk, 2 ranks done, 1 frame lost, about "
    )


def test_findings_come_with_the_end_of_a_trial(monkeypatch: pytest.MonkeyPatch) -> None:
    """A trial ends when all nodes say so; findings are renewed every two seconds at most."""
    now_s = 100.0
    monkeypatch.setattr("time.monotonic", lambda: now_s)
    state = state_of(make_run(SITE, *(make_trial(SITE, number, flows=1) for number in range(3))))
    counts = []
    for number in range(3):
        ended = (*map(phase_record, ("node1", "node2")), trial_record("node1"))
        fed(state, *(one | {"trial": number} for one in (*flows(1000, 999 - number), *ended)))
        state.turn()
        counts.append([one["count"] for one in state.findings])
        fed(state, trial_record("node2", trial=number))
        now_s += 1.0
        for _ in range(2):
            state.turn()
        counts.append([one["count"] for one in state.findings])
    assert counts == [[], [1], [1], [1], [1], [6]]


def test_a_watch_has_a_line_for_each_phase() -> None:
    state = one_trial()
    stream = io.StringIO()
    view = Seconds(state, Console(file=stream, width=200))
    for stage in ("first barrier", "measuring"):
        state.stage = stage
        view.stage()
    fed(state, *flows(1000, 990), phase_record("node1"))
    ended = take(state, phase_record("node2"))
    assert ended is not None
    view.ended(ended)
    view.ended(replace(ended, times={"one_way": {"p50": 31.5, "p99": None}}))
    first, second, third = stream.getvalue().splitlines()
    assert first == "Ctrl-C ends the watch with a summary"
    assert "; loss 1.00 % (10 of 1,000); worst node2:e0: " in second
    assert second.endswith("Mbit/s, 10 lost")
    assert "; one way p50 31.50, p99 - us; " in third


def test_a_pipe_and_a_dumb_terminal_get_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    for terminal, name in ((False, "xterm"), (True, "dumb")):
        monkeypatch.setenv("TERM", name)
        stream = io.StringIO()
        console = Console(file=stream, force_terminal=terminal, color_system=None)
        with Watch(one_trial().run, "run", console) as shown:
            shown.stage("measuring")
        assert stream.getvalue() == "measuring\n"


def test_a_view_that_fails_is_closed_and_a_slow_terminal_keeps_it() -> None:
    class Failing:
        closed = 0
        error: OSError = BlockingIOError(errno.EAGAIN, "Resource temporarily unavailable")

        def turn(self) -> None:
            raise self.error

        def close(self) -> None:
            self.closed += 1

        def stage(self) -> None: ...

        def ended(self, phase: state.PhaseLoss) -> None: ...

    view = Failing()
    with Watch(one_trial().run, "run", Console(file=io.StringIO()), quiet=True) as shown:
        shown._view = view
        shown.turn()
        assert (shown._view, view.closed) == (view, 0)
        view.error = OSError(errno.EIO, "Input/output error")
        shown.turn()
        assert (shown._view, view.closed) == (None, 1)


# --- metrics -------------------------------------------------------------------------------------


def scrape(url: str) -> dict[str, list[Any]]:
    """Return the samples by name."""
    with urllib.request.urlopen(url, timeout=10) as answer:
        text = answer.read().decode()
    samples: dict[str, list[Any]] = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            samples.setdefault(sample.name, []).append(sample)
    return samples


def test_metrics_say_what_the_state_says() -> None:
    state = one_trial(phases=2)
    fed(state, *flows(1000, 990), phase_record("node1"), phase_record("node2"))
    fed(state, progress_record("node1", 80e6, None, phase=1))
    fed(state, progress_record("node2", None, None, phase=1))
    with metrics.served("127.0.0.1", 0, Shown(state, "run-7")) as url:
        samples = scrape(url)
    (offered,) = samples["switchbench_port_offered_bytes_per_second"]
    assert offered.value == 10e6
    assert offered.labels == {"port": "node1:e0", "node": "node1", "network": "lab"}
    assert "switchbench_port_delivered_bytes_per_second" not in samples  # not 0: unknown
    lost = {s.labels["port"]: s.value for s in samples["switchbench_port_lost_frames_total"]}
    assert lost == {"node1:e0": 0, "node2:e0": 10}
    values = {name: found[0].value for name, found in samples.items() if len(found) == 1}
    assert values["switchbench_run_phase"] == 1
    assert values["switchbench_run_repeat"] == 0
    assert values["switchbench_run_completed_phases_total"] == 1
    assert values["switchbench_run_lost_frames_total"] == 10
    assert samples["switchbench_run_info"][0].labels["run"] == "run-7"
    assert samples["switchbench_build_info"][0].labels["version"]
    steps = {s.labels["switchbench_step"]: s.value for s in samples["switchbench_step"]}
    assert [name for name, value in steps.items() if value] == ["window"]
    with pytest.raises(OSError, match="refused"):
        socket.create_connection(("127.0.0.1", urlsplit(url).port), 2)


def test_addresses() -> None:
    good = {":9469": ("0.0.0.0", 9469), "[::1]:0": ("::1", 0), "localhost:80": ("localhost", 80)}
    for text, address in good.items():
        assert metrics.parse_address(text) == address
    for text in ("", "9469", ":", ":x", ":65536", "::1:80", "[::1]", ":-1", "a:²"):
        with pytest.raises(ConfigurationError, match=r"--metrics .*for example :9469"):
            metrics.parse_address(text)
    with socket.socket() as other, ExitStack() as stack:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        for host, says in (
            ("127.0.0.1", f"127.0.0.1:{port}: Address already in use; give another address"),
            ("no-such-host.invalid", "no-such-host.invalid"),
            ("a..b", f"a..b:{port}: "),
        ):
            with pytest.raises(ConfigurationError, match=re.escape(says)):
                stack.enter_context(metrics.served(host, port, Shown(one_trial())))


def test_metrics_follow_the_conventions_and_those_of_the_dashboard_exist() -> None:
    state = one_trial(phases=2)
    fed(state, *flows(1000, 990), *(phase_record(node) for node in ("node1", "node2")))
    fed(state, *(progress_record(node, 80e6, 80e6, phase=1) for node in ("node1", "node2")))
    exported = set()
    for family in metrics.StateCollector(Shown(state)).collect():
        assert family.name.startswith("switchbench_")
        assert family.documentation.endswith(".")
        assert not re.search(r"_(bps|bits|ms|us|percent|total)\b", family.name)
        exported |= {sample.name for sample in family.samples}
    dashboard = json.loads((ROOT / "conf/grafana-switchbench.json").read_text())
    asked = [target["expr"] for panel in dashboard["panels"] for target in panel.get("targets", [])]
    asked.append(dashboard["templating"]["list"][-1]["query"])
    used = {name for text in asked for name in re.findall(r"\bswitchbench_\w+", text)}
    assert len(used) > 12
    assert used - {"switchbench_step"} <= exported  # a label has the metric's name
