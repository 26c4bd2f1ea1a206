# SPDX-License-Identifier: BSD-3-Clause
"""The rules of doc/developer/architecture.md that neither Meson nor a linter checks: a place
for each library, which files name a transport, how long a module may be, and how each file
begins."""

from __future__ import annotations

import ast
import functools
import re
import subprocess
import tomllib
from collections.abc import Mapping
from pathlib import Path

import pytest

import messages
from switchbench.base.transports import NAMES

ROOT = Path(__file__).resolve().parents[2]
MODULE_LINES = 800
PACKAGE = ROOT / "scripts/python/switchbench"

# ISO C and POSIX: all that patterns and the modelled switch's core may use.
LIBC = {
    *("assert.h", "ctype.h", "errno.h", "inttypes.h", "limits.h", "math.h", "stdalign.h"),
    *("stdarg.h", "stdbool.h", "stddef.h", "stdint.h", "stdio.h", "stdlib.h", "string.h"),
}
LIBC_ONLY = ("patterns", "lab/switch/core")

# Headers of a library that some folders alone may include.
FAMILIES = {
    "rte_": ("engine/transport/dpdk", "lab/switch"),
    "infiniband/": ("verbs",),
    "rdma/": ("verbs",),
}


@functools.cache
def project_files() -> tuple[Path, ...]:
    """Return every file of the project, below its root; what was built or installed is none."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    found = (Path(name) for name in listed.split("\0") if name)
    return tuple(sorted(path for path in found if (ROOT / path).is_file()))


@functools.cache
def c_sources() -> dict[Path, list[tuple[str, str]]]:
    """Each C file outside tests/, with its includes: the sign before the name, and the name."""
    return {
        path: re.findall(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]', (ROOT / path).read_text(), re.M)
        for path in project_files()
        if path.suffix in (".c", ".h") and path.parts[0] != "tests"
    }


def python_sources() -> dict[str, str]:
    """Return each module of the command by its path in the package."""
    return {str(p.relative_to(PACKAGE)): p.read_text() for p in PACKAGE.rglob("*.py")}


# --- C: who includes whom -------------------------------------------------------------------------


def forbidden(path: Path, name: str) -> bool:
    """Return whether a header of a library belongs to other folders than the file's."""
    folder = str(path.parent)
    if folder.startswith(LIBC_ONLY):
        return name not in LIBC
    return any(name.startswith(one) and folder not in own for one, own in FAMILIES.items())


def test_a_header_has_one_name_and_a_library_its_place() -> None:
    """What a folder may include of others Meson says: an include that goes up does not compile."""
    names = [path.name for path in c_sources() if path.suffix == ".h"]
    assert len(names) == len(set(names))
    system = [(path, name) for path, some in c_sources().items() for sign, name in some
              if sign == "<"]  # fmt: skip
    assert [(str(path), name) for path, name in system if forbidden(path, name)] == []
    assert forbidden(Path("engine/trial/any.c"), "rte_mbuf.h")
    assert forbidden(Path("patterns/matrix/any.c"), "sys/socket.h")


def test_the_registry_alone_names_the_transports() -> None:
    """All others find a transport's table by its name in a document."""
    tables = {
        "engine/transport/dpdk": "transport_dpdk",
        "engine/transport/packet": "transport_packet",
        "engine/transport/tcp": "transport_tcp",
        "engine/transport/udp": "transport_udp",
        "verbs": "transport_verbs",
    }
    homes: dict[str, set[str]] = {name: set() for name in tables.values()}
    for path in c_sources():
        for name in set(re.findall(r"\btransport_\w+", (ROOT / path).read_text())) & homes.keys():
            homes[name].add(str(path if path.name == "registry.c" else path.parent))
    registry = "engine/transport/registry.c"
    assert homes == {name: {home, registry} for home, name in tables.items()}


# --- names of transports --------------------------------------------------------------------------

CORE = tuple(f"engine/{name}" for name in ("app", "document", "node", "trial", "worker"))
COMPARISON = re.compile(r"\bstrn?(?:case)?cmp\s*\(([^;]*)")
TRANSPORT_WORD = re.compile(
    r'transport\w*\)?->name|"(?:dpdk|packet|tcp|udp|verbs|frame|message)"|transports\[[^]]*\](?!->)'
)
NAMES_TRANSPORTS = {
    "base/transports.py": "the table",
    "config/rules.py": "the options' mappings and defaults, and which have an effect",
    "hosts/doctor.py": "headings of what is checked",
    "render/first_screen.py": "a unit, of what verbs sent again",
}


