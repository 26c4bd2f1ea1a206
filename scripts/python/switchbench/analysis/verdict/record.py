# SPDX-License-Identifier: BSD-3-Clause
"""The run record: what is written beside the summary once it stands, and sealed with it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ...base.errors import ConfigurationError
from ...base.model import Run
from ...records.directory import JUNIT, replace_bytes
from . import manifest, signature
from .junit import junit


@dataclass(frozen=True)
class Record:
    """What is asked for beside what is always there."""

    junit: Path | None = None  # where else the JUnit XML goes
    key: Path | None = None  # signs the directory

    def try_out(self, run: Run) -> None:
        """Refuses before any traffic what could not be written or signed after it."""
        if self.junit is not None:
            if not run.expectations:
                raise ConfigurationError("--junit: the configuration has no clauses (`expect`)")
            if not self.junit.absolute().parent.is_dir():
                raise ConfigurationError(f"--junit: there is no folder {self.junit.parent}")
            if self.junit.is_dir():
                raise ConfigurationError(f"--junit: {self.junit} is a folder: name a file")
            if not os.access(self.junit.absolute().parent, os.W_OK | os.X_OK):
                raise ConfigurationError(f"--junit: nothing can be written in {self.junit.parent}")
        if self.key is not None:
            signature.try_key(self.key)

    def write(self, directory: Path, summary: Mapping[str, Any]) -> None:
        """The verdict for CI, then the manifest over all that is there, then its signature.

        The copy that goes elsewhere is last: whether that place can be written costs no seal.
        """
        document = junit(summary) if summary.get("verdict") is not None else None
        if document is not None:
            replace_bytes(directory / JUNIT, document)
        if self.key is None:
            manifest.seal(directory)
        else:
            signature.sign(directory, self.key)
        if document is not None and self.junit is not None:
            replace_bytes(self.junit, document)
