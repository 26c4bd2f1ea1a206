# SPDX-License-Identifier: BSD-3-Clause
"""Metrics for Prometheus while a run lasts (doc/how-to/live.md), made of the state when asked for.

Names follow Prometheus' conventions: base units (bytes, seconds), `_total` where a value only
grows. The server has threads of its own; they read the state and never wait for the controller.
"""

from __future__ import annotations

import platform
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, Self

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
from .state import STEPS, RunState, pattern_words


class Shown(Protocol):
    """A run that is shown."""

    run_id: str  # as in its results
    state: RunState


_EXAMPLES = "for example :9469, 127.0.0.1:9469 or [::1]:9469"
_PORT_MOST = 65535
_ANY = "0.0.0.0"


@dataclass(frozen=True)
class Address:
    """Where metrics are offered. Port 0: a free one."""

    host: str
    port: int

    @classmethod
    def parse(cls, text: str) -> Address:
        """`:PORT`, `HOST:PORT` or `[IPv6]:PORT`."""
        host, colon, port = text.rpartition(":")
        if not colon or not port.isascii() or not port.isdigit() or int(port) > _PORT_MOST:
            raise ConfigurationError(
                f"--metrics {text}: not an address with a port (0 to {_PORT_MOST}): {_EXAMPLES}"
            )
        bracketed = host.startswith("[") and host.endswith("]")
        if not bracketed and (":" in host or "[" in host or "]" in host):
            raise ConfigurationError(
                f"--metrics {text}: an IPv6 address goes in brackets: {_EXAMPLES}"
            )
        return cls(host[1:-1] if bracketed else host or _ANY, int(port))

    def __str__(self) -> str:
        """Return it as in a URL."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


class Metrics:
    """The server; while entered it answers."""

    def __init__(self, address: Address, shown: Shown) -> None:
        """Take the port, or refuse: nothing else has begun yet."""
        registry = CollectorRegistry(auto_describe=False)
        registry.register(StateCollector(shown))
        try:
            self._server, self._thread = start_http_server(
                address.port, address.host, registry=registry
            )
        except OSError as error:
            raise ConfigurationError(
                f"--metrics {address}: {error.strerror or error}; name another port, or 0 for a "
                "free one"
            ) from error
        except UnicodeError:
            raise ConfigurationError(f"--metrics {address}: that is no name of a host") from None
        self.address = Address(address.host, self._server.server_port)

    def __str__(self) -> str:
        """Return the URL."""
        return f"http://{self.address}/metrics"

    def __enter__(self) -> Self:
        """Return it."""
        return self

    def __exit__(self, *_: object) -> None:
        """Stop the server."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


@dataclass(frozen=True)
class _Figure:
    """A value of each port, or of the whole run. None: there is none now."""

    name: str  # without `_total`
    text: str
    value: Callable[[Any], float | None]
    counter: bool = False

    def family(self, of: Mapping[tuple[str, ...], object], labels: Sequence[str] = ()) -> Metric:
        """Return the metric of all that have a value, by the values of its labels."""
        kind = CounterMetricFamily if self.counter else GaugeMetricFamily
        family = kind(self.name, self.text, labels=labels)
        for names, one in of.items():
            if (value := self.value(one)) is not None:
                family.add_metric(names, value)
        return family


def _bytes(bps: float | None) -> float | None:
    return None if bps is None else bps / 8


_PORTS = (
    _Figure("switchbench_port_offered_bytes_per_second",
                "Payload that the port sends.", lambda port: _bytes(port.offered_bps)),
    _Figure("switchbench_port_delivered_bytes_per_second",
                "Payload that arrives at the port and is right.",
                lambda port: _bytes(port.delivered_bps)),
    _Figure("switchbench_port_delivered_line_bytes_per_second",
                "The same as the line carries it (dpdk and udp: layer 1; tcp and verbs: payload).",
                lambda port: _bytes(port.delivered_line_bps)),
    _Figure("switchbench_port_suspected",
                "1: a fault is suspected at the port; 0: none is.",
                lambda port: 1 if port.suspect else 0),
    _Figure("switchbench_port_line_rate_bytes_per_second",
                "Line rate of the port (layer 1).", lambda port: _bytes(port.line_bps or None)),
    _Figure("switchbench_port_phase",
                "Phase in which the port takes part, from 0; absent: it is idle.",
                lambda port: port.phase if port.step else None),
    _Figure("switchbench_port_expected_frames",
                "Frames that were sent to the port, in all phases that have ended.",
                lambda port: port.sent, counter=True),
    _Figure("switchbench_port_lost_frames",
                "Of these, frames that did not arrive.", lambda port: port.lost, counter=True),
)  # fmt: skip

