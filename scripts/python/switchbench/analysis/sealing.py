# SPDX-License-Identifier: BSD-3-Clause
"""Sealing of a results directory: acceptance clauses fixed before traffic, manifest, signature.

manifest.json has the SHA-256 of every file of the directory, and the run's identity. The files of
the directory determine the manifest byte by byte, so that a change of the manifest shows, too.
OpenSSH's ssh-keygen makes the signatures, in files of their own. They have the namespace
`switchbench`, so that a signature of a mail or a commit is no valid signature of a run.

The verification of a directory prints one line for each check. A failed check names the file; the
remaining checks are still made.
"""

from __future__ import annotations

import hashlib
import json
import re
import subprocess
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory

from typing_extensions import TypedDict

from .. import __version__
from ..base import format, source
from ..base.errors import ConfigurationError, SwitchbenchError
from ..base.model import Run
from ..config.clauses import canonical, clauses_sha256
from ..records.directory import (
    CLAUSES,
    CONFIGURATION,
    PLAN,
    SUMMARY,
    RunDirectory,
    as_read,
    damaged,
    load_summary,
    read_document,
    read_plan,
    refuse_endless,
    replace_bytes,
)
from ..records.store import Tables, TableWriter
from ..records.summary_form import SummaryDocument, checked
from .summary import NOT_ENDED, remade

MANIFEST = "manifest.json"
SCHEMA = "switchbench-manifest/1"
SIGNATURE = f"{MANIFEST}.sig"


class SealedFile(TypedDict):
    """Entry of one file in a manifest: its size and hash."""

    bytes: int
    sha256: str


def files_of(directory: Path) -> list[str]:
    """Return the names of all files that the directory's manifest has to list.

    Files in subfolders are included.
    """
    names = []
    for path in sorted(directory.rglob("*")):
        name = path.relative_to(directory).as_posix()
        if path.is_symlink() or not (path.is_file() or path.is_dir()):
            raise ConfigurationError(
                f"{path} is not a regular file, so it can't be sealed: replace it by a copy of its "
                "content, or move it away"
            )
        if not _is_utf8(name):
            raise ConfigurationError(
                f"{directory}: the name of the file {name!a} is not UTF-8, so that it can't be "
                "sealed: rename it"
            )
        if path.is_file() and name not in (MANIFEST, SIGNATURE):
            names.append(name)
    return names


def _is_utf8(name: str) -> bool:
    """Return whether a file's name is UTF-8. Python turns other bytes into lone surrogates."""
    return not re.search("[\ud800-\udfff]", name)


def content(directory: Path, files: Mapping[str, SealedFile]) -> bytes:
    """Return the text of a manifest that lists the given files."""
    summary = load_summary(directory)
    run, verdict = summary["run"], summary.get("verdict")
    value = {
        "schema": SCHEMA,
        "run": run["id"],
        "started": run["started"],
        "versions": run["versions"],
        "verdict": verdict and verdict["verdict"],
        "clauses_sha256": verdict and verdict["clauses_sha256"],
        "files": {
            name: {"bytes": entry["bytes"], "sha256": entry["sha256"]}
            for name, entry in files.items()
        },
    }
    return (json.dumps(value, indent=1, ensure_ascii=False) + "\n").encode()


def entry_of(path: Path) -> SealedFile:
    """Return the size and hash of a file."""
    with source.reading(path), path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
        return {"bytes": path.stat().st_size, "sha256": digest}


def load(directory: Path) -> dict[str, SealedFile]:
    """Read the manifest of a directory, and return the entries of its files.

    ConfigurationError if the manifest is missing or damaged, or has a newer format.
    """
    refuse_endless(directory)
    path = directory / MANIFEST
    if not any(directory.glob(MANIFEST)):
        load_summary(directory)  # raises an error if this is no results directory
    gone = (
        f"{directory} has no {MANIFEST}: its run has not ended or was killed (`switchbench "
        f"table {directory} --again` rebuilds the summary from the tables)"
    )
    files: dict[str, SealedFile] | None = read_document(path, SCHEMA, gone).get("files")
    if not isinstance(files, dict) or SUMMARY not in files:
        raise damaged(path, f"it has no entry of {SUMMARY}")
    for name, entry in files.items():
        strange = name.startswith("/") or ".." in name.split("/") or not _is_utf8(name)
        if strange or not isinstance(entry, dict) or entry.keys() != {"bytes", "sha256"}:
            raise damaged(path, f"the entry of {name!a} is not valid")
    return files


