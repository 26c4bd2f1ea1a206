# SPDX-License-Identifier: BSD-3-Clause
"""The whole summary, and its parts that belong to no trial: run, clauses, location, findings."""

from __future__ import annotations

from typing import Annotated, Any, Literal, NotRequired, get_args

from pydantic import ConfigDict, Field
from typing_extensions import TypedDict

from .series import ComparisonEntry, Messages, SearchEntry, StatisticEntry, Steps, SuiteEntry
from .trials import Count, Free, Moment, Outcome, PhaseEntry, PlanEntry, PortEntry, Sha256


class LeftOut(TypedDict):
    """A host that the run went on without.

    host: Its name
    reason: A sentence, with the remedy
    """

    host: str
    reason: str


class MachineEntry(TypedDict):
    """The controller's machine.

    host: Name
    system: Kernel and architecture
    cpus: Usable
    cpu: Model
    memory_bytes: Installed
    """

    host: str
    system: str
    cpus: int
    cpu: str | None
    memory_bytes: int | None


class SwitchEntry(TypedDict):
    """A switch under test.

    name: In the network
    vendor: Who makes it
    model: As its label says
    serial: Its number
    firmware: Its version
    options: Licences, mode, settings that matter
    """

    name: NotRequired[str]
    vendor: NotRequired[str]
    model: NotRequired[str]
    serial: NotRequired[str]
    firmware: NotRequired[str]
    options: NotRequired[str]


class AboutEntry(TypedDict):
    """What was tested, and for whom, as the configuration says.

    switches: The switches under test
    cables: And optics: kind, length, who made them
    nics: Of the hosts
    place: Where
    contract: Which
    customer: Who accepts
    supplier: Who delivers the switch
    tester: Who measured
    remarks: Anything else
    """

    switches: NotRequired[list[SwitchEntry]]
    cables: NotRequired[str]
    nics: NotRequired[str]
    place: NotRequired[str]
    contract: NotRequired[str]
    customer: NotRequired[str]
    supplier: NotRequired[str]
    tester: NotRequired[str]
    remarks: NotRequired[str]


class NodeEntry(TypedDict):
    """A process of the engine.

    node: Its name
    host: Its machine's name
    version: Of the engine
    protocol: Of documents and records
    cpus: Of its machine
    workers: Threads that send and receive
    worker: sleep or poll: between bursts
    cores: Which they are tied to, in order; null: to none
    """

    node: str
    host: str | None
    version: str | None
    protocol: int | None
    cpus: int | None
    workers: int | None
    worker: str | None
    cores: list[int] | None


class BegunRun(TypedDict):
    """What is known of a run without its nodes.

    id: In the records' and nodes' words
    started: UTC
    elapsed_s: Of the run, lab included; null: it has not ended
    command: Repeats the run, in its own directory's parent
    launch: lab, ssh, slurm, command or hand
    lab: Its topology
    excluded_hosts: Hosts that could not take part, and that the run went on without
        (on_missing: exclude)
    versions: Of the command, the engine, Python and the kernel
    machine: The controller's machine
    remeasured_phases: Measured again because the tester had limited them (remeasure); what was
        measured first is in superseded/
    about: What was tested, and for whom, as the configuration says
    """

    id: str
    started: Moment
    elapsed_s: float | None
    command: list[str]
    launch: str
    lab: str | None
    excluded_hosts: NotRequired[list[LeftOut]]
    versions: dict[str, str | None]
    machine: MachineEntry
    remeasured_phases: NotRequired[Annotated[int, Field(ge=1)]]
    about: NotRequired[AboutEntry]


class RunEntry(BegunRun):
    """What was run, where and with what.

    seed: Of everything random
    nodes: Processes of the engine
    """

    seed: int
    nodes: list[NodeEntry]


class ValueLocationEntry(TypedDict):
    """Where a value was seen.

    trial: As in trials
    repeat: As in trials
    pattern: Its name
    network: Of the phase
    phase: Its number, as in trials
    src: Over flow: its source
    dst: Over flow: its destination
    port: Over port: its name
    """

    trial: int | None
    repeat: int | None
    pattern: str | None
    network: str | None
    phase: int | None
    src: str | None
    dst: str | None
    port: str | None


class FailureEntry(TypedDict):
    """A value for which the clause does not hold.

    value: As seen
    margin: As the clause's
    of: What it is of
    at: Where the value was measured
    """

    value: float
    margin: float
    of: str
    at: ValueLocationEntry | None


