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
import select
import subprocess
import threading
import time
from base64 import b64decode, b64encode
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from types import TracebackType
from typing import Any, Self

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
from ..plan.documents import (
    KEY_BYTES,
    PROTOCOL,
    check_rates,
    peers_document,
    to_yaml,
    trial_document,
)
from ..records.collector import Collector, Expected, is_event, phase_rows
from ..records.directory import NODES_LOG, RunDirectory
from ..records.plan_file import write_plan
from ..records.record_forms import DamagedRecord, Record, parse
from ..records.resume import Begun
from ..records.store import TableWriter
from ..records.switch_counters import AFTER, BEFORE, read_counters, run_command
from .launch.far import BindingLauncher, FarProcess, Launcher, WatchedLauncher
from .nodes import (
    Checked,
    Heart,
    Interrupt,
    LostError,
    MissedError,
    Node,
    Pump,
    Talk,
    Watcher,
    abandon,
    end_nodes,
)

HELLO_TIMEOUT_S = 60.0  # opening many DPDK ports on few cores takes its time
READY_SLACK_S = 30.0
SILENCE_SLACK_S = 30.0
QUIT_TIMEOUT_S = 20.0
FILES_PER_NODE = 6  # its pipes, and those of the program that binds its ports
FILES_ELSE = 128  # modules, results, a launcher's connections, pipes while a node is started
AGREE_TIMEOUT_S = 1.0  # for other nodes to say whom they miss


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
    ) -> None:
        """Take what is to be run, the `job` document and where records go; start nothing.

        `begun`: what the directory's records have of it already.
        """
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
        self._places: list[Checked] = []
        self._nodes: list[Node] = []
        self._steps: dict[Any, Any] = {}  # of the load: the last phase in which each began
        self._opened: list[Record] = []  # `port-open` records
        self._unreachable: list[Record] = []
        self._outcome = Outcome()
        self._missing: dict[str, Record] = {}  # by the node that says who is missing
        self._missed: Node | None = None  # by the others, which ended the run
        self._reset: DeviceReset | None = None  # of the trial that is measured
        self._ending = False
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
        self._places = [launcher] if isinstance(launcher, WatchedLauncher) else []
        self._places += [self._binder, self]
        try:
            with (
                TableWriter(self._directory.path) as self._tables,
                self._directory.open_lines(NODES_LOG) as self._log,
            ):
                self._conduct(launcher, command, interrupt)
        except RunError as error:  # the disk is full, and events wait
            self._note(error)
        return self._outcome

    def _conduct(
        self, launcher: Launcher, command: Callable[[str], list[str]], interrupt: Interrupt
    ) -> None:
        try:
            self._start(launcher, command)
            self._converse(interrupt)
        except SwitchbenchError as error:
            self._note(error)
        finally:
            for fault in self._binder.close():
                self._note(fault)
            for phase in self._collector.rest():
                self._keep(partial(self._tables.add_phase, phase))
            self._keep(self._tables.flush)

    def check(self) -> None:
        """Write what waits: called in each turn."""
        self._keep(self._tables.flush)

    # --- the conversation --------------------------------------------------------------------

    def _start(self, launcher: Launcher, command: Callable[[str], list[str]]) -> None:
        permit_files(FILES_PER_NODE * len(self._run.site.processes) + FILES_ELSE)
        self._binder.start(self._run.site, self._job, launcher)
        self._watcher.stage("starting the nodes")
        for process in self._run.site.processes:
            try:
                popen = launcher.start(process, command(process.name))
            except OSError as error:
                abandon(self._nodes)
                raise RunError(f"{process.name} can't be started: {error}") from error
            self._nodes.append(Node(process, popen))

    def _converse(self, interrupt: Interrupt) -> None:
        pump = Pump(self._nodes, self._take_record, self._take_log)
        pump.wake_on(interrupt.fd)
        heart = Heart(self._nodes, self._run.site.heartbeat_timeout_ms)
        heart.start()
        try:
            talk = Talk(self._nodes, pump, interrupt, self._watcher, self._places)
            self._greet(talk)
            self._introduce(talk)
            self._read_switch(BEFORE)
            self._measure(talk)
            self._read_switch(AFTER)
            self._dismiss(talk)
        except MissedError:
            self._ending = True
            self._note(self._most_missed(pump))
        except SwitchbenchError as error:
            self._note(error)
        finally:
            self._ending = True
            heart.stop()
            end_nodes(self._nodes, pump)
            pump.close()
            self._name_the_cause()

    def _name_the_cause(self) -> None:
        """Name a lost node as the cause: others miss it before its connection says so.

        Not of a node that hangs: its connection ended by our own signal.
        """
        node = self._missed
        if node is not None and not node.signalled and isinstance(node.popen, FarProcess):
            lost = node.popen.lost(node.last_words)
            if lost is not None:
                self._outcome.faults[0] = f"{node.place} {lost}"
                if node.name in self._outcome.lost:
                    self._outcome.lost[node.name] = lost

    def _greet(self, talk: Talk) -> None:
        talk.tell_all([to_yaml("job", dict(self._job))])
        talk.wait_for("hello", HELLO_TIMEOUT_S)
        check_versions(node.said["hello"] for node in self._nodes)
        networks = {port.name: port.network for port in self._run.site.ports}
        check_addresses(self._opened, networks)
        check_rates(self._run, [node.said["hello"] for node in self._nodes], self._opened)

    def _introduce(self, talk: Talk) -> None:
        self._watcher.stage("first barrier")
        hellos = [node.said["hello"] for node in self._nodes]
        talk.tell_all([to_yaml("peers", peers(hellos, secrets.token_bytes(KEY_BYTES)))])
        talk.wait_for("ready", self._run.site.barrier_timeout_ms / 1000 + READY_SLACK_S)
        self._has_begun = True

    def _measure(self, talk: Talk) -> None:
        """Tell all trials at once, up to the next repeat that may not be needed."""
        self._watcher.stage("measuring")
        if self._run.searches:
            self._search(talk)
            return
        told = 0
        for trial in self._run.trials:
            if (trial.id, trial.repeat) in self._begun.whole:
                continue
            if trial.optional:
                self._await_trials(talk, told)
            if self.summary.needed(trial):
                talk.tell_all([to_yaml("trial", trial_document(self._begun.left_of(trial)))])
                told += 1
        self._await_trials(talk, told)
        told = self._measure_again(talk, told)
        if self._run.locate_s is not None:
            self._locate(talk, told, self._run.locate_s)

    def _measure_again(self, talk: Talk, told: int) -> int:
        """Phases that the tester limited, at the end of the run: what kept it busy may be over.

        Return how many trials nodes were sent so far.
        """
        last: Sequence[Trial] = self._run.trials
        for _ in range(self._run.remeasure):
            number = len(self._run.trials) + len(self._run.again)
            last = list(trials_again(last, self.summary.remeasurable, number))
            for trial in last:
                self._run = replace(self._run, again=(*self._run.again, trial))
                self._add(trial)
                talk.tell_all([to_yaml("trial", trial_document(trial))])
            told += len(last)
            self._await_trials(talk, told)
        self._outcome.again = self._run.again
        return told

    def _locate(self, talk: Talk, told: int, left_s: float) -> None:
        """Trials that tell suspects apart, until they are or the time is up."""
        tried = []
        while (test := self.summary.locator.location()["next_test"]) is not None:
            flows = test["flows"]
            trial = locating_trial(self._run, flows, test["transport"], test["load"])
            if trial is None or flows in tried or trial.expected_s > left_s:
                return
            tried.append(flows)
            left_s -= trial.expected_s
            self._watcher.stage(f"locating: {test['why']}")
            self._run = replace(self._run, trials=(*self._run.trials, trial))
            self._add(trial)
            self._outcome.trials = self._run.trials
            talk.tell_all([to_yaml("trial", trial_document(trial))])
            told += 1
            self._await_trials(talk, told)

    def _search(self, talk: Talk) -> None:
        """Tell one trial at a time: what it lost decides which one follows."""
        ended = {trial.id: self.summary.suite.of(trial) for trial in self._run.trials}
        course = replayed(self._run, ended)
        if course.trial is not None and course.trial.id != len(ended):
            raise RunError(
                "the run's trials do not follow from their results: it can't be continued"
            )
        self._outcome.trials = self._run.trials
        while (trial := course.trial) is not None:
            self._run = replace(self._run, trials=(*self._run.trials, trial))
            self._add(trial)
            self._outcome.trials = self._run.trials
            with self._resetting(trial) as self._reset:
                talk.tell_all([to_yaml("trial", trial_document(trial))])
                self._await_trials(talk, len(self._run.trials) - len(ended))
            self._reset = None
            course.answer(self.summary.suite.of(trial))

    def _resetting(self, trial: Trial) -> AbstractContextManager[DeviceReset | None]:
        if self._run.device_reset is None or not subtest_of(self._run, trial).resets:
            return nullcontext()
        return DeviceReset(self._run.device_reset, trial)

    def _add(self, trial: Trial) -> None:
        """Add a trial: the plan is there with it before any record of it."""
        self._expected.add(trial)
        self.summary.grow(trial)
        self._watcher.grow(trial)
        write_plan(self._directory.path, self._run)

    def _read_switch(self, name: str) -> None:
        if self._run.switch_counters is not None:
            self._watcher.stage("reading the switch's counters")
            read_counters(self._run.switch_counters, self._directory.path / name)

    def _await_trials(self, talk: Talk, count: int) -> None:
        barrier_s = self._run.site.barrier_timeout_ms / 1000
        limit_s = max(map(silence_s, self._run.trials)) + 3 * barrier_s + SILENCE_SLACK_S
        talk.wait(lambda node: node.trials_ended >= count, "to end its trials", limit_s)

    def _dismiss(self, talk: Talk) -> None:
        self._watcher.stage("ending the nodes")
        talk.tell_all([to_yaml("quit", True)])
        talk.wait(lambda node: node.name not in talk.pump.speaking, "to end", QUIT_TIMEOUT_S)
        if self._unreachable:
            raise RunError(unreachable(self._unreachable))
        talk.wait_for_ends(QUIT_TIMEOUT_S)
        for node in self._nodes:
            if node.popen.returncode != 0:
                raise RunError(f"{node.place} {node.ended_how()}")

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
            self._reset.take(record)
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
            self._keep(partial(self._tables.add_phase, phase))
            self.summary.take_phase(phase_rows(phase))
        if record["type"] == "samples":
            self._keep(partial(self._tables.add_samples, record))
        elif record["type"] == "progress":
            self._take_progress(record)
        elif is_event(record):
            self._keep(partial(self._tables.add_event, record))
            self.summary.take(record)
        if record["type"] == "trial":
            self.summary.close_ended()

    def _take_progress(self, record: Record) -> None:
        """Write that a step of a phase has begun, as the first node says it: rates are live."""
        step = record.get("step")
        event = {key: record.get(key) for key in ("type", "node", "trial", "repeat", "phase")}
        moment = (event["trial"], event["repeat"], event["phase"])
        if self._steps.get(step) != moment:
            self._steps[step] = moment
            self._keep(partial(self._tables.add_event, event | {"step": step}))

    def _take_log(self, node: Node, line: bytes) -> None:
        text = printable(line.decode(errors="replace").rstrip())
        if text:
            node.last_words.append(text)
        self._keep(partial(self._log.write, f"{node.name}: {text}\n".encode()))

    def _keep(self, write: Callable[[], None]) -> None:
        """Write something; once the disk is full nothing more is asked of it."""
        if self._disk_is_full:
            return
        try:
            write()
        except RunError as error:
            self._disk_is_full = True
            if not self._ending:
                raise
            self._note(error)

    def _most_missed(self, pump: Pump) -> SwitchbenchError:
        """Return the error of the node that most others miss.

        A node that is cut off misses the others, as they miss it: two that agree are right.
        """
        deadline = time.monotonic() + AGREE_TIMEOUT_S
        while True:
            names = Counter(str(record.get("missing_node")) for record in self._missing.values())
            [(who, count)] = names.most_common(1)
            if count > 1 or len(self._missing) == len(self._nodes):
                break
            if not pump.speaking or time.monotonic() > deadline:
                break
            pump.turn()
        said = next(
            record for record in self._missing.values() if record.get("missing_node") == who
        )
        return self._missing_of(said)

    def _missing_of(self, record: Record) -> SwitchbenchError:
        who = record.get("missing_node")
        node = next((node for node in self._nodes if node.name == who), None)
        place = node.place if node else str(who)
        text = record.get("text") or f"did not reach barrier {record.get('barrier')}"
        self._missed = node
        said = text.removeprefix(f"{who} ")
        if node is None or record.get("status") == 2:
            return _error(f"{place} {said}", record)
        kind = LostError if record.get("gave_up") else MissedError
        return kind(f"{place} {said}", {node.name: said})

    def _fault(self, error: SwitchbenchError) -> None:
        """While the nodes are being ended, what they say is a consequence, not a cause."""
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
    addresses = [hello["control"] for hello in hellos]
    return peers_document(addresses, [_sealed(hello, key) for hello in hellos])


