# SPDX-License-Identifier: BSD-3-Clause
"""Switchbench measures whether a network sustains full load on every port at once."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .records.results import Results

__version__ = "0.1.0"

# numpy's BLAS starts threads as it is imported, and a process that has threads may not join a user
# namespace (setns(2)), as labs of users without privilege do. No large matrix is multiplied here.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
# Arrow's allocator would start a thread too.
os.environ.setdefault("JE_ARROW_MALLOC_CONF", "background_thread:false")


def load(directory: str | os.PathLike[str]) -> Results:
    """Return the results of a run: its tables, its plan and its summary.

    Parameters
    ----------
    directory
        A results directory, as `switchbench run` makes it.

    Raises
    ------
    switchbench.base.errors.ConfigurationError
        If the directory has no results of this format, or one of its files is damaged.
    """
    from .records.results import load as read  # slow, and not needed for --help

    return read(directory)
