# SPDX-License-Identifier: BSD-3-Clause
"""What goes by steps (doc/how-to/hpcc-imb.md).

Which patterns do, and what each of them can be told.

A rank goes on to its next step when its own sends and receives of this one are complete. Some
patterns are nothing but steps (collectives); any other one becomes them by `sync: local`.
"""

from __future__ import annotations

from ..base.model import SCHEDULE
from ..base.words import listed
from .schema import Settings, Traffic

LOCAL = "local"  # `sync` of an ordinary pattern that does

# IMB's functions (IMB-MPI1) with their algorithms, the default first; none: there is only one.
FUNCTIONS: dict[str, tuple[str, ...]] = {
    "pingpong": (),
    "pingping": (),
    "sendrecv": (),
    "exchange": (),
    "bcast": ("binomial", "scatter-allgather", "pipeline"),
    "reduce": ("binomial",),
    "allreduce": ("recursive-doubling", "ring", "rabenseifner"),
    "reduce_scatter": ("recursive-halving", "pairwise"),
    "allgather": ("ring", "recursive-doubling", "bruck"),
    "allgatherv": ("ring",),
    "alltoall": ("linear", "pairwise", "bruck"),
    "alltoallv": ("linear", "pairwise"),
    "barrier": ("dissemination",),
}
# Those that add up floats: a message holds whole ones.
ADDING = ("reduce", "allreduce", "reduce_scatter")
FLOAT_BYTES = 4
# Application kernels (doc/reference/patterns.md): what each can be told besides, with its default.
_OF_CLASS: dict[str, object] = {"problem_class": "S"}
KERNELS: dict[str, dict[str, object]] = {
    **dict.fromkeys(
        ("nas_ep", "nas_is", "nas_cg", "nas_mg", "nas_ft", "nas_lu", "nas_sp", "nas_bt"), _OF_CLASS
    ),
    "hpl": {"matrix": 8192, "block": 128},
    "halo": {"dimensions": 2},
}
SKEWED = ("allgatherv", "alltoallv")  # whose messages may differ in size
# Those whose messages' sizes are not the user's to choose.
SIZELESS = ("barrier", *(name for name in KERNELS if name != "halo"))

# What can be said of all of them, and of nothing else.
STEP_KEYS = ("compute", "batch", "repetitions")
_TIMED = ("warmup", "window", "cooldown")
_SIZES = ("message_size", "message_sizes")


def size_refusal(pattern: str, size: int) -> str:
    """Return why a pattern can't have messages of so many bytes; empty if it can."""
    odd = size % FLOAT_BYTES
    if pattern not in ADDING or odd == 0:
        return ""
    near = f"{size - odd} or {size - odd + FLOAT_BYTES}"
    return f"{size} bytes: {pattern} adds up floats of {FLOAT_BYTES} bytes: take {near}"


# The words that make an ordinary pattern go by steps, by key.
SWITCHES = {"sync": LOCAL, "traffic": SCHEDULE}


def traffic(pattern: str, values: Settings) -> Traffic:
    """Return the traffic of a test that says none."""
    return SCHEDULE if by_steps(pattern, values) else "stream"


def only_steps(pattern: str) -> bool:
    """Return whether a pattern is nothing but steps."""
    return pattern in FUNCTIONS or pattern in KERNELS


def by_steps(pattern: str, values: Settings) -> bool:
    """Return whether a test of this pattern goes by steps."""
    return only_steps(pattern) or values.sync == LOCAL


def without_effect(pattern: str, values: Settings) -> dict[str, str]:
    """Keys that change nothing, and why, as far as steps are the reason."""
    if not by_steps(pattern, values):
        reason = "has no effect: only a schedule of steps has it (sync: local, or a collective)"
        idle = dict.fromkeys(STEP_KEYS, reason)
        if values.traffic == SCHEDULE:
            idle["traffic"] = f"has no effect: {pattern} is a schedule with sync: local only"
        return idle
    idle = dict.fromkeys(("load", "loads"), "has no effect: a step waits for the one before")
    if values.traffic not in (None, SCHEDULE):
        idle["traffic"] = f"has no effect: {pattern} is a schedule here (traffic: {SCHEDULE})"
    if only_steps(pattern):
        idle["sync"] = f"has no effect: {pattern} is always a schedule"
    if pattern in KERNELS and pattern in SIZELESS and values.compute:
        idle["compute"] = f"has no effect: the numbers that {pattern} sends mean nothing"
    if pattern in SIZELESS:
        idle |= dict.fromkeys(_SIZES, f"has no effect: {pattern} has sizes of its own")
    if values.repetitions is not None:
        idle |= dict.fromkeys(_TIMED, "has no effect with repetitions, which are counted")
    return idle


def algorithm_refusal(pattern: str, algorithm: str) -> str | None:
    """Return why a function can't be done so, or None."""
    known = FUNCTIONS[pattern]
    if algorithm in known:
        return None
    return f"{algorithm} is no algorithm of {pattern}: it has {listed(known)}"
