# SPDX-License-Identifier: BSD-3-Clause
"""The rules of doc/developer/architecture.md that a machine can check: who may include or import
whom, what a part exports, how long a function may be, and what each file begins with."""

from __future__ import annotations

import ast
import functools
import graphlib
import html
import json
import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

import grimp
import networkx
import pytest

import messages
from switchbench.base.transports import NAMES

ROOT = Path(__file__).resolve().parents[2]
FUNCTION_LINES = 80

# ISO C and POSIX: all that patterns may use.
LIBC = {
    *("assert.h", "ctype.h", "errno.h", "inttypes.h", "limits.h", "math.h", "stdalign.h"),
    *("stdarg.h", "stdbool.h", "stddef.h", "stdint.h", "stdio.h", "stdlib.h", "string.h"),
}
PATTERNS = (
    "patterns",
    *(f"patterns/{name}" for name in ("collective", "kernel", "matrix", "common")),
)
LIBC_ONLY = {*PATTERNS, "lab/switch/core"}

# Headers of a library that one folder alone may include.
FAMILIES = {
    "rte_": ("engine/transport/dpdk", "lab/switch"),
    "infiniband/": ("verbs",),
    "rdma/": ("verbs",),
}

BASE = ("engine/platform", "engine/clock", "engine/measure")
TRAFFIC = (*BASE, "engine/traffic", "patterns", "patterns/common")
RUNTIME = (
    *TRAFFIC,
    *("engine/guard", "engine/control", "engine/document", "engine/record"),
    *("engine/worker", "engine/transport"),
)
# The floors (doc/developer/architecture.md): what the files of a folder may include from others.
FLOORS: dict[str, tuple[str, ...]] = {
    "patterns/common": (),
    "patterns/matrix": ("patterns/common",),
    "patterns/collective": ("patterns/common",),
    "patterns/kernel": ("patterns/common", "patterns/collective"),
    "patterns": PATTERNS[1:],
    "engine": ("engine/platform",),
    "engine/platform": (),
    "engine/clock": ("engine/platform",),
    "engine/measure": ("engine/platform",),
    "engine/traffic": (*BASE, "patterns", "patterns/common"),
    "engine/guard": ("engine/platform",),
    "engine/control": ("engine/platform", "engine/clock"),
    "engine/document": TRAFFIC,
    "engine/record": ("engine/platform", "engine/clock"),
    "engine/transport": TRAFFIC,
    "engine/transport/dpdk": TRAFFIC,
    "engine/transport/kernel": TRAFFIC,
    "engine/transport/packet": (*TRAFFIC, "engine/transport/kernel"),
    "engine/transport/tcp": (*TRAFFIC, "engine/transport/kernel"),
    "engine/transport/udp": (*TRAFFIC, "engine/transport/kernel"),
    "verbs": TRAFFIC,
    "engine/worker": TRAFFIC,
    "engine/runtime": RUNTIME,
    "engine/phase": (*RUNTIME, "engine/runtime"),
    "engine/report": (*RUNTIME, "engine/runtime", "engine/phase"),
    "engine/trial": (*RUNTIME, "engine/runtime", "engine/phase", "engine/report"),
    "engine/node": (
        *RUNTIME,
        *("engine/runtime", "engine/phase", "engine/report", "engine/trial"),
    ),
    "lab/switch/core": ("engine/platform", "engine/traffic"),
    "lab/switch": (
        *TRAFFIC,
        *("lab/switch/core", "engine/document", "engine/transport/dpdk"),
    ),
}


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


@functools.cache
def c_sources() -> dict[Path, list[tuple[str, str]]]:
    """Each C file outside tests/, with its includes: the sign before the name, and the name."""
    return {
        path: re.findall(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]', (ROOT / path).read_text(), re.M)
        for path in project_files()
        if path.suffix in (".c", ".h") and path.parts[0] != "tests"
    }


def resolve(path: Path, name: str) -> Path | None:
    """The project's header that `path` means by `name`: of its own folder, else of one that it may
    include, else of any."""
    own = str(path.parent)
    others = (folder for folder in FLOORS if folder != own and folder not in FLOORS[own])
    for folder in (own, *FLOORS[own], *others):
        if (ROOT / folder / name).is_file():
            return Path(folder) / name
    return None


