# SPDX-License-Identifier: BSD-3-Clause
"""Copying the engine with all its libraries to the hosts of a site (doc/how-to/cluster.md).

A host first compares this build's checksums with its own files; only a host that lacks the build
gets the archive, in a second login. At the end each host runs the engine and reports its version.
No command waits for input: `sudo -n`.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import os
import platform
import re
import shlex
import subprocess
import tarfile
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO

from .. import __version__
from ..base.errors import ConfigurationError
from ..base.model import Process, Site
from ..base.programs import ENGINE, SWITCH, VERSION, find_engine, machine_of
from ..run.launch.far import CURRENT, SHARED_FOLDER, Answer
from ..run.launch.ssh import NOT_ASKED, OpenSsh, lack, refusal

SUMS = "SHA256SUMS"

_LIBRARY = re.compile(r"^\s*(?:(?P<name>\S+) => )?(?P<path>/\S+) \(0x")
_LOADER = re.compile(r"/ld-linux[^/]*\.so\.\d+$|/ld64?\.so\.\d+$")

# Kinds of DPDK drivers that a port can need; other kinds are for cryptography, compression and so
# on. Two drivers are excluded: they depend on such a kind, and on libraries of 17 MB.
_DRIVERS = ("bus", "mempool", "common", "net")
_DRIVERS_WITHOUT = ("librte_common_qat.so", "librte_net_softnic.so")
ROOT = Path("/")  # tests use another folder
_DRIVER_FOLDERS = (
    "usr/lib*/dpdk/pmds-*", "usr/lib*/*/dpdk/pmds-*", "usr/lib64/dpdk-pmds",
    "usr/local/lib*/dpdk/pmds-*", "usr/local/lib*/*/dpdk/pmds-*",
)  # fmt: skip

_START_SCRIPT = """\
#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
#
# Starts the program of this name in libexec/ by the loader and the libraries of this folder.
path=$(readlink -f "$0")
here=${path%/*} program=${path##*/}
unset LD_LIBRARY_PATH LD_PRELOAD IBV_DRIVERS SWITCHBENCH_BUNDLE
for one in "$here"/lib/verbs/lib*-rdmav*.so; do
  [ ! -e "$one" ] || export IBV_DRIVERS="${IBV_DRIVERS:+$IBV_DRIVERS:}${one%-rdmav*}"
done
# The engine takes DPDK's drivers from there (engine/transport/dpdk/eal.c).
[ ! -d "$here/lib/dpdk" ] || export SWITCHBENCH_BUNDLE="$here"
[ ! -d "$here/lib/bpf" ] || export LIBXDP_OBJECT_PATH="${LIBXDP_OBJECT_PATH:-$here/lib/bpf}"
# The host's cache of libraries is another C library's.
exec "$here/lib/loader" --inhibit-cache --library-path "$here/lib:$here/lib/dpdk" \\
  --argv0 "$here/$program" "$here/libexec/$program" "$@"
"""

_COMPRESSION = 6
_PROGRAM, _FILE = 0o755, 0o644


@dataclass(frozen=True)
class Piece:
    """File in the folder that `push` installs on a host: its path, content and mode."""

    place: str  # path below the folder
    content: bytes
    mode: int = _FILE

    @property
    def digest(self) -> str:
        """Return the SHA-256 of the file's content in hexadecimal."""
        return hashlib.sha256(self.content).hexdigest()


@dataclass(frozen=True)
class Collection:
    """Files of the folder that `push` installs on a host, sorted by path."""

    machine: str  # machine type as the kernel names it: x86_64
    pieces: tuple[Piece, ...]

    @property
    def digest(self) -> str:
        """Return the digest of all files; folders with equal digests are equal."""
        listing = "".join(f"{one.digest} {one.mode:o} {one.place}\n" for one in self.pieces)
        return hashlib.sha256(listing.encode()).hexdigest()

    @property
    def name(self) -> str:
        """Return the folder's name on a host: `0.1.0-3f0c8a1b2d4e`."""
        return f"{__version__}-{self.digest[:12]}"

    @property
    def sums(self) -> str:
        """Return the content of SHA256SUMS."""
        return "".join(f"{one.digest}  {one.place}\n" for one in self.pieces)

    def files(self) -> Iterator[Piece]:
        """Yield all files of the folder, SHA256SUMS included."""
        yield from self.pieces
        yield Piece(SUMS, self.sums.encode())

    def write(self, folder: Path) -> None:
        """Write the files into a new folder."""
        folder.mkdir(parents=True)
        for piece in self.files():
            path = folder / piece.place
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(piece.content)
            path.chmod(piece.mode)

    def archive(self, file: IO[bytes]) -> None:
        """Write all files to a reproducible .tar.gz: equal files give equal bytes."""
        with (
            gzip.GzipFile("", "wb", _COMPRESSION, file, mtime=0) as packed,
            tarfile.open(mode="w", fileobj=packed, format=tarfile.USTAR_FORMAT) as archive,
        ):
            for piece in self.files():
                entry = tarfile.TarInfo(piece.place)
                entry.size, entry.mode = len(piece.content), piece.mode
                archive.addfile(entry, io.BytesIO(piece.content))