_RUN = (
    _Figure("switchbench_run_trial",
               "Number of the trial that runs, from 1; 0: none has begun.",
               lambda state: state.trial_number),
    _Figure("switchbench_run_trials", "Trials of the run, with repeats that may not be needed.",
               lambda state: len(state.run.trials)),
    _Figure("switchbench_run_repeat", "Repeat of the trial that runs, from 0.",
               lambda state: state.trial.repeat if state.trial else None),
    _Figure("switchbench_run_phase", "Phase that runs, from 0.",
               lambda state: state.phase if state.trial else None),
    _Figure("switchbench_run_phases", "Phases of all trials that will be run in any case.",
               lambda state: state.total_phases),
    _Figure("switchbench_run_nodes", "Node processes of the run.",
               lambda state: len(state.run.site.processes)),
    _Figure("switchbench_run_elapsed_seconds", "Time since the command began.",
               lambda state: state.elapsed_s),
    _Figure("switchbench_run_remaining_seconds", "Time that the rest should take.",
               lambda state: state.left_s),
    _Figure("switchbench_run_offered_bytes_per_second", "Payload that all ports send.",
               lambda state: state.offered_bps / 8),
    _Figure("switchbench_run_delivered_bytes_per_second",
               "Payload that arrives at all ports and is right.",
               lambda state: state.delivered_bps / 8),
    _Figure("switchbench_run_completed_phases", "Phases that have ended on all nodes.",
               lambda state: state.phases_done, counter=True),
    _Figure("switchbench_run_expected_frames",
               "Frames that were sent in all phases that have ended.",
               lambda state: state.lost[1], counter=True),
    _Figure("switchbench_run_lost_frames", "Of these, frames that did not arrive.",
               lambda state: state.lost[0], counter=True),
    _Figure("switchbench_run_events",
               "What happened: a phase that lost frames, a link that went down.",
               lambda state: state.event_count, counter=True),
)  # fmt: skip


class StateCollector(Collector):
    """Makes metrics of what is shown, at each scrape anew."""

    def __init__(self, shown: Shown) -> None:
        """Ask nothing yet."""
        self._shown = shown

    def collect(self) -> Iterator[Metric]:
        """Yield all of them."""
        state = self._shown.state
        yield from _infos(state, self._shown.run_id)
        yield _findings(state)
        yield from (figure.family({(): state}) for figure in _RUN)
        every = state.ports.values()
        ports: dict[tuple[str, ...], object] = {(p.name, p.node, p.network): p for p in every}
        yield from (figure.family(ports, ("port", "node", "network")) for figure in _PORTS)


def _infos(state: RunState, run_id: str) -> Iterator[Metric]:
    site = state.run.site
    build = {"version": __version__, "python_version": platform.python_version()}
    yield InfoMetricFamily("switchbench_build", "What makes these metrics.", build)
    run = {"run": run_id, "launch": site.launch, "lab": site.lab or ""}
    yield InfoMetricFamily("switchbench_run", "The run.", run)
    trial = state.trial
    if trial is not None:
        about = {"pattern": pattern_words(trial), "transport": trial.transport}
        yield InfoMetricFamily("switchbench_trial", "The trial that runs.", about)
    step = StateSetMetricFamily("switchbench_step", "Where the phase is.", labels=())
    step.add_metric((), {name: name == state.step for name in STEPS})
    yield step


def _findings(state: RunState) -> Metric:
    found = GaugeMetricFamily(
        "switchbench_findings", "What was found so far, by kind.", labels=("kind",)
    )
    kinds = Counter[str](finding["kind"] for finding in state.findings)
    for kind in KINDS:
        found.add_metric((kind,), kinds[kind])
    return found
