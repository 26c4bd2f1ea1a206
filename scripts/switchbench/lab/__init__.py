# SPDX-License-Identifier: BSD-3-Clause
"""The lab: nodes and a switch made of network namespaces on one machine."""