def collect() -> Collection:
    """Return the engine that `run` uses on this machine, with all files that it needs.

    Raise ConfigurationError where one of them is missing.
    """
    engine = find_engine()
    if is_collected(engine):
        return _again(engine)
    programs = {ENGINE: engine}
    with suppress(ConfigurationError):  # built only with DPDK
        programs[SWITCH.name] = SWITCH.find()
    needed = libraries(list(programs.values()))
    drivers = _drivers() if any(name.startswith("librte_eal.so") for name in needed) else []
    providers = [
        provider
        for name, path in needed.items()
        if name.startswith("libibverbs.so")
        for provider in sorted((path.resolve().parent / "libibverbs").glob("lib*-rdmav*.so"))
    ]
    needed |= libraries([*drivers, *providers])
    served = {_soname(path) for path in drivers}
    pieces = (
        *(Piece(name, _START_SCRIPT.encode(), _PROGRAM) for name in programs),
        *(_piece(f"libexec/{name}", path, _PROGRAM) for name, path in programs.items()),
        *(_library(name, path) for name, path in needed.items() if name not in served),
        *(_piece(f"lib/dpdk/{_soname(path)}", path) for path in drivers),
        *(_piece(f"lib/verbs/{path.name}", path) for path in providers),
        *(_piece(f"lib/bpf/{path.name}", path) for path in _xdp_programs(needed)),
        Piece(VERSION, f"{__version__} {platform.machine()}\n".encode()),
    )
    return Collection(platform.machine(), tuple(sorted(pieces, key=lambda one: one.place)))


def is_collected(program: Path) -> bool:
    """Return true for a program in a folder made by `collect`, with libraries and SHA256SUMS."""
    real = program.resolve()
    return (real.parent / "libexec" / real.name).is_file() and (real.parent / SUMS).is_file()


def _again(engine: Path) -> Collection:
    """Return the files that an earlier `collect` put into the folder of this engine.

    Raise ConfigurationError where a file differs from its checksum in SHA256SUMS.
    """
    folder = engine.resolve().parent
    try:
        sums = (folder / SUMS).read_text("utf-8").splitlines()
    except OSError as error:
        raise ConfigurationError(f"the engine's archive can't be made: {error}") from None
    named = {place: digest for digest, _, place in (line.partition("  ") for line in sums)}
    pieces = []
    for path in sorted(folder.rglob("*"), key=str):
        place = path.relative_to(folder)
        if path.is_dir() or place == Path(SUMS):
            continue
        # pip gives files the modes of the user's umask, so only the executable bit is kept.
        piece = _piece(str(place), path, _PROGRAM if os.access(path, os.X_OK) else _FILE)
        if named.get(piece.place) != piece.digest:
            raise ConfigurationError(
                f"the engine's archive can't be made: {path} differs from its checksum in {SUMS}: "
                "install switchbench again"
            )
        pieces.append(piece)
    return Collection(machine_of(folder), tuple(pieces))


def libraries(programs: Sequence[Path]) -> dict[str, Path]:
    """Return all libraries of programs and shared objects, by the name under which they are loaded.

    The dynamic loader is included. Raise ConfigurationError where a library is missing.
    """
    if not programs:
        return {}
    words = ["ldd", *map(str, programs)]
    try:
        done = subprocess.run(words, capture_output=True, text=True, check=False)
    except OSError as error:
        raise ConfigurationError(f"ldd can't be run: {error.strerror}") from None
    found: dict[str, Path] = {}
    for line in done.stdout.splitlines():
        if "=> not found" in line:
            raise ConfigurationError(f"the engine's archive can't be made: {line.strip()}")
        said = _LIBRARY.match(line)
        if said:
            path = Path(said["path"])
            found.setdefault(said["name"] or path.name, path)
    return found


