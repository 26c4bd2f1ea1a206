# SPDX-License-Identifier: BSD-3-Clause
"""What every part may use: errors, values of a run, numbers as text and text as numbers."""
