# SPDX-License-Identifier: BSD-3-Clause
"""Controller of a run: it sends documents to the nodes and receives their records.

Order of the messages (doc/developer/node-protocol.md):

job -> hello of all -> peers -> ready of all -> trials ... trial of all -> quit -> bye

The nodes run the trials without the controller, which stores their records, shows their progress,
and ends all of them when one fails. The controller evaluates measurements only where a test is
repeated until its confidence interval is narrow enough, where a suite searches a load, or where
tester-limited phases are measured again. The controller then sends one more trial, or none.
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
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import numpy as np
from nacl.exceptions import CryptoError
from nacl.public import PublicKey, SealedBox

from ..analysis.suite import replayed
from ..analysis.summary import Summary, feed
from ..base.errors import ConfigurationError, RunError, SwitchbenchError, printable
from ..base.model import DeviceReset, Run, Trial
from ..plan.chosen import locating_trial, subtest_of, trials_again
from ..plan.documents import KEY_BYTES, PROTOCOL, trial_document
from ..records.collector import Collector, Expected, is_event
from ..records.directory import NODES_LOG, LineFile, RunDirectory, write_plan
from ..records.rows import PhaseRows
from ..records.schema import REPEATS, DamagedRecord, Record, parse
from ..records.store import Begun, TableWriter
from ..search.suites.declaration import TrialFacts
from .launch.far import Launcher, end
from .nodes import Interrupt, Node, RemoteNodes

HELLO_TIMEOUT_S = 60.0  # opening many DPDK ports on few cores takes time
READY_SLACK_S = 30.0
SILENCE_SLACK_S = 30.0
QUIT_TIMEOUT_S = 20.0
FILES_PER_NODE = 3  # pipes for standard input, output and error
FILES_ELSE = 128  # modules, results, a launcher's connections, pipes while a node is started
AGREE_TIMEOUT_S = 1.0  # wait for more nodes to report which node is missing


class Watcher(Protocol):
    """Protocol of objects that show a run's progress."""

    def stage(self, text: str) -> None:
        """Show that a stage of the run begins, such as "measuring"."""

    def record(self, record: Record) -> None:
        """Update the display with a record that a node sent."""

    def grow(self, trial: Trial) -> None:
        """Add a trial, which was chosen during the run, to the displayed run."""

    def turn(self) -> None:
        """Update the display; the controller calls this several times per second."""


class MissedError(RunError):
    """Error: the other nodes received nothing from one node within the time limit."""


@dataclass
class Outcome:
    """Result of a run: faults, exit status, and trials added while it ran.

    Without faults, all planned trials were run.
    """

    faults: list[str] = field(default_factory=list)
    status: int = 0  # exit status by the faults alone; the verdict is not included
    trials: tuple[Trial, ...] = ()  # all trials, with those that were chosen during the run
    again: tuple[Trial, ...] = ()  # trials that measured tester-limited phases again

    def fail(self, error: SwitchbenchError) -> None:
        """Add an error to the run's faults; the first error decides the exit status."""
        if str(error) not in self.faults:
            self.faults.append(str(error))
        self.status = self.status or error.status


