# SPDX-License-Identifier: BSD-3-Clause
"""What the repeats of one point of a test share: ports, pattern, sizes, parameters."""

from __future__ import annotations

import json
from typing import Any, cast

from ..base import timing, transports
from ..base.errors import ConfigurationError
from ..base.model import SCHEDULE, Part, Pattern, Repeats
from ..config import CheckedConfiguration
from ..config.flow_file import FlowLine
from ..config.kinds import Strict
from ..config.members import FlowError, Members
from ..config.point import Point, place
from ..config.rules import PARAMETERS
from ..config.schema import BurstOptions
from ..config.settings import carries_messages, written_key
from ..config.steps import KERNELS, LOCAL, SIZELESS
from .engine import PlanRefused, PlanSize, plan_size

NS = 1e9

# Configuration words that a node's documents call otherwise.
NODE_WORDS = {
    "udp_sources_per_flow": "udp_sources",
    "streams_per_flow": "streams",
    "problem_class": "class",
}
_FRAME_OVERHEAD = 18  # Ethernet header 14 and FCS 4: what a frame has beyond the MTU
_CHECK_MTU_UNKNOWN = 10_000
_CHECK_BYTES = 64
STEP_WARMUP = 1  # of what goes by steps: batches before those that count
_STEPS_TOLD = ("sync", "compute", "batch")  # which of their settings tell trials apart
ROUNDS = 8  # a window has at least so many round trips at line rate
_TURN_S = 200e-6  # of a message besides its bytes, for what a trial should take
# Parameters that say where and when, not which flows.
_NOT_FLOWS = ("sync",)
_UNSAID = ("directions", "rotate", "load_of")  # where they are as the pattern has them by default


