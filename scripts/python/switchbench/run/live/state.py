# SPDX-License-Identifier: BSD-3-Clause
"""Live state of a run: loss and rates of each phase, as soon as all nodes have reported.

Frames are counted by their destination; rates are those of the window, as in the table.
"""

from __future__ import annotations

import time
from collections import Counter, deque
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from ...analysis import measures as m
from ...analysis.summary import EndedPhase, Summary
from ...base import format
from ...base.model import Run, Trial
from ...records.schema import Record
from ...records.summary_form import FindingEntry

PortRates = tuple[float | None, float | None, float | None]
"""Rates of a port in a window: offered payload, delivered payload, delivered rate on the line.

A rate is None where no flow has this direction, or the rate is unknown.
"""


@dataclass
class PhaseLoss:
    """Losses, rates and latency of one phase that has ended."""

    trial: int
    repeat: int
    phase: int
    sent: Counter[str] = field(default_factory=Counter)  # frames, by destination
    lost: Counter[str] = field(default_factory=Counter)
    rates: dict[str, PortRates] = field(default_factory=dict)
    times: dict[str, Mapping[str, float]] = field(default_factory=dict)  # latency by kind, in us


def phase_loss(ended: EndedPhase) -> PhaseLoss:
    """Return the losses and rates of an ended phase, summed over its networks."""
    moment, results = ended
    loss = PhaseLoss(*moment)
    for result in results:
        loss.times |= {kind: found for kind, found in result.entry["latency"].items() if found}
    for flows in (result.every for result in results if result.every.settled):
        # The rates of each port in the window, equal to the summary's.
        frames = ~np.isnan(flows["received_frames"])
        line_bps = np.where(frames, m.delivered_line_bps(flows), m.payload_bps(flows))
        offered = m.sum_by_port(flows.ends("src"), m.offered_payload_bps(flows))
        delivered = m.sum_by_port(flows.ends("dst"), m.payload_bps(flows))
        on_line = m.sum_by_port(flows.ends("dst"), line_bps)
        for port in offered.keys() | delivered.keys():
            loss.rates[port] = (offered.get(port), delivered.get(port), on_line.get(port))
        # Flows of TCP and RDMA, which retransmit lost frames, have no frame counts.
        counted = flows.select(flows.whole & ~np.isnan(flows["sent_frames"]))
        ports = counted.ends("dst")
        for counter, counts in (
            (loss.sent, counted["sent_frames"]),
            (loss.lost, m.or_zero(m.lost_frames(counted))),
        ):
            sums = m.sum_by_port(ports, counts)
            counter.update({port: int(count) for port, count in sums.items() if count is not None})
    return loss


# --- state ----------------------------------------------------------------------------------------
# Progress of the run and rates of each port, from the records of all nodes.


# steps of a phase, as nodes report them
STEPS = ("connectivity-check", "warmup", "window", "cooldown", "drain")

_EVENTS_KEPT = 50
_FINDINGS_S = 2.0  # minimum interval between updates of the findings
_FINDINGS_SHARE = 0.05  # maximum share of time for these updates


@dataclass(slots=True)
class PortState:
    """Latest state of one port; rates are None where no flow of the phase has this direction."""

    name: str
    node: str
    network: str
    place: int  # position in the order of ports
    line_bps: int = 0  # 0: unknown
    phase: int = 0
    step: str = ""  # empty: no part in the present phase
    offered_bps: float | None = None  # payload
    delivered_bps: float | None = None
    delivered_line_bps: float | None = None  # on the line; layer 1 for transports with frames
    suspect: str = ""  # suspected fault, in a few words
    settled: bool = False  # true: the rates were measured in a window
    # Frames sent to this port, in the last phase and in all phases.
    phase_lost: int | None = None
    phase_sent: int = 0
    lost: int = 0
    sent: int = 0

    @property
    def line_share(self) -> float | None:
        """Return the delivered rate as a share of the port's line rate; None where unknown."""
        if self.delivered_line_bps is None or not self.line_bps:
            return None
        return self.delivered_line_bps / self.line_bps

    @property
    def phase_lost_percent(self) -> float | None:
        """Return the loss in percent of the frames sent to the port in the last phase."""
        if self.phase_lost is None or not self.phase_sent:
            return None
        return 100.0 * self.phase_lost / self.phase_sent

    def rest(self, phase: int) -> None:
        """Begin a phase at this port: clear its step and its rates."""
        self.phase, self.step, self.settled = phase, "", False
        self.offered_bps = self.delivered_bps = self.delivered_line_bps = None


