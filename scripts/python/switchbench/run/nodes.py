# SPDX-License-Identifier: BSD-3-Clause
"""One node process as the controller sees it: three pipes, none of which ever blocks it."""

from __future__ import annotations

import os
import selectors
import signal
import subprocess
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from threading import Lock
from types import FrameType
from typing import Protocol

from ..base.errors import RunError, SwitchbenchError
from ..base.model import Process, Trial
from ..base.programs import Handled
from ..records.record_forms import LONGEST_LINE, TYPES, Record
from .launch.far import FarProcess

_CHUNK = 1 << 16
_LAST_WORDS = 5  # lines of its log that are shown when it dies


class Node:
    """A running node. Documents are queued and written as its pipe takes them.

    `send` and `beat` may be called by different threads; all else by the controller's.
    """

    def __init__(self, process: Process, popen: subprocess.Popen[bytes]) -> None:
        """Take over the process's pipes."""
        if popen.stdin is None or popen.stdout is None or popen.stderr is None:
            raise ValueError("a node needs three pipes")
        self.process = process
        self.name = process.name  # in the job
        self.popen = popen
        self.input = popen.stdin
        self.output = popen.stdout
        self.log = popen.stderr
        for pipe in (self.input, self.output, self.log):
            os.set_blocking(pipe.fileno(), False)
        self.said: dict[str, Record] = {}  # the last record of each known type
        self.trials_ended = 0
        self.heard_s = 0.0  # when it last wrote a record (monotonic)
        self.signalled = False  # by us: how it ended then says nothing of why
        self.last_words: deque[str] = deque(maxlen=_LAST_WORDS)
        self._lock = Lock()
        self._queue: deque[bytes] = deque()
        self._current = b""
        self._beat = b""
        self._parts = {self.output.fileno(): b"", self.log.fileno(): b""}

    @property
    def place(self) -> str:
        """Its name for people, with switch and switch port where the wiring is known."""
        wired = [
            " ".join(word for word in (port.switch, port.switch_port) if word)
            for port in self.process.ports
        ]
        words = ", ".join(word for word in wired if word)
        return f"{self.name} ({words})" if words else self.name

    def send(self, text: bytes) -> None:
        """Queues a document and writes what the pipe takes now."""
        with self._lock:
            self._queue.append(text)
            self._write()

    def beat(self, text: bytes) -> None:
        """Send a heartbeat, before any document that waits but never inside one.

        A beat that the pipe did not take yet is replaced: an old one says nothing.
        """
        with self._lock:
            self._beat = text
            self._write()

    def hear(self, record: Record) -> None:
        """Take a record of it. Of types that nobody knows it may write any number."""
        self.heard_s = time.monotonic()
        if record["type"] in TYPES:
            self.said[record["type"]] = record

    def flush(self) -> None:
        """Write what the pipe takes now."""
        with self._lock:
            self._write()

    @property
    def waiting(self) -> bool:
        """Whether something is left to be written."""
        return bool(self._current or self._queue or self._beat)

    def end_input(self) -> None:
        """End of file: the node stops its traffic at once and ends."""
        with self._lock:
            self._forget()
            if not self.input.closed:
                self.input.close()

    def read(self, fd: int) -> list[bytes] | None:
        """Return the whole lines that came on one of its pipes, ends included; None at its end."""
        try:
            chunk = os.read(fd, _CHUNK)
        except BlockingIOError:
            return []
        if not chunk:
            rest, self._parts[fd] = self._parts[fd], b""
            return [rest + b"\n"] if rest and fd == self.log.fileno() else None
        *lines, rest = (self._parts[fd] + chunk).split(b"\n")
        if len(rest) > LONGEST_LINE:  # no record, and no log: what is there is said to be none
            lines, rest = [*lines, rest], b""
        self._parts[fd] = rest
        return [line + b"\n" for line in lines]

    def ended_how(self) -> str:
        """In words, once it has ended: its status or signal, and its log's last lines."""
        status = self.popen.returncode
        lost = self.popen.lost(self.last_words) if isinstance(self.popen, FarProcess) else None
        if lost is not None:
            return lost
        if status is None:
            words = "closed its output"
        elif status < 0:
            number = -status
            words = f"was ended by signal {number} ({signal.strsignal(number)})"
        else:
            words = f"ended with status {status}"
        tail = " | ".join(self.last_words)
        return f"{words}; its last words: {tail}" if tail else words

    def _write(self) -> None:
        if self.input.closed:
            self._forget()
            return
        while True:
            if not self._current:
                if self._beat:
                    self._current, self._beat = self._beat, b""
                elif self._queue:
                    self._current = self._queue.popleft()
                else:
                    return
            try:
                done = os.write(self.input.fileno(), self._current)
            except BlockingIOError:
                return
            except BrokenPipeError:  # it has ended: its output says how
                self._forget()
                return
            self._current = self._current[done:]

    def _forget(self) -> None:
        self._queue.clear()
        self._current = self._beat = b""