def differences(directory: Path, files: Mapping[str, SealedFile]) -> Iterator[str]:
    """Yield a sentence for each file that is missing or differs from its entry in the manifest."""
    for name, entry in files.items():
        path = directory / name
        if not path.is_file() or path.is_symlink():
            yield f"{name} is missing"
        elif (found := entry_of(path)) != entry:
            size = f": {found['bytes']} bytes, and {entry['bytes']} when it was sealed"
            yield f"{name} was changed" + (size if found["bytes"] != entry["bytes"] else "")


def refuse_missing(directory: Path) -> None:
    """Raise ConfigurationError if a sealed table is missing: a new seal would hide the loss."""
    if not (directory / MANIFEST).exists():
        return
    gone = [name for name in load(directory)
            if name.endswith((".parquet", ".cut")) and not (directory / name).exists()]  # fmt: skip
    if gone:
        raise ConfigurationError(
            f"{directory}: files that {MANIFEST} lists are missing: {', '.join(gone)}; copy them "
            "from the computer that made the results"
        )


def is_signed(directory: Path) -> bool:
    """Return whether the directory's manifest has a signature."""
    return (directory / SIGNATURE).exists()


def seal(directory: Path) -> None:
    """Write the manifest of all files in the directory; keep a signed manifest as it is."""
    if not is_signed(directory):
        files = {name: entry_of(directory / name) for name in files_of(directory)}
        replace_bytes(directory / MANIFEST, content(directory, files))


def renew(directory: Path) -> None:
    """Update the manifest after a command changed a file; do nothing without a manifest."""
    if (directory / MANIFEST).exists():
        seal(directory)


# --- signatures --------------------------------------------------------------------------------

NAMESPACE = "switchbench"


def sign(directory: Path, key: Path) -> Path:
    """Seal a directory, sign its manifest, and return the path of the signature."""
    seal(directory)
    replace_bytes(directory / SIGNATURE, _signature(directory / MANIFEST, key))
    return directory / SIGNATURE


def try_key(key: Path) -> None:
    """Sign a test message, so that an unusable key is reported before the run begins."""
    with TemporaryDirectory(prefix="switchbench-") as folder:
        message = Path(folder) / "message"
        message.write_bytes(b"switchbench\n")
        _signature(message, key)


def _signature(message: Path, key: Path) -> bytes:
    """Return the signature of a message; raise ConfigurationError if the key file has no key.

    ssh-keygen itself would report a file without a key as missing.
    """
    text = _read(key)
    # ssh-keygen takes a public key if ssh-agent has the secret key.
    if b"PRIVATE KEY-----" not in text and not text.startswith((b"ssh-", b"ecdsa-", b"sk-")):
        raise ConfigurationError(f"{key} is not a secret key: give a key file that ssh-keygen made")
    return _ssh_keygen(message, f"{key} can't sign", "sign", "-f", str(key), "-n", NAMESPACE)


def check(directory: Path, allowed: Path | None) -> tuple[str, bool]:
    """Verify the signature of a manifest; return who signed, and whether the key is allowed.

    `allowed`: an allowed_signers file of ssh-keygen(1). ConfigurationError says what is wrong with
    the signature.
    """
    message, signature = directory / MANIFEST, directory / SIGNATURE
    common = ("-n", NAMESPACE, "-s", str(signature))
    unfit = f"{signature} does not match {message.name}"
    if allowed is None:
        printed = _last_line(_ssh_keygen(message, unfit, "check-novalidate", *common))
        whose = printed.partition(" with ")[2]
        return f"by {whose}, whose owner is not checked: --allowed-signers says", False
    _read(allowed)  # ssh-keygen treats a missing file as empty
    refusal = f"{signature} was made with a key that {allowed} does not allow"
    words = ("-s", str(signature), "-f", str(allowed))
    found = _ssh_keygen(message, refusal, "find-principals", *words).decode(errors="replace")
    if not found.strip():
        raise ConfigurationError(refusal)
    words = ("-f", str(allowed), "-I", found.splitlines()[0])
    printed = _last_line(_ssh_keygen(message, unfit, "verify", *words, *common))
    return printed.partition(" signature for ")[2], True


