# SPDX-License-Identifier: BSD-3-Clause
"""A network as a graph: fabrics, routes, a lab's topology file, cabling as switches tell it."""
