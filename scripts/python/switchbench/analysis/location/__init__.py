# SPDX-License-Identifier: BSD-3-Clause
"""Location of faults: a ranked list of suspects, from flows and their paths."""
