# SPDX-License-Identifier: BSD-3-Clause
"""Columns that several tables have: what a row is of, and its rates."""

from __future__ import annotations

from dataclasses import replace

from ...base import format
from .table import PAGE, TERMINAL, TOTAL, Column, Entry, count, measured, text

SIZE = "Of frames with FCS (RFC 2544), or of messages"


def load_words(entry: Entry) -> str:
    """Return what was asked for, in percent of line."""
    return "" if entry["intended_load"] is None else f", {entry['intended_load']:g} %"


def plan_title(plan: Entry) -> str:
    """`pairs neighbours, tcp, 64 KiB messages, 50 %`."""
    return f"{format.pattern(plan)}, {plan['transport']}, {format.size(plan)}{load_words(plan)}"


def phase_name(entry: Entry) -> str:
    """As the plan calls it; else its number."""
    return str(entry["phase_name"] or entry["phase"])


PLAN = text("plan", "pattern", value=plan_title, output=TERMINAL, about="What a row is of")
PATTERN = text("pattern", "pattern", value=format.pattern, fold=True)
TRANSPORT = text("transport", "transport", fold=True)
NETWORK = text("network", "network", fold=True, drop=9)
RANKS = count("ranks", "ranks", fold=True, drop=8)
PHASE = text("phase", "phase_name", value=phase_name)
TRIAL = count("trial", "trial", output=PAGE)
STATE = text("state", "state", fold=True, output=PAGE)
LOAD = Column("intended load", "intended_load", "percent", "% of line", fold=True, output=PAGE,
              value=lambda entry: entry.get("intended_load"))  # fmt: skip
LIMITED = Column(
    "T", "tester_limited", "mark", seldom=True,
    about="T: tester-limited, no figure of the network",
    value=lambda entry: "T" if entry.get("tester_limited") else None,
)  # fmt: skip
# A path of messages and steps; the terminal has it in headings.
PATH = (TRANSPORT, NETWORK, RANKS)
HEADED = tuple(replace(column, output=PAGE) for column in (PATTERN, *PATH))

# Said once above the table where all rows have the same; the terminal has it in headings.
SETTING = (
    text("pattern", "pattern", value=format.pattern, fold=True, output=PAGE),
    text("transport", "transport", fold=True, output=PAGE),
    text("network", "network", fold=True, output=PAGE),
    RANKS,
    text("size", "size", value=format.size, about=SIZE, fold=True, output=PAGE),
    LOAD,
    count("repeat", "repeat", fold=True, silent=True, output=PAGE),
)

TITLED = tuple(replace(column, output=PAGE) for column in SETTING)  # the terminal: in titles

RATES = (
    measured("throughput_min", drop=13),
    measured("throughput", drop=8),
    measured("throughput_max", drop=6),
    measured("throughput_total", unit=TOTAL, drop=11),
)
SHARES = (
    measured("percent_of_line", unit="% line", drop=7),
    measured("min_percent_of_line", unit="% line", drop=12),
)
SLOWEST = text("slowest flow", "slowest")


def _ppm(entry: Entry) -> float | None:
    lost, offered = entry.get("lost_frames"), entry.get("offered_frames")
    return None if lost is None or not offered else 1e6 * lost / offered


LOSS_PPM = Column("loss", "loss_ppm", unit="ppm", fold=True, silent=True, seldom=True, drop=10,
                  value=_ppm, about="Lost frames by those offered")  # fmt: skip
