# SPDX-License-Identifier: BSD-3-Clause
"""The tables of a run: each declared once, for the terminal, the report and CSV files."""

from __future__ import annotations

from enum import StrEnum

from ..printer import Spec
from . import judged, messages, network


class Heading(StrEnum):
    """The sections of a report, in the papers' order (doc/developer/papers.md).

    What is empty is left out.
    """

    GLANCE = "At a glance"
    VERDICT = "Verdict"
    SUITE = "Suite"
    FINDINGS = "Findings"
    RESULTS = "Results"
    NODES = "Throughput by number of nodes"
    PAIRS = "Pairs"
    ALL_TO_ALL = "All to all"
    WHOM = "Traffic matrix"
    COURSE = "Throughput over time"
    MESSAGES = "Ping-pong by message size"
    STEPS = "Dependent steps"
    LATENCY = "Latency"
    LOSS = "Loss"
    SKEW = "Start and stop"
    CPU = "CPU time"
    PREDICTED = "Predicted and measured"
    PORTS = "Ports"
    TRIALS = "Trials"
    SET_UP = "Set-up"
    NOT_MEASURED = "What was not measured"
    CONFIGURATION = "The configuration"
    MEANINGS = "What the numbers mean"


# Where each stands in the report.
BY_SECTION: dict[str, tuple[Spec, ...]] = {
    Heading.VERDICT: (judged.clauses, judged.failures),
    Heading.SET_UP: (network.nodes, network.tuning),
    Heading.FINDINGS: (judged.suspects, judged.findings, judged.superseded),
    Heading.SUITE: judged.SUBTESTS,
    Heading.RESULTS: (
        network.searches, network.plans, network.phases, network.repeats, network.imported,
    ),
    Heading.COURSE: (network.intervals,),
    Heading.MESSAGES: (messages.curves, messages.peaks, messages.paths, messages.times),
    Heading.STEPS: (messages.functions, messages.kernels, messages.rankings),
    Heading.LATENCY: (network.latencies,),
    Heading.LOSS: (network.losses, network.order, network.switch_counters),
    Heading.SKEW: (network.skew,),
    Heading.CPU: (network.cpu, network.transports, messages.computing),
    Heading.PORTS: (network.ports,),
    Heading.TRIALS: (judged.trials,),
}  # fmt: skip
EVERY = tuple(spec for specs in BY_SECTION.values() for spec in specs)
