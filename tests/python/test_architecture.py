# SPDX-License-Identifier: BSD-3-Clause
"""The rules of doc/architecture.md that a machine can check: who may include whom, what a part
exports, how long a function may be, and what each file begins with."""

from __future__ import annotations

import functools
import json
import os
import re
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
FUNCTION_LINES = 70

# What a transport may include beside its own headers.
LEAVES = {
    *("transport.h", "metrics.h", "pace.h", "clock.h", "draw.h", "err.h", "log.h", "netns.h"),
    *("pattern.h", "pingpong.h", "flow_load.h", "histogram.h", "look.h", "differ.h"),
    *("stepper.h", "schedule.h", "probe_scheduler.h", "lock.h"),
}

# ISO C and POSIX: all that patterns may use.
LIBC = {
    *("assert.h", "ctype.h", "errno.h", "inttypes.h", "limits.h", "math.h", "stdalign.h"),
    *("stdarg.h", "stdbool.h", "stddef.h", "stdint.h", "stdio.h", "stdlib.h", "string.h"),
}


@dataclass(frozen=True)
class Part:
    """A folder of C: which of the project's headers and which families of others it may include."""

    folder: str
    project: frozenset[str] | None  # names; None: any header of `reaches`
    reaches: tuple[str, ...]  # folders whose headers it may include
    families: tuple[str, ...] = ()  # of the families below, those that it may include
    libc_only: bool = False


PARTS = (
    Part("patterns", None, ("patterns",), libc_only=True),
    Part("patterns/collective", None, ("patterns",), libc_only=True),
    Part("patterns/kernel", None, ("patterns",), libc_only=True),
    Part("engine", None, ("engine", "engine/bind", "patterns")),
    Part(
        "engine/bind",
        frozenset({"err.h", "guard.h", "guard_host.h"}),
        ("engine/bind", "engine"),
    ),
    Part("engine/tcp", frozenset(LEAVES), ("engine/tcp", "engine", "patterns")),
    Part("engine/dpdk", frozenset(LEAVES), ("engine/dpdk", "engine", "patterns"), ("rte_",)),
    Part("guests", None, ("guests",)),
    Part("bundle", None, ("bundle",)),
    Part("model", None, ("model", "model/core", "engine", "engine/dpdk"), ("rte_",)),
    Part(
        "model/core",
        frozenset({"err.h", "signature.h"}),
        ("model/core", "engine", "engine/dpdk"),
        libc_only=True,
    ),
    Part("verbs", frozenset(LEAVES), ("verbs", "engine", "patterns"), ("infiniband/", "rdma/")),
)
FAMILIES = ("rte_", "infiniband/", "rdma/")


@functools.cache
def project_files() -> tuple[Path, ...]:
    """Every file of the project, below its root; what was built or installed is none."""
    found = []
    for folder, folders, names in os.walk(ROOT):
        folders[:] = [
            name
            for name in folders
            if name == ".ci"
            or (
                not name.startswith((".", "build-"))
                and name not in ("build", "results", "__pycache__")
                and not name.endswith(".egg-info")
            )
        ]
        # In a work tree of its own, git's entry is a file.
        found += [(Path(folder) / name).relative_to(ROOT) for name in names if name != ".git"]
    return tuple(sorted(found))


def files_of(part: Part) -> list[Path]:
    """The C files right in a part's folder."""
    return [
        path
        for path in project_files()
        if path.parent == Path(part.folder) and path.suffix in (".c", ".h")
    ]


def includes(path: Path) -> list[tuple[str, str]]:
    """Each `#include` of a file: the sign before the name, and the name."""
    return re.findall(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]', (ROOT / path).read_text(), re.M)


def forbidden(part: Part, path: Path, sign: str, name: str) -> str | None:
    """Why this include is not allowed, or None."""
    for family in FAMILIES:
        if name.startswith(family) and family not in part.families:
            return f"{family}* belongs to another part"
    if sign == "<":
        return "is not libc" if part.libc_only and name not in LIBC else None
    homes = [folder for folder in (*part.reaches, ".") if (ROOT / folder / name).exists()]
    if not homes:
        return f"is in none of {', '.join(part.reaches)}"
    where = (ROOT / homes[0] / name).resolve().relative_to(ROOT)
    if where.parent == path.parent:
        return None
    if str(where.parent) not in part.reaches:
        return f"{where.parent} is not for {part.folder}"
    if part.project is not None and where.name not in part.project:
        return f"{where} is neither transport.h nor a leaf"
    return None


@pytest.mark.parametrize("part", PARTS, ids=lambda part: part.folder)
def test_includes_follow_the_arrows(part: Part) -> None:
    wrong = [
        f"{path}: {name}: {reason}"
        for path in files_of(part)
        for sign, name in includes(path)
        if (reason := forbidden(part, path, sign, name))
    ]
    assert wrong == []


def test_every_part_is_checked() -> None:
    """A new folder of C must be given its arrows above."""
    folders = {
        str(path.parent)
        for path in project_files()
        if path.suffix in (".c", ".h") and path.parts[0] != "tests"
    }
    assert folders <= {part.folder for part in PARTS}
    assert {"patterns", "engine", "engine/tcp", "engine/dpdk"} <= folders


