# SPDX-License-Identifier: BSD-3-Clause
"""The node's records one by one (doc/reference/node-protocol.md, "Records")."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ..base.errors import ConfigurationError
from .reader import damaged
from .record_forms import LONGEST_LINE, DamagedRecord, parse
from .record_forms import Record as Record


def read_records(path: Path) -> Iterator[tuple[int, Record]]:
    """All records of a file with their line numbers, from 1.

    A last line without its end (the disk was full, the machine died) is left out; a line that is
    no record is a ConfigurationError, and so is a file that can't be read.
    """
    try:
        file = path.open("rb")
    except OSError as error:
        raise ConfigurationError(f"{path}: can't be read: {error.strerror}") from error
    with file:
        for number, line in enumerate(iter(lambda: file.readline(LONGEST_LINE + 1), b""), start=1):
            if line.endswith(b"\n") or len(line) > LONGEST_LINE:
                with taking(path, number):
                    record = parse(line)
                yield number, record


@contextmanager
def taking(path: Path, number: int) -> Iterator[None]:
    """Around what is done with a record: where it is in the file, if it is damaged."""
    try:
        yield
    except DamagedRecord as error:
        raise damaged(path, number, error) from None
