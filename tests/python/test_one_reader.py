# SPDX-License-Identifier: BSD-3-Clause
"""All readers of results give the same numbers: summary, tables and figures, exports, the live
screen and predict; with any records missing, and in stopped phases, too."""

from __future__ import annotations

import json
import os
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recorded import Feed, fed, write_tables
from switchbench.analysis.data import Measured
from switchbench.analysis.measures import UNSETTLED
from switchbench.analysis.summary import gather
from switchbench.base.errors import ConfigurationError
from switchbench.base.model import Run
from switchbench.predict.predictor import measured_bps
from switchbench.records.schema import parse
from switchbench.records.store import Tables, cut_streams, finish
from switchbench.run.live.state import PhaseLoss, phase_loss
from synthetic import (
    FRAME_PAYLOAD,
    about,
    frame_side,
    make_run,
    make_site,
    make_trial,
    phase_record,
    port_record,
    trial_record,
)

SITE = make_site(3)
PORTS = [port.name for port in SITE.ports]
PAIRS = [(src, dst) for src in PORTS for dst in PORTS if src != dst]
Json = dict[str, Any]
Pair = tuple[str, str]


@dataclass(frozen=True)
class Phase:
    """One phase: frames by flow, None where an end left no record or does not count."""

    state: str
    sent: dict[Pair, int | None]
    came: dict[Pair, tuple[int, int] | None]  # delivered, corrupted
    window_ns: int

    @property
    def pairs(self) -> list[Pair]:
        """Return all flows of which an end left a record."""
        return list({**self.sent, **self.came})

    @property
    def delivered(self) -> dict[Pair, int | None]:
        """Return the delivered frames by flow; None where they are unknown."""
        return {pair: (self.came.get(pair) or (None,))[0] for pair in self.pairs}

    @property
    def lost(self) -> dict[Pair, int | None]:
        """Return the lost frames by flow, by their definition."""
        found: dict[Pair, int | None] = dict.fromkeys(self.pairs)
        for pair, sent in self.sent.items():
            came = self.came.get(pair)
            if sent is not None and came is not None and self.state not in UNSETTLED:
                found[pair] = max(0, sent - sum(came))
        return found

    @property
    def rates(self) -> dict[Pair, float]:
        """Return the payload in Mbit/s of the flows with a window at the destination."""
        known = {pair: count for pair, count in self.delivered.items() if count is not None}
        scale = 8e3 * FRAME_PAYLOAD / self.window_ns if self.window_ns else 0
        return {pair: count * scale for pair, count in known.items() if scale}


FRAMES = st.integers(0, 10**6)


@st.composite
def phases(draw: st.DrawFn) -> Phase:
    """Return any phase of three ports."""
    pairs = draw(st.lists(st.sampled_from(PAIRS), min_size=1, max_size=6, unique=True))
    return Phase(
        draw(st.sampled_from(["complete", "complete", "stopped", "flooded"])),
        {pair: draw(st.none() | FRAMES) for pair in pairs if draw(st.integers(0, 5))},
        {
            pair: draw(st.none() | st.tuples(FRAMES, st.integers(0, 100)))
            for pair in pairs
            if draw(st.integers(0, 5))
        },
        draw(st.sampled_from([10**9, 10**9 + 1000, 0])),
    )


def records_of(run: list[Phase]) -> list[Json]:
    found: list[Json] = []
    for number, phase in enumerate(run):
        place = {"phase": number}
        for (src, dst), sent in phase.sent.items():
            found.append(frame_side("source", src, dst, 0, 0, **place) | counted(sent, phase))
        for (src, dst), came in phase.came.items():
            frames, corrupted = (None, None) if came is None else came
            more = {"corrupted": corrupted, **place}
            found.append(frame_side("destination", src, dst, 0, 0) | counted(frames, phase) | more)
        for port in PORTS:
            found.append(port_record(port, **place))
            found.append(phase_record(port.partition(":")[0], state=phase.state, **place))
    return found + [trial_record(process.name) for process in SITE.processes]


def counted(frames: int | None, phase: Phase) -> Json:
    sizes = {"frames": 1, "frame_bytes": FRAME_PAYLOAD + 18, "payload_bytes": FRAME_PAYLOAD}
    counts = {name: None if frames is None else frames * size for name, size in sizes.items()}
    windows = {f"window_{name}": count for name, count in counts.items()}
    return counts | windows | {"window_ns": phase.window_ns}