class Draft:
    """One point of a test, as all its repeats have it."""

    def __init__(self, reading: CheckedConfiguration, number: int, point: Point) -> None:
        self.number = number
        self.reading = reading
        self.document = reading.document
        self.site = reading.site
        self.point = point
        self.values = point.values
        self.transport = point.test.transport
        self.carrier = transports.of(self.transport)
        self.parts = tuple(self._part(network) for network in point.test.networks)
        self.pattern = self._pattern()

    @property
    def options(self) -> Strict:
        """Those of its transport."""
        found: Strict = getattr(self.values, self.transport)
        return found

    def problem(self, key: str, text: str) -> ConfigurationError:
        """The error at a setting of this point."""
        return self.document.problem(place(self.point, key, self.document), text)

    @property
    def repeats(self) -> Repeats:
        """How often it is run."""
        return self.values.repeat

    @property
    def matrix(self) -> str:
        """What transports can be compared on: not sizes, loads and their own options."""
        flows = {key: value for key, value in self.pattern.items() if key != "bytes"}
        ranks = [[port.name for port in part.ranks] for part in self.parts]
        return json.dumps([flows, ranks, self.values.seed, self.values.traffic])

    @property
    def bound(self) -> bool:
        """Whether its ports have to leave their kernel driver (`bind`)."""
        ports = (port for part in self.parts for port in part.ranks)
        binds = self.carrier.raw and "bind" in self.site.effective
        return binds and any("pci" in port.engine for port in ports)

    @property
    def by_steps(self) -> bool:
        """Whether ranks go on by themselves, without barriers."""
        return self.values.traffic == SCHEDULE

    def of_messages(self) -> bool:
        return carries_messages(self.transport, self.values.traffic)

    def draws_partners(self) -> bool:
        return self.values.scatter is not None and self.values.scatter.partners == "random"

    def round_s(self, size: int) -> float:
        """A message there and back, at line rate and alone."""
        rates_bps = [port.line_rate_bps for part in self.parts for port in part.ranks]
        line_bps = min(rates_bps) or timing.UNKNOWN_LINE_BPS
        return 2 * 8 * size / line_bps + 2 * _TURN_S

    def repetition_s(self) -> float:
        """One repetition by steps, at line rate and without computing: about so long."""
        size, ranks = self.size(self.parts[0]), len(self.parts[0].ranks)
        if size.share is None:
            return 0.0
        each_bytes = size.share.payload_bytes // (size.phases * ranks)
        return size.share.steps * _TURN_S + self.round_s(each_bytes) / 2

    def window_ns(self) -> int:
        """The window; of long messages one that is long enough."""
        window_ns = self.values.window or 0
        if self.values.traffic != "pingpong":
            return window_ns
        return max(window_ns, round(NS * ROUNDS * self.round_s(max(self.point.sizes))))

    def pingpong_drain_ns(self) -> int:
        """Return how long a phase of messages there and back may take to end."""
        each = ((self.size(part), len(part.ranks)) for part in self.parts)
        # Flows that a port has in flight at once, sent and received, share its line.
        sharing = max(max(1.0, 2 * size.flows / size.phases / ranks) for size, ranks in each)
        timeout_ns = round(NS * ROUNDS * self.round_s(max(self.point.sizes)) * sharing)
        return max(self.values.drain_max, self.values.drain_timeout + timeout_ns)

    def check_sizes(self) -> tuple[int, ...]:
        """Return the messages of the connectivity check of a byte stream; none: those of the load.

        One per flow fills a segment, jumbo or not; whole messages of many flows on a slow line
        would take minutes.
        """
        if not self.carrier.byte_stream or self.by_steps or not self.values.connectivity_check:
            return ()
        frames = [port.frame_max for part in self.parts for port in part.ranks]
        mtu = max(frames) - _FRAME_OVERHEAD if all(frames) else _CHECK_MTU_UNKNOWN
        first = min(mtu, max(self.point.sizes))
        return (first, *[min(_CHECK_BYTES, first)] * 2)

    def size(self, part: Part) -> PlanSize:
        """The plan's size; the pattern's refusal gets its place in the file."""
        try:
            return plan_size(len(part.ranks), self.pattern, self.values.seed)
        except PlanRefused as error:
            key = "flows" if self.point.pattern == "flows" else "pattern"
            raise self.problem(key, str(error)) from None

    def _part(self, network: str) -> Part:
        ports = self.site.networks[network]
        count = self.point.ranks
        if len(ports) < 2:
            raise self.problem(
                "network", f"network {network} has 1 port, {ports[0].name}: a pattern needs 2 ranks"
            )
        if count is not None and count > len(ports):
            raise self.problem(
                "ranks", f"{count} ranks are more than the {len(ports)} ports of network {network}"
            )
        return Part(network, ports[:count])

    def _pattern(self) -> Pattern:
        """The `trial` document's pattern, the same for every part."""
        found = [self._pattern_of(part) for part in self.parts]
        for part, pattern in zip(self.parts, found, strict=True):
            if pattern != found[0]:
                raise self.problem(
                    "concurrent_networks",
                    f"{self.parts[0].network} and {part.network} number their ranks differently "
                    "for these names: test them one after the other",
                )
        return found[0]

    def _pattern_of(self, part: Part) -> Pattern:
        pattern: dict[str, Any] = {"name": self.point.pattern}
        pattern |= {
            NODE_WORDS.get(key, key): value
            for key, value in self._told().items()
            if key not in _NOT_FLOWS
        }
        members = Members(self.site, part.network, part.ranks)
        if self.point.pattern == "flows":
            pattern.pop("flows", None)
            pattern |= self._flows(members)
        for key, number in (("groups", members.groups), ("partners", members.pairs)):
            if isinstance(pattern.get(key), tuple):
                try:
                    pattern[key] = number(pattern[key])
                except ValueError as error:
                    raise self.problem(key, str(error)) from None
        if self.values.traffic == "pingpong" and not self.draws_partners():
            pattern["round_trip"] = True
        if isinstance(pattern.get("partners"), list):
            pattern["list"] = pattern.pop("partners")
            pattern["partners"] = "list"
        if "groups" in pattern:
            pattern["groups"] = [{"ranks": ranks} for ranks in pattern["groups"]]
        return cast("Pattern", pattern | (self._of_steps() if self.by_steps else {}))

    def _told(self) -> dict[str, object]:
        """The pattern's parameters that have a value, without those that need no word, being as
        always."""
        usual = PARAMETERS[self.point.pattern]
        found = {key: getattr(self.values, key) for key in usual}
        unsaid = _UNSAID if self.point.pattern != "ring" else ()
        return {
            key: value
            for key, value in found.items()
            if value is not None and not (key in unsaid and value == usual[key])
        }

    def _flows(self, members: Members) -> dict[str, object]:
        """The list of a pattern of flows, by rank numbers, and their shares where any has one."""
        listed = self.values.flows
        if listed is None or isinstance(listed, str):
            raise self.problem(
                "flows", "flows is missing: a list, [[source, destination], ...], or a file of them"
            )
        flows = [item.flow if isinstance(item, FlowLine) else item for item in listed]
        try:
            shares = members.flows(flows)
        except FlowError as error:
            item = listed[error.number]
            where = place(self.point, "flows", self.document)
            if isinstance(item, FlowLine):
                raise self.document.problem(where, f"{item.place}: {error}") from None
            raise self.document.problem((*where, error.number), str(error)) from None
        words: dict[str, object] = {"list": [rank for flow in shares for rank in flow]}
        if any(share is not None for share in shares.values()):
            words["shares"] = [round((share or 0.0) * 1e7) for share in shares.values()]
        return words

    def _of_steps(self) -> dict[str, object]:
        """What a pattern that goes by steps is told besides its flows."""
        kernel = self.point.pattern in KERNELS and self.point.pattern in SIZELESS
        keys: dict[str, object] = {} if kernel else {"bytes": self.point.sizes[0]}
        if self.values.sync == LOCAL:
            keys["local"] = True
        return keys

    def parameters(self) -> dict[str, object]:
        """The parameters by names, and what the sweep chose: what tells trials apart."""
        values = self.values
        if values.subtest is not None:
            named = {"subtest": values.subtest, "variant": values.variant}
            return named | {**self.point.swept}
        told = self._told()
        if self.by_steps:
            steps = {key: getattr(values, key) for key in _STEPS_TOLD}
            told |= {key: value for key, value in steps.items() if value is not None}
        if values.scatter is not None:
            told["scatter"] = values.scatter
        if values.burst is not None:
            usual = BurstOptions().in_effect()
            told |= {
                f"burst.{key}": value
                for key, value in values.burst.in_effect().items()
                if key == "frames" or value != usual[key]
            }
        told |= self.point.swept
        return {key: _plain(written_key(key, value)) for key, value in told.items()}


def _plain(value: Any) -> Any:
    """A value as JSON has it: lists for tuples."""
    return json.loads(json.dumps(value))
