# SPDX-License-Identifier: BSD-3-Clause
"""The sections of a report, in the papers' order (doc/developer/papers.md).

What is empty is left out.
"""

from __future__ import annotations

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
