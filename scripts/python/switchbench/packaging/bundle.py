# SPDX-License-Identifier: BSD-3-Clause
"""One archive with everything: for machines without network, and for systems that this project has
no package for.

    switchbench-0.1.0-x86_64/
        install          sh: verifies, copies, tries
        SHA256SUMS       of every file
        CONTENTS         versions of what is in it
        bin/             the command, and links to the programs
        engine/          the engine, the modelled switch, the guests' agent (`collect`)
        python/          Python, and the command with its packages (`runtime`)
        share/           configurations, documents, manual pages, completion
"""

from __future__ import annotations

import argparse
import hashlib
import os
import platform
import shutil
import tarfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory

from .. import __version__
from ..base.programs import configurations, documentation, find_engine
from ..hosts import collect
from ..labs import switches
from ..labs.state import LabError
from ..labs.vm import image
from ..labs.vm.errors import GuestError
from . import packages, place, runtime

_INSTALL = Path(__file__).with_name("install.sh")
_CONTENTS = "CONTENTS"


def name() -> str:
    """What the archive's folder is called."""
    return f"switchbench-{__version__}-{platform.machine()}"


def write(archive: Path, parser: argparse.ArgumentParser) -> int:
    """Makes the archive; how many bytes it has. Manual and completion are of this parser;
    ConfigurationError says what is missing."""
    with TemporaryDirectory(prefix="switchbench-bundle-", dir=archive.parent) as work:
        folder = Path(work) / name()
        fill(folder, parser)
        part = Path(work) / archive.name
        with tarfile.open(part, "w:gz", compresslevel=6) as packed:
            packed.add(folder, folder.name, filter=_of_nobody)
        part.replace(archive)
    return archive.stat().st_size


def fill(folder: Path, parser: argparse.ArgumentParser) -> None:
    """Makes the folder that the archive holds."""
    folder.mkdir()
    programs = collect.collect(*_others())
    programs.write(folder / "engine")
    python = runtime.write(folder / "python")
    place.command(folder, python.relative_to(folder))
    for piece in programs.pieces:
        if piece.place.startswith("libexec/"):
            program = Path(piece.place).name
            (folder / "bin" / program).symlink_to(f"../engine/{program}")
    _share(parser, folder / "share")
    shutil.copy(_INSTALL, folder / "install")
    (folder / "install").chmod(0o755)
    (folder / _CONTENTS).write_text("\n".join(_contents()) + "\n")
    (folder / collect.SUMS).write_text("".join(f"{line}\n" for line in sums(folder)))


def _others() -> Iterator[Path]:
    """The programs beside the engine, as far as this build has them."""
    finders: tuple[Callable[[], Path], ...] = (switches.find_binary, image.find_agent)
    for find in finders:
        with suppress(LabError, GuestError):
            yield find()


def _share(parser: argparse.ArgumentParser, share: Path) -> None:
    for source, target in (
        (configurations(), share / "switchbench" / "conf"),
        (documentation(), share / "doc" / "switchbench"),
    ):
        if source.is_dir():
            shutil.copytree(source, target)
    place.pages(parser, share)


def _contents() -> Iterator[str]:
    yield f"switchbench {__version__} {platform.machine()}"
    yield f"python {platform.python_version()}"
    yield " ".join(platform.libc_ver())
    yield f"made of {find_engine()} on {platform.platform()}"
    for one in packages.distributions():
        yield f"{one.name} {one.version}"


def sums(folder: Path) -> Iterator[str]:
    """Lines as sha256sum reads them, of all other files; links are what they point to."""
    for path in sorted(folder.rglob("*")):
        if path.is_file() and not path.is_symlink() and path != folder / collect.SUMS:
            with path.open("rb") as file:
                digest = hashlib.file_digest(file, "sha256").hexdigest()
            yield f"{digest}  {path.relative_to(folder)}"


def _of_nobody(entry: tarfile.TarInfo) -> tarfile.TarInfo:
    """Who made it is not who installs it."""
    entry.uid = entry.gid = 0
    entry.uname = entry.gname = "root"
    entry.mode |= 0o444 | (0o111 if entry.isdir() else 0)
    return entry


def default_path() -> Path:
    """Where it is written unless somebody says otherwise."""
    return Path(os.curdir) / f"{name()}.tar.gz"
