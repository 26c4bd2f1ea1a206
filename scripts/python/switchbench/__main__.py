# SPDX-License-Identifier: BSD-3-Clause
"""`python -m switchbench`."""

import sys

from .cli import main

sys.exit(main())
