# SPDX-License-Identifier: BSD-3-Clause
"""Entry point of `python -m switchbench`."""

import sys

from .cli.main import main

sys.exit(main())
