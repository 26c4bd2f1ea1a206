# SPDX-License-Identifier: BSD-3-Clause
"""Location of faults: from flows and their paths to a ranked list of suspects."""
