# SPDX-License-Identifier: BSD-3-Clause
"""Networks as graphs: fabrics, routes, topology files, and cabling read from device outputs."""
