# SPDX-License-Identifier: BSD-3-Clause
"""The controller's side of the conversation (doc/developer/node-protocol.md).

    job -> hello of all -> peers -> ready of all -> trials ... trial of all -> quit -> bye

The nodes run the trials without the controller; it keeps their records, shows how far they are,
and ends all of them when one fails. Only where a test is repeated until its mean is sure, where a
suite searches a load, or where phases that the tester limited are measured again, does it look at
what was measured, and sends one more trial or none.
"""

from __future__ import annotations

import resource
import secrets
import subprocess
import threading
import time
from base64 import b64decode, b64encode
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from nacl.exceptions import CryptoError
from nacl.public import PublicKey, SealedBox

from ..analysis.remake import feed
from ..analysis.suite import replayed
from ..analysis.summary import Summary
from ..base import transports
from ..base.errors import ConfigurationError, RunError, SwitchbenchError, printable
from ..base.model import Run, Site, SwitchCountersCommand, Trial
from ..base.programs import PORT_BINDING
from ..plan.chosen import locating_trial, subtest_of, trials_again
from ..plan.documents import KEY_BYTES, PROTOCOL, check_rates, peers_document, trial_document
from ..records.collector import Collector, Expected, is_event
from ..records.directory import (
    AFTER,
    BEFORE,
    NODES_LOG,
    RunDirectory,
    read_counters,
    run_command,
    write_plan,
)
from ..records.record_forms import REPEATS, DamagedRecord, Record, parse
from ..records.rows import PhaseRows
from ..records.store import Begun, TableWriter
from ..search.suites.declaration import TrialFacts
from .launch.far import Launcher, end, is_readable, pipe_of
from .nodes import Interrupt, LostError, Node, RemoteNodes

HELLO_TIMEOUT_S = 60.0  # opening many DPDK ports on few cores takes its time
READY_SLACK_S = 30.0
SILENCE_SLACK_S = 30.0
QUIT_TIMEOUT_S = 20.0
FILES_PER_NODE = 6  # its pipes, and those of the program that binds its ports
FILES_ELSE = 128  # modules, results, a launcher's connections, pipes while a node is started
AGREE_TIMEOUT_S = 1.0  # for other nodes to say whom they miss


class Watcher(Protocol):
    """Whoever shows the run's progress."""

    def stage(self, text: str) -> None:
        """Begin a stage: in words."""

    def record(self, record: Record) -> None:
        """Take what a node has said."""

    def grow(self, trial: Trial) -> None:
        """Add a trial, which a search chose."""

    def turn(self) -> None:
        """Do what is due; some times a second."""


class MissedError(LostError):
    """A node that another one waited for in vain."""


@dataclass
class Outcome:
    """How the conversation ended. No faults: all that was asked for was run."""

    faults: list[str] = field(default_factory=list)
    status: int = 0  # of the command, as far as the nodes are concerned
    lost: dict[str, str] = field(default_factory=dict)  # before anything was sent: node, and why
    trials: tuple[Trial, ...] = ()  # that searches chose
    again: tuple[Trial, ...] = ()  # that measured phases again

    def fail(self, error: SwitchbenchError) -> None:
        """Take one more fault; the first one's status stays."""
        if str(error) not in self.faults:
            self.faults.append(str(error))
        self.status = self.status or error.status