# --- pump -----------------------------------------------------------------------------------------
# One loop over the pipes of all nodes.


LineTaker = Callable[[Node, bytes], None]

_TURN_S = 0.25  # at most, so that limits of time are looked at

# What many nodes say is gathered for a moment: to wake for each record of 1,024 nodes, which come
# at any time, costs more than to read it.
_GATHER_S = 20e-6  # for each node
_GATHER_MAX_S = 0.02


class Pump:
    """Moves lines from the nodes to their takers, and queued documents to the nodes."""

    def __init__(self, nodes: Sequence[Node], record: LineTaker, log: LineTaker) -> None:
        """`record` and `log` take each whole line of standard output and standard error."""
        self._selector = selectors.DefaultSelector()
        self._gather_s = min(len(nodes) * _GATHER_S, _GATHER_MAX_S)
        self._nodes = nodes
        self._unsent: set[str] = set()  # nodes whose pipe did not take a document yet
        self._takers = {"output": record, "log": log}
        self.speaking: set[str] = set()  # nodes whose standard output is open
        for node in nodes:
            self._selector.register(node.output, selectors.EVENT_READ, (node, "output"))
            self._selector.register(node.log, selectors.EVENT_READ, (node, "log"))
            self.speaking.add(node.name)

    def wake_on(self, fd: int) -> None:
        """End a turn when this is readable."""
        self._selector.register(fd, selectors.EVENT_READ, None)

    def tell(self, node: Node, text: bytes) -> None:
        """Send a document; what the pipe does not take now follows in later turns."""
        node.send(text)
        if node.waiting and node.name not in self._unsent:
            self._unsent.add(node.name)
            self._selector.register(node.input, selectors.EVENT_WRITE, (node, "input"))

    def turn(self, limit_s: float = _TURN_S) -> bool:
        """Wait, `limit_s` at most, for something to move, and move it; whether anything did."""
        if limit_s > self._gather_s:
            time.sleep(self._gather_s)
            limit_s -= self._gather_s
        moves = [key for key, _ in self._selector.select(limit_s) if key.data is not None]
        for key in moves:
            node, what = key.data
            if what == "input":
                self._flush(node)
            else:
                self._read(node, what)
        return bool(moves)

    def end_input(self, node: Node) -> None:
        """No more for this node: it stops its traffic at once and ends."""
        self._forget(node)
        node.end_input()

    def close(self) -> None:
        """Let go of the pipes."""
        self._selector.close()
        for node in self._nodes:
            for pipe in (node.output, node.log):
                pipe.close()
            node.end_input()

    def _flush(self, node: Node) -> None:
        node.flush()
        if not node.waiting:
            self._forget(node)

    def _forget(self, node: Node) -> None:
        if node.name in self._unsent:
            self._unsent.remove(node.name)
            self._selector.unregister(node.input)

    def _read(self, node: Node, what: str) -> None:
        stream = node.output if what == "output" else node.log
        lines = node.read(stream.fileno())
        if lines is None:
            self._selector.unregister(stream)
            if what == "output":
                self.speaking.discard(node.name)
            return
        for line in lines:
            self._takers[what](node, line)