class StatedClause(TypedDict):
    """A clause of `expect`.

    id: As stated
    clause: Its wording in contract or standard, as stated
    source: Where the wording stands: contract or standard, and section
    where: As stated
    measure: As stated
    over: As stated
    require: As stated
    """

    id: Any
    clause: str | None
    source: NotRequired[str | None]
    where: Free | None
    measure: str
    over: str | None
    require: Any


class ClauseEntry(StatedClause):
    """A clause of `expect` and its verdict.

    limit: The number that is required
    unit: Of limit, value and margin
    verdict: What the clause was judged to be
    judged: Values looked at
    failed: Values for which it does not hold
    unobserved: Values that could not be observed
    limited: Values of tester-limited phases: they neither hold nor fail
    trials: How many it is about, repeats included
    trials_measured: How many of those were measured
    value: The worst of the valid values
    margin: From the limit to the worst value; below 0 on the wrong side
    margin_percent: The margin in percent of the limit; null: the limit is 0
    of: What the worst value is of
    at: Where the worst value was measured
    failures: Values for which it does not hold, the worst first, 20 at most
    reason: Why it is INCONCLUSIVE; of one that fails on the network: what is suspected
    """

    limit: NotRequired[float]
    unit: NotRequired[str]
    verdict: Outcome
    judged: int
    failed: int
    unobserved: NotRequired[int]
    limited: NotRequired[int]
    trials: NotRequired[int]
    trials_measured: NotRequired[int]
    value: float | None
    margin: NotRequired[float | None]
    margin_percent: NotRequired[float | None]
    of: str | None
    at: NotRequired[ValueLocationEntry | None]
    failures: NotRequired[list[FailureEntry]]
    reason: str | None


class VerdictEntry(TypedDict):
    """Of all clauses together; null: there are none.

    verdict: FAIL: a clause failed; INCONCLUSIVE: none did, but one is INCONCLUSIVE, or the run
        is not complete
    sentence: For people, with what was tested
    scope: What the verdict does not say
    passed: Clauses that hold
    failed: Clauses that do not hold
    inconclusive: Clauses that could not be judged
    warnings: What it has to be read with, a sentence each: in what tests are less than profile
        acceptance asks, hosts that were left out
    clauses_sha256: SHA-256 of the clauses in canonical form (clauses.json)
    """

    verdict: Outcome
    sentence: str
    scope: str
    passed: int
    failed: int
    inconclusive: int
    warnings: list[str]
    clauses_sha256: Sha256


FaultKind = Literal[
    "loss",
    "capacity",
    "size",
    "dead",
    "intermittent",
    "duplication",
    "reordering",
    "corruption",
    "flooding",
    "wrong-port",
    "burst",
]


ElementKind = Literal[
    "host", "cable", "port", "module", "trunk", "link", "group", "pair", "network"
]


HostCause = Literal["sender_host", "receiver_host", "other_traffic", "late_sender"]


class ElementEntry(TypedDict):
    """A directed part of the network, or of a host.

    name: In the site's words: node5:e0, leaf1:p5, leaf1, leaf1 - spine2
    kind: port: a switch's; module: a switch; link: some of a trunk's parallel links; group: of
        hosts, where paths are unknown; pair: of ports
    direction: Of a host send or receive; of a switch port in or out, as the switch sees it; of
        a cable, trunk or group `from A to B`; empty: none
    """

    name: str
    kind: ElementKind
    direction: str


class SuspectEntry(TypedDict):
    """A fault that the flows show, and where it is.

    element: The one named
    alike: All that the same flows pass, element included: not told apart
    ports: Ports that element is at; empty: it is between switches
    kind: What it does
    value: Its size: percent of frames, a capacity in Mbit/s of layer 1, or a frame size in
        bytes; null: it has none (dead, intermittent)
    low: Lower end of the 95 % interval of value
    high: Upper end of it
    unit: Of value: %, Mbit/s or bytes; empty: it has none
    confidence: Probability that a fault of this kind is in one of alike
    gain: Log-likelihood ratio over the next explanation
    suffering: Pairs of ports through it that suffer
    through: Pairs through it
    beside: Pairs beside it that do not suffer
    beside_suffering: Pairs beside it that suffer
    frames: Frames that it explains; 0: transports that see no frames
    phases: Phases in which it was observed
    trial: Trial of the first of these; null: none is known
    phase: Its phase; null: a connectivity check, or none is known
    transports: Over which it was observed
    from_s: intermittent: since the window's opening, from here ...
    to_s: ... to here; null: all the time, or no interval results
    brief: Element and fault in a few words
    evidence: Who suffers through it and beside it, in words
    sentence: Both, and what cannot be told apart
    """

    element: ElementEntry
    alike: list[ElementEntry]
    ports: list[str]
    kind: FaultKind
    value: float | None
    low: float | None
    high: float | None
    unit: str
    confidence: float
    gain: float
    suffering: Count
    through: Count
    beside: Count
    beside_suffering: Count
    frames: Count
    phases: Count
    trial: int | None
    phase: int | None
    transports: list[str]
    from_s: float | None
    to_s: float | None
    brief: str
    evidence: str
    sentence: str