class RunState:
    """Progress of a run, with the state of its ports, findings and events."""

    def __init__(self, run: Run, summary: Summary) -> None:
        """Prepare the state of a run before it begins; the caller updates `summary`."""
        self.run = run
        self.summary = summary
        self.findings: list[FindingEntry] = []  # of the trials that have ended
        self._findings_old = False  # a trial has ended since the findings were made
        self._findings_s = 0.0  # earliest time of the next update
        self.trial: Trial | None = None
        self.phase = 0
        self.step = ""
        self.stage = ""
        self.events: deque[str] = deque(maxlen=_EVENTS_KEPT)  # events, a sentence each
        self.event_count = 0
        self.total_phases = sum(trial.phases for trial in run.trials if not trial.optional)
        self.began_s = time.monotonic()
        self.ports: dict[str, PortState] = {}
        self._of_node: dict[str, list[PortState]] = {}
        for process in run.site.processes:
            own = self._of_node[process.name] = []
            for port in process.ports:
                place = len(self.ports)
                state = PortState(port.name, process.name, port.network, place, port.line_rate_bps)
                self.ports[port.name] = state
                own.append(state)
        self._lines: dict[tuple[str, str], int] = {}  # line rates by port and transport
        self._trials = {(trial.id, trial.repeat): trial for trial in run.trials}
        self._trial_began_s = self._search_began_s = self.began_s
        self._ended: Counter[tuple[int, int]] = Counter()  # number of nodes that ended the trial
        self.phases_done = 0  # of all trials
        self._last_phase = summary.ended_phase

    def grow(self, trial: Trial) -> None:
        """Add a trial, which was chosen during the run, to the run."""
        self.run = replace(self.run, trials=(*self.run.trials, trial))
        self._trials[trial.id, trial.repeat] = trial
        self.total_phases += trial.phases

    # --- records -----------------------------------------------------------------------------

    def take(self, record: Record) -> PhaseLoss | None:
        """Handle a record; return the losses of a phase that it completes on all nodes."""
        kind = record["type"]
        if kind == "progress" and self._enter(record):
            self.step = record.get("step") or ""
            in_window = self.step == "window"
            for name, *rates in record.get("ports") or ():
                port = self.ports[name]
                port.step = self.step
                if in_window or not port.settled:
                    port.offered_bps, port.delivered_bps, port.delivered_line_bps = rates
                    port.settled = in_window
        elif kind == "phase":
            return self._take_phase(record)
        elif kind == "trial":
            key = (record["trial"], record.get("repeat") or 0)
            self._ended[key] += 1
            self._findings_old |= self._ended[key] == len(self._of_node)
        elif kind == "port-open":
            rate_bps = record.get("line_rate_bps") or 0
            self._lines[record["port"], record["transport"]] = rate_bps
            port = self.ports[record["port"]]
            port.line_bps = rate_bps or port.line_bps
        elif kind == "event":
            words = (record.get("port"), record.get("kind"), record.get("text"))
            self.events.append(": ".join(str(word) for word in words if word))
            self.event_count += 1
        return None

    def turn(self) -> None:
        """Update the findings after a trial has ended; called several times per second."""
        now_s = time.monotonic()
        if not self._findings_old or now_s < self._findings_s:
            return
        self._findings_old = False
        self.findings = self.summary.findings()
        suspects = self.summary.locator.suspects_by_port()
        for name, port in self.ports.items():
            port.suspect = suspects.get(name, "")
        ended_s = time.monotonic()
        self._findings_s = ended_s + max(_FINDINGS_S, (ended_s - now_s) / _FINDINGS_SHARE)

    def _take_phase(self, record: Record) -> PhaseLoss | None:
        if record["phase"] < 0:  # the connectivity check
            return None
        self._enter(record)
        if self.summary.ended_phase is self._last_phase:
            return None
        self._last_phase = self.summary.ended_phase
        ended = phase_loss(self._last_phase)
        self.phases_done += 1
        for port in self.ports.values():
            port.phase_sent = ended.sent[port.name]
            port.phase_lost = ended.lost[port.name] if port.phase_sent else None
            port.sent += port.phase_sent
            port.lost += port.phase_lost or 0
        trial = self.trial
        if trial is not None and (trial.id, trial.repeat) == (ended.trial, ended.repeat):
            for name, rates in ended.rates.items():  # rates of the whole window
                port = self.ports[name]  # unless the port is already in another phase
                if port.phase == ended.phase and trial.traffic == "stream":
                    port.offered_bps, port.delivered_bps, port.delivered_line_bps = rates
                    port.settled = True
        return ended

    def _enter(self, record: Record) -> bool:
        """Begin the trial and the phase of a record if they are new.

        Return true for a record of the latest phase of the present trial.
        """
        key = (record["trial"], record.get("repeat") or 0)
        trial = self._trials.get(key)
        if trial is None:
            return False
        if trial is not self.trial:
            if self._ended[key]:
                return False  # a late record of an ended trial
            if self.trial is not None and self.trial.search != trial.search:
                self._search_began_s = time.monotonic()
            self.trial, self._trial_began_s, self.phase = trial, time.monotonic(), 0
            for port in self.ports.values():
                port.rest(0)
            for part in trial.parts:
                carrier = trial.of(part.network).transport
                for rank in part.ranks:
                    port = self.ports[rank.name]
                    port.line_bps = self._lines.get((port.name, carrier)) or port.line_bps
        phase: int = max(0, record["phase"])
        self.phase = max(self.phase, phase)
        for port in self._of_node[record["node"]]:
            if port.phase < phase:
                port.rest(phase)
        return phase == self.phase

    # --- what they amount to -----------------------------------------------------------------

    @property
    def left_s(self) -> float:
        """Return the expected remaining time of the trials that have not ended."""
        if self.run.searches:  # a search's trials are unknown, so its estimated time is used
            number = 0 if self.trial is None else self.trial.search or 0
            now_s, *later_s = self.run.estimates_s[number:]
            return max(0.0, now_s - (time.monotonic() - self._search_began_s)) + sum(later_s)
        nodes = len(self._of_node)
        ahead = sum(
            trial.expected_s
            for key, trial in self._trials.items()
            if self._ended[key] < nodes and not trial.optional
        )
        current = self.trial.expected_s if self.trial else 0.0
        return max(0.0, ahead - min(time.monotonic() - self._trial_began_s, current))

    @property
    def elapsed_s(self) -> float:
        """Return the seconds since the run began."""
        return time.monotonic() - self.began_s

    @property
    def offered_bps(self) -> float:
        """Return the payload rate sent by all ports together."""
        return sum(port.offered_bps or 0.0 for port in self.ports.values())

    @property
    def delivered_bps(self) -> float:
        """Return the payload rate received by all ports together."""
        return sum(port.delivered_bps or 0.0 for port in self.ports.values())

    @property
    def lost(self) -> tuple[int, int]:
        """Return the lost and the sent frames of all phases that have ended."""
        ports = self.ports.values()
        return sum(port.lost for port in ports), sum(port.sent for port in ports)

    @property
    def trial_number(self) -> int:
        """Return the number of the present trial, from 1; 0 before the first."""
        return 0 if self.trial is None else self.run.trials.index(self.trial) + 1

    @property
    def words(self) -> str:
        """Return one line on the running trial and its phase; "" before the first trial."""
        trial = self.trial
        if trial is None:
            return ""
        ranks = sum(len(part.ranks) for part in trial.parts)
        repeat = f", repeat {trial.repeat + 1}" if trial.repeat else ""
        phase = f", phase {self.phase} of 0-{trial.phases - 1}" if trial.phases > 1 else ""
        # the number of a suite's trials is open
        of = "" if self.run.searches else f"/{len(self.run.trials)}"
        return (
            f"{self.trial_number}{of} {pattern_words(trial)}, "
            f"{trial.transport}, {ranks} ranks{repeat}{phase}"
        )


def pattern_words(trial: Trial) -> str:
    """Return the name and the parameters of a trial's pattern as text."""
    return format.pattern({"pattern": trial.pattern["name"], "parameters": trial.parameters})


def rate(bps: float) -> str:
    """Return a rate in bit/s as text, with a unit that suits its size."""
    unit = format.unit_for([bps / 1e6])
    return f"{unit.show(bps / 1e6)} {unit.name}"
