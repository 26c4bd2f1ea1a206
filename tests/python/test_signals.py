# SPDX-License-Identifier: BSD-3-Clause
"""Signals in other hands: one is noted, a second ends what is done, and all are given back."""

from __future__ import annotations

import os
import signal

import pytest

from switchbench.base.errors import RunError
from switchbench.base.programs import Deferred

NUMBERS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@pytest.mark.parametrize("number", NUMBERS)
def test_the_first_signal_is_noted(number: signal.Signals) -> None:
    before = [signal.getsignal(one) for one in NUMBERS]
    with Deferred() as asked:
        assert asked.name is None
        os.kill(os.getpid(), number)
        assert asked.name == number.name
    assert [signal.getsignal(one) for one in NUMBERS] == before


def test_a_second_one_ends_what_is_done() -> None:
    with Deferred():
        os.kill(os.getpid(), signal.SIGTERM)
        with pytest.raises(RunError, match=r"interrupted \(SIGTERM, twice\)"):
            os.kill(os.getpid(), signal.SIGTERM)