def c_compares(code: str) -> bool:
    """Return whether this C text compares a string with a transport's name or unit."""
    return any(TRANSPORT_WORD.search(found[1]) for found in COMPARISON.finditer(code))


def python_names(code: str) -> bool:
    """Return whether a string of this Python text is the name of a transport."""
    nodes = ast.walk(messages.parsed(code))
    return any(isinstance(node, ast.Constant) and node.value in NAMES for node in nodes)


def test_the_core_asks_for_capabilities() -> None:
    """A further transport is a table in C and an entry of one in Python, with its options' keys."""
    core = [path for path in c_sources() if str(path.parent) in CORE]
    assert len(core) > 15
    assert [str(path) for path in core if c_compares((ROOT / path).read_text())] == []
    found = {name for name, code in python_sources().items() if python_names(code)}
    assert found == set(NAMES_TRANSPORTS)


@pytest.mark.rows
def test_a_planted_name_is_found(language: str, code: str, found: bool) -> None:
    assert (c_compares if language == "C" else python_names)(code) == found


# --- sizes, names, texts --------------------------------------------------------------------------

SPDX = "SPDX-License-Identifier: BSD-3-Clause"
COMMENTED = (".c", ".h", ".py", ".sh", ".yaml", ".toml", ".build", ".options")
SCRIPTS = [f"scripts/{name}" for name in ("setup", "test", "demo", "bench", "switchbench")]


def test_each_source_file_names_its_licence_and_no_path_of_a_machine() -> None:
    """Results directories that are kept are data: their configurations are as runs wrote them."""
    private = re.compile(r"(?<![\w.}])/(?:work|root|home|Users)/\w")
    golden, wrong, sources = Path("tests/python/data/golden"), [], 0
    for path in project_files():
        try:
            text = (ROOT / path).read_text()
        except UnicodeDecodeError:
            continue
        source = path.suffix in COMMENTED and golden not in path.parents
        if source or str(path) in (*SCRIPTS, ".ci/run"):
            sources += 1
            wrong += [] if SPDX in "".join(text.splitlines()[:3]) else [f"{path}: no licence"]
        wrong += [f"{path}: {found[0]}" for found in private.finditer(text)]
    assert sources > 500
    assert wrong == []


def undocumented(code: str) -> int:
    """Return lines of a module besides its docstrings."""
    nodes = (node for node in ast.walk(messages.parsed(code)) if isinstance(node, ast.Expr))
    texts = (node.value for node in nodes if isinstance(node.value, ast.Constant))
    return len(code.splitlines()) - sum((t.end_lineno or 0) - t.lineno + 1 for t in texts)


def classes(files: Mapping[str, str]) -> dict[str, list[str]]:
    """Return the names of public classes, and the files that each stands in."""
    found: dict[str, list[str]] = {}
    for name, code in files.items():
        for node in ast.walk(messages.parsed(code)):
            if isinstance(node, ast.ClassDef) and node.name[0] != "_":
                found.setdefault(node.name, []).append(name)
    return found


def test_modules_are_short_and_no_two_classes_share_a_name() -> None:
    files = python_sources()
    lengths = {name: undocumented(code) for name, code in files.items()}
    assert {name: n for name, n in lengths.items() if n > MODULE_LINES} == {}
    assert {name: some for name, some in classes(files).items() if len(some) > 1} == {}
    assert undocumented('"""Of a\n\nmodule."""\n\nx = 1\n') == 2
    files = {"a": "class A: pass", "b": "def f():\n    class A: pass", "c": "class _A: pass"}
    assert classes(files) == {"A": ["a", "b"]}


# --- the page ---------------------------------------------------------------------------------

LINTER = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]
# The command's packages from the ground up: each imports only from those before it (lint-imports).
PYTHON_FLOORS = tuple(reversed(LINTER["contracts"][0]["layers"]))


def test_the_page_has_the_packages_from_the_ground_up() -> None:
    page = (ROOT / "doc/developer/architecture.md").read_text().partition("## The command")[2]
    assert tuple(re.findall(r"^\| `(\w+)/` \|", page, re.M)) == PYTHON_FLOORS