class Controller:
    """Runs one run, once."""

    def __init__(
        self,
        run: Run,
        job: Mapping[str, Any],
        directory: RunDirectory,
        watcher: Watcher,
        begun: Begun | None = None,
        watched: bool = False,
    ) -> None:
        """Take what is to be run, the `job` document and where records go; start nothing.

        `begun`: what the directory's records have of it already. `watched`: the run's trial is
        repeated until a signal comes.
        """
        self._watched = watched
        decides = run.searches or run.remeasure or run.locate_s
        self.summary = Summary(run, brief=not decides)  # of all that came so far
        self._expected, self._collector = Expected(run), Collector(run)
        self._run = run
        self._begun = begun or Begun()
        if begun is not None:
            feed(self.summary, directory.path)
        self._job = job
        self._directory = directory
        self._watcher = watcher
        self._binder = Binder()
        self._outcome = Outcome()
        self._sent = 0  # trials
        self._steps: dict[Any, Any] = {}  # of the load: the last phase in which each began
        self._opened: list[Record] = []  # `port-open` records
        self._unreachable: list[Record] = []
        self._missing: dict[str, Record] = {}  # by the node that says who is missing
        self._missed: Node | None = None  # by the others, which ended the run
        self._reset: Callable[[Record], None] | None = None  # of the trial that is measured
        self._ending = False  # what nodes say now is a consequence, not a cause
        self._has_begun = False  # all have met in the first barrier
        self._disk_is_full = False

    def conduct(
        self, launcher: Launcher, command: Callable[[str], list[str]], interrupt: Interrupt
    ) -> Outcome:
        """Return the whole conversation.

        Whatever happens, no node is left when it returns.

        `command` gives the command line of the node of that name. What goes wrong is in the
        outcome; what was written until then stays.
        """
        self._launcher, self._interrupt = launcher, interrupt
        try:
            with (
                TableWriter(self._directory.path) as self._tables,
                self._directory.open_lines(NODES_LOG) as self._log,
            ):
                try:
                    self._converse(self._start(command))
                except SwitchbenchError as error:
                    self._note(error)
                finally:
                    for fault in self._binder.close():
                        self._note(fault)
                    for phase in self._collector.rest():
                        self._keep(self._tables.add_phase, phase)
                    self._keep(self._tables.flush)
        except RunError as error:  # the disk is full, and events wait
            self._note(error)
        return self._outcome

    # --- the conversation --------------------------------------------------------------------

    def _start(self, command: Callable[[str], list[str]]) -> list[Node]:
        permit_files(FILES_PER_NODE * len(self._run.site.processes) + FILES_ELSE)
        self._binder.start(self._run.site, self._job, self._launcher)
        self._watcher.stage("starting the nodes")
        nodes: list[Node] = []
        for process in self._run.site.processes:
            try:
                popen = self._launcher.start(process, command(process.name))
            except OSError as error:
                end(node.popen for node in nodes)
                raise RunError(f"{process.name} can't be started: {error}") from error
            nodes.append(Node(process, popen))
        return nodes

    def _converse(self, nodes: Sequence[Node]) -> None:
        self._nodes = RemoteNodes(nodes, self._take_record, self._take_log, self._idle, self._how)
        self._nodes.wake_on(self._interrupt.fd)
        self._nodes.begin_heartbeats(self._run.site.heartbeat_timeout_ms)
        try:
            self._meet()
            self._read_switch(BEFORE)
            if self._watched:
                self._watch()
            elif self._run.searches:
                self._search()
            else:
                self._measure()
            self._read_switch(AFTER)
            self._dismiss()
        except MissedError:
            self._ending = True
            self._note(self._most_missed())
        except SwitchbenchError as error:
            self._note(error)
        finally:
            self._ending = True
            self._nodes.close()
            # Others miss a lost node before its connection says how it ended. Of a node that hangs
            # it ended by our own signal, which is no cause.
            node = self._missed
            if node is not None and not node.signalled:
                status = node.popen.returncode
                lost = self._launcher.lost(node.name, status, node.last_words)
                if lost is None and status is not None and status < 0:  # it was killed here
                    lost = node.ended_how()
                if lost is not None:
                    self._outcome.faults[0] = f"{node.place} {lost}"
                    if node.name in self._outcome.lost:
                        self._outcome.lost[node.name] = lost

    def _idle(self) -> None:
        """Do what is due in each turn of a wait; raise what ends the run from outside."""
        if self._interrupt.count > self._watched:  # a watch ends in order at the first one
            raise RunError(f"interrupted ({self._interrupt.name})")
        self._interrupt.drain()
        self._launcher.check()
        self._binder.check()
        self._keep(self._tables.flush)
        self._watcher.turn()

    def _how(self, node: Node) -> str:
        """In words, how a node's process here ended."""
        status = node.popen.returncode
        return self._launcher.lost(node.name, status, node.last_words) or node.ended_how()

    def _meet(self) -> None:
        """Send the job, check what the nodes are, and wait for the first barrier."""
        self._nodes.send("job", dict(self._job))
        self._nodes.wait_for("hello", HELLO_TIMEOUT_S)
        hellos = [node.said["hello"] for node in self._nodes.nodes]
        check_versions(hellos)
        networks = {port.name: port.network for port in self._run.site.ports}
        check_addresses(self._opened, networks)
        check_rates(self._run, hellos, self._opened)
        self._watcher.stage("first barrier")
        self._nodes.send("peers", peers(hellos, secrets.token_bytes(KEY_BYTES)))
        self._nodes.wait_for("ready", self._run.site.barrier_timeout_ms / 1000 + READY_SLACK_S)
        self._has_begun = True

    def _measure(self) -> None:
        """Send all trials at once, up to the next repeat that may not be needed.

        At the end of the run come phases that the tester limited, since what kept it busy may be
        over, and trials that tell suspects apart.
        """
        self._watcher.stage("measuring")
        for trial in self._run.trials:
            if (trial.id, trial.repeat) in self._begun.whole:
                continue
            if trial.optional:
                self._await_trials()
            if self.summary.needed(trial):
                self._send(self._begun.left_of(trial))
        self._await_trials()
        last: Sequence[Trial] = self._run.trials
        for _ in range(self._run.remeasure):
            number = len(self._run.trials) + len(self._run.again)
            last = list(trials_again(last, self.summary.remeasurable, number))
            for trial in last:
                self._add(replace(self._run, again=(*self._run.again, trial)), trial)
                self._send(trial)
            self._await_trials()
        if self._run.locate_s is not None:
            self._locate(self._run.locate_s)

    def _locate(self, left_s: float) -> None:
        """Measure trials that tell suspects apart, until they are or the time is up."""
        tried = []
        while (test := self.summary.locator.location()["next_test"]) is not None:
            flows = test["flows"]
            trial = locating_trial(self._run, flows, test["transport"], test["load"])
            if trial is None or flows in tried or trial.expected_s > left_s:
                return
            tried.append(flows)
            left_s -= trial.expected_s
            self._watcher.stage(f"locating: {test['why']}")
            self._add(replace(self._run, trials=(*self._run.trials, trial)), trial)
            self._send(trial)
            self._await_trials()

    def _search(self) -> None:
        """Send one trial at a time: what it lost decides which one follows."""
        self._watcher.stage("measuring")
        course = replayed(self._run, self.summary.facts)
        if course.trial is not None and course.trial.id != len(self._run.trials):
            raise RunError(
                "the run's trials do not follow from their results: it can't be continued"
            )
        while (trial := course.trial) is not None:
            self._add(replace(self._run, trials=(*self._run.trials, trial)), trial)
            with ExitStack() as stack:
                command = self._run.device_reset
                if command is not None and subtest_of(self._run, trial).resets:
                    self._reset = stack.enter_context(device_reset(command, trial))
                self._send(trial)
                self._await_trials()
            self._reset = None
            course.answer(self.summary.facts.get(trial.id, TrialFacts()))

    def _watch(self) -> None:
        """Repeat the run's trial until a signal comes; what was sent then still ends."""
        self._watcher.stage("measuring")
        first, number = self._run.trials[0], 0
        try:
            while not self._interrupt.count and number < REPEATS:
                if number == len(self._run.trials):  # ahead, so that the plan is seldom written
                    more = [replace(first, id=i, repeat=i) for i in range(number, 2 * number)]
                    self._add(replace(self._run, trials=(*self._run.trials, *more)), *more)
                self._send(self._run.trials[number])
                number += 1
                self._await_trials(behind=1)
            self._await_trials()
        finally:
            self._plan(replace(self._run, trials=self._run.trials[:number]))

    def _plan(self, run: Run) -> None:
        """Go on with this plan, which is kept."""
        self._run = run
        self._outcome.trials, self._outcome.again = run.trials, run.again
        write_plan(self._directory.path, run)

    def _add(self, run: Run, *trials: Trial) -> None:
        """Go on with a run that has more trials: the plan has them before any record of them."""
        for trial in trials:
            self._expected.add(trial)
            self.summary.grow(trial)
            self._watcher.grow(trial)
        self._plan(run)

    def _send(self, trial: Trial) -> None:
        self._nodes.send("trial", trial_document(trial))
        self._sent += 1

    def _await_trials(self, behind: int = 0) -> None:
        """Wait until all that were sent have ended, but for so many."""
        barrier_s = self._run.site.barrier_timeout_ms / 1000
        limit_s = max(map(silence_s, self._run.trials)) + 3 * barrier_s + SILENCE_SLACK_S
        self._nodes.wait(
            lambda node: node.trials_ended >= self._sent - behind, "to end its trials", limit_s
        )

    def _read_switch(self, name: str) -> None:
        if self._run.switch_counters is not None:
            self._watcher.stage("reading the switch's counters")
            read_counters(self._run.switch_counters, self._directory.path / name)

    def _dismiss(self) -> None:
        self._watcher.stage("ending the nodes")
        nodes = self._nodes
        nodes.send("quit", True)
        nodes.wait(lambda node: node.name not in nodes.speaking, "to end", QUIT_TIMEOUT_S)
        if self._unreachable:
            raise RunError(unreachable(self._unreachable))
        nodes.wait_for_ends(QUIT_TIMEOUT_S)
        for node in nodes.nodes:
            if node.popen.returncode != 0:
                raise RunError(f"{node.place} {self._how(node)}")

    # --- what nodes say ----------------------------------------------------------------------

    def _take_record(self, node: Node, line: bytes) -> None:
        try:
            record = parse(line)
            if record.get("node") != node.name:
                raise DamagedRecord(f"it is of the node {record.get('node')!r}")
            self._expected.check(record)
            self._take_checked(record)
            self._watcher.record(record)
        except DamagedRecord as error:
            self._fault(
                RunError(f"{node.place} wrote what is no record of it: {line[:120]!r}: {error}")
            )
            return
        kind = record["type"]
        node.hear(record)
        if self._reset is not None:
            self._reset(record)
        if kind == "port-open" and not self._has_begun:
            self._opened.append(record)
        elif kind == "unreachable":
            self._unreachable.append(record)
        elif kind == "trial":
            node.trials_ended += 1
        elif kind == "error":
            text = record.get("text") or "the run can not go on"
            self._fault(_error(f"{node.place}: {text}", record))
        elif kind == "event" and record.get("kind") == "bind":
            self._binder.bind(node.name)
        elif kind == "missing":
            self._missing.setdefault(node.name, record)
            if not self._ending:
                raise self._missing_of(record)

    def _take_checked(self, record: Record) -> None:
        """Write what a record adds to the tables, and give the summary what has ended with it."""
        for phase in self._collector.take(record):
            self._keep(self._tables.add_phase, phase)
            self.summary.take_phase(PhaseRows.of(phase))
        if record["type"] == "samples":
            self._keep(self._tables.add_samples, record)
        elif record["type"] == "progress":
            # That a step of a phase has begun, as the first node says it: rates are live.
            step = record.get("step")
            event = {key: record.get(key) for key in ("type", "node", "trial", "repeat", "phase")}
            moment = (event["trial"], event["repeat"], event["phase"])
            if self._steps.get(step) != moment:
                self._steps[step] = moment
                self._keep(self._tables.add_event, event | {"step": step})
        elif is_event(record):
            self._keep(self._tables.add_event, record)
            self.summary.take(record)
        if record["type"] == "trial":
            self.summary.close_ended()

    def _take_log(self, node: Node, line: bytes) -> None:
        text = printable(line.decode(errors="replace").rstrip())
        if text:
            node.last_words.append(text)
        self._keep(self._log.write, f"{node.name}: {text}\n".encode())

    def _keep(self, write: Callable[..., None], *what: object) -> None:
        """Write something; once the disk is full nothing more is asked of it."""
        if self._disk_is_full:
            return
        try:
            write(*what)
        except RunError as error:
            self._disk_is_full = True
            if not self._ending:
                raise
            self._note(error)

    def _most_missed(self) -> SwitchbenchError:
        """Return the error of the node that most others miss.

        A node that is cut off misses the others, as they miss it: two that agree are right.
        """
        deadline_s = time.monotonic() + AGREE_TIMEOUT_S
        while True:
            names = Counter(str(record.get("missing_node")) for record in self._missing.values())
            [(who, count)] = names.most_common(1)
            if count > 1 or len(self._missing) == len(self._nodes.nodes):
                break
            if not self._nodes.speaking or time.monotonic() > deadline_s:
                break
            self._nodes.turn()
        said = [one for one in self._missing.values() if one.get("missing_node") == who]
        return self._missing_of(said[0])

    def _missing_of(self, record: Record) -> SwitchbenchError:
        who = record.get("missing_node")
        self._missed = next((node for node in self._nodes.nodes if node.name == who), None)
        place = self._missed.place if self._missed else str(who)
        text = record.get("text") or f"did not reach barrier {record.get('barrier')}"
        said = text.removeprefix(f"{who} ")
        if self._missed is None or record.get("status") == 2:
            return _error(f"{place} {said}", record)
        kind = LostError if record.get("gave_up") else MissedError
        return kind(f"{place} {said}", {self._missed.name: said})

    def _fault(self, error: SwitchbenchError) -> None:
        if not self._ending:
            raise error

    def _note(self, error: SwitchbenchError) -> None:
        if isinstance(error, LostError) and not self._has_begun and not self._outcome.faults:
            self._outcome.lost = error.nodes
        self._outcome.fail(error)


