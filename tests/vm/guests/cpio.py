# SPDX-License-Identifier: BSD-3-Clause
"""Archives that the kernel unpacks as its first file system (cpio "newc": cpio(5), and the
kernel's Documentation/driver-api/early-userspace/buffer-format.rst).

The kernel takes several of them one after the other, so that what all guests share is made once.
"""

from __future__ import annotations

import stat
from pathlib import Path
from typing import BinaryIO

_ALIGN = 4
_TRAILER = "TRAILER!!!"


class Archive:
    """Writes one archive; folders above an entry are made when they are first needed."""

    def __init__(self, out: BinaryIO) -> None:
        self._out = out
        self._inode = 0
        self._folders: set[str] = set()

    def folder(self, path: str) -> None:
        """An empty folder, with those above it."""
        parts = path.strip("/").split("/")
        for i in range(1, len(parts) + 1):
            name = "/".join(parts[:i])
            if name and name not in self._folders:
                self._folders.add(name)
                self._entry(name, stat.S_IFDIR | 0o755, b"")

    def file(self, path: str, content: bytes, mode: int = 0o644) -> None:
        """A file of that content."""
        self._above(path)
        self._entry(path.strip("/"), stat.S_IFREG | mode, content)

    def copy(self, path: str, source: Path) -> None:
        """A file like one of this machine, executable if that is."""
        mode = source.stat().st_mode & 0o755
        self.file(path, source.read_bytes(), mode)

    def link(self, path: str, target: str) -> None:
        """A symbolic link."""
        self._above(path)
        self._entry(path.strip("/"), stat.S_IFLNK | 0o777, target.encode())

    def close(self) -> None:
        """The end mark; the stream stays open."""
        self._entry(_TRAILER, 0, b"")

    def _above(self, path: str) -> None:
        above = path.strip("/").rpartition("/")[0]
        if above:
            self.folder(above)

    def _entry(self, name: str, mode: int, content: bytes) -> None:
        self._inode += 1
        encoded = name.encode() + b"\0"
        # inode, mode, uid, gid, links, mtime, size, device (2), special device (2), name, checksum
        fields = (self._inode, mode, 0, 0, 1, 0, len(content), 0, 0, 0, 0, len(encoded), 0)
        header = b"070701" + b"".join(b"%08x" % field for field in fields)
        self._out.write(_padded(header + encoded))
        self._out.write(_padded(content))


def _padded(data: bytes) -> bytes:
    return data + b"\0" * (-len(data) % _ALIGN)
