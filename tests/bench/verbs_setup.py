#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""How long a thousand queue pairs take to be made and connected, and what memory each takes.

In one guest with two Soft-RoCE devices on one switch (tests/bench/verbs_setup.c). A pattern of
n ranks never needs n queue pairs at once, but a rank with so many partners in one phase would.

    tests/bench/verbs_setup.py [--partners 1000] [--bytes 65536]
"""

from __future__ import annotations

import sys
from pathlib import Path

from common import arguments, built
from verbs_bed import ROOT, why_skip

sys.path.insert(0, str(ROOT / "tests/vm"))

import by_cable
import guests

MEMORY_MIB = 2048
LIMIT_S = 120.0


def main() -> int:
    """The program's own rows."""
    parser = arguments(__doc__)
    parser.add_argument("--program", type=Path, default=Path(built("verbs_setup")))
    parser.add_argument("--partners", type=int, default=1000)
    parser.add_argument("--bytes", type=int, default=64 << 10)
    asked = parser.parse_args()
    why_skip(asked.program)
    machine = by_cable.machine(ports=2, memory_mib=MEMORY_MIB)
    with guests.boot([machine], guests.Job(programs=(asked.program,))) as rig:
        guest = rig["node1"]
        by_cable.route(guest)
        words = [asked.program.name, "rxe0", "rxe1", str(asked.partners), str(asked.bytes)]
        done = guest.run(words, LIMIT_S)
    print(done.stdout + done.stderr, end="", flush=True)
    if done.returncode != 0:
        print(f"it ended with status {done.returncode}")
    return done.returncode


if __name__ == "__main__":
    sys.exit(main())