def permit_files(count: int) -> None:
    """Let this process open so many files, as far as the hard limit goes.

    A shell's soft limit of 1,024 is reached by 300 nodes.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if resource.RLIM_INFINITY != soft < count:
        most = count if hard == resource.RLIM_INFINITY else min(count, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, most), hard))


def silence_s(trial: Trial) -> float:
    """Return how long a node may be busy with one phase of a trial without a record of it."""
    phase_s = trial.warmup_s + trial.window_s + trial.cooldown_s + trial.drain_max_s
    timed = trial.sync != "none" and trial.traffic in ("stream", "pingpong")
    return phase_s if timed else max(phase_s, trial.expected_s)


def _error(text: str, record: Record) -> SwitchbenchError:
    """Return the error of what was asked for and can't be, or went wrong: as the node says."""
    return ConfigurationError(text) if record.get("status") == 2 else RunError(text)


# --- checks ---------------------------------------------------------------------------------------
# What nodes say of themselves and their ports before the first trial, checked.


PAIRS_SHOWN = 6

_NO_ADDRESSES = ("", "00:00:00:00:00:00")


def peers(hellos: Sequence[Record], key: bytes) -> dict[str, object]:
    """Return the `peers` document: where all are, and the run's key for each alone to read."""
    sealed = []
    for hello in hellos:
        try:
            box = SealedBox(PublicKey(b64decode(hello["key"])))
            sealed.append(b64encode(box.encrypt(key)).decode())
        except (CryptoError, ValueError) as error:
            raise RunError(f"{hello['node']} sent no usable key: {error}") from error
    return peers_document([hello["control"] for hello in hellos], sealed)


