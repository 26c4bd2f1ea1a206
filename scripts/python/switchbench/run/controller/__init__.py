# SPDX-License-Identifier: BSD-3-Clause
"""Drives a run: starts nodes, talks to them (doc/node-protocol.md), keeps what they say."""

from .control import Controller, Outcome, Watcher
from .interrupt import Interrupt

__all__ = ["Controller", "Interrupt", "Outcome", "Watcher"]
