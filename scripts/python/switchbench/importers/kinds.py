# SPDX-License-Identifier: BSD-3-Clause
"""Which program wrote a file; and a sentence for one that none of them did."""

from __future__ import annotations

import math
import re
from pathlib import Path

from ..base.errors import ConfigurationError
from ..base.source import read_regular
from . import hpcc, imb, iperf3, nccl, osu, perftest
from .figure import Kind, Read, Source

KINDS: tuple[Kind, ...] = (
    hpcc.KIND, imb.KIND, osu.KIND, nccl.KIND, perftest.KIND, iperf3.KIND,
)  # fmt: skip

MOST_BYTES = 64 << 20  # of a file: the largest real ones have a few MB

# What people hand over by mistake, and what they should.
_MISTAKES = (
    (re.compile(r"\AHPLinpack benchmark input file"),
     "it is HPCC's input: take hpccoutf.txt"),
    (re.compile(r"\AConnecting to host|^\[ *ID\] Interval", re.MULTILINE),
     "it is iperf3's text: run it with --json"),
    (re.compile(r"\A\s*\{\s*\"schema\": *\"switchbench"),
     "it is a result of Switchbench itself: `switchbench compare` takes its directory"),
)  # fmt: skip


def content_of(path: Path) -> bytes:
    """Return the content of a file; ConfigurationError where it can't be read."""
    try:
        return read_regular(path, MOST_BYTES)
    except OSError as error:
        raise ConfigurationError(f"{path} can't be read: {error.strerror}") from error


def read(path: Path, ranks: int | None = None, content: bytes | None = None) -> Read:
    """Return a file's figures; ConfigurationError, one sentence, where there are none to be had."""
    try:  # Windows puts a mark before it
        text = (content_of(path) if content is None else content).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ConfigurationError(f"{path} is no text: {_names()} are read") from error
    source = Source(path, text, ranks)
    for kind in KINDS:
        if kind.knows(source.text):
            found = kind.read(source)
            if not found.figures:
                raise source.refuse(f"there are no results in it ({kind.title})")
            _refuse_impossible(source, found)
            return found
    raise source.refuse(_not_known(source.text))


def _refuse_impossible(source: Source, found: Read) -> None:
    """Figures that nobody can have measured, and that JSON or a logarithm has no place for."""
    for figure in found.figures:
        values = (figure.value, figure.comparable.value if figure.comparable else 0.0)
        if not all(map(math.isfinite, values)) or (figure.comparable and figure.value < 0):
            raise source.refuse(
                f"{figure.name} of {figure.benchmark} is {figure.value:g}: it is damaged, or the "
                "test failed"
            )


def _not_known(text: str) -> str:
    if not text.strip():
        return "it is empty"
    for pattern, sentence in _MISTAKES:
        if pattern.search(text):
            return sentence
    return f"it is none of what is read: {_names()}"


def _names() -> str:
    *first, last = [kind.title for kind in KINDS]
    return f"{', '.join(first)} and {last}"