def total(values: Any) -> int | None:
    parts = list(values)
    return sum(parts) if parts and None not in parts else None


def live(run: Run, records: list[Json]) -> dict[int, PhaseLoss]:
    feed = Feed(run, brief=True)
    summary = feed.summary
    found = {}
    for record in records:
        feed.take(record)
        found[summary.ended_phase[0][2]] = phase_loss(summary.ended_phase)
    return found


@settings(max_examples=30)
@given(st.lists(phases(), min_size=1, max_size=3), st.booleans())
def test_all_readers_say_the_same(happened: list[Phase], ended: bool) -> None:
    """While the run goes on, and when it has ended."""
    records = records_of(happened)
    run = make_run(SITE, make_trial(SITE, phases=len(happened)))
    with tempfile.TemporaryDirectory() as temporary:
        directory = Path(temporary)
        write_tables(directory, run, records)
        if ended:
            finish(directory, run)
        check(run, happened, records, directory)


def check(run: Run, happened: list[Phase], records: list[Json], directory: Path) -> None:
    summary = gather(run, directory).finish(about(), [])
    one_by_one = fed(run, (parse(json.dumps(record).encode()) for record in records))
    assert one_by_one.finish(about(), []) == summary

    entries = {entry["phase"]: entry for entry in summary["trials"]}
    stopped = {number for number, entry in entries.items() if entry["state"] in UNSETTLED}
    assert stopped == {
        n for n, phase in enumerate(happened) if phase.state in UNSETTLED and n in entries
    }
    measured = Measured(directory, summary, ports=PORTS)
    measured.read()
    assert measured.damage == []
    flows = [found for entry in entries.values() if (found := measured.flows(entry))]
    told = live(run, records)
    seen = measured_bps({(0, 0): run.trials[0]}, directory)
    for number, phase in enumerate(happened):
        if number not in entries:
            assert not phase.pairs
            continue
        entry, rates = entries[number], phase.rates
        assert entry["lost_frames"] == total(phase.lost.values())
        assert entry["delivered_frames"] == total(phase.delivered.values())
        assert entry["offered_frames"] == total(map(phase.sent.get, phase.pairs))
        if rates.keys() == set(phase.pairs):
            assert entry["throughput"]["total"] == pytest.approx(sum(rates.values()))

        if flows:
            mine = flows[0].phase == number
            src, dst, lost, mbps = (
                getattr(flows[0], name)[mine].tolist() for name in ("src", "dst", "lost", "mbps")
            )
            drawn = [(PORTS[one], PORTS[other]) for one, other in zip(src, dst, strict=True)]
            assert set(drawn) == phase.came.keys()
            truly = [np.nan if phase.lost[pair] is None else phase.lost[pair] for pair in drawn]
            assert lost == pytest.approx(truly, nan_ok=True)
            seen_mbps = [rates.get(pair, np.nan) for pair in drawn]
            assert mbps == pytest.approx(seen_mbps, nan_ok=True)

        known = sum(count or 0 for count in phase.lost.values())
        assert told[number].lost.total() == (known if phase.state == "complete" else 0)
        line = {pair: rate * (FRAME_PAYLOAD + 38) / FRAME_PAYLOAD for pair, rate in rates.items()}
        delivered = seen.get((run.trials[0].point, "lab", number), {})
        on_line = {pair: bps[0] / 1e6 for pair, bps in delivered.items() if bps}
        assert on_line == pytest.approx(line)


@pytest.mark.parametrize("kept", [0.0, 0.2, 0.5, 0.9, 1.0])
def test_a_stream_is_read_wherever_it_is_cut_off(kept: float, tmp_path: Path) -> None:
    """Phases that had ended are there; of the last one what was written is."""
    site, count = make_site(2), 20
    run = make_run(site, make_trial(site, phases=count))
    ends = ("node1:e0", "node2:e0")
    records = [
        one | {"phase": number}
        for number in range(count)
        for one in (
            frame_side("source", *ends, 100 + number, 100),
            frame_side("destination", *ends, 100, 100),
            phase_record("node1"),
            phase_record("node2"),
        )
    ]
    write_tables(tmp_path, run, records)
    for stream in tmp_path.glob("*.arrows"):
        os.truncate(stream, int(stream.stat().st_size * kept))
    tables = Tables(tmp_path)
    whole = [phase for phase in tables.phases() if {"flows", "phases"} <= phase.tables.keys()]
    assert [phase.moment[2] for phase in whole] == list(range(len(whole)))
    assert abs(len(whole) - kept * count) <= 2
    assert all(
        phase.rows("flows").floats("sent_frames").tolist() == [100 + number]
        for number, phase in enumerate(whole)
    )
    finish(tmp_path, run)
    said = cut_streams(tmp_path)
    assert len(said) == (len(list(tmp_path.glob("*.cut"))) if kept < 1 else 0)
    assert bool(said) == (kept < 1)
    assert [phase.moment for phase in Tables(tmp_path).phases()] == [
        phase.moment for phase in tables.phases()
    ]