@pytest.mark.parametrize(
    ("folder", "sign", "name", "allowed"),
    [
        ("patterns", "<", "stdint.h", True),
        ("patterns", "<", "sys/socket.h", False),
        ("patterns", '"', "err.h", False),
        ("engine", '"', "pattern.h", True),
        ("engine", "<", "rte_mbuf.h", False),
        ("engine/tcp", '"', "transport.h", True),
        ("engine/tcp", '"', "control.h", False),
        ("engine/tcp", "<", "infiniband/verbs.h", False),
        ("engine/dpdk", "<", "rte_mbuf.h", True),
        ("engine/dpdk", '"', "worker.h", False),
        ("verbs", "<", "infiniband/verbs.h", True),
        ("verbs", "<", "rte_mbuf.h", False),
    ],
)
def test_the_arrows_themselves(folder: str, sign: str, name: str, allowed: bool) -> None:
    part = next(part for part in PARTS if part.folder == folder)
    assert (forbidden(part, Path(folder) / "any.c", sign, name) is None) == allowed


def symbols(archive: Path, which: str) -> set[str]:
    """Names in a static library's table, of nm's `--defined-only` or `--undefined-only`."""
    command = ["nm", which, "--extern-only", "--format=just-symbols", str(archive)]
    listed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    # The sanitizers and the compiler make names that begin with an underscore.
    names = {line for line in listed.splitlines() if line and not line.endswith(":")}
    return {name for name in names if not name.startswith("_")}


def exported(archive: Path) -> set[str]:
    """The names that a static library defines for others."""
    return symbols(archive, "--defined-only")


def home(archive: Path) -> str:
    """The folder of an archive's sources: verbs is built by the engine, whose leaves it needs."""
    if archive.name == "libverbs.a":
        return "verbs"
    return str(archive.parent.relative_to(ROOT / "build"))


def archives(*folders: str) -> list[Path]:
    """The libraries that scripts/setup has built in these folders."""
    found = [path for path in (ROOT / "build").glob("**/*.a") if home(path) in folders]
    if not found:
        pytest.skip(f"{', '.join(folders)} is not built in build/")
    return sorted(found)


@pytest.mark.parametrize("folder", ["engine/tcp", "engine/dpdk", "verbs"])
def test_of_a_transport_the_others_know_its_table_alone(folder: str) -> None:
    name = Path(folder).name
    mine = archives(folder)
    provided = {symbol for path in mine for symbol in exported(path)}
    assert {symbol for symbol in provided if symbol.startswith("transport")} == {
        f"transport_{name}"
    }
    others = set(archives("patterns", "engine", "engine/tcp", "engine/dpdk", "verbs")) - set(mine)
    asked = {symbol for path in others for symbol in symbols(path, "--undefined-only")}
    assert asked & provided == {f"transport_{name}"}


def test_no_two_libraries_export_the_same_name() -> None:
    """The linker takes the first that it finds in static libraries, and says nothing."""
    owners: dict[str, list[str]] = {}
    for path in archives("patterns", "engine", "engine/tcp", "engine/dpdk", "verbs"):
        for symbol in exported(path):
            owners.setdefault(symbol, []).append(path.name)
    assert {symbol: names for symbol, names in owners.items() if len(names) > 1} == {}


def headers_text(folder: str) -> str:
    """All headers of a folder in one text."""
    paths = [path for path in project_files() if str(path.parent) == folder and path.suffix == ".h"]
    return "\n".join((ROOT / path).read_text() for path in paths)


@pytest.mark.parametrize("folder", ["engine", "engine/tcp", "engine/dpdk", "patterns", "verbs"])
def test_what_is_exported_is_declared_in_a_header(folder: str) -> None:
    """A global symbol without a declaration should have been static."""
    text = headers_text(folder)
    defined = {symbol for path in archives(folder) for symbol in exported(path)}
    loose = {symbol for symbol in defined if not re.search(rf"\b{symbol}\b", text)}
    # engine/transports.c names the tables: the one place that knows all transports.
    assert {symbol for symbol in loose if not symbol.startswith("transport_")} == set()


SPDX = "SPDX-License-Identifier: BSD-3-Clause"
COMMENTED = (".c", ".h", ".py", ".sh", ".yaml", ".toml", ".build", ".options")
BY_NAME = (
    "scripts/setup",
    "scripts/test",
    "scripts/demo",
    "scripts/bench",
    "scripts/switchbench",
    ".ci/run",
)


def test_each_source_file_names_its_licence() -> None:
    sources = [p for p in project_files() if p.suffix in COMMENTED or str(p) in BY_NAME]
    assert len(sources) > 50
    without = [
        str(path)
        for path in sources
        if not any(SPDX in line for line in (ROOT / path).read_text().splitlines()[:3])
    ]
    assert without == []


def test_functions_are_short() -> None:
    c_files = [
        str(p) for p in project_files() if p.suffix in (".c", ".h") and p.parts[0] != "tests"
    ]
    command = ["ctags", "--output-format=json", "--fields=+ne", "--kinds-C=f", "-f", "-", *c_files]
    tags = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    lengths = {
        f"{tag['path']}: {tag['name']}": tag["end"] - tag["line"] + 1
        for tag in map(json.loads, tags.splitlines())
    }
    assert len(lengths) > 200
    assert {name: lines for name, lines in lengths.items() if lines > FUNCTION_LINES} == {}


def test_no_path_of_a_machine_in_the_tree() -> None:
    """A home or work folder of whoever wrote it."""
    private = re.compile(r"(?<![\w.}])/(?:work|root|home|Users)/\w")
    found = []
    for path in project_files():
        try:
            lines = (ROOT / path).read_text().splitlines()
        except UnicodeDecodeError:
            continue
        found += [f"{path}:{n}: {line}" for n, line in enumerate(lines, 1) if private.search(line)]
    assert found == []