class Controller:
    """Controller of one run: it sends trials to the nodes and stores their records."""

    def __init__(
        self,
        run: Run,
        job: Mapping[str, object],
        directory: RunDirectory,
        watcher: Watcher,
        begun: Begun | None = None,
        watched: bool = False,
    ) -> None:
        """Store the run, the `job` document and the results directory, without starting anything.

        `begun` has the earlier results of an interrupted run. With `watched`, the run's only trial
        is repeated until a signal arrives.
        """
        self._watched = watched
        decides = run.searches or run.remeasure or run.locate_s
        self.summary = Summary(run, brief=not decides)  # summary of all phases so far
        self._expected, self._collector = Expected(run), Collector(run)
        self._run = run
        self._begun = begun or Begun()
        if begun is not None:
            feed(self.summary, directory.path)
        self._job = job
        self._directory = directory
        self._watcher = watcher
        self._outcome = Outcome()
        self._sent = 0  # number of trials sent
        # per step of a phase, such as `window`: the last (trial, repeat, phase) that entered it
        self._steps: dict[Any, Any] = {}
        self._opened: list[Record] = []  # `port-open` records
        self._unreachable: list[Record] = []
        self._missing: dict[str, Record] = {}  # reports of a missing node, by the reporting node
        self._missed: Node | None = None  # node reported as missing, which ended the run
        # handler of records during a trial in which the device is reset
        self._reset: Callable[[Record], None] | None = None
        self._ending = False  # true: further errors of nodes are consequences of the run's end
        self._has_begun = False  # all nodes have passed the first barrier
        self._disk_is_full = False

    def conduct(
        self, launcher: Launcher, command: Callable[[str], list[str]], interrupt: Interrupt
    ) -> Outcome:
        """Start the nodes, run all trials and end the nodes; return the outcome of the run.

        No node remains when this returns, whatever happens. `command` returns the command line of
        the node with a given name. Errors become faults of the outcome; results written so far
        stay.
        """
        self._launcher, self._interrupt = launcher, interrupt
        try:
            with (
                TableWriter(self._directory.path) as self._tables,
                LineFile(self._directory.path / NODES_LOG) as self._log,
            ):
                try:
                    self._converse(command)
                except SwitchbenchError as error:
                    self._outcome.fail(error)
                finally:
                    for phase in self._collector.rest():
                        self._keep(self._tables.add_phase, phase)
                    self._keep(self._tables.flush)
        except RunError as error:  # the disk is full, and buffered events cannot be written
            self._outcome.fail(error)
        return self._outcome

    # --- exchange with the nodes -------------------------------------------------------------

    def _converse(self, command: Callable[[str], list[str]]) -> None:
        """Start the nodes, run the trials on them, then end them."""
        permit_files(FILES_PER_NODE * len(self._run.site.processes) + FILES_ELSE)
        self._watcher.stage("starting the nodes")
        nodes: list[Node] = []
        for process in self._run.site.processes:
            try:
                popen = self._launcher.start(process, command(process.name))
            except OSError as error:
                end(node.popen for node in nodes)
                raise RunError(f"{process.name} can't be started: {error}") from error
            nodes.append(Node(process, popen))
        # Slow modules are imported while the nodes start: an import during a phase would hold the
        # interpreter's lock and delay heartbeats. The first array of pyarrow imports pandas, too.
        import pyarrow.compute
        import scipy.special  # noqa: F401

        pyarrow.array(np.zeros(1))
        self._nodes = RemoteNodes(nodes, self._take_record, self._take_log, self._idle, self._how)
        self._nodes.wake_on(self._interrupt.fd)
        self._nodes.begin_heartbeats(self._run.site.heartbeat_timeout_ms)
        try:
            self._meet()
            if self._watched:
                self._watch()
            elif self._run.searches:
                self._search()
            else:
                self._measure()
            # All nodes end in order.
            self._watcher.stage("ending the nodes")
            self._nodes.send("quit", True)
            open_outputs = self._nodes.open_outputs
            self._nodes.wait(lambda node: node.name not in open_outputs, "to end", QUIT_TIMEOUT_S)
            if self._unreachable:
                raise RunError(unreachable(self._unreachable))
            self._nodes.wait_for_ends(QUIT_TIMEOUT_S)
            for node in nodes:
                if node.popen.returncode != 0:
                    raise RunError(f"{node.place} {self._how(node)}")
        except MissedError:
            self._ending = True
            self._outcome.fail(self._most_missed())
        except SwitchbenchError as error:
            self._outcome.fail(error)
        finally:
            self._ending = True
            self._keep(self._tables.flush)  # first, because ending a silent node takes seconds
            self._nodes.close()
            # A lost node, not the nodes that miss it, is the reason for the run's end. Others may
            # report it before its connection shows how it ended. A hanging node ends by our own
            # signal, which is not the cause.
            missed = self._missed
            if missed is not None and not missed.signalled:
                status = missed.popen.returncode
                lost = self._launcher.lost(missed.name, status, missed.last_words)
                if lost is None and status is not None and status < 0:  # killed by this controller
                    lost = missed.ended_how()
                if lost is not None:
                    self._outcome.faults[0] = f"{missed.place} {lost}"

    def _idle(self) -> None:
        """Check for signals, write buffered events and update the display during a wait.

        Raise RunError where the run must end.
        """
        if self._interrupt.count > self._watched:  # a watch ends normally at the first signal
            raise RunError(f"interrupted by signal {self._interrupt.name}")
        self._interrupt.drain()
        self._launcher.check()
        self._keep(self._tables.flush)
        self._watcher.turn()

    def _how(self, node: Node) -> str:
        """Return a phrase that says how a node ended, such as `was ended by signal 9`."""
        status = node.popen.returncode
        return self._launcher.lost(node.name, status, node.last_words) or node.ended_how()

    def _meet(self) -> None:
        """Send the job, check the nodes' hello records, and wait for the first barrier."""
        self._nodes.send("job", dict(self._job))
        self._nodes.wait_for("hello", HELLO_TIMEOUT_S)
        hellos = [node.records["hello"] for node in self._nodes.nodes]
        for hello in hellos:
            if hello.get("protocol") != PROTOCOL:
                raise ConfigurationError(
                    f"{hello['node']} uses protocol version {hello.get('protocol')}, but this "
                    f"command uses {PROTOCOL}: install the same version of Switchbench on both"
                )
        networks = {port.name: port.network for port in self._run.site.ports}
        check_addresses(self._opened, networks)
        self._watcher.stage("first barrier")
        self._nodes.send("peers", peers(hellos, secrets.token_bytes(KEY_BYTES)))
        self._nodes.wait_for("ready", self._run.site.barrier_timeout_ms / 1000 + READY_SLACK_S)
        self._has_begun = True

    def _measure(self) -> None:
        """Send all trials in order, but an optional repeat only if the results so far require it.

        At the end, measure tester-limited phases again, because the tester's limit may have been
        temporary. Then run trials that distinguish suspected faults.
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
        # Trials that distinguish suspects, until one remains or the time is up.
        left_s, tried = self._run.locate_s, []
        while left_s is not None and (test := self.summary.locator.location()["next_test"]):
            flows = test["flows"]
            chosen = locating_trial(self._run, flows, test["transport"], test["load"])
            if chosen is None or flows in tried or chosen.expected_s > left_s:
                break
            tried.append(flows)
            left_s -= chosen.expected_s
            self._watcher.stage(f"locating: {test['why']}")
            self._add(replace(self._run, trials=(*self._run.trials, chosen)), chosen)
            self._send(chosen)
            self._await_trials()

    def _search(self) -> None:
        """Send the trials of a suite's searches one by one, each chosen by the results so far."""
        self._watcher.stage("measuring")
        course = replayed(self._run, self.summary.facts)
        if course.trial is not None and course.trial.id != len(self._run.trials):
            raise RunError(
                "the recorded trials differ from those that the search would choose, so the run "
                "can't be continued: start a new run"
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
        """Repeat the run's trial until a signal arrives; trials that were already sent complete."""
        self._watcher.stage("measuring")
        first, number = self._run.trials[0], 0
        try:
            while not self._interrupt.count and number < REPEATS:
                # Trials are added in groups of growing size, so that the plan is rarely written.
                if number == len(self._run.trials):
                    more = [replace(first, id=i, repeat=i) for i in range(number, 2 * number)]
                    self._add(replace(self._run, trials=(*self._run.trials, *more)), *more)
                self._send(self._run.trials[number])
                number += 1
                self._await_trials(behind=1)
            self._await_trials()
        finally:
            self._plan(replace(self._run, trials=self._run.trials[:number]))

    def _plan(self, run: Run) -> None:
        """Replace the run's plan, and write the new plan to the results directory."""
        self._run = run
        self._outcome.trials, self._outcome.again = run.trials, run.again
        write_plan(self._directory.path, run)

    def _add(self, run: Run, *trials: Trial) -> None:
        """Add trials to the run, and write the new plan before the nodes send their records."""
        for trial in trials:
            self._expected.add(trial)
            self.summary.grow(trial)
            self._watcher.grow(trial)
        self._plan(run)

    def _send(self, trial: Trial) -> None:
        """Send a trial to all nodes."""
        self._nodes.send("trial", trial_document(trial))
        self._sent += 1

    def _await_trials(self, behind: int = 0) -> None:
        """Wait until all sent trials, except the last `behind`, have ended on all nodes."""
        barrier_s = self._run.site.barrier_timeout_ms / 1000
        limit_s = max(map(silence_s, self._run.trials)) + 3 * barrier_s + SILENCE_SLACK_S
        self._nodes.wait(
            lambda node: node.trials_ended >= self._sent - behind, "to end its trials", limit_s
        )

    # --- what nodes say ----------------------------------------------------------------------

    def _take_record(self, node: Node, line: bytes) -> None:
        """Parse a line of a node's standard output, and store and handle its record."""
        try:
            record = parse(line)
            if record.get("node") != node.name:
                raise DamagedRecord(f"the record has another node's name, {record.get('node')!r}")
            self._expected.check(record)
            # Its phases go to the tables, and completed phases to the summary.
            for phase in self._collector.take(record):
                self._keep(self._tables.add_phase, phase)
                self.summary.take_phase(PhaseRows.of(phase))
            if record["type"] == "progress":
                # The first report of a phase's new step: rates are live.
                keys = ("type", "node", "trial", "repeat", "phase")
                event, step = {key: record.get(key) for key in keys}, record.get("step")
                moment = (event["trial"], event["repeat"], event["phase"])
                if self._steps.get(step) != moment:
                    self._steps[step] = moment
                    self._keep(self._tables.add_event, event | {"step": step})
            elif is_event(record):
                self._keep(self._tables.add_event, record)
                self.summary.take(record)
            if record["type"] == "trial":
                self.summary.close_ended()
            self._watcher.record(record)
        except DamagedRecord as error:
            self._fault(RunError(f"{node.place} wrote an invalid record: {line[:120]!r}: {error}"))
            return
        except RunError as error:  # a sum is too large for its table column
            self._fault(error)
            return
        kind = record["type"]
        node.keep(record)
        if self._reset is not None:
            self._reset(record)
        if kind == "port-open" and not self._has_begun:
            self._opened.append(record)
        elif kind == "unreachable":
            self._unreachable.append(record)
        elif kind == "trial":
            node.trials_ended += 1
        elif kind == "error":
            text = record.get("text") or "the node can't continue the run"
            self._fault(_error(f"{node.place}: {text}", record))
        elif kind == "missing":
            self._missing.setdefault(node.name, record)
            if not self._ending:
                raise self._missing_of(record)

    def _take_log(self, node: Node, line: bytes) -> None:
        """Write a line of a node's standard error to the log of the run's nodes."""
        text = printable(line.decode(errors="replace").rstrip())
        if text:
            node.last_words.append(text)
        self._keep(self._log.write, f"{node.name}: {text}\n".encode())

    def _keep(self, write: Callable[..., None], *what: object) -> None:
        """Call the function `write` for results, unless an earlier call failed (disk full).

        Raise the RunError of a failed call; while the run ends, add it to the faults instead.
        """
        if self._disk_is_full:
            return
        try:
            write(*what)
        except RunError as error:
            self._disk_is_full = True
            if not self._ending:
                raise
            self._outcome.fail(error)

    def _most_missed(self) -> SwitchbenchError:
        """Return the error about the node that most other nodes report as missing.

        An isolated node reports all other nodes as missing; the others report the isolated node.
        """
        deadline_s = time.monotonic() + AGREE_TIMEOUT_S
        while True:
            names = Counter(str(record.get("missing_node")) for record in self._missing.values())
            [(who, count)] = names.most_common(1)
            if count > 1 or len(self._missing) == len(self._nodes.nodes):
                break
            if not self._nodes.open_outputs or time.monotonic() > deadline_s:
                break
            self._nodes.turn()
        said = [one for one in self._missing.values() if one.get("missing_node") == who]
        return self._missing_of(said[0])

    def _missing_of(self, record: Record) -> SwitchbenchError:
        """Return the error for a node's record `missing`, and store the node that is missing."""
        who = record.get("missing_node")
        self._missed = next((node for node in self._nodes.nodes if node.name == who), None)
        place = self._missed.place if self._missed else str(who)
        text = record.get("text") or f"did not reach barrier {record.get('barrier')}"
        said = text.removeprefix(f"{who} ")
        if self._missed is None or record.get("status") == 2:
            return _error(f"{place} {said}", record)
        kind = RunError if record.get("gave_up") else MissedError
        return kind(f"{place} {said}")

    def _fault(self, error: SwitchbenchError) -> None:
        """Raise `error`, unless the run is ending: errors are then consequences of its end."""
        if not self._ending:
            raise error


def permit_files(count: int) -> None:
    """Raise this process's limit of open files to `count`, within the hard limit.

    A shell's soft limit of 1,024 is reached by 300 nodes.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if resource.RLIM_INFINITY != soft < count:
        most = count if hard == resource.RLIM_INFINITY else min(count, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, most), hard))


def silence_s(trial: Trial) -> float:
    """Return the seconds that a node may work on one phase of a trial without sending a record."""
    phase_s = trial.warmup_s + trial.window_s + trial.cooldown_s + trial.drain_max_s
    timed = trial.traffic in ("stream", "pingpong")
    return phase_s if timed else max(phase_s, trial.expected_s)


def _error(text: str, record: Record) -> SwitchbenchError:
    """Return the exception for a node's error record: ConfigurationError or RunError by status."""
    return ConfigurationError(text) if record.get("status") == 2 else RunError(text)


# --- checks ---------------------------------------------------------------------------------------
# Checks of nodes and ports before the first trial.


PAIRS_SHOWN = 6

_NO_ADDRESSES = ("", "00:00:00:00:00:00")


def peers(hellos: Sequence[Record], key: bytes) -> dict[str, object]:
    """Return the `peers` document: all nodes' addresses, and the run's key sealed for each node."""
    sealed = []
    for hello in hellos:
        try:
            box = SealedBox(PublicKey(b64decode(hello["key"])))
            sealed.append(b64encode(box.encrypt(key)).decode())
        except (CryptoError, ValueError) as error:
            raise RunError(f"{hello['node']} sent no valid public key: {error}") from error
    return {"addresses": [hello["control"] for hello in hellos], "sealed_keys": sealed}


def check_addresses(opened: Iterable[Record], networks: Mapping[str, str]) -> None:
    """Raise ConfigurationError where two ports of one network have the same address."""
    owners: dict[tuple[str, str], str] = {}
    for record in opened:
        port = record["port"]
        for kind in ("mac", "ipv4", "ipv6"):
            address = record.get(kind)
            if not address or address in _NO_ADDRESSES:
                continue
            owner = owners.setdefault((networks.get(port, ""), address.lower()), port)
            if owner != port:
                raise ConfigurationError(
                    f"{owner} and {port} have the same address {address}: give each port its own"
                )


def unreachable(records: Sequence[Record]) -> str:
    """Return the message that names unreachable pairs of ports and the trials not started.

    The message names only the first pairs; the summary has all of them.
    """
    trials = sorted({record["trial"] for record in records})
    pairs = sorted({(record["src"], record["dst"]) for record in records})
    shown = ", ".join(f"{src} -> {dst}" for src, dst in pairs[:PAIRS_SHOWN])
    more = f" and {len(pairs) - PAIRS_SHOWN} more" if len(pairs) > PAIRS_SHOWN else ""
    words = "trials" if len(trials) > 1 else "trial"
    return (
        f"{words} {', '.join(map(str, trials))} not started: "
        f"no connectivity probe arrived for {shown}{more}"
    )


# --- device reset ---------------------------------------------------------------------------------
# The command that resets the device under test in the middle of a suite's trial.


PART = 0.25  # share of the window that has passed when the device is reset


def _reset(asked: DeviceReset) -> None:
    """Run the command that resets the device under test; RunError if it fails or is too slow."""
    name = asked.command[0]
    try:
        done = subprocess.run(
            asked.command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=asked.timeout_s,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise RunError(f"device_reset: {name} took more than {asked.timeout_s:g} s") from None
    except OSError as error:
        raise RunError(f"device_reset: {name} can't be run: {error.strerror}") from error
    if done.returncode != 0:
        said = done.stderr.decode(errors="replace").strip().splitlines()
        words = f": {said[-1]}" if said else ""
        raise RunError(f"device_reset: {name} ended with status {done.returncode}{words}")


@contextmanager
def device_reset(command: DeviceReset, trial: Trial) -> Iterator[Callable[[Record], None]]:
    """Reset the device under test during a trial's window; yield a handler of nodes' records.

    The handler starts a timer when the window opens, and the timer runs the reset command. On exit,
    raise RunError where the command failed, or did not run before the trial ended.
    """
    errors = [RunError("device_reset: the trial ended before its command was run: raise reset_s")]

    def run() -> None:
        try:
            _reset(command)
            errors.clear()
        except RunError as error:
            errors[:] = [error]

    timer = threading.Timer(PART * trial.window_s, run)

    def take(record: Record) -> None:
        """Start the timer of the reset command at the first record from the trial's window."""
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