def check_versions(hellos: Iterable[Record]) -> None:
    """Refuse nodes that speak another protocol, or are not all of one version."""
    versions: dict[str, str] = {}
    for hello in hellos:
        if hello.get("protocol") != PROTOCOL:
            raise ConfigurationError(
                f"{hello['node']} speaks protocol {hello.get('protocol')}, this command "
                f"{PROTOCOL}: install the same version of Switchbench on both"
            )
        versions.setdefault(str(hello.get("version")), hello["node"])
    if len(versions) > 1:
        found = ", ".join(f"{node} has {version}" for version, node in versions.items())
        raise ConfigurationError(f"the nodes' engines differ in version: {found}")


def check_addresses(opened: Iterable[Record], networks: Mapping[str, str]) -> None:
    """Refuse two ports of one network with the same address: frames would go astray."""
    owners: dict[tuple[str, str], str] = {}
    for record in opened:
        port = record["port"]
        for kind in ("mac", "ipv4", "ipv6"):
            address = record.get(kind)
            if not address or address in _NO_ADDRESSES:
                continue
            owner = owners.setdefault((networks.get(port, ""), address.lower()), port)
            if owner != port:
                raise ConfigurationError(f"{owner} and {port} have the same address {address}")


def unreachable(records: Sequence[Record]) -> str:
    """Return which trials were not started for which pairs.

    The first ones by name, all in the summary.
    """
    trials = sorted({record["trial"] for record in records})
    pairs = sorted({(record["src"], record["dst"]) for record in records})
    shown = ", ".join(f"{src} -> {dst}" for src, dst in pairs[:PAIRS_SHOWN])
    more = f" and {len(pairs) - PAIRS_SHOWN} more" if len(pairs) > PAIRS_SHOWN else ""
    words = "trials" if len(trials) > 1 else "trial"
    return f"no load in {words} {', '.join(map(str, trials))}: no probe got through {shown}{more}"


