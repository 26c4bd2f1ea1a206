# SPDX-License-Identifier: BSD-3-Clause
"""manifest.json: the SHA-256 of every file of a results directory, and what they are of.

It follows from the directory byte by byte, so that a byte of its own that was changed shows, too.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from pathlib import Path

from typing_extensions import TypedDict

from ...base.errors import ConfigurationError
from ...records.directory import (
    SUMMARY,
    load_summary,
    read_json,
    refuse_endless,
    refuse_other_form,
    replace_bytes,
)

MANIFEST = "manifest.json"
SCHEMA = "switchbench-manifest/1"
SIGNATURE = f"{MANIFEST}.sig"


class SealedFile(TypedDict):
    """What a manifest says of a file."""

    bytes: int
    sha256: str


_OURS = (MANIFEST, SIGNATURE)


def files_of(directory: Path) -> list[str]:
    """Return the names of all files that a manifest of the directory has.

    Those of folders below too.
    """
    names = []
    for path in sorted(directory.rglob("*")):
        name = path.relative_to(directory).as_posix()
        if path.is_symlink() or not (path.is_file() or path.is_dir()):
            raise ConfigurationError(f"{path} is no file: what is sealed has to lie there itself")
        if not _is_utf8(name):
            raise ConfigurationError(
                f"{directory}: the name of the file {name!a} is not UTF-8, so that it can't be "
                "sealed: rename it"
            )
        if path.is_file() and name not in _OURS:
            names.append(name)
    return names


def _is_utf8(name: str) -> bool:
    """Return whether it can be written into a manifest.

    Other bytes are lone surrogates in Python.
    """
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


def content(directory: Path, files: Mapping[str, SealedFile]) -> bytes:
    """Return the manifest of these files and their entries, as it is written."""
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
    """Return a file's size and hash."""
    try:
        with path.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
        return {"bytes": path.stat().st_size, "sha256": digest}
    except OSError as error:
        raise ConfigurationError(f"{path} can't be read: {error.strerror}") from None


def load(directory: Path) -> dict[str, SealedFile]:
    """Return the files of the manifest there.

    ConfigurationError for one that is damaged or newer.
    """
    refuse_endless(directory)
    path = directory / MANIFEST
    try:
        loaded = read_json(path)
    except FileNotFoundError:
        raise ConfigurationError(_no_manifest(directory)) from None
    except OSError as error:
        raise ConfigurationError(f"{path} can't be read: {error.strerror}") from None
    except ValueError as error:
        raise ConfigurationError(f"{path} is damaged: {error}") from None
    refuse_other_form(loaded, SCHEMA, path)
    files: dict[str, SealedFile] | None = loaded.get("files")
    if not isinstance(files, dict) or SUMMARY not in files:
        raise ConfigurationError(f"{path} is damaged: it lists no {SUMMARY}")
    for name, entry in files.items():
        strange = name.startswith("/") or ".." in name.split("/") or not _is_utf8(name)
        if strange or not isinstance(entry, dict) or entry.keys() != {"bytes", "sha256"}:
            raise ConfigurationError(f"{path} is damaged: at the file {name!a}")
    return files


def _no_manifest(directory: Path) -> str:
    load_summary(directory)  # says so where this is no results directory at all
    return (
        f"{directory} has no {MANIFEST}: its run has not ended or was killed (`switchbench table "
        f"{directory} --again` makes the summary of what was measured), or an older version made it"
    )


def differences(directory: Path, files: Mapping[str, SealedFile]) -> Iterator[str]:
    """Files that are not as the manifest has them, a sentence each."""
    for name, entry in files.items():
        path = directory / name
        if not path.is_file() or path.is_symlink():
            yield f"{name} is missing"
        elif (found := entry_of(path)) != entry:
            size = f": {found['bytes']} bytes, and {entry['bytes']} when it was sealed"
            yield f"{name} was changed" + (size if found["bytes"] != entry["bytes"] else "")


def is_signed(directory: Path) -> bool:
    """Return whether somebody has signed the manifest."""
    return (directory / SIGNATURE).exists()


def seal(directory: Path) -> None:
    """Make the manifest of all that is there. One that is signed stays as it is."""
    if not is_signed(directory):
        files = {name: entry_of(directory / name) for name in files_of(directory)}
        replace_bytes(directory / MANIFEST, content(directory, files))


def renew(directory: Path) -> None:
    """After a command has changed a file. A directory that was never sealed stays so."""
    if (directory / MANIFEST).exists():
        seal(directory)
