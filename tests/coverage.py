# SPDX-License-Identifier: BSD-3-Clause
"""How much of each folder of C the tests of a build have run: `coverage.py BUILD`.

The build has Meson's `-Db_coverage=true`, and its tests have run. Prints the lines and the branches
per folder, as gcov counts them; a line that several programs compile is run if one of them ran it.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
AT_ONCE = 50  # objects per call of gcov


def counted(build: Path) -> Iterator[dict[str, Any]]:
    """What gcov says of each source file, once per object."""
    objects = iter(sorted(str(path.relative_to(build)) for path in build.rglob("*.gcno")))
    while some := list(islice(objects, AT_ONCE)):
        command = ["gcov", "--json-format", "--stdout", "--branch-probabilities", *some]
        # It names on stderr the objects that no program has run; they count as not run.
        done = subprocess.run(command, cwd=build, capture_output=True, text=True, check=True)
        for line in done.stdout.splitlines():
            compiled = json.loads(line)
            for file in compiled["files"]:
                path = Path(compiled["current_working_directory"], file["file"]).resolve()
                if path.is_relative_to(ROOT) and not path.is_relative_to(ROOT / "tests"):
                    yield file | {"file": str(path.relative_to(ROOT))}


def table(build: Path) -> Iterator[str]:
    """One line per folder, and the total."""
    lines: defaultdict[tuple[str, int], bool] = defaultdict(bool)
    branches: defaultdict[tuple[str, int, int], bool] = defaultdict(bool)
    for file in counted(build):
        name = file["file"]
        for line in file["lines"]:
            at = line["line_number"]
            lines[name, at] |= line["count"] > 0
            for number, branch in enumerate(line["branches"]):
                branches[name, at, number] |= branch["count"] > 0
    for folder in [*sorted({str(Path(name).parent) for name, _ in lines}), ""]:
        of_lines = [ran for (name, *_), ran in lines.items() if within(name, folder)]
        of_branches = [ran for (name, *_), ran in branches.items() if within(name, folder)]
        yield (
            f"{folder or 'total':24} {share(of_lines):>6} of {len(of_lines):5} lines, "
            f"{share(of_branches):>6} of {len(of_branches):5} branches"
        )


def within(name: str, folder: str) -> bool:
    """Is this file directly in the folder? All files are in the folder without a name."""
    return folder in ("", str(Path(name).parent))


def share(ran: list[bool]) -> str:
    """How many of these are true, in percent."""
    return f"{sum(ran) / len(ran):.1%}" if ran else "-"


if __name__ == "__main__":
    print("\n".join(table(Path(sys.argv[1]).resolve())))