def _piece(place: str, path: Path, mode: int = _FILE) -> Piece:
    try:
        return Piece(place, path.read_bytes(), mode)
    except OSError as error:
        raise ConfigurationError(f"the engine's archive can't be made: {error}") from None


# Paths of folders inside libraries, and their replacements: name of the library, pattern of the
# path, new path, and the byte that fills the rest of the old path. Without a replacement, a library
# would load the host's files from this folder at every start.
# - DPDK would load the host's drivers, too. With an equal DPDK, all drivers would be loaded twice,
#   or fail to load with the copied C library, which ends the start. No option prevents this
#   (eal_plugins_init).
# - libibverbs would load the host's providers for the same devices (load_drivers). The copied
#   providers are named in the environment.
# A new path is never a folder. Where libibverbs complains about a missing folder, the new path is a
# folder without such files.
HOST_FOLDERS = (
    ("librte_eal.so", re.compile(rb"(?<=\0)/[^\0]*/dpdk/pmds-[0-9.]+(?=\0)"), b"", b"\0"),
    (
        "libibverbs.so",
        re.compile(rb"(?<=\0)/[^\0]+(?=/lib%s-rdmav[0-9]+\.so\0)"),
        b"/dev/null",
        b"/",
    ),
    ("libibverbs.so", re.compile(rb"(?<=\0)/[^\0]+/libibverbs\.d(?=\0)"), b"/sys/class", b"/"),
)


def _library(name: str, path: Path) -> Piece:
    if _LOADER.search(str(path)):
        return _piece("lib/loader", path, _PROGRAM)
    piece = _piece(f"lib/{name}", path)
    for prefix, folder, instead, fill in HOST_FOLDERS:
        if name.startswith(prefix):
            content = piece.content
            for found in folder.finditer(content):
                at, end = found.span()
                content = content[:at] + instead.ljust(end - at, fill) + content[end:]
            piece = replace(piece, content=content)
    return piece


# --- DPDK ----------------------------------------------------------------------------------------


def driver_folders() -> list[Path]:
    """Return the folders in which DPDK's drivers are installed on this machine."""
    return [folder for one in _DRIVER_FOLDERS for folder in sorted(ROOT.glob(one))]


def _drivers() -> list[Path]:
    """Return the files of DPDK's drivers that ports can need, such as librte_bus_pci.so.23.0.

    Raise ConfigurationError where no drivers are installed.
    """
    for folder in driver_folders():
        found = [
            path
            for kind in _DRIVERS
            for path in sorted(folder.glob(f"librte_{kind}_*.so.*"))
            if path.name.count(".") == _DOTS and not path.name.startswith(_DRIVERS_WITHOUT)
        ]
        if found:
            return found
    raise ConfigurationError(
        "the engine is linked with DPDK, and there are no drivers of DPDK here "
        "(/usr/lib/*/dpdk/pmds-*): install them (Debian: libdpdk-dev)"
    )


# Dots in the file name of a driver, librte_net_tap.so.23.0. The name with .so is for linking; other
# drivers that depend on the driver use the name with .so.23.
_DOTS = 3


def _soname(driver: Path) -> str:
    """Return the name under which other drivers load a driver: librte_bus_pci.so.23.

    The driver is copied under this name only: a file with both names would be loaded twice.
    """
    return driver.name.rpartition(".")[0]


# --- AF_XDP --------------------------------------------------------------------------------------

_XDP_FOLDER = re.compile(rb"(?<=\0)/usr/[^\0]+/bpf(?=\0)")
_XDP_PROGRAMS = ("xdp-dispatcher.o", "xsk_def_xdp_prog*.o")


def _xdp_programs(needed: dict[str, Path]) -> list[Path]:
    """Return the files with BPF programs that libxdp loads into the kernel.

    The path of their folder is read from libxdp, one of the `needed` libraries.
    """
    for name, path in needed.items():
        folder = _XDP_FOLDER.search(path.read_bytes()) if name.startswith("libxdp.so") else None
        if folder is not None:
            place = Path(os.fsdecode(folder[0]))
            return [found for one in _XDP_PROGRAMS for found in sorted(place.glob(one))]
    return []


# --- push -----------------------------------------------------------------------------------------
# Copying the engine with all its libraries to the hosts of a site (doc/how-to/cluster.md).


