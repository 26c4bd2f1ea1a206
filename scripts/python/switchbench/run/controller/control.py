# SPDX-License-Identifier: BSD-3-Clause
"""The controller's side of the conversation (doc/reference/node-protocol.md).

    job -> hello of all -> peers -> ready of all -> trials ... trial of all -> quit -> bye

The nodes run the trials without the controller; it keeps their records, shows how far they are,
and ends all of them when one fails. Only where a test is repeated until its mean is sure, where a
suite searches a load, or where phases that the tester limited are measured again, does it look at
what was measured, and sends one more trial or none.
"""

from __future__ import annotations

import resource
import secrets
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from ...analysis.remake import feed
from ...analysis.suite import replayed
from ...analysis.summary import Summary
from ...base.errors import ConfigurationError, RunError, SwitchbenchError
from ...base.model import Run, Trial
from ...base.text import printable
from ...plan.again import trials_again
from ...plan.cores import check_rates
from ...plan.documents import KEY_BYTES, to_yaml, trial_document
from ...plan.located import locating_trial
from ...plan.suite import subtest_of
from ...records.collector import Collector, is_event, phase_rows
from ...records.directory import NODES_LOG, RunDirectory
from ...records.expected import Expected
from ...records.plan_file import write_plan
from ...records.record_forms import DamagedRecord, Record, parse
from ...records.resume import Begun
from ...records.store import TableWriter
from ...records.switch_counters import AFTER, BEFORE, read_counters
from ..launch import Launcher
from ..launch.base import FarProcess, WatchedLauncher
from .binder import Binder
from .checks import check_addresses, check_versions, peers, unreachable
from .device_reset import DeviceReset
from .ending import abandon, end_nodes
from .heart import Heart
from .interrupt import Interrupt
from .node import Node
from .pump import Pump
from .talk import Checked, LostError, MissedError, Talk, Watcher

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
        """One more fault; the first one's status stays."""
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
        """Takes what is to be run, the `job` document and where records go; starts nothing.
        `begun`: what the directory's records have of it already."""
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
        """The whole conversation. Whatever happens, no node is left when it returns.

        `command` gives the command line of the node of that name. What goes wrong is in the
        outcome; what was written until then stays.
        """
        self._places = [launcher] if isinstance(launcher, WatchedLauncher) else []
        self._places += [self._binder, self]
        with (
            TableWriter(self._directory.path) as self._tables,
            self._directory.open_lines(NODES_LOG) as self._log,
        ):
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
        return self._outcome

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
        """The others miss a node before its connection says that it is lost: that is the cause.

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
        """All trials are told at once, up to the next repeat that may not be needed."""
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
        Return how many trials nodes were sent so far."""
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
        """One trial at a time: what it lost decides which one follows."""
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
        """The plan with one more trial is there before any record of it."""
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
        """A node that is cut off misses the others, as they miss it: two that agree are right."""
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
    """Lets this process open so many files, as far as the hard limit goes: a shell's soft limit of
    1,024 is reached by 300 nodes."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if resource.RLIM_INFINITY != soft < count:
        most = count if hard == resource.RLIM_INFINITY else min(count, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, most), hard))


def silence_s(trial: Trial) -> float:
    """How long a node may be busy with one phase of a trial without a record of it."""
    phase_s = trial.warmup_s + trial.window_s + trial.cooldown_s + trial.drain_max_s
    timed = trial.sync != "none" and trial.traffic in ("stream", "pingpong")
    return phase_s if timed else max(phase_s, trial.expected_s)


def _error(text: str, record: Record) -> SwitchbenchError:
    """What was asked for can't be, or went wrong: as the node says."""
    return ConfigurationError(text) if record.get("status") == 2 else RunError(text)
