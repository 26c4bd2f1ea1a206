# SPDX-License-Identifier: BSD-3-Clause
"""Small words for messages: lists, and what somebody may have meant."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches


def listed(words: Iterable[object]) -> str:
    """Return `a, b or c`."""
    items = [str(word) for word in words]
    if len(items) < 2:
        return "".join(items)
    return f"{', '.join(items[:-1])} or {items[-1]}"


# What is written elsewhere, the word that it has here, and the answer.
_ELSEWHERE = (
    (
        "all_to_all fully_meshed mesh",
        "full_mesh",
        "full_mesh (all at once, RFC 2889), aapc (in phases), or alltoall for MPI's collective",
    ),
    ("many_to_one n_to_1", "incast", "incast"),
    ("one_to_many 1_to_n", "fanout", "fanout"),
    ("hol holb head_of_line_blocking congestion backpressure", "head_of_line", "head_of_line"),
    ("unidirectional oneway one_way", "pairs", "pairs with directions: forward"),
    ("halves uplink partially_meshed", "partial_mesh", "partial_mesh"),
    ("list custom matrix", "flows", "flows"),
    ("duration time seconds", "window", "window"),
    ("rate bandwidth bitrate", "load", "load"),
    ("size packet_size frame_length", "frame_size", "frame_size or message_size"),
    ("streams parallel", "tcp", "tcp: {streams_per_flow: 4}"),
    ("runs iterations", "repeat", "repeat"),
    ("rdma roce ib infiniband", "verbs", "verbs"),
    ("raw ethernet", "dpdk", "dpdk"),
    (
        "guests vm vms virtual_machines",
        "lab",
        "a site file (launch: ssh) with the virtual machines as its hosts: labs have none",
    ),
    ("read rdma_read", "write", "send or write: the receiver fetches nothing"),
    ("immediate", "queue_pairs", "operation: write, which always has immediate data"),
    ("connect", "queue_pairs", "no such key: the two ends tell each other their queue pairs"),
    ("loss packet_loss frame_loss drops dropped", "lost_frames", "lost_frames or loss_percent"),
    *(
        (
            f"latency{end} delay{end} rtt{end}",
            f"one_way{figure}_us",
            f"one_way{figure}_us, round_trip{figure}_us or pingpong{figure}_us",
        )
        for end, figure in (
            ("", "_p99"),
            ("_mean", "_mean"),
            ("_avg", "_mean"),
            ("_min", "_min"),
            ("_max", "_max"),
            ("_p50", "_p50"),
            ("_median", "_p50"),
            ("_p90", "_p90"),
            ("_p99", "_p99"),
            ("_p99_9", "_p99_9"),
        )
    ),
    ("jitter", "one_way_pdv_us", "one_way_pdv_us or ipdv_p99_us"),
    (
        "bisection bisection_bandwidth cross_section",
        "throughput_total",
        "throughput_total of pattern pairs with `partners: across` (the sum over a cut)",
    ),
)


def meant(word: object, known: Iterable[str]) -> str:
    """`; did you mean "load"?`, or nothing when no known word is near."""
    by_folded = {name.casefold().replace("-", "_"): name for name in known}
    folded = str(word).casefold().replace("-", "_")
    for words, here, answer in _ELSEWHERE:
        if folded in words.split() and here in by_folded:
            return f"; use {answer}"
    near = get_close_matches(folded, by_folded, n=1, cutoff=0.6)
    return f'; did you mean "{by_folded[near[0]]}"?' if near else ""


_LISTED_MOST = 24


def unknown_key(key: object, known: Iterable[str], said: bool = False) -> str:
    """Return what is wrong with a key that its mapping does not have.

    `said`: the place names it.
    """
    keys = list(known)
    which = "" if said else f" {key}"
    near = meant(key, keys)
    if near or len(keys) <= _LISTED_MOST:
        return f"unknown key{which}{near or f'; valid keys are {listed(keys)}'}"
    return f"unknown key{which}; doc/reference/configuration.md lists the {len(keys)} valid ones"


def invalid(value: object, valid: Iterable[str]) -> str:
    """Return what is wrong with a word that is none of the valid ones."""
    words = list(valid)
    near = meant(value, words)
    if near and len(words) > _LISTED_MOST:
        return f"found {shown(value)}{near}"
    return f"found {shown(value)}; valid values are {listed(words)}{near}"


def shown(value: object) -> str:
    """Return a value as it was found, short enough for one sentence."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if value is None:
        return "nothing"
    if isinstance(value, dict):
        return "a mapping"
    if isinstance(value, list | tuple):
        return "a list"
    text = f'"{value}"' if isinstance(value, str) else str(value)
    end = '"' if isinstance(value, str) else ""
    return text if len(text) <= 60 else f"{text[:57]}...{end}"


def clipped(sentence: str, most: int = 1000) -> str:
    """Return a sentence that quotes what may have any length."""
    return sentence if len(sentence) <= most else f"{sentence[: most - 3]}..."


def some(names: Iterable[str], most: int = 8) -> str:
    """Names, the first few of them when they are many."""
    items = list(names)
    more = len(items) - most
    return ", ".join(items[:most]) + (f" and {more} more" if more > 0 else "")
