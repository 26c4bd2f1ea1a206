# SPDX-License-Identifier: BSD-3-Clause
"""RFC 2889, Benchmarking Methodology for LAN Switching Devices, section 5."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from ...base.measures import LESS, NEITHER
from ...base.model import Load
from ..loads import FixedTrials, LoadRange
from . import declaration
from .declaration import (
    Earlier,
    Method,
    PortFacts,
    Rows,
    Statement,
    Subtest,
    SubtestTrials,
    Suite,
    SuiteParameters,
    SuitePoint,
    TrialFacts,
    Value,
)
from .methods import (
    ADDRESS_KEYS,
    ADDRESS_LOAD_PERCENT,
    LATE_SENDERS,
    LATENCY_DEFINITION,
    LATENCY_TRIALS,
    LEARNING_RANGE,
    THROUGHPUT_VALUES,
    above_forwarding,
    address_rows,
    capped,
    fixed,
    known,
    latency_row,
    latency_values,
    learning_rate_rows,
    not_learned,
    search_addresses,
    search_learning_rate,
    search_throughput,
    throughput_goal,
    throughput_row,
)
from .rfc2544 import SIZES


def _forwarding_values(prefix: str) -> tuple[Value, ...]:
    def named(value: Value) -> Value:
        return value if value.of_setting else replace(value, key=f"{prefix}{value.key}")

    return (
        *map(named, THROUGHPUT_VALUES),
        Value(f"{prefix}frmol", "FRMOL", "frames/s",
              "Forwarding rate of all ports at the max offered load"),
        Value("mol", "MOL", "frames/s", "Max offered load: what all ports sent there",
              better=NEITHER, of_setting=True),
        Value(f"{prefix}mfr", "MFR", "frames/s",
              "Max forwarding rate: the highest of all trials, all ports"),
        Value("mfr_load", "load of MFR", "frames/s", "What all ports sent at the MFR",
              better=NEITHER, of_setting=True),
        Value(f"{prefix}loss", "lost at MOL", "%", "(in - out) x 100 / in at the max load",
              better=LESS),
        Value(f"{prefix}flooded", "flooded", "",
              "Frames that came to another port than their destination, all trials", "count", LESS),
    )  # fmt: skip


def _forwarding_rows(prefix: str) -> Callable[[SubtestTrials], Rows]:
    def rows(measured: SubtestTrials) -> Rows:
        top = measured.point.loads.max
        most = [facts for trial, facts in measured.trials if trial.value >= top]
        every = [facts for facts in measured.facts if facts.delivered_fps is not None]
        best = max(every, key=lambda facts: facts.delivered_fps or 0.0, default=TrialFacts())
        last = most[-1] if most else TrialFacts()
        row = throughput_row(measured) | {
            "frmol": last.delivered_fps,
            "mol": last.offered_fps,
            "mfr": best.delivered_fps,
            "mfr_load": best.offered_fps,
            "loss": last.loss_percent,
            "flooded": sum(facts.flooded for facts in measured.facts),
        }
        return [row | {f"{prefix}{key}": value for key, value in row.items()}]

    return rows


def _forwarding(
    name: str, section: str, title: str, about: str, variants: declaration.Variants, prefix: str,
    ports_min: int = 2, ports_step: int = 1, frame_options: Mapping[str, Any] | None = None,
) -> Subtest:  # fmt: skip
    return Subtest(
        name, section, title, about, variants, search_throughput, _forwarding_rows(prefix),
        _forwarding_values(prefix), goals=throughput_goal, no_result=above_forwarding,
        ports_min=ports_min, ports_step=ports_step, frame_options=frame_options or {},
    )  # fmt: skip


def _congestion_rows(measured: SubtestTrials) -> Rows:
    """By the worst of the trials and groups: loss at a port that is not congested is blocking."""

    def ports(*, congested: bool) -> list[PortFacts]:
        names = measured.point.receivers(congested=congested)
        return [facts.ports[name] for facts in measured.facts for name in names]

    free, full = ports(congested=False), ports(congested=True)
    blocked = max((port.loss_percent for port in free), default=None)
    lossless = max((port.loss_percent for port in full), default=None)
    return [
        {
            "offered_rate": max(known(facts.offered_fps for facts in measured.facts), default=None),
            "uncongested_loss": blocked,
            "uncongested_rate": min(known(port.delivered_fps for port in free), default=None),
            "congested_loss": lossless,
            "head_of_line_blocking": None if blocked is None else int(blocked > 0),
            "backpressure": None if lossless is None else int(lossless == 0),
        }
    ]


def _errored_sizes(point: SuitePoint, _earlier: Earlier) -> Method:
    """Return those that the ports can send; a row without counts says which they can't."""
    sizes = [size for size in ERRORED_SIZES if size <= point.frame_max]
    return FixedTrials(sizes, point.parameters.trial_s, "bytes")


