# SPDX-License-Identifier: BSD-3-Clause
"""QEMU's monitor, as far as guests need it: cables are pulled there (QMP, one client at a time)."""

from __future__ import annotations

import json
import socket
from pathlib import Path
from typing import Any

from .errors import GuestError

_TIMEOUT_S = 10.0


class Monitor:
    """A connection to a QEMU, for one or several commands."""

    def __init__(self, path: Path) -> None:
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.settimeout(_TIMEOUT_S)
        try:
            self._socket.connect(str(path))
        except OSError as error:
            self._socket.close()
            raise GuestError(f"{path.parent.name}: no monitor: {error.strerror}") from None
        self._lines = self._socket.makefile("r", encoding="utf-8")
        self._lines.readline()  # QEMU's greeting
        self.execute("qmp_capabilities")

    def __enter__(self) -> Monitor:
        return self

    def __exit__(self, *_: object) -> None:
        self._lines.close()
        self._socket.close()

    def execute(self, command: str, **arguments: Any) -> Any:
        """A command's answer; GuestError with QEMU's own words."""
        asked = {"execute": command, "arguments": arguments}
        self._socket.sendall(json.dumps(asked).encode() + b"\n")
        for line in self._lines:
            answer = json.loads(line)
            if "return" in answer:
                return answer["return"]
            if "error" in answer:
                raise GuestError(f"QEMU rejects {command}: {answer['error']['desc']}")
        raise GuestError(f"QEMU ended before it answered {command}")

    def set_link(self, nic: str, up: bool) -> None:
        """Plugs a NIC's cable in, or pulls it: the guest loses or gets its carrier."""
        self.execute("set_link", name=nic, up=up)
