# SPDX-License-Identifier: BSD-3-Clause
"""What a plan should do on a network: models of contention, and of single messages."""