def test_a_stream_with_a_hole_is_kept_and_named(tmp_path: Path) -> None:
    """Nothing behind the hole can be read: the rest must not be taken for the whole."""
    site = make_site(2)
    run = make_run(site, make_trial(site, phases=20))
    flows = [
        frame_side("source", "node1:e0", "node2:e0", 100, 100) | {"phase": number}
        for number in range(20)
    ]
    write_tables(tmp_path, run, flows)
    stream = tmp_path / "flows.1.arrows"
    data = bytearray(stream.read_bytes())
    data[len(data) // 2 : len(data) // 2 + 4096] = bytes(4096)
    stream.write_bytes(data)
    finish(tmp_path, run)
    assert not stream.exists()
    assert (tmp_path / "flows.1.arrows.cut").read_bytes() == data
    (said,) = cut_streams(tmp_path)
    assert said.startswith("flows.1.arrows.cut: the stream is damaged or was cut off")


def test_a_column_that_stands_twice_is_refused(tmp_path: Path) -> None:
    run = make_run(SITE, make_trial(SITE))
    write_tables(tmp_path, run, [frame_side("source", *pair, 10, 10) for pair in PAIRS])
    finish(tmp_path, run)
    path = tmp_path / "flows.parquet"
    data = pq.read_table(path)
    pq.write_table(data.append_column("src", data["src"]), path)
    with pytest.raises(ConfigurationError, match=r"flows\.parquet can't be read as a table: .*src"):
        list(Tables(tmp_path).phases())


def test_a_column_that_one_row_of_many_has_is_read(tmp_path: Path) -> None:
    flows = [frame_side("source", *pair, 10, 10, measures={}) for pair in PAIRS]
    flows[2]["measures"] = {"mss_bytes": 1448}
    write_tables(tmp_path, make_run(SITE, make_trial(SITE)), flows)
    (phase,) = Tables(tmp_path).phases()
    found = phase.rows("flows").floats("sent_mss_bytes")
    assert np.flatnonzero(~np.isnan(found)).tolist() == [2]
    assert found[2] == 1448


def test_a_table_of_all_spans(tmp_path: Path) -> None:
    """A count has the time since the mark before; a flow of no known port and a count without a
    mark are left out."""
    place = {"type": "interval", "node": "c", "trial": 3, "repeat": 1, "network": "lab", "phase": 2}
    records = [
        place | {"dst": dst, "from_ms": begin, "at_ms": ends, "flows": list(flows.items())}
        for dst, begin, ends, flows in (
            ("c", 0.5, [100.0, 200.0], {"a": [10, 20], "b": [30, 40, 99], "strange": [7, 7]}),
            ("strange", 0.5, [100.0], {"a": [7]}),
            ("a", 200.0, [450.0], {"c": [50]}),
            ("a", 450.0, [450.0], {"c": [99]}),
        )
    ]
    write_tables(tmp_path, make_run(SITE), records)
    measured = Measured(tmp_path, {}, ports=["a", "b", "c"])
    measured.read()
    plan = {"trial": 3, "repeat": 1, "network": "lab", "traffic": "stream"}
    found = measured.intervals(plan, 2)
    pairs = [found.pairs[flow] for flow in found.flow.tolist()]
    columns = (*map(found.spans.floats, ("from_ms", "to_ms")), found.mbps)
    assert sorted(zip(pairs, *(column.tolist() for column in columns), strict=True)) == [
        (pair, begin, end, pytest.approx(8e-3 * payload / (end - begin)))
        for pair, begin, end, payload in (
            (("a", "c"), 0.5, 100.0, 10), (("a", "c"), 100.0, 200.0, 20),
            (("b", "c"), 0.5, 100.0, 30), (("b", "c"), 100.0, 200.0, 40),
            (("c", "a"), 200.0, 450.0, 50),
        )
    ]  # fmt: skip
    assert (measured.damage, measured.intervals(plan | {"repeat": 0}, 2).pairs) == ([], [])