def _read(path: Path) -> bytes:
    with source.reading(path):
        return path.read_bytes()


def _ssh_keygen(message: Path, refusal: str, action: str, *words: str) -> bytes:
    """Run `ssh-keygen -Y` on a message, and return its output.

    ssh-keygen itself asks for a passphrase at the terminal. `refusal`: words for an error message
    that say what failed.
    """
    try:
        done = subprocess.run(
            ["ssh-keygen", "-Y", action, *words],
            capture_output=True,
            check=False,
            input=message.read_bytes(),
        )
    except FileNotFoundError:
        raise ConfigurationError(
            "ssh-keygen is not installed: install OpenSSH's client (Debian: openssh-client)"
        ) from None
    if done.returncode:
        why = _last_line(done.stderr) or f"ssh-keygen ended with {done.returncode}"
        raise ConfigurationError(f"{refusal}: {why}")
    return done.stdout


def _last_line(output: bytes) -> str:
    """Return the last line of ssh-keygen's output, except empty lines and progress messages."""
    lines = [line.strip() for line in output.decode(errors="replace").splitlines()]
    lines = [line for line in lines if line and not line.startswith("Signing data on")]
    return lines[-1].removeprefix("Enter passphrase: ").rstrip(".") if lines else ""


# --- clauses fixed before traffic --------------------------------------------------------------

# The file of the clauses has their canonical form, so that the SHA-256 of the file is the hash of
# the clauses. The first row of the table `events` has this hash. A person who has written the hash
# down can check later that nobody changed the clauses.

RECORD = "clauses"  # type of the record


def fix_clauses(run: Run, directory: RunDirectory) -> None:
    """Write the acceptance clauses and their hash to the results directory, before any traffic."""
    if not run.expectations:
        return
    replace_bytes(directory.path / CLAUSES, canonical(run.expectations))
    record = {
        "type": RECORD,
        "node": None,
        "clauses": len(run.expectations),
        "sha256": clauses_sha256(run.expectations),
        "time": f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}",
    }
    with TableWriter(directory.path) as tables:
        tables.add_event(record)


def changed_clauses(sha256: str | None, directory: Path) -> str | None:
    """Return a sentence if the clauses were changed after the run began, else None.

    `sha256`: hash of the clauses in the directory; None if it has no clauses.
    """
    if sha256 is None:
        return None
    try:
        found = hashlib.sha256((directory / CLAUSES).read_bytes()).hexdigest()
    except OSError:
        found = ""
    if found != sha256:
        return f"{CLAUSES} was changed after the clauses were fixed before traffic"
    try:
        first = next(Tables(directory, ()).events(), None)
    except ConfigurationError:
        first = None
    if first is None or first.get("type") != RECORD:
        return "the table `events` lacks its first row, the hash of the clauses"
    if first.get("sha256") != sha256:
        return "the first row of the table `events` has the hash of other clauses"
    return None


# --- verify ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class VerifyCheck:
    """Outcome of one check of a sealed directory; `holds` is None if the check decides nothing."""

    name: str
    holds: bool | None
    words: str


