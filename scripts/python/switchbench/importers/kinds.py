# SPDX-License-Identifier: BSD-3-Clause
"""Which program wrote a file; and a sentence for one that none of them did."""

from __future__ import annotations

import math
import re
from pathlib import Path

from ..base.errors import ConfigurationError
from . import hpcc, imb, iperf3, osu, perftest
from .figure import Kind, Read, Source

KINDS: tuple[Kind, ...] = (hpcc.KIND, imb.KIND, osu.KIND, iperf3.KIND, perftest.KIND)

MOST_BYTES = 64 << 20  # of a file: the largest real ones have a few MB

# What people hand over by mistake, and what they should.
_MISTAKES = (
    (re.compile(r"\AHPLinpack benchmark input file"),
     "it is HPCC's input: take hpccoutf.txt"),
    (re.compile(r"\AConnecting to host|^\[ *ID\] Interval", re.MULTILINE),
     "it is iperf3's text: run it with --json"),
    (re.compile(r"\A\s*\{.*\"schema\": *\"switchbench", re.DOTALL),
     "it is a result of Switchbench itself: `switchbench compare` takes its directory"),
)  # fmt: skip


def read(path: Path, ranks: int | None = None) -> Read:
    """A file's figures; ConfigurationError, one sentence, where there are none to be had."""
    source = Source(str(path), _text(path), ranks)
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
        if not math.isfinite(figure.value) or (figure.comparable is not None and figure.value < 0):
            raise source.refuse(
                f"{figure.name} of {figure.benchmark} is {figure.value:g}: it is damaged, or the "
                "test failed"
            )


def _text(path: Path) -> str:
    try:
        size = path.stat().st_size
        if size > MOST_BYTES:
            raise ConfigurationError(f"{path}: {size:,} bytes are no benchmark's output")
        return path.read_bytes().decode("utf-8-sig")  # Windows puts a mark before it
    except OSError as error:
        raise ConfigurationError(f"{path} can't be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise ConfigurationError(f"{path} is no text: {_names()} are read") from error


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