# --- heart ----------------------------------------------------------------------------------------
# Heartbeats: a thread that does nothing else, so that nothing else can delay them.


BEATS_PER_TIMEOUT = 5


class Heart:
    """Sends `heartbeat: N` to every node five times in the time after which they would give up."""

    def __init__(self, nodes: Sequence[Node], heartbeat_timeout_ms: int) -> None:
        """Do nothing before `start`."""
        self._nodes = nodes
        self._interval_s = heartbeat_timeout_ms / 1000 / BEATS_PER_TIMEOUT
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._beat, name="heart", daemon=True)

    def start(self) -> None:
        """Begins to beat."""
        self._thread.start()

    def stop(self) -> None:
        """End the beat; return when it has ended."""
        self._stopped.set()
        if self._thread.ident is not None:
            self._thread.join()

    def _beat(self) -> None:
        number = 0
        while not self._stopped.is_set():
            text = b"heartbeat: %d\n...\n" % number
            for node in self._nodes:
                node.beat(text)
            number += 1
            self._stopped.wait(self._interval_s)


# --- interrupt ------------------------------------------------------------------------------------
# Ctrl-C and its like, noted and acted upon where the run can end in order.


class Interrupt(Handled):
    """While entered, the signals only set `name` and make `fd` readable."""

    def __init__(self) -> None:
        """Nothing is changed before it is entered."""
        super().__init__(self._note)
        self.name: str | None = None
        self.fd, self._write_fd = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)

    def __exit__(self, *_: object) -> None:
        """Close the pipe too."""
        super().__exit__()
        os.close(self.fd)
        os.close(self._write_fd)

    def _note(self, number: int, _frame: FrameType | None) -> None:
        self.name = signal.Signals(number).name
        os.write(self._write_fd, b"!")


# --- ending ---------------------------------------------------------------------------------------
# How node processes end: by themselves, then by a signal.


STOP_TIMEOUT_S = 5.0  # for what was measured to be written

SIGNAL_TIMEOUT_S = 2.0

REAP_TIMEOUT_S = 1.0

END_TURN_S = 0.01  # a process's end wakes nobody


def abandon(nodes: Sequence[Node]) -> None:
    """End what was started when the rest can't be."""
    for node in nodes:
        node.popen.kill()
        node.popen.wait()


def end_nodes(nodes: Sequence[Node], pump: Pump) -> None:
    """End all nodes within bounds: end of input, then signals. Read on to their last words."""
    for act, limit_s in (
        (pump.end_input, STOP_TIMEOUT_S),
        (_terminate, SIGNAL_TIMEOUT_S),
        (_kill, SIGNAL_TIMEOUT_S),
    ):
        running = [node for node in nodes if node.popen.poll() is None]
        for node in running:
            act(node)
        deadline = time.monotonic() + limit_s
        while time.monotonic() < deadline and (
            pump.speaking or any(node.popen.poll() is None for node in running)
        ):
            pump.turn()
    deadline = time.monotonic() + REAP_TIMEOUT_S
    while pump.turn(0) and time.monotonic() < deadline:
        pass


def _terminate(node: Node) -> None:
    node.signalled = True
    node.popen.terminate()


def _kill(node: Node) -> None:
    node.signalled = True
    node.popen.kill()


# --- talk -----------------------------------------------------------------------------------------
# What nodes say while a trial goes on.


LOOK_S = 0.1  # so often, at most, each node is looked at


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


class Checked(Protocol):
    """What may break while nodes run."""

    def check(self) -> None:
        """RunError when it has."""


class LostError(RunError):
    """Nodes that are not there any more, or don't answer."""

    def __init__(self, text: str, nodes: Mapping[str, str]) -> None:
        """Take what a person is told, and what has become of each node."""
        super().__init__(text)
        self.nodes = dict(nodes)