def forbidden(path: Path, sign: str, name: str) -> str | None:
    """Why this include is not allowed, or None."""
    folder = str(path.parent)
    for family, folders in FAMILIES.items():
        if name.startswith(family) and folder not in folders:
            return f"{family}* belongs to {', '.join(folders)}"
    if sign == "<":
        return "is not libc" if folder in LIBC_ONLY and name not in LIBC else None
    header = resolve(path, name)
    if header is None:
        return "is no header of the project"
    home = str(header.parent)
    return None if home in (folder, *FLOORS[folder]) else f"{home} is not below {folder}"


def circles(graph: Mapping[str, Iterable[str]]) -> list[list[str]]:
    """The sets of nodes that reach each other: graphlib names one circle, and is asked again."""
    left = {node: set(others) - {node} for node, others in graph.items()}
    found = []
    while True:
        try:
            graphlib.TopologicalSorter(left).prepare()
        except graphlib.CycleError as error:
            circle = sorted(set(error.args[1]))
            found.append(circle)
            for node in circle:  # the circle becomes one node without arrows inside
                left[node] = left.get(node, set()) - set(circle)
        else:
            return sorted(found)


def unit(path: Path) -> str:
    """A .c file and its header are one unit."""
    return str(path.with_suffix(""))


def includes_by(key: Callable[[Path], str]) -> dict[str, set[str]]:
    """Who includes whom: files by `unit`, or folders."""
    graph: dict[str, set[str]] = {}
    for path, included in c_sources().items():
        for sign, name in included:
            header = resolve(path, name) if sign == '"' else None
            if header is not None and key(header) != key(path):
                graph.setdefault(key(path), set()).add(key(header))
    return graph


@pytest.mark.parametrize("folder", FLOORS)
def test_includes_follow_the_arrows(folder: str) -> None:
    wrong = [
        f"{path}: {name}: {reason}"
        for path, included in c_sources().items()
        if str(path.parent) == folder
        for sign, name in included
        if (reason := forbidden(path, sign, name))
    ]
    assert wrong == []


def test_every_folder_has_its_floor() -> None:
    assert {str(path.parent) for path in c_sources()} == set(FLOORS)


def test_floors_have_no_circle() -> None:
    assert circles(FLOORS) == []


def test_no_circle_of_includes_between_files() -> None:
    assert circles(includes_by(unit)) == []


def test_no_circle_of_includes_between_folders() -> None:
    assert circles(includes_by(lambda path: str(path.parent))) == []


def test_a_planted_circle_is_found() -> None:
    graph = {"a": {"b"}, "b": {"c", "d"}, "c": {"a"}, "e": {"f"}, "f": {"e"}}
    assert circles(graph) == [["a", "b", "c"], ["e", "f"]]
    planted = includes_by(unit)
    planted.setdefault("engine/platform/err", set()).add("engine/control/endpoint")
    assert circles(planted) == [["engine/control/endpoint", "engine/platform/err"]]


@pytest.mark.parametrize(
    ("folder", "sign", "name", "allowed"),
    [
        ("patterns", "<", "stdint.h", True),
        ("patterns", "<", "sys/socket.h", False),
        ("patterns", '"', "err.h", False),
        ("engine/phase", '"', "pattern.h", True),
        ("engine/phase", "<", "rte_mbuf.h", False),
        ("engine/platform", '"', "clock.h", False),
        ("engine/transport/tcp", '"', "transport.h", True),
        ("engine/transport/tcp", '"', "endpoint.h", False),
        ("engine/transport/tcp", "<", "infiniband/verbs.h", False),
        ("engine/transport/dpdk", "<", "rte_mbuf.h", True),
        ("engine/transport/dpdk", '"', "worker.h", False),
        ("verbs", "<", "infiniband/verbs.h", True),
        ("verbs", "<", "rte_mbuf.h", False),
    ],
)
def test_the_arrows_themselves(folder: str, sign: str, name: str, allowed: bool) -> None:
    assert (forbidden(Path(folder) / "any.c", sign, name) is None) == allowed


COMMAND = "switchbench"


LINTER = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]
# The command's packages from the ground up: each imports only from those before it.
PYTHON_FLOORS = tuple(reversed(LINTER["contracts"][0]["layers"]))