class HostLossEntry(TypedDict):
    """Lost frames that are no fault of the network.

    port: At which port
    cause: Not left by its host; not taken by its host; frames of other senders took their time;
        or senders that fell behind sent at once what was due
    frames: Lost frames that it explains
    phases: Phases in which it did
    """

    port: str
    cause: HostCause
    frames: Count
    phases: Count


class OversubscriptionEntry(TypedDict):
    """Loss that no network can avoid.

    element: What was offered more than its line carries
    ports: Ports that element is at; empty: it is between switches
    transport: Of these trials
    offered_mbps: The most that was offered, layer 1
    line_mbps: Its line, layer 1
    frames: Lost as expected
    phases: Phases in which it was
    """

    element: ElementEntry
    ports: list[str]
    transport: str
    offered_mbps: float
    line_mbps: float
    frames: Count
    phases: Count


class NextTestEntry(TypedDict):
    """The smallest test that would decide.

    flows: Pairs of ports, all at once; empty: no traffic decides
    load: Percent of line
    transport: dpdk, packet, tcp, udp or verbs
    why: What it decides, or which cable to swap
    """

    flows: list[list[str]]
    load: float
    transport: str
    why: str


class LocationEntry(TypedDict):
    """Where the network breaks, by all flows and their paths (measures.md, Location).

    paths: Where paths come from: a topology file; none: hosts and groups alone
    phases: Phases that were judged or limited
    limited_phases: Of these: tester-limited
    suspects: The most certain first; empty: nothing is wrong
    hosts: What hosts and foreign traffic cost
    expected: What no line had room for
    unexplained_frames: Lost frames that none of these explains
    untested: Never loaded, or only where the tester was the limit
    next_test: null: nothing is left to decide
    problems: What could not be used, a sentence each
    """

    paths: str
    phases: Count
    limited_phases: Count
    suspects: list[SuspectEntry]
    hosts: list[HostLossEntry]
    expected: list[OversubscriptionEntry]
    unexplained_frames: Count
    untested: list[ElementEntry]
    next_test: NextTestEntry | None
    problems: list[str]


NOTHING_LOCATED: LocationEntry = {
    "paths": "none",
    "phases": 0,
    "limited_phases": 0,
    "suspects": [],
    "hosts": [],
    "expected": [],
    "unexplained_frames": 0,
    "untested": [],
    "next_test": None,
    "problems": [],
}


Severity = Literal["error", "warning", "info"]


SEVERITIES: tuple[Severity, ...] = ("error", "warning", "info")


OtherKind = Literal["unexplained", "host", "oversubscribed", "unfinished", "misdelivered", "forged"]


Kind = FaultKind | OtherKind


KINDS = (*get_args(FaultKind), *get_args(OtherKind))


class FindingEntry(TypedDict):
    """What went wrong, and where.

    kind: Of a suspect its kind; else see measures.md, Findings
    severity: error, warning or info
    transport: Over which; of several the first
    trial: Where it was seen first; null: over the whole run
    phase: From 0; null: see trial
    src: With dst: whose; null: no single flow's
    dst: See src
    port: At which port; null: at several, at none, or a flow's
    element: Name of the suspect's element; null: it has none
    count: Frames, or bytes of a transfer
    sentence: What was found, for a person
    """

    kind: Kind
    severity: Severity
    transport: str
    trial: int | None
    phase: int | None
    src: str | None
    dst: str | None
    port: str | None
    element: str | None
    count: Count
    sentence: str


ExitStatus = Literal[0, 1, 2, 3, 4]


Status = Literal["complete", "partial", "failed"]


class ComparableEntry(TypedDict):
    """The same quantity as a run of this program measured it.

    measure: What is measured (doc/how-to/compare.md)
    ranks: That communicate at the same time
    size: Bytes of a message; null: it has none, or it does not matter
    value: Brought to that definition
    unit: Of value
    """

    measure: str
    ranks: int
    size: int | None
    value: float
    unit: str