# --- device reset ---------------------------------------------------------------------------------
# The command that resets the device under test, run in the middle of a suite's trial.


PART = 0.25  # of the window that has passed when the device is reset


@contextmanager
def device_reset(
    command: SwitchCountersCommand, trial: Trial
) -> Iterator[Callable[[Record], None]]:
    """Run the command in the window of a trial; give what takes the nodes' records meanwhile.

    RunError on leaving where the command failed, or was not run before the trial ended.
    """
    errors = [RunError("device_reset: the trial ended before its command was run: raise reset_s")]

    def run() -> None:
        errors.clear()
        try:
            run_command(command, "device_reset")
        except RunError as error:
            errors.append(error)

    timer = threading.Timer(PART * trial.window_s, run)

    def take(record: Record) -> None:
        """Start the time at the first record that says that the window is open."""
        now = record.get("trial"), record["type"], record.get("step")
        if timer.ident is None and now == (trial.id, "progress", "window"):
            timer.start()

    try:
        yield take
    finally:
        timer.cancel()
        if timer.ident is not None:
            timer.join()
    if errors:
        raise errors[0]


# --- binder ---------------------------------------------------------------------------------------
# PCI ports that are bound to DPDK for the time of a run (doc/how-to/bind.md).


READY_LIMIT_S = 60.0  # a login, and the check of many devices
END_LIMIT_S = 90.0  # an engine that ends, drivers and links that come back


