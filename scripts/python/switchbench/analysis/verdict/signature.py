# SPDX-License-Identifier: BSD-3-Clause
"""Detached signatures by the programs that people have their keys for: OpenSSH's and minisign.

Which of them is meant follows from the key. OpenSSH's signatures carry the namespace `switchbench`,
so that one made for something else (a mail, a commit) never passes for a run's.
"""

from __future__ import annotations

import base64
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from ...base.errors import ConfigurationError
from ...records.directory import replace_bytes
from .manifest import MANIFEST, SIGNATURES, seal

NAMESPACE = "switchbench"

_PACKAGES = {"ssh-keygen": "openssh-client", "minisign": "minisign"}


@dataclass(frozen=True)
class Signed:
    """What is known of a signature that fits."""

    words: str  # whose key it is, as the program says
    trusted: bool  # whether the key is one that was named as allowed


def sign(directory: Path, key: Path) -> Path:
    """Seals what is there and signs it; returns the signature's file."""
    kind = kind_of_key(key)
    seal(directory)
    name = SIGNATURES[kind]
    replace_bytes(directory / name, _SIGNERS[kind](directory / MANIFEST, key))
    return directory / name


def try_key(key: Path) -> None:
    """Signs something of no importance, so that a key that can't is known before traffic."""
    kind = kind_of_key(key)
    with TemporaryDirectory(prefix="switchbench-") as folder:
        message = Path(folder) / "message"
        message.write_bytes(b"switchbench\n")
        _SIGNERS[kind](message, key)


def check(directory: Path, kind: str, allowed: Path | None) -> Signed:
    """Checks a signature that is there; ConfigurationError says what is wrong with it.

    `allowed`: an allowed_signers file of ssh-keygen(1), or minisign's public key.
    """
    if allowed is not None and _kind_of_allowed(allowed) != kind:
        return Signed(f"{SIGNATURES[kind]} was not checked: {allowed} is of another kind", False)
    return _CHECKERS[kind](directory / MANIFEST, directory / SIGNATURES[kind], allowed)


# --- ssh-keygen ----------------------------------------------------------------------------------


def _sign_ssh(message: Path, key: Path) -> bytes:
    words = ["ssh-keygen", "-Y", "sign", "-f", str(key), "-n", NAMESPACE]
    done = _execute(words, message)
    if done.returncode:
        raise ConfigurationError(f"{key} can't sign: {_said(done)}")
    return done.stdout


def _check_ssh(message: Path, signature: Path, allowed: Path | None) -> Signed:
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


# --- minisign ------------------------------------------------------------------------------------


def _sign_minisign(message: Path, key: Path) -> bytes:
    if _has_password(key):
        if not sys.stdin.isatty():
            raise ConfigurationError(f"{key} can't sign: it has a password, and nobody is there")
        print(f"password of {key}, for minisign:", file=sys.stderr)  # its own prompt is captured
    with TemporaryDirectory(prefix="switchbench-") as folder:
        made = Path(folder) / "signature"
        words = ["minisign", "-S", "-s", str(key), "-m", str(message), "-x", str(made)]
        done = _execute([*words, "-t", f"{NAMESPACE} {message.name}"], None)
        if done.returncode:
            raise ConfigurationError(f"{key} can't sign: {_said(done)}")
        return made.read_bytes()


def _has_password(key: Path) -> bool:
    """By the key derivation that stands in it (minisign(1): `Sc`, or two zeros for none)."""
    try:
        content = base64.b64decode(_read(key).splitlines()[1], validate=True)
    except (IndexError, ValueError):
        raise ConfigurationError(f"{key} is a damaged key of minisign") from None
    return content[2:4] == b"Sc"


def _check_minisign(message: Path, signature: Path, allowed: Path | None) -> Signed:
    if allowed is None:
        return Signed("by minisign, not checked: --allowed-signers names its public key", False)
    words = ["minisign", "-V", "-m", str(message), "-x", str(signature), "-p", str(allowed)]
    done = _execute(words, None)
    if done.returncode and b"key id" in done.stderr.lower():
        raise ConfigurationError(
            f"{signature} was made with a key that {allowed} does not allow: {_said(done)}"
        )
    _refuse_bad(done, message, signature)
    return Signed(f"the owner of {allowed}", True)


_SIGNERS = {"ssh": _sign_ssh, "minisign": _sign_minisign}
_CHECKERS = {"ssh": _check_ssh, "minisign": _check_minisign}


# --- both ----------------------------------------------------------------------------------------


def kind_of_key(key: Path) -> str:
    """`ssh` or `minisign`; ConfigurationError for what is no key to sign with."""
    text = _read(key)
    if text.startswith("untrusted comment:"):
        if "public key" in text.splitlines()[0]:
            raise ConfigurationError(f"{key} is a public key: name the secret one")
        return "minisign"
    # A public key stands for the secret one that ssh-agent holds.
    if "PRIVATE KEY-----" in text or text.startswith(("ssh-", "ecdsa-", "sk-")):
        return "ssh"
    raise ConfigurationError(f"{key} is no secret key of ssh-keygen or minisign")


def _kind_of_allowed(allowed: Path) -> str:
    text = _read(allowed)
    if text.startswith("untrusted comment:"):
        return "minisign"
    lines = [line for line in text.splitlines() if line.strip() and not line.startswith("#")]
    if not lines or not all(len(line.split()) >= 3 for line in lines):
        raise ConfigurationError(
            f"{allowed} is neither an allowed_signers file (ssh-keygen(1): `NAME KEYTYPE KEY` a "
            "line) nor a public key of minisign"
        )
    return "ssh"


def _read(path: Path) -> str:
    try:
        return path.read_text("utf-8")
    except OSError as error:
        raise ConfigurationError(f"{path} can't be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise ConfigurationError(f"{path} is no key: it is not text") from None


def _execute(words: Sequence[str], message: Path | None) -> subprocess.CompletedProcess[bytes]:
    """Runs a program; it asks for a passphrase at the terminal by itself."""
    given = None if message is None else message.read_bytes()
    stdin = None if given is not None or sys.stdin.isatty() else subprocess.DEVNULL
    try:
        return subprocess.run(words, capture_output=True, check=False, input=given, stdin=stdin)
    except FileNotFoundError:
        package = _PACKAGES[words[0]]
        raise ConfigurationError(
            f"{words[0]} is not installed: it is in Debian's package {package}"
        ) from None


def _refuse_bad(done: subprocess.CompletedProcess[bytes], message: Path, signature: Path) -> None:
    if done.returncode:
        raise ConfigurationError(f"{signature} does not fit {message.name}: {_said(done)}")


def _said(done: subprocess.CompletedProcess[bytes], what: bytes | None = None) -> str:
    """The last thing that a program said, on one line."""
    text = (done.stderr if what is None else what).decode(errors="replace")
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    lines = [line for line in lines if not line.startswith("Signing data on")]
    return (
        lines[-1].removeprefix("Enter passphrase: ").rstrip(".")
        if lines
        else f"{done.args[0]} ended with {done.returncode}"
    )
