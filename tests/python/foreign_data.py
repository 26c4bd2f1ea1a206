# SPDX-License-Identifier: BSD-3-Clause
"""Other programs' results for the tests: real files, and real ones with other figures.

Beside each input NAME in data/foreign/ a file NAME.expected has the commands on it, and what
they print. `python tests/python/foreign_data.py` writes these files anew: read the difference."""

from __future__ import annotations

import contextlib
import io
import re
import shlex
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from switchbench.cli.main import main
from switchbench.importers.reading import COMMON
from switchbench.records.directory import SUMMARY, load_summary

DATA = Path(__file__).parent / "data"
FOREIGN = DATA / "foreign"
EXPECTED = ".expected"


def hpccoutf(path: Path, **values: Any) -> Path:
    """Return a real hpccoutf.txt with other values for some of its names."""
    text = (FOREIGN / "hpcc-4.txt").read_text()
    for name, value in values.items():
        text, count = re.subn(rf"^{name}=.*$", f"{name}={value}", text, flags=re.M)
        assert count == 1, name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def bring_in(out: Path, *files: Path, ranks: int | None = None) -> Path:
    """Return the results directory of these files."""
    more = [] if ranks is None else ["--ranks", str(ranks)]
    assert main(["import", *map(str, files), "--out", str(out), *more]) == 0
    return out


def transcript(commands: list[str]) -> str:
    """Return commands with their status, their sentences and what they found."""
    lines: list[str] = []
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(FOREIGN):
        for number, command in enumerate(commands):
            lines += [f"$ {command}\n", *_answer(command, Path(folder), f"out{number}")]
    return "".join(lines)


def _answer(command: str, folder: Path, name: str) -> Iterator[str]:
    words = [word.replace("$OUT", str(folder / "out")) for word in shlex.split(command)[1:]]
    words += ["--out", str(folder / name)] if words[0] == "import" else []
    printed, said = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(said):
        status = main(words)
    yield f"status {status}\n"
    yield from (f"! {line}\n" for line in said.getvalue().replace(str(folder), "").splitlines())
    if words[0] != "import":
        yield from (f"| {line}".rstrip() + "\n" for line in printed.getvalue().splitlines())
    elif (folder / name / SUMMARY).exists():
        yield from map(_figure, load_summary(folder / name)["imported"])


def _figure(entry: dict[str, Any]) -> str:
    size = "" if entry["size"] is None else f" {entry['size']} B"
    line = (
        f"{entry['tool']} {entry['version'] or '?'} {entry['benchmark']}, "
        f"{entry['ranks'] or '?'} ranks{size}: "
        f"{entry['name']} = {entry['value']:.9g} {entry['unit']}"
    )
    ours = entry["comparable"]
    if ours:
        assert ours["unit"] == COMMON[ours["measure"]].unit
        size = "" if ours["size"] is None else f" {ours['size']} B"
        line += f" -> {ours['measure']}, {ours['ranks']} ranks{size}: {ours['value']:.9g}"
        line += f" {ours['unit']}"
    return line.rstrip() + "\n"


def commands_of(expected: Path) -> list[str]:
    """Return the commands of such a file."""
    lines = expected.read_text().splitlines()
    return [line.removeprefix("$ ") for line in lines if line.startswith("$ ")]


if __name__ == "__main__":
    for file in sorted(FOREIGN.glob(f"*{EXPECTED}")):
        file.write_text(transcript(commands_of(file)))