@functools.cache
def python_imports() -> dict[str, frozenset[str]]:
    """Which packages of the command import which others."""
    graph = grimp.build_graph(COMMAND, exclude_type_checking_imports=True)
    found: dict[str, set[str]] = {}
    for module in graph.modules - {COMMAND}:
        others = graph.find_modules_directly_imported_by(module) - {COMMAND}
        package = module.split(".")[1]
        found.setdefault(package, set()).update({other.split(".")[1] for other in others})
    return {package: frozenset(others - {package}) for package, others in found.items()}


def test_a_planted_import_upwards_is_found(tmp_path: Path) -> None:
    """The gate `imports` runs this linter with the project's own layers."""
    layers = "".join(f"\n    {name}" for name in ("config", "plan", "base"))
    planted = f"[importlinter]\nroot_package = {COMMAND}\n[importlinter:contract:1]\n"
    planted += f"name = planted\ntype = layers\ncontainers = {COMMAND}\nlayers ={layers}\n"
    (tmp_path / "planted.ini").write_text(planted)
    words = [Path(sys.executable).parent / "lint-imports", "--config", tmp_path / "planted.ini"]
    done = subprocess.run([*words, "--no-cache"], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "switchbench.plan is not allowed to import switchbench.config" in done.stdout


CORE = tuple(
    f"engine/{name}"
    for name in ("document", "node", "phase", "report", "runtime", "trial", "worker")
)
COMPARISON = re.compile(r"\bstrn?(?:case)?cmp\s*\(([^;]*)")
TRANSPORT_WORD = re.compile(
    r'transport\w*\)?->name|"(?:dpdk|packet|tcp|udp|verbs|frame|message)"|transports\[[^]]*\](?!->)'
)


def compares_transport(code: str) -> list[str]:
    """The comparisons of strings in this C text that ask for a transport or its unit."""
    return [
        found.group(0)
        for found in COMPARISON.finditer(code)
        if TRANSPORT_WORD.search(found.group(1))
    ]


def test_the_core_compares_no_name_of_a_transport() -> None:
    """It asks for capabilities instead (struct transport)."""
    found = {
        str(path): compares_transport((ROOT / path).read_text())
        for path in c_sources()
        if str(path.parent) in CORE
    }
    assert len(found) > 20
    assert {path: lines for path, lines in found.items() if lines} == {}


@pytest.mark.parametrize(
    ("code", "found"),
    [
        ('if (strcmp(transport->name, "fast") == 0)', True),
        ('strcmp(run->trial->transport->name,\n    "verbs") == 0;', True),
        ('return strncasecmp(unit, "frame", 5) == 0;', True),
        ("strcmp(doc->transports[i], wanted) == 0", True),
        ("strcmp(conf->network, part->doc->network) != 0", False),
        ('strcmp(pattern->name, "ring") == 0; x = transport->name;', False),
    ],
)
def test_a_planted_comparison_is_found(code: str, found: bool) -> None:
    assert bool(compares_transport(code)) == found


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


@functools.cache
def libraries() -> tuple[Path, ...]:
    """All that scripts/setup has built of the project."""
    found = [path for path in (ROOT / "build").glob("**/*.a") if home(path) in FLOORS]
    if not found:
        pytest.skip("nothing is built in build/")
    return tuple(sorted(found))


@functools.cache
def calls() -> dict[str, dict[str, set[str]]]:
    """Which names the libraries of a folder use of those of another."""
    owners = {symbol: home(path) for path in libraries() for symbol in exported(path)}
    used: dict[str, dict[str, set[str]]] = {}
    for path in libraries():
        for symbol in symbols(path, "--undefined-only"):
            owner = owners.get(symbol, home(path))
            if owner != home(path):
                used.setdefault(home(path), {}).setdefault(owner, set()).add(symbol)
    return used


TRANSPORTS = {
    "engine/transport/dpdk": "transport_dpdk",
    "engine/transport/packet": "transport_packet",
    "engine/transport/tcp": "transport_tcp",
    "engine/transport/udp": "transport_udp",
    "verbs": "transport_verbs",
}


def test_calls_follow_the_arrows() -> None:
    """The registry alone names the transports, each by its table."""
    wrong = {
        f"{folder} calls {', '.join(sorted(names))} of {owner}"
        for folder, others in calls().items()
        for owner, names in others.items()
        if owner not in FLOORS[folder]
        and not (folder == "engine/transport" and names == {TRANSPORTS.get(owner)})
    }
    assert wrong == set()


def test_no_circle_of_calls() -> None:
    assert circles({folder: set(others) for folder, others in calls().items()}) == []


@pytest.mark.parametrize("folder", TRANSPORTS)
def test_of_a_transport_the_others_know_its_table_alone(folder: str) -> None:
    provided = {symbol for path in archives(folder) for symbol in exported(path)}
    assert {symbol for symbol in provided if symbol.startswith("transport_")} == {
        TRANSPORTS[folder]
    }
    engine = {user: used for user, used in calls().items() if not user.startswith("lab/")}
    asked = {name for used in engine.values() for name in used.get(folder, set())}
    assert asked == {TRANSPORTS[folder]}


def test_no_two_libraries_export_the_same_name() -> None:
    """The linker takes the first that it finds in static libraries, and says nothing."""
    owners: dict[str, list[str]] = {}
    for path in libraries():
        for symbol in exported(path):
            owners.setdefault(symbol, []).append(path.name)
    assert {symbol: names for symbol, names in owners.items() if len(names) > 1} == {}


def headers_text(folder: str) -> str:
    """All headers of a folder, and below it, in one text, with the names that their lists make."""
    paths = [path for path in c_sources() if path.suffix == ".h" and Path(folder) in path.parents]
    text = "\n".join((ROOT / path).read_text() for path in paths)
    words = re.findall(r"\bX\((\w+)\)", text)
    made = [name + word for name in re.findall(r"(\w+)##word;", text) for word in words]
    return "\n".join([text, *made])


@pytest.mark.parametrize("folder", [*FLOORS])
def test_what_is_exported_is_declared_in_a_header(folder: str) -> None:
    """A global symbol without a declaration should have been static."""
    text = headers_text(folder)
    defined = {symbol for path in archives(folder) for symbol in exported(path)}
    loose = {symbol for symbol in defined if not re.search(rf"\b{symbol}\b", text)}
    # engine/transport/registry.c names the tables: the one place that knows all transports.
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
    """Results directories that are kept are data: their configurations are as runs wrote them."""
    data = Path("tests/python/data")
    kept = {data / "golden"}
    sources = [
        p
        for p in project_files()
        if (p.suffix in COMMENTED and kept.isdisjoint(p.parents)) or str(p) in BY_NAME
    ]
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


def drawing(arrows: Mapping[str, Iterable[str]]) -> str:
    """Who uses whom, in the language of Graphviz (doc/developer/architecture.md)."""
    folders = sorted({*arrows, *(folder for others in arrows.values() for folder in others)})
    lines = ['  node [shape=box, fontname="sans-serif", fontsize=11, margin="0.1,0.04"];']
    lines += [f'  "{folder}";' for folder in folders]
    for folder, others in sorted(arrows.items()):
        lines += [f'  "{folder}" -> "{other}";' for other in sorted(others)]
    return "\n".join(["digraph uses {", "  ranksep=0.35; nodesep=0.2;", *lines, "}"])


def drawn(what: Sequence[str]) -> str:
    """The picture of the folders' includes, or with `python` of the packages' imports."""
    if not what:
        return drawing(includes_by(lambda path: str(path.parent)))
    imports = {name: python_imports()[name] & set(PYTHON_FLOORS) for name in PYTHON_FLOORS}
    return drawing(imports)


@pytest.mark.parametrize(("picture", "what"), [("includes", []), ("imports", ["python"])])
def test_the_pictures_show_the_arrows_of_today(picture: str, what: list[str]) -> None:
    """Without those that follow from others, as `tred` leaves them."""
    graph = networkx.DiGraph(re.findall(r'"(\S+)" -> "(\S+)"', drawn(what)))
    shown = html.unescape((ROOT / f"doc/images/{picture}.svg").read_text())
    arrows = set(re.findall(r"<title>(\S+)->(\S+)</title>", shown))
    assert len(arrows) > 15
    assert arrows == set(networkx.transitive_reduction(graph).edges)


def test_the_page_has_the_packages_from_the_ground_up() -> None:
    page = (ROOT / "doc/developer/architecture.md").read_text().partition("## The command")[2]
    assert tuple(re.findall(r"^\| `(\w+)/` \|", page, re.M)) == PYTHON_FLOORS


if __name__ == "__main__":
    print(drawn(sys.argv[1:]))


PACKAGE = Path("scripts/python/switchbench")
# Where a name of a transport may stand besides the table, and why.
NAMES_TRANSPORTS = {
    "base/transports.py": "the table",
    "base/words.py": "what others call one",
    "config/schema.py": "the options' keys",
    "config/rules.py": "the options' mappings and defaults, and which have an effect",
    "config/tests.py": "options that depend on others",
    "hosts/doctor.py": "headings of what is checked, and a folder of DPDK's",
    "render/first_screen.py": "a unit, of what verbs sent again",
}


def names_transports(code: str) -> list[int]:
    """The lines of this Python text where a string is the name of a transport."""
    return [
        node.lineno
        for node in ast.walk(messages.parsed(code))
        if isinstance(node, ast.Constant) and node.value in NAMES
    ]


def test_python_asks_the_table_of_transports() -> None:
    """A further transport is an entry there, its options' keys and what they mean."""
    files = {str(path.relative_to(ROOT / PACKAGE)): path for path in (ROOT / PACKAGE).rglob("*.py")}
    assert len(files) > 100
    found = {name: names_transports(path.read_text()) for name, path in files.items()}
    assert {name: lines for name, lines in found.items() if lines} == {
        name: found[name] for name in NAMES_TRANSPORTS
    }


@pytest.mark.parametrize(
    ("code", "found"),
    [
        ('if trial.transport == "verbs":\n    pass', [1]),
        ('\n_FRAMES = ("dpdk", "udp")', [2, 2]),
        ('match name:\n    case "tcp":\n        pass', [2]),
        ('values["tcp"]', [1]),
        ('if of(trial.transport).rdma and word == "tcp_address":\n    pass', []),
    ],
)
def test_a_planted_name_is_found(code: str, found: list[int]) -> None:
    assert names_transports(code) == found


def class_names(files: dict[str, str]) -> dict[str, list[str]]:
    """Of these Python texts the names of public classes, and the files that each stands in."""
    found: dict[str, list[str]] = {}
    for name, code in files.items():
        for node in ast.walk(messages.parsed(code)):
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                found.setdefault(node.name, []).append(name)
    return found


def test_no_two_classes_share_a_name() -> None:
    """A reader who meets a name finds one class by it."""
    package = ROOT / PACKAGE
    found = class_names(
        {str(path.relative_to(package)): path.read_text() for path in package.rglob("*.py")}
    )
    assert len(found) > 300
    assert {name: files for name, files in found.items() if len(files) > 1} == {}


def test_a_planted_second_class_is_found() -> None:
    files = {"a.py": "class Row:\n    pass\n", "b.py": "def f():\n    class Row:\n        pass\n"}
    files["c.py"] = "class _Row:\n    pass\n"
    assert class_names(files) == {"Row": ["a.py", "b.py"]}


LINES_MOST = 800
# It is sent to hosts as one file.
LINES_MORE = {"hosts/port_binding.py": 1000}


def undocumented(code: str) -> int:
    """Lines of a module besides its docstrings."""
    texts = (
        node.value
        for node in ast.walk(messages.parsed(code))
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    )
    return len(code.splitlines()) - sum((t.end_lineno or 0) - t.lineno + 1 for t in texts)


def too_long(lines: dict[str, int]) -> dict[str, int]:
    """Modules with more lines than they may have."""
    return {name: n for name, n in lines.items() if n > LINES_MORE.get(name, LINES_MOST)}


def test_no_module_is_too_long() -> None:
    package = ROOT / PACKAGE
    lines = {
        str(path.relative_to(package)): undocumented(path.read_text())
        for path in package.rglob("*.py")
    }
    assert too_long(lines) == {}
    assert too_long(lines | {"cli/main.py": 801}) == {"cli/main.py": 801}
    assert undocumented('"""Of a\n\nmodule."""\n\nx = 1\n') == 2
