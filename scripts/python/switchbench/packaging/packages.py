# SPDX-License-Identifier: BSD-3-Clause
"""The Python packages that the command needs, copied out of the environment that it runs in.

What pip has unpacked from wheels is taken as it lies there, with its metadata: no index, no network
and no pip are needed, and what is installed is what was tested.
"""

from __future__ import annotations

import compileall
import py_compile
import re
import shutil
from collections.abc import Iterator
from contextlib import suppress
from importlib import metadata
from pathlib import Path

from ..base.errors import ConfigurationError

NAME = "switchbench"
_SOURCE = Path(__file__).resolve().parents[1]

_REQUIREMENT = re.compile(r"([\w.-]+)\s*(?:\[([\w,\s.-]+)\])?")
_EXTRA = re.compile(r"""extra\s*==\s*["']([\w.-]+)["']""")

# Parts that are for those who build on a package or test it: half of what numpy and pyarrow weigh.
_LEFT_OUT = {"tests", "include"}
_LEFT_OUT_SUFFIXES = {".a", ".c", ".h", ".hpp", ".pxd", ".pyi", ".pyx"}
_LEFT_OUT_LIBRARIES = re.compile(r"_flight\.")  # servers of Arrow, which nothing else needs


def distributions() -> list[metadata.Distribution]:
    """The command's own, then all that it needs, and they need, by name."""
    try:
        found = {NAME: metadata.distribution(NAME)}
    except metadata.PackageNotFoundError:
        raise ConfigurationError(
            "this Python has no metadata of switchbench, which names the packages that it needs: "
            "install it with pip (doc/how-to/install.md)"
        ) from None
    waiting = [(NAME, frozenset[str]())]
    while waiting:
        name, extras = waiting.pop()
        for wanted, wanted_extras in _requirements(found[name], extras):
            # What pip left out of the environment is not needed on this Python and system.
            with suppress(metadata.PackageNotFoundError):
                if wanted not in found:
                    found[wanted] = metadata.distribution(wanted)
                    waiting.append((wanted, wanted_extras))
    return [found[name] for name in sorted(found)]


def _requirements(
    distribution: metadata.Distribution, extras: frozenset[str]
) -> Iterator[tuple[str, frozenset[str]]]:
    """Names and extras of what a distribution needs."""
    for text in distribution.requires or ():
        requirement, _, marker = text.partition(";")
        extra = _EXTRA.search(marker)
        named = _REQUIREMENT.match(requirement)
        if named is None or (extra is not None and extra[1] not in extras):
            continue
        name = re.sub(r"[-_.]+", "-", named[1]).lower()
        yield name, frozenset(word.strip() for word in (named[2] or "").split(",") if word)


def copy(folder: Path) -> None:
    """Fills a folder of Python's path with all of them."""
    for distribution in distributions():
        for file in distribution.files or ():
            source = Path(str(file.locate()))
            if _is_wanted(file, distribution.name) and source.is_file():
                target = folder / file
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(source, target)
    shutil.copytree(_SOURCE, folder / NAME, ignore=shutil.ignore_patterns("__pycache__"))
    compile_all(folder)


def compile_all(folder: Path) -> None:
    """Compiles what is below a folder, to be used as it is: archives and packages change the times
    by which Python would know whether it is still right, and who runs it may not write there."""
    unchecked = py_compile.PycInvalidationMode.UNCHECKED_HASH
    compileall.compile_dir(
        folder, quiet=2, workers=0, ddir=folder.name, invalidation_mode=unchecked
    )


def _is_wanted(file: metadata.PackagePath, name: str) -> bool:
    if file.is_absolute() or ".." in file.parts:
        return False  # a script in bin/, which would name another Python
    if name == NAME:
        return file.parts[0].endswith(".dist-info") and file.name in ("METADATA", "RECORD")
    if _LEFT_OUT.intersection(file.parts[:-1]) or file.suffix in _LEFT_OUT_SUFFIXES:
        return False
    if "__pycache__" in file.parts:
        return False
    return not (".so" in file.name and _LEFT_OUT_LIBRARIES.search(file.name))
