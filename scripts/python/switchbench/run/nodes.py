# SPDX-License-Identifier: BSD-3-Clause
"""Node processes of a run: their non-blocking input and output, heartbeats and termination."""

from __future__ import annotations

import os
import selectors
import signal
import subprocess
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from types import FrameType

from ..base.errors import RunError, SwitchbenchError
from ..base.model import Process
from ..base.programs import Handled
from ..plan.documents import to_line
from ..records.schema import LONGEST_LINE, TYPES, Record
from .launch.far import pipe_of

_CHUNK = 1 << 16
_LAST_WORDS = 5  # number of log lines that are shown when a node dies


class Node:
    """Node process of a run; documents for it are queued, and written as its pipe accepts them.

    `send` and `beat` may be called by any thread, other methods only by the controller's thread.
    """

    def __init__(self, process: Process, popen: subprocess.Popen[bytes]) -> None:
        """Store a started process, and make its pipes non-blocking."""
        self.process = process
        self.name = process.name  # name in the job
        self.popen = popen
        self.input, self.output, self.log = map(pipe_of, (popen.stdin, popen.stdout, popen.stderr))
        for pipe in (self.input, self.output, self.log):
            os.set_blocking(pipe.fileno(), False)
        self.records: dict[str, Record] = {}  # last record of each known type
        self.trials_ended = 0
        self.last_record_s = 0.0  # time of its last record (monotonic)
        self.signalled = False  # true: the controller has sent a signal to end the node
        self.last_words: deque[str] = deque(maxlen=_LAST_WORDS)
        self._lock = threading.Lock()
        self._queue: deque[bytes] = deque()  # documents to be written
        self._beat = b""
        self._rest = b""  # rest of the document that is being written
        self._parts = {self.output: b"", self.log: b""}

    @property
    def place(self) -> str:
        """Return the node's name, with its switches and switch ports where these are known."""
        ports = self.process.ports
        wired = [" ".join(filter(None, (port.switch, port.switch_port))) for port in ports]
        words = ", ".join(filter(None, wired))
        return f"{self.name} ({words})" if words else self.name

    def keep(self, record: Record) -> None:
        """Store a record of the node, if its type is known."""
        self.last_record_s = time.monotonic()
        if record["type"] in TYPES:
            self.records[record["type"]] = record

    def read(self, pipe: object) -> list[bytes] | None:
        """Return the complete lines received on one of the node's pipes; None at the pipe's end."""
        stream = self.output if pipe is self.output else self.log
        try:
            chunk = os.read(stream.fileno(), _CHUNK)
        except BlockingIOError:
            return []
        if not chunk:
            rest, self._parts[stream] = self._parts[stream], b""
            return [rest + b"\n"] if rest and stream is self.log else None
        *lines, rest = (self._parts[stream] + chunk).split(b"\n")
        if len(rest) > LONGEST_LINE:  # neither a record nor a log line: an error message follows
            lines, rest = [*lines, rest], b""
        self._parts[stream] = rest
        return [line + b"\n" for line in lines]

    def send(self, text: bytes) -> None:
        """Queue a document for the node; write as much as the pipe accepts now."""
        with self._lock:
            self._queue.append(text)
            self._write()

    def beat(self, text: bytes) -> None:
        """Send a heartbeat, before any waiting document but never inside one.

        A heartbeat that the pipe has not accepted yet is replaced: an old one has no value.
        """
        with self._lock:
            self._beat = text
            self._write()

    def flush(self) -> None:
        """Write queued documents and heartbeats, as much as the pipe accepts now."""
        with self._lock:
            self._write()

    def end_input(self) -> None:
        """Close the node's input; the node then stops its traffic at once and ends."""
        with self._lock:
            self.input.close()

    @property
    def waiting(self) -> bool:
        """Return true while documents or heartbeats wait to be written to the node."""
        return not self.input.closed and bool(self._rest or self._queue or self._beat)

    def _write(self) -> None:
        """Write heartbeat and documents as far as the pipe accepts; the caller holds the lock."""
        while not self.input.closed:
            if not self._rest:
                self._rest, self._beat = self._beat, b""
            if not self._rest:
                if not self._queue:
                    return
                self._rest = self._queue.popleft()
            try:
                self._rest = self._rest[os.write(self.input.fileno(), self._rest) :]
            except BlockingIOError:
                return
            except BrokenPipeError:  # the node has ended; its output has the reason
                self.input.close()

    def ended_how(self) -> str:
        """Return a phrase that says how the node ended: status or signal, last lines of its log."""
        status = self.popen.returncode
        if status is None:
            words = "closed its output"
        elif status < 0:
            words = f"was ended by signal {-status} ({signal.strsignal(-status)})"
        else:
            words = f"ended with status {status}"
        tail = " | ".join(self.last_words)
        return f"{words}; the last lines of its log: {tail}" if tail else words


