# SPDX-License-Identifier: BSD-3-Clause
"""Output for people: tables of the terminal, the HTML report and its figures."""
