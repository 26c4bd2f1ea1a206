# SPDX-License-Identifier: BSD-3-Clause
"""Whether a results directory is what was measured: hashes, signature, clauses, verdict.

Each check is one line for a person. What does not hold is named by file; what can still be checked
then is.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .. import __version__
from ..base import format, source
from ..base.errors import ConfigurationError, SwitchbenchError
from ..base.model import WAITING, Load, Run, Trial
from ..config import Request, read
from ..config.schema import ResolvedSettings
from ..config.tests import points
from ..records.directory import (
    CONFIGURATION,
    JUNIT,
    PLAN,
    SUMMARY,
    as_read,
    load_summary,
)
from ..records.plan_file import read_plan
from ..records.store import Tables
from ..records.summary_form import SummaryDocument, checked
from . import sealing
from .remake import remade
from .sealing import changed_clauses, junit
from .summary import NOT_ENDED

NS = 1_000_000_000


@dataclass(frozen=True)
class VerifyCheck:
    """What came out of one check. `holds` is None where nothing could or had to be checked."""

    name: str
    holds: bool | None
    words: str


@dataclass(frozen=True)
class VerifyOptions:
    """What is to be checked."""

    allowed: Path | None = None  # whose signatures are good; then there has to be one
    clauses: str | None = None  # the hash that was agreed on
    again: bool = True  # whether the verdict is made anew


def verify(directory: Path, asked: VerifyOptions) -> Iterator[VerifyCheck]:
    """Yield all checks in order; ConfigurationError where there is nothing that can be checked."""
    if not directory.is_dir():
        raise ConfigurationError(f"{directory} is no results directory")
    sealed = sealing.load(directory)
    with ThreadPoolExecutor(1) as beside:
        hashing = beside.submit(lambda: list(sealing.differences(directory, sealed)))
        again = _made_again(directory) if asked.again else None
        differences = hashing.result()
    yield from _files(directory, sealed, differences)
    yield from _signatures(directory, asked.allowed)
    if differences:
        yield VerifyCheck("verdict", None, "not judged again: files were changed")
        return
    if (directory / sealing.MANIFEST).read_bytes() != sealing.content(directory, sealed):
        yield VerifyCheck("manifest", False, f"{sealing.MANIFEST} was changed")
        return
    summary = load_summary(directory)
    try:
        checked(summary, directory / SUMMARY)
    except ConfigurationError as error:
        yield VerifyCheck("verdict", False, str(error))
        return
    if NOT_ENDED in summary["errors"]:
        yield VerifyCheck("run", False, f"{SUMMARY} is half written: {NOT_ENDED}")
        return
    yield from _clauses(directory, summary)
    if again is not None:
        yield from _verdict(directory, summary, again)
    yield from _junit(directory, summary)
    yield from _agreed(summary, asked.clauses)


def _made_again(directory: Path) -> Future[Any]:
    """Return the summary that plan and tables amount to, while files are hashed.

    What is wrong with them is told only if they are as sealed.
    """
    made: Future[Any] = Future()
    try:
        made.set_result(as_read(remade(read_plan(directory), directory, load_summary(directory))))
    except SwitchbenchError as error:
        made.set_exception(error)
    return made


def _files(
    directory: Path, files: dict[str, sealing.SealedFile], differences: list[str]
) -> Iterator[VerifyCheck]:
    if differences:
        yield from (VerifyCheck("file", False, words) for words in differences)
    else:
        size = sum(entry["bytes"] for entry in files.values())
        yield VerifyCheck(
            "files", True, f"{format.of(len(files), 'file')}, {size:,} bytes, as sealed"
        )
    for name in sealing.files_of(directory):
        if name not in files:
            yield VerifyCheck("file", None, f"{name} is not sealed: it came later")


def _signatures(directory: Path, allowed: Path | None) -> Iterator[VerifyCheck]:
    if not sealing.is_signed(directory):
        yield VerifyCheck(
            "signature", None if allowed is None else False, f"{directory} is not signed"
        )
        return
    try:
        signed = sealing.check(directory, allowed)
    except ConfigurationError as error:
        yield VerifyCheck("signature", False, str(error))
    else:
        yield VerifyCheck("signature", True if signed.trusted else None, signed.words)


def _clauses(directory: Path, summary: SummaryDocument) -> Iterator[VerifyCheck]:
    """Yield the clauses as they were fixed, and those that the summary judged."""
    sha256 = (verdict := summary.get("verdict")) and verdict["clauses_sha256"]
    changed = changed_clauses(sha256, directory)
    if changed:
        yield VerifyCheck("clauses", False, changed)
    elif sha256:
        count = format.of(len(summary["expectations"]), "clause")
        yield VerifyCheck("clauses", True, f"{count}, SHA-256 {sha256}, fixed before traffic")


def _verdict(
    directory: Path, summary: SummaryDocument, made_again: Future[Any]
) -> Iterator[VerifyCheck]:
    """Yield the verdict, and all that it rests on, from plan and tables."""
    try:
        run = read_plan(directory)
    except SwitchbenchError as error:
        raise ConfigurationError(
            f"the clauses can't be judged again here (--no-again skips that): {error}"
        ) from None
    yield from _configuration(directory, run)
    version = summary["run"]["versions"].get("switchbench")
    hellos = (one for one in Tables(directory, ()).events() if one["type"] == "hello")
    # The nodes' is the command's: a run with others is refused. None: none said it.
    measured_by = next((one.get("version") for one in hellos), None)
    if measured_by not in (None, version):
        words = f"{SUMMARY} says that it was made by {version}, and the tables by {measured_by}"
        yield VerifyCheck("verdict", False, words)
        return
    whole = version == __version__
    again = made_again.result()
    # Another version may know more, but not judge otherwise.
    compared = list(summary) if whole else ["status", "exit_status", "verdict"]
    different = [key for key in compared if _figures(again, key) != _figures(summary, key)]
    if different:
        words = f"{SUMMARY} is not what the tables amount to: {', '.join(different)}"
        yield VerifyCheck("verdict", False, words)
    elif whole:
        yield VerifyCheck("verdict", True, f"as the tables have it: {_outcome(summary)}")
    else:
        words = f"by status and verdict only, for {version} made it: {_outcome(summary)}"
        yield VerifyCheck("verdict", None, words)


def _figures(summary: Mapping[str, Any], key: str) -> Any:
    """Return an entry of a summary; of the verdict without the sentence on its scope."""
    value = summary.get(key)
    if key == "verdict" and isinstance(value, dict):
        return {name: one for name, one in value.items() if name != "scope"}
    return value


def _configuration(directory: Path, run: Run) -> Iterator[VerifyCheck]:
    """Check that the plan was made of the configuration, as far as it can be read here.

    What a trial was to send and for how long.
    """
    path = directory / CONFIGURATION
    try:
        kept = source.load(path)
    except ConfigurationError:
        kept = None
    if kept != run.effective:
        yield VerifyCheck("plan", False, f"{PLAN} was not made of {CONFIGURATION} beside it")
        return
    try:
        wanted = {_offer(point) for test in read(Request(path)).tests for point in points(test)}
    except SwitchbenchError as error:
        yield VerifyCheck("plan", None, f"{CONFIGURATION} can't be read here: {error}")
        wanted = None
    for trial in (*run.trials, *run.again):
        if wanted is not None and trial.search is None and _offer_of(trial) not in wanted:
            words = f"trial {trial.id} has a load, window or size that is not in {CONFIGURATION}"
            yield VerifyCheck("plan", False, f"{PLAN}: {words}")
            return


# Transport, sizes, load, window.
_Offer = tuple[str, tuple[int, ...], Load, int]


def _offer(point: ResolvedSettings) -> _Offer:
    waits = point.traffic in WAITING  # its window may be longer than was asked for
    window_ns = 0 if waits else point.window or 0
    return point.transport, point.sizes, point.load or Load(percent=100.0), window_ns


def _offer_of(trial: Trial) -> _Offer:
    window_ns = 0 if trial.traffic in WAITING else round(trial.window_s * NS)
    return trial.transport, trial.sizes, trial.load, window_ns


def _junit(directory: Path, summary: SummaryDocument) -> Iterator[VerifyCheck]:
    """Check that `verdict.xml` says what the summary says, sealed or not."""
    path = directory / JUNIT
    if not path.exists():
        return
    verdict = summary.get("verdict")
    wanted = None if verdict is None else junit(summary, verdict)
    if path.read_bytes() == wanted:
        yield VerifyCheck("junit", True, f"{JUNIT} has the verdict of {SUMMARY}")
    elif summary["run"]["versions"].get("switchbench") == __version__:
        yield VerifyCheck("junit", False, f"{JUNIT} is not the verdict of {SUMMARY}")
    else:
        yield VerifyCheck("junit", None, f"{JUNIT} is of another version: not compared")


def _outcome(summary: SummaryDocument) -> str:
    verdict = summary.get("verdict")
    if not verdict:
        return f"a {summary['status']} run without clauses"
    return f"{verdict['verdict']}: {verdict['sentence']}"


def _agreed(summary: SummaryDocument, wanted: str | None) -> Iterator[VerifyCheck]:
    if wanted is None:
        return
    verdict = summary.get("verdict")
    found = verdict["clauses_sha256"] if verdict else "none"
    holds = found == wanted.lower()
    words = "are those agreed on" if holds else f"are not those agreed on ({wanted}): {found}"
    yield VerifyCheck("clauses", holds, words)