def hold_words(site: Site, node: Mapping[str, Any]) -> list[str]:
    """Return what the program on a host is to do for its node of the job document."""
    wanted = site.effective["bind"]
    devices = [
        port["pci"]
        for port in node["ports"]
        if "pci" in port and any(transports.of(name).raw for name in port["transports"])
    ]
    if not devices:
        return []
    words = ["hold", *dict.fromkeys(devices), "--driver", wanted["driver"]]
    if wanted.get("hugepages"):
        words += ["--hugepages", str(wanted["hugepages"])]
    return [*words, "--keep"] if wanted.get("restore") == "never" else words


class Binder:
    """The programs of a run's hosts."""

    def __init__(self) -> None:
        self._holders: dict[str, subprocess.Popen[bytes]] = {}

    def start(self, site: Site, job: Mapping[str, Any], launcher: Launcher) -> None:
        """Start a program on each host with ports to bind, and wait until each is ready."""
        nodes = job["nodes"] if "bind" in job else ()
        for process, node in zip(site.processes, nodes, strict=False):
            if words := hold_words(site, node):
                self._holders[process.name] = launcher.port_binding(process, words)
                self._write(process.name, PORT_BINDING.read_bytes())
        deadline_s = time.monotonic() + READY_LIMIT_S
        for host, holder in self._holders.items():
            output = pipe_of(holder.stdout)
            if not is_readable(output, deadline_s):
                raise RunError(f"{host}: Python did not answer within {READY_LIMIT_S:.0f} s")
            if not output.read(1):
                raise self._ended(host)

    def _write(self, host: str, text: bytes) -> None:
        with suppress(BrokenPipeError):  # it has ended: its output says how
            pipe_of(self._holders[host].stdin).write(text)

    def bind(self, host: str) -> None:
        """Bind the ports of a host."""
        if host not in self._holders:
            raise RunError(f"{host} asks for its PCI ports to be bound, which it should not")
        self._write(host, b"bind\n")

    def check(self) -> None:
        """Raise the error of a program that has ended."""
        for host, holder in self._holders.items():
            if holder.poll() is not None:
                raise self._ended(host)

    def close(self) -> Sequence[SwitchbenchError]:
        """Restore all ports; return what failed."""
        for holder in self._holders.values():
            pipe_of(holder.stdin).close()
        deadline_s = time.monotonic() + END_LIMIT_S
        faults = []
        for host, holder in list(self._holders.items()):
            fault = self._ended(host, max(0.0, deadline_s - time.monotonic()))
            if holder.returncode != 0:
                faults.append(fault)
        return faults

    def _ended(self, host: str, limit_s: float = 1.0) -> SwitchbenchError:
        """Let go of a program; return the error of one that failed."""
        holder = self._holders.pop(host)
        pipe_of(holder.stdin).close()
        holder.stdin, is_late = None, False
        try:
            _, log = holder.communicate(timeout=limit_s)
        except subprocess.TimeoutExpired:
            is_late = True
            holder.kill()
            _, log = holder.communicate()
        words = log.decode(errors="replace").splitlines()
        if words:
            status = holder.returncode
            return (ConfigurationError if status == 2 else RunError)(f"{host}: {words[-1]}")
        how = "did not end" if is_late else f"ended with status {holder.returncode}"
        return RunError(
            f"{host}: the program that binds its PCI ports {how}: `switchbench restore` restores "
            "what it bound"
        )
