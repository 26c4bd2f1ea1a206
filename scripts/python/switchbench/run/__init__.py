# SPDX-License-Identifier: BSD-3-Clause
"""Run in progress: starting, controlling and showing its nodes."""
