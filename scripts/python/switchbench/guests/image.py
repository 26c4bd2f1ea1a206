# SPDX-License-Identifier: BSD-3-Clause
"""What a guest boots into: a base archive that all share, and a second one with a job's files.

Programs are taken from this machine with the libraries that `ldd` names, at the same places, so
that a guest runs exactly what was built here.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from io import BytesIO
from pathlib import Path

from ..errors import ConfigurationError
from ..launch.engine import find_engine
from .cpio import Archive
from .errors import GuestError, GuestsMissingError
from .kernel import MODULES, Kernel, locked_cache

AGENT = "switchbench-guest"
AGENT_VARIABLE = "SWITCHBENCH_GUEST"

INIT = Path(__file__).with_name("init")

# Without these no guest is worth its name; the others are there when they are here.
_NEEDED = ("ip", "rdma", "busybox")
_WELCOME = (
    "ibv_devinfo",
    "ibv_devices",
    "ibv_rc_pingpong",
    "ibv_ud_pingpong",
    "rping",
    "ib_send_bw",
    "ib_send_lat",
    "ib_write_bw",
    "ib_write_lat",
    "ib_read_bw",
    "ib_read_lat",
    "ethtool",
    "ss",
    "taskset",
    "setpriv",
)
_PACKAGE_OF = {"busybox": "busybox-static", "ip": "iproute2", "rdma": "iproute2"}
_PROGRAM_PATH = "/usr/local/bin:/usr/bin:/usr/sbin:/bin:/sbin"

# Loaded while a program runs, so that ldd does not know of them.
_PROVIDER = "libibverbs/librxe-rdmav*.so"
_PROVIDER_NAME = Path("/etc/libibverbs.d/rxe.driver")
_LATE_LIBRARIES = ("libgcc_s.so.1", "libnss_files.so.2")

_LIBRARY = re.compile(r"^\s*(?:\S+ => )?(/\S+) \(0x")

_ACCOUNTS = {
    "etc/passwd": b"root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/:/bin/false\n",
    "etc/group": b"root:x:0:\nnogroup:x:65534:\n",
    "etc/hosts": b"127.0.0.1 localhost\n::1 localhost\n",
    "etc/protocols": b"ip 0 IP\nicmp 1 ICMP\ntcp 6 TCP\nudp 17 UDP\n",
}


@dataclass(frozen=True)
class Job:
    """What guests need beyond the base: programs by their path here, which are put into
    `/usr/bin`; shared objects, put where they are here (DPDK's drivers: `dpdk_drivers`); and
    other files by their path there."""

    programs: tuple[Path, ...] = ()
    objects: tuple[Path, ...] = ()
    files: Mapping[str, Path] = field(default_factory=dict)


def dpdk_drivers(*names: str) -> tuple[Path, ...]:
    """DPDK's driver objects of these names (`net_virtio`, `net_af_packet`), with the buses and
    the memory pool that any of them needs."""
    always = ("bus_pci", "bus_vdev", "mempool_ring")
    found: list[Path] = []
    for name in (*always, *names):
        paths = sorted(Path("/usr/lib").glob(f"*/dpdk/pmds-*/librte_{name}.so.*"))
        if not paths:
            raise GuestsMissingError(f"DPDK's driver {name} is not installed")
        found += [path for path in paths if not path.is_symlink()] or paths[:1]
        found += [path for path in paths if path.is_symlink()]
    return tuple(found)


def find_agent() -> Path:
    """The agent's binary: named, or beside the engine's, or in the path."""
    named = os.environ.get(AGENT_VARIABLE)
    if named:
        return Path(named).absolute()
    for parent in Path(__file__).resolve().parents:
        built = parent / "build" / "guests" / AGENT
        if os.access(built, os.X_OK):
            return built
    try:
        beside = find_engine().parent.parent / "guests" / AGENT
    except ConfigurationError:
        beside = Path()
    found = str(beside) if os.access(beside, os.X_OK) and beside.is_file() else shutil.which(AGENT)
    if found is None:
        raise GuestsMissingError(
            f"{AGENT} is not built: `ninja -C build` in the project, or name it in {AGENT_VARIABLE}"
        )
    return Path(found)


def base(kernel: Kernel) -> Path:
    """The archive of what all guests have, made when one of its parts has changed."""
    parts = _base_parts()
    key = _key(kernel, parts)
    with locked_cache() as cache:
        made = cache / f"base-{key}.cpio"
        if made.exists():
            os.utime(made)
            return made
        for old in cache.glob("base-*.cpio"):
            old.unlink()
        content = _base_archive(kernel, parts)
        partial = cache / "base.new"
        partial.write_bytes(content)
        partial.rename(made)
    return made


def job(job: Job, kernel: Kernel) -> bytes:
    """The archive of a job's files, without what the base has."""
    known = set(_base_parts().places)
    out = BytesIO()
    archive = Archive(out)
    parts = _Parts()
    for program in job.programs:
        _must_exist(program)
        parts.add(f"/usr/bin/{program.name}", program)
    for object_ in job.objects:
        _must_exist(object_)
        parts.add(str(object_), object_)
    parts.add_libraries([*job.programs, *job.objects])
    for place, file in job.files.items():
        _must_exist(file)
        parts.add(place, file)
    for place, source in sorted(parts.places.items()):
        if place not in known or place in job.files:
            archive.copy(place, source)
    archive.close()
    return out.getvalue()


@dataclass
class _Parts:
    """Files by their place in the guest."""

    places: dict[str, Path] = field(default_factory=dict)

    def add(self, place: str, source: Path) -> None:
        self.places[place] = source

    def add_libraries(self, programs: Sequence[Path]) -> None:
        for library in _libraries(programs):
            self.places[str(library)] = library


def _must_exist(path: Path) -> None:
    if not path.is_file():
        raise GuestError(f"{path}: there is no such file to put into the guests")


def _base_parts() -> _Parts:
    parts = _Parts()
    programs = [_program(name) for name in _NEEDED if name != "busybox"]
    programs += [Path(found) for name in _WELCOME if (found := _which(name))]
    for program in programs:
        folder = "/usr/sbin" if program.name == "ip" else "/usr/bin"
        parts.add(f"{folder}/{program.name}", program)
    late = list(_late_objects())
    for path in late:
        parts.add(str(path), path)
    agent = find_agent()
    parts.add(f"/usr/bin/{AGENT}", agent)
    parts.add("/bin/busybox", _static_busybox())
    if _PROVIDER_NAME.exists():
        parts.add(str(_PROVIDER_NAME), _PROVIDER_NAME)
    parts.add_libraries([*programs, *late, agent])
    return parts


def _which(name: str) -> str | None:
    return shutil.which(name, path=_PROGRAM_PATH)


def _program(name: str) -> Path:
    found = _which(name)
    if found is None:
        raise GuestsMissingError(
            f"{name} is not installed: guests need it (package {_PACKAGE_OF[name]}; scripts/setup)"
        )
    return Path(found)


def _static_busybox() -> Path:
    program = _program("busybox")
    if next(_libraries([program]), None) is not None:
        raise GuestsMissingError(f"{program} is not static: guests need the package busybox-static")
    return program


def _late_objects() -> Iterator[Path]:
    for folder in sorted(Path("/usr/lib").glob("*-linux-gnu*")):
        yield from sorted(folder.glob(_PROVIDER))
        yield from (folder / name for name in _LATE_LIBRARIES if (folder / name).exists())


def _libraries(programs: Sequence[Path]) -> Iterator[Path]:
    """Every library of these programs, the loader included, by the names that they ask for."""
    if not programs:
        return
    done = subprocess.run(["ldd", *map(str, programs)], capture_output=True, text=True, check=False)
    for line in done.stdout.splitlines():
        if "=> not found" in line:
            raise GuestError(f"a program for the guests misses a library: {line.strip()}")
        found = _LIBRARY.match(line)
        if found:
            yield Path(found[1])


def _key(kernel: Kernel, parts: _Parts) -> str:
    digest = hashlib.sha256(f"1 {kernel.version}\n{INIT.read_text()}\n{MODULES}".encode())
    for place, source in sorted(parts.places.items()):
        state = source.stat()
        digest.update(f"{place} {state.st_size} {state.st_mtime_ns}\n".encode())
    return digest.hexdigest()[:16]


def _base_archive(kernel: Kernel, parts: _Parts) -> bytes:
    out = BytesIO()
    archive = Archive(out)
    for folder in ("proc", "sys", "dev", "tmp", "run", "root", "share", "var/run", "lib64"):
        archive.folder(folder)
    archive.file("init", INIT.read_bytes(), 0o755)
    for place, content in _ACCOUNTS.items():
        archive.file(place, content)
    for place, source in sorted(parts.places.items()):
        archive.copy(place, source)
    for applet in _applets(parts.places["/bin/busybox"]):
        if f"/usr/bin/{applet}" not in parts.places and applet not in ("busybox", "ip"):
            archive.link(f"bin/{applet}", "busybox")
    _add_modules(archive, kernel)
    archive.close()
    return out.getvalue()


def _applets(busybox: Path) -> Iterable[str]:
    said = subprocess.run([str(busybox), "--list"], capture_output=True, text=True, check=True)
    return said.stdout.split()


def _add_modules(archive: Archive, kernel: Kernel) -> None:
    for path in sorted(kernel.modules.glob("lib/modules/**/*")):
        if path.is_file():
            archive.copy(str(path.relative_to(kernel.modules)), path)
    for group, names in MODULES.items():
        archive.file(f"etc/switchbench/modules/{group}", (" ".join(names) + "\n").encode())
