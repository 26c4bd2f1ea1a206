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
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from io import BytesIO
from pathlib import Path

from .cpio import Archive
from .kernel import MODULES, GuestError, GuestsMissingError, Kernel, locked_cache

INIT = Path(__file__).with_name("init")

_UNUSED_S = 24 * 3600  # after so long an archive that nobody has asked for is removed

# Without these no guest is worth its name; the others are there when they are here.
_NEEDED = ("ip", "rdma", "sshd", "busybox")
_WELCOME = (
    "ibv_devinfo",
    "ibv_devices",
    "ibv_rc_pingpong",
    "ibv_ud_pingpong",
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
_PACKAGE_OF = {
    "busybox": "busybox-static",
    "ip": "iproute2",
    "rdma": "iproute2",
    "sshd": "openssh-server",
}
_PROGRAM_PATH = "/usr/local/bin:/usr/bin:/usr/sbin:/bin:/sbin"

# Loaded while a program runs, so that ldd does not know of them.
_PROVIDER = "libibverbs/librxe-rdmav*.so"
_PROVIDER_NAME = Path("/etc/libibverbs.d/rxe.driver")
_LATE_LIBRARIES = ("libgcc_s.so.1", "libnss_files.so.2")

_LIBRARY = re.compile(r"^\s*(?:\S+ => )?(/\S+) \(0x")

BUSYBOX = "/usr/bin/busybox"
_FOLDERS = ("proc", "sys", "dev", "tmp", "run", "root", "share", "var/run")

# As on a merged system: libraries are found by the path that a program was linked with.
_MERGED = ("bin", "sbin", "lib", "lib64")

_ACCOUNTS = {
    "etc/passwd": b"root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/:/bin/false\n"
    b"sshd:x:100:65534::/run/sshd:/bin/false\n",
    "etc/group": b"root:x:0:\nnogroup:x:65534:\n",
    "etc/ssh/sshd_config": b"""\
HostKey /etc/ssh/host_key
AuthorizedKeysFile /etc/ssh/authorized_keys
StrictModes no
MaxSessions 100
MaxStartups 100
SetEnv PATH=/usr/sbin:/usr/bin:/sbin:/bin
""",
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
        found += paths
    return tuple(found)


def base(kernel: Kernel) -> Path:
    """Return the archive of what all guests have, made when one of its parts has changed."""
    parts = _base_parts()
    key = _key(kernel, parts)
    with locked_cache() as cache:
        made = cache / f"base-{key}.cpio"
        if made.exists():
            os.utime(made)
            return made
        for old in cache.glob("base-*.cpio"):
            if time.time() - old.stat().st_mtime > _UNUSED_S:  # others may be about to boot it
                old.unlink()
        content = _base_archive(kernel, parts)
        partial = cache / "base.new"
        partial.write_bytes(content)
        partial.rename(made)
    return made


def job(job: Job, kernel: Kernel) -> bytes:
    """Return the archive of a job's files, without what the base has."""
    for path in (*job.programs, *job.objects, *job.files.values()):
        if not path.is_file():
            raise GuestError(f"{path}: there is no such file to put into the guests")
    base_parts, parts = _base_parts(), _Parts()
    for object_ in job.objects:
        parts.add_object(object_)
    parts.add_libraries([*job.programs, *job.objects])
    parts.without(base_parts)
    for program in job.programs:
        parts.add(f"/usr/bin/{program.name}", program)
    for place, file in job.files.items():
        parts.add(place, file)
    out = BytesIO()
    archive = Archive(out)
    parts.write(archive)
    archive.close()
    return out.getvalue()


@dataclass
class _Parts:
    """Files and links by their place in the guest."""

    places: dict[str, Path] = field(default_factory=dict)
    links: dict[str, str] = field(default_factory=dict)

    def add(self, place: str, source: Path) -> None:
        """A file of that content."""
        self.places[place] = source

    def add_object(self, path: Path) -> None:
        """A shared object where it is here, with its name if that is a link: the loader knows
        objects that it has by file, not by name, and DPDK's must not be loaded twice."""
        name, real = path.parent.resolve() / path.name, path.resolve()
        self.places[str(real)] = real
        if name != real:
            self.links[str(name)] = str(real)

    def add_libraries(self, programs: Sequence[Path]) -> None:
        """What these programs are linked with."""
        for library in _libraries(programs):
            self.add_object(library)

    def without(self, others: _Parts) -> None:
        """Forgets what is among the others."""
        self.places = {k: v for k, v in self.places.items() if k not in others.places}
        self.links = {k: v for k, v in self.links.items() if k not in others.links}

    def write(self, archive: Archive) -> None:
        """All of it."""
        for place, source in sorted(self.places.items()):
            archive.copy(place, source)
        for place, target in sorted(self.links.items()):
            archive.link(place, target)


def _base_parts() -> _Parts:
    parts = _Parts()
    programs = [_program(name) for name in _NEEDED if name != "busybox"]
    programs += [Path(found) for name in _WELCOME if (found := _which(name))]
    for program in programs:
        folder = "/usr/sbin" if program.name in ("ip", "sshd") else "/usr/bin"
        parts.add(f"{folder}/{program.name}", program)
    late = list(_late_objects())
    for path in late:
        parts.add_object(path)
    parts.add(BUSYBOX, _static_busybox())
    if _PROVIDER_NAME.exists():
        parts.add(str(_PROVIDER_NAME), _PROVIDER_NAME)
    parts.add_libraries([*programs, *late])
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
    digest = hashlib.sha256(f"2 {kernel.version}\n{INIT.read_text()}\n{MODULES}".encode())
    for place, source in sorted(parts.places.items()):
        state = source.stat()
        digest.update(f"{place} {state.st_size} {state.st_mtime_ns}\n".encode())
    return digest.hexdigest()[:16]


def _base_archive(kernel: Kernel, parts: _Parts) -> bytes:
    out = BytesIO()
    archive = Archive(out)
    for folder in _FOLDERS:
        archive.folder(folder)
    for name in _MERGED:
        archive.folder(f"usr/{name}")
        archive.link(name, f"usr/{name}")
    archive.file("init", INIT.read_bytes(), 0o755)
    for place, content in _ACCOUNTS.items():
        archive.file(place, content)
    parts.write(archive)
    for applet in _applets(parts.places[BUSYBOX]):
        if not any(f"/usr/{folder}/{applet}" in parts.places for folder in ("bin", "sbin")):
            archive.link(f"usr/bin/{applet}", "busybox")
    _add_modules(archive, kernel)
    archive.close()
    return out.getvalue()


def _applets(busybox: Path) -> Iterable[str]:
    said = subprocess.run([str(busybox), "--list"], capture_output=True, text=True, check=True)
    return said.stdout.split()


def _add_modules(archive: Archive, kernel: Kernel) -> None:
    for path in sorted(kernel.modules.glob("lib/modules/**/*")):
        if path.is_file():
            archive.copy(f"usr/{path.relative_to(kernel.modules)}", path)
    for group, names in MODULES.items():
        archive.file(f"etc/switchbench/modules/{group}", (" ".join(names) + "\n").encode())