# --- all nodes ------------------------------------------------------------------------------------


LineTaker = Callable[[Node, bytes], None]

BEATS_PER_TIMEOUT = 5  # heartbeats per heartbeat timeout
_TURN_S = 0.25  # maximum wait for data, after which time limits are checked
_LOOK_S = 0.1  # minimum interval between checks of the nodes

# The loop first sleeps while records of many nodes arrive. With 1,024 nodes, a wake-up per record
# costs more than reading the record.
_GATHER_S = 20e-6  # per node
_GATHER_MAX_S = 0.02

# Time limits for nodes to end.
STOP_TIMEOUT_S = 5.0  # by themselves, after their measurements are written
SIGNAL_TIMEOUT_S = 2.0  # after each signal
REAP_TIMEOUT_S = 1.0  # for the last lines of an ended node
_END_TURN_S = 0.01  # poll interval, because the end of a process does not wake the loop


class RemoteNodes:
    """Nodes of a run, with one loop that reads their pipes and a thread for heartbeats."""

    def __init__(
        self,
        nodes: Sequence[Node],
        record: LineTaker,
        log: LineTaker,
        idle: Callable[[], None] = lambda: None,
        how: Callable[[Node], str] = Node.ended_how,
    ) -> None:
        """Store the nodes; `record` handles each line of standard output, `log` of standard error.

        `idle` is called repeatedly during a wait, and its error ends the wait; `how` returns in
        words how a node ended.
        """
        self.nodes = nodes
        self.open_outputs = {node.name for node in nodes}  # names of nodes
        self._takers = record, log
        self._idle, self._how = idle, how
        self._gather_s = min(len(nodes) * _GATHER_S, _GATHER_MAX_S)
        self._unsent: set[str] = set()  # nodes whose pipe has not accepted a document yet
        self._selector = selectors.DefaultSelector()
        for node in nodes:
            self._selector.register(node.output, selectors.EVENT_READ, node)
            self._selector.register(node.log, selectors.EVENT_READ, node)
        self._beats_end = threading.Event()
        self._heart: threading.Thread | None = None

    def begin_heartbeats(self, timeout_ms: int) -> None:
        """Send heartbeats from a separate thread, so that nothing delays them."""
        interval_s = timeout_ms / 1000 / BEATS_PER_TIMEOUT

        def beat() -> None:
            number = 0
            while not self._beats_end.is_set():
                for node in self.nodes:
                    node.beat(b'{"heartbeat": %d}\n' % number)
                number += 1
                self._beats_end.wait(interval_s)

        self._heart = threading.Thread(target=beat, name="heart", daemon=True)
        self._heart.start()

    def wake_on(self, fd: int) -> None:
        """Make the loop wake up when the file descriptor `fd` is readable."""
        self._selector.register(fd, selectors.EVENT_READ)

    def send(self, kind: str, content: object) -> None:
        """Send a document to all nodes.

        Data that a pipe does not accept now are written by later calls of `turn`.
        """
        text = to_line(kind, content).encode()
        for node in self.nodes:
            node.send(text)
            if node.waiting and node.name not in self._unsent:
                self._unsent.add(node.name)
                self._selector.register(node.input, selectors.EVENT_WRITE, node)

    def turn(self, limit_s: float = _TURN_S) -> bool:
        """Handle data from nodes, waiting at most `limit_s` for them; return true if any came."""
        if limit_s > self._gather_s:
            time.sleep(self._gather_s)
            limit_s -= self._gather_s
        moves = [key for key, _ in self._selector.select(limit_s) if key.data is not None]
        for key in moves:
            node: Node = key.data
            if key.fileobj is node.input:
                node.flush()
                if not node.waiting:
                    self._forget_input(node)
                continue
            lines = node.read(key.fileobj)
            if lines is None:
                self._selector.unregister(key.fileobj)
                if key.fileobj is node.output:
                    self.open_outputs.discard(node.name)
            for line in lines or ():
                self._takers[key.fileobj is node.log](node, line)
        return bool(moves)

    def _forget_input(self, node: Node) -> None:
        """Remove a node's input from the pipes that the loop watches for room to write."""
        if node.name in self._unsent:
            self._unsent.remove(node.name)
            self._selector.unregister(node.input)

    def _end_input(self, node: Node) -> None:
        """Close a node's input; the node then stops its traffic at once and ends."""
        self._forget_input(node)
        node.end_input()

    # --- waiting for nodes -----------------------------------------------------------------------

    def wait_for(self, kind: str, limit_s: float) -> None:
        """Wait until all nodes have sent a record of type `kind`."""
        self.wait(lambda node: kind in node.records, f"to send its {kind}", limit_s)

    def wait(self, done: Callable[[Node], bool], what: str, limit_s: float) -> None:
        """Wait until `done` is true for all nodes.

        Raise RunError where a node ends before, or sends no record for `limit_s`; `what` says in
        words what the controller waits for.
        """
        begin_s = looked_s = time.monotonic()
        while not all(map(done, self.nodes)):
            self._idle()
            if len(self.open_outputs) < len(self.nodes):
                self._check_ends(done)
            now_s = time.monotonic()
            if now_s - looked_s > _LOOK_S:
                looked_s = now_s
                late = [
                    node
                    for node in self.nodes
                    if not done(node) and max(begin_s, node.last_record_s) < now_s - limit_s
                ]
                if late:
                    raise RunError(_late(late, what, limit_s))
            self.turn()

    def wait_for_ends(self, limit_s: float) -> None:
        """Wait until all node processes have ended, and read their logs meanwhile.

        A process would block on a full pipe if its log were not read.
        """
        deadline_s = time.monotonic() + limit_s
        while left := [node for node in self.nodes if node.popen.poll() is None]:
            self._idle()
            if time.monotonic() > deadline_s:
                raise RunError(_late(left, "to end (its output is closed)", limit_s))
            self.turn(_END_TURN_S)

    def _check_ends(self, done: Callable[[Node], bool]) -> None:
        """Raise RunError where a node has ended before `done` was true for it."""
        for gone in self.nodes:
            if gone.name in self.open_outputs or done(gone):
                continue
            for node in self.nodes:
                self._end_input(node)  # traffic stops before the cause is determined
            # Wait for the node's last records, which are more exact than other nodes' reports.
            deadline_s = time.monotonic() + REAP_TIMEOUT_S
            while gone.popen.poll() is None and time.monotonic() < deadline_s:
                with suppress(SwitchbenchError):
                    self.turn()
            with suppress(SwitchbenchError):
                self.turn()
            self._idle()  # raises first where a modelled switch has ended, which ends nodes, too
            raise RunError(f"{gone.place} {self._how(gone)}")

    def close(self) -> None:
        """End all nodes: close their inputs, then send SIGTERM and SIGKILL, with time limits.

        The nodes' last lines are read, and all pipes are closed.
        """
        self._beats_end.set()
        if self._heart is not None:
            self._heart.join()
        for act, limit_s in (
            (self._end_input, STOP_TIMEOUT_S),
            (lambda node: self._signal(node, signal.SIGTERM), SIGNAL_TIMEOUT_S),
            (lambda node: self._signal(node, signal.SIGKILL), SIGNAL_TIMEOUT_S),
        ):
            running = [node for node in self.nodes if node.popen.poll() is None]
            for node in running:
                act(node)
            deadline_s = time.monotonic() + limit_s
            while time.monotonic() < deadline_s and (
                self.open_outputs or any(node.popen.poll() is None for node in running)
            ):
                self.turn()
        deadline_s = time.monotonic() + REAP_TIMEOUT_S
        while self.turn(0) and time.monotonic() < deadline_s:
            pass
        self._selector.close()
        for node in self.nodes:
            for pipe in (node.input, node.output, node.log):
                pipe.close()

    @staticmethod
    def _signal(node: Node, number: int) -> None:
        """Send a signal to a node's process on this machine (the node itself, or ssh)."""
        node.signalled = True
        node.popen.send_signal(number)