def _sealed(hello: Record, key: bytes) -> str:
    try:
        sealed = SealedBox(PublicKey(b64decode(hello["key"]))).encrypt(key)
    except (CryptoError, ValueError) as error:
        raise RunError(f"{hello['node']} sent no usable key: {error}") from error
    return b64encode(sealed).decode()


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


class DeviceReset:
    """Runs the command once the window of a trial is open, and ends when both have ended.

    RunError on leaving where the command failed, or was not run before the trial ended.
    """

    def __init__(self, command: SwitchCountersCommand, trial: Trial) -> None:
        self._command = command
        self._trial = trial
        self._error: RunError | None = RunError(
            "device_reset: the trial ended before its command was run: raise reset_s"
        )
        self._timer = threading.Timer(PART * trial.window_s, self._run)
        self._opened = False

    def __enter__(self) -> Self:
        """Return it."""
        return self

    def take(self, record: Record) -> None:
        """Take a record of a node: the first that says that the window is open starts the time."""
        now = record.get("trial"), record["type"], record.get("step")
        if not self._opened and now == (self._trial.id, "progress", "window"):
            self._opened = True
            self._timer.start()

    def __exit__(
        self, kind: type[BaseException] | None, _error: BaseException | None,
        _traceback: TracebackType | None,
    ) -> None:  # fmt: skip
        """Stop the time."""
        self._timer.cancel()
        if self._opened:
            self._timer.join()
        if kind is None and self._error is not None:
            raise self._error

    def _run(self) -> None:
        try:
            run_command(self._command, "device_reset")
            self._error = None
        except RunError as error:
            self._error = error


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
        if "bind" not in job or not isinstance(launcher, BindingLauncher):
            return
        program = PORT_BINDING.read_bytes()
        for process, node in zip(site.processes, job["nodes"], strict=True):
            words = hold_words(site, node)
            if words:
                holder = self._holders[process.name] = launcher.port_binding(process, words)
                with suppress(BrokenPipeError):  # it has ended: its output says how
                    _write(holder, program)
        deadline_s = time.monotonic() + READY_LIMIT_S
        for host, holder in self._holders.items():
            assert holder.stdout is not None
            left_s = max(0.0, deadline_s - time.monotonic())
            if not select.select([holder.stdout], [], [], left_s)[0]:
                raise RunError(f"{host}: Python did not answer within {READY_LIMIT_S:.0f} s")
            if not holder.stdout.read(1):
                raise self._ended(host)

    def bind(self, host: str) -> None:
        """Bind the ports of a host."""
        if host not in self._holders:
            raise RunError(f"{host} asks for its PCI ports to be bound, which it should not")
        with suppress(BrokenPipeError):
            _write(self._holders[host], b"bind\n")

    def check(self) -> None:
        """Raise the error of a program that has ended."""
        for host, holder in self._holders.items():
            if holder.poll() is not None:
                raise self._ended(host)

    def close(self) -> Sequence[SwitchbenchError]:
        """Restore all ports; return what failed."""
        for holder in self._holders.values():
            assert holder.stdin is not None
            with suppress(BrokenPipeError):
                holder.stdin.close()
        deadline_s = time.monotonic() + END_LIMIT_S
        faults = []
        for host, holder in list(self._holders.items()):
            with suppress(subprocess.TimeoutExpired):
                holder.wait(max(0.0, deadline_s - time.monotonic()))
            fault = self._ended(host)
            if holder.returncode != 0:
                faults.append(fault)
        return faults

    def _ended(self, host: str) -> SwitchbenchError:
        """Let go of a program; return the error of one that failed."""
        holder = self._holders.pop(host)
        late = holder.poll() is None
        try:
            status = holder.wait(1)
        except subprocess.TimeoutExpired:
            holder.kill()
            status = holder.wait()
        assert holder.stderr is not None
        words = holder.stderr.read().decode(errors="replace").splitlines()
        for pipe in (holder.stdin, holder.stdout, holder.stderr):
            if pipe is not None:
                with suppress(BrokenPipeError):
                    pipe.close()
        if words:
            return (ConfigurationError if status == 2 else RunError)(f"{host}: {words[-1]}")
        how = "did not end" if late else f"ended with status {status}"
        return RunError(
            f"{host}: the program that binds its PCI ports {how}: `switchbench restore` restores "
            "what it bound"
        )


def _write(holder: subprocess.Popen[bytes], text: bytes) -> None:
    assert holder.stdin is not None
    holder.stdin.write(text)
    holder.stdin.flush()
