# SPDX-License-Identifier: BSD-3-Clause
"""Drives a run: starts nodes, talks to them (doc/reference/node-protocol.md), keeps what they
say."""

from .control import Controller, Outcome
from .interrupt import Interrupt
from .talk import Watcher

__all__ = ["Controller", "Interrupt", "Outcome", "Watcher"]
