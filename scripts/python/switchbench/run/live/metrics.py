# SPDX-License-Identifier: BSD-3-Clause
"""Prometheus metrics of a run in progress (doc/how-to/live.md), made at each request.

Names follow Prometheus' conventions: base units (bytes, seconds), `_total` where a value only
grows. The server has threads of its own, which read the state and never wait for the controller.
"""

from __future__ import annotations

import platform
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Protocol

from prometheus_client import CollectorRegistry, start_http_server
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    InfoMetricFamily,
    Metric,
    StateSetMetricFamily,
)
from prometheus_client.registry import Collector

from ... import __version__
from ...base.errors import ConfigurationError
from ...records.summary_form import KINDS
from .state import STEPS, PortState, RunState, pattern_words


class Shown(Protocol):
    """Protocol of objects that show a run: its id and its state."""

    run_id: str  # id of the run, as in its results
    state: RunState


_PORT_MOST = 65535
_ANY = "0.0.0.0"


def parse_address(text: str) -> tuple[str, int]:
    """Return the host and port in `:PORT`, `HOST:PORT` or `[IPv6]:PORT`."""
    found = re.fullmatch(r"(?:\[(.+)\]|([^:\[\]]*)):([0-9]{1,5})", text)
    if found is None or int(found[3]) > _PORT_MOST:
        raise ConfigurationError(
            f"--metrics {text}: not an address with a port (0 to {_PORT_MOST}): for example :9469, "
            "127.0.0.1:9469 or [::1]:9469"
        )
    return found[1] or found[2] or _ANY, int(found[3])


@contextmanager
def served(host: str, port: int, shown: Shown) -> Iterator[str]:
    """Serve metrics by HTTP; yield the URL. ConfigurationError where the port is in use."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(StateCollector(shown))
    place = f"[{host}]" if ":" in host else host
    try:
        server, thread = start_http_server(port, host, registry=registry)
    except (OSError, UnicodeError) as error:  # UnicodeError: not a valid host name
        why = getattr(error, "strerror", None) or error
        raise ConfigurationError(
            f"--metrics {place}:{port}: {why}; give another address, or port 0 for a free port"
        ) from error
    try:
        yield f"http://{place}:{server.server_port}/metrics"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


# Metrics: name without `switchbench_port_` or `switchbench_run_`, help text, and value or None.
_Figures = tuple[tuple[str, str, float | None], ...]
_GROWS = re.compile(r"(expected|lost)_frames|completed_phases|events")  # values that never shrink


def _bytes(bps: float | None) -> float | None:
    return None if bps is None else bps / 8


def _of_port(port: PortState) -> _Figures:
    return (
        ("offered_bytes_per_second", "Payload that the port sends.", _bytes(port.offered_bps)),
        ("delivered_bytes_per_second", "Payload that arrives at the port without errors.",
         _bytes(port.delivered_bps)),
        ("delivered_line_bytes_per_second",
         "Delivered rate on the line (dpdk and udp: layer 1; tcp and verbs: payload).",
         _bytes(port.delivered_line_bps)),
        ("suspected", "1: a fault is suspected at the port; 0: none is.", int(bool(port.suspect))),
        ("line_rate_bytes_per_second", "Line rate of the port (layer 1).",
         _bytes(port.line_bps or None)),
        ("phase", "Phase in which the port takes part, from 0; absent while the port is idle.",
         port.phase if port.step else None),
        ("expected_frames", "Frames that were sent to the port, in all phases that have ended.",
         port.sent),
        ("lost_frames", "Frames to the port that did not arrive, in all phases that have ended.",
         port.lost),
    )  # fmt: skip


def _of_run(state: RunState) -> _Figures:
    trial, (lost, sent) = state.trial, state.lost
    return (
        ("trial", "Number of the running trial, from 1; 0 before the first.", state.trial_number),
        ("trials", "Trials of the run, optional repeats included.",
         len(state.run.trials)),
        ("repeat", "Repeat of the running trial, from 0.", trial.repeat if trial else None),
        ("phase", "Number of the running phase, from 0.", state.phase if trial else None),
        ("phases", "Phases of all trials, optional repeats excluded.", state.total_phases),
        ("nodes", "Node processes of the run.", len(state.run.site.processes)),
        ("elapsed_seconds", "Time since the command began.", state.elapsed_s),
        ("remaining_seconds", "Expected time until the run ends.", state.left_s),
        ("offered_bytes_per_second", "Payload that all ports send.", state.offered_bps / 8),
        ("delivered_bytes_per_second", "Payload that arrives at all ports without errors.",
         state.delivered_bps / 8),
        ("completed_phases", "Phases that have ended on all nodes.", state.phases_done),
        ("expected_frames", "Frames that were sent in all phases that have ended.", sent),
        ("lost_frames", "Frames that did not arrive, in all phases that have ended.", lost),
        ("events", "Events so far, such as a link that went down.",
         state.event_count),
    )  # fmt: skip


def _families(
    what: str, labels: Sequence[str], figures: Mapping[tuple[str, ...], _Figures]
) -> Iterator[Metric]:
    """Yield one Prometheus metric per name, with a sample per label set; skip unknown values."""
    found: dict[str, CounterMetricFamily | GaugeMetricFamily] = {}
    for names, rows in figures.items():
        for name, text, value in rows:
            kind = CounterMetricFamily if _GROWS.fullmatch(name) else GaugeMetricFamily
            full = f"switchbench_{what}_{name}"
            family = found.get(name) or found.setdefault(name, kind(full, text, labels=labels))
            if value is not None:
                family.add_metric(names, value)
    yield from found.values()


class StateCollector(Collector):
    """Prometheus collector that makes metrics of a run's state at each scrape."""

    def __init__(self, shown: Shown) -> None:
        """Store the object that has the run's state."""
        self._shown = shown

    def collect(self) -> Iterator[Metric]:
        """Yield all metrics of the build, the run and its ports."""
        state, site = self._shown.state, self._shown.state.run.site
        build = {"version": __version__, "python_version": platform.python_version()}
        yield InfoMetricFamily("switchbench_build", "Versions of Switchbench and Python.", build)
        run = {"run": self._shown.run_id, "launch": site.launch, "lab": site.lab or ""}
        yield InfoMetricFamily("switchbench_run", "Id, launcher and lab of the run.", run)
        if (trial := state.trial) is not None:
            about = {"pattern": pattern_words(trial), "transport": trial.transport}
            yield InfoMetricFamily("switchbench_trial", "Running trial.", about)
        step = StateSetMetricFamily("switchbench_step", "Step of the running phase.", labels=())
        step.add_metric((), {name: name == state.step for name in STEPS})
        yield step
        found = GaugeMetricFamily(
            "switchbench_findings", "Number of findings so far, by kind.", labels=("kind",)
        )
        kinds = Counter[str](finding["kind"] for finding in state.findings)
        for kind in KINDS:
            found.add_metric((kind,), kinds[kind])
        yield found
        yield from _families("run", (), {(): _of_run(state)})
        ports: dict[tuple[str, ...], _Figures] = {
            (port.name, port.node, port.network): _of_port(port) for port in state.ports.values()
        }
        yield from _families("port", ("port", "node", "network"), ports)