class ImportedEntry(TypedDict):
    """A figure that another program measured.

    tool: hpcc, imb, osu, nccl-tests, iperf3 or perftest
    version: Of the tool; null: its output does not say
    benchmark: In the tool's words
    ranks: Processes, or hosts; null: its output does not say
    size: Bytes of a message, by the tool's count
    name: The figure's own name
    value: As the tool printed it
    unit: Of value; us: microseconds
    memory: Of the buffers: host or gpu
    comparable: The same by a definition that programs share; null: there is none
    file: Where it stood, in the results directory
    """

    tool: str
    version: str | None
    benchmark: str
    ranks: int | None
    size: int | None
    name: str
    value: float
    unit: str
    memory: str
    comparable: ComparableEntry | None
    file: str


class SwitchCountersEntry(TypedDict):
    """The switch's own counters, before and after.

    command: That printed them
    before: File with its output before the first trial
    after: File with its output after the last
    compared: Counters that both have
    differences: Of counters that changed; null: one of the outputs is missing
    """

    command: list[str]
    before: str | None
    after: str | None
    compared: int
    differences: dict[str, int] | None


class ClockEntry(TypedDict):
    """A node's clock against node 0's.

    node: Its name
    clock: shared, ptp or estimated
    reason: asked for, or what made it so
    bound_us: Its clock was known within this in all phases' windows; null: in some it was not
    """

    node: str
    clock: str | None
    reason: str | None
    bound_us: float | None


class SupersededEntry(TypedDict):
    """A phase before it was measured again (remeasure); its tables are in superseded/.

    trial: As in trials
    repeat: As in trials
    network: As in trials
    phase: As in trials
    pattern: Its name
    transport: As in trials
    offered_load: Percent of line rate, mean over generating ports
    offered_frames: Of all flows
    lost_frames: Of all flows; none of them in the network
    host_dropped_frames: Dropped in a host, both sides
    reason: How the tester was the limit; null: it was not, or the run ended meanwhile
    """

    trial: int
    repeat: int
    network: str
    phase: int
    pattern: str
    transport: str
    offered_load: float | None
    offered_frames: int | None
    lost_frames: int | None
    host_dropped_frames: int | None
    reason: str | None


class SummaryDocument(TypedDict):
    """What a run amounts to. Formulas: doc/reference/measures.md. null: not observed.

    schema: Form and version of this file
    status: partial: something asked for was not measured; failed: nothing was
    exit_status: Of the command: 0 PASS or no clause, 1 FAIL, 2 configuration invalid on a node,
        3 not completed, 4 INCONCLUSIVE
    errors: What ended the run early, a sentence each
    run: What was run
    trials: Each phase of each trial in each network
    plans: Pattern totals in each network
    statistics: How sure the means over repeats are: one entry for each setting and network that
        was repeated
    comparisons: Transports side by side, where several carried the same matrix
    messages: Ping-pong of messages (doc/reference/messages.md)
    steps: Collective operations (doc/how-to/hpcc-imb.md)
    superseded: Phases that were measured again, as they were before
    searches: What a suite's searches found, by goal
    suite: What a suite found (doc/reference/standards.md)
    ports: Each port with each transport
    expectations: Each clause with its verdict
    verdict: Of all clauses together; null: there are none
    location: Where the network breaks (measures.md, Location)
    findings: What went wrong, errors first: made from location and counts of flows
    warnings: What can't be or should not be: above line rate, links that fell, surplus frames
    not_measured: What was asked for and is not here
    switch_counters: The switch's own counters; null: no command was configured
    imported: Figures of other programs, as they printed them (switchbench import;
        doc/how-to/compare.md)
    clocks: How each node knows run time (doc/reference/latency.md, Clocks)
    """

    schema: Literal["switchbench-summary/2"]
    status: Status
    exit_status: ExitStatus
    errors: list[str]
    run: RunEntry
    trials: list[PhaseEntry]
    plans: list[PlanEntry]
    statistics: list[StatisticEntry]
    comparisons: list[ComparisonEntry]
    messages: Messages
    steps: NotRequired[Steps]
    superseded: NotRequired[list[SupersededEntry]]
    searches: NotRequired[list[SearchEntry]]
    suite: NotRequired[SuiteEntry]
    ports: list[PortEntry]
    expectations: list[ClauseEntry]
    verdict: NotRequired[VerdictEntry | None]
    location: LocationEntry
    findings: list[FindingEntry]
    warnings: list[str]
    not_measured: list[str]
    switch_counters: SwitchCountersEntry | None
    imported: NotRequired[list[ImportedEntry]]
    clocks: list[ClockEntry]


# Not in the class, where mypy takes it for a key.
SummaryDocument.__pydantic_config__ = ConfigDict(extra="forbid", strict=True)  # type: ignore[attr-defined]