def _errored_rows(measured: SubtestTrials) -> Rows:
    counts = {
        proposed.value: {
            "errored_offered": facts.offered,
            "errored_forwarded": (forwarded := facts.offered - facts.lost + facts.flooded),
            "errored_filtered": int(forwarded == 0),
        }
        for proposed, facts in measured.trials
    }
    return [{"errored_size": size, **counts.get(size, {})} for size in ERRORED_SIZES]


def _one_frame(point: SuitePoint, _earlier: Earlier) -> Method:
    """Trials of one frame each (5.10.3)."""
    return FixedTrials([1.0] * int(point.parameters.latency_repeats), 0.0, "frames")


CONGESTION_VALUES = (
    Value("offered_rate", "offered", "frames/s", "What all ports together sent", better=NEITHER,
          of_setting=True),
    Value("uncongested_loss", "lost, uncongested", "%",
          "At the port that gets half of one source, the worst of groups and trials",
          better=LESS),
    Value("uncongested_rate", "rate, uncongested", "frames/s",
          "Forwarding rate there at 50 % offered load, the lowest"),
    Value("congested_loss", "lost, congested", "%",
          "At the port that gets 150 %, the worst; 33.3 % is expected without congestion control",
          better=NEITHER),
    Value("head_of_line_blocking", "blocking", "yes 1, no 0",
          "Head-of-line blocking: frames for the uncongested port were lost", "count", LESS),
    Value("backpressure", "backpressure", "yes 1, no 0",
          "No frame for the congested port was lost", "count", NEITHER),
)  # fmt: skip

ERRORED_SIZES = (36, 63, 1519, 9018)  # 36: headers, signature and FCS

_TABLES = (
    ("5.1", "full-mesh"), ("5.2", "partial-mesh"), ("5.3", "uplink"), ("5.4", "half-mesh"),
    ("5.6", "max-forwarding-rate"), ("5.10", "broadcast-throughput"),
)  # fmt: skip
_OF_EACH = (
    ("MUST", "FRMOL in frames/s to the correct destination, and the MOL", "table"),
    ("MUST", "MFR, and the offered load at which it was measured", "table"),
    ("SHOULD", "a graph over frame size, with the theoretical line", "figure"),
)
STATEMENTS = (
    *(
        Statement(section, word, asks, f"{kind} `rfc2889-{name}`")
        for section, name in _TABLES
        for word, asks, kind in _OF_EACH
    ),
    Statement("5.9.5", "MUST", "pass or fail for each error condition",
              "table `rfc2889-errored-frames`, column filtered; rejected: fcs-errors, "
              "dribble-bits"),
    *(
        Statement(section, "SHOULD", "a table with each iteration: addresses, intended load, test "
                  "frames offered and forwarded, flood counts", "table `suite-trials`")
        for section in ("5.7.5", "5.8.5")
    ),
    Statement("5.5.4", "MUST", "frame loss rate of the congested and uncongested ports",
              "table `rfc2889-congestion-control`, both columns lost"),
    Statement("5.5.4", "MUST", "offered load in frames/s",
              "table `rfc2889-congestion-control`, column offered"),
    Statement("5.5.5", "MUST", "loss and forwarding rate at the uncongested port, loss at the "
              "congested port", "table `rfc2889-congestion-control`"),
)  # fmt: skip

