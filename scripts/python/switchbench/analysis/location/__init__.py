# SPDX-License-Identifier: BSD-3-Clause
"""Location of faults: from flows and their paths to a ranked list of suspects."""

from .facts import (
    Element,
    IntervalRows,
    Location,
    Misdelivered,
    NextTest,
    Observations,
    Oversubscription,
    Paths,
    PhaseFacts,
    Suspect,
    table_route,
)
from .inference import locate

__all__ = [
    "Element",
    "IntervalRows",
    "Location",
    "Misdelivered",
    "NextTest",
    "Observations",
    "Oversubscription",
    "Paths",
    "PhaseFacts",
    "Suspect",
    "locate",
    "table_route",
]
