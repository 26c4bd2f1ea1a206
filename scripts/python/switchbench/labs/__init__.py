# SPDX-License-Identifier: BSD-3-Clause
"""Package for labs: nodes and a switch made of network namespaces on one machine.

    topology = load("one-switch", {"nodes": 4, "rate": "50M"})
    with session(topology) as lab:
        for node in lab.nodes:                 # names, addresses, line rates, switch ports
            lab.popen(node.name, ["switchbench-node"], stdin=PIPE, stdout=PIPE)
        ...

`load` raises `TopologyError`, the other functions `LabError`; both contain a sentence for users.
"""

import importlib
from typing import TYPE_CHECKING, Any

from switchbench.labs.state import LabError
from switchbench.topology.form import Topology, TopologyError
from switchbench.topology.lab_addresses import LabNode
from switchbench.topology.topology import load

if TYPE_CHECKING:
    from switchbench.labs.lab import Lab, down, find, session, up

__all__ = [
    "Lab",
    "LabError",
    "LabNode",
    "Topology",
    "TopologyError",
    "down",
    "find",
    "load",
    "session",
    "up",
]


def __getattr__(name: str) -> Any:
    """Return the object of this name in `labs.lab`, which is imported at first use.

    The import takes a sixth of a second, for the library of netlink.
    """
    if name in __all__:
        return getattr(importlib.import_module(".lab", __name__), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
