# SPDX-License-Identifier: BSD-3-Clause
"""The tables of a run: each declared once, for the terminal, the report and CSV files."""

from __future__ import annotations

from . import judged, messages, ports, results, steps, suite, times
from .sections import (
    COURSE,
    CPU,
    FINDINGS,
    LATENCY,
    LOSS,
    MESSAGES,
    PORTS,
    RESULTS,
    SET_UP,
    SKEW,
    STEPS,
    SUITE,
    TRIALS,
    VERDICT,
)
from .table import Spec

# Where each stands in the report.
BY_SECTION: dict[str, tuple[Spec, ...]] = {
    VERDICT: (judged.clauses, judged.failures),
    SET_UP: (ports.nodes, ports.tuning),
    FINDINGS: (judged.suspects, judged.findings, judged.superseded),
    SUITE: suite.TABLES,
    RESULTS: (results.searches, results.plans, results.phases, results.repeats, results.imported),
    COURSE: (times.intervals,),
    MESSAGES: (*(messages.curves, messages.peaks, messages.paths, messages.times),),
    STEPS: (steps.functions, steps.kernels, steps.rankings),
    LATENCY: (times.latencies,),
    LOSS: (results.losses, results.order, ports.switch_counters),
    SKEW: (times.skew,),
    CPU: (times.cpu, results.transports, messages.computing),
    PORTS: (ports.ports,),
    TRIALS: (suite.trials,),
}
EVERY = tuple(spec for specs in BY_SECTION.values() for spec in specs)
