# SPDX-License-Identifier: BSD-3-Clause
"""The node processes of a run: their pipes, which never block the controller, and their ends."""

from __future__ import annotations

import os
import selectors
import signal
import subprocess
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from types import FrameType

from ..base.errors import RunError, SwitchbenchError
from ..base.model import Process
from ..base.programs import Handled
from ..plan.documents import to_line
from ..records.record_forms import LONGEST_LINE, TYPES, Record
from .launch.far import pipe_of

_CHUNK = 1 << 16
_LAST_WORDS = 5  # lines of its log that are shown when it dies


class LostError(RunError):
    """Nodes that are not there any more, or don't answer."""

    def __init__(self, text: str, nodes: Mapping[str, str]) -> None:
        """Take what a person is told, and what has become of each node."""
        super().__init__(text)
        self.nodes = dict(nodes)


class Node:
    """A running node. Documents are queued and written as its pipe takes them.

    `send` and `beat` may be called by different threads; all else by the controller's.
    """

    def __init__(self, process: Process, popen: subprocess.Popen[bytes]) -> None:
        """Take over the process's pipes."""
        self.process = process
        self.name = process.name  # in the job
        self.popen = popen
        self.input, self.output, self.log = map(pipe_of, (popen.stdin, popen.stdout, popen.stderr))
        for pipe in (self.input, self.output, self.log):
            os.set_blocking(pipe.fileno(), False)
        self.said: dict[str, Record] = {}  # the last record of each known type
        self.trials_ended = 0
        self.heard_s = 0.0  # when it last wrote a record (monotonic)
        self.signalled = False  # by us: how it ended then says nothing of why
        self.last_words: deque[str] = deque(maxlen=_LAST_WORDS)
        self._lock = threading.Lock()
        self._queue: deque[bytes] = deque()  # documents
        self._beat = b""
        self._rest = b""  # of what is being written
        self._parts = {self.output: b"", self.log: b""}

    @property
    def place(self) -> str:
        """Its name for people, with switch and switch port where the wiring is known."""
        ports = self.process.ports
        wired = [" ".join(filter(None, (port.switch, port.switch_port))) for port in ports]
        words = ", ".join(filter(None, wired))
        return f"{self.name} ({words})" if words else self.name

    def hear(self, record: Record) -> None:
        """Take a record of it. Of types that nobody knows it may write any number."""
        self.heard_s = time.monotonic()
        if record["type"] in TYPES:
            self.said[record["type"]] = record

    def read(self, pipe: object) -> list[bytes] | None:
        """Return the whole lines that came on one of its pipes, ends included; None at its end."""
        stream = self.output if pipe is self.output else self.log
        try:
            chunk = os.read(stream.fileno(), _CHUNK)
        except BlockingIOError:
            return []
        if not chunk:
            rest, self._parts[stream] = self._parts[stream], b""
            return [rest + b"\n"] if rest and stream is self.log else None
        *lines, rest = (self._parts[stream] + chunk).split(b"\n")
        if len(rest) > LONGEST_LINE:  # no record, and no log: what is there is said to be none
            lines, rest = [*lines, rest], b""
        self._parts[stream] = rest
        return [line + b"\n" for line in lines]

    def send(self, text: bytes) -> None:
        """Queue a document; write what the pipe takes now."""
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

    def flush(self) -> None:
        """Write what the pipe takes now."""
        with self._lock:
            self._write()

    def end_input(self) -> None:
        """End of file: the node stops its traffic at once and ends."""
        with self._lock:
            self.input.close()

    @property
    def waiting(self) -> bool:
        """Whether something is left to be written."""
        return not self.input.closed and bool(self._rest or self._queue or self._beat)

    def _write(self) -> None:
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
            except BrokenPipeError:  # it has ended: its output says how
                self.input.close()

    def ended_how(self) -> str:
        """In words, once it has ended: its status or signal, and its log's last lines."""
        status = self.popen.returncode
        if status is None:
            words = "closed its output"
        elif status < 0:
            words = f"was ended by signal {-status} ({signal.strsignal(-status)})"
        else:
            words = f"ended with status {status}"
        tail = " | ".join(self.last_words)
        return f"{words}; its last words: {tail}" if tail else words


# --- all nodes ------------------------------------------------------------------------------------


LineTaker = Callable[[Node, bytes], None]

BEATS_PER_TIMEOUT = 5  # so often in the time after which nodes would give up
_TURN_S = 0.25  # at most, so that limits of time are looked at
_LOOK_S = 0.1  # so often, at most, each node is looked at

# What many nodes say is gathered for a moment: to wake for each record of 1,024 nodes, which come
# at any time, costs more than to read it.
_GATHER_S = 20e-6  # for each node
_GATHER_MAX_S = 0.02

# How nodes end: by themselves, then by signals.
STOP_TIMEOUT_S = 5.0  # for what was measured to be written
SIGNAL_TIMEOUT_S = 2.0
REAP_TIMEOUT_S = 1.0
_END_TURN_S = 0.01  # a process's end wakes nobody


