# SPDX-License-Identifier: BSD-3-Clause
"""Detached signatures by OpenSSH's ssh-keygen.

They carry the namespace `switchbench`, so that one made for something else (a mail, a commit)
never passes for a run's.
"""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from ...base.errors import ConfigurationError
from ...records.directory import replace_bytes
from .manifest import MANIFEST, SIGNATURE, seal

NAMESPACE = "switchbench"


@dataclass(frozen=True)
class Signed:
    """What is known of a signature that fits."""

    words: str  # whose key it is, as the program says
    trusted: bool  # whether the key is one that was named as allowed


def sign(directory: Path, key: Path) -> Path:
    """Seals what is there and signs it; returns the signature's file."""
    _refuse_other_key(key)
    seal(directory)
    replace_bytes(directory / SIGNATURE, _signature(directory / MANIFEST, key))
    return directory / SIGNATURE


def try_key(key: Path) -> None:
    """Sign something of no importance, so that a key that can't is known before traffic."""
    _refuse_other_key(key)
    with TemporaryDirectory(prefix="switchbench-") as folder:
        message = Path(folder) / "message"
        message.write_bytes(b"switchbench\n")
        _signature(message, key)


def _signature(message: Path, key: Path) -> bytes:
    words = ["ssh-keygen", "-Y", "sign", "-f", str(key), "-n", NAMESPACE]
    done = _execute(words, message)
    if done.returncode:
        raise ConfigurationError(f"{key} can't sign: {_said(done)}")
    return done.stdout


def check(directory: Path, allowed: Path | None) -> Signed:
    """Check the signature that is there; ConfigurationError says what is wrong with it.

    `allowed`: an allowed_signers file of ssh-keygen(1).
    """
    message, signature = directory / MANIFEST, directory / SIGNATURE
    if allowed is not None:
        _refuse_no_signers(allowed)
    common = ["-n", NAMESPACE, "-s", str(signature)]
    if allowed is None:
        done = _execute(["ssh-keygen", "-Y", "check-novalidate", *common], message)
        _refuse_bad(done, message, signature)
        whose = _said(done, done.stdout).partition(" with ")[2]
        return Signed(f"by {whose}, whose owner is not checked: --allowed-signers says", False)
    words = ["ssh-keygen", "-Y", "find-principals", "-s", str(signature), "-f", str(allowed)]
    found = _execute(words, message)
    principals = found.stdout.decode(errors="replace").splitlines()
    if found.returncode or not principals:
        raise ConfigurationError(
            f"{signature} was made with a key that {allowed} does not allow: {_said(found)}"
        )
    words = ["ssh-keygen", "-Y", "verify", "-f", str(allowed), "-I", principals[0], *common]
    done = _execute(words, message)
    _refuse_bad(done, message, signature)
    return Signed(_said(done, done.stdout).partition(" signature for ")[2], True)


def _refuse_other_key(key: Path) -> None:
    text = _read(key)
    # A public key stands for the secret one that ssh-agent holds.
    if "PRIVATE KEY-----" not in text and not text.startswith(("ssh-", "ecdsa-", "sk-")):
        raise ConfigurationError(f"{key} is no secret key of ssh-keygen")


def _refuse_no_signers(allowed: Path) -> None:
    lines = [line for line in _read(allowed).splitlines() if line.strip() and line[0] != "#"]
    if not lines or not all(len(line.split()) >= 3 for line in lines):
        raise ConfigurationError(
            f"{allowed} is no allowed_signers file (ssh-keygen(1): `NAME KEYTYPE KEY` a line)"
        )


def _read(path: Path) -> str:
    try:
        return path.read_text("utf-8")
    except OSError as error:
        raise ConfigurationError(f"{path} can't be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise ConfigurationError(f"{path} is no key: it is not text") from None


def _execute(words: Sequence[str], message: Path) -> subprocess.CompletedProcess[bytes]:
    """Run a program; it asks for a passphrase at the terminal by itself."""
    try:
        return subprocess.run(words, capture_output=True, check=False, input=message.read_bytes())
    except FileNotFoundError:
        raise ConfigurationError(
            "ssh-keygen is not installed: it is in Debian's package openssh-client"
        ) from None


def _refuse_bad(done: subprocess.CompletedProcess[bytes], message: Path, signature: Path) -> None:
    if done.returncode:
        raise ConfigurationError(f"{signature} does not fit {message.name}: {_said(done)}")


def _said(done: subprocess.CompletedProcess[bytes], what: bytes | None = None) -> str:
    """Return the last thing that a program said, on one line."""
    text = (done.stderr if what is None else what).decode(errors="replace")
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    lines = [line for line in lines if not line.startswith("Signing data on")]
    return (
        lines[-1].removeprefix("Enter passphrase: ").rstrip(".")
        if lines
        else f"{done.args[0]} ended with {done.returncode}"
    )