_SCRIPT = Path(__file__).parents[1] / "run/launch/receive.sh"
_AS_ROOT = '[ "$(id -u)" = 0 ] && exec "$@"; exec sudo -n "$@"'
_ASK_S = 60.0  # time for a login, and for checksums of 35 MB from a cold disk
_TAKE_S = 300.0  # time to send 14 MB, through a gateway that all hosts share


@dataclass(frozen=True)
class PushOrder:
    """Engine to install on each host: its files, their folder, and its privilege there."""

    collection: Collection
    privilege: str
    folder: str  # "" for the home folder

    def words(self, task: str) -> list[str]:
        """Return the command line of receive.sh on a host, for one task.

        `ask` compares checksums with the host's files; `take` unpacks the archive.
        """
        one = self.collection
        digest = hashlib.sha256(one.sums.encode()).hexdigest()
        what = [one.name, one.machine, self.privilege, digest]
        script = ["sh", "-c", _SCRIPT.read_text("utf-8"), "sh", task, self.folder, *what]
        return script if self.privilege == "none" else ["sh", "-c", _AS_ROOT, "sh", *script]


def order(site: Site, folder: Path | None = None) -> PushOrder:
    """Return the engine, folder and rights with which `push` installs on a site's hosts."""
    privilege = OpenSsh.of(site).privilege
    default = "" if privilege == "none" else SHARED_FOLDER
    if folder is not None and not folder.is_absolute():
        raise ConfigurationError(
            f"push: --to {folder}: an absolute path is needed, which is the same on all hosts"
        )
    return PushOrder(collect(), privilege, str(folder or default))


# A login may print its own text around the output of receive.sh, even on the same line. `push`
# ignores such text here; `lack` then reports it, because `run` cannot handle it.
_OURS = "switchbench push: "
_LACKS = re.compile(rf"{_OURS}lack$")
_DONE = re.compile(rf"{_OURS}(have|copied) (/.*)$")


def push(site: Site, processes: Sequence[Process], wanted: PushOrder) -> dict[str, Answer]:
    """Copy the engine to hosts that lack this build; return the result of each host in words."""
    way = OpenSsh.of(site)

    def send(hosts: Sequence[str], task: str, limit_s: float, *archive: Path) -> dict[str, Answer]:
        line = f"exec {shlex.join(wanted.words(task))}"
        commands = {host: way.command(host, line) for host in hosts}
        return way.run_on_hosts(commands, limit_s, *archive)

    answers = send([process.name for process in processes], "ask", _ASK_S)
    lacking = [
        host
        for host, answer in answers.items()
        if answer.status == 0 and any(map(_LACKS.search, answer.output))
    ]
    size_mb = 0.0
    if lacking:
        with tempfile.NamedTemporaryFile(suffix=".tar.gz") as file:
            wanted.collection.archive(file)
            file.flush()
            answers |= send(lacking, "take", _TAKE_S, Path(file.name))
            size_mb = Path(file.name).stat().st_size / 1e6
    done = {host: found for host, answer in answers.items() if (found := _done(answer))}
    # Start the pushed engine as `run` does, to read its version.
    engines = {host: f"{folder}/{CURRENT}/{ENGINE}" for host, (_, folder) in done.items()}
    versions = way.run_on_hosts(
        {
            host: replace(way, engine=path).node(host, ["--version"])
            for host, path in engines.items()
        },
        _ASK_S,
    )

    def result(host: str, answer: Answer) -> Answer:
        if answer.status is None:
            why: str | None = "no answer in time: the copy may be incomplete; push again"
        elif host not in done:
            last = (answer.errors or answer.output or ["without a word"])[-1]
            why = refusal(host, answer, "sh") or last.rpartition(_OURS)[2].strip()
        else:
            why = lack(host, versions[host], engines[host])
        if why is not None:
            return Answer(NOT_ASKED, [why])
        word, folder = done[host]
        how = "has this build already" if word == "have" else f"copied, {size_mb:.1f} MB"
        more = ", run by sudo" if wanted.privilege == "sudo" else ""
        where = f"{wanted.collection.name} in {folder}{more}"
        return Answer(0, [f"{how}: {where}"])

    return {host: result(host, answer) for host, answer in answers.items()}


def _done(answer: Answer) -> tuple[str, str] | None:
    """Return (`have` or `copied`, folder) from a host's answer; None for a failure."""
    found = [done for line in answer.output if (done := _DONE.search(line))]
    return (found[-1][1], found[-1][2]) if answer.status == 0 and found else None