class MissedError(LostError):
    """A node that another one waited for in vain."""


class Talk:
    """Waiting for all nodes, with the ways in which waiting can end badly."""

    def __init__(
        self,
        nodes: Sequence[Node],
        pump: Pump,
        interrupt: Interrupt,
        watcher: Watcher,
        places: Sequence[Checked],
    ) -> None:
        self.pump = pump
        self._places = places
        self._nodes = nodes
        self._interrupt = interrupt
        self._watcher = watcher

    def tell_all(self, texts: Iterable[str]) -> None:
        """Tell all nodes these documents."""
        for document in [text.encode() for text in texts]:
            for node in self._nodes:
                self.pump.tell(node, document)

    def wait_for(self, kind: str, limit_s: float) -> None:
        """Wait until all nodes have said it."""
        self.wait(lambda node: kind in node.said, f"to say {kind}", limit_s)

    def wait(self, done: Callable[[Node], bool], what: str, limit_s: float) -> None:
        """Until it is done at all nodes; none of them may be silent for `limit_s`."""
        begin_s = looked_s = time.monotonic()
        while not all(map(done, self._nodes)):
            self._heed_interrupt()
            self._check_places()
            if len(self.pump.speaking) < len(self._nodes):
                self._check_ends(done)
            if time.monotonic() - looked_s > LOOK_S:
                looked_s = time.monotonic()
                left = [node for node in self._nodes if not done(node)]
                _check_silence(left, what, begin_s, limit_s)
            self.pump.turn()
            self._watcher.turn()

    def wait_for_ends(self, limit_s: float) -> None:
        """Until all processes have ended; reads on: a log that nobody reads would keep one."""
        deadline = time.monotonic() + limit_s
        while left := [node for node in self._nodes if node.popen.poll() is None]:
            self._heed_interrupt()
            if time.monotonic() > deadline:
                raise RunError(_late(left, "to end (its output is closed)", limit_s))
            self.pump.turn(END_TURN_S)

    def _check_ends(self, done: Callable[[Node], bool]) -> None:
        """LostError where a node has ended before it was done."""
        for gone in self._nodes:
            if gone.name in self.pump.speaking or done(gone):
                continue
            for node in self._nodes:
                self.pump.end_input(node)  # traffic stops before anybody asks why
            why = self._reap(gone)
            self._check_places()  # a node may end because its switch did
            raise LostError(f"{gone.place} {why}", {gone.name: why})

    def _check_places(self) -> None:
        for place in self._places:
            place.check()

    def _heed_interrupt(self) -> None:
        if self._interrupt.name is not None:
            raise RunError(f"interrupted ({self._interrupt.name})")

    def _reap(self, node: Node) -> str:
        """Return how a node that closed its output ended.

        It is given a moment for its last words.
        """
        deadline = time.monotonic() + REAP_TIMEOUT_S
        while node.popen.poll() is None and time.monotonic() < deadline:
            with suppress(SwitchbenchError):  # what others say of it: this one knows better
                self.pump.turn()
        with suppress(SwitchbenchError):
            self.pump.turn()
        return node.ended_how()


def _check_silence(nodes: Sequence[Node], what: str, begin_s: float, limit_s: float) -> None:
    oldest_s = time.monotonic() - limit_s
    late = [node for node in nodes if max(begin_s, node.heard_s) < oldest_s]
    if late:
        silent = f"was silent for {limit_s:.0f} s"
        raise LostError(_late(late, what, limit_s), {node.name: silent for node in late})


def _late(nodes: Sequence[Node], what: str, limit_s: float) -> str:
    names = ", ".join(node.place for node in nodes)
    words = next((node.last_words[-1] for node in nodes if node.last_words), None)
    tail = f"; last words: {words}" if words else ""
    return f"waited {limit_s:.0f} s for {names} {what}{tail}"
