# SPDX-License-Identifier: BSD-3-Clause
"""What is carried to other machines: the engine with everything that it needs there."""