RFC2889 = Suite(
    name="rfc2889",
    document="RFC 2889",
    title="LAN switching devices (RFC 2889)",
    subtests=(
        _forwarding(
            "full-mesh", "5.1", "Full mesh",
            "Every port sends to every other one in turn: throughput of a port, forwarding rates "
            "of all.", declaration.full_mesh, "mesh_", 3,
        ),
        _forwarding(
            "partial-mesh", "5.2", "One to many, many to one",
            "Many ports to one, one to many, and both.", declaration.one_to_many, "partial_", 3,
        ),
        _forwarding(
            "uplink", "5.3", "Two devices and their uplink",
            "The first half of the ports is on one device, the second on the other; all traffic "
            "crosses the uplink (local traffic off).", declaration.across_uplink, "uplink_", 4, 2,
        ),
        _forwarding(
            "half-mesh", "5.4", "Half of the ports to the other half",
            "One direction, and both.", declaration.halves, "half_", 4, 2,
        ),
        Subtest(
            "congestion-control", "5.5", "Congestion control",
            "Groups of four ports: one source sends half to each receiver, one all to the "
            "congested receiver, at the max load.",
            declaration.groups_of_four, fixed("trial_s"), _congestion_rows, CONGESTION_VALUES,
            ports_min=4, ports_step=4,
        ),
        _forwarding(
            "max-forwarding-rate", "5.6", "Maximum forwarding rate",
            "One port of each pair sends to the other.", declaration.one_way_pairs, "forwarding_",
        ),
        Subtest(
            "learning-rate", "5.8", "Address learning rate",
            "As address-capacity, with learning_addresses addresses that no other trial has, at "
            "the rate that is searched; its result is confirmed by one more trial at the end.",
            declaration.one_to_one, search_learning_rate, learning_rate_rows,
            (
                Value("address_learning_rate", "learning rate", "frames/s",
                      "The highest at which all addresses were learned"),
                Value("upper_bound_rate", "upper bound", "frames/s",
                      "The lowest at which frames were flooded or lost; none: no rate",
                      better=NEITHER, of_setting=True),
                Value("addresses", "addresses", "", "Of each trial", "count", NEITHER,
                      of_setting=True),
                Value("learning_trials", "trials", "", "Of the search", "count", NEITHER,
                      of_setting=True),
            ),
            quantity="rate", ports_min=3, bad=not_learned, no_result=capped,
            range=lambda point: LoadRange(
                point.parameters.learning_fps_max / LEARNING_RANGE,
                point.parameters.learning_fps_max, "frames/s",
            ),
            keys=ADDRESS_KEYS, frame_options={"addresses": 2},
        ),
        Subtest(
            "address-capacity", "5.7", "Address caching capacity",
            "One port announces addresses, another sends one frame to each; the largest number of "
            "which all come to the first port, and none to a third one, found exact to one. The "
            "first number that fails is tried at twice learning_fps, too: where it holds, the "
            "device forgets addresses, or learns them too late.",
            declaration.one_to_one, search_addresses, address_rows,
            (
                Value("address_capacity", "capacity", "addresses",
                      "Addresses announced without flooding and loss, and one of each other port; "
                      "none where more than addresses_max fit",
                      "count"),
                Value("learned", "announced", "addresses",
                      "The largest number of announced addresses without flooding and loss",
                      "count", NEITHER, of_setting=True),
                Value("learning_rate", "learning rate", "frames/s",
                      "At which addresses were announced", better=NEITHER, of_setting=True),
            ),
            quantity="addresses", ports_min=3, bad=not_learned, no_result=capped,
            range=lambda point: LoadRange(1, point.parameters.addresses_max, "addresses"),
            keys=ADDRESS_KEYS, frame_options={"addresses": 2},
        ),
        Subtest(
            "errored-frames", "5.9", "Errored frames filtering",
            "Frames that are too short (36 and 63 bytes) and, where the ports' MTU allows them, "
            "too long: none is to be forwarded. Only where it is named: a NIC pads short frames, "
            "and says so.",
            declaration.one_way_pairs, _errored_sizes, _errored_rows,
            (
                Value("errored_size", "errored size", "bytes", "Below 64 or above 1518", "count",
                      NEITHER, of_setting=True),
                Value("errored_offered", "sent", "frames", "That were sent; none: the ports' MTU "
                      "does not allow the size", "count", NEITHER, of_setting=True),
                Value("errored_forwarded", "forwarded", "frames", "That came to any port", "count",
                      LESS),
                Value("errored_filtered", "filtered", "yes 1, no 0", "Pass: none was forwarded",
                      "count"),
            ),
            quantity="size", by_name=True,
            keys={"frame_sizes": [64], "loads": [Load(percent=ADDRESS_LOAD_PERCENT)]},
        ),
        _forwarding(
            "broadcast-throughput", "5.10", "Broadcast frame forwarding",
            "One port sends to the broadcast address; every other port is to get every frame.",
            declaration.one_to_all, "broadcast_", 3,
            frame_options={"destination": "broadcast"},
        ),
        Subtest(
            "broadcast-latency", "5.10", "Broadcast frame latency",
            f"One broadcast frame per trial; of all other ports. {LATENCY_DEFINITION}.",
            declaration.one_to_all, _one_frame,
            lambda measured: [latency_row(measured, "broadcast_latency")],
            (*latency_values(LATENCY_DEFINITION, "broadcast_latency"), LATENCY_TRIALS),
            quantity="burst", ports_min=3,
            keys={"traffic": "burst", "latency": {"one_way": "on"}},
            frame_options={"destination": "broadcast"},
        ),
    ),
    sizes=SIZES,
    parameters=SuiteParameters(trial_s=30.0),
    lab=SuiteParameters(
        trial_s=2.0, initial_s=0.5, repeats=2, addresses_max=4096, learning_fps=2000,
        latency_repeats=3, drain_s=0.3, learning_fps_max=8000,
    ),
    lab_sizes=(256, 1518),
    uses=(
        "trial_s", "initial_s", "width", "repeats", "addresses_max", "learning_fps",
        "learning_addresses", "learning_fps_max", "learning_width", "ageing_s",
        "latency_repeats", "drain_s",
    ),
    refused={
        "forward-pressure": "not possible on ordinary NICs: the test needs an interframe gap of "
        "88 bits, and \"the interframe gap [...] less than 96 bits\" (RFC 2889, 5.6) is below what "
        "a NIC's MAC sends",
        "dribble-bits": "not possible on ordinary NICs: a MAC sends whole bytes (RFC 2889, 5.9)",
        "fcs-errors": "not possible on ordinary ports: the MAC writes the frame check sequence "
        "(RFC 2889, 5.9)",
    },
    statements=STATEMENTS,
    deviations=(
        "Traffic has a constant interval: a burst size of 1 frame (5.1.2).",
        "One address per port, but in address-capacity and learning-rate.",
        "learning-rate does not wait for the device to forget between trials: each has addresses "
        "of its own, so the device has to hold those of about 20 trials.",
        "Flooded frames are counted of all ports together, not of each (5.7.5, 5.8.5).",
        "A lost frame counts as one that was flooded, in address-capacity and learning-rate; a "
        "trial that fails is measured once more.",
        "address-capacity doubles, then halves the interval; it does not wait for the device to "
        "forget between trials, as all trials announce the same addresses in the same order.",
        "FRMOL and MFR are read from the trials of the throughput search; the trial at the max "
        "load has the initial duration where the search does not come back to it.",
        "A forwarding rate counts frames that arrive in the window, at most as many as are sent in "
        "it: a device may have held earlier ones until then.",
        "A flow's frames are spread over its port's destinations in turn, in the order of flows.",
        LATE_SENDERS,
    ),
)  # fmt: skip
