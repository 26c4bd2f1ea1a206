# SPDX-License-Identifier: BSD-3-Clause
"""A real network's topology file, made of what its devices say of their cables."""

from . import ibnetdiscover, lldp
from .site import Cable, Cabling, document, text

__all__ = ["Cable", "Cabling", "document", "ibnetdiscover", "lldp", "text"]
