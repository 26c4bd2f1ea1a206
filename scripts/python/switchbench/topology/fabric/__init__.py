# SPDX-License-Identifier: BSD-3-Clause
"""A network as a graph of hosts, switches and links: its arithmetic and its routes."""

from .graph import Fabric, FabricError, Link
from .routes import Routes

__all__ = ["Fabric", "FabricError", "Link", "Routes"]