def verify(
    directory: Path, allowed: Path | None = None, clauses: str | None = None, again: bool = True
) -> Iterator[VerifyCheck]:
    """Check a sealed results directory, and yield the outcome of each check.

    Parameters
    ----------
    directory
        A sealed results directory.
    allowed
        File of allowed signers; with it a signature is required.
    clauses
        Hash of the clauses that the parties agreed on.
    again
        Recompute the verdict from the tables.

    Raises
    ------
    ConfigurationError
        If the directory has no results.
    """
    if not directory.is_dir():
        raise ConfigurationError(
            f"{directory} is not a results directory: give a directory that `switchbench run` wrote"
        )
    sealed = load(directory)
    with ThreadPoolExecutor(1) as beside:
        hashing = beside.submit(lambda: list(differences(directory, sealed)))
        computed: SummaryDocument | SwitchbenchError | None = None
        if again:
            try:
                made = remade(read_plan(directory), directory, load_summary(directory))
                computed = as_read(made)
            except SwitchbenchError as error:  # the files may still match the manifest
                computed = error
        changed = hashing.result()
    yield from (VerifyCheck("file", False, words) for words in changed)
    if not changed:
        size = sum(entry["bytes"] for entry in sealed.values())
        words = f"{format.of(len(sealed), 'file')}, {size:,} bytes, as sealed"
        yield VerifyCheck("files", True, words)
    for name in files_of(directory):
        if name not in sealed:
            yield VerifyCheck("file", None, f"{name} is not sealed: it was added after the seal")
    if not is_signed(directory):
        none = None if allowed is None else False
        yield VerifyCheck("signature", none, f"{directory} is not signed")
    else:
        try:
            words, is_allowed = check(directory, allowed)
            yield VerifyCheck("signature", is_allowed or None, words)
        except ConfigurationError as error:
            yield VerifyCheck("signature", False, str(error))
    if changed:
        yield VerifyCheck("verdict", None, "not recomputed, because files were changed")
        return
    if (directory / MANIFEST).read_bytes() != content(directory, sealed):
        yield VerifyCheck("manifest", False, f"{MANIFEST} was changed")
        return
    summary = load_summary(directory)
    try:
        checked(summary, directory / SUMMARY)
    except ConfigurationError as error:
        yield VerifyCheck("verdict", False, str(error))
        return
    if NOT_ENDED in summary["errors"]:
        yield VerifyCheck("run", False, f"{SUMMARY} is incomplete: {NOT_ENDED}")
        return
    verdict = summary.get("verdict")
    sha256 = verdict and verdict["clauses_sha256"]
    if why := changed_clauses(sha256, directory):
        yield VerifyCheck("clauses", False, why)
    elif sha256:
        count = format.of(len(summary["expectations"]), "clause")
        yield VerifyCheck("clauses", True, f"{count}, SHA-256 {sha256}, fixed before traffic")
    if computed is not None:
        yield from _verdict(directory, summary, computed)
    if clauses is not None:
        same = "are those agreed on"
        other = f"are not those agreed on ({clauses}): {sha256 or 'none'}"
        agreed = sha256 == clauses.lower()
        yield VerifyCheck("clauses", agreed, same if agreed else other)


def _verdict(
    directory: Path, summary: SummaryDocument, again: SummaryDocument | SwitchbenchError
) -> Iterator[VerifyCheck]:
    """Compare the summary with its recomputation from the tables, and yield the outcomes."""
    if isinstance(again, SwitchbenchError):
        raise ConfigurationError(
            f"the verdict on the acceptance clauses can't be recomputed from the tables: {again} "
            "(--no-again skips this check)"
        ) from None
    try:
        kept = source.load(directory / CONFIGURATION)
    except ConfigurationError:
        kept = None
    if kept != read_plan(directory).effective:
        yield VerifyCheck("plan", False, f"{PLAN} does not follow from {CONFIGURATION}")
    version = summary["run"]["versions"].get("switchbench")
    hellos = (one for one in Tables(directory, ()).events() if one["type"] == "hello")
    # All nodes have one version, since the controller rejects others. None: no node reported it.
    measured_by = next((one.get("version") for one in hellos), None)
    if measured_by not in (None, version):
        words = f"{SUMMARY} names version {version}, but the nodes had version {measured_by}"
        yield VerifyCheck("verdict", False, words)
        return
    whole = version == __version__
    # Another version may compute other values, but must reach the same verdict; only the verdict's
    # scope may differ.
    verdict, other = summary.get("verdict"), again.get("verdict")
    if verdict and other and not whole:
        other["scope"] = verdict["scope"]
    compared = list(summary) if whole else ["status", "exit_status", "verdict"]
    different = [key for key in compared if again.get(key) != summary.get(key)]
    outcome = f"a {summary['status']} run without clauses"
    if verdict:
        outcome = f"{verdict['verdict']}: {verdict['sentence']}"
    if different:
        words = f"{SUMMARY} differs from the result of the tables: {', '.join(different)}"
        yield VerifyCheck("verdict", False, words)
    elif whole:
        yield VerifyCheck("verdict", True, f"same as recomputed from the tables: {outcome}")
    else:
        words = f"status and verdict agree, made by version {version}: {outcome}"
        yield VerifyCheck("verdict", None, words)