class RemoteNodes:
    """The nodes of a run: one loop over the pipes of all, and a thread for their heartbeats."""

    def __init__(
        self,
        nodes: Sequence[Node],
        record: LineTaker,
        log: LineTaker,
        idle: Callable[[], None] = lambda: None,
        how: Callable[[Node], str] = Node.ended_how,
    ) -> None:
        """Take the nodes; `record` and `log` take each line of their outputs and errors.

        `idle` is called in each turn of a wait, which an error of it ends; `how` says in words how
        a node ended.
        """
        self.nodes = nodes
        self.speaking = {node.name for node in nodes}  # their standard output is open
        self._takers = record, log
        self._idle, self._how = idle, how
        self._gather_s = min(len(nodes) * _GATHER_S, _GATHER_MAX_S)
        self._unsent: set[str] = set()  # nodes whose pipe did not take a document yet
        self._selector = selectors.DefaultSelector()
        for node in nodes:
            self._selector.register(node.output, selectors.EVENT_READ, node)
            self._selector.register(node.log, selectors.EVENT_READ, node)
        self._beats_end = threading.Event()
        self._heart: threading.Thread | None = None

    def begin_heartbeats(self, timeout_ms: int) -> None:
        """Send heartbeats from a thread that does nothing else, so that nothing delays them."""
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
        """End a turn when this is readable."""
        self._selector.register(fd, selectors.EVENT_READ)

    def send(self, kind: str, content: object) -> None:
        """Send a document to all nodes; what a pipe does not take now follows in later turns."""
        text = to_line(kind, content).encode()
        for node in self.nodes:
            node.send(text)
            if node.waiting and node.name not in self._unsent:
                self._unsent.add(node.name)
                self._selector.register(node.input, selectors.EVENT_WRITE, node)

    def turn(self, limit_s: float = _TURN_S) -> bool:
        """Wait, `limit_s` at most, for something to move, and move it; whether anything did."""
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
                    self.speaking.discard(node.name)
            for line in lines or ():
                self._takers[key.fileobj is node.log](node, line)
        return bool(moves)

    def _forget_input(self, node: Node) -> None:
        if node.name in self._unsent:
            self._unsent.remove(node.name)
            self._selector.unregister(node.input)

    def _end_input(self, node: Node) -> None:
        """No more for this node: it stops its traffic at once and ends."""
        self._forget_input(node)
        node.end_input()

    # --- waiting, with the ways in which it can end badly ----------------------------------------

    def wait_for(self, kind: str, limit_s: float) -> None:
        """Wait until all nodes have said it."""
        self.wait(lambda node: kind in node.said, f"to say {kind}", limit_s)

    def wait(self, done: Callable[[Node], bool], what: str, limit_s: float) -> None:
        """Until it is done at all nodes; none of them may be silent for `limit_s`."""
        begin_s = looked_s = time.monotonic()
        while not all(map(done, self.nodes)):
            self._idle()
            if len(self.speaking) < len(self.nodes):
                self._check_ends(done)
            now_s = time.monotonic()
            if now_s - looked_s > _LOOK_S:
                looked_s = now_s
                late = [
                    node
                    for node in self.nodes
                    if not done(node) and max(begin_s, node.heard_s) < now_s - limit_s
                ]
                if late:
                    silent = f"was silent for {limit_s:.0f} s"
                    raise LostError(_late(late, what, limit_s), {n.name: silent for n in late})
            self.turn()

    def wait_for_ends(self, limit_s: float) -> None:
        """Until all processes have ended; reads on: a log that nobody reads would keep one."""
        deadline_s = time.monotonic() + limit_s
        while left := [node for node in self.nodes if node.popen.poll() is None]:
            self._idle()
            if time.monotonic() > deadline_s:
                raise RunError(_late(left, "to end (its output is closed)", limit_s))
            self.turn(_END_TURN_S)

    def _check_ends(self, done: Callable[[Node], bool]) -> None:
        """LostError where a node has ended before it was done."""
        for gone in self.nodes:
            if gone.name in self.speaking or done(gone):
                continue
            for node in self.nodes:
                self._end_input(node)  # traffic stops before anybody asks why
            # A moment for its last words. What others say of it meanwhile, this one knows better.
            deadline_s = time.monotonic() + REAP_TIMEOUT_S
            while gone.popen.poll() is None and time.monotonic() < deadline_s:
                with suppress(SwitchbenchError):
                    self.turn()
            with suppress(SwitchbenchError):
                self.turn()
            self._idle()  # a node may end because its switch did
            why = self._how(gone)
            raise LostError(f"{gone.place} {why}", {gone.name: why})

    def close(self) -> None:
        """End all nodes within bounds: end of input, then signals. Read on to their last words."""
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
                self.speaking or any(node.popen.poll() is None for node in running)
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
        node.signalled = True
        node.popen.send_signal(number)


def _late(nodes: Sequence[Node], what: str, limit_s: float) -> str:
    names = ", ".join(node.place for node in nodes)
    words = next((node.last_words[-1] for node in nodes if node.last_words), None)
    tail = f"; last words: {words}" if words else ""
    return f"waited {limit_s:.0f} s for {names} {what}{tail}"


# --- interrupt ------------------------------------------------------------------------------------


class Interrupt(Handled):
    """While entered, Ctrl-C and its like only set `name` and make `fd` readable.

    They are acted upon where the run can end in order.
    """

    def __init__(self) -> None:
        """Nothing is changed before it is entered."""
        super().__init__(self._note)
        self.name: str | None = None
        self.count = 0  # signals that came
        self.fd, self._write_fd = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)

    def drain(self) -> None:
        """Take from the pipe what signals have written."""
        with suppress(BlockingIOError):
            os.read(self.fd, _CHUNK)

    def __exit__(self, *_: object) -> None:
        """Close the pipe too."""
        super().__exit__()
        os.close(self.fd)
        os.close(self._write_fd)

    def _note(self, number: int, _frame: FrameType | None) -> None:
        self.name = signal.Signals(number).name
        self.count += 1
        os.write(self._write_fd, b"!")
