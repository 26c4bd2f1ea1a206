# SPDX-License-Identifier: BSD-3-Clause
"""The guests' kernel: Debian's own, unpacked from its package and kept; never installed.

The package is the versioned one that `linux-image-amd64` depends on (the cloud flavour has neither
Soft-RoCE nor 9p). Kept are the bare `vmlinux`, which QEMU starts by its PVH entry in half the time
of the compressed image, and the modules that guests load.
"""

from __future__ import annotations

import fcntl
import lzma
import os
import shutil
import subprocess
import tempfile
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

META_PACKAGE = "linux-image-amd64"
DOWNLOAD_TIMEOUT_S = 300

# What guests can be asked to load, by the name that asks for it.
MODULES: dict[str, tuple[str, ...]] = {
    "virtio": ("virtio_pci", "virtio_net"),
    "rxe": ("rdma_rxe", "ib_uverbs", "crc32_pclmul"),
    "root": ("9p", "9pnet_virtio", "overlay"),
    "packet": ("af_packet",),
    "e1000": ("e1000",),
    "e1000e": ("e1000e",),
    "vmxnet3": ("vmxnet3",),
    "uio": ("uio_pci_generic",),
    "vfio": ("vfio-pci", "vfio_iommu_type1"),
    "devices": ("bonding", "dummy", "veth", "bridge", "8021q", "macvlan"),
}

_XZ_MAGIC = b"\xfd7zXZ\0"
_ELF_MAGIC = b"\x7fELF"


class GuestError(RuntimeError):
    """Guests can't be booted, or one of them is gone."""


class GuestsMissingError(GuestError):
    """This machine lacks what guests need: tests are skipped."""


@dataclass(frozen=True)
class Kernel:
    """An unpacked kernel."""

    version: str
    vmlinux: Path
    modules: Path
    """A folder with `lib/modules/VERSION`, its dependencies resolved."""


@contextmanager
def locked_cache() -> Iterator[Path]:
    """Yield the folder of kernels, `$XDG_CACHE_HOME/switchbench/guests`, for its only writer."""
    home = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    folder = Path(home) / "switchbench" / "guests"
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield folder


def prepare() -> Kernel:
    """The kernel in the cache, fetched when there is none; GuestsMissingError says why not."""
    with locked_cache() as cache:
        wanted = f"{zlib.crc32(repr(MODULES).encode()):08x}"
        found = sorted(cache.glob(f"kernel-{wanted}-*"), key=lambda folder: folder.stat().st_mtime)
        if found:
            return _open(found[-1])
        package = _package()
        with tempfile.TemporaryDirectory(dir=cache) as scratch:
            _call(["apt-get", "-qq", "download", package], Path(scratch), f"fetch {package}")
            made = _unpack(Path(scratch))
            target = cache / f"kernel-{wanted}-{package.removeprefix('linux-image-')}"
            made.rename(target)
        return _open(target)


def _open(folder: Path) -> Kernel:
    (modules,) = (folder / "lib" / "modules").iterdir()
    return Kernel(modules.name, folder / "vmlinux", folder)


def _package() -> str:
    """Return the package that holds the kernel, of the newest version that apt knows."""
    said = _call(["apt-cache", "depends", META_PACKAGE], Path("/"), "ask apt for a kernel")
    for line in said.splitlines():
        words = line.split()
        if words[:1] == ["Depends:"] and words[1].startswith("linux-image-"):
            return words[1]
    raise GuestsMissingError(
        f"apt knows no {META_PACKAGE}: guests run Debian's kernel (`apt-get update` on Debian)"
    )


def _unpack(folder: Path) -> Path:
    (package,) = folder.glob("*.deb")
    whole, kept = folder / "whole", folder / "kept"
    _call(["dpkg", "-x", str(package), str(whole)], folder, f"unpack {package.name}")
    (compressed,) = (whole / "boot").glob("vmlinuz-*")
    version = compressed.name.removeprefix("vmlinuz-")
    if not (whole / "lib" / "modules").is_dir():  # merged /usr, from Debian 13 on
        (whole / "usr" / "lib" / "modules").rename(whole / "lib" / "modules")
    kept.mkdir()
    (kept / "vmlinux").write_bytes(extract(compressed.read_bytes()))
    _depmod(whole, version)
    names = [name for group in MODULES.values() for name in group]
    indexes = (whole / "lib/modules" / version / f"modules.{name}" for name in ("order", "builtin"))
    for path in [*module_files(whole, version, names), *filter(Path.exists, indexes)]:
        target = kept / path.relative_to(whole)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, target)
    _depmod(kept, version)
    return kept


def extract(image: bytes) -> bytes:
    """Return the ELF file inside a compressed kernel image (its xz payload)."""
    at = image.find(_XZ_MAGIC)
    while at >= 0:
        try:
            content = lzma.LZMADecompressor(lzma.FORMAT_XZ).decompress(image[at:])
        except lzma.LZMAError:
            content = b""
        if content.startswith(_ELF_MAGIC):
            return content
        at = image.find(_XZ_MAGIC, at + 1)
    raise GuestsMissingError("the kernel's image holds no xz payload: guests need Debian's kernel")


def module_files(root: Path, version: str, names: Iterable[str]) -> list[Path]:
    """Return the files of modules below `root`, each after those that it depends on."""
    wanted = ["modprobe", "-d", str(root), "-S", version, "--show-depends", "-a", *names]
    said = _call(wanted, root, "read the kernel's modules")
    insmods = (line.split() for line in said.splitlines() if line.startswith("insmod "))
    return list(dict.fromkeys(Path(words[1]) for words in insmods))


def _depmod(root: Path, version: str) -> None:
    _call(["depmod", "-b", str(root), version], root, "index the kernel's modules")


def _call(command: list[str], folder: Path, what: str) -> str:
    """Run a command; its output, or one sentence with its last words."""
    try:
        done = subprocess.run(
            command,
            cwd=folder,
            env=os.environ | {"LC_ALL": "C"},
            capture_output=True,
            text=True,
            timeout=DOWNLOAD_TIMEOUT_S,
            check=False,
        )
    except FileNotFoundError:
        raise GuestsMissingError(
            f"{command[0]} is not installed, so guests can't {what} (scripts/setup installs it)"
        ) from None
    except subprocess.TimeoutExpired:
        raise GuestsMissingError(f"{command[0]} took too long to {what}") from None
    if done.returncode != 0:
        lines = done.stderr.strip().splitlines() or [f"status {done.returncode}"]
        raise GuestsMissingError(f"guests can't {what}: {lines[-1]}")
    return done.stdout