def _late(nodes: Sequence[Node], what: str, limit_s: float) -> str:
    """Return the error message about nodes that exceeded a time limit of the controller."""
    names = ", ".join(node.place for node in nodes)
    words = next((node.last_words[-1] for node in nodes if node.last_words), None)
    tail = f"; last line of its log: {words}" if words else ""
    return f"waited {limit_s:.0f} s for {names} {what}{tail}"


# --- interrupt ------------------------------------------------------------------------------------


class Interrupt(Handled):
    """Context in which SIGINT, SIGTERM and SIGHUP only set `name` and make `fd` readable.

    The controller checks for these signals where the run can end cleanly.
    """

    def __init__(self) -> None:
        """Prepare to record signals; their handlers are installed only on entry."""
        super().__init__(self._note)
        self.name: str | None = None
        self.count = 0  # number of signals
        self.fd, self._write_fd = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)

    def drain(self) -> None:
        """Empty the pipe to which the signal handler writes."""
        with suppress(BlockingIOError):
            os.read(self.fd, _CHUNK)

    def __exit__(self, *_: object) -> None:
        """Restore the handlers, and close the pipe."""
        super().__exit__()
        os.close(self.fd)
        os.close(self._write_fd)

    def _note(self, number: int, _frame: FrameType | None) -> None:
        self.name = signal.Signals(number).name
        self.count += 1
        os.write(self._write_fd, b"!")
